//! Which thread runs the tasks of a client.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use grouplock_etcd::runner::Runner;
use grouplock_room::backend::{Holding, Pending as _, Submitted};
use grouplock_room::remote::{self, Grant, PendingRequest, Runner as _};
use grouplock_room::{HolderId, Patience};
use grouplock_testing::{LONG, until};
use nix::sys::wait::{WaitStatus, waitpid};
use tokio::sync::oneshot;

/// Longer than a test: whatever waits for the end of a rest fails the test.
const FOREVER: Duration = Duration::from_secs(3600);

/// A runner with its thread, which ends with this value.
struct Client {
    runner: Arc<Runner>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Client {
    fn new(rest: Duration) -> Self {
        let runner = Runner::new(rest).unwrap();
        let (stop, stopped) = oneshot::channel();
        let theirs = Arc::clone(&runner);
        let thread = thread::spawn(move || theirs.serve(async move { _ = stopped.await }));
        Client { runner, stop: Some(stop), thread: Some(thread) }
    }

    /// A request that a task grants after a few steps. Also returns the thread that ran the task,
    /// when it is left.
    fn ask(&self) -> (PendingRequest, mpsc::Receiver<ThreadId>) {
        let (end, ended) = oneshot::channel();
        let runner = Arc::clone(&self.runner);
        let (pending, desk) =
            remote::ask_by(runner, HolderId::new("7"), Patience::Unlimited, move || {
                _ = end.send(());
            });
        let (tell, told) = mpsc::channel();
        self.runner.handle().spawn(async move {
            tokio::task::yield_now().await;
            desk.queued();
            tokio::time::sleep(Duration::from_micros(100)).await;
            if desk.granted(Grant { epoch: 3, recovered: None, valid_until: None }) {
                _ = ended.await;
            }
            tokio::task::yield_now().await;
            _ = tell.send(thread::current().id());
            desk.left();
        });
        (pending, told)
    }

    /// Enters and leaves. Returns the thread that ran the task.
    fn pass(&self) -> ThreadId {
        let (pending, told) = self.ask();
        inside(pending.submitted().unwrap()).leave().unwrap();
        told.recv().unwrap()
    }

    /// The same by a task of another runtime.
    async fn pass_async(&self) -> ThreadId {
        let (pending, told) = self.ask();
        let Submitted::Waiting(mut waiting) = pending.begun() else { panic!("it waits") };
        let holding = std::future::poll_fn(|context| waiting.poll(context)).await.unwrap();
        holding.leave().unwrap();
        told.recv().unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        _ = self.stop.take().map(|stop| stop.send(()));
        self.runner.stop_resting();
        let thread = self.thread.take().unwrap();
        if !thread::panicking() {
            until("the client's thread has ended", || thread.is_finished());
        }
    }
}

fn inside(submitted: Submitted) -> Box<dyn Holding> {
    match submitted {
        Submitted::Granted(holding) => holding,
        Submitted::Waiting(mut waiting) => {
            waiting.wait(Some(Instant::now() + LONG)).unwrap().expect("it is granted in time")
        }
    }
}

#[test]
fn a_thread_that_calls_again_runs_its_tasks_itself() {
    let client = Client::new(FOREVER);
    for _ in 0..3 {
        assert_eq!(client.pass(), thread::current().id(), "the client's thread rests at first");
    }
}

#[test]
fn the_clients_thread_runs_what_nobody_waits_for() {
    let client = Client::new(Duration::from_millis(1));
    for _ in 0..20 {
        client.pass();
        let (tell, told) = mpsc::channel();
        client.runner.handle().spawn(async move { tell.send(thread::current().id()) });
        let by = told.recv_timeout(LONG).expect("it runs after the rest");
        assert_ne!(by, thread::current().id());
    }
}

/// Threads and tasks at once, some of which find the seat taken. With a rest that does not end,
/// nobody may depend on its end.
#[test]
fn nobody_waits_for_the_end_of_a_rest() {
    let client = Arc::new(Client::new(FOREVER));
    let (tell, told) = mpsc::channel();
    for number in 0..4 {
        let (client, tell) = (Arc::clone(&client), tell.clone());
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            for round in 0..300 {
                match (number, round % 3) {
                    (0, _) | (1, 0) => _ = runtime.block_on(client.pass_async()),
                    // A thread inside a runtime must not run the tasks.
                    (1, 1) => _ = runtime.block_on(async { client.pass() }),
                    _ => _ = client.pass(),
                }
            }
            drop(client);
            tell.send(()).unwrap();
        });
    }
    for _ in 0..4 {
        told.recv_timeout(LONG).expect("all get through");
    }
}

/// Also after the client's thread had to run the tasks for others.
#[test]
fn the_clients_thread_rests_again_when_nobody_needs_it() {
    let client = Client::new(FOREVER);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for _ in 0..20 {
        // It begins when the client's thread rests, or soon will.
        until("the task ran on this thread", || client.pass() == thread::current().id());
        // Time for the client's thread to begin its rest. In a rest that has not begun it would see
        // that it is needed without being woken.
        thread::sleep(Duration::from_millis(5));
        let pass = async { tokio::time::timeout(LONG, client.pass_async()).await };
        let by = runtime.block_on(pass).expect("the client's thread wakes up");
        assert_ne!(by, thread::current().id());
    }
}

#[test]
fn a_thread_that_runs_the_tasks_stops_in_time() {
    let client = Client::new(FOREVER);
    let began = Instant::now();
    assert!(client.runner.run(Some(began + Duration::from_millis(100)), &mut |_| false));
    assert!(began.elapsed() >= Duration::from_millis(100));
}

/// A thread that only looks runs nothing. So its looks must not let the client's thread rest.
#[test]
fn looks_without_a_wait_do_not_delay_the_tasks() {
    let client = Client::new(Duration::from_millis(200));
    let (mut pending, told) = client.ask();
    let past = Instant::now();
    until("it is granted", || match pending.wait(Some(past)).unwrap() {
        None => false,
        Some(holding) => holding.leave().is_ok(),
    });
    told.recv_timeout(LONG).unwrap();
}

#[test]
fn a_task_of_another_runtime_may_be_the_last_owner() {
    let runner = Runner::new(FOREVER).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { drop(runner) });
}

#[test]
fn a_child_process_runs_no_tasks() {
    let client = Client::new(FOREVER);
    until("the client's thread rests", || client.pass() == thread::current().id());
    // SAFETY: the child only calls `run`, which reads the number of the process and returns, and
    // ends.
    match unsafe { nix::unistd::fork() }.unwrap() {
        nix::unistd::ForkResult::Child => {
            let ran = client.runner.run(None, &mut |_| true);
            // SAFETY: nothing of the parent's is ended or flushed.
            unsafe { nix::libc::_exit(i32::from(ran)) }
        }
        nix::unistd::ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
            let late = Instant::now() + LONG;
            assert!(client.runner.run(Some(late), &mut |_| true), "here it still does");
        }
    }
}
