//! A process and all that descend from it.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How long to wait until all are stopped. Another user's never are, nor is the parent of a stopped child of `vfork`.
const STOPPING: Duration = Duration::from_secs(1);

/// Kills the process and its descendants, and returns when all are dead. What may not be killed, because it has become
/// another user, is waited for.
///
/// They are stopped first, until no new one is found: whoever is stopped has no further children, and whose parent
/// lives is still known to be its child.
pub(super) fn kill(first: Pid, handle: &OwnedFd) {
    let Ok(handle) = handle.try_clone() else {
        // No descriptor left. Then the process alone.
        send(handle.as_fd(), Signal::KILL);
        return wait(handle.as_fd());
    };
    send(handle.as_fd(), Signal::STOP);
    let mut family = vec![(first.as_raw(), handle)];
    let deadline = Instant::now() + STOPPING;
    loop {
        // Whoever is in the middle of a fork when the signal is sent has the child before it stops.
        let runs = |(pid, handle): &(i32, OwnedFd)| lives(handle.as_fd()) && !is_stopped(*pid);
        while family.iter().any(runs) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        let processes = processes();
        // Whoever lives after the look had its number during the look.
        let parents: Vec<i32> = family
            .iter()
            .filter(|(_, handle)| lives(handle.as_fd()))
            .map(|(pid, _)| *pid)
            .collect();
        let known: Vec<i32> = family.iter().map(|(pid, _)| *pid).collect();
        let before = family.len();
        for (pid, parent) in processes {
            if parents.contains(&parent)
                && !known.contains(&pid)
                && let Some(handle) = child_of(pid, parent)
            {
                send(handle.as_fd(), Signal::STOP);
                family.push((pid, handle));
            }
        }
        if family.len() == before {
            break;
        }
    }
    for (_, handle) in &family {
        send(handle.as_fd(), Signal::KILL);
    }
    for (_, handle) in &family {
        wait(handle.as_fd());
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
fn child_of(pid: i32, parent: i32) -> Option<OwnedFd> {
    let handle = pidfd_open(rustix::process::Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    (parent_of(pid) == Some(parent)).then_some(handle)
}

/// All processes with their parents.
fn processes() -> Vec<(i32, i32)> {
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

fn send(handle: BorrowedFd<'_>, signal: Signal) {
    // It is dead already, or another user's: then we wait for it.
    _ = pidfd_send_signal(handle, signal);
}

fn lives(handle: BorrowedFd<'_>) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&now)) == Ok(0)
}

fn wait(handle: BorrowedFd<'_>) {
    // Interrupted at most: a descriptor of a process cannot fail.
    while poll(&mut [PollFd::new(&handle, PollFlags::IN)], None) == Err(rustix::io::Errno::INTR) {}
}
