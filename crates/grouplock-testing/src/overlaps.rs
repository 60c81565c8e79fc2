//! Checks whether two sessions were inside together, from what the visitors recorded. The lock
//! under test has no part in it.
//!
//! Each visitor, mostly a process, has a [`Page`] in the [`Ledger`], a directory that the test and
//! its processes share. It records when it is inside, by a clock that all processes of the machine
//! share. A recorded stay begins after the visitor was admitted and ends before it began to leave,
//! so it is never longer than the real one.
//!
//! A stay without a recorded end is *open*. It may be over: a process that was stopped, or has no
//! core on a busy machine, writes late. So [`Ledger::check`] does not judge open stays. It waits
//! until the visitor has written the end, or until the test has written that the visitor is
//! [dead](Ledger::kill). A stay that is open for too long is an error.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub type Nanos = u64;

/// Now, by a clock that all processes of the machine share.
///
/// # Panics
/// If the system has no such clock.
pub fn now() -> Nanos {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("this clock is always there");
    Duration::from(time).as_nanos() as Nanos
}

/// A stay that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stay {
    /// Whose.
    pub who: String,
    /// In which session.
    pub session: String,
    /// With which epoch.
    pub epoch: u64,
    /// It was certainly inside since then …
    pub from: Nanos,
    /// … and until then. If this is before `from`, it was admitted too late, and was never
    /// certainly inside.
    pub to: Nanos,
}

/// All violations: two sessions together, holders of one phase with different epochs (they would
/// fence each other out), an epoch with two sessions, a later phase with a smaller epoch.
pub fn contradictions<'s>(stays: impl IntoIterator<Item = &'s Stay>) -> Vec<String> {
    let mut stays: Vec<&Stay> = stays.into_iter().filter(|stay| stay.from <= stay.to).collect();
    stays.sort_by_key(|stay| stay.from);
    let mut found = Vec::new();
    let mut inside: Vec<&Stay> = Vec::new();
    // The ended stay with the largest epoch.
    let mut ended: Option<&Stay> = None;
    for new in stays {
        inside.retain(|old| {
            let stays = old.to > new.from;
            if !stays && ended.is_none_or(|latest| latest.epoch < old.epoch) {
                ended = Some(old);
            }
            stays
        });
        for old in &inside {
            if old.session != new.session {
                found.push(format!("two sessions at once: {old:?} and {new:?}"));
            } else if old.epoch != new.epoch {
                found.push(format!("two epochs at once: {old:?} and {new:?}"));
            }
        }
        if let Some(old) = ended {
            if new.epoch < old.epoch {
                found.push(format!("the epoch went back: {old:?}, then {new:?}"));
            } else if new.epoch == old.epoch && new.session != old.session {
                found.push(format!("two sessions with one epoch: {old:?} and {new:?}"));
            }
        }
        inside.push(new);
    }
    found
}

/// The records of all visitors. Each test and each of its processes opens it by the same path.
#[derive(Clone, Debug)]
pub struct Ledger {
    directory: PathBuf,
}

/// The content of the ledger at some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The stays that are over.
    pub over: Vec<Stay>,
    /// The open stays. Their `to` is their `from`.
    pub open: Vec<Stay>,
}

impl Ledger {
    /// Opens the ledger. Makes the directory if it does not exist.
    ///
    /// # Panics
    /// If the directory cannot be made.
    pub fn open(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        fs::create_dir_all(&directory).expect("the ledger's directory can be made");
        Ledger { directory }
    }

    /// The page of one visitor. Its name must be a valid file name. No other process writes on it
    /// while the visitor lives.
    ///
    /// # Panics
    /// If the file cannot be opened.
    pub fn page(&self, who: &str) -> Page {
        let file = File::options().create(true).append(true).open(self.directory.join(who));
        Page(file.expect("the page can be opened"))
    }

    /// Kills a visitor and records its death. `kill` returns when the process is reaped. An open
    /// stay ends just before the call of `kill`: that is the last moment at which the visitor was
    /// certainly inside.
    ///
    /// # Panics
    /// If the page cannot be written.
    pub fn kill<T>(&self, who: &str, kill: impl FnOnce() -> T) -> T {
        let alive = now();
        let killed = kill();
        let mut page = self.page(who);
        // A process that is killed during a write leaves an incomplete line.
        let text = self.text(who);
        page.0.set_len(whole(&text).len() as u64).expect("the page can be written");
        page.write(&format!("died {alive}\n"));
        killed
    }

    /// Reads all pages.
    ///
    /// # Errors
    /// If it makes no sense.
    ///
    /// # Panics
    /// If the files cannot be read.
    pub fn read(&self) -> Result<Written, String> {
        let mut written = Written::default();
        for page in fs::read_dir(&self.directory).expect("the ledger can be read") {
            let page = page.expect("the ledger can be read");
            let who = page.file_name().to_string_lossy().into_owned();
            let text = self.text(&who);
            let read = read_page(&who, whole(&text), &mut written);
            read.map_err(|line| format!("{who} wrote {line:?}"))?;
        }
        Ok(written)
    }

    fn text(&self, who: &str) -> String {
        let bytes = fs::read(self.directory.join(who)).expect("the page can be read");
        // An incomplete line may end in the middle of a character.
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The visitors that entered after `time`.
    ///
    /// # Panics
    /// If the ledger cannot be read or makes no sense.
    pub fn entered_since(&self, time: Nanos) -> BTreeSet<String> {
        let Written { over, open } = self.read().unwrap_or_else(|wrong| panic!("{wrong}"));
        let new = over.into_iter().chain(open).filter(|stay| stay.from > time);
        new.map(|stay| stay.who).collect()
    }

    /// Waits until every stay that is recorded now is over, and judges all ended stays. Returns
    /// their number. A stay that began meanwhile and is still open is left to the next check.
    ///
    /// # Errors
    /// Everything that contradicts the promises, or which stays are still open after `patience`.
    ///
    /// # Panics
    /// If the files cannot be read.
    pub fn check(&self, patience: Duration) -> Result<usize, String> {
        let deadline = Instant::now() + patience;
        let mut written = self.read()?;
        let begun = written.open.clone();
        loop {
            let open: Vec<_> = written.open.iter().filter(|stay| begun.contains(stay)).collect();
            let late = !open.is_empty() && Instant::now() >= deadline;
            if late || open.is_empty() {
                let mut wrong = contradictions(&written.over);
                wrong.extend(open.iter().map(|stay| {
                    format!("after {patience:?} still open, and not known to be dead: {stay:?}")
                }));
                return if wrong.is_empty() {
                    Ok(written.over.len())
                } else {
                    Err(wrong.join("\n"))
                };
            }
            std::thread::sleep(Duration::from_millis(5));
            written = self.read()?;
        }
    }
}

/// The complete lines. The text after the last of them is still being written, or never will be.
fn whole(text: &str) -> &str {
    text.rfind('\n').map_or("", |end| &text[..=end])
}

/// Adds the stays of a page. An error is a line that makes no sense.
fn read_page(who: &str, text: &str, written: &mut Written) -> Result<(), String> {
    let mut open: Option<Stay> = None;
    for line in text.lines() {
        match (read_line(line), open.take()) {
            (Some(Line::Enter { at, epoch, session }), None) => {
                let (who, session) = (who.to_owned(), session.to_owned());
                open = Some(Stay { who, session, epoch, from: at, to: at });
            }
            (Some(Line::Leave { at }), Some(stay)) => written.over.push(Stay { to: at, ..stay }),
            // It was alive when it wrote that it was inside.
            (Some(Line::Died { at }), Some(stay)) => {
                written.over.push(Stay { to: at.max(stay.from), ..stay });
            }
            (Some(Line::Died { .. }), None) => {}
            _ => return Err(line.to_owned()),
        }
    }
    written.open.extend(open);
    Ok(())
}

enum Line<'l> {
    Enter { at: Nanos, epoch: u64, session: &'l str },
    Leave { at: Nanos },
    Died { at: Nanos },
}

fn read_line(line: &str) -> Option<Line<'_>> {
    let (what, rest) = line.split_once(' ')?;
    match what {
        "enter" => {
            let (at, rest) = rest.split_once(' ')?;
            let (epoch, session) = rest.split_once(' ')?;
            Some(Line::Enter { at: at.parse().ok()?, epoch: epoch.parse().ok()?, session })
        }
        "leave" => Some(Line::Leave { at: rest.parse().ok()? }),
        "died" => Some(Line::Died { at: rest.parse().ok()? }),
        _ => None,
    }
}

/// The records of one visitor.
#[derive(Debug)]
pub struct Page(File);

impl Page {
    /// The visitor is inside since `at`. Call this with a time that was read after its admission.
    ///
    /// # Panics
    /// If the page cannot be written.
    pub fn enter(&mut self, at: Nanos, session: &str, epoch: u64) {
        assert!(!session.contains('\n'), "the name of a session is one line");
        self.write(&format!("enter {at} {epoch} {session}\n"));
    }

    /// The visitor was inside until `at`. After that it begins to leave, or has lost its holding.
    ///
    /// # Panics
    /// If the page cannot be written.
    pub fn leave(&mut self, at: Nanos) {
        self.write(&format!("leave {at}\n"));
    }

    fn write(&mut self, line: &str) {
        // One call: a reader finds a complete line, or an incomplete last one.
        let done: io::Result<()> = self.0.write_all(line.as_bytes());
        done.expect("the page can be written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stay(who: &str, session: &str, epoch: u64, from: Nanos, to: Nanos) -> Stay {
        Stay { who: who.to_owned(), session: session.to_owned(), epoch, from, to }
    }

    fn verdict(stays: &[Stay]) -> String {
        contradictions(stays).join("\n")
    }

    #[test]
    fn a_good_history_has_no_contradictions() {
        let good = [
            stay("0", "a", 5, 10, 20),
            stay("1", "a", 5, 12, 30),
            stay("2", "b", 7, 30, 40),
            stay("3", "a", 8, 45, 50),
            // Admitted too late: its lease had expired.
            stay("4", "a", 5, 47, 33),
        ];
        assert_eq!(verdict(&good), "");
    }

    #[test]
    fn two_sessions_at_once_are_found() {
        let bad = [stay("0", "a", 5, 10, 20), stay("1", "a", 5, 10, 12), stay("2", "b", 7, 19, 40)];
        assert!(verdict(&bad).contains("two sessions at once: Stay { who: \"0\""), "{bad:?}");
    }

    #[test]
    fn somebody_inside_for_a_moment_only_is_found() {
        let bad = [stay("0", "a", 5, 10, 20), stay("1", "b", 7, 19, 19)];
        assert!(verdict(&bad).contains("two sessions at once"), "{bad:?}");
    }

    #[test]
    fn a_long_stay_is_not_forgotten_behind_short_ones() {
        let mut bad: Vec<Stay> =
            (0..50).map(|i| stay("1", "a", 5, 100 + i * 10, 105 + i * 10)).collect();
        bad.push(stay("0", "a", 5, 90, 1000));
        bad.push(stay("2", "b", 7, 999, 1001));
        assert!(verdict(&bad).contains("two sessions at once: Stay { who: \"0\""));
    }

    #[test]
    fn epochs_that_differ_within_a_phase_are_found() {
        let bad = [stay("0", "a", 5, 10, 20), stay("1", "a", 6, 15, 30)];
        assert!(verdict(&bad).contains("two epochs at once"));
    }

    #[test]
    fn an_epoch_that_goes_back_is_found() {
        let bad = [stay("0", "a", 5, 10, 20), stay("1", "b", 9, 20, 30), stay("2", "a", 8, 30, 40)];
        assert!(verdict(&bad).contains("the epoch went back"));
    }

    #[test]
    fn an_epoch_with_two_sessions_is_found() {
        let bad = [stay("0", "a", 5, 10, 20), stay("1", "b", 5, 20, 30)];
        assert!(verdict(&bad).contains("two sessions with one epoch"));
    }

    #[test]
    fn an_overlap_in_the_ledger_is_found() {
        let scratch = crate::Scratch::new();
        let ledger = &Ledger::open(scratch.path().to_owned());
        let (mut first, mut second) = (ledger.page("first"), ledger.page("second"));
        first.enter(10, "model A", 5);
        second.enter(20, "größer", 6);
        first.leave(21);
        second.leave(30);
        let wrong = ledger.check(Duration::ZERO).expect_err("they overlap");
        assert!(wrong.starts_with("two sessions at once"), "{wrong}");
        assert!(wrong.contains("model A") && wrong.contains("größer"), "{wrong}");
        assert_eq!(ledger.entered_since(15), BTreeSet::from(["second".to_owned()]));
    }

    #[test]
    fn an_open_stay_is_not_judged_but_counted_apart() {
        let scratch = crate::Scratch::new();
        let ledger = &Ledger::open(scratch.path().to_owned());
        let (mut first, mut second) = (ledger.page("first"), ledger.page("second"));
        // It was stopped inside, and has lost its holding. It will record that when it continues.
        first.enter(10, "a", 5);
        second.enter(30, "b", 6);
        second.leave(40);
        let wrong = ledger.check(Duration::from_millis(20)).expect_err("it is still open");
        assert!(wrong.starts_with("after 20ms still open, and not known to be dead"), "{wrong}");
        assert!(wrong.contains("who: \"first\"") && !wrong.contains("sessions"), "{wrong}");
        std::thread::scope(|scope| {
            let check = scope.spawn(|| ledger.check(Duration::from_secs(60)));
            // Nothing depends on whether the check has begun by then; mostly it has.
            std::thread::sleep(Duration::from_millis(20));
            first.leave(20);
            assert_eq!(check.join().expect("no panic"), Ok(2));
        });
    }

    #[test]
    fn a_stay_that_began_during_the_check_is_left_to_the_next() {
        let scratch = crate::Scratch::new();
        let ledger = &Ledger::open(scratch.path().to_owned());
        let mut page = ledger.page("first");
        page.enter(10, "a", 5);
        std::thread::scope(|scope| {
            let check = scope.spawn(|| ledger.check(Duration::from_secs(60)));
            // Whichever stay the check finds open, another one is open when that one ends.
            let mut time = 10;
            while !check.is_finished() {
                page.leave(time + 1);
                page.enter(time + 2, "a", 5);
                time += 2;
                std::thread::sleep(Duration::from_millis(1));
            }
            check.join().expect("no panic").expect("nothing is wrong");
        });
        assert_eq!(ledger.read().expect("it makes sense").open.len(), 1);
    }

    #[test]
    fn an_open_stay_of_a_dead_process_ends_with_its_death() {
        let scratch = crate::Scratch::new();
        let ledger = &Ledger::open(scratch.path().to_owned());
        let before = now();
        ledger.page("victim").enter(before, "a", 5);
        let mut heir = ledger.page("heir");
        let during = ledger.kill("victim", || {
            // Some rooms admit the next process as soon as the holder is dead, before it is reaped.
            let during = now();
            heir.enter(during, "b", 6);
            during
        });
        heir.leave(now());
        assert_eq!(ledger.check(Duration::ZERO), Ok(2));
        let over = ledger.read().expect("it makes sense").over;
        let victim = over.iter().find(|stay| stay.who == "victim").expect("it is there");
        assert!((before..during).contains(&victim.to), "{victim:?}");
        // A visitor that entered while the victim was certainly inside is found.
        let mut early = ledger.page("early");
        early.enter(before, "b", 6);
        early.leave(now());
        let wrong = ledger.check(Duration::ZERO).expect_err("they overlap");
        assert!(wrong.contains("two sessions at once"), "{wrong}");
    }

    #[test]
    fn a_line_that_was_torn_by_a_kill_is_not_read() {
        let scratch = crate::Scratch::new();
        let ledger = &Ledger::open(scratch.path().to_owned());
        let mut page = ledger.page("victim");
        page.enter(10, "a", 5);
        page.write("leave 1");
        assert_eq!(ledger.read().expect("it is being written").open.len(), 1);
        ledger.kill("victim", || ());
        let Written { over, open } = ledger.read().expect("nothing is left of that line");
        assert_eq!((over.len(), open.len()), (1, 0));
        assert!(over[0].to > 10, "{over:?}");
        page.write("nonsense\n");
        let wrong = ledger.check(Duration::ZERO).expect_err("it makes no sense");
        assert_eq!(wrong, "victim wrote \"nonsense\"");
    }

    #[test]
    fn entering_twice_makes_no_sense() {
        let scratch = crate::Scratch::new();
        let ledger = Ledger::open(scratch.path().to_owned());
        let mut page = ledger.page("visitor");
        page.enter(10, "a", 5);
        page.enter(20, "a", 5);
        let wrong = ledger.check(Duration::ZERO).expect_err("it makes no sense");
        assert_eq!(wrong, "visitor wrote \"enter 20 5 a\"");
    }
}
