//! A process and all that descend from it.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::handle::Handle;

/// How long to wait until all are stopped. Another user's never are, nor is the parent of a stopped child of `vfork`.
const STOPPING: Duration = Duration::from_secs(1);

/// Kills the process and its descendants, and returns when all are dead. What may not be killed, because it has become
/// another user, is waited for.
///
/// They are stopped first, until no new one is found: whoever is stopped has no further children, and whose parent
/// lives is still known to be its child.
pub(super) fn kill(first: Pid, handle: &Handle) {
    let Ok(handle) = handle.try_clone() else {
        // No descriptor left. Then the process alone.
        send(handle, Signal::SIGKILL);
        handle.ends_within(None);
        return;
    };
    send(&handle, Signal::SIGSTOP);
    let mut family = vec![(first.as_raw(), handle)];
    let deadline = Instant::now() + STOPPING;
    loop {
        // Whoever is in the middle of a fork when the signal is sent has the child before it stops.
        let runs = |(pid, handle): &(i32, Handle)| !handle.has_ended() && !is_stopped(*pid);
        while family.iter().any(runs) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        let processes = processes();
        // Whoever lives after the look had its number during the look.
        let parents: Vec<i32> =
            family.iter().filter(|(_, handle)| !handle.has_ended()).map(|(pid, _)| *pid).collect();
        let known: Vec<i32> = family.iter().map(|(pid, _)| *pid).collect();
        let before = family.len();
        for (pid, parent) in processes {
            if parents.contains(&parent)
                && !known.contains(&pid)
                && let Some(handle) = child_of(pid, parent)
            {
                send(&handle, Signal::SIGSTOP);
                family.push((pid, handle));
            }
        }
        if family.len() == before {
            break;
        }
    }
    for (_, handle) in &family {
        send(handle, Signal::SIGKILL);
    }
    for (_, handle) in &family {
        handle.ends_within(None);
    }
}

/// Whether all threads of a process are stopped, or have ended.
fn is_stopped(pid: i32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.flatten().all(|thread| {
        let Ok(stat) = fs::read_to_string(thread.path().join("stat")) else { return true };
        // The name in parentheses may contain anything; after it comes the state.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't', 'Z', 'X']))
    })
}

/// A handle to the process if it still is a child of `parent`.
fn child_of(pid: i32, parent: i32) -> Option<Handle> {
    let handle = Handle::open(Pid::from_raw(pid)).ok()?;
    (parent_of(pid) == Some(parent)).then_some(handle)
}

/// All processes with their parents.
pub(crate) fn processes() -> Vec<(i32, i32)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|pid| Some((pid, parent_of(pid)?))).collect()
}

/// The parent of a process.
pub(super) fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything; after it come the state and the parent.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn send(handle: &Handle, signal: Signal) {
    // It is dead already, or another user's: then we wait for it.
    _ = handle.send(signal as i32);
}
