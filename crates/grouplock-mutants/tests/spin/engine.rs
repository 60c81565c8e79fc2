//! Runs Spin on a model.

use std::path::Path;
use std::process::{Command, Output};

use grouplock_testing::{Scratch, current_test, skip};

/// Spin's result for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// The error; `None` if Spin saw all states and found no error.
    pub(crate) wrong: Option<String>,
    /// The number of stored states.
    pub(crate) states: u64,
}

/// What a run checks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Look<'a> {
    /// Assertions only.
    Assertions,
    /// Assertions, and that no process waits when none can move.
    Ends,
    /// A formula, with weak fairness.
    Formula(&'a str),
}

/// Whether Spin can be started. If not, the test is skipped.
pub(crate) fn is_there() -> bool {
    let runs = |program: &str, argument: &str| {
        Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success())
    };
    let there = runs("spin", "-V") && runs("gcc", "--version");
    if !there {
        skip(&current_test(), "spin or gcc is not installed");
    }
    there
}

/// Lets Spin check `model`.
///
/// # Panics
/// If Spin cannot check it, or does not end.
pub(crate) fn ask(model: &str, looks: &[Look<'_>]) -> Vec<Said> {
    let scratch = Scratch::new();
    std::fs::write(scratch.join("model.pml"), model).expect("the directory is ours");
    run(scratch.path(), "spin", &["-a", "model.pml"]);
    let mut built = None;
    looks
        .iter()
        .map(|look| {
            let (flags, arguments): (&[&str], &[&str]) = match look {
                Look::Assertions => (&["-DSAFETY", "-DNOCLAIM"], &["-E"]),
                Look::Ends => (&["-DSAFETY", "-DNOCLAIM"], &[]),
                Look::Formula(name) => (&[], &["-a", "-f", "-N", name]),
            };
            if built != Some(flags) {
                // Spin generated the text: its warnings are not ours. Optimising it takes longer
                // than running it.
                let gcc = ["-w", "-DNOREDUCE", "-o", "pan", "pan.c"];
                run(scratch.path(), "gcc", &[&gcc[..], flags].concat());
                built = Some(flags);
            }
            // A small table for states, which grows; a depth for the longest path; a limit of nine
            // minutes.
            let limits = ["-w18", "-m300000", "-Q9"];
            let pan = scratch.join("pan");
            let pan = pan.to_str().expect("a plain path");
            understood(&run(scratch.path(), pan, &[&limits[..], arguments].concat()))
        })
        .collect()
}

fn run(directory: &Path, program: &str, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap_or_else(|error| panic!("{program} does not start: {error}"));
    let said = String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{program} {arguments:?}: {status}\n{said}");
    said
}

/// Parses the output of `pan`.
fn understood(said: &str) -> Said {
    for trouble in ["max search depth too small", "time limit", "out of memory", "VECTORSZ"] {
        assert!(!said.contains(trouble), "not all was seen:\n{said}");
    }
    let number = |after: &str, before: &str| {
        let line = said.lines().find(|line| line.contains(after) && line.contains(before));
        let words = line.unwrap_or_default().split_whitespace();
        words.filter_map(|word| word.parse::<u64>().ok()).next_back()
    };
    let wrong = said.lines().find_map(|line| {
        let line = line.strip_prefix("pan:")?.split_once(": ")?.1;
        Some(line.split(" (at depth").next().unwrap_or(line).to_owned())
    });
    let errors = number("State-vector", "errors:").expect("it tells how many errors there are");
    assert_eq!(errors != 0, wrong.is_some(), "{said}");
    let states = number("states, stored", "").unwrap_or_else(|| panic!("no states in\n{said}"));
    Said { wrong, states }
}
