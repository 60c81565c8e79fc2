//! Reads the output of a libtest program while it runs.
//!
//! With several threads libtest names a test when it has ended, or when it has run for 60 seconds.
//! With one thread it names it when it starts, on a line that the result ends. Both are enough to
//! know which tests take too long.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// After this time libtest reports a slow test.
const SPEAKS_UP: Duration = Duration::from_secs(60);

/// Reads the output, and knows which tests are late.
pub(crate) struct Watch {
    /// How long a test may take. It must be at least the time of libtest's report.
    limit: Duration,
    /// The last line, if it is incomplete.
    line: String,
    /// The known running tests, and when they started.
    running: BTreeMap<String, Instant>,
    /// The closing lines: "test result: ok. 3 passed; …".
    pub(crate) closing: Vec<String>,
}

impl Watch {
    pub(crate) fn new(limit: Duration) -> Self {
        let limit = limit.max(SPEAKS_UP);
        Watch { limit, line: String::new(), running: BTreeMap::new(), closing: Vec::new() }
    }

    /// Reads the new output. Returns the late tests, if there are any.
    pub(crate) fn read(&mut self, text: &str, now: Instant) -> Option<String> {
        for piece in text.split_inclusive('\n') {
            self.line.push_str(piece);
            if self.line.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                self.line(line.trim_end(), now);
            }
        }
        // With one thread: the name of a test that has just started, without a result.
        if let Some(name) = self.line.strip_prefix("test ").and_then(|l| l.strip_suffix(" ... ")) {
            self.running.entry(plain(name).to_owned()).or_insert(now);
        }
        let late = self.running.iter().filter(|(_, start)| now - **start > self.limit);
        let late: Vec<_> = late.map(|(name, _)| format!("`{name}`")).collect();
        let limit = self.limit.as_secs();
        (!late.is_empty()).then(|| format!("{} ran for over {limit} seconds", late.join(", ")))
    }

    fn line(&mut self, line: &str, now: Instant) {
        if line.starts_with("test result: ") {
            self.closing.push(line.to_owned());
        } else if let Some(rest) = line.strip_prefix("test ") {
            if let Some((name, _)) = rest.split_once(" has been running for over ") {
                let start = now.checked_sub(SPEAKS_UP).unwrap_or(now);
                self.running.entry(plain(name).to_owned()).or_insert(start);
            } else if let Some((name, _)) = rest.rsplit_once(" ... ") {
                self.running.remove(plain(name));
            }
        }
    }
}

/// The name of a test, without libtest's remarks.
fn plain(name: &str) -> &str {
    let marks = [" - should panic", " - compile fail", " - compile"];
    marks.iter().find_map(|mark| name.strip_suffix(mark)).unwrap_or(name)
}

/// How many tests ran, by the closing lines.
pub(crate) fn ran(output: &str) -> u32 {
    let number = |closing: &str, what: &str| {
        let before = closing.split_once(what)?.0;
        before.rsplit(' ').find(|word| !word.is_empty())?.parse::<u32>().ok()
    };
    let closing = output.lines().filter(|line| line.starts_with("test result: "));
    let both = |line| [number(line, " passed"), number(line, " failed")];
    closing.flat_map(both).flatten().sum()
}

/// Whether tests were to run, even if the program died before its closing line.
pub(crate) fn started(output: &str) -> bool {
    let mut lines = output.lines().filter_map(|line| line.strip_prefix("running "));
    lines.any(|rest| rest.ends_with(" test") || rest.ends_with(" tests") && rest != "0 tests")
}

/// Whether a test ran that `argument` names. Options name none.
pub(crate) fn ran_one_of(output: &str, argument: &str) -> bool {
    let mut tests = output.lines().filter_map(|line| line.strip_prefix("test "));
    argument.starts_with('-') || tests.any(|test| test.contains(argument))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(100);

    fn watch() -> (Watch, Instant) {
        (Watch::new(LIMIT), Instant::now())
    }

    #[test]
    fn a_test_that_libtest_warned_of_is_late_at_its_limit() {
        let (mut watch, start) = watch();
        let said =
            "running 2 tests\ntest a ... ok\ntest b::c has been running for over 60 seconds\n";
        assert_eq!(watch.read(said, start), None);
        assert_eq!(watch.read("", start + Duration::from_secs(39)), None);
        let late = watch.read("", start + Duration::from_secs(41));
        assert_eq!(late.as_deref(), Some("`b::c` ran for over 100 seconds"));
    }

    #[test]
    fn a_test_that_ends_in_time_is_not_late() {
        let (mut watch, start) = watch();
        let warned = "test b has been running for over 60 seconds\n";
        assert_eq!(watch.read(warned, start), None);
        assert_eq!(watch.read("test b - should pa", start + Duration::from_secs(20)), None);
        assert_eq!(watch.read("nic ... ok\n", start + Duration::from_secs(30)), None);
        assert_eq!(watch.read("", start + Duration::from_secs(500)), None);
    }

    #[test]
    fn with_one_thread_a_test_without_a_result_is_late() {
        let (mut watch, start) = watch();
        assert_eq!(watch.read("running 2 tests\ntest a ... ok\ntest b ... ", start), None);
        let late = watch.read("", start + Duration::from_secs(101));
        assert_eq!(late.as_deref(), Some("`b` ran for over 100 seconds"));
        assert_eq!(watch.read("FAILED\n", start + Duration::from_secs(101)), None);
    }

    #[test]
    fn names_of_documentation_tests_are_kept_whole() {
        let (mut watch, start) = watch();
        let name = "crates/a/src/lib.rs - Lock (line 7)";
        let warned = format!("test {name} has been running for over 60 seconds\n");
        assert_eq!(watch.read(&warned, start), None);
        assert_eq!(watch.read(&format!("test {name} ... ok\n"), start), None);
        assert!(watch.running.is_empty());
    }

    #[test]
    fn closing_lines_are_kept_and_counted() {
        let (mut watch, start) = watch();
        let closing = "test result: FAILED. 3 passed; 12 failed; 1 ignored; 0 measured";
        watch.read(&format!("{closing}\n"), start);
        assert_eq!(watch.closing, [closing]);
        assert_eq!(ran(closing), 15);
        assert_eq!(ran("test result: ok. 0 passed; 0 failed; 5 ignored"), 0);
        assert_eq!(ran(&format!("{closing}\n\n{closing}\n")), 30);
    }

    #[test]
    fn a_filter_without_matches_is_known() {
        let output = "\nrunning 1 test\ntest data::all_writes_count ... ok\n";
        assert!(ran_one_of(output, "data::") && ran_one_of(output, "--nocapture"));
        assert!(!ran_one_of(output, "storms::"));
        assert!(started(output));
        assert!(!started("error: it cannot run\n") && !started("\nrunning 0 tests\n"));
    }
}
