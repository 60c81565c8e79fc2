//! Choices of turns that break Petrovic's lock.

use grouplock_algorithms::petrovic::Turns;

use crate::memory::Word;
use crate::prelude::*;

/// `CLASSES` classes of `EACH` turns, with or without the doorway flag. The real lock has four
/// classes of three turns, with the flag.
#[derive(Debug)]
pub struct Classes<const CLASSES: usize, const EACH: u64, const FLAG: bool> {
    cls: usize,
    sub: [u64; CLASSES],
    last_s: u64,
}

impl<const CLASSES: usize, const EACH: u64, const FLAG: bool> Turns
    for Classes<CLASSES, EACH, FLAG>
{
    type Turn = u64;
    const NONE: u64 = 0;
    const NAME: &'static str = "petrovic";
    const BOUNDED: bool = true;
    const DOORWAY_FLAG: bool = FLAG;

    fn new() -> Self {
        Classes { cls: 0, sub: [0; CLASSES], last_s: 0 }
    }

    fn first(&self) -> u64 {
        0
    }

    fn next_turn(&mut self, session: u64) -> u64 {
        if session != self.last_s {
            self.cls = (self.cls + 1) % CLASSES;
        }
        self.last_s = session;
        self.sub[self.cls] = (self.sub[self.cls] + 1) % EACH;
        EACH * self.cls as u64 + self.sub[self.cls]
    }

    fn inspect(&self, see: &mut dyn FnMut(&'static str, Word)) {
        see("cls", self.cls.word());
        self.sub.iter().for_each(|sub| see("sub", sub.word()));
        see("last_s", self.last_s.word());
    }
}
