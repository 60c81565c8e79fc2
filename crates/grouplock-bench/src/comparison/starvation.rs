//! A lone request against four threads of another session that hold back to back.
//!
//! Holders sleep inside, so that the machine is idle and the wait is the lock's doing. A lock may let the lone one wait
//! for ever; then the holders are sent away, and it is told that they had to be.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use serde::Serialize;

use super::lock::Lock;
use super::throughput::Gate;
use super::workload::Lots;
use crate::statistics::percentile;

/// How many hold.
pub const HOLDERS: usize = 4;
/// How long each hold is meant to be.
pub const HOLD: Duration = Duration::from_millis(2);

/// Who holds and who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Session 0 holds, 1 asks. For a lock with readers and writers: a writer among readers.
    OneAmongZeros,
    /// Session 1 holds, 0 asks. For a lock with readers and writers: a reader among writers.
    ZeroAmongOnes,
    /// Each holds a session of its own, 0 asks: a reader among writers for the group locks as well.
    AmongOwn,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 3] = [Way::OneAmongZeros, Way::ZeroAmongOnes, Way::AmongOwn];

    fn held(self, holder: usize) -> u64 {
        match self {
            Way::OneAmongZeros => 0,
            Way::ZeroAmongOnes => 1,
            Way::AmongOwn => holder as u64 + 1,
        }
    }

    fn asked(self) -> u64 {
        match self {
            Way::OneAmongZeros => 1,
            Way::ZeroAmongOnes | Way::AmongOwn => 0,
        }
    }

    /// As it stands in tables.
    pub fn told(self) -> &'static str {
        match self {
            Way::OneAmongZeros => "session 1 among 0 (writer among readers)",
            Way::ZeroAmongOnes => "session 0 among 1 (reader among writers)",
            Way::AmongOwn => "session 0 among a session each",
        }
    }
}

/// How often to ask, and when to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Who holds and who asks.
    pub way: Way,
    /// How often.
    pub requests: usize,
    /// After how long the holders are sent away.
    pub patience: Duration,
}

/// How long the lone one waited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Waited {
    /// How often it got in by itself.
    pub served: usize,
    /// In holds, half of the times. None if it never got in.
    pub median: Option<f64>,
    /// In holds, the longest of those.
    pub max: Option<f64>,
    /// Set if it had to be helped in the end, after so many seconds.
    pub gave_up_after: Option<f64>,
    /// How long a hold really was, in the middle, in milliseconds.
    pub hold_ms: f64,
}

/// Runs the probe on a lock of its own.
pub fn run<L: Lock>(probe: &Probe) -> Waited {
    let Probe { way, requests, patience } = *probe;
    let lock = CachePadded::new(L::new());
    let gate = Gate::new(HOLDERS);
    let holds = Mutex::new(Vec::new());
    let (answer, answers) = mpsc::channel();
    let (waits, gave_up_after) = thread::scope(|scope| {
        for holder in 0..HOLDERS {
            let (lock, gate, holds) = (&*lock, &gate, &holds);
            scope.spawn(move || {
                let mut local = L::local();
                let mut mine = Vec::new();
                gate.pass();
                // Not all at once: that would leave a gap between the holds.
                thread::sleep(HOLD * holder as u32 / HOLDERS as u32);
                while !gate.is_over() {
                    mine.push(lock.pass(&mut local, way.held(holder), || {
                        let start = Instant::now();
                        thread::sleep(HOLD);
                        start.elapsed()
                    }));
                }
                holds.lock().unwrap_or_else(PoisonError::into_inner).extend(mine);
            });
        }
        let lock = &*lock;
        let gate = &gate;
        gate.pass();
        scope.spawn(move || {
            let mut local = L::local();
            let mut lots = Lots::new(way.asked());
            for _ in 0..requests {
                // Comes at any moment of a hold.
                thread::sleep(HOLD.mul_f64(2.0 + 2.0 * lots.fraction()));
                let asked = Instant::now();
                let waited = lock.pass(&mut local, way.asked(), || asked.elapsed());
                // If nobody listens any more, this was the one that had to be helped.
                if gate.is_over() || answer.send(waited).is_err() {
                    return;
                }
            }
        });
        let mut waits = Vec::new();
        let mut gave_up_after = None;
        loop {
            match answers.recv_timeout(patience) {
                Ok(waited) => waits.push(waited),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    gave_up_after = Some(patience.as_secs_f64());
                    break;
                }
            }
        }
        gate.end();
        (waits, gave_up_after)
    });
    let holds = holds.into_inner().unwrap_or_else(PoisonError::into_inner);
    summed_up(&waits, &holds, gave_up_after)
}

fn summed_up(waits: &[Duration], holds: &[Duration], gave_up_after: Option<f64>) -> Waited {
    let sorted = |sample: &[Duration]| {
        let mut seconds: Vec<f64> = sample.iter().map(Duration::as_secs_f64).collect();
        seconds.sort_by(f64::total_cmp);
        seconds
    };
    let (waits, holds) = (sorted(waits), sorted(holds));
    // There is a hold, unless the lock failed before the first.
    let hold = percentile(&holds, 0.5).unwrap_or(HOLD.as_secs_f64());
    let in_holds = |share| percentile(&waits, share).map(|wait| wait / hold);
    Waited {
        served: waits.len(),
        median: in_holds(0.5),
        max: in_holds(1.0),
        gave_up_after,
        hold_ms: hold * 1e3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::peers::{FairByHand, ParkingLotMutexFair};

    #[test]
    fn waits_are_told_in_holds() {
        let ms = Duration::from_millis;
        let waited = summed_up(&[ms(2), ms(9), ms(4)], &[ms(2), ms(2), ms(50)], None);
        assert_eq!((waited.served, waited.median, waited.max), (3, Some(2.0), Some(4.5)));
        assert_eq!(summed_up(&[], &[], Some(1.5)).median, None);
    }

    #[test]
    fn a_fair_lock_serves_every_request() {
        let probe =
            Probe { way: Way::OneAmongZeros, requests: 3, patience: Duration::from_secs(20) };
        let waited = run::<FairByHand>(&probe);
        assert_eq!((waited.served, waited.gave_up_after), (3, None));
        let waited = run::<ParkingLotMutexFair>(&Probe { way: Way::AmongOwn, ..probe });
        assert_eq!((waited.served, waited.gave_up_after), (3, None));
    }

    /// Never serves anybody who asks for session 1 while session 0 is inside or wants to be.
    struct Starving(crate::comparison::peers::ByHand<true>, std::sync::atomic::AtomicUsize);

    impl Lock for Starving {
        const NAME: &'static str = "starving";
        const KIND: super::super::lock::Kind = super::super::lock::Kind::Group;
        type Local = ();

        fn new() -> Self {
            Starving(Lock::new(), 0.into())
        }

        fn local() {}

        fn pass<R>(&self, local: &mut (), session: u64, inside: impl FnOnce() -> R) -> R {
            use std::sync::atomic::Ordering::SeqCst;
            self.1.fetch_add(usize::from(session == 0), SeqCst);
            while session != 0 && self.1.load(SeqCst) > 0 {
                thread::sleep(Duration::from_micros(100));
            }
            let result = self.0.pass(local, session, inside);
            self.1.fetch_sub(usize::from(session == 0), SeqCst);
            result
        }
    }

    #[test]
    fn a_request_that_starves_is_helped_and_told() {
        let patience = Duration::from_millis(100);
        let waited = run::<Starving>(&Probe { way: Way::OneAmongZeros, requests: 3, patience });
        assert_eq!((waited.served, waited.gave_up_after), (0, Some(0.1)));
    }
}
