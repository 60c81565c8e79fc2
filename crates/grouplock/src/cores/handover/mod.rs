//! `handover`: first come first served, with a constant number of remote memory references.
//!
//! The queue is that of the algorithm, [`grouplock_algorithms::handover_withdraw`]. In addition:
//!
//! * [`memory`]: how a thread sleeps and a task is woken;
//! * [`exit_lock`]: the lock between holders that leave;
//! * [`pool`]: the processes of the algorithm, which one request after another uses; snapshots;
//! * [`room_state`]: which session was inside last, and whether the room is set up for it;
//! * [`set_up`]: entering with set-up.
//!
//! A request to be alone has a session of its own.

mod exit_lock;
mod memory;
mod pool;
mod room_state;
mod set_up;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use grouplock_algorithms::Session;
use grouplock_algorithms::handover_withdraw::HandoverWithdraw;
use grouplock_algorithms::raw::RawGroup;

use self::exit_lock::ExitLock;
use self::memory::{Park, wake_tasks};
use self::pool::{Owned, Pool};
use self::room_state::RoomState;
use super::Core;
use crate::Snapshot;
use crate::foreign::discard;
use crate::sync::{self, AtomicU64, Mutex, PATIENT_LOOKS, Thread};

type Algorithm = HandoverWithdraw<Park, ExitLock>;
/// The state of a process of the algorithm between its passages.
type Process = <Algorithm as RawGroup<Park>>::Process;

/// The corrected algorithm of Maor and Taubenfeld, with withdrawal:
/// [`grouplock_algorithms::handover_withdraw`]. First come first served. A passage costs a constant
/// number of remote memory references, however many threads there are. The cost is amortised if
/// requests are withdrawn or waiters sleep: the thread that admits a session makes a step for each
/// sleeping waiter of it, so that all of them enter together.
///
/// It is for machines with very many processors, and for study. A number identifies a session.
///
/// ```
/// use grouplock::{GroupLock, cores::Handover};
///
/// let lock = GroupLock::<u32, _, Handover<u32>>::over(Handover::new(), vec![1, 2, 3]);
/// assert_eq!(lock.enter(7).len(), 3);
/// lock.exclusive().push(4);
/// assert_eq!(lock.try_enter(8).map(|inside| inside.len()), Some(4));
/// ```
///
/// It has no policies and no [`at_most`](crate::GroupLock::at_most). What else differs:
///
/// * **A thread that leaves, withdraws or drops a future may wait** for the exit lock of the
///   algorithm. A thread that admits a session wakes the sleeping waiters of it under that lock.
///   Apart from that, each thread makes a constant number of steps there. If the operating system
///   stops a thread there, other threads cannot leave until it continues. No other wait is needed
///   to leave. A thread that withdraws while it is being admitted waits for that, and enters.
/// * **`try_*`** enters if the room is empty, or if its session is inside and no request waits. It
///   does not wait until a holder leaves. If the end of the queue changes meanwhile, it may have to
///   withdraw its request, and then it may wait for the exit lock.
/// * **Set-up is in order, too**: with [`enter_with`](crate::GroupLock::enter_with), the first
///   request that finds the room not set up asks to be alone, and other requests of the session
///   queue behind it. An earlier request for the session without set-up goes first.
/// * `deadlock_detection` and `tracing` do not see its waits, and `Debug` shows no holders.
pub struct Handover<S> {
    algorithm: Algorithm,
    pool: Pool<S>,
    room: RoomState,
    /// The next number for a request to be alone: each of them is a session of its own.
    alone: AtomicU64,
}

/// The pass of a holder.
pub struct Pass<S> {
    /// `None` after the holder has left.
    record: Option<Owned<S>>,
    session: Option<S>,
    /// The number of the session for which the holder sets the room up.
    sets_up: Option<u64>,
}

/// A task that waits.
pub struct Waiting<S> {
    record: Owned<S>,
    /// As in [`Pass`], for a request that will do so.
    sets_up: Option<u64>,
    /// How often the request has entered and found the room not set up.
    missed: u32,
}

impl<S> Waiting<S> {
    /// A request without set-up.
    fn without_set_up(record: Owned<S>) -> Self {
        Waiting { record, sets_up: None, missed: 0 }
    }
}

/// The numbers of named sessions are smaller than this, and not zero.
const ALONE: u64 = 1 << 33;

/// Locks a mutex. Its data is valid even if a thread panicked with it.
fn locked<T>(mutex: &Mutex<T>) -> impl std::ops::DerefMut<Target = T> + '_ {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number_of<S: Copy + Into<u32>>(session: S) -> u64 {
    u64::from(session.into()) + 1
}

fn session_of(number: u64) -> Session {
    Session::new(number).expect("not zero")
}

impl<S> Handover<S> {
    /// A lock for any number of threads and tasks.
    ///
    /// # Panics
    /// Never: the algorithm serves any number of processes.
    pub fn new() -> Self {
        let algorithm = Algorithm::new(0).expect("the algorithm serves any number of processes");
        Handover {
            algorithm,
            pool: Pool::new(),
            room: RoomState::new(),
            alone: AtomicU64::new(ALONE),
        }
    }
}

impl<S: Copy + Into<u32>> Handover<S> {
    /// Submits a request. Returns whether it is inside.
    #[inline]
    fn ask(&self, session: Option<S>) -> (Owned<S>, bool) {
        // SAFETY: the process is idle; every number is allowed.
        self.submit(session, |process, number| unsafe { self.algorithm.ask(process, number) })
    }

    /// Takes a record, and `ask` submits a request for `session` with its process, which is idle.
    #[inline]
    fn submit(
        &self,
        session: Option<S>,
        ask: impl FnOnce(&mut Process, Session) -> bool,
    ) -> (Owned<S>, bool) {
        let number = match session {
            Some(session) => number_of(session),
            // Relaxed: the numbers need only differ.
            None => self.alone.fetch_add(1, Relaxed),
        };
        let record = self.pool.take(&self.algorithm);
        record.set_request(number, session);
        // SAFETY: the record is ours.
        let inside = ask(unsafe { record.process() }, session_of(number));
        wake_tasks();
        (record, inside)
    }

    /// Waits until the request is inside, or withdraws it at `deadline`. Returns which.
    #[cold]
    fn wait(&self, record: Owned<S>, deadline: Option<Instant>) -> bool {
        for _ in 0..PATIENT_LOOKS {
            if self.look(record) {
                return true;
            }
            sync::relax();
        }
        record.set_waiting_since(Some(Instant::now()));
        let inside = match deadline {
            None => {
                // SAFETY: the record is ours.
                self.algorithm.flag(unsafe { record.process() }).sleep();
                self.look(record)
            }
            Some(deadline) => self.wait_until(record, deadline),
        };
        record.set_waiting_since(None);
        if !inside {
            self.pool.put(record);
        }
        inside
    }

    /// Returns whether the waiting request is inside.
    fn look(&self, record: Owned<S>) -> bool {
        // SAFETY: the record is ours.
        let process = unsafe { record.process() };
        // SAFETY: the process waits.
        let inside = unsafe { self.algorithm.look(process) };
        wake_tasks();
        inside
    }

    fn wait_until(&self, record: Owned<S>, deadline: Instant) -> bool {
        let waker = Waker::from(Arc::new(Unpark(sync::current())));
        loop {
            if self.poll(record, || waker.clone()) {
                return true;
            }
            if sync::is_over(deadline, Instant::now()) {
                return self.withdraw(record);
            }
            sync::park(Some(deadline));
        }
    }

    /// Returns whether the request is inside. If not, the waker will be woken.
    fn poll(&self, record: Owned<S>, waker: impl FnOnce() -> Waker) -> bool {
        // SAFETY: the record is ours.
        self.algorithm.flag(unsafe { record.process() }).poll(waker) && self.look(record)
    }

    /// Withdraws the request. Returns whether it was admitted before.
    fn withdraw(&self, record: Owned<S>) -> bool {
        // SAFETY: the record is ours.
        let process = unsafe { record.process() };
        // SAFETY: the process waits for this number.
        let inside = unsafe { self.algorithm.give_up(process, session_of(record.number())) };
        self.algorithm.flag(process).forget_waker();
        wake_tasks();
        inside
    }

    /// Begins the wait of a task. Returns the request if it is inside already. `waiting` is set
    /// before the waker is cloned: if the clone panics, dropping the future withdraws the request.
    fn begin_wait(
        &self,
        (request, inside): (Waiting<S>, bool),
        waiting: &mut Option<Waiting<S>>,
        waker: impl FnOnce() -> Waker,
    ) -> Option<Waiting<S>> {
        if inside {
            return Some(request);
        }
        let record = request.record;
        *waiting = Some(request);
        record.set_waiting_since(Some(Instant::now()));
        if self.poll(record, waker) { self.end_wait(waiting) } else { None }
    }

    /// Ends the wait of a task.
    fn end_wait(&self, waiting: &mut Option<Waiting<S>>) -> Option<Waiting<S>> {
        let waited = waiting.take()?;
        waited.record.set_waiting_since(None);
        Some(waited)
    }

    /// Makes the pass of a request that has entered `session`.
    #[inline]
    fn pass(&self, record: Owned<S>, session: Option<S>) -> Pass<S> {
        if session.is_some() {
            self.room.entered(record.number());
        }
        Pass { record: Some(record), session, sets_up: None }
    }

    /// Drops a guard. The last guard of a holding leaves.
    #[inline]
    fn release(&self, record: Owned<S>) {
        if record.drop_guard() {
            // SAFETY: the record is ours.
            let process = unsafe { record.process() };
            // SAFETY: the process is inside.
            unsafe { self.algorithm.exit(process) };
            self.pool.put(record);
            wake_tasks();
        }
    }

    /// Opens the room, in which the holder of `pass` is alone, to `session`.
    fn open(&self, pass: &mut Pass<S>, session: S) {
        let record = pass.record.expect("the holder is inside");
        let number = number_of(session);
        record.set_request(number, Some(session));
        // SAFETY: the record is ours.
        let process = unsafe { record.process() };
        // SAFETY: the process is inside, alone, because it asked for a session of its own.
        unsafe { self.algorithm.change(process, session_of(number), false) };
        pass.session = Some(session);
        wake_tasks();
    }

    /// The record of a holder, if its session is not `number`.
    fn record_of_other_session(pass: &Pass<S>, number: u64) -> Option<Owned<S>> {
        pass.record.filter(|record| record.number() != number)
    }
}

/// Wakes a thread that sleeps until a deadline.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl<S> Default for Handover<S> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: the algorithm excludes requests with different numbers, and each request to be alone has
// a number of its own. Its steps order what holders do, as its page says and as loom has checked. A
// holding ends when its last guard is dropped. A withdrawn request does not enter.
unsafe impl<S: Copy + Into<u32>> Core for Handover<S> {
    type Session = S;
    type Pass = Pass<S>;
    type Waiting = Waiting<S>;

    #[inline]
    fn enter(&self, session: Option<S>) -> Pass<S> {
        let (record, inside) = self.ask(session);
        if !inside {
            self.wait(record, None);
        }
        self.pass(record, session)
    }

    #[inline]
    unsafe fn leave(&self, pass: &mut Pass<S>) {
        if let Some(record) = pass.record.take() {
            if let Some(number) = pass.sets_up.take() {
                self.room.retract(number);
            }
            self.release(record);
        }
    }

    #[inline]
    unsafe fn leave_exclusive(&self, pass: &mut Pass<S>) {
        // SAFETY: the caller's promise. Both leave in the same way.
        unsafe { self.leave(pass) };
    }

    unsafe fn session<'a>(&'a self, pass: &'a Pass<S>) -> &'a S {
        pass.session.as_ref().expect("the holder asked for a session")
    }

    fn try_enter(&self, session: Option<S>) -> Option<Pass<S>> {
        // SAFETY: the process is idle; every number is allowed.
        let try_ask = |process: &mut _, number| unsafe { self.algorithm.try_ask(process, number) };
        let (record, inside) = self.submit(session, try_ask);
        if inside {
            return Some(self.pass(record, session));
        }
        self.pool.put(record);
        None
    }

    fn enter_until(&self, session: Option<S>, deadline: Instant) -> Option<Pass<S>> {
        if deadline <= Instant::now() {
            return self.try_enter(session);
        }
        let (record, inside) = self.ask(session);
        (inside || self.wait(record, Some(deadline))).then(|| self.pass(record, session))
    }

    fn poll_enter(
        &self,
        session: Option<&S>,
        waiting: &mut Option<Waiting<S>>,
        cx: &mut Context<'_>,
    ) -> Poll<Pass<S>> {
        let session = session.copied();
        let record = if let Some(Waiting { record, .. }) = waiting {
            let record = *record;
            if !self.poll(record, || cx.waker().clone()) {
                return Poll::Pending;
            }
            self.end_wait(waiting);
            record
        } else {
            let (record, inside) = self.ask(session);
            let request = (Waiting::without_set_up(record), inside);
            if self.begin_wait(request, waiting, || cx.waker().clone()).is_none() {
                return Poll::Pending;
            }
            record
        };
        Poll::Ready(self.pass(record, session))
    }

    fn cancel(&self, waiting: Waiting<S>, _exclusive: bool) {
        let Waiting { record, sets_up, .. } = waiting;
        if let Some(number) = sets_up {
            self.room.retract(number);
        }
        let inside = self.withdraw(record);
        record.set_waiting_since(None);
        if inside {
            self.release(record);
        } else {
            self.pool.put(record);
        }
    }

    unsafe fn switch(&self, pass: &mut Pass<S>, session: S, deadline: Option<Instant>) -> bool {
        let Some(old) = Self::record_of_other_session(pass, number_of(session)) else {
            return true;
        };
        let (record, mut inside) = self.ask(Some(session));
        self.release(old);
        inside = inside || self.wait(record, deadline);
        *pass = if inside {
            self.pass(record, Some(session))
        } else {
            Pass { record: None, session: None, sets_up: None }
        };
        inside
    }

    unsafe fn try_switch(&self, pass: &mut Pass<S>, session: S) -> bool {
        let number = number_of(session);
        let Some(record) = Self::record_of_other_session(pass, number) else { return true };
        if !record.has_one_guard() {
            return false;
        }
        // SAFETY: the record is ours, because this is the only guard of the holding.
        let process = unsafe { record.process() };
        // SAFETY: the process is inside. The call does nothing unless the process is alone.
        let changed = unsafe { self.algorithm.change(process, session_of(number), true) };
        if changed {
            record.set_request(number, Some(session));
            *pass = self.pass(record, Some(session));
        }
        changed
    }

    unsafe fn poll_switch(
        &self,
        pass: &mut Pass<S>,
        session: &S,
        waiting: &mut Option<Waiting<S>>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let Some(old) = Self::record_of_other_session(pass, number_of(*session)) else {
            return Poll::Ready(());
        };
        // Foreign code, before anything else happens.
        let mut waker = Some(cx.waker().clone());
        let (record, inside) = self.ask(Some(*session));
        pass.record = None;
        self.release(old);
        let mut take = || waker.take().expect("it is taken once");
        let request = (Waiting::without_set_up(record), inside);
        if self.begin_wait(request, waiting, &mut take).is_none() {
            return Poll::Pending;
        }
        *pass = self.pass(record, Some(*session));
        // Foreign code. A panic here would leave a guard that seems inside the old session.
        discard(waker);
        Poll::Ready(())
    }

    unsafe fn again(&self, pass: &Pass<S>) -> Pass<S> {
        let Pass { record, session, .. } = *pass;
        if let Some(record) = record {
            record.add_guard();
        }
        Pass { record, session, sets_up: None }
    }

    fn enter_with(&self, session: &S) -> (Pass<S>, bool) {
        self.wait_set_up(*session)
    }

    fn poll_enter_with(
        &self,
        session: &S,
        waiting: &mut Option<Waiting<S>>,
        cx: &mut Context<'_>,
    ) -> Poll<(Pass<S>, bool)> {
        self.poll_set_up(*session, waiting, cx)
    }

    unsafe fn finish_set_up(&self, pass: &mut Pass<S>, session: S) {
        self.room.finish_set_up();
        if let Some(number) = pass.sets_up.take() {
            self.room.retract(number);
        }
        self.open(pass, session);
    }

    fn epoch(&self) -> u64 {
        self.room.epoch()
    }

    unsafe fn downgrade(&self, pass: &mut Pass<S>, session: S) {
        self.room.entered(number_of(session));
        self.open(pass, session);
    }

    fn snapshot(&self) -> Snapshot<S> {
        let record = self.pool.take(&self.algorithm);
        let mut queue = Vec::new();
        // SAFETY: the record is ours.
        let process = unsafe { record.process() };
        let see = |number, name: *const ()| queue.push((number, name.addr()));
        // SAFETY: the process is idle.
        unsafe { self.algorithm.visit(process, see) };
        self.pool.put(record);
        self.pool.snapshot(&queue)
    }
}

impl<S> fmt::Debug for Handover<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handover").finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for Pass<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for Waiting<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").finish_non_exhaustive()
    }
}
