//! Where tests take hold of a running member. Without the feature `test-hooks` nothing of this is left.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::record::Record;
use crate::wire::Versions;

type Records = Vec<(Arc<str>, Record)>;

/// How many of them are votes.
pub(super) fn votes(records: &Records) -> u64 {
    records.iter().filter(|(_, record)| matches!(record, Record::Vote(_))).count() as u64
}

#[cfg(feature = "test-hooks")]
mod armed {
    use super::{Clock, Duration, Record, Records, Versions};
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    static VOTES: AtomicU64 = AtomicU64::new(0);

    fn number(variable: &str) -> Option<i64> {
        std::env::var(variable).ok()?.parse().ok()
    }

    /// `GROUPLOCK_TEST_CLOCK`: by how many seconds the clock is wrong. `GROUPLOCK_TEST_FIRST_CLOCK`: only that of the first start in this process.
    pub(in super::super) fn clock(clock: Clock) -> Clock {
        static STARTS: AtomicU64 = AtomicU64::new(0);
        let first = (STARTS.fetch_add(1, SeqCst) == 0).then_some("GROUPLOCK_TEST_FIRST_CLOCK");
        let shift = first.and_then(number).or_else(|| number("GROUPLOCK_TEST_CLOCK"));
        clock.shifted(shift.unwrap_or(0))
    }

    /// `GROUPLOCK_TEST_VERSIONS`: what the member says it speaks, as in `2-3`.
    pub(in super::super) fn versions(ours: Versions) -> Versions {
        let told = std::env::var("GROUPLOCK_TEST_VERSIONS").ok();
        let told = told.as_deref().and_then(|told| told.split_once('-'));
        let told = told.and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
        told.map_or(ours, |(lowest, highest)| Versions { lowest, highest })
    }

    /// `GROUPLOCK_TEST_KEPT`: how many milliseconds a room is remembered that nobody uses.
    pub(in super::super) fn kept(kept: Duration) -> Duration {
        number("GROUPLOCK_TEST_KEPT").map_or(kept, |it| Duration::from_millis(it.unsigned_abs()))
    }

    /// `GROUPLOCK_TEST_FORGET`: what is not saved, `votes` or `inside`.
    pub(in super::super) fn before_commit(mut records: Records) -> Records {
        match std::env::var("GROUPLOCK_TEST_FORGET").as_deref() {
            Ok("votes") => records.retain(|(_, record)| !matches!(record, Record::Vote(_))),
            Ok("inside") => records.retain(|(_, record)| {
                !matches!(record, Record::Opened(_) | Record::Admitted { .. })
            }),
            _ => {}
        }
        records
    }

    /// `GROUPLOCK_TEST_BEGUN`: a member without data takes itself for one that has begun.
    pub(in super::super) fn begun() -> bool {
        std::env::var_os("GROUPLOCK_TEST_BEGUN").is_some()
    }

    /// `GROUPLOCK_TEST_KILL_AT_VOTE`: after which vote, saved but not sent, the process is killed.
    pub(in super::super) fn after_commit(votes: u64) {
        let before = VOTES.fetch_add(votes, SeqCst);
        if let Some(at) = number("GROUPLOCK_TEST_KILL_AT_VOTE").map(i64::unsigned_abs)
            && before < at
            && before + votes >= at
        {
            let me = nix::unistd::Pid::this();
            let _ = nix::sys::signal::kill(me, nix::sys::signal::Signal::SIGKILL);
            loop {
                std::thread::park();
            }
        }
    }
}

#[cfg(feature = "test-hooks")]
pub(super) use armed::{after_commit, before_commit, begun, clock, kept, versions};

#[cfg(not(feature = "test-hooks"))]
pub(super) fn clock(clock: Clock) -> Clock {
    clock
}

#[cfg(not(feature = "test-hooks"))]
pub(super) fn versions(ours: Versions) -> Versions {
    ours
}

#[cfg(not(feature = "test-hooks"))]
pub(super) fn kept(kept: Duration) -> Duration {
    kept
}

#[cfg(not(feature = "test-hooks"))]
pub(super) fn begun() -> bool {
    false
}

#[cfg(not(feature = "test-hooks"))]
pub(super) fn before_commit(records: Records) -> Records {
    records
}

#[cfg(not(feature = "test-hooks"))]
pub(super) fn after_commit(_votes: u64) {}
