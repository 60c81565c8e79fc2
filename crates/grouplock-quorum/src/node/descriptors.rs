//! How many connections the file descriptors of this process allow.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The largest number of clients, if there are enough descriptors.
const MOST_CLIENTS: usize = 8192;
/// The largest number of connections that have not identified themselves, if there are enough
/// descriptors.
const MOST_STRANGERS: usize = 128;
/// The largest number of connections to the status page.
pub(super) const MOST_READERS: usize = 32;
/// For the log, the new log, the directory, listeners, the standard streams, the runtime, and
/// connections that are being closed.
const OTHERS: usize = 64;

/// The largest numbers of connections. Members are not counted: descriptors are reserved for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Capacity {
    pub(super) clients: usize,
    pub(super) strangers: usize,
}

/// Raises the limit of descriptors as far as the system allows, and divides them.
pub(super) fn capacity(members: u16) -> Capacity {
    let limit = match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, hard)) if soft < hard => {
            let raised = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
            if let Err(error) = &raised {
                tracing::warn!("the limit of {soft} descriptors cannot be raised: {error}");
            }
            if raised.is_ok() { hard } else { soft }
        }
        Ok((soft, _)) => soft,
        Err(_) => 1024,
    };
    share(usize::try_from(limit).unwrap_or(usize::MAX), members)
}

/// Each member needs two, one per direction, and a third one while it dials again.
fn share(limit: usize, members: u16) -> Capacity {
    let left = limit.saturating_sub(OTHERS + MOST_READERS + 3 * usize::from(members));
    // At least eight of each. If these are too many, accepting fails and is tried again.
    let strangers = (left / 4).clamp(8, MOST_STRANGERS);
    let clients = left.saturating_sub(strangers).clamp(8, MOST_CLIENTS);
    if clients < MOST_CLIENTS {
        tracing::warn!(
            "{limit} descriptors are enough for {clients} clients; with more descriptors {MOST_CLIENTS} would be possible"
        );
    }
    Capacity { clients, strangers }
}
