//! What a paper claims for its algorithm, as data.
//!
//! A claim is the paper's statement; for a text of ours it is our own. If an exploration has shown
//! that a claim is false, the value is [`Claim::Refuted`], with the page of the counterexample.

use core::fmt;

/// One property of one algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Claim {
    /// The paper claims it.
    Yes,
    /// The paper claims it, and it is false; this page says why.
    Refuted(&'static str),
    /// The paper does not claim it.
    No,
    /// The property has no meaning for this kind of lock.
    NotApplicable,
}

impl Claim {
    /// What holds if both hold.
    #[must_use]
    pub const fn and(self, other: Claim) -> Self {
        match (self, other) {
            (Claim::Yes, other) => other,
            (mine, _) => mine,
        }
    }

    /// Whether the paper claims it, true or not.
    pub const fn is_claimed(self) -> bool {
        matches!(self, Claim::Yes | Claim::Refuted(_))
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Claim::Yes => "yes",
            Claim::Refuted(_) => "claimed, refuted",
            Claim::No => "no",
            Claim::NotApplicable => "-",
        })
    }
}

/// How a cost grows with the number of processes, N.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Growth {
    /// O(1)
    Constant,
    /// O(log N)
    Logarithmic,
    /// O(N)
    Linear,
    /// O(N²)
    Quadratic,
    /// There is no bound: the cost depends on how long others take.
    Unbounded,
    /// The sources do not say.
    NotStated,
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Growth::Constant => "O(1)",
            Growth::Logarithmic => "O(log N)",
            Growth::Linear => "O(N)",
            Growth::Quadratic => "O(N²)",
            Growth::Unbounded => "∞",
            Growth::NotStated => "?",
        })
    }
}

/// What a paper claims about a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    /// The growth it claims.
    pub claimed: Growth,
    /// Whether it bounds the mean cost of all requests, and not the cost of each.
    pub amortised: bool,
}

impl Bound {
    /// The bound that grows like this.
    pub const fn of(claimed: Growth) -> Self {
        Bound { claimed, amortised: false }
    }

    /// The same, amortised over requests.
    #[must_use]
    pub const fn amortised(self) -> Self {
        Bound { amortised: true, ..self }
    }

    /// The bound of a whole that consists of this part and `other`.
    #[must_use]
    pub fn and(self, other: Bound) -> Self {
        Bound {
            claimed: self.claimed.max(other.claimed),
            amortised: self.amortised || other.amortised,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.claimed.fmt(f)?;
        f.write_str(if self.amortised { " amortised" } else { "" })
    }
}

/// An atomic step beyond private computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Primitive {
    /// read
    Read,
    /// write
    Write,
    /// fetch-and-store
    FetchAndStore,
    /// compare-and-swap
    CompareAndSwap,
    /// fetch-and-add
    FetchAndAdd,
}

/// The problem an algorithm solves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One process at a time.
    Mutual,
    /// One session at a time.
    Group,
}

/// The largest number of processes an algorithm serves, or of sessions it can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// No limit; processes may join and leave.
    None,
    /// Fixed when the lock is made, at most this.
    Fixed(u64),
    /// Does not apply.
    NotApplicable,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::None => f.write_str("any"),
            Limit::Fixed(u64::MAX) => f.write_str("fixed"),
            Limit::Fixed(most) => write!(f, "≤ {most}"),
            Limit::NotApplicable => f.write_str("-"),
        }
    }
}

/// When a process has to wait in its entry section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entering {
    /// Bounded entry, for a mutex. While no process is in its critical section or exit section,
    /// some process can enter by a bounded number of its own steps. No lock by reads and writes
    /// alone has this.
    pub bounded: Claim,
    /// CO. While no process requests another session, every process that requests enters, even if
    /// none leaves.
    pub concurrent_occupancy: Claim,
    /// CE. While no process requests another session, a process enters by a bounded number of its
    /// own steps.
    pub concurrent_entering: Claim,
    /// GCE. As CO, and at any time some process can enter by a bounded number of its own steps.
    pub group_concurrent_entering: Claim,
    /// SGCE. As GCE, but it is enough that no process of another session arrived before the end of
    /// the doorway.
    pub strong_group_concurrent_entering: Claim,
    /// SCE. As CE, but it is enough that all processes of another session began their doorways
    /// after the process had finished its own.
    pub strong_concurrent_entering: Claim,
}

/// When a process has to wait in its exit section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exit {
    /// A process that leaves finishes its exit section.
    pub terminating: Claim,
    /// GBE. Every process finishes its exit section, and at any time some process does so by a
    /// bounded number of its own steps.
    pub group_bounded: Claim,
    /// BE. A process leaves by a bounded number of its own steps. Also called a wait-free exit.
    pub bounded: Claim,
}

/// Where a program text is. A trace can print a line of it, and the paper's number for that line,
/// which is the comment at the end of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Text {
    /// The file's name, as in [`core::panic::Location::file`].
    pub file: &'static str,
    /// Its contents.
    pub contents: &'static str,
    /// The other files of the same text, if it is one of several.
    pub parts: &'static [Text],
}

impl Text {
    /// The text that is the file of this name, with these contents.
    pub const fn new(file: &'static str, contents: &'static str) -> Self {
        Text { file, contents, parts: &[] }
    }

    /// All files of the text, this one first.
    pub fn files(self) -> impl Iterator<Item = Text> {
        core::iter::once(self).chain(self.parts.iter().copied())
    }

    /// The paper's line number or numbers beside line `line` of this file (counted from one), if it
    /// has any: the number or range that opens the comment at the line's end.
    ///
    /// ```
    /// use grouplock_algorithms::claims::Text;
    ///
    /// let text = Text::new("x.rs", "a(); // 3\nb();\nc(); // 4-5: both\nd(); // or 6\n");
    /// assert_eq!(text.paper_line(1), Some("3"));
    /// assert_eq!(text.paper_line(2), None);
    /// assert_eq!(text.paper_line(3), Some("4-5"));
    /// assert_eq!(text.paper_line(4), None);
    /// ```
    pub fn paper_line(&self, line: u32) -> Option<&'static str> {
        let line = self.contents.lines().nth(line.checked_sub(1)? as usize)?;
        let (_, comment) = line.rsplit_once("// ")?;
        let number =
            comment.split(|c: char| !c.is_ascii_digit() && c != '-').next()?.trim_end_matches('-');
        number.starts_with(|c: char| c.is_ascii_digit()).then_some(number)
    }
}

/// All claims of a paper about its algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Claims {
    /// The name used on the command line, such as `dvir-taubenfeld-1`.
    pub name: &'static str,
    /// Its authors and its publication.
    pub source: &'static str,
    /// Its program text in this crate.
    pub text: Text,
    /// The problem it solves.
    pub kind: Kind,
    /// No two sessions (or, for a mutex, no two processes) are inside at once.
    pub mutual_exclusion: Claim,
    /// If a process tries to enter, some process enters.
    pub deadlock_freedom: Claim,
    /// Every process that tries to enter does enter.
    pub starvation_freedom: Claim,
    /// First come, first served: of two conflicting requests, if one's doorway ended before the
    /// other's began, it enters first. Withdrawn requests do not count.
    pub fcfs: Claim,
    /// For a mutex, strong FIFO: the process that finishes its doorway first enters first.
    pub strong_fifo: Claim,
    /// First in, first enabled: the same for two requests for one session.
    pub fife: Claim,
    /// The entry section.
    pub entering: Entering,
    /// The exit section.
    pub exit: Exit,
    /// GBA, if waiters can withdraw. Every withdrawal ends, and while a process withdraws, some
    /// process can complete what it does by a bounded number of its own steps. It does not apply if
    /// no process can withdraw.
    pub group_bounded_abort: Claim,
    /// Remote memory references per passage on a machine with coherent caches.
    pub rmr_cc: Bound,
    /// The same on a machine with distributed shared memory.
    pub rmr_dsm: Bound,
    /// Shared memory in all.
    pub space: Growth,
    /// The atomic steps it takes.
    pub primitives: &'static [Primitive],
    /// How many processes.
    pub processes: Limit,
    /// How many sessions.
    pub sessions: Limit,
    /// Whether every register holds values from a set that is known in advance.
    pub bounded_registers: Claim,
}

impl Claims {
    /// What the sources of all mutexes claim, and what does not apply to a mutex.
    pub const MUTEX: Claims = Claims {
        name: "",
        source: "",
        text: Text::new("", ""),
        kind: Kind::Mutual,
        mutual_exclusion: Claim::Yes,
        deadlock_freedom: Claim::Yes,
        starvation_freedom: Claim::No,
        fcfs: Claim::No,
        strong_fifo: Claim::No,
        fife: Claim::NotApplicable,
        entering: Entering::alone(Claim::No),
        exit: Exit::TERMINATING,
        group_bounded_abort: Claim::NotApplicable,
        rmr_cc: Bound::of(Growth::NotStated),
        rmr_dsm: Bound::of(Growth::NotStated),
        space: Growth::NotStated,
        primitives: &[],
        processes: Limit::None,
        sessions: Limit::NotApplicable,
        bounded_registers: Claim::No,
    };

    /// What the sources of all group locks claim, and what does not apply to a group lock.
    pub const GROUP: Claims = Claims {
        kind: Kind::Group,
        strong_fifo: Claim::NotApplicable,
        fife: Claim::No,
        entering: Entering::ROUNDS,
        sessions: Limit::None,
        ..Claims::MUTEX
    };

    /// The largest session that can be requested.
    pub const fn largest_session(&self) -> u64 {
        match self.sessions {
            Limit::Fixed(largest) => largest,
            Limit::None | Limit::NotApplicable => u64::MAX,
        }
    }
}

impl Entering {
    /// For locks that admit one process at a time, with or without bounded entry.
    pub const fn alone(bounded: Claim) -> Self {
        Entering {
            bounded,
            concurrent_occupancy: Claim::NotApplicable,
            concurrent_entering: Claim::NotApplicable,
            group_concurrent_entering: Claim::NotApplicable,
            strong_group_concurrent_entering: Claim::NotApplicable,
            strong_concurrent_entering: Claim::NotApplicable,
        }
    }

    /// None of them: a late process waits for the next round.
    pub const ROUNDS: Self = Entering {
        bounded: Claim::NotApplicable,
        concurrent_occupancy: Claim::No,
        concurrent_entering: Claim::No,
        group_concurrent_entering: Claim::No,
        strong_group_concurrent_entering: Claim::No,
        strong_concurrent_entering: Claim::No,
    };

    /// Only CO.
    pub const OCCUPANCY: Self = Entering { concurrent_occupancy: Claim::Yes, ..Entering::ROUNDS };

    /// CE, and so CO and GCE, which it implies.
    pub const CONCURRENT: Self = Entering {
        concurrent_entering: Claim::Yes,
        group_concurrent_entering: Claim::Yes,
        ..Entering::OCCUPANCY
    };

    /// SGCE, and so CO and GCE, which it implies.
    pub const STRONG_GROUP: Self = Entering {
        group_concurrent_entering: Claim::Yes,
        strong_group_concurrent_entering: Claim::Yes,
        ..Entering::OCCUPANCY
    };
}

impl Exit {
    /// Wait-free, which implies the rest.
    pub const BOUNDED: Self =
        Exit { terminating: Claim::Yes, group_bounded: Claim::Yes, bounded: Claim::Yes };

    /// For an exit section that acquires `lock`. It ends if every process gets the lock. It is
    /// group bounded if the lock also has bounded entry and bounded exit (Maor and Taubenfeld 2021,
    /// section 3.1).
    pub const fn through(lock: &Claims) -> Self {
        let terminating = lock.starvation_freedom;
        let group_bounded = terminating.and(lock.entering.bounded).and(lock.exit.bounded);
        Exit { terminating, group_bounded, bounded: Claim::No }
    }

    /// Only terminating.
    pub const TERMINATING: Self =
        Exit { terminating: Claim::Yes, group_bounded: Claim::No, bounded: Claim::No };
}
