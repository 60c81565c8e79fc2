//! A process and all its descendants.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::system::proc::{is_at_rest, parent_of, processes};
use crate::system::process::ProcessHandle;

/// The longest wait until all are stopped. Processes of another user do not stop. Nor does the
/// parent of a stopped child of `vfork`.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Kills a process and its descendants, and returns when all are dead. A process that has become
/// another user's cannot be killed. The function waits for its end.
///
/// It stops them first, until it finds no new one. A stopped process starts no further children.
/// And as long as its parent lives, /proc shows whose child a process is.
pub(crate) fn kill(first: Pid, handle: &ProcessHandle) {
    let Ok(handle) = handle.try_clone() else {
        // No descriptor is left for the list, so only this process is killed.
        send(handle, Signal::SIGKILL);
        handle.ends_within(None);
        return;
    };
    send(&handle, Signal::SIGSTOP);
    let mut family = vec![(first.as_raw(), handle)];
    let deadline = Instant::now() + STOP_TIMEOUT;
    loop {
        // A process that is in the middle of a fork gets the signal after its child exists.
        let runs = |(pid, handle): &(i32, ProcessHandle)| !handle.has_ended() && !is_at_rest(*pid);
        while family.iter().any(runs) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        let processes = processes();
        // A process that lives now also had its number while /proc was read.
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

/// A handle to the process if it still is a child of `parent`.
fn child_of(pid: i32, parent: i32) -> Option<ProcessHandle> {
    let handle = ProcessHandle::open(Pid::from_raw(pid)).ok()?;
    (parent_of(pid) == Some(parent)).then_some(handle)
}

fn send(handle: &ProcessHandle, signal: Signal) {
    // It fails if the process is dead, or another user's. The caller then waits for its end.
    _ = handle.send(signal as i32);
}
