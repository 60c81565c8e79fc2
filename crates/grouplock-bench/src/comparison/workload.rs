//! What the threads of a round do.

use core::fmt;

use serde::Serialize;

use super::work::Length;

/// How many sessions there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sessions {
    /// So many for all, numbered from 0: for an [`RwLock`](std::sync::RwLock), 0 is reading.
    Shared(u64),
    /// One per thread, numbered from 1: for an `RwLock`, all are writing.
    Own,
}

/// Which session a thread asks for next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// Always the same: thread t asks for session t modulo their number.
    ByThread,
    /// Any, with equal chances.
    Uniform,
    /// Any, the k-th with chances as 1/k.
    Zipf,
    /// Any, and then the same for 32 times on average.
    Bursts,
    /// Never the same twice: A, B, A, B, and threads start at different ones.
    Alternating,
}

/// What the threads of a round do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Workload {
    /// How many there are.
    pub threads: usize,
    /// How many sessions.
    pub sessions: Sessions,
    /// Who asks for which.
    pub choice: Choice,
    /// What is done inside.
    pub inside: Length,
    /// What is done between leaving and asking again.
    pub outside: Length,
    /// Whether each core also runs a loop that never ends.
    pub busy: bool,
}

/// How many choices a thread makes before it begins anew. A power of two, and small enough to stay in the
/// first cache: drawing lots between passages would cost more than many a passage.
const CHOICES: usize = 1024;
/// How long a burst is on average.
const BURST: u64 = 32;

/// The sessions a thread asks for, drawn beforehand.
#[derive(Clone, Debug)]
pub struct Agenda {
    sessions: Box<[u16; CHOICES]>,
    next: usize,
}

impl Agenda {
    /// The session to ask for now.
    #[inline(always)]
    pub fn draw(&mut self) -> u64 {
        let session = self.sessions[self.next % CHOICES];
        self.next = self.next.wrapping_add(1);
        u64::from(session)
    }
}

impl Workload {
    /// What `thread` will ask for. The same for every lock in the same round.
    pub fn agenda(&self, thread: usize, round: u64) -> Agenda {
        let mut sessions = Box::new([0; CHOICES]);
        // Each stays below the number of threads or of sessions, and both below 2¹⁶.
        match self.sessions {
            Sessions::Own => sessions.fill(thread as u16 + 1),
            Sessions::Shared(count) => {
                let mut lots = Lots::new(round << 16 | thread as u64);
                let mut last = lots.below(count);
                for (position, session) in sessions.iter_mut().enumerate() {
                    last = match self.choice {
                        Choice::ByThread => thread as u64 % count,
                        Choice::Zipf => zipf(count, &mut lots),
                        Choice::Bursts if lots.below(BURST) > 0 => last,
                        Choice::Uniform | Choice::Bursts => lots.below(count),
                        Choice::Alternating => (position + thread) as u64 % count,
                    };
                    *session = last as u16;
                }
            }
        }
        Agenda { sessions, next: 0 }
    }

    /// Whether some ask for session 0 and some for others.
    pub fn is_mixed(&self) -> bool {
        matches!(self.sessions, Sessions::Shared(2..))
    }

    /// How many sessions there are and who asks for which, in words.
    pub fn sessions_told(&self) -> String {
        let count = match self.sessions {
            Sessions::Own => return "a session each".to_owned(),
            Sessions::Shared(1) => return "1 session".to_owned(),
            Sessions::Shared(count) => count,
        };
        let choice = match self.choice {
            Choice::ByThread => "by thread",
            Choice::Uniform => "uniform",
            Choice::Zipf => "zipf",
            Choice::Bursts => "bursts",
            Choice::Alternating => "ABAB",
        };
        format!("{count} sessions {choice}")
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Workload { threads, inside, outside, .. } = self;
        let plural = if *threads == 1 { "" } else { "s" };
        let (sessions, inside, outside) = (self.sessions_told(), inside.told(), outside.told());
        let busy = if self.busy { ", every core busy" } else { "" };
        write!(f, "{threads} thread{plural}, {sessions}, {inside} inside, {outside} outside{busy}")
    }
}

/// Chances as 1/k for the k-th of `count`.
fn zipf(count: u64, lots: &mut Lots) -> u64 {
    let weight = |rank: u64| 1.0 / (rank + 1) as f64;
    let mut left = lots.fraction() * (0..count).map(weight).sum::<f64>();
    for rank in 0..count {
        left -= weight(rank);
        if left < 0.0 {
            return rank;
        }
    }
    // Only rounding leads here.
    count - 1
}

/// Numbers that look random: Marsaglia's xorshift64.
#[derive(Debug)]
pub(super) struct Lots(u64);

impl Lots {
    pub(super) fn new(seed: u64) -> Self {
        // Never zero, and far from the neighbour's.
        let mut lots = Lots(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        lots.next();
        lots
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// At least 0 and below 1.
    pub(super) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Below `limit`.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 16) % limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(sessions: Sessions, choice: Choice, thread: usize) -> Vec<u64> {
        let (inside, outside) = (Length::Nothing, Length::Nothing);
        let workload = Workload { threads: 8, sessions, choice, inside, outside, busy: false };
        let mut agenda = workload.agenda(thread, 1);
        (0..CHOICES).map(|_| agenda.draw()).collect()
    }

    fn count(asked: &[u64], session: u64) -> usize {
        asked.iter().filter(|&&s| s == session).count()
    }

    #[test]
    fn ones_own_session_is_never_the_one_for_reading() {
        assert!(asked(Sessions::Own, Choice::ByThread, 0).iter().all(|&session| session == 1));
        assert!(asked(Sessions::Own, Choice::Uniform, 6).iter().all(|&session| session == 7));
    }

    #[test]
    fn the_choices_are_what_they_say() {
        let four = Sessions::Shared(4);
        assert!(asked(four, Choice::ByThread, 5).iter().all(|&session| session == 1));
        let uniform = asked(four, Choice::Uniform, 0);
        assert!(
            (0..4).all(|session| (192..320).contains(&count(&uniform, session))),
            "{uniform:?}"
        );
        let zipf = asked(four, Choice::Zipf, 0);
        // 12/25, 6/25, 4/25 and 3/25 of 1024.
        for (session, expected) in [(0, 491), (1, 246), (2, 164), (3, 123)] {
            assert!(count(&zipf, session).abs_diff(expected) < 60, "{session} in {zipf:?}");
        }
        let alternating = asked(Sessions::Shared(2), Choice::Alternating, 1);
        assert_eq!(alternating[..4], [1, 0, 1, 0]);
        let bursts = asked(four, Choice::Bursts, 0);
        let changes = bursts.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!((8..64).contains(&changes), "{changes} changes");
    }

    #[test]
    fn a_thread_asks_for_the_same_whatever_the_lock() {
        let four = Sessions::Shared(4);
        assert_eq!(asked(four, Choice::Uniform, 3), asked(four, Choice::Uniform, 3));
        assert_ne!(asked(four, Choice::Uniform, 3), asked(four, Choice::Uniform, 2));
    }
}
