//! What /proc reports about processes.

use std::fs;
use std::path::Path;

/// Some fields of `/proc/PID/stat`.
pub(crate) struct Stat {
    /// One letter, such as `R`, `T` or `Z`.
    state: char,
    pub(crate) parent: i32,
    pub(crate) flags: u64,
}

impl Stat {
    /// `None` if there is no such process.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        Self::read(&Path::new("/proc").join(pid.to_string()))
    }

    /// Of the process or thread that has this directory.
    fn read(directory: &Path) -> Option<Self> {
        let stat = fs::read_to_string(directory.join("stat")).ok()?;
        // The name stands in parentheses and may contain any character. After it come the state,
        // the parent, four numbers and the flags.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        Some(Stat {
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            flags: fields.nth(4)?.parse().ok()?,
        })
    }

    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }

    fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// The parent of a process.
pub(crate) fn parent_of(pid: i32) -> Option<i32> {
    Stat::of(pid).map(|stat| stat.parent)
}

/// All processes, each with its parent.
pub(crate) fn processes() -> Vec<(i32, i32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|pid| Some((pid, parent_of(pid)?))).collect()
}

/// Whether every thread of a process is stopped or has ended.
pub(crate) fn is_at_rest(pid: i32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut stats = threads.filter_map(|thread| Stat::read(&thread.path()));
    stats.all(|stat| stat.is_stopped() || stat.has_ended())
}
