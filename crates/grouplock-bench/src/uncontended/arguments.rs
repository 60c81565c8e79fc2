//! What `uncontended` can be told to do.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::uncontended::rounds::Plan;

/// What `--help` prints.
pub const USAGE: &str = "\
Measures what an uncontended passage through each lock costs.

usage: uncontended [--rounds R] [--passages K] [--instructions] [--out FILE]
       uncontended --only NAME [--passages K]
       uncontended --list | --help

  --rounds R      how often every lock has its turn (101)
  --passages K    how many passages a turn is (20000)
  --instructions  also count instructions per passage; needs valgrind
  --out FILE      write the complete page to FILE
  --only NAME     make K passages through one lock and measure nothing, for use under callgrind
  --list          print the names for --only
";

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Measure and report.
    Measure {
        /// How much.
        plan: Plan,
        /// Whether to count instructions as well.
        instructions: bool,
        /// Where the page goes.
        out: Option<PathBuf>,
    },
    /// Run one subject.
    Only {
        /// Its name.
        name: String,
        /// How many passages.
        passages: u64,
    },
    /// Print the subjects' names.
    List,
    /// Print [`USAGE`].
    Help,
}

/// What is wrong with the arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// An argument that means nothing.
    #[error("unknown argument `{0}`; see --help")]
    Unknown(String),
    /// An argument without its value.
    #[error("{0} needs a value")]
    NoValue(&'static str),
    /// A value that is no number, or too small or large a one.
    #[error("{flag} needs a whole number from 1 to {most}, not `{value}`")]
    NotANumber {
        /// The argument.
        flag: &'static str,
        /// What came with it.
        value: String,
        /// The largest number allowed.
        most: u64,
    },
    /// Arguments that contradict each other.
    #[error("{0} cannot be combined with {1}")]
    Conflict(&'static str, &'static str),
    /// No subject has that name.
    #[error("no lock is called `{0}`; --list tells the names")]
    NoSuchLock(String),
}

/// The largest number of rounds, and of passages: more than a day's work.
const MOST_ROUNDS: u32 = 1_000_000;
const MOST_PASSAGES: u64 = 1_000_000_000_000;

/// Reads the arguments that follow the program's name.
///
/// # Errors
/// [`ArgumentError`] says what to change.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Task, ArgumentError> {
    let mut arguments = arguments.into_iter();
    let (mut rounds, mut passages, mut instructions) = (None, None, false);
    let (mut out, mut only) = (None, None);
    while let Some(argument) = arguments.next() {
        let mut value = |flag| arguments.next().ok_or(ArgumentError::NoValue(flag));
        match argument.to_str() {
            Some("--rounds") => {
                let most = u64::from(MOST_ROUNDS);
                rounds = Some(number("--rounds", &value("--rounds")?, most)? as u32);
            }
            Some("--passages") => {
                passages = Some(number("--passages", &value("--passages")?, MOST_PASSAGES)?);
            }
            Some("--instructions") => instructions = true,
            Some("--out") => out = Some(PathBuf::from(value("--out")?)),
            Some("--only") => only = Some(value("--only")?.to_string_lossy().into_owned()),
            Some("--list") => return Ok(Task::List),
            Some("--help" | "-h") => return Ok(Task::Help),
            _ => return Err(ArgumentError::Unknown(argument.to_string_lossy().into_owned())),
        }
    }
    let passages = passages.unwrap_or(20_000);
    let Some(name) = only else {
        let plan = Plan { rounds: rounds.unwrap_or(101), passages };
        return Ok(Task::Measure { plan, instructions, out });
    };
    let others = [
        (rounds.is_some(), "--rounds"),
        (instructions, "--instructions"),
        (out.is_some(), "--out"),
    ];
    match others.iter().find(|(given, _)| *given) {
        Some((_, flag)) => Err(ArgumentError::Conflict("--only", flag)),
        None => Ok(Task::Only { name, passages }),
    }
}

fn number(flag: &'static str, value: &OsStr, most: u64) -> Result<u64, ArgumentError> {
    let number = value.to_str().and_then(|value| value.parse().ok());
    number.filter(|number| (1..=most).contains(number)).ok_or_else(|| ArgumentError::NotANumber {
        flag,
        value: value.to_string_lossy().into_owned(),
        most,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Task, String> {
        parse(line.split_whitespace().map(OsString::from)).map_err(|error| error.to_string())
    }

    #[test]
    fn each_task_can_be_asked_for() {
        let measure = Task::Measure {
            plan: Plan { rounds: 3, passages: 20_000 },
            instructions: true,
            out: Some("page.md".into()),
        };
        assert_eq!(parsed("--rounds 3 --instructions --out page.md"), Ok(measure));
        let only = Task::Only { name: "mcs".into(), passages: 5 };
        assert_eq!(parsed("--passages 5 --only mcs"), Ok(only));
        assert_eq!(parsed("--list"), Ok(Task::List));
        assert_eq!(parsed("-h"), Ok(Task::Help));
    }

    #[test]
    fn mistakes_are_told() {
        let wrong = |line: &str| parsed(line).unwrap_err();
        assert_eq!(wrong("--fast"), "unknown argument `--fast`; see --help");
        assert_eq!(wrong("--out"), "--out needs a value");
        for value in ["0", "-1", "x", "1000001", "99999999999999999999"] {
            let said = format!("--rounds needs a whole number from 1 to 1000000, not `{value}`");
            assert_eq!(wrong(&format!("--rounds {value}")), said);
        }
        assert_eq!(wrong("--only mcs --out x"), "--only cannot be combined with --out");
    }
}
