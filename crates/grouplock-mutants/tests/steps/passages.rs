//! What a process does in a passage. The explorer chooses it: each way is a session to the
//! explorer.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use grouplock_algorithms::memory::{Flag, Memory, Value, Word};
use grouplock_algorithms::raw::{GiveUp, RawGroup, WithdrawGroup};
use grouplock_algorithms::{CapacityError, Claims, Session};
use grouplock_lab::memory::SimMemory;

use crate::memory::{Away, Go};

/// The algorithm in steps.
pub(crate) trait Steps: RawGroup<Away> + 'static {
    fn flag<'a>(&'a self, me: &Self::Process) -> &'a Go;
    unsafe fn ask(&self, me: &mut Self::Process, session: Session) -> bool;
    unsafe fn try_ask(&self, me: &mut Self::Process, session: Session) -> bool;
    unsafe fn look(&self, me: &mut Self::Process) -> bool;
    unsafe fn give_up(&self, me: &mut Self::Process, session: Session) -> bool;
    unsafe fn change(&self, me: &mut Self::Process, session: Session, if_last: bool) -> bool;
}

/// Implements the trait by the methods of the type.
macro_rules! steps {
    ($($module:path),* $(,)?) => {$(
        const _: () = {
            use $module::{HandoverWithdraw, Process};
            use crate::memory::{Away, Go};
            use grouplock_algorithms::{Session, raw::RawMutex};

            type Lock<L> = HandoverWithdraw<Away, L>;
            type Me<L> = Process<Away, L>;

            impl<L: RawMutex<Away> + 'static> crate::passages::Steps for Lock<L> {
                fn flag<'a>(&'a self, me: &Me<L>) -> &'a Go {
                    Self::flag(self, me)
                }
                unsafe fn ask(&self, me: &mut Me<L>, session: Session) -> bool {
                    // SAFETY: the caller's promise, here and below.
                    unsafe { Self::ask(self, me, session) }
                }
                unsafe fn try_ask(&self, me: &mut Me<L>, session: Session) -> bool {
                    // SAFETY: as above.
                    unsafe { Self::try_ask(self, me, session) }
                }
                unsafe fn look(&self, me: &mut Me<L>) -> bool {
                    // SAFETY: as above.
                    unsafe { Self::look(self, me) }
                }
                unsafe fn give_up(&self, me: &mut Me<L>, session: Session) -> bool {
                    // SAFETY: as above.
                    unsafe { Self::give_up(self, me, session) }
                }
                unsafe fn change(&self, me: &mut Me<L>, session: Session, if_last: bool) -> bool {
                    // SAFETY: as above.
                    unsafe { Self::change(self, me, session, if_last) }
                }
            }
        };
    )*};
}
pub(crate) use steps;

/// A way through the lock. The session is the one that the explorer assigns to the process while it
/// is inside.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// Requests, sleeps, waits.
    Waits(u64),
    /// Requests, sleeps, and withdraws.
    GivesUp(u64),
    Tries(u64),
    /// Enters alone, and changes the room to this session as it leaves.
    Opens(u64),
    /// The same, but the room has the session while it is inside.
    Opened(u64),
    /// Enters the session, and before it leaves changes the room to the other one if no other
    /// process is inside.
    Moves(u64),
    /// Enters the other session, and stays only if it could change the room to this one.
    Moved(u64),
}

/// The session of processes that are alone.
const ALONE: u64 = 0;

impl Way {
    fn session(self) -> u64 {
        match self {
            Way::Waits(s)
            | Way::GivesUp(s)
            | Way::Tries(s)
            | Way::Opened(s)
            | Way::Moves(s)
            | Way::Moved(s) => s,
            Way::Opens(_) => ALONE,
        }
    }

    fn is_alone(self) -> bool {
        matches!(self, Way::Opens(_) | Way::Opened(_))
    }
}

/// The ways that processes may take: the explorer's session 1 is the first of them.
pub(crate) trait Ways: std::fmt::Debug + Send + Sync + 'static {
    const ALL: &'static [Way];
}

/// The algorithm `A`, whose processes take the ways `W`.
#[derive(Debug)]
pub(crate) struct Passages<A, W> {
    lock: A,
    joined: AtomicU64,
    ways: PhantomData<W>,
}

#[derive(Debug)]
pub(crate) struct Process<P> {
    part: P,
    /// The session in which it is alone. Zero if no process is, as it distinguishes processes.
    own: u64,
    /// While inside.
    way: Option<Way>,
}

fn other(session: u64) -> u64 {
    3 - session
}

fn number(session: u64) -> Session {
    Session::new(session).expect("not zero")
}

impl<A: Steps, W: Ways> Passages<A, W> {
    fn way(code: u64) -> Way {
        W::ALL[code as usize - 1]
    }

    /// Enters `session` as a request of `GroupLock` does.
    ///
    /// # Safety
    /// As [`RawGroup::enter`].
    unsafe fn wait(&self, me: &mut A::Process, session: u64) {
        // SAFETY: the caller's promise.
        let inside = unsafe { self.lock.ask(me, number(session)) };
        if !inside {
            Away::live(|| []);
            self.lock.flag(me).go_away();
            let go = self.lock.flag(me);
            Away::await_until(|| go.holds(true));
            Away::live(|| []);
            // SAFETY: it waits.
            let inside = unsafe { self.lock.look(me) };
            assert!(inside, "the signal has come");
        }
    }

    /// The entry section. Returns whether it is inside.
    ///
    /// # Safety
    /// As [`RawGroup::enter`].
    unsafe fn enter_by(&self, me: &mut Process<A::Process>, way: Way) -> bool {
        let own = me.own;
        let me = &mut me.part;
        // SAFETY: before each call the process is in the section that the call requires.
        unsafe {
            match way {
                Way::Waits(s) | Way::Moves(s) => self.wait(me, s),
                Way::Opens(_) => self.wait(me, own),
                Way::GivesUp(s) => {
                    let inside = self.lock.ask(me, number(s));
                    if inside {
                        return true;
                    }
                    Away::live(|| []);
                    self.lock.flag(me).go_away();
                    Away::live(|| []);
                    return self.lock.give_up(me, number(s));
                }
                Way::Tries(s) => return self.lock.try_ask(me, number(s)),
                Way::Opened(s) => {
                    self.wait(me, own);
                    let changed = self.lock.change(me, number(s), false);
                    assert!(changed, "who is alone can change the session");
                }
                Way::Moved(s) => {
                    self.wait(me, other(s));
                    let changed = self.lock.change(me, number(s), true);
                    if !changed {
                        self.lock.exit(me);
                        return false;
                    }
                }
            }
        }
        true
    }
}

impl<A: Steps, W: Ways> RawGroup<SimMemory> for Passages<A, W> {
    type Process = Process<A::Process>;

    fn claims() -> Claims {
        A::claims()
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        let lock = A::new(processes)?;
        Ok(Passages { lock, joined: AtomicU64::new(0), ways: PhantomData })
    }

    fn join(&self) -> Result<Self::Process, CapacityError> {
        let part = self.lock.join()?;
        let number = 3 + self.joined.fetch_add(1, Relaxed);
        let own = if W::ALL.iter().any(|way| way.is_alone()) { number } else { 0 };
        Ok(Process { part, own, way: None })
    }

    unsafe fn leave(&self, me: Self::Process) {
        // SAFETY: the caller's promise.
        unsafe { self.lock.leave(me.part) };
    }

    unsafe fn enter(&self, _: &mut Self::Process, _: Session) {
        unreachable!("some ways do not end inside");
    }

    unsafe fn exit(&self, me: &mut Self::Process) {
        let way = me.way.take().expect("it is inside");
        let me = &mut me.part;
        // SAFETY: the process is inside. It is alone, or the call changes nothing unless it is.
        unsafe {
            match way {
                Way::Opens(s) => {
                    let changed = self.lock.change(me, number(s), false);
                    assert!(changed, "who is alone can change the session");
                }
                Way::Moves(s) => _ = self.lock.change(me, number(other(s)), true),
                _ => {}
            }
            self.lock.exit(me);
        }
    }

    fn inspect(me: &Self::Process, see: &mut dyn FnMut(&'static str, Word)) {
        see("own", me.own.word());
        A::inspect(&me.part, see);
    }

    fn conflict(one: u64, another: u64) -> bool {
        let [one, another] = [one, another].map(|code| Self::way(code).session());
        one != another || one == ALONE
    }
}

impl<A: Steps, W: Ways> WithdrawGroup<SimMemory> for Passages<A, W> {
    unsafe fn enter_unless(&self, me: &mut Self::Process, session: Session, _: GiveUp<'_>) -> bool {
        let way = Self::way(session.get());
        // SAFETY: the caller's promise.
        let inside = unsafe { self.enter_by(me, way) };
        me.way = inside.then_some(way);
        inside
    }
}
