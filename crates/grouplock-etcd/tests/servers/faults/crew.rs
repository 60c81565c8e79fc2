//! Workers in a process of their own. The process is this test program, which runs the test
//! `actor`.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::worker::Plan;
use crate::cluster::network::MORTAL;

const VARIABLE: &str = "GROUPLOCK_FAULTS_PLAN";

/// The other process. It dies with the thread that started it.
pub(crate) struct Crew {
    child: Child,
    pub(crate) workers: Vec<usize>,
}

impl Crew {
    pub(crate) fn start(plan: &Plan) -> Self {
        let [program, arguments @ ..] = MORTAL;
        let us = std::env::current_exe().expect("a program knows where it is");
        let plan_text = serde_json::to_string(plan).expect("a plan can be written");
        let mut command = Command::new(program);
        command.args(arguments).arg(us).args(["--exact", "faults::actor", "--nocapture"]);
        command.env(VARIABLE, plan_text).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().expect("this program can be started again");
        Crew { child, workers: plan.workers.clone() }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        kill(pid, signal).expect("a child can be signalled");
    }

    /// Stops the process, and returns when all its threads have stopped.
    pub(crate) fn stop(&self, deadline: Instant) {
        self.signal(Signal::SIGSTOP);
        let pid = Pid::from_raw(self.child.id().cast_signed());
        let look = WaitPidFlag::WUNTRACED | WaitPidFlag::WNOHANG;
        while !matches!(waitpid(pid, Some(look)), Ok(WaitStatus::Stopped(..))) {
            assert!(Instant::now() < deadline, "a process does not stop");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Kills the process, and returns when it is dead.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
    }

    /// Waits until the process has ended by itself.
    pub(crate) fn join(&mut self, deadline: Instant) -> Result<(), String> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("a worker process ended with {status}")),
                Ok(None) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                other => return Err(format!("a worker process does not end: {other:?}")),
            }
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        // It may have ended already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// The work of the other process. Does nothing in the test's own process.
pub(crate) fn act() {
    let Ok(plan) = std::env::var(VARIABLE) else { return };
    let plan: Plan = serde_json::from_str(&plan).expect("the plan can be read");
    for worker in plan.start(None) {
        worker.join().expect("a worker does not panic");
    }
}
