//! Counting instead of timing: how many instructions a passage executes.
//!
//! The program runs itself under callgrind twice, each time with one subject and another number of passages.
//! The difference, divided by that of the numbers, is the cost of a passage: what comes before
//! and after the loop is the same in both runs. No noise, but also no idea that one instruction takes longer
//! than another; so it is read together with the times, not instead.

use std::path::Path;
use std::process::Command;
use std::{env, io};

/// Passages in the two runs.
const SHORT: u64 = 10_000;
const LONG: u64 = 30_000;

/// Why nothing could be counted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CountError {
    /// Most likely it is not installed.
    #[error("valgrind could not be started; --instructions needs it")]
    Start(#[source] io::Error),
    /// It ran, and told something else than expected.
    #[error("valgrind counted nothing for `{name}`; it said:\n{said}")]
    Silent {
        /// The subject.
        name: String,
        /// Its messages.
        said: String,
    },
}

/// Instructions per passage of each of the subjects called `names`, where this program runs `K` passages when called with
/// `--only NAME --passages K`. `tell` is called with what is about to be done.
///
/// # Errors
/// [`CountError`] if valgrind is missing or fails.
pub fn count_all<'n>(
    names: impl Iterator<Item = &'n str>,
    tell: impl Fn(&str),
) -> Result<Vec<f64>, CountError> {
    let program = env::current_exe().map_err(CountError::Start)?;
    let per_passage = |name| {
        tell(&format!("instructions: {name}"));
        let (short, long) = (count(&program, name, SHORT)?, count(&program, name, LONG)?);
        Ok((long as f64 - short as f64) / (LONG - SHORT) as f64)
    };
    names.map(per_passage).collect()
}

/// Instructions of a whole run.
fn count(program: &Path, name: &str, passages: u64) -> Result<u64, CountError> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["--only", name, "--passages", &passages.to_string()])
        .output()
        .map_err(CountError::Start)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let counted = if output.status.success() { collected(&said) } else { None };
    counted.ok_or_else(|| CountError::Silent { name: name.to_owned(), said: said.into_owned() })
}

/// The figure in callgrind's line "==123== Collected : 456".
fn collected(said: &str) -> Option<u64> {
    let figures = said.lines().filter_map(|line| line.split_once("Collected :"));
    figures.filter_map(|(_, figure)| figure.trim().parse().ok()).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_among_the_messages() {
        let said =
            "==7== Events    : Ir\n==7== Collected : 1234\n==7==\n==7== I   refs:      1,234\n";
        assert_eq!(collected(said), Some(1234));
        assert_eq!(collected("==7== no such program"), None);
    }
}
