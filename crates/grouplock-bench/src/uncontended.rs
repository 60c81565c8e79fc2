//! What an uncontended passage through each algorithm costs.

use core::hint::black_box;
use std::io::{self, Write};

use clap::{Args, value_parser};
use grouplock_algorithms::claims::Limit;
use grouplock_algorithms::dvir_taubenfeld_1_swap::DvirTaubenfeld1Swap;
use grouplock_algorithms::for_each_algorithm;
use grouplock_algorithms::handover::Handover;
use grouplock_algorithms::memory::Native as M;
use grouplock_algorithms::raw::{RawGroup, RawMutex};
use grouplock_algorithms::{CapacityError, Group, Mutual, Session};

use crate::comparison::lock::Lock;
use crate::comparison::peers::{StdMutex, StdRwLock};
use crate::handover_by_hand::HandoverByHand;
use crate::report::{NONE, Outcome, UnknownName, or_none, row, table};
use crate::rounds::{Subject, Times, critical_section, keep};
use crate::{instructions, machine, rounds};

/// Measures what an uncontended passage through each lock costs.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How many turns every lock has.
    #[arg(long, value_name = "NUMBER", default_value_t = 101, value_parser = value_parser!(u32).range(1..))]
    rounds: u32,
    /// How many passages a turn is.
    #[arg(long, value_name = "NUMBER", default_value_t = 20_000, value_parser = value_parser!(u64).range(1..))]
    passages: u64,
    /// Also count instructions per passage. This needs valgrind.
    #[arg(long)]
    instructions: bool,
    /// Make passages through one lock and measure nothing, for use under callgrind.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["rounds", "instructions"])]
    only: Option<String>,
    /// Print the names for `--only`.
    #[arg(long, exclusive = true)]
    list: bool,
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome<String> {
        let Arguments { rounds, passages, .. } = self;
        let mut locks = all()?;
        if self.list {
            for lock in locks {
                writeln!(io::stdout(), "{}", lock.subject.name)?;
            }
            return Ok(String::new());
        }
        if let Some(name) = self.only {
            let lock = locks.iter_mut().find(|lock| lock.subject.name == name);
            let unknown =
                || UnknownName(format!("no lock is called `{name}`; --list prints the names"));
            lock.ok_or_else(unknown)?.subject.run(passages);
            return Ok(String::new());
        }
        // First, so that no time is lost if it fails.
        let names = locks.iter().map(|lock| &*lock.subject.name);
        let count = || instructions::count_all("uncontended", names, |_| ());
        let counts = self.instructions.then(count).transpose()?;
        let times = rounds::run(rounds, passages, locks.iter_mut().map(|lock| &mut lock.subject));
        let page = Page { rounds, passages, locks, times, counts };
        Ok(page.text())
    }
}

/// The loop around nothing.
const NOTHING: &str = "nothing";
/// The peer of every ratio.
const STD_MUTEX: &str = "std-mutex";
/// Handover as users have it, and without the handle; then [`HandoverByHand`], in the same two
/// ways.
const HANDOVER: &str = "handover";
const HANDOVER_RAW: &str = "handover-raw";
const BY_HAND: &str = "handover-by-hand";
const BY_HAND_RAW: &str = "handover-by-hand-raw";

/// The session of every process.
const SESSION: u64 = 7;
/// The same for the raw trait.
const RAW_SESSION: Session = match Session::new(SESSION) {
    Ok(session) => session,
    Err(_) => panic!("the session is zero"),
};
/// Most locks are made for so many processes.
const FEW: usize = 2;
/// Locks of a fixed size are also made for so many: their cost grows with it.
const MANY: usize = 32;

/// A lock with one process.
struct Measured {
    subject: Subject,
    /// What a passage goes through.
    through: &'static str,
    /// The number of processes, for a lock of a fixed size.
    processes: Option<usize>,
}

impl Measured {
    fn new(
        name: impl Into<String>,
        through: &'static str,
        passage: impl FnMut() + 'static,
    ) -> Self {
        Measured { subject: Subject::new(name, passage), through, processes: None }
    }

    /// An algorithm. If it has a fixed size, that is part of its name.
    fn algorithm(
        (name, limit): (&str, Limit),
        processes: usize,
        through: &'static str,
        passage: impl FnMut() + 'static,
    ) -> Self {
        let fixed = matches!(limit, Limit::Fixed(_)).then_some(processes);
        let name = fixed.map_or_else(|| name.to_owned(), |size| format!("{name}-{size}"));
        Measured { processes: fixed, ..Measured::new(name, through, passage) }
    }

    /// A mutex through the safe handle.
    fn mutual<L: RawMutex<M> + 'static>(processes: usize) -> Result<Self, CapacityError> {
        let mut process = keep(Mutual::<L>::new(processes)?).process()?;
        let claims = L::claims();
        Ok(Self::algorithm((claims.name, claims.processes), processes, "handle", move || {
            let held = black_box(&mut process).acquire().expect("nothing was leaked");
            critical_section();
            drop(held);
        }))
    }

    /// A group lock through the safe handle.
    fn group<L: RawGroup<M> + 'static>(processes: usize) -> Result<Self, CapacityError> {
        let mut process = keep(Group::<L>::new(processes)?).process()?;
        let claims = L::claims();
        Ok(Self::algorithm((claims.name, claims.processes), processes, "handle", move || {
            let inside =
                black_box(&mut process).enter(black_box(SESSION)).expect("nothing was leaked");
            critical_section();
            drop(inside);
        }))
    }

    /// A group lock without the handle. It must have no largest session.
    fn raw<L: RawGroup<M> + 'static>(processes: usize) -> Result<Self, CapacityError> {
        let lock = keep(L::new(processes)?);
        let mut process = lock.join()?;
        let (name, claims) = (format!("{}-raw", L::claims().name), L::claims());
        Ok(Self::algorithm((&name, claims.processes), processes, "raw", move || {
            let process = black_box(&mut process);
            // SAFETY: the process joined this lock, and it is idle at the start of each iteration.
            unsafe { lock.enter(process, black_box(RAW_SESSION)) };
            critical_section();
            // SAFETY: it entered above.
            unsafe { lock.exit(process) };
        }))
    }

    /// A lock of the standard library, as the comparison uses it.
    fn standard<L: Lock<Local = ()>>(name: &str, session: u64) -> Self {
        let lock = keep(L::new());
        Measured::new(name, "std", move || {
            black_box(lock).pass(&mut (), black_box(session), critical_section);
        })
    }
}

/// All locks, the forms of handover side by side.
fn all() -> Result<Vec<Measured>, CapacityError> {
    /// The mutex inside the locks that are built over one.
    type L = DvirTaubenfeld1Swap<M>;
    let mut all = vec![
        Measured::new(NOTHING, NONE, critical_section),
        Measured::standard::<StdMutex>(STD_MUTEX, 0),
        Measured::standard::<StdRwLock>("std-rwlock-read", 0),
        Measured::standard::<StdRwLock>("std-rwlock-write", 1),
        Measured::group::<HandoverByHand>(FEW)?,
        Measured::raw::<Handover>(FEW)?,
        Measured::raw::<HandoverByHand>(FEW)?,
    ];
    macro_rules! add {
        (($kind:ident) $($ident:ident $name:literal $lock:ty;)*) => {$(
            all.push(Measured::$kind::<$lock>(FEW)?);
            if matches!(<$lock>::claims().processes, Limit::Fixed(_)) {
                all.push(Measured::$kind::<$lock>(MANY)?);
            }
        )*};
    }
    for_each_algorithm!(over => add!(group));
    for_each_algorithm!(mutex => add!(mutual));
    for_each_algorithm!(withdrawing_mutex => add!(mutual));
    for_each_algorithm!(group => add!(group));
    for_each_algorithm!(rounds => add!(group));
    for_each_algorithm!(specimen => add!(group));
    Ok(all)
}

/// The results of one run. Every figure in the sentences of the page comes from it.
struct Page {
    rounds: u32,
    passages: u64,
    locks: Vec<Measured>,
    times: Times,
    counts: Option<Vec<f64>>,
}

impl Page {
    fn text(&self) -> String {
        let Page { rounds, passages, .. } = self;
        format!(
            "\
# What an uncontended passage costs

*For people who study locks.*

One process enters a lock and leaves it. No other process uses the lock. This is what a lock costs when it is
not needed, which for most locks is most of the time. It says nothing about waiting.

## How it was measured

* On {machine}. The figures are those of a single run.
* {rounds} rounds. In each, every lock has one turn of {passages} passages, and each round begins with
  another lock, so that a disturbance hits all of them alike. Each lock had a turn to warm up.
* A figure is the median over the rounds, with the quartiles in parentheses. A ratio is
  taken within each round first. Ratios carry over to other machines better than nanoseconds do.
* Locks made for a fixed number of processes are measured for {FEW} and for {MANY} of them: their cost grows with it.
* `{NOTHING}` is the loop itself, which is part of every figure.
* Callgrind counts instructions, in separate runs: the difference between two runs of different length,
  divided by the difference in passages. A count has no noise, but an atomic instruction counts as one
  although it takes as long as many others.

To repeat it: `cargo run --release -p grouplock-bench -- uncontended --instructions --out FILE`

## Figures

{figures}
## What to read from them

**What the memory trait costs.** `{HANDOVER}` is written once for every kind of memory; `{BY_HAND}` is the same
algorithm directly on the atomics of `core`, as one would write it for this machine only.

{memory_trait}
{verdict}

**What the handle costs.** The handle checks the session, and that the process has left its last
passage. With it, `{HANDOVER}` takes {handle} times as long as without: {handle_count} instructions instead of {raw_count}.
Part of the difference is no check: the compiler chooses what it inlines into a loop and what it calls.

**What the order costs.** `{HANDOVER}` takes {order} times as long as a `std::sync::Mutex`. Alone, it executes five
atomic read-modify-write instructions, two to enter and three to leave (two of these for its exit lock), where
the mutex executes two. They buy what the mutex does not have: sessions, first come first served, and waiting
on a word of one's own.

**What room for more processes costs.** A lock of a fixed size looks at every slot, used or not. Its passage
when made for {MANY} processes, compared to {FEW}:

{growth}",
            machine = machine::description(),
            figures = self.figures(),
            memory_trait = self.memory_trait(),
            verdict = self.verdict(),
            handle = self.ratio(HANDOVER, HANDOVER_RAW),
            handle_count = self.count_of(HANDOVER),
            raw_count = self.count_of(HANDOVER_RAW),
            order = self.ratio(HANDOVER, STD_MUTEX),
            growth = self.growth(),
        )
    }

    fn figures(&self) -> String {
        let rows = self.locks.iter().enumerate().map(|(at, lock)| {
            let name = &lock.subject.name;
            let processes = or_none(lock.processes, |number| number.to_string());
            let ns = format!("{:.1}", self.times.nanoseconds(at));
            row![
                name,
                lock.through,
                processes,
                ns,
                self.ratio(name, STD_MUTEX),
                self.count_of(name)
            ]
        });
        let ratio = format!("× `{STD_MUTEX}`");
        table(&["lock", "through", "made for", "ns", &ratio, "instructions"], rows)
    }

    fn memory_trait(&self) -> String {
        let ways = [("raw", HANDOVER_RAW, BY_HAND_RAW), ("handle", HANDOVER, BY_HAND)];
        let rows = ways.map(|(through, generic, by_hand)| {
            let ratio = self.ratio(generic, by_hand);
            row![through, ratio, self.count_of(generic), self.count_of(by_hand)]
        });
        let heads =
            ["through", "generic ÷ by hand", "instructions, generic", "instructions, by hand"];
        table(&heads, rows)
    }

    fn verdict(&self) -> &'static str {
        let raw = self.same_count(HANDOVER_RAW, BY_HAND_RAW);
        match (raw, self.same_count(HANDOVER, BY_HAND)) {
            (Some(true), Some(true)) => {
                "The counts are equal: the compiler removes the trait. The difference between\n\
                 the times is noise, and where things happen to lie in memory."
            }
            (Some(_), Some(_)) => "The counts differ, so the trait is not free here.",
            _ => "Instructions were not counted in this run.",
        }
    }

    fn growth(&self) -> String {
        let large = self.locks.iter().filter(|lock| lock.processes == Some(MANY));
        let rows = large.map(|Measured { subject: Subject { name, .. }, .. }| {
            let lock = name.trim_end_matches(&format!("-{MANY}"));
            let few = format!("{lock}-{FEW}");
            let counts = format!("{} → {}", self.count_of(&few), self.count_of(name));
            row![lock, format_args!("× {}", self.ratio(name, &few)), counts]
        });
        table(&["lock", "time", "instructions"], rows)
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.locks.iter().position(|lock| lock.subject.name == name)
    }

    fn ratio(&self, lock: &str, peer: &str) -> String {
        let pair = self.index(lock).zip(self.index(peer));
        or_none(pair, |(lock, peer)| format!("{:.2}", self.times.ratio(lock, peer)))
    }

    fn count(&self, name: &str) -> Option<f64> {
        self.counts.as_ref()?.get(self.index(name)?).copied()
    }

    fn count_of(&self, name: &str) -> String {
        or_none(self.count(name), |count| format!("{count:.0}"))
    }

    /// Whether two locks execute the same number of instructions, if they were counted. The parser
    /// needs a little more for a longer number, hence the tolerance.
    fn same_count(&self, one: &str, other: &str) -> Option<bool> {
        let (one, other) = self.count(one).zip(self.count(other))?;
        Some((one - other).abs() < 0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lock_has_a_name_of_its_own_and_runs() {
        let mut locks = all().unwrap();
        let names = rounds::tests::run_all(locks.iter_mut().map(|lock| &mut lock.subject));
        for name in [NOTHING, STD_MUTEX, HANDOVER, HANDOVER_RAW, BY_HAND, BY_HAND_RAW] {
            assert!(names.iter().any(|n| n == name), "{name} is missing");
        }
    }

    #[test]
    fn the_page_says_only_what_was_counted() {
        let mut locks = all().unwrap();
        let (rounds, passages) = (1, 2);
        let times = rounds::run(rounds, passages, locks.iter_mut().map(|lock| &mut lock.subject));
        let mut page = Page { rounds, passages, locks, times, counts: None };
        let verdict = |page: &Page| {
            let words = ["were not counted", "counts are equal", "counts differ"];
            words.map(|words| page.text().contains(words))
        };
        assert_eq!(verdict(&page), [true, false, false]);
        page.counts = Some(vec![5.0; page.locks.len()]);
        assert_eq!(verdict(&page), [false, true, false]);
        let by_hand = page.index(BY_HAND).unwrap();
        page.counts.as_mut().unwrap()[by_hand] = 4.0;
        assert_eq!(verdict(&page), [false, false, true]);
    }
}
