//! A hash set with simple operations, because each runs in its own phase. It is compared with the
//! set of the standard library behind its locks.
//!
//! `cargo run --release -p grouplock --example phase_hash_set [THREADS [NUMBERS [BATCH]]]`. The
//! default is one thread per processor (at least 2), 200,000 numbers, and 256 operations each time
//! the lock is taken.

mod set;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::num::NonZeroU64;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Instant;

use grouplock::views::Phased;
use set::{Delete, Full, Insert, Lookup, Name, Table};

/// A measured set. Each call takes the lock once.
trait Set: Sync {
    fn insert(&self, numbers: &[NonZeroU64]);
    fn count(&self, numbers: &[NonZeroU64]) -> usize;
    fn delete(&self, numbers: &[NonZeroU64]);
    fn len(&self) -> usize;
}

type PhaseSet = Phased<Name, Table>;

impl Set for PhaseSet {
    fn insert(&self, numbers: &[NonZeroU64]) {
        loop {
            // A separate statement, so that the guard is dropped before the request to be alone.
            let inserted = self.enter(Insert).view().insert(numbers);
            let Err(Full) = inserted else { return };
            // If another thread was first, this does nothing.
            self.exclusive().reserve(numbers.len());
        }
    }

    fn count(&self, numbers: &[NonZeroU64]) -> usize {
        let guard = self.enter(Lookup);
        let set = guard.view();
        numbers.iter().filter(|&&number| set.contains(number)).count()
    }

    fn delete(&self, numbers: &[NonZeroU64]) {
        self.enter(Delete).view().delete(numbers);
    }

    fn len(&self) -> usize {
        self.enter(Lookup).view().len()
    }
}

/// The same hash as in [`Table`], for a fair comparison.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = set::mix(self.0 ^ number);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

type StdSet = HashSet<NonZeroU64, BuildHasherDefault<Mix>>;

/// The same four operations through `read` and `write` of a lock around a [`StdSet`].
macro_rules! locked_set {
    ($lock:ident, $read:ident, $write:ident) => {
        impl Set for $lock<StdSet> {
            fn insert(&self, numbers: &[NonZeroU64]) {
                self.$write().unwrap_or_else(PoisonError::into_inner).extend(numbers);
            }

            fn count(&self, numbers: &[NonZeroU64]) -> usize {
                let set = self.$read().unwrap_or_else(PoisonError::into_inner);
                numbers.iter().filter(|number| set.contains(number)).count()
            }

            fn delete(&self, numbers: &[NonZeroU64]) {
                let mut set = self.$write().unwrap_or_else(PoisonError::into_inner);
                for number in numbers {
                    set.remove(number);
                }
            }

            fn len(&self) -> usize {
                self.$read().unwrap_or_else(PoisonError::into_inner).len()
            }
        }
    };
}

locked_set!(RwLock, read, write);
locked_set!(Mutex, lock, lock);

/// The amount of work.
struct Plan {
    threads: usize,
    numbers: usize,
    batch: usize,
}

/// Runs `work` for every batch of `numbers`, with a share of them on each thread. Returns how many
/// million numbers it processed per second.
fn spread(plan: &Plan, numbers: &[NonZeroU64], work: impl Fn(&[NonZeroU64]) + Sync) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for share in numbers.chunks(numbers.len().div_ceil(plan.threads).max(1)) {
            scope.spawn(|| share.chunks(plan.batch).for_each(&work));
        }
    });
    numbers.len() as f64 / start.elapsed().as_secs_f64() / 1e6
}

/// The steps on each set, in order.
const STEPS: [&str; 4] = ["insert", "lookup", "delete", "mixed"];

/// All steps on one set, with a check of the result of each. Returns millions of operations per
/// second.
fn measure(plan: &Plan, set: &impl Set, numbers: &[NonZeroU64]) -> Result<[f64; 4], String> {
    let expect = |what: &str, found: usize, expected: usize| {
        (found == expected).then_some(()).ok_or(format!("{what}: {found} instead of {expected}"))
    };
    let (gone, kept) = numbers.split_at(numbers.len() / 2);
    let insert = spread(plan, numbers, |batch| set.insert(batch));
    expect("inserted", set.len(), numbers.len())?;
    let hits = std::sync::atomic::AtomicUsize::new(0);
    let lookup = spread(plan, numbers, |batch| {
        hits.fetch_add(set.count(batch), std::sync::atomic::Ordering::Relaxed);
    });
    expect("found", hits.into_inner(), numbers.len())?;
    let delete = spread(plan, gone, |batch| set.delete(batch));
    expect("left after deletion", set.len(), kept.len())?;
    // Each thread inserts every batch, looks it up twice and deletes it, while other threads do
    // another of these steps.
    let mixed = spread(plan, gone, |batch| {
        set.insert(batch);
        let seen = set.count(batch) + set.count(batch);
        set.delete(&batch[..if seen == 2 * batch.len() { batch.len() } else { 0 }]);
    });
    expect("left at the end", set.len(), kept.len())?;
    expect("of the deleted, found", set.count(gone), 0)?;
    expect("of the kept, found", set.count(kept), kept.len())?;
    Ok([insert, lookup, delete, 4.0 * mixed])
}

/// A hash of the layout of a table.
fn fingerprint(table: &mut Table) -> u64 {
    table.layout().fold(0, |sum, cell| set::mix(sum.rotate_left(1) ^ cell))
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn run(plan: &Plan) -> Result<(), String> {
    const ROUNDS: usize = 5;
    let numbers: Vec<_> =
        (1..=plan.numbers as u64).filter_map(|seed| NonZeroU64::new(set::mix(seed))).collect();
    let mut figures: [[Vec<f64>; 4]; 3] = Default::default();
    let mut layouts = Vec::new();
    for _ in 0..ROUNDS {
        // All sets have room for all numbers: growth is not measured.
        let mut table = Table::new();
        table.reserve(numbers.len());
        let mut phased = PhaseSet::new(table);
        let std_set =
            || StdSet::with_capacity_and_hasher(numbers.len(), BuildHasherDefault::default());
        let round = [
            measure(plan, &phased, &numbers)?,
            measure(plan, &RwLock::new(std_set()), &numbers)?,
            measure(plan, &Mutex::new(std_set()), &numbers)?,
        ];
        for (peer, steps) in figures.iter_mut().zip(round) {
            peer.iter_mut().zip(steps).for_each(|(list, figure)| list.push(figure));
        }
        layouts.push(fingerprint(phased.get_mut()));
    }
    let Plan { threads, batch, .. } = plan;
    println!(
        "{threads} threads, {} numbers, {batch} operations each time the lock is taken",
        numbers.len()
    );
    println!("millions of operations per second, median of {ROUNDS} rounds\n");
    println!("{:24}{:>8}{:>8}{:>8}{:>8}", "", STEPS[0], STEPS[1], STEPS[2], STEPS[3]);
    for (name, peer) in ["phases", "RwLock<HashSet>", "Mutex<HashSet>"].iter().zip(figures) {
        let [insert, lookup, delete, mixed] = peer.map(median);
        println!("{name:24}{insert:8.1}{lookup:8.1}{delete:8.1}{mixed:8.1}");
    }
    println!("\nlayout of the cells at the end of each round: {layouts:016x?}");
    if layouts.iter().any(|&layout| layout != layouts[0]) {
        return Err("the layout depends on the order of insertion".to_owned());
    }
    println!("the same each time, in any order of insertion");
    Ok(())
}

/// The plan from the arguments, or what is wrong with them.
fn plan(mut arguments: impl Iterator<Item = String>) -> Result<Plan, String> {
    let mut next = |what: &str, usual: usize| match arguments.next() {
        None => Ok(usual),
        Some(text) => match text.parse() {
            Ok(0) | Err(_) => Err(format!("{what} is `{text}`, but should be a positive number")),
            Ok(number) => Ok(number),
        },
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let plan = Plan {
        threads: next("THREADS", processors.max(2))?,
        numbers: next("NUMBERS", 200_000)?,
        batch: next("BATCH", 256)?,
    };
    match arguments.next() {
        Some(extra) => Err(format!("`{extra}` is one argument too many")),
        None => Ok(plan),
    }
}

fn main() -> ExitCode {
    match plan(std::env::args().skip(1)).and_then(|plan| run(&plan)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!(
                "phase_hash_set: {reason}\nusage: phase_hash_set [THREADS [NUMBERS [BATCH]]]"
            );
            ExitCode::FAILURE
        }
    }
}
