//! Petrovic's bounded turns as tokens.
//!
//! The algorithm compares turns for equality only. So the names of the three turns of a class, and
//! of the four classes, make no difference. The explorer cannot rename numbers, but it can rename
//! objects. Here a turn is a pointer to one of twelve tokens, and a process keeps them in rings
//! that begin with the present one. So states that differ only in the rotation of the rings are one
//! state, and the number of states is small enough to exhaust.

use grouplock_algorithms::memory::{Memory, Ptr, Value, Word};
use grouplock_algorithms::petrovic::{Bounded, Turns};

use crate::memory::SimMemory;

/// A turn. It only differs from other turns.
#[derive(Debug)]
pub struct Token(
    #[allow(dead_code, reason = "a token without size would have no place of its own")] u64,
);

/// The turns of [`Bounded`], as tokens.
#[derive(Debug)]
pub struct Tokens {
    /// The classes, the present one first; the turns of each, the last one taken first.
    rings: [[Ptr<Token>; 3]; 4],
    last_s: u64,
}

impl Turns for Tokens {
    type Turn = Ptr<Token>;
    const NONE: Ptr<Token> = Ptr::NIL;
    const NAME: &'static str = Bounded::NAME;
    const BOUNDED: bool = true;
    const DOORWAY_FLAG: bool = Bounded::DOORWAY_FLAG;

    fn new() -> Self {
        let token = |()| Ptr::to(SimMemory::allocate(|| Token(0)));
        Tokens { rings: [(); 4].map(|()| [(); 3].map(token)), last_s: 0 }
    }

    fn first(&self) -> Ptr<Token> {
        self.rings[0][0]
    }

    fn next_turn(&mut self, session: u64) -> Ptr<Token> {
        if session != self.last_s {
            self.rings.rotate_left(1);
        }
        self.last_s = session;
        self.rings[0].rotate_left(1);
        self.rings[0][0]
    }

    fn inspect(&self, see: &mut dyn FnMut(&'static str, Word)) {
        see("last_s", self.last_s.word());
        self.rings.as_flattened().iter().for_each(|token| see("turn", token.word()));
    }
}

impl Drop for Tokens {
    fn drop(&mut self) {
        for token in self.rings.as_flattened() {
            // SAFETY: `new` allocated it. No process follows a token, and the lock it belongs to is
            // being dropped.
            let token = unsafe { token.as_ref() };
            // SAFETY: as above; it is freed once.
            unsafe { SimMemory::free(core::ptr::NonNull::from(token)) };
        }
    }
}
