//! Who runs the tasks of a client.
//!
//! All tasks of a client belong to one runtime, and one thread at a time runs them. The obvious
//! design is a thread of the client that always does. Then every request of a blocked thread costs
//! two changes of thread: one to the client's thread, one back with the answer. So a thread that
//! waits for its request runs the tasks itself:
//!
//! ```text
//!                          no call for REST, or `needed`
//!   the client's thread:   rest ─────────────────────────▶ run the tasks
//!                            ◀─────────────────────────────
//!                                     a call begins
//!   a thread that waits:   take the seat, run the tasks until the answer, give the seat back
//! ```
//!
//! The client's thread also rests after a call, because the next call of the same thread often
//! comes soon. It is still responsible for everything that nobody waits for: renewals and watches.
//! They are late by [`REST`] at most. It does not rest while a request waits whose thread does not
//! run the tasks: that of a task of another executor, or of a second thread.
//!
//! Invariants:
//! 1. The client's thread rests only while `needed` is 0.
//! 2. It rests no longer than [`REST`] after the last call.
//! 3. At most one other thread runs the tasks: the one that has the seat.
//! 4. A child process runs no tasks. It shares the sockets of its parent.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use grouplock_room::remote;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Notify;
use tokio::time::timeout_at;

/// How long the client's thread rests after a call.
pub const REST: Duration = Duration::from_millis(20);

/// The runtime of a client.
#[derive(Debug)]
pub struct Runner {
    /// Taken only when this value is dropped.
    runtime: Option<Runtime>,
    rest: Duration,
    state: Mutex<State>,
    /// For the client's thread while it rests.
    changed: Condvar,
    /// Asks the client's thread to rest.
    released: Notify,
    /// The process that made this value.
    process: u32,
}

#[derive(Debug)]
struct State {
    /// How many requests wait whose threads do not run the tasks.
    needed: usize,
    /// When the last call ended; `None` while a thread has the seat.
    last_call: Option<Instant>,
    client: ClientThread,
}

/// What the client's thread does.
#[derive(Debug, PartialEq, Eq)]
enum ClientThread {
    /// It runs the tasks, unless the thread with the seat does.
    Runs,
    /// It sleeps until [`REST`] after the last call.
    Rests,
    /// It sleeps until the call ends.
    RestsDuringCall,
}

impl Runner {
    /// Makes a runtime. The client's thread rests so long after a call.
    ///
    /// # Errors
    /// If the system gives no descriptors for it.
    pub fn new(rest: Duration) -> io::Result<Arc<Self>> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Arc::new(Runner {
            runtime: Some(runtime),
            rest,
            state: Mutex::new(State {
                needed: 0,
                last_call: Some(Instant::now()),
                client: ClientThread::Rests,
            }),
            changed: Condvar::new(),
            released: Notify::new(),
            process: std::process::id(),
        }))
    }

    /// Starts tasks.
    pub fn handle(&self) -> &Handle {
        self.runtime().handle()
    }

    /// What the client's thread does until `end` completes.
    pub fn serve(&self, end: impl Future<Output = ()>) {
        let mut end = pin!(end);
        let mut turn = async || {
            tokio::select! {
                biased;
                () = &mut end => return true,
                () = self.released.notified() => {}
            }
            // What the caller waits for goes to the servers first. Meanwhile the caller wakes up.
            tokio::task::yield_now().await;
            false
        };
        loop {
            // First: the thread that started the client calls soon.
            self.rest();
            if self.runtime().block_on(turn()) {
                return;
            }
        }
    }

    /// The client's thread rests no more.
    pub fn stop_resting(&self) {
        if self.is_ours() {
            self.lock().needed += 1;
            self.changed.notify_one();
        }
    }

    fn rest(&self) {
        let mut state = self.lock();
        while state.needed == 0 {
            state = match state.last_call.map(|last| self.rest.saturating_sub(last.elapsed())) {
                None => {
                    state.client = ClientThread::RestsDuringCall;
                    self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
                }
                Some(Duration::ZERO) => break,
                Some(left) => {
                    state.client = ClientThread::Rests;
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        state.client = ClientThread::Runs;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[expect(clippy::expect_used, reason = "only `drop` takes it")]
    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("the runtime is taken by drop")
    }

    fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    /// The seat, if it is free and this thread can take it.
    fn take_seat(&self) -> Option<Seat<'_>> {
        // A thread that already runs tasks, of whatever runtime, must not block in another.
        let outside = Handle::try_current().is_err_and(|error| error.is_missing_context());
        if !outside || !self.is_ours() {
            return None;
        }
        let mut state = self.lock();
        state.last_call.take()?;
        if state.client == ClientThread::Runs && state.needed == 0 {
            self.released.notify_one();
        }
        Some(Seat(self))
    }
}

/// The right to run the tasks until a request is answered.
struct Seat<'r>(&'r Runner);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.last_call = Some(Instant::now());
        if state.client == ClientThread::RestsDuringCall {
            self.0.changed.notify_one();
        }
    }
}

impl remote::Runner for Runner {
    fn run(
        &self,
        until: Option<Instant>,
        is_ready: &mut dyn FnMut(&mut Context<'_>) -> bool,
    ) -> bool {
        // With no time to wait it would run nothing, and such calls could let the client's thread
        // rest for ever.
        if until.is_some_and(|until| until <= Instant::now()) {
            return false;
        }
        let Some(_seat) = self.take_seat() else { return false };
        let ready =
            poll_fn(|context| if is_ready(context) { Poll::Ready(()) } else { Poll::Pending });
        // Until the client's thread has released the runtime, `block_on` only polls. Then it runs
        // the tasks.
        self.runtime().block_on(async {
            match until {
                None => ready.await,
                // The caller checks whether it was ready in time.
                Some(until) => _ = timeout_at(until.into(), ready).await,
            }
        });
        true
    }

    fn keep_running(self: Arc<Self>) -> remote::Running {
        if !self.is_ours() {
            return remote::Running::new(());
        }
        self.lock().needed += 1;
        self.changed.notify_one();
        remote::Running::new(Needed(self))
    }
}

/// A request that waits and whose thread does not run the tasks.
struct Needed(Arc<Runner>);

impl Drop for Needed {
    fn drop(&mut self) {
        self.0.lock().needed -= 1;
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // The last owner may be a task of another runtime, which must not wait for this one.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
