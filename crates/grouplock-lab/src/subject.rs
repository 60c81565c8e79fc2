//! A lock of either kind with its processes, behind one object-safe face.

use std::rc::Rc;

use grouplock_algorithms::memory::Word;
use grouplock_algorithms::raw::{RawGroup, RawMutex, WithdrawGroup, WithdrawMutex};
use grouplock_algorithms::{CapacityError, Claims, Session};

use crate::memory::SimMemory;

/// A process that has joined a lock, which it shares with the others.
pub(crate) trait Process {
    /// Whether it is inside: else it has given up.
    fn enter(&mut self, session: u64) -> bool;
    fn exit(&mut self);

    /// The private variables, when idle, that the next passage may depend on.
    fn inspect(&self, see: &mut dyn FnMut(&'static str, Word));

    /// All of the handle: its derived `Debug` form, which names every field.
    fn handle(&self) -> String;
}

/// All processes of a lock that was made afresh.
pub(crate) type Joined = Result<Vec<Box<dyn Process>>, CapacityError>;

/// An algorithm that can be explored.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The name it is asked for by.
    pub name: &'static str,
    /// What is said of it.
    pub claims: Claims,
    pub(crate) make: fn(usize) -> Joined,
    pub(crate) in_range: fn(&str, u64, usize) -> bool,
    /// Whether requests for two sessions exclude each other.
    pub(crate) conflict: fn(u64, u64) -> bool,
    /// How many may share a session.
    pub(crate) most: fn(u64) -> usize,
    /// Whether waiters can give up.
    pub(crate) withdraws: bool,
    /// Whether processes may die.
    pub(crate) dies: bool,
}

impl Subject {
    /// A mutual exclusion lock, under a name of its own.
    pub fn mutex<L: RawMutex<SimMemory> + 'static>(name: &'static str) -> Self {
        Subject {
            name,
            claims: L::claims(),
            make: |processes| make_mutex::<L>(processes, acquire::<L>),
            in_range: L::in_range,
            conflict: |_, _| true,
            most: |_| 1,
            withdraws: false,
            dies: false,
        }
    }

    /// The same, with other ranges for its registers: whether the one of this name may hold this number, among so many
    /// processes.
    #[must_use]
    pub fn with_range(self, in_range: fn(&str, u64, usize) -> bool) -> Self {
        Subject { in_range, ..self }
    }

    /// A group lock, under a name of its own.
    pub fn group<G: RawGroup<SimMemory> + 'static>(name: &'static str) -> Self {
        Subject {
            name,
            claims: G::claims(),
            make: |processes| make_group::<G>(processes, enter::<G>),
            in_range: G::in_range,
            conflict: G::conflict,
            most: G::most,
            withdraws: false,
            dies: false,
        }
    }

    /// A mutual exclusion lock whose waiters may give up, wherever they wait.
    pub fn withdrawing_mutex<L: WithdrawMutex<SimMemory> + 'static>(name: &'static str) -> Self {
        let make = |processes| make_mutex::<L>(processes, acquire_unless::<L>);
        Subject { make, withdraws: true, ..Subject::mutex::<L>(name) }
    }

    /// A group lock whose waiters may give up, wherever they wait.
    pub fn withdrawing<G: WithdrawGroup<SimMemory> + 'static>(name: &'static str) -> Self {
        let make = |processes| make_group::<G>(processes, enter_unless::<G>);
        Subject { make, withdraws: true, ..Subject::group::<G>(name) }
    }

    /// A group lock whose processes may die, and are told of deaths where they wait. `explore/deaths.rs` says which registers it has.
    pub fn recovering<G: RawGroup<SimMemory> + 'static>(name: &'static str) -> Self {
        Subject { dies: true, ..Subject::group::<G>(name) }
    }

    /// Whether its processes may die.
    pub fn may_die(&self) -> bool {
        self.dies
    }
}

fn make_mutex<L: RawMutex<SimMemory> + 'static>(processes: usize, acquire: Acquire<L>) -> Joined {
    let lock = Rc::new(L::new(processes)?);
    let join = |_| Ok(Box::new(OfMutex { me: lock.join()?, lock: Rc::clone(&lock), acquire }) as _);
    (0..processes).map(join).collect()
}

fn make_group<G: RawGroup<SimMemory> + 'static>(processes: usize, enter: Enter<G>) -> Joined {
    let lock = Rc::new(G::new(processes)?);
    let join = |_| Ok(Box::new(OfGroup { me: lock.join()?, lock: Rc::clone(&lock), enter }) as _);
    (0..processes).map(join).collect()
}

/// How a process of a mutual exclusion lock enters.
type Acquire<L> = unsafe fn(&L, &mut <L as RawMutex<SimMemory>>::Process) -> bool;

struct OfMutex<L: RawMutex<SimMemory>> {
    me: L::Process,
    lock: Rc<L>,
    acquire: Acquire<L>,
}

/// # Safety
/// As [`RawMutex::acquire`].
unsafe fn acquire<L: RawMutex<SimMemory>>(lock: &L, me: &mut L::Process) -> bool {
    // SAFETY: the caller's promise.
    unsafe { lock.acquire(me) };
    true
}

/// # Safety
/// As [`RawMutex::acquire`].
unsafe fn acquire_unless<L: WithdrawMutex<SimMemory>>(lock: &L, me: &mut L::Process) -> bool {
    // SAFETY: the caller's promise.
    unsafe { lock.acquire_unless(me, &mut || unreachable!("simulated memory decides")) }
}

impl<L: RawMutex<SimMemory>> Process for OfMutex<L> {
    fn enter(&mut self, _: u64) -> bool {
        // SAFETY: `me` joined this lock, and passages follow each other: `enter` and `exit` are called by turns.
        unsafe { (self.acquire)(&self.lock, &mut self.me) }
    }

    fn exit(&mut self) {
        // SAFETY: as above.
        unsafe { self.lock.release(&mut self.me) }
    }

    fn inspect(&self, see: &mut dyn FnMut(&'static str, Word)) {
        L::inspect(&self.me, see);
    }

    fn handle(&self) -> String {
        format!("{:?}", self.me)
    }
}

/// How a process of a group lock enters.
type Enter<G> = unsafe fn(&G, &mut <G as RawGroup<SimMemory>>::Process, Session) -> bool;

struct OfGroup<G: RawGroup<SimMemory>> {
    me: G::Process,
    lock: Rc<G>,
    enter: Enter<G>,
}

/// # Safety
/// As [`RawGroup::enter`].
unsafe fn enter<G: RawGroup<SimMemory>>(lock: &G, me: &mut G::Process, session: Session) -> bool {
    // SAFETY: the caller's promise.
    unsafe { lock.enter(me, session) };
    true
}

/// # Safety
/// As [`RawGroup::enter`].
unsafe fn enter_unless<G: WithdrawGroup<SimMemory>>(
    lock: &G,
    me: &mut G::Process,
    session: Session,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe { lock.enter_unless(me, session, &mut || unreachable!("simulated memory decides")) }
}

impl<G: RawGroup<SimMemory>> Process for OfGroup<G> {
    fn enter(&mut self, session: u64) -> bool {
        let session = Session::new(session).expect("sessions are numbered from one");
        // SAFETY: `me` joined this lock, `enter` and `exit` are called by turns, and nobody asks for more
        // sessions than the algorithm can name.
        unsafe { (self.enter)(&self.lock, &mut self.me, session) }
    }

    fn exit(&mut self) {
        // SAFETY: as above.
        unsafe { self.lock.exit(&mut self.me) }
    }

    fn inspect(&self, see: &mut dyn FnMut(&'static str, Word)) {
        G::inspect(&self.me, see);
    }

    fn handle(&self) -> String {
        format!("{:?}", self.me)
    }
}
