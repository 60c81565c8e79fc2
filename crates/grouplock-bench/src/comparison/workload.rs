//! What the threads of a round do.

use core::fmt;

use grouplock_testing::Random;
use serde::Serialize;

use super::work::Length;
use crate::report::labels;

/// The sessions of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Sessions {
    /// So many for all threads, numbered from 0. An `RwLock` reads in session 0.
    Shared(u64),
    /// One per thread, numbered from 1. An `RwLock` writes in all of them.
    Own,
}

labels!(
    /// The session of a thread's next request.
    Choice {
        /// Always the same: session t modulo their number for thread t.
        ByThread = "by thread",
        /// Any, with equal chances.
        Uniform = "uniform",
        /// Any, the k-th with chances as 1/k.
        Zipf = "zipf",
        /// Any, and then the same 32 times on average.
        Bursts = "bursts",
        /// Never the same twice: A, B, A, B. Threads start with different ones.
        Alternating = "ABAB",
    }
);

/// What the threads of a round do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Workload {
    pub(super) threads: usize,
    pub(super) sessions: Sessions,
    pub(super) choice: Choice,
    pub(super) inside: Length,
    /// Between leaving and the next request.
    pub(super) outside: Length,
    /// Whether each core also runs a loop that never ends.
    pub(super) busy: bool,
}

/// After so many choices a thread begins anew. They stay in the first cache: to draw a number
/// between passages would cost more than many passages.
const CHOICES: usize = 1024;
/// The mean length of a burst.
const BURST: u64 = 32;

/// The sessions of a thread's requests, drawn beforehand.
#[derive(Clone, Debug)]
pub(super) struct Agenda {
    sessions: Box<[u16; CHOICES]>,
    next: usize,
}

impl Agenda {
    /// The session of the next request.
    #[inline(always)]
    pub(super) fn draw(&mut self) -> u64 {
        let session = self.sessions[self.next % CHOICES];
        self.next = self.next.wrapping_add(1);
        u64::from(session)
    }
}

impl Workload {
    /// The requests of `thread`. They are the same for every lock in the same round.
    pub(super) fn agenda(&self, thread: usize, round: u64) -> Agenda {
        let mut sessions = Box::new([0; CHOICES]);
        // A number is below the number of threads or of sessions, so it fits.
        match self.sessions {
            Sessions::Own => sessions.fill(thread as u16 + 1),
            Sessions::Shared(count) => {
                let mut random = Random::new(round << 16 | thread as u64);
                let mut last = random.below(count);
                for (position, session) in sessions.iter_mut().enumerate() {
                    last = match self.choice {
                        Choice::ByThread => thread as u64 % count,
                        Choice::Zipf => zipf(count, &mut random),
                        Choice::Bursts if random.below(BURST) > 0 => last,
                        Choice::Uniform | Choice::Bursts => random.below(count),
                        Choice::Alternating => (position + thread) as u64 % count,
                    };
                    *session = last as u16;
                }
            }
        }
        Agenda { sessions, next: 0 }
    }

    /// Whether there are requests for session 0 and for others.
    pub(super) fn is_mixed(&self) -> bool {
        matches!(self.sessions, Sessions::Shared(2..))
    }

    /// The number of sessions and the choice between them, as a text.
    pub(super) fn sessions_text(&self) -> String {
        match self.sessions {
            Sessions::Own => "a session each".to_owned(),
            Sessions::Shared(1) => "1 session".to_owned(),
            Sessions::Shared(count) => format!("{count} sessions {}", self.choice.text()),
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Workload { threads, inside, outside, .. } = self;
        let plural = if *threads == 1 { "" } else { "s" };
        let (sessions, inside, outside) = (self.sessions_text(), inside.text(), outside.text());
        let busy = if self.busy { ", every core busy" } else { "" };
        write!(f, "{threads} thread{plural}, {sessions}, {inside} inside, {outside} outside{busy}")
    }
}

/// One of `count` numbers, the k-th with chances as 1/k.
fn zipf(count: u64, random: &mut Random) -> u64 {
    let weight = |rank: u64| 1.0 / (rank + 1) as f64;
    let mut left = random.fraction() * (0..count).map(weight).sum::<f64>();
    for rank in 0..count {
        left -= weight(rank);
        if left < 0.0 {
            return rank;
        }
    }
    // Only because of rounding.
    count - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(sessions: Sessions, choice: Choice, thread: usize) -> Vec<u64> {
        let (inside, outside) = (Length::Nothing, Length::Nothing);
        let workload = Workload { threads: 8, sessions, choice, inside, outside, busy: false };
        let mut agenda = workload.agenda(thread, 1);
        (0..CHOICES).map(|_| agenda.draw()).collect()
    }

    fn count(requests: &[u64], session: u64) -> usize {
        requests.iter().filter(|&&s| s == session).count()
    }

    #[test]
    fn a_session_of_ones_own_is_never_session_0() {
        assert!(requests(Sessions::Own, Choice::ByThread, 0).iter().all(|&session| session == 1));
        assert!(requests(Sessions::Own, Choice::Uniform, 6).iter().all(|&session| session == 7));
    }

    #[test]
    fn the_choices_are_what_they_say() {
        let four = Sessions::Shared(4);
        assert!(requests(four, Choice::ByThread, 5).iter().all(|&session| session == 1));
        let uniform = requests(four, Choice::Uniform, 0);
        assert!(
            (0..4).all(|session| (192..320).contains(&count(&uniform, session))),
            "{uniform:?}"
        );
        let zipf = requests(four, Choice::Zipf, 0);
        // 12/25, 6/25, 4/25 and 3/25 of 1024.
        for (session, expected) in [(0, 491), (1, 246), (2, 164), (3, 123)] {
            assert!(count(&zipf, session).abs_diff(expected) < 60, "{session} in {zipf:?}");
        }
        let alternating = requests(Sessions::Shared(2), Choice::Alternating, 1);
        assert_eq!(alternating[..4], [1, 0, 1, 0]);
        let bursts = requests(four, Choice::Bursts, 0);
        let changes = bursts.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!((8..64).contains(&changes), "{changes} changes");
    }

    #[test]
    fn the_requests_of_a_thread_do_not_depend_on_the_lock() {
        let four = Sessions::Shared(4);
        assert_eq!(requests(four, Choice::Uniform, 3), requests(four, Choice::Uniform, 3));
        assert_ne!(requests(four, Choice::Uniform, 3), requests(four, Choice::Uniform, 2));
    }
}
