//! What processes ask for, and how long they stay.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sessions {
    /// All ask for the same.
    One,
    /// Each process has one of its own.
    Own,
    /// Each passage draws one of so many.
    Drawn(u64),
}

impl fmt::Display for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sessions::One => f.write_str("one session"),
            Sessions::Own => f.write_str("a session each"),
            Sessions::Drawn(count) => write!(f, "{count} sessions"),
        }
    }
}

/// The work of all processes. A passage's share of it depends on the seed, the process and the passage's number, not
/// on the schedule: so two schedules can be compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) sessions: Sessions,
    /// How many processes take part, the lowest ones; the others never leave their remainder sections.
    pub(crate) active: usize,
    pub(crate) passages: usize,
    /// Whether processes take their time, some of them much, inside and outside.
    pub(crate) dwells: bool,
    pub(crate) seed: u64,
}

impl Workload {
    pub(crate) fn passages_of(&self, process: usize) -> usize {
        if process < self.active { self.passages } else { 0 }
    }

    fn draw(&self, process: usize, passage: usize, what: u64) -> fastrand::Rng {
        let place = (process as u64) << 32 ^ (passage as u64) << 2 ^ what;
        fastrand::Rng::with_seed(self.seed ^ place.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// The session of a passage: from one.
    pub(crate) fn session(&self, process: usize, passage: usize) -> u64 {
        match self.sessions {
            Sessions::One => 1,
            Sessions::Own => process as u64 + 1,
            Sessions::Drawn(count) => self.draw(process, passage, 0).u64(1..=count),
        }
    }

    /// For how many steps a process idles in its critical section or its remainder section: none in half of the
    /// cases, and twice as many half as often from there.
    pub(crate) fn dwell(&self, process: usize, passage: usize, inside: bool) -> u32 {
        if !self.dwells {
            return 0;
        }
        let bits = self.draw(process, passage, 1 + u64::from(inside)).u32(..);
        (1 << bits.trailing_zeros().min(8)) - 1
    }
}
