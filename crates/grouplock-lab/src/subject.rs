//! A lock of either kind with its processes, behind one object-safe trait.

use std::fmt;
use std::rc::Rc;

use grouplock_algorithms::memory::Word;
use grouplock_algorithms::raw::{RawGroup, RawMutex, WithdrawGroup, WithdrawMutex};
use grouplock_algorithms::{CapacityError, Claims, Session};

use crate::memory::{SimMemory, context};

/// A process that has joined a lock, which it shares with the others.
pub(crate) trait Process {
    /// Returns whether the process is inside. Otherwise it has withdrawn.
    fn enter(&mut self, session: u64) -> bool;
    fn exit(&mut self);

    /// The private variables of an idle process that its next passage may depend on.
    fn inspect(&self, see: &mut dyn FnMut(&'static str, Word));

    /// The whole handle: its derived `Debug` form, which names every field.
    fn handle(&self) -> String;
}

/// All processes of a new lock.
pub(crate) type Joined = Result<Vec<Box<dyn Process>>, CapacityError>;

/// An algorithm that can be explored.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Its name in the lab.
    pub name: &'static str,
    /// What its source claims.
    pub claims: Claims,
    pub(crate) make: fn(usize) -> Joined,
    pub(crate) in_range: fn(&str, u64, usize) -> bool,
    /// Whether requests for two sessions exclude each other.
    pub(crate) conflict: fn(u64, u64) -> bool,
    /// How many processes may share a session.
    pub(crate) most: fn(u64) -> usize,
    /// Whether waiters can withdraw.
    pub(crate) withdraws: bool,
    /// Whether processes may die.
    pub dies: bool,
}

impl Subject {
    /// A mutual exclusion lock, by this name.
    pub fn mutex<L: RawMutex<SimMemory> + 'static>(name: &'static str) -> Self {
        Subject {
            name,
            claims: L::claims(),
            make: |processes| {
                let enter: Enter<L, L::Process> = |lock, me, _| {
                    // SAFETY: as `Enter` says.
                    unsafe { lock.acquire(me) };
                    true
                };
                join_all(processes, L::new, L::join, enter, L::release, L::inspect)
            },
            in_range: L::in_range,
            conflict: |_, _| true,
            most: |_| 1,
            withdraws: false,
            dies: false,
        }
    }

    /// The same lock with other ranges for its registers: whether the register of this name may
    /// hold this number, with so many processes.
    #[must_use]
    pub fn with_range(self, in_range: fn(&str, u64, usize) -> bool) -> Self {
        Subject { in_range, ..self }
    }

    /// A group lock, by this name.
    pub fn group<G: RawGroup<SimMemory> + 'static>(name: &'static str) -> Self {
        Subject {
            name,
            claims: G::claims(),
            make: |processes| {
                let enter: Enter<G, G::Process> = |lock, me, session| {
                    // SAFETY: as `Enter` says.
                    unsafe { lock.enter(me, session) };
                    true
                };
                join_all(processes, G::new, G::join, enter, G::exit, G::inspect)
            },
            in_range: G::in_range,
            conflict: G::conflict,
            most: G::most,
            withdraws: false,
            dies: false,
        }
    }

    /// A mutual exclusion lock whose waiters may withdraw wherever they wait.
    pub fn withdrawing_mutex<L: WithdrawMutex<SimMemory> + 'static>(name: &'static str) -> Self {
        let make = |processes| {
            let enter: Enter<L, L::Process> = |lock, me, _| {
                // SAFETY: as `Enter` says.
                unsafe { lock.acquire_unless(me, &mut || unreachable!("{DECIDES}")) }
            };
            join_all(processes, L::new, L::join, enter, L::release, L::inspect)
        };
        Subject { make, withdraws: true, ..Subject::mutex::<L>(name) }
    }

    /// A group lock whose waiters may withdraw wherever they wait.
    pub fn withdrawing<G: WithdrawGroup<SimMemory> + 'static>(name: &'static str) -> Self {
        let make = |processes| {
            let enter: Enter<G, G::Process> = |lock, me, session| {
                // SAFETY: as `Enter` says.
                unsafe { lock.enter_unless(me, session, &mut || unreachable!("{DECIDES}")) }
            };
            join_all(processes, G::new, G::join, enter, G::exit, G::inspect)
        };
        Subject { make, withdraws: true, ..Subject::group::<G>(name) }
    }

    /// A group lock whose processes may die and learn of deaths where they wait.
    /// `explore/deaths.rs` says which registers it has.
    pub fn recovering<G: RawGroup<SimMemory> + 'static>(name: &'static str) -> Self {
        Subject { dies: true, ..Subject::group::<G>(name) }
    }
}

const DECIDES: &str = "simulated memory decides who withdraws";

/// How a process enters.
///
/// # Safety
/// The process has joined the lock and is idle, and the lock can name the session.
type Enter<L, P> = unsafe fn(&L, &mut P, Session) -> bool;

fn join_all<L: 'static, P: fmt::Debug + 'static>(
    processes: usize,
    new: fn(usize) -> Result<L, CapacityError>,
    join: fn(&L) -> Result<P, CapacityError>,
    enter: Enter<L, P>,
    exit: unsafe fn(&L, &mut P),
    inspect: fn(&P, &mut dyn FnMut(&'static str, Word)),
) -> Joined {
    let lock = Rc::new(new(processes)?);
    context::let_join();
    let member = |_| {
        let me = join(&lock)?;
        Ok(Box::new(Member { me, lock: Rc::clone(&lock), enter, exit, inspect }) as _)
    };
    (0..processes).map(member).collect()
}

struct Member<L, P> {
    me: P,
    lock: Rc<L>,
    enter: Enter<L, P>,
    exit: unsafe fn(&L, &mut P),
    inspect: fn(&P, &mut dyn FnMut(&'static str, Word)),
}

impl<L, P: fmt::Debug> Process for Member<L, P> {
    fn enter(&mut self, session: u64) -> bool {
        let session = Session::new(session).expect("sessions are numbered from one");
        // SAFETY: `me` joined this lock, the lab calls `enter` and `exit` by turns, and it requests
        // no more sessions than the algorithm can name.
        unsafe { (self.enter)(&self.lock, &mut self.me, session) }
    }

    fn exit(&mut self) {
        // SAFETY: as above.
        unsafe { (self.exit)(&self.lock, &mut self.me) }
    }

    fn inspect(&self, see: &mut dyn FnMut(&'static str, Word)) {
        (self.inspect)(&self.me, see);
    }

    fn handle(&self) -> String {
        format!("{:?}", self.me)
    }
}
