//! Counts the instructions of a passage.
//!
//! The program runs itself under callgrind twice, with one subject and two numbers of passages. The
//! difference between the counts, divided by the difference between the numbers, is the cost of a
//! passage: all code before and after the loop is the same in both runs. A count has no noise. But
//! it does not know that some instructions take longer than others, so the pages show times too.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::report::{Cannot, Outcome};

/// Passages in the two runs.
const SHORT: u64 = 10_000;
const LONG: u64 = 30_000;

/// Instructions per passage of each subject in `names`. This program, called with `command` and
/// `--only NAME --passages K`, makes `K` passages. `progress` gets what is counted next.
pub(crate) fn count_all<'n>(
    command: &str,
    names: impl Iterator<Item = &'n str>,
    progress: impl Fn(&str),
) -> Outcome<Vec<f64>> {
    let program = env::current_exe().cannot("find this program")?;
    let per_passage = |name| {
        progress(&format!("instructions: {name}"));
        let count = |passages| count(&program, command, name, passages);
        Ok((count(LONG)? as f64 - count(SHORT)? as f64) / (LONG - SHORT) as f64)
    };
    names.map(per_passage).collect()
}

/// Instructions of a whole run.
fn count(program: &Path, command: &str, name: &str, passages: u64) -> Outcome<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([command, "--only", name, "--passages", &passages.to_string()])
        .output()
        .cannot("start valgrind, which --instructions needs")?;
    let messages = String::from_utf8_lossy(&output.stderr);
    let counted = output.status.success().then(|| collected(&messages)).flatten();
    let silent = || format!("valgrind counted nothing for `{name}`; its messages:\n{messages}");
    Ok(counted.ok_or_else(silent)?)
}

/// The figure in callgrind's line "==123== Collected : 456".
fn collected(messages: &str) -> Option<u64> {
    let figures = messages.lines().filter_map(|line| line.split_once("Collected :"));
    figures.filter_map(|(_, figure)| figure.trim().parse().ok()).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_among_the_messages() {
        let messages =
            "==7== Events    : Ir\n==7== Collected : 1234\n==7==\n==7== I   refs:      1,234\n";
        assert_eq!(collected(messages), Some(1234));
        assert_eq!(collected("==7== no such program"), None);
    }
}
