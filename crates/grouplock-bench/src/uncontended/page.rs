//! The report.

use core::fmt;

use crate::machine;
use crate::program::table;
use crate::uncontended::rounds::{Plan, Times};
use crate::uncontended::subjects::{
    BY_HAND, BY_HAND_RAW, FEW, HANDOVER, HANDOVER_RAW, MANY, NOTHING, STD_MUTEX, Subject,
};

/// What one run has found. Displayed, it is the complete page.
///
/// Every figure in its sentences is taken from the run.
#[derive(Clone, Copy, Debug)]
pub struct Page<'r> {
    /// How much was measured.
    pub plan: Plan,
    /// What was measured.
    pub subjects: &'r [Subject],
    /// What it took.
    pub times: &'r Times,
    /// Instructions per passage of each subject, if they were counted.
    pub counts: Option<&'r [f64]>,
}

/// What stands where a figure is missing.
const NONE: &str = "–";

impl fmt::Display for Page<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.method(f)?;
        writeln!(f, "\n## Figures\n\n{}", self.table())?;
        writeln!(f, "## What to read from them\n")?;
        self.the_trait(f)?;
        self.handle_and_peers(f)?;
        self.growth(f)
    }
}

impl Page<'_> {
    /// The figures of every subject, as a table in Markdown.
    pub fn table(&self) -> String {
        let ratio = format!("× `{STD_MUTEX}`");
        let rows = self.subjects.iter().enumerate().map(|(at, subject)| {
            let Subject { name, way, processes, .. } = subject;
            let processes = processes.map_or_else(|| NONE.to_owned(), |n| n.to_string());
            let ns = format!("{:.1}", self.times.nanoseconds(at));
            let (ratio, count) = (self.ratio(name, STD_MUTEX), self.count_of(name));
            [name.clone(), (*way).to_owned(), processes, ns, ratio, count]
        });
        table(&["lock", "through", "made for", "ns", &ratio, "instructions"], rows)
    }

    fn method(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { rounds, passages } = self.plan;
        let machine = machine::told();
        write!(
            f,
            "\
# What an uncontended passage costs

*For whoever studies locks.*

One process enters a lock and leaves it again, and no other is there. This is what a lock costs when it is
not needed, which for most locks is most of the time. It says nothing about waiting.

## How it was measured

* On {machine}. The figures are those of a single run.
* {rounds} rounds. In each, every lock has one turn of {passages} passages, and each round begins with
  another lock, so that a disturbance hits all of them alike. There was a turn for each to warm up.
* A figure is the median over the rounds, with the quartiles in parentheses. A ratio is
  taken within each round first. Ratios carry over to other machines better than nanoseconds do.
* Locks made for a fixed number of processes are measured for {FEW} and for {MANY} of them: their cost grows with it.
* `{NOTHING}` is the loop itself, which is part of every figure.
* Instructions are counted by callgrind, in runs of their own: the difference between two runs of different length,
  divided by the difference in passages. A count has no noise, but an atomic instruction counts as one
  although it takes as long as many others.

To repeat it: `cargo run --release -p grouplock-bench --bin uncontended -- --instructions --out FILE`
"
        )
    }

    fn the_trait(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\
**What the memory trait costs.** `{HANDOVER}` is written once for every kind of memory; `{BY_HAND}` is the same
algorithm straight on the atomics of `core`, as one would write it for this machine only.

| through | generic ÷ by hand | instructions, generic | instructions, by hand |
|---|---|---|---|"
        )?;
        for (way, generic, by_hand) in
            [("raw", HANDOVER_RAW, BY_HAND_RAW), ("handle", HANDOVER, BY_HAND)]
        {
            let ratio = self.ratio(generic, by_hand);
            let (generic, by_hand) = (self.count_of(generic), self.count_of(by_hand));
            writeln!(f, "| {way} | {ratio} | {generic} | {by_hand} |")?;
        }
        let verdict = match (
            self.same_count(HANDOVER_RAW, BY_HAND_RAW),
            self.same_count(HANDOVER, BY_HAND),
        ) {
            (Some(true), Some(true)) => {
                "The counts are equal: the trait is gone when the compiler is done, and what is left between\n\
                 the times is noise and where things happen to lie in memory."
            }
            (Some(_), Some(_)) => "The counts differ, so the trait is not free here.",
            _ => "Instructions were not counted in this run.",
        };
        writeln!(f, "\n{verdict}\n")
    }

    fn handle_and_peers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\
**What the handle costs.** Through the handle, which checks the session and that the process has left its last
passage, `{HANDOVER}` takes {} times as long as without: {} instructions instead of {}.
Part of that is no check but the compiler's choice of what to inline into a loop and what to call.

**What the order costs.** `{HANDOVER}` takes {} times as long as a `std::sync::Mutex`. Alone, it executes five
atomic read-modify-write instructions, two to enter and three to leave (two of these for its exit lock), where
the mutex executes two. They buy what the mutex does not have: sessions, first come first served, and waiting
on a word of one's own.
",
            self.ratio(HANDOVER, HANDOVER_RAW),
            self.count_of(HANDOVER),
            self.count_of(HANDOVER_RAW),
            self.ratio(HANDOVER, STD_MUTEX),
        )
    }

    fn growth(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\
**What room for more processes costs.** A lock of a fixed size looks at every place, taken or not. Its passage
when made for {MANY} processes, compared to {FEW}:

| lock | time | instructions |
|---|---|---|"
        )?;
        let many = |subject: &&Subject| subject.processes == Some(MANY);
        for Subject { name, .. } in self.subjects.iter().filter(many) {
            let lock = name.trim_end_matches(&format!("-{MANY}"));
            let few = format!("{lock}-{FEW}");
            let ratio = self.ratio(name, &few);
            let (before, after) = (self.count_of(&few), self.count_of(name));
            writeln!(f, "| {lock} | × {ratio} | {before} → {after} |")?;
        }
        Ok(())
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.subjects.iter().position(|subject| subject.name == name)
    }

    fn ratio(&self, subject: &str, peer: &str) -> String {
        let pair = self.index(subject).zip(self.index(peer));
        pair.map_or_else(
            || NONE.to_owned(),
            |(subject, peer)| format!("{:.2}", self.times.ratio(subject, peer)),
        )
    }

    fn count(&self, name: &str) -> Option<f64> {
        self.counts?.get(self.index(name)?).copied()
    }

    fn count_of(&self, name: &str) -> String {
        self.count(name).map_or_else(|| NONE.to_owned(), |count| format!("{count:.0}"))
    }

    /// Whether two subjects execute the same number of instructions, if that was counted. Reading a
    /// longer number from the arguments leaves a trace far behind the point, hence the rounding.
    fn same_count(&self, one: &str, other: &str) -> Option<bool> {
        let (one, other) = self.count(one).zip(self.count(other))?;
        Some((one - other).abs() < 0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_only_what_was_counted() {
        let mut subjects = crate::uncontended::subjects::all().unwrap();
        let plan = Plan { rounds: 1, passages: 2 };
        let times = plan.run(&mut subjects);
        let mut counts = vec![5.0; subjects.len()];
        let verdict = |counts: Option<&[f64]>| {
            let page = Page { plan, subjects: &subjects, times: &times, counts }.to_string();
            ["were not counted", "counts are equal", "counts differ"]
                .map(|word| page.contains(word))
        };
        assert_eq!(verdict(None), [true, false, false]);
        assert_eq!(verdict(Some(&counts)), [false, true, false]);
        let by_hand = subjects.iter().position(|subject| subject.name == BY_HAND).unwrap();
        counts[by_hand] = 4.0;
        assert_eq!(verdict(Some(&counts)), [false, false, true]);
    }
}
