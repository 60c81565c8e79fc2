//! Who was inside when, as the clients themselves saw it, in a file that the cluster has no part in.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds by a clock that all processes of the machine share.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("there is a clock");
    time.tv_sec().unsigned_abs() * 1_000_000_000 + time.tv_nsec().unsigned_abs()
}

/// Where one client writes.
pub(crate) struct Ledger(File);

impl Ledger {
    pub(crate) fn open(path: &Path) -> Self {
        let file = File::options().create(true).append(true).open(path);
        Ledger(file.expect("the ledger can be opened"))
    }

    /// After it was let in.
    pub(crate) fn enter(&mut self, client: &str, session: &str, epoch: u64) {
        self.line(&format!("{} enter {client} {session} {epoch}", now()));
    }

    /// Before it leaves; or after it had to be out, so long ago.
    pub(crate) fn leave(&mut self, client: &str, session: &str, epoch: u64, ago: Duration) {
        let at = now().saturating_sub(u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX));
        self.line(&format!("{at} leave {client} {session} {epoch}"));
    }

    /// What was so at some time before now.
    pub(crate) fn note(&mut self, at: u64, what: &str, client: &str, session: &str, epoch: u64) {
        self.line(&format!("{at} {what} {client} {session} {epoch}"));
    }

    /// Before it is killed.
    pub(crate) fn die(&mut self, client: &str) {
        self.line(&format!("{} die {client} - 0", now()));
    }

    fn line(&mut self, line: &str) {
        // One call, so that lines of different processes do not mix.
        self.0.write_all(format!("{line}\n").as_bytes()).expect("the ledger can be written");
    }
}

/// A stay.
#[derive(Clone, Debug)]
struct Stay {
    client: String,
    session: String,
    epoch: u64,
    from: u64,
    to: u64,
}

/// How many stays there were, or what was not right: two sessions inside at once, or epochs that do not grow.
pub(crate) fn check(path: &Path) -> Result<usize, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut inside: std::collections::BTreeMap<String, Stay> = std::collections::BTreeMap::new();
    let mut stays: Vec<Stay> = Vec::new();
    for line in text.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let [at, what, client, session, epoch] = words[..] else {
            return Err(format!("what is this: {line}"));
        };
        let at: u64 = at.parse().map_err(|_| line.to_owned())?;
        let epoch: u64 = epoch.parse().map_err(|_| line.to_owned())?;
        if let Some(mut stay) = inside.remove(client) {
            stay.to = at;
            stays.push(stay);
        }
        if what == "enter" {
            let (client, session) = (client.to_owned(), session.to_owned());
            let stay = Stay { client: client.clone(), session, epoch, from: at, to: u64::MAX };
            inside.insert(client, stay);
        }
    }
    stays.extend(inside.into_values());
    stays.sort_by_key(|stay| stay.from);
    let mut open: Vec<&Stay> = Vec::new();
    let mut largest: Option<&Stay> = None;
    for stay in &stays {
        open.retain(|other| other.to > stay.from);
        if let Some(other) =
            open.iter().find(|other| other.epoch != stay.epoch || other.session != stay.session)
        {
            return Err(format!("both inside: {other:?} and {stay:?}"));
        }
        if let Some(before) = largest
            && before.epoch > stay.epoch
        {
            return Err(format!("epochs go back: {before:?}, then {stay:?}"));
        }
        if let Some(before) = largest
            && before.epoch == stay.epoch
            && before.session != stay.session
        {
            return Err(format!("one epoch for two sessions: {before:?}, then {stay:?}"));
        }
        largest = Some(stay);
        open.push(stay);
    }
    Ok(stays.len())
}
