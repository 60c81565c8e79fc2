//! The states of a search on one thread. Each state gets a number once, and waits until it is
//! taken.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::state::State;
use super::visited::fingerprint;

pub(super) struct Frontier {
    numbers: FxHashMap<u64, u32>,
    /// The states that were not taken yet, packed.
    waiting: VecDeque<Vec<u32>>,
    row: Vec<u32>,
}

impl Frontier {
    pub(super) fn new(initial: &State) -> Self {
        let (numbers, waiting) = (FxHashMap::default(), VecDeque::new());
        let mut frontier = Frontier { numbers, waiting, row: Vec::new() };
        frontier.add(initial);
        frontier
    }

    /// The number of `state`, in the order in which states were found. A new state waits.
    pub(super) fn add(&mut self, state: &State) -> u32 {
        state.pack(&mut self.row);
        let next = self.numbers.len() as u32;
        *self.numbers.entry(fingerprint(&self.row)).or_insert_with(|| {
            self.waiting.push_back(self.row.clone());
            next
        })
    }

    /// Takes the next waiting state, which has `registers` registers.
    pub(super) fn take(&mut self, registers: usize) -> Option<State> {
        self.waiting.pop_front().map(|row| State::unpack(&row, registers))
    }

    /// How many states were found.
    pub(super) fn count(&self) -> usize {
        self.numbers.len()
    }

    /// About how much memory it takes, with `each` more bytes for every state.
    pub(super) fn bytes(&self, each: usize) -> u64 {
        (self.count() * (24 + each) + self.waiting.len() * (self.row.len() * 4 + 24)) as u64
    }
}
