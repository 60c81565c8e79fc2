//! The promises of the set.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use super::set::{Delete, Full, Insert, Lookup, Table};
use super::{PhaseSet, Plan, plan, run};

const ROUNDS: u64 = if cfg!(miri) { 4 } else { 2_000 };

fn numbers(range: impl IntoIterator<Item = u64>) -> Vec<NonZeroU64> {
    range.into_iter().filter_map(NonZeroU64::new).collect()
}

fn layout(set: &mut PhaseSet) -> Vec<u64> {
    set.get_mut().layout().collect()
}

fn with_room(room: usize) -> PhaseSet {
    let mut table = Table::new();
    table.reserve(room);
    PhaseSet::new(table)
}

/// Each thread does `work` on its own part of `numbers`. The parts overlap by half, so that threads
/// use the same numbers.
fn together(numbers: &[NonZeroU64], threads: usize, work: impl Fn(&[NonZeroU64]) + Sync) {
    let size = numbers.len().div_ceil(threads);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let work = &work;
            let part = &numbers[thread * size..numbers.len().min((thread + 1) * size + size / 2)];
            scope.spawn(move || part.chunks(3).for_each(work));
        }
    });
}

/// Small tables have long runs that wrap around the end. Each layout is compared with the layout
/// that one thread builds from the numbers that should be left.
#[test]
fn the_layout_depends_on_nothing_but_the_numbers() {
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..ROUNDS {
        // Few cells, so that some runs are long.
        let room: usize = [6, 18, 42, 90][round as usize % 4];
        let mut all = numbers((0..room).map(|_| random.u64(1..1000)));
        let mut set = with_room(room + 6);
        together(&all, 2, |part| set.enter(Insert).view().insert(part).expect("there is room"));
        random.shuffle(&mut all);
        let (gone, kept) = all.split_at(all.len() / 2);
        together(gone, 2, |part| set.enter(Delete).view().delete(part));
        let left: BTreeSet<_> = kept.iter().filter(|number| !gone.contains(number)).collect();
        let looking = set.enter(Lookup);
        assert_eq!(looking.view().len(), left.len(), "in round {round}");
        for number in &all {
            assert_eq!(looking.view().contains(*number), left.contains(number), "{number}");
        }
        drop(looking);
        let mut plain = with_room(room + 6);
        for number in left {
            plain.enter(Insert).view().insert(&[*number]).expect("there is room");
        }
        assert_eq!(layout(&mut set), layout(&mut plain), "in round {round}");
    }
}

#[test]
fn a_full_set_takes_nothing_and_loses_nothing() {
    let set = PhaseSet::new(Table::new());
    let (some, more) = (numbers(1..=10), numbers(11..=13));
    assert_eq!(set.enter(Insert).view().insert(&some), Ok(()));
    assert_eq!(set.enter(Insert).view().insert(&more), Err(Full));
    assert_eq!(set.enter(Lookup).view().len(), 10);
    set.exclusive().reserve(3);
    assert_eq!(set.enter(Insert).view().insert(&more), Ok(()));
    let looking = set.enter(Lookup);
    assert!((1..=13).all(|number| looking.view().contains(numbers([number])[0])));
    assert_eq!(looking.view().len(), 13);
}

#[test]
fn the_program_runs() {
    let numbers = if cfg!(miri) { 40 } else { 5_000 };
    assert_eq!(run(&Plan { threads: 3, numbers, batch: 16 }), Ok(()));
}

#[test]
fn bad_arguments_are_named() {
    let refusal = |arguments: &[&str]| {
        plan(arguments.iter().map(|&argument| argument.to_owned())).err().expect("it is refused")
    };
    assert_eq!(refusal(&["none"]), "THREADS is `none`, but should be a positive number");
    assert_eq!(refusal(&["2", "0"]), "NUMBERS is `0`, but should be a positive number");
    assert_eq!(refusal(&["2", "9", "9", "x"]), "`x` is one argument too many");
}

#[test]
fn the_three_phases_exclude_each_other() {
    let set = PhaseSet::new(Table::new());
    let entered = || {
        [
            set.try_enter(Insert).is_some(),
            set.try_enter(Lookup).is_some(),
            set.try_enter(Delete).is_some(),
        ]
    };
    let inserting = set.enter(Insert);
    assert_eq!(entered(), [true, false, false]);
    let looking_up = inserting.switch(Lookup);
    assert_eq!(entered(), [false, true, false]);
    let _deleting = looking_up.switch(Delete);
    assert_eq!(entered(), [false, false, true]);
}
