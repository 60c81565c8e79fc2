//! For whom `grouplock acquire` and `enter` hold a room if nobody is named.
//!
//! The process that called us is often not the one that is meant: `$(grouplock acquire r s || exit 1)` runs in a subshell, and
//! `timeout 9 grouplock acquire r s` is called by `timeout`. Both end at once, and the holding would end with them. So
//! we look further up: over forks of a program that still is the same program, and over programs that were given our command
//! line to run.

use std::fs;
use std::path::PathBuf;

use nix::unistd::{Pid, getppid};

use crate::handle::Handle;

/// From the kernel's `sched.h`: forked, and has not called exec since.
const FORKED_ONLY: u64 = 0x40;

/// What /proc tells of a process.
struct Process {
    parent: i32,
    flags: u64,
    program: Option<PathBuf>,
    words: Vec<String>,
}

impl Process {
    fn look(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may contain anything. After it come the state, the parent, four numbers and the flags.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        Some(Process {
            parent: fields.nth(1)?.parse().ok()?,
            flags: fields.nth(4)?.parse().ok()?,
            program: fs::read_link(format!("/proc/{pid}/exe")).ok(),
            words: words(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()),
        })
    }

    /// Whether it is a subshell of `parent`, or the like in another language.
    fn is_fork_of(&self, parent: &Process) -> bool {
        self.flags & FORKED_ONLY != 0 && self.program.is_some() && self.program == parent.program
    }

    /// Whether it was told to run us, as timeout(1) is.
    fn was_told_to_run(&self, ours: &[String]) -> bool {
        self.words.len() > ours.len() && self.words.ends_with(ours)
    }
}

fn words(line: &[u8]) -> Vec<String> {
    let words =
        line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    words.filter(|word| !word.is_empty()).collect()
}

/// The process for which we were called.
pub(crate) struct Caller {
    pub(crate) pid: Pid,
    pub(crate) handle: Handle,
    /// Its command line.
    pub(crate) command: String,
}

/// The process for which we were called; `None` if it has ended, or /proc tells nothing.
pub(crate) fn caller() -> Option<Caller> {
    let ours = words(&fs::read("/proc/self/cmdline").ok()?);
    // The program itself may be named differently, with its path or without.
    let ours = ours.get(1..)?;
    let mut pid = getppid().as_raw();
    let mut process = Process::look(pid)?;
    while let Some(parent) = Process::look(process.parent)
        && (process.is_fork_of(&parent) || process.was_told_to_run(ours))
    {
        (pid, process) = (process.parent, parent);
    }
    let handle = Handle::open(Pid::from_raw(pid)).ok()?;
    // If it had ended before the handle was made, somebody else may have its number.
    let now = Process::look(pid)?;
    let same = now.program == process.program && now.words == process.words;
    same.then(|| Caller { pid: Pid::from_raw(pid), handle, command: now.words.join(" ") })
}
