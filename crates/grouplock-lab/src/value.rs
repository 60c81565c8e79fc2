//! Packed values: the contents of a register, and what a process observes of them.

use std::fmt;

/// Contents of a register.
///
/// | code | value |
/// |---|---|
/// | 0 | undefined: dead contents, which no process may read |
/// | 1 to 3 | `NIL` and the two marks that stand beside pointers |
/// | 16 to 127 | object 0 to 111: in a global state an object itself, in the automaton a *placeholder* for one |
/// | 128 to 191 | only as an observation: an object that the process does not know, of kind 0 to 63 |
/// | 256 and up | a number, 256 less |
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Val(pub u32);

const FIRST_OBJECT: u32 = 16;
const FIRST_CLASS: u32 = 128;
const FIRST_NUMBER: u32 = 256;

/// The largest number of objects in an exploration.
pub const MOST_OBJECTS: usize = (FIRST_CLASS - FIRST_OBJECT) as usize;
/// The largest number of kinds of objects.
pub const MOST_CLASSES: usize = 64;

impl Val {
    pub const UNDEF: Val = Val(0);

    /// The pointer mark whose address is `address`.
    pub fn mark(address: usize) -> Self {
        debug_assert!(address < 3);
        Val(1 + address as u32)
    }

    pub fn object(object: usize) -> Self {
        debug_assert!(object < MOST_OBJECTS);
        Val(FIRST_OBJECT + object as u32)
    }

    /// An object of this kind that the process does not know.
    pub fn stranger(class: usize) -> Self {
        Val(FIRST_CLASS + class as u32)
    }

    /// The number, or why there is no such value.
    pub fn number(number: u64) -> Result<Self, String> {
        let value = u32::try_from(number).ok().and_then(|n| n.checked_add(FIRST_NUMBER));
        let why = || format!("{number} is larger than an explored register can hold");
        value.map(Val).ok_or_else(why)
    }

    pub fn as_mark(self) -> Option<usize> {
        (1..=3).contains(&self.0).then(|| self.0 as usize - 1)
    }

    pub fn as_object(self) -> Option<usize> {
        (FIRST_OBJECT..FIRST_CLASS).contains(&self.0).then(|| (self.0 - FIRST_OBJECT) as usize)
    }

    pub fn as_stranger(self) -> Option<usize> {
        let class = self.0.checked_sub(FIRST_CLASS)? as usize;
        (class < MOST_CLASSES).then_some(class)
    }

    pub fn as_number(self) -> Option<u64> {
        self.0.checked_sub(FIRST_NUMBER).map(u64::from)
    }

    /// The same value with its object replaced.
    #[must_use]
    pub fn map(self, f: impl FnOnce(usize) -> usize) -> Self {
        self.as_object().map_or(self, |object| Val::object(f(object)))
    }
}

impl fmt::Debug for Val {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.as_mark(), self.as_object(), self.as_number()) {
            (Some(0), ..) => f.write_str("NIL"),
            (Some(mark), ..) => write!(f, "MARK_{mark}"),
            (_, Some(object), _) => write!(f, "@{object}"),
            (_, _, Some(number)) => write!(f, "{number}"),
            _ => match self.as_stranger() {
                Some(class) => write!(f, "an unknown @ of kind {class}"),
                None => f.write_str("UNDEF"),
            },
        }
    }
}
