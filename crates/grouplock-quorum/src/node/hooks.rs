//! Variables by which tests change a running member. Without the feature `test-hooks` none is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use crate::clock::Clock;
use crate::record::Record;
use crate::wire::Versions;

type Records = Vec<(Arc<str>, Record)>;

fn text(variable: &str) -> Option<String> {
    if cfg!(feature = "test-hooks") { std::env::var(variable).ok() } else { None }
}

fn number(variable: &str) -> Option<i64> {
    text(variable)?.parse().ok()
}

/// `GROUPLOCK_TEST_CLOCK`: shifts the clock of a member or client by this many seconds.
/// `GROUPLOCK_TEST_FIRST_CLOCK`: the same for the first start in this process only.
pub(crate) fn clock(clock: Clock) -> Clock {
    static STARTS: AtomicU64 = AtomicU64::new(0);
    let first = (STARTS.fetch_add(1, SeqCst) == 0).then_some("GROUPLOCK_TEST_FIRST_CLOCK");
    let shift = first.and_then(number).or_else(|| number("GROUPLOCK_TEST_CLOCK"));
    clock.shifted(shift.unwrap_or(0))
}

/// `GROUPLOCK_TEST_VERSIONS`: the versions that the member claims to speak, as in `2-3`.
pub(super) fn versions(ours: Versions) -> Versions {
    let range = text("GROUPLOCK_TEST_VERSIONS");
    let range = range.as_deref().and_then(|range| range.split_once('-'));
    let range = range.and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
    range.map_or(ours, |(lowest, highest)| Versions { lowest, highest })
}

/// `GROUPLOCK_TEST_KEPT`: for how many milliseconds an unused room is remembered.
pub(super) fn kept(kept: Duration) -> Duration {
    number("GROUPLOCK_TEST_KEPT").map_or(kept, |it| Duration::from_millis(it.unsigned_abs()))
}

/// `GROUPLOCK_TEST_FORGET`: the records that are not saved, `votes` or `inside`.
pub(super) fn before_commit(mut records: Records) -> Records {
    match text("GROUPLOCK_TEST_FORGET").as_deref() {
        Some("votes") => records.retain(|(_, record)| !matches!(record, Record::Vote(_))),
        Some("inside") => records
            .retain(|(_, record)| !matches!(record, Record::Opened(_) | Record::Admitted { .. })),
        _ => {}
    }
    records
}

/// `GROUPLOCK_TEST_BEGUN`: a member without data behaves as one that has begun.
pub(super) fn begun() -> bool {
    text("GROUPLOCK_TEST_BEGUN").is_some()
}

/// How many of the records are votes.
pub(super) fn votes(records: &Records) -> u64 {
    records.iter().filter(|(_, record)| matches!(record, Record::Vote(_))).count() as u64
}

/// `GROUPLOCK_TEST_KILL_AT_VOTE`: the vote after which the process is killed. The vote is saved but
/// not sent. `GROUPLOCK_TEST_HANG`: after its first vote the engine does nothing more.
pub(super) fn after_commit(votes: u64) {
    static VOTES: AtomicU64 = AtomicU64::new(0);
    let before = VOTES.fetch_add(votes, SeqCst);
    if let Some(at) = number("GROUPLOCK_TEST_KILL_AT_VOTE").map(i64::unsigned_abs)
        && before < at
        && before + votes >= at
    {
        let me = nix::unistd::Pid::this();
        _ = nix::sys::signal::kill(me, nix::sys::signal::Signal::SIGKILL);
        hang();
    }
    if votes > 0 && text("GROUPLOCK_TEST_HANG").is_some() {
        hang();
    }
}

fn hang() -> ! {
    loop {
        std::thread::park();
    }
}
