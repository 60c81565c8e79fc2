//! A set of numbers. Many threads insert together, or look up together, or delete together.
//!
//! Open addressing with linear probing, after J. Shun and G. E. Blelloch, *Phase-concurrent hash
//! tables for determinism*, SPAA 2014. A run of occupied cells is in order of *priority*, here the
//! larger number first. A lookup begins at the home cell of the number and may stop at the first
//! smaller number. So the layout depends on the contents, and not on the order of insertion.
//!
//! Each operation is short because its phase excludes the others. During lookups nothing moves.
//! During insertions no cell becomes empty. A deletion fills the hole at once, and needs no
//! tombstones.
//!
//! # Memory orderings
//!
//! Between phases, the lock orders everything. Within a phase:
//!
//! * Looking up is relaxed: no thread writes.
//! * Inserting is relaxed: the value of a cell only grows. So a thread that reads a larger number,
//!   or its own, may rely on it, however old it is. A compare-and-swap reads the current value.
//! * Deleting is sequentially consistent. A thread must not miss a copy of the number that it looks
//!   for. The argument needs one order of all steps: the copy is written below before the number is
//!   removed above. (With relaxed accesses, a run under miri kept a number too many.)

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use grouplock::views::{Inside, Phase};

/// The names of the phases, in a snapshot for example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Insert,
    Lookup,
    Delete,
}

/// An empty cell. It is smaller than every number, so it ends a run.
const EMPTY: u64 = 0;

/// The cells. The phase decides what a thread can do with them.
pub(crate) struct Table {
    /// Their number is a power of two. They are never all occupied.
    cells: Box<[AtomicU64]>,
    /// The number of occupied cells; during insertions, an upper bound.
    occupied: AtomicUsize,
}

/// The table has too few cells; nothing was inserted. [`Table::reserve`] adds cells.
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

    /// Makes room for `more` numbers. The caller is alone, because this moves everything.
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

    /// All cells in order, empty cells as 0: the layout. The caller is alone.
    pub(crate) fn layout(&mut self) -> impl Iterator<Item = u64> {
        self.cells.iter_mut().map(|cell| *cell.get_mut())
    }

    /// The largest number of numbers: three quarters of the cells, so that runs stay short.
    fn limit(&self) -> usize {
        self.cells.len() / 4 * 3
    }

    /// Positions continue beyond the last cell, so that "before" and "after" have a meaning. They
    /// begin one round late, so that there are positions below.
    fn cell(&self, position: usize) -> &AtomicU64 {
        &self.cells[position & (self.cells.len() - 1)]
    }

    fn home(&self, number: u64) -> usize {
        (mix(number) as usize & (self.cells.len() - 1)) + self.cells.len()
    }

    /// The home of `number`, as seen from its `position`.
    fn home_seen_from(&self, number: u64, position: usize) -> usize {
        position - (position.wrapping_sub(self.home(number)) & (self.cells.len() - 1))
    }

    /// Inserts. The caller is in the phase for that. Each number that a larger one replaces is
    /// moved on. Returns whether one more cell is occupied.
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

    /// Deletes. The caller is in the phase for that. A copy of a later number fills the hole, and
    /// is then deleted at its old cell. Other threads may do the same with the same numbers. Copies
    /// only move towards their homes, so a thread that does not find a number looks below. Returns
    /// whether one cell less is occupied.
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

    /// The number that may fill `hole`: the nearest later number whose home is not after `hole`, or
    /// none.
    fn filling_for(&self, hole: usize) -> (usize, u64) {
        let fits = |number, at| number == EMPTY || self.home_seen_from(number, at) <= hole;
        let mut from = hole + 1;
        let mut filling = self.cell(from).load(SeqCst);
        while !fits(filling, from) {
            from += 1;
            filling = self.cell(from).load(SeqCst);
        }
        // Another thread may have copied a later number to a cell that this loop has already
        // passed.
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
    /// Inserts `numbers`. While other threads insert, it is unknown which of them were new.
    /// Afterwards [`LookingUp::len`] shows how many there are.
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
    /// Returns whether the set has `number`.
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

    /// The number of numbers.
    pub(crate) fn len(&self) -> usize {
        self.0.data().occupied.load(Relaxed)
    }
}

impl Deleting<'_> {
    /// Deletes the elements of `numbers` that the set has.
    pub(crate) fn delete(&self, numbers: &[NonZeroU64]) {
        let table = self.0.data();
        let gone = numbers.iter().filter(|number| table.take(number.get())).count();
        table.occupied.fetch_sub(gone, Relaxed);
    }
}
