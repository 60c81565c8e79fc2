//! Rounds that count entries and do nothing else.

use core::hint::black_box;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use super::lock::Lock;
use super::workload::{Agenda, Workload};
use crate::machine;
use crate::statistics::jain;

/// One round of a workload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) workload: Workload,
    pub(super) duration: Duration,
    /// The agendas depend on it.
    pub(super) number: u64,
}

/// What a round has counted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counted {
    /// Passages by thread.
    pub(super) entries: Vec<u64>,
    /// How many of all passages were for session 0.
    pub(super) of_zero: u64,
    pub(super) elapsed: Duration,
}

impl Counted {
    /// Entries per second, of all threads together: into session 0, and into others.
    pub(super) fn rates(&self) -> [f64; 2] {
        let others = self.entries.iter().sum::<u64>() - self.of_zero;
        [self.of_zero, others].map(|entries| entries as f64 / self.elapsed.as_secs_f64())
    }

    /// How equal the shares of the threads are. None if there was no entry.
    pub(super) fn jain(&self) -> Option<f64> {
        jain(&self.entries)
    }
}

/// The start and the end of a round, for its threads.
pub(super) struct Gate {
    barrier: Barrier,
    start: OnceLock<Instant>,
    // Read after every passage, so nothing else is in its cache line.
    over: CachePadded<AtomicBool>,
}

impl Gate {
    /// For `threads` threads, and the one that runs the round.
    pub(super) fn new(threads: usize) -> Self {
        let over = CachePadded::new(AtomicBool::new(false));
        Gate { barrier: Barrier::new(threads + 1), start: OnceLock::new(), over }
    }

    /// Waits for all. The round starts when the first thread continues. That thread notes the time,
    /// as the one that runs the round may get a core much later.
    pub(super) fn pass(&self) -> Instant {
        self.barrier.wait();
        *self.start.get_or_init(Instant::now)
    }

    #[inline(always)]
    pub(super) fn is_over(&self) -> bool {
        // Relaxed: no other data depends on it.
        self.over.load(Ordering::Relaxed)
    }

    /// Ends the round `duration` after its start. Returns how long it was.
    pub(super) fn run_for(&self, duration: Duration) -> Duration {
        let start = self.pass();
        thread::sleep(duration.saturating_sub(start.elapsed()));
        self.end();
        start.elapsed()
    }

    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// The result of a thread. If it panicked, so does the round.
pub(super) fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Runs the threads of a round on a new lock. Returns their results, and how long the round was.
pub(super) fn on_threads<L: Lock, T: Send>(
    round: &Round,
    passages: impl Fn(&L, &mut L::Local, &mut Agenda, &Gate, Instant) -> T + Sync,
) -> (Vec<T>, Duration) {
    let Round { workload, duration, number } = *round;
    // Nothing else is in the lock's cache lines.
    let lock = CachePadded::new(L::new());
    let gate = Gate::new(workload.threads);
    thread::scope(|scope| {
        let (lock, gate, passages) = (&*lock, &gate, &passages);
        let thread = |thread| {
            scope.spawn(move || {
                let mut agenda = workload.agenda(thread, number);
                let mut local = L::local();
                // The lock may set something up in the first passage of a thread.
                lock.pass(&mut local, agenda.draw(), || ());
                let start = gate.pass();
                passages(lock, &mut local, &mut agenda, gate, start)
            })
        };
        let threads: Vec<_> = (0..workload.threads).map(thread).collect();
        if workload.busy {
            for _ in 0..machine::cores().unwrap_or(1) {
                scope.spawn(|| {
                    while !gate.is_over() {
                        black_box(());
                    }
                });
            }
        }
        let elapsed = gate.run_for(duration);
        (threads.into_iter().map(joined).collect(), elapsed)
    })
}

/// Runs a round on a new lock, and counts.
pub(super) fn run<L: Lock>(round: &Round) -> Counted {
    let (inside, outside) = (round.workload.inside.work(), round.workload.outside.work());
    let (counts, elapsed) = on_threads::<L, _>(round, |lock, local, agenda, gate, _| {
        let (mut entries, mut of_zero) = (0, 0);
        loop {
            let session = agenda.draw();
            lock.pass(local, session, || inside.perform());
            // An entry after the end does not count.
            if gate.is_over() {
                return (entries, of_zero);
            }
            entries += 1;
            of_zero += u64::from(session == 0);
            outside.perform();
        }
    });
    let (entries, of_zero): (Vec<u64>, Vec<u64>) = counts.into_iter().unzip();
    Counted { entries, of_zero: of_zero.into_iter().sum(), elapsed }
}
