//! `handover`: first come first served, at a constant number of remote memory references.
//!
//! The queue is the algorithm's, [`grouplock_algorithms::handover_withdraw`]. Here is what makes a lock of it:
//!
//! * [`memory`]: where a thread sleeps and a task is woken;
//! * [`exit_lock`]: the lock between those who leave;
//! * [`seats`]: the processes of the algorithm, which go from one request to the next;
//! * [`room`]: which session was inside last, and whether the room is set up for it;
//! * [`set_up`]: entering with set-up;
//! * [`show`]: what a snapshot tells.
//!
//! A request to be alone is one for a session of its own.

mod exit_lock;
mod memory;
mod room;
mod seats;
mod set_up;
mod show;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use grouplock_algorithms::handover_withdraw::HandoverWithdraw;
use grouplock_algorithms::raw::RawGroup;

use self::exit_lock::ExitLock;
use self::memory::{Park, wake_tasks};
use self::room::Room;
use self::seats::{Owned, Seats};
use super::{Core, discard};
use crate::Snapshot;
use crate::sync::{self, AtomicU64, Mutex, PATIENT_LOOKS, Thread};

type Algorithm = HandoverWithdraw<Park, ExitLock>;
/// What a process of the algorithm keeps between its passages.
type Process = <Algorithm as RawGroup<Park>>::Process;

/// The corrected algorithm of Maor and Taubenfeld, with withdrawal: [`grouplock_algorithms::handover_withdraw`]. First come first served, and a passage
/// costs a constant number of remote memory references however many threads there are, amortised where requests are given up or waiters sleep: whoever lets
/// a session in makes a step for each of its members that sleeps, so that they enter together.
///
/// For machines with very many processors, and for those who study it. Sessions are told apart by a number. Needs feature `handover`.
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
/// It has every call that the default core has, but for policies and [`at_most`](crate::GroupLock::at_most). What differs:
///
/// * **Who leaves, gives up or drops a future may wait** for the algorithm's exit lock, under which others make a constant number of steps each. A thread
///   that is stopped there by the operating system stops those who leave until it goes on. Nobody waits there for another's stay.
/// * **`try_*`** enters if nobody is there, or if its session is inside and nobody waits. It waits for nobody's stay. If the last of the queue changes
///   while it looks, it may have to take its request back, and so to wait for the exit lock.
/// * **Set-up is in order, too**: with [`enter_with`](crate::GroupLock::enter_with), the first that finds the room not set up asks to be alone, and the others of
///   the session line up behind it. One that entered the session plainly before it goes first, and finds the room as it is.
/// * Features `deadlock_detection` and `tracing` see no waits here, and `Debug` shows nobody.
pub struct Handover<S> {
    algorithm: Algorithm,
    seats: Seats<S>,
    room: Room,
    /// How many have asked to be alone: each of them is a session of its own.
    alone: AtomicU64,
}

/// What a holder keeps.
pub struct Pass<S> {
    /// There until the holder leaves.
    seat: Option<Owned<S>>,
    session: Option<S>,
    /// The number of the session for which it sets the room up, or none.
    sets_up: Option<u64>,
}

/// A task that waits.
pub struct Waiting<S> {
    seat: Owned<S>,
    /// As in [`Pass`], for one that will do so.
    sets_up: Option<u64>,
    /// How often it has been let in and found the room not set up.
    in_vain: u32,
}

impl<S> Waiting<S> {
    /// One that wants no set-up.
    fn plainly(seat: Owned<S>) -> Self {
        Waiting { seat, sets_up: None, in_vain: 0 }
    }
}

/// The numbers of named sessions are below this, and not zero.
const ALONE: u64 = 1 << 33;

/// Locks a mutex that nobody can leave in disorder.
fn locked<T>(mutex: &Mutex<T>) -> impl std::ops::DerefMut<Target = T> + '_ {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number_of<S: Copy + Into<u32>>(session: S) -> u64 {
    u64::from(session.into()) + 1
}

fn session_of(number: u64) -> grouplock_algorithms::Session {
    grouplock_algorithms::Session::new(number).expect("not zero")
}

impl<S> Handover<S> {
    /// A lock for any number of threads and tasks.
    ///
    /// # Panics
    /// Never: the algorithm serves any number.
    pub fn new() -> Self {
        let algorithm = Algorithm::new(0).expect("the algorithm serves any number of processes");
        Handover { algorithm, seats: Seats::new(), room: Room::new(), alone: AtomicU64::new(ALONE) }
    }
}

impl<S: Copy + Into<u32>> Handover<S> {
    /// A number for the request.
    fn number(&self, session: Option<S>) -> u64 {
        match session {
            Some(session) => number_of(session),
            // Relaxed: the numbers need only differ.
            None => self.alone.fetch_add(1, Relaxed),
        }
    }

    /// Asks, and says whether inside.
    #[inline]
    fn ask(&self, session: Option<S>) -> (Owned<S>, bool) {
        let number = self.number(session);
        let seat = self.seats.take(&self.algorithm);
        seat.asks_for(number, session);
        // SAFETY: the seat is ours.
        let process = unsafe { seat.process() };
        // SAFETY: the process is idle; every number is allowed.
        let inside = unsafe { self.algorithm.ask(process, session_of(number)) };
        wake_tasks();
        (seat, inside)
    }

    /// Waits until inside, or until `deadline`: then the request is given up. Says whether inside.
    #[cold]
    fn wait(&self, seat: Owned<S>, deadline: Option<Instant>) -> bool {
        for _ in 0..PATIENT_LOOKS {
            if self.look(seat) {
                return true;
            }
            sync::relax();
        }
        seat.waits(Some(Instant::now()));
        let inside = match deadline {
            None => {
                // SAFETY: the seat is ours.
                self.algorithm.flag(unsafe { seat.process() }).sleep();
                self.look(seat)
            }
            Some(deadline) => self.wait_until(seat, deadline),
        };
        seat.waits(None);
        if !inside {
            self.seats.put(seat);
        }
        inside
    }

    /// Whether the request that waits is inside.
    fn look(&self, seat: Owned<S>) -> bool {
        // SAFETY: the seat is ours.
        let process = unsafe { seat.process() };
        // SAFETY: the process waits.
        let inside = unsafe { self.algorithm.look(process) };
        wake_tasks();
        inside
    }

    fn wait_until(&self, seat: Owned<S>, deadline: Instant) -> bool {
        let waker = Waker::from(Arc::new(Unpark(sync::current())));
        loop {
            if self.poll(seat, || waker.clone()) {
                return true;
            }
            if sync::is_over(deadline, Instant::now()) {
                return self.give_up(seat);
            }
            sync::park(Some(deadline));
        }
    }

    /// Whether the request that waits is inside. If not, the waker will be woken.
    fn poll(&self, seat: Owned<S>, waker: impl FnOnce() -> Waker) -> bool {
        // SAFETY: the seat is ours.
        self.algorithm.flag(unsafe { seat.process() }).poll(waker) && self.look(seat)
    }

    /// Gives the request up. Says whether inside after all.
    fn give_up(&self, seat: Owned<S>) -> bool {
        // SAFETY: the seat is ours.
        let process = unsafe { seat.process() };
        // SAFETY: the process waits for this number.
        let inside = unsafe { self.algorithm.give_up(process, session_of(seat.number())) };
        self.algorithm.flag(process).forget_waker();
        wake_tasks();
        inside
    }

    /// A task waits; the request, if it is inside already. `waiting` is there before the waker is cloned, so that the request is given up if that panics.
    fn begin_wait(
        &self,
        request: Waiting<S>,
        waiting: &mut Option<Waiting<S>>,
        waker: impl FnOnce() -> Waker,
    ) -> Option<Waiting<S>> {
        let seat = request.seat;
        *waiting = Some(request);
        seat.waits(Some(Instant::now()));
        if self.poll(seat, waker) { self.end_wait(waiting) } else { None }
    }

    /// A task waits no more.
    fn end_wait(&self, waiting: &mut Option<Waiting<S>>) -> Option<Waiting<S>> {
        let waited = waiting.take()?;
        waited.seat.waits(None);
        Some(waited)
    }

    /// The request that has this seat has entered `session`.
    #[inline]
    fn pass(&self, seat: Owned<S>, session: Option<S>) -> Pass<S> {
        if session.is_some() {
            self.room.entered(seat.number());
        }
        Pass { seat: Some(seat), session, sets_up: None }
    }

    /// A guard of the stay is gone.
    #[inline]
    fn leave_seat(&self, seat: Owned<S>) {
        if seat.is_last() {
            // SAFETY: the seat is ours.
            let process = unsafe { seat.process() };
            // SAFETY: the process is inside.
            unsafe { self.algorithm.exit(process) };
            self.seats.put(seat);
            wake_tasks();
        }
    }

    #[inline]
    fn leave_by(&self, pass: &mut Pass<S>) {
        if let Some(seat) = pass.seat.take() {
            if let Some(number) = pass.sets_up.take() {
                self.room.has_come(number);
            }
            self.leave_seat(seat);
        }
    }

    /// The room that the holder of `pass` has to itself becomes one of `session`.
    fn open(&self, pass: &mut Pass<S>, session: S) {
        let seat = pass.seat.expect("the holder is inside");
        let number = number_of(session);
        seat.asks_for(number, Some(session));
        // SAFETY: the seat is ours.
        let process = unsafe { seat.process() };
        // SAFETY: the process is inside. It asked for a session of its own, so nobody else is.
        unsafe { self.algorithm.change(process, session_of(number), false) };
        pass.session = Some(session);
        wake_tasks();
    }

    /// The seat of a holder, if it asked for another session than `number`.
    fn another(pass: &Pass<S>, number: u64) -> Option<Owned<S>> {
        pass.seat.filter(|seat| seat.number() != number)
    }
}

/// Has a thread go on that sleeps until a deadline.
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

// SAFETY: the algorithm excludes requests with different numbers, and each request to be alone has a number of its own. Its steps order what
// holders did, as its page says and loom agrees. A stay ends when the last of its guards is gone. A request that is given up does not enter.
unsafe impl<S: Copy + Into<u32>> Core for Handover<S> {
    type Session = S;
    type Pass = Pass<S>;
    type Waiting = Waiting<S>;

    #[inline]
    fn enter(&self, session: Option<S>) -> Pass<S> {
        let (seat, inside) = self.ask(session);
        if !inside {
            self.wait(seat, None);
        }
        self.pass(seat, session)
    }

    #[inline]
    unsafe fn leave(&self, pass: &mut Pass<S>) {
        self.leave_by(pass);
    }

    #[inline]
    unsafe fn leave_exclusive(&self, pass: &mut Pass<S>) {
        self.leave_by(pass);
    }

    unsafe fn session<'a>(&'a self, pass: &'a Pass<S>) -> &'a S {
        pass.session.as_ref().expect("the holder asked for a session")
    }

    fn try_enter(&self, session: Option<S>) -> Option<Pass<S>> {
        let number = self.number(session);
        let seat = self.seats.take(&self.algorithm);
        seat.asks_for(number, session);
        // SAFETY: the seat is ours.
        let process = unsafe { seat.process() };
        // SAFETY: the process is idle; every number is allowed.
        let inside = unsafe { self.algorithm.try_ask(process, session_of(number)) };
        wake_tasks();
        if inside {
            return Some(self.pass(seat, session));
        }
        self.seats.put(seat);
        None
    }

    fn enter_until(&self, session: Option<S>, deadline: Instant) -> Option<Pass<S>> {
        if deadline <= Instant::now() {
            return self.try_enter(session);
        }
        let (seat, inside) = self.ask(session);
        (inside || self.wait(seat, Some(deadline))).then(|| self.pass(seat, session))
    }

    fn poll_enter(
        &self,
        session: Option<&S>,
        waiting: &mut Option<Waiting<S>>,
        cx: &mut Context<'_>,
    ) -> Poll<Pass<S>> {
        let session = session.copied();
        let seat = if let Some(Waiting { seat, .. }) = waiting {
            let seat = *seat;
            if !self.poll(seat, || cx.waker().clone()) {
                return Poll::Pending;
            }
            self.end_wait(waiting);
            seat
        } else {
            let (seat, inside) = self.ask(session);
            let request = Waiting::plainly(seat);
            if !inside && self.begin_wait(request, waiting, || cx.waker().clone()).is_none() {
                return Poll::Pending;
            }
            seat
        };
        Poll::Ready(self.pass(seat, session))
    }

    fn cancel(&self, waiting: Waiting<S>, _exclusive: bool) {
        let Waiting { seat, sets_up, .. } = waiting;
        if let Some(number) = sets_up {
            self.room.has_come(number);
        }
        let inside = self.give_up(seat);
        seat.waits(None);
        if inside {
            self.leave_seat(seat);
        } else {
            self.seats.put(seat);
        }
    }

    unsafe fn switch(&self, pass: &mut Pass<S>, session: S, deadline: Option<Instant>) -> bool {
        let Some(old) = Self::another(pass, number_of(session)) else { return true };
        let (seat, mut inside) = self.ask(Some(session));
        self.leave_seat(old);
        inside = inside || self.wait(seat, deadline);
        *pass = if inside {
            self.pass(seat, Some(session))
        } else {
            Pass { seat: None, session: None, sets_up: None }
        };
        inside
    }

    unsafe fn try_switch(&self, pass: &mut Pass<S>, session: S) -> bool {
        let number = number_of(session);
        let Some(seat) = Self::another(pass, number) else { return true };
        if !seat.is_single() {
            return false;
        }
        // SAFETY: the seat is ours, as this is the only guard of the stay.
        let process = unsafe { seat.process() };
        // SAFETY: the process is inside, and nothing happens unless it is alone.
        let changed = unsafe { self.algorithm.change(process, session_of(number), true) };
        if changed {
            seat.asks_for(number, Some(session));
            *pass = self.pass(seat, Some(session));
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
        let Some(old) = Self::another(pass, number_of(*session)) else { return Poll::Ready(()) };
        // Foreign code, before anything happens.
        let mut waker = Some(cx.waker().clone());
        let (seat, inside) = self.ask(Some(*session));
        pass.seat = None;
        self.leave_seat(old);
        let mut take = || waker.take().expect("it is taken once");
        if !inside && self.begin_wait(Waiting::plainly(seat), waiting, &mut take).is_none() {
            return Poll::Pending;
        }
        *pass = self.pass(seat, Some(*session));
        // Foreign code, too. If it panicked here, the guard would be thought inside the session that it has left.
        discard(waker);
        Poll::Ready(())
    }

    unsafe fn again(&self, pass: &Pass<S>) -> Pass<S> {
        let Pass { seat, session, .. } = *pass;
        if let Some(seat) = seat {
            seat.again();
        }
        Pass { seat, session, sets_up: None }
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
        self.room.ends();
        if let Some(number) = pass.sets_up.take() {
            self.room.has_come(number);
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
        let seat = self.seats.take(&self.algorithm);
        let mut queue = Vec::new();
        // SAFETY: the seat is ours.
        let process = unsafe { seat.process() };
        let see = |number, name: *const ()| queue.push((number, name.addr()));
        // SAFETY: the process is idle.
        unsafe { self.algorithm.visit(process, see) };
        self.seats.put(seat);
        self.show(&queue)
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
