//! A small memory for the protocol: a byte for each word.

use crate::line::{ANY, At, Field, Slot, Words};

pub(crate) const SLOTS: usize = 3;
pub(crate) const GLOBALS: usize = 11;
pub(crate) const RING: u64 = 4;
/// The words of the protocol, and three more: the session, whether the owner is dead, and the slots
/// that the waiter watches.
pub(crate) const FIELDS: usize = 13;
pub(crate) const SIZE: usize = GLOBALS + RING as usize + SLOTS * FIELDS;
pub(crate) const SESSION: usize = 10;
pub(crate) const DEAD: usize = 11;
/// A bit for each slot that a waiter watches; 0 after a nudge.
pub(crate) const WATCHED: usize = 12;

/// Numbers are small, so a byte is enough for each word. The largest byte stands for the largest
/// word.
pub(crate) type Image = [u8; SIZE];

pub(crate) fn widen(byte: u8) -> u64 {
    if byte == u8::MAX { ANY } else { byte.into() }
}

pub(crate) fn narrow(word: u64) -> u8 {
    if word == ANY { u8::MAX } else { u8::try_from(word).expect("numbers stay small") }
}

pub(crate) fn index(at: At) -> usize {
    let global = [
        At::Armed,
        At::First,
        At::Last,
        At::Head,
        At::Inside,
        At::Most,
        At::Epoch,
        At::Tickets,
        At::Deaths,
        At::Repaired,
        At::Prepared,
    ];
    match at {
        At::Buried(number) => GLOBALS + (number % RING) as usize,
        At::Of(slot, field) => of(usize::from(slot), field as usize),
        at => global.iter().position(|other| *other == at).expect("a global word"),
    }
}

pub(crate) fn of(slot: usize, field: usize) -> usize {
    GLOBALS + RING as usize + slot * FIELDS + field
}

/// A memory that records the writes.
pub(crate) struct Recorder {
    pub(crate) image: Image,
    pub(crate) writes: Vec<(At, u64)>,
    /// After so many writes, nudge this slot.
    pub(crate) nudged: Vec<(usize, Slot)>,
}

impl Recorder {
    pub(crate) fn new(image: Image) -> Self {
        Recorder { image, writes: Vec::new(), nudged: Vec::new() }
    }
}

impl Words for Recorder {
    fn get(&self, at: At) -> u64 {
        widen(self.image[index(at)])
    }

    fn set(&mut self, at: At, value: u64) {
        self.image[index(at)] = narrow(value);
        self.writes.push((at, value));
    }

    fn slots(&self) -> Slot {
        SLOTS as Slot
    }

    fn same_session(&self, one: Slot, other: Slot) -> bool {
        self.image[of(one.into(), SESSION)] == self.image[of(other.into(), SESSION)]
    }

    fn prepared_for(&self, _: Slot) -> bool {
        true
    }

    fn nudge(&mut self, slot: Slot) {
        self.nudged.push((self.writes.len(), slot));
    }
}

pub(crate) fn state(image: &Image, slot: usize) -> u64 {
    word(image, slot, Field::State)
}

pub(crate) fn word(image: &Image, slot: usize, field: Field) -> u64 {
    widen(image[of(slot, field as usize)])
}

pub(crate) fn global(image: &Image, at: At) -> u64 {
    widen(image[index(at)])
}

pub(crate) fn is_dead(image: &Image, slot: usize) -> bool {
    image[of(slot, DEAD)] != 0
}
