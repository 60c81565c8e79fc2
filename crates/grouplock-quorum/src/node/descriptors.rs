//! How many connections the descriptors of this process are enough for.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// How many clients there can be, if there are descriptors.
const MOST_CLIENTS: usize = 8192;
/// How many connections there can be whose other side has not said who it is, if there are descriptors.
const MOST_STRANGERS: usize = 128;
/// How many connections to the status page there can be at once.
pub(super) const MOST_READERS: usize = 32;
/// For the log, the log that is written anew, the directory, listeners, the standard streams, the runtime, and connections that are just
/// being closed.
const OTHERS: usize = 64;

/// How many connections of which kind there can be. Members are not counted: their places are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) clients: usize,
    pub(super) strangers: usize,
}

/// Takes as many descriptors as the system allows, and shares them out.
pub(super) fn places(members: u16) -> Places {
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

/// Each member takes two, one for each direction, and another while it dials again.
fn share(limit: usize, members: u16) -> Places {
    let left = limit.saturating_sub(OTHERS + MOST_READERS + 3 * usize::from(members));
    // Eight of each, and it is likely that there are too few: then accepting fails and is tried again.
    let strangers = (left / 4).clamp(8, MOST_STRANGERS);
    let clients = left.saturating_sub(strangers).clamp(8, MOST_CLIENTS);
    if clients < MOST_CLIENTS {
        tracing::warn!(
            "with {limit} descriptors there are places for {clients} clients; with more there would be {MOST_CLIENTS}"
        );
    }
    Places { clients, strangers }
}
