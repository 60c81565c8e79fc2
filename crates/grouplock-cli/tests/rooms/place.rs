//! A directory for the rooms of one test, and the commands of the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use grouplock_testing::{Running, Scratch, until};
use serde_json::Value;

/// A directory that the test removes at its end.
pub(crate) struct Place {
    scratch: Scratch,
}

impl Place {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::below(&std::env::temp_dir());
        Place { scratch: scratch.expect("a directory for the test can be made") }
    }

    pub(crate) fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// The directory of the rooms.
    pub(crate) fn rooms(&self) -> PathBuf {
        self.scratch.join("rooms")
    }

    /// A file for the output of a command.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// The program with these arguments, and the rooms of this place.
    pub(crate) fn grouplock(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_grouplock"));
        command.args(arguments);
        command
    }

    /// Any program, with the rooms of this place.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).env("GROUPLOCK_AT", self.rooms());
        for variable in ["ROOM", "SESSION", "EPOCH", "HOLDER", "HELD", "RECOVERED"] {
            command.env_remove(format!("GROUPLOCK_{variable}"));
        }
        grouplock_testing::with_default_signals(&mut command);
        command
    }

    /// Runs it to its end: its exit code, stdout and stderr.
    pub(crate) fn said(&self, arguments: &[&str]) -> (i32, String, String) {
        told(&mut self.grouplock(arguments))
    }

    /// A script for sh(1) that finds the program as `$G`, and the rooms of this place.
    pub(crate) fn script(&self, text: &str) -> Command {
        let mut command = self.command("sh");
        command.args(["-c", text]).env("G", env!("CARGO_BIN_EXE_grouplock"));
        command
    }

    /// A holder that stays until it is ended. Returns when it is inside.
    pub(crate) fn occupy(&self, room: &str, session: &str) -> Running {
        let mark = self.file(&format!("inside-{room}-{session}-{}", unique()));
        let script = format!("echo > '{}'; exec sleep 1000", mark.display());
        let running = Running::start(self.grouplock(&["run", "-q", room, session, "-c", &script]));
        until("somebody is inside", || mark.exists());
        running
    }

    /// The room in the output of `status --json`.
    pub(crate) fn status(&self, room: &str) -> Value {
        let (code, text, trouble) = self.said(&["status", "--json", room]);
        assert_eq!(code, 0, "{trouble}");
        serde_json::from_str(&text).expect("it is JSON")
    }

    /// The number of waiters.
    pub(crate) fn waiters(&self, room: &str) -> usize {
        let status = self.status(room);
        let phases = status["waiting"].as_array().expect("a list");
        phases.iter().map(|phase| phase["members"].as_array().map_or(0, Vec::len)).sum()
    }

    /// Whether the room has no holder and no waiter. A room that does not exist is empty.
    pub(crate) fn is_empty(&self, room: &str) -> bool {
        let (code, text, trouble) = self.said(&["status", room]);
        assert!(code == 0 || trouble.contains("there is no room"), "{trouble}");
        !text.contains("  inside: ") && !text.contains("  waiting: ")
    }
}

/// Runs a command to its end: its exit code (128 + n if signal n has ended it), stdout and stderr.
pub(crate) fn told(command: &mut Command) -> (i32, String, String) {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running(command.spawn().expect("the program starts"));
    let (text, trouble) = (running.stdout(), running.stderr());
    let (text, trouble) = (text.to_end(), trouble.to_end());
    (running.code().unwrap_or(-1), text, trouble)
}

/// Copies a program in another process. If this process had the copy open for writing, a child of
/// another test could inherit the descriptor, and a file that is open for writing cannot be run.
pub(crate) fn install(program: &Path, to: &Path) {
    let (code, _, trouble) = told(Command::new("cp").arg(program).arg(to));
    assert_eq!(code, 0, "{trouble}");
}

/// Waits until a command has written a whole line to a file.
pub(crate) fn line_of(file: &Path) -> String {
    let mut text = String::new();
    until(&format!("{} has a line", file.display()), || {
        text = fs::read_to_string(file).unwrap_or_default();
        text.ends_with('\n')
    });
    text.trim_end().to_owned()
}

/// A number that no other test of this run has.
pub(crate) fn unique() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Relaxed: it only matters that each number is used once.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The state letter of a process, as in ps(1). `None` if the process does not exist or is a zombie.
pub(crate) fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
    (state != 'Z' && state != 'X').then_some(state)
}

/// The live processes that satisfy a condition.
pub(crate) fn processes(mut wanted: impl FnMut(i32) -> bool) -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| state(*pid).is_some() && wanted(*pid)).collect()
}

/// The live children of a process.
pub(crate) fn children(parent: i32) -> Vec<i32> {
    processes(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        fields.split_whitespace().nth(1) == Some(&parent.to_string())
    })
}

/// The live processes with this text among their arguments.
pub(crate) fn mentioning(text: &str) -> Vec<i32> {
    processes(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(text)
    })
}
