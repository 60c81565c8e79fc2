//! A cluster, a room on it, and workers that enter it all the time.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal::SIGCONT;

use super::clock::{self, Nanos};
use super::crew::Crew;
use super::record::{Reception, Record};
use super::worker::Plan;
use crate::cluster::Cluster;

/// How long a lease lasts, in seconds.
pub(crate) const TTL: u64 = 2;

/// After a fault, every worker must enter again within this time. The lease of the old holder has
/// to expire. The cluster has to elect a leader, which prolongs all leases. Connections have to be
/// made, and the machine may be slow.
pub(crate) const BOUND: Duration = Duration::from_secs(15);

/// The cluster, the workers and the record of one run.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) record: Arc<Record>,
    pub(crate) crews: Vec<Crew>,
    plan: Plan,
    threads: Vec<JoinHandle<()>>,
    next: usize,
    recoveries: Vec<Recovery>,
    reception: Reception,
    _socket: Socket,
}

/// How long the recovery from a fault took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovery {
    /// The time until a worker opened a new phase.
    pub(crate) phase: Duration,
    /// The time until every worker had entered again.
    pub(crate) everybody: Duration,
}

/// The results of a run.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) recoveries: Vec<Recovery>,
    pub(crate) entries: usize,
    pub(crate) phases: usize,
    pub(crate) lost: usize,
    pub(crate) taken: usize,
    pub(crate) uses: u64,
    pub(crate) refused: usize,
    pub(crate) overlaps: usize,
}

/// The socket of the record. The file is removed with the value.
struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

impl Stage {
    /// Starts workers in this process and in two others.
    pub(crate) fn new(cluster: Cluster) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("grouplock-faults-{}-{number}", std::process::id());
        let socket = Socket(std::env::temp_dir().join(name));
        let record = Arc::new(Record::default());
        let reception = Reception::open(&record, &socket.0);
        let place = cluster.place(TTL);
        let plan = Plan { place, socket: socket.0.clone(), workers: vec![0, 1], sessions: 3 };
        let threads = plan.start(Some(&record));
        let (crews, recoveries) = (Vec::new(), Vec::new());
        let next = 2;
        let mut stage = Stage {
            cluster,
            record,
            crews,
            plan,
            threads,
            next,
            recoveries,
            reception,
            _socket: socket,
        };
        stage.add_crew();
        stage.add_crew();
        stage.await_entries(0, &stage.workers());
        stage
    }

    /// Starts another process with two workers. Their numbers are new, so that no worker is
    /// confused with one that was killed.
    pub(crate) fn add_crew(&mut self) {
        let workers = vec![self.next, self.next + 1];
        self.next += 2;
        self.crews.push(Crew::start(&Plan { workers, ..self.plan.clone() }));
    }

    /// All workers that are alive.
    pub(crate) fn workers(&self) -> BTreeSet<usize> {
        let others = self.crews.iter().flat_map(|crew| &crew.workers);
        self.plan.workers.iter().chain(others).copied().collect()
    }

    /// Waits until each of these workers has entered since that time.
    pub(crate) fn await_entries(&self, since: Nanos, who: &BTreeSet<usize>) {
        let deadline = Instant::now() + BOUND;
        while !self.record.entered_since(since).is_superset(who) {
            assert!(Instant::now() < deadline, "not all enter: {}", self.describe());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until a worker has opened a new phase after `fault`, and until all workers of `who`
    /// have entered again.
    pub(crate) fn await_recovery(&mut self, fault: Nanos, who: &BTreeSet<usize>) {
        let deadline = Instant::now() + BOUND;
        loop {
            if let Some(recovery) = self.recovery(fault, who) {
                self.recoveries.push(recovery);
                return;
            }
            assert!(Instant::now() < deadline, "no recovery from the fault: {}", self.describe());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn recovery(&self, fault: Nanos, who: &BTreeSet<usize>) -> Option<Recovery> {
        let holdings = self.record.holdings();
        let before = holdings.iter().filter(|one| one.from <= fault);
        let epoch = before.map(|one| one.epoch).max().unwrap_or(0);
        let after = |from: Nanos| Duration::from_nanos(from - fault);
        let mut later: Vec<_> = holdings.iter().filter(|one| one.from > fault).collect();
        later.sort_by_key(|one| one.from);
        let phase = later.iter().find(|one| one.epoch > epoch).map(|one| after(one.from))?;
        let mut missing = who.clone();
        later.iter().find_map(|one| {
            missing.remove(&one.worker);
            missing.is_empty().then(|| Recovery { phase, everybody: after(one.from) })
        })
    }

    /// Waits until a worker of one of the crews is inside, or all workers of a crew wait. Then
    /// stops that crew. Returns the crew and its holdings.
    pub(crate) fn stop_crew(&self, inside: bool) -> (usize, Vec<usize>) {
        let deadline = Instant::now() + BOUND;
        loop {
            for (number, crew) in self.crews.iter().enumerate() {
                let fits = || self.record.inside(&crew.workers).is_empty() != inside;
                if !fits() {
                    continue;
                }
                crew.stop(deadline);
                self.reception.hear_all(deadline);
                if fits() {
                    return (number, self.record.inside(&crew.workers));
                }
                crew.signal(SIGCONT);
            }
            assert!(Instant::now() < deadline, "there is never such a crew: {}", self.describe());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn describe(&self) -> String {
        let now = clock::now();
        let holdings = self.record.holdings();
        let last = |worker: &usize| {
            let last = holdings.iter().rev().find(|one| one.worker == *worker);
            last.map(|one| {
                (*worker, Duration::from_nanos(now.saturating_sub(one.from)), one.to.is_none())
            })
        };
        let last: Vec<_> = self.workers().iter().map(last).collect();
        let room = self.plan.room().snapshot();
        let failures = self.record.failures();
        format!(
            "{} entries; (worker, since its last entry, inside): {last:?}; failures: {failures:?}; \
             room: {room:?}",
            holdings.len()
        )
    }

    /// Ends the work. Checks that nothing contradicts the promises, that the room is empty, and
    /// that it can be entered.
    pub(crate) fn finish(mut self) -> Outcome {
        self.record.end();
        let deadline = Instant::now() + BOUND;
        for thread in self.threads.drain(..) {
            thread.join().expect("a worker does not panic");
        }
        let ends: Vec<_> = self.crews.iter_mut().map(|crew| crew.join(deadline)).collect();
        assert!(ends.iter().all(Result::is_ok), "{ends:?}: {}", self.describe());
        let room = self.plan.room();
        let left = loop {
            let snapshot = room.snapshot().expect("the room can be looked at");
            if snapshot.holders() + snapshot.waiters() == 0 || Instant::now() > deadline {
                break snapshot;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(left.holders() + left.waiters(), 0, "the room is not empty: {left:?}");
        let last = room.try_enter("the last").expect("an empty room can be entered");
        let holdings = self.record.holdings();
        let phases: BTreeSet<u64> = holdings.iter().map(|one| one.epoch).collect();
        assert!(phases.last().is_none_or(|largest| *largest < last.epoch()), "{last:?}");
        last.leave().expect("the room can be left");
        let contradictions = self.record.contradictions();
        if !contradictions.is_empty() {
            // These holdings show whether the servers took an entry away, or our code is wrong.
            let ended = self.cluster.entries_ended_since(1);
            let taken: Vec<_> = holdings.iter().filter(|one| ended.contains(&one.id)).collect();
            let failures = self.record.failures();
            let found = contradictions.join("\n");
            panic!(
                "{found}\nfailures: {failures:?}\nentries that went with their leases: {taken:#?}"
            );
        }
        let (uses, refused) = self.record.uses();
        Outcome {
            recoveries: std::mem::take(&mut self.recoveries),
            entries: holdings.len(),
            phases: phases.len(),
            lost: holdings.iter().filter(|one| one.lost).count(),
            taken: self.record.taken(),
            uses,
            refused,
            overlaps: self.record.overlaps(),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // This is also needed if a test fails: else the workers of this process would disturb the
        // other tests.
        self.record.end();
    }
}
