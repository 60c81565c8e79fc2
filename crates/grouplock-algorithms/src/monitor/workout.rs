//! Runs a lock on real threads under the monitors.

use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use super::{
    Concurrency, Event, Exclusion, Fcfs, Journal, LeftBehind, Property, Violation, Watched,
};
use crate::claims::Claims;
use crate::raw::{RawGroup, RawMutex, WithdrawGroup, WithdrawMutex};
use crate::{Group, Mutual};

/// A seeded load on a lock. Each thread makes passages for random sessions, and stays inside and
/// outside for random times. Most stays are short. A few are long, because long stays let others
/// overtake a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workout {
    /// How many threads, at most [`MOST_PROCESSES`](super::MOST_PROCESSES).
    pub threads: usize,
    /// How many sessions to draw from. A mutex ignores this.
    pub sessions: u64,
    /// How many passages each thread makes.
    pub passages: usize,
    /// After how many passages a thread leaves the lock and joins it again; zero for never.
    pub rejoin_every: usize,
    /// The seed of the draws.
    pub seed: u64,
    /// After how long without an entry the waiters count as stuck.
    pub patience: Duration,
}

impl Default for Workout {
    fn default() -> Self {
        Workout {
            threads: 2,
            sessions: 2,
            passages: 1000,
            rejoin_every: 0,
            seed: 1,
            patience: Duration::from_secs(60),
        }
    }
}

/// The results of a [`Workout`] without a violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Passages in all.
    pub entries: usize,
    /// The largest number of processes that were inside at once.
    pub most_inside: usize,
    /// How often the session changed.
    pub switches: usize,
    /// How many requests were withdrawn.
    pub given_up: usize,
    /// How long it took.
    pub elapsed: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { entries, most_inside, switches, given_up, elapsed } = self;
        write!(
            f,
            "{entries} entries, at most {most_inside} inside, {switches} changes of session, {given_up} given up, {elapsed:.1?}"
        )
    }
}

/// A lock with its processes, as the workout sees it.
trait Subject: Send + Sync + 'static {
    /// Makes `passages` passages as one process that joins first and leaves afterwards.
    fn passages(&self, passages: usize, passage: &mut Passage<'_>) -> Result<(), String>;
}

/// What a thread does in and around each passage.
struct Passage<'t> {
    process: usize,
    sessions: u64,
    random: &'t mut fastrand::Rng,
    journal: &'t mut Journal,
    entries: &'t AtomicUsize,
    given_up: &'t AtomicUsize,
}

impl Passage<'_> {
    /// Draws a session and requests it.
    fn request(&mut self) -> u64 {
        self.linger();
        let session = self.random.u64(1..=self.sessions);
        self.journal.note(Event::Request(session));
        session
    }

    /// As [`Passage::request`], if every process has a session of its own.
    fn request_alone(&mut self) {
        self.linger();
        self.journal.note(Event::Request(self.process as u64 + 1));
    }

    /// Makes the passage of a process that is inside until `guard` is dropped. Without a guard, the
    /// request was withdrawn.
    fn make<G>(&mut self, guard: Option<G>) {
        if guard.is_none() {
            self.journal.withdraw();
            // Relaxed: only a sign of life.
            self.given_up.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.journal.note_entry(Watched::last_doorway_end());
        // Relaxed: only a sign of life.
        self.entries.fetch_add(1, Ordering::Relaxed);
        self.linger();
        self.journal.note(Event::Leave);
        drop(guard);
        self.journal.note(Event::Done);
    }

    /// Whether to withdraw the present request, each time that it has to wait. Every other request
    /// is withdrawn, after a random number of calls.
    fn patience(&mut self) -> impl FnMut() -> bool + use<> {
        let patience = 1 << self.random.u32(0..8);
        let patience = self.random.bool().then_some(patience - 1);
        let mut looks = 0;
        move || {
            looks += 1;
            patience.is_some_and(|patience: u32| looks > patience)
        }
    }

    /// Waits for a random time: often none, rarely a long one.
    fn linger(&mut self) {
        match self.random.u32(0..256) {
            0..=127 => {}
            128..=223 => (0..self.random.u32(0..200)).for_each(|_| core::hint::spin_loop()),
            // Not `yield_now`: beside a busy process it would take a whole time slice.
            224..=253 => thread::sleep(Duration::from_nanos(1)),
            254 => thread::sleep(Duration::from_micros(self.random.u64(1..50))),
            _ => thread::sleep(Duration::from_micros(self.random.u64(50..500))),
        }
    }
}

impl<L: RawGroup<Watched> + 'static> Subject for Group<L, Watched> {
    fn passages(&self, passages: usize, passage: &mut Passage<'_>) -> Result<(), String> {
        let mut process = self.process().map_err(|e| e.to_string())?;
        for _ in 0..passages {
            let session = passage.request();
            let inside = process.enter(session).map_err(|e| e.to_string())?;
            passage.make(Some(inside));
        }
        Ok(())
    }
}

/// A group lock half of whose requests are withdrawn if they have to wait.
struct Withdrawing<L>(Group<L, Watched>);

impl<L: WithdrawGroup<Watched> + 'static> Subject for Withdrawing<L> {
    fn passages(&self, passages: usize, passage: &mut Passage<'_>) -> Result<(), String> {
        let mut process = self.0.process().map_err(|e| e.to_string())?;
        for _ in 0..passages {
            let session = passage.request();
            let give_up = passage.patience();
            let inside = process.enter_unless(session, give_up).map_err(|e| e.to_string())?;
            passage.make(inside);
        }
        Ok(())
    }
}

impl<L: RawMutex<Watched> + 'static> Subject for Mutual<L, Watched> {
    fn passages(&self, passages: usize, passage: &mut Passage<'_>) -> Result<(), String> {
        let mut process = self.process().map_err(|e| e.to_string())?;
        for _ in 0..passages {
            passage.request_alone();
            let held = process.acquire().map_err(|e| e.to_string())?;
            passage.make(Some(held));
        }
        Ok(())
    }
}

/// A mutual exclusion lock half of whose requests are withdrawn if they have to wait.
struct WithdrawingMutex<L>(Mutual<L, Watched>);

impl<L: WithdrawMutex<Watched> + 'static> Subject for WithdrawingMutex<L> {
    fn passages(&self, passages: usize, passage: &mut Passage<'_>) -> Result<(), String> {
        let mut process = self.0.process().map_err(|e| e.to_string())?;
        for _ in 0..passages {
            passage.request_alone();
            let give_up = passage.patience();
            let held = process.acquire_unless(give_up).map_err(|e| e.to_string())?;
            passage.make(held);
        }
        Ok(())
    }
}

impl Workout {
    /// Runs a group lock.
    ///
    /// # Errors
    /// The first violated property: mutual exclusion, first-come-first-served if it is claimed, or
    /// that every process finishes.
    pub fn group<L: RawGroup<Watched> + 'static>(&self) -> Result<Report, Violation> {
        let lock = Group::<L, Watched>::new(self.threads).map_err(unable)?;
        self.run(&L::claims(), &(Arc::new(lock) as Arc<dyn Subject>))
    }

    /// Runs a group lock, and withdraws half of the requests after random times if they have to
    /// wait.
    ///
    /// # Errors
    /// As [`Workout::group`].
    pub fn withdrawing<L: WithdrawGroup<Watched> + 'static>(&self) -> Result<Report, Violation> {
        let lock = Withdrawing(Group::<L, Watched>::new(self.threads).map_err(unable)?);
        self.run(&L::claims(), &(Arc::new(lock) as Arc<dyn Subject>))
    }

    /// Runs a mutual exclusion lock, and withdraws half of the requests after random times if they
    /// have to wait.
    ///
    /// # Errors
    /// As [`Workout::group`].
    pub fn withdrawing_mutex<L: WithdrawMutex<Watched> + 'static>(
        &self,
    ) -> Result<Report, Violation> {
        let lock = WithdrawingMutex(Mutual::<L, Watched>::new(self.threads).map_err(unable)?);
        self.run(&L::claims(), &(Arc::new(lock) as Arc<dyn Subject>))
    }

    /// Runs a mutual exclusion lock.
    ///
    /// # Errors
    /// As [`Workout::group`].
    pub fn mutex<L: RawMutex<Watched> + 'static>(&self) -> Result<Report, Violation> {
        let lock = Mutual::<L, Watched>::new(self.threads).map_err(unable)?;
        self.run(&L::claims(), &(Arc::new(lock) as Arc<dyn Subject>))
    }

    fn run(&self, claims: &Claims, lock: &Arc<dyn Subject>) -> Result<Report, Violation> {
        let start = Instant::now();
        let [entries, given_up] = [0, 0].map(|zero| Arc::new(AtomicUsize::new(zero)));
        let finished = Arc::new(Mutex::new(Vec::new()));
        // Not scoped: if a thread never finishes, the caller still gets the result.
        for process in 0..self.threads {
            let (lock, entries, given_up) =
                (Arc::clone(lock), Arc::clone(&entries), Arc::clone(&given_up));
            let (finished, workout) = (Arc::clone(&finished), *self);
            thread::spawn(move || {
                let outcome = workout.thread(process, &*lock, &entries, &given_up);
                finished.lock().unwrap_or_else(PoisonError::into_inner).push((process, outcome));
            });
        }
        self.watch([&entries, &given_up], &finished)?;

        let mut finished =
            core::mem::take(&mut *finished.lock().unwrap_or_else(PoisonError::into_inner));
        finished.sort_unstable_by_key(|(process, _)| *process);
        let outcomes = finished.into_iter().map(|(_, journal)| journal.map_err(unable));
        let journals = outcomes.collect::<Result<Vec<_>, _>>()?;
        let mut concurrency = Concurrency::default();
        let mut monitors: Vec<Box<dyn Property>> =
            vec![Box::<Exclusion>::default(), Box::<LeftBehind>::default()];
        if claims.fcfs.is_claimed() {
            monitors.push(Box::<Fcfs>::default());
        }
        for monitor in &mut monitors {
            Journal::judge(&journals, &mut **monitor)?;
        }
        Journal::judge(&journals, &mut concurrency)?;
        let Concurrency { entries, most_inside, switches, .. } = concurrency;
        let given_up = given_up.load(Ordering::Relaxed);
        Ok(Report { entries, most_inside, switches, given_up, elapsed: start.elapsed() })
    }

    /// What one thread does.
    fn thread(
        &self,
        process: usize,
        lock: &dyn Subject,
        entries: &AtomicUsize,
        given_up: &AtomicUsize,
    ) -> Result<Journal, String> {
        let mut journal = Journal::default();
        let mut random = fastrand::Rng::with_seed(self.seed ^ (process as u64) << 32);
        let (sessions, journal_of, random_of) = (self.sessions, &mut journal, &mut random);
        let mut passage = Passage {
            process,
            sessions,
            random: random_of,
            journal: journal_of,
            entries,
            given_up,
        };
        let mut left = self.passages;
        while left > 0 {
            let now = if self.rejoin_every == 0 { left } else { left.min(self.rejoin_every) };
            lock.passages(now, &mut passage)?;
            left -= now;
        }
        Ok(journal)
    }

    /// Waits for all threads, or until no process has entered for too long.
    fn watch<T>(
        &self,
        signs_of_life: [&AtomicUsize; 2],
        finished: &Mutex<Vec<T>>,
    ) -> Result<(), Violation> {
        let mut last = (0, Instant::now());
        loop {
            let done = finished.lock().unwrap_or_else(PoisonError::into_inner).len();
            if done == self.threads {
                return Ok(());
            }
            let signs = signs_of_life.iter().map(|sign| sign.load(Ordering::Relaxed));
            let seen = signs.sum::<usize>() + done;
            if seen != last.0 {
                last = (seen, Instant::now());
            } else if last.1.elapsed() > self.patience {
                let what = format!(
                    "{} of {} threads have not finished, and nobody has entered for {:?}",
                    self.threads - done,
                    self.threads,
                    self.patience
                );
                return Err(Violation { property: "nobody left behind", what });
            }
            thread::sleep(Duration::from_micros(200));
        }
    }
}

/// The workout could not be made.
fn unable(reason: impl fmt::Display) -> Violation {
    Violation { property: "a lock to work out", what: reason.to_string() }
}
