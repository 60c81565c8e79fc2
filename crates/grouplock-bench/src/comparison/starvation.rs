//! A lone request against four threads of another session that hold back to back.
//!
//! Holders sleep inside. So the machine is idle, and the lock alone causes the wait. If the lock
//! never admits the lone request, the holders stop, and the result says so.

use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use grouplock_testing::Random;
use serde::Serialize;

use super::lock::{Lock, held};
use super::throughput::Gate;
use crate::report::labels;
use crate::statistics::{percentile, sorted};

pub(super) const HOLDERS: usize = 4;
/// How long each hold should be.
const HOLD: Duration = Duration::from_millis(2);

labels!(
    /// The sessions of the holders and of the lone request.
    Roles {
        OneAmongZeros = "session 1 among 0 (writer among readers)",
        ZeroAmongOnes = "session 0 among 1 (reader among writers)",
        /// A reader among writers for the group locks too.
        AmongOwn = "session 0 among a session each",
    }
);

impl Roles {
    fn held(self, holder: usize) -> u64 {
        match self {
            Roles::OneAmongZeros => 0,
            Roles::ZeroAmongOnes => 1,
            Roles::AmongOwn => holder as u64 + 1,
        }
    }

    fn requested(self) -> u64 {
        u64::from(self == Roles::OneAmongZeros)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    pub(super) way: Roles,
    pub(super) requests: usize,
    /// After so long a wait the holders stop.
    pub(super) patience: Duration,
}

/// How long the lone request waited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Waited {
    /// How often it entered while the holders held.
    pub(super) served: usize,
    /// In holds. None if it never entered.
    pub(super) median: Option<f64>,
    pub(super) max: Option<f64>,
    /// Set if the holders had to stop, after so many seconds.
    pub(super) gave_up_after: Option<f64>,
    /// The median of the real holds, in milliseconds.
    pub(super) hold_ms: f64,
}

/// Runs the probe on a new lock.
pub(super) fn run<L: Lock>(probe: &Probe) -> Waited {
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
                // Not all together: that would leave a gap between the holds.
                thread::sleep(HOLD * holder as u32 / HOLDERS as u32);
                while !gate.is_over() {
                    mine.push(lock.pass(&mut local, way.held(holder), || {
                        let start = Instant::now();
                        thread::sleep(HOLD);
                        start.elapsed()
                    }));
                }
                held(holds.lock()).extend(mine);
            });
        }
        let lock = &*lock;
        let gate = &gate;
        gate.pass();
        scope.spawn(move || {
            let mut local = L::local();
            let mut random = Random::new(way.requested());
            for _ in 0..requests {
                // Any moment of a hold is equally likely.
                thread::sleep(HOLD.mul_f64(2.0 + 2.0 * random.fraction()));
                let asked = Instant::now();
                let waited = lock.pass(&mut local, way.requested(), || asked.elapsed());
                // This request entered only because the holders stopped.
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
    let holds = held(holds.into_inner());
    summary(&waits, &holds, gave_up_after)
}

fn summary(waits: &[Duration], holds: &[Duration], gave_up_after: Option<f64>) -> Waited {
    let seconds = |sample: &[Duration]| sorted(sample.iter().map(Duration::as_secs_f64));
    let (waits, holds) = (seconds(waits), seconds(holds));
    // Without a hold, the lock failed before the first.
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
    use crate::comparison::lock::Kind;
    use crate::comparison::peers::{CountingByHand, FairByHand, ParkingLotMutexFair};

    #[test]
    fn waits_are_in_holds() {
        let ms = Duration::from_millis;
        let waited = summary(&[ms(2), ms(9), ms(4)], &[ms(2), ms(2), ms(50)], None);
        assert_eq!((waited.served, waited.median, waited.max), (3, Some(2.0), Some(4.5)));
        assert_eq!(summary(&[], &[], Some(1.5)).median, None);
    }

    #[test]
    fn a_fair_lock_serves_every_request() {
        let probe =
            Probe { way: Roles::OneAmongZeros, requests: 3, patience: Duration::from_secs(20) };
        let waited = run::<FairByHand>(&probe);
        assert_eq!((waited.served, waited.gave_up_after), (3, None));
        let waited = run::<ParkingLotMutexFair>(&Probe { way: Roles::AmongOwn, ..probe });
        assert_eq!((waited.served, waited.gave_up_after), (3, None));
    }

    /// Admits no other session while there are holders or waiters of session 0.
    struct Starving(CountingByHand, std::sync::atomic::AtomicUsize);

    impl Lock for Starving {
        const NAME: &'static str = "starving";
        const KIND: Kind = Kind::Group;
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
    fn a_request_that_starves_is_reported() {
        let patience = Duration::from_millis(100);
        let waited = run::<Starving>(&Probe { way: Roles::OneAmongZeros, requests: 3, patience });
        assert_eq!((waited.served, waited.gave_up_after), (0, Some(0.1)));
    }
}
