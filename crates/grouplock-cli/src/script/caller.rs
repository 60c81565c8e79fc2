//! The process that `grouplock acquire` and `enter` hold a room for, if no option names one.
//!
//! Our parent is often not that process. `$(grouplock acquire r s || exit 1)` runs in a subshell,
//! and `timeout 9 grouplock acquire r s` is called by `timeout`. Both end soon, and the holding
//! would end with them. So we go up further: from a fork to the same program that forked it, and
//! from a program that has our command line in its arguments to its caller.

use std::fs;
use std::path::PathBuf;

use nix::unistd::{Pid, getppid};

use crate::system::proc::Stat;
use crate::system::process::ProcessHandle;

/// From the kernel's `sched.h`: the process was forked, and has not called exec since.
const FORKED_ONLY: u64 = 0x40;

/// Facts from /proc about a process.
struct Process {
    stat: Stat,
    program: Option<PathBuf>,
    words: Vec<String>,
}

impl Process {
    fn look(pid: i32) -> Option<Self> {
        Some(Process {
            stat: Stat::of(pid)?,
            program: fs::read_link(format!("/proc/{pid}/exe")).ok(),
            words: words(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()),
        })
    }

    /// Whether it is a subshell of `parent`, or a fork in another language.
    fn is_fork_of(&self, parent: &Process) -> bool {
        self.stat.flags & FORKED_ONLY != 0
            && self.program.is_some()
            && self.program == parent.program
    }

    /// Whether its arguments end with our command line, as with timeout(1).
    fn was_told_to_run(&self, ours: &[String]) -> bool {
        self.words.len() > ours.len() && self.words.ends_with(ours)
    }
}

fn words(line: &[u8]) -> Vec<String> {
    let words =
        line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    words.filter(|word| !word.is_empty()).collect()
}

/// The process that called us.
pub(crate) struct Caller {
    pub(crate) pid: Pid,
    pub(crate) handle: ProcessHandle,
    /// Its command line.
    pub(crate) command: String,
}

/// The process that called us; `None` if it has ended, or /proc has no facts.
pub(crate) fn caller() -> Option<Caller> {
    let ours = words(&fs::read("/proc/self/cmdline").ok()?);
    // The caller may use another name for our program, with or without a path.
    let ours = ours.get(1..)?;
    let mut pid = getppid().as_raw();
    let mut process = Process::look(pid)?;
    while let Some(parent) = Process::look(process.stat.parent)
        && (process.is_fork_of(&parent) || process.was_told_to_run(ours))
    {
        (pid, process) = (process.stat.parent, parent);
    }
    let handle = ProcessHandle::open(Pid::from_raw(pid)).ok()?;
    // If it ended before the handle was opened, another process may have its number.
    let now = Process::look(pid)?;
    let same = now.program == process.program && now.words == process.words;
    same.then(|| Caller { pid: Pid::from_raw(pid), handle, command: now.words.join(" ") })
}
