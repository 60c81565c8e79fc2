//! A set of numbers that many threads insert into together, or look up in together, or delete from together.
//!
//! Open addressing with linear probing, after J. Shun and G. E. Blelloch, *Phase-concurrent hash tables for determinism*, SPAA 2014. A run of
//! occupied cells is kept in order of *priority*, here the larger number first: who looks for a number goes from its home cell on and
//! may stop at the first smaller one. So where the numbers lie depends on which there are, and not on who came when.
//!
//! Each operation is short because of what its phase excludes: a lookup needs no care at all, as nothing moves meanwhile; an insertion meets no
//! holes that open; a deletion fills holes for good, and leaves no tombstones.
//!
//! # Memory orderings
//!
//! Between phases, the lock orders everything. Within one:
//!
//! * Looking up is relaxed: nobody writes.
//! * Inserting is relaxed: a cell only ever grows, so that who finds a larger number there, or its own, may believe it however old
//!   that is; and a compare-and-swap believes only the present.
//! * Deleting is sequentially consistent. That a copy cannot slip past who looks for it is an argument about one order of all steps: the
//!   copy is made below before the number is taken away above. (With relaxed accesses, a run under miri was left with a number too many.)

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use grouplock::views::{Inside, Phase};

/// What the phases are called, in a snapshot for example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Insert,
    Lookup,
    Delete,
}

/// An empty cell. Lower than every number, so it comes last in a run, where it belongs.
const EMPTY: u64 = 0;

/// The cells. What can be done with them is a matter of the phase.
pub(crate) struct Table {
    /// A power of two of them, never all occupied.
    cells: Box<[AtomicU64]>,
    /// How many are occupied; while some insert, at least as many.
    occupied: AtomicUsize,
}

/// There was no room for all; nothing was inserted. [`Table::reserve`] makes room.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Table {
    pub(crate) fn new() -> Self {
        Self::with_cells(16)
    }

    fn with_cells(count: usize) -> Self {
        let cells = (0..count).map(|_| AtomicU64::new(EMPTY)).collect();
        Table { cells, occupied: AtomicUsize::new(0) }
    }

    /// Makes room for `more` numbers. For who is alone: it moves everything.
    pub(crate) fn reserve(&mut self, more: usize) {
        let most = *self.occupied.get_mut() + more;
        if most > self.limit() {
            let mut larger =
                Self::with_cells(most.div_ceil(3).saturating_mul(4).next_power_of_two());
            for cell in &mut self.cells {
                larger.put(*cell.get_mut());
            }
            larger.occupied = AtomicUsize::new(*self.occupied.get_mut());
            *self = larger;
        }
    }

    /// All cells in order, empty ones as 0: the layout, for who is alone.
    pub(crate) fn layout(&mut self) -> impl Iterator<Item = u64> {
        self.cells.iter_mut().map(|cell| *cell.get_mut())
    }

    /// So many numbers at most: three quarters of the cells, so that runs stay short.
    fn limit(&self) -> usize {
        self.cells.len() / 4 * 3
    }

    /// Positions go on beyond the last cell, so that "before" and "after" mean something. They start one round late, to have room below.
    fn cell(&self, position: usize) -> &AtomicU64 {
        &self.cells[position & (self.cells.len() - 1)]
    }

    fn home(&self, number: u64) -> usize {
        (mix(number) as usize & (self.cells.len() - 1)) + self.cells.len()
    }

    /// The home of `number`, seen from `position`, where it lies.
    fn home_seen_from(&self, number: u64, position: usize) -> usize {
        position - (position.wrapping_sub(self.home(number)) & (self.cells.len() - 1))
    }

    /// Inserts, by whoever may: each number that has to give way to a larger one is carried on. Says whether one more cell is occupied.
    fn put(&self, mut number: u64) -> bool {
        let mut at = self.home(number);
        while number != EMPTY {
            let found = self.cell(at).load(Relaxed);
            if found == number {
                return false;
            }
            if found > number {
                at += 1;
            } else if self.cell(at).compare_exchange(found, number, Relaxed, Relaxed).is_ok() {
                if found == EMPTY {
                    return true;
                }
                number = found;
                at += 1;
            }
        }
        false
    }

    /// Deletes, by whoever may: the hole is filled with a copy of a number from further on, which is then deleted there. Others may do
    /// the same to the same numbers; copies move towards their homes only, so who does not find one looks below. Says whether one cell less is
    /// occupied.
    fn take(&self, mut number: u64) -> bool {
        let mut home = self.home(number);
        let mut at = home;
        while self.cell(at).load(SeqCst) > number {
            at += 1;
        }
        while at >= home {
            if self.cell(at).load(SeqCst) != number {
                at -= 1;
                continue;
            }
            let (from, filling) = self.filling_for(at);
            if self.cell(at).compare_exchange(number, filling, SeqCst, SeqCst).is_err() {
                at -= 1;
            } else if filling == EMPTY {
                return true;
            } else {
                (number, at) = (filling, from);
                home = self.home_seen_from(number, from);
            }
        }
        false
    }

    /// What may lie at `hole` instead: the nearest number further on whose home is not after `hole`, or nothing.
    fn filling_for(&self, hole: usize) -> (usize, u64) {
        let fits = |number, at| number == EMPTY || self.home_seen_from(number, at) <= hole;
        let mut from = hole + 1;
        let mut filling = self.cell(from).load(SeqCst);
        while !fits(filling, from) {
            from += 1;
            filling = self.cell(from).load(SeqCst);
        }
        // One from further on may have been copied to where we have been already.
        for at in (hole + 1..from).rev() {
            let number = self.cell(at).load(SeqCst);
            if fits(number, at) {
                (from, filling) = (at, number);
            }
        }
        (from, filling)
    }
}

/// Mixes the bits, as the last steps of `SplitMix64` do.
pub(crate) fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// Declares a phase and its view.
macro_rules! phase {
    ($(#[$doc:meta])* $phase:ident, $view:ident) => {
        $(#[$doc])*
        pub(crate) struct $phase;

        $(#[$doc])*
        pub(crate) struct $view<'a>(Inside<'a, $phase, Table>);

        impl Phase<Table> for $phase {
            type Name = Name;
            type View<'a> = $view<'a>;

            fn name(&self) -> Name {
                Name::$phase
            }

            fn view<'a>(&'a self, inside: Inside<'a, $phase, Table>) -> $view<'a> {
                $view(inside)
            }
        }
    };
}

phase!(
    /// Any number of threads insert.
    Insert, Inserting
);
phase!(
    /// Any number of threads look up.
    Lookup, LookingUp
);
phase!(
    /// Any number of threads delete.
    Delete, Deleting
);

impl Inserting<'_> {
    /// Inserts `numbers`. Which of them were new cannot be told while others insert; afterwards [`LookingUp::len`] can be.
    pub(crate) fn insert(&self, numbers: &[NonZeroU64]) -> Result<(), Full> {
        let table = self.0.data();
        let reserve = |occupied: usize| {
            Some(occupied + numbers.len()).filter(|&reserved| reserved <= table.limit())
        };
        table.occupied.fetch_update(Relaxed, Relaxed, reserve).map_err(|_| Full)?;
        let new = numbers.iter().filter(|number| table.put(number.get())).count();
        table.occupied.fetch_sub(numbers.len() - new, Relaxed);
        Ok(())
    }
}

impl LookingUp<'_> {
    /// Whether `number` is there.
    pub(crate) fn contains(&self, number: NonZeroU64) -> bool {
        let (table, number) = (self.0.data(), number.get());
        let mut at = table.home(number);
        loop {
            let found = table.cell(at).load(Relaxed);
            if found <= number {
                return found == number;
            }
            at += 1;
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.data().occupied.load(Relaxed)
    }
}

impl Deleting<'_> {
    /// Deletes those of `numbers` that are there.
    pub(crate) fn delete(&self, numbers: &[NonZeroU64]) {
        let table = self.0.data();
        let gone = numbers.iter().filter(|number| table.take(number.get())).count();
        table.occupied.fetch_sub(gone, Relaxed);
    }
}
