//! A lock of either kind with its processes, behind one object-safe face.

use std::fmt::Debug;
use std::marker::PhantomData;

use grouplock_algorithms::memory::Word;
use grouplock_algorithms::raw::{RawGroup, RawMutex};
use grouplock_algorithms::{CapacityError, Claims, Session};

use crate::memory::SimMemory;

/// A lock with all its processes, made afresh for each run.
pub(crate) trait Instance {
    /// The entry section of process `p`.
    fn enter(&mut self, p: usize, session: u64);

    /// The exit section of process `p`.
    fn exit(&mut self, p: usize);

    /// The private variables of `p`, idle, that its next passage may depend on.
    fn inspect(&self, p: usize, see: &mut dyn FnMut(&'static str, Word));

    /// All of `p`'s handle: its derived `Debug` form, which names every field.
    fn handle(&self, p: usize) -> String;
}

/// An algorithm that can be explored.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The name it is asked for by.
    pub name: &'static str,
    /// What is said of it.
    pub claims: Claims,
    pub(crate) make: fn(usize) -> Result<Box<dyn Instance>, CapacityError>,
    pub(crate) in_range: fn(&str, u64, usize) -> bool,
}

impl Subject {
    /// A mutual exclusion lock, under a name of its own.
    pub fn mutex<L: RawMutex<SimMemory> + 'static>(name: &'static str) -> Self {
        Subject { name, claims: L::claims(), make: make_mutex::<L>, in_range: L::in_range }
    }

    /// The same, with other ranges for its registers: whether the one of this name may hold this number, among so many
    /// processes.
    #[must_use]
    pub fn with_range(self, in_range: fn(&str, u64, usize) -> bool) -> Self {
        Subject { in_range, ..self }
    }

    /// A group lock, under a name of its own.
    pub fn group<G: RawGroup<SimMemory> + 'static>(name: &'static str) -> Self {
        Subject { name, claims: G::claims(), make: make_group::<G>, in_range: G::in_range }
    }
}

fn make_mutex<L: RawMutex<SimMemory> + 'static>(
    processes: usize,
) -> Result<Box<dyn Instance>, CapacityError> {
    let lock = L::new(processes)?;
    let joined = (0..processes).map(|_| lock.join()).collect::<Result<_, _>>()?;
    Ok(Box::new(MutexInstance { processes: joined, lock }))
}

fn make_group<G: RawGroup<SimMemory> + 'static>(
    processes: usize,
) -> Result<Box<dyn Instance>, CapacityError> {
    let lock = G::new(processes)?;
    let joined = (0..processes).map(|_| lock.join()).collect::<Result<_, _>>()?;
    Ok(Box::new(GroupInstance::<G> { processes: joined, lock, kind: PhantomData }))
}

struct MutexInstance<L: RawMutex<SimMemory>> {
    processes: Vec<L::Process>,
    lock: L,
}

struct GroupInstance<G: RawGroup<SimMemory>> {
    processes: Vec<G::Process>,
    lock: G,
    kind: PhantomData<G>,
}

fn tell(handle: &impl Debug) -> String {
    format!("{handle:?}")
}

impl<L: RawMutex<SimMemory>> Instance for MutexInstance<L> {
    fn enter(&mut self, p: usize, _: u64) {
        // SAFETY: `p` joined this lock, and a run calls `enter` and `exit` by turns.
        unsafe { self.lock.acquire(&mut self.processes[p]) }
    }

    fn exit(&mut self, p: usize) {
        // SAFETY: as above.
        unsafe { self.lock.release(&mut self.processes[p]) }
    }

    fn inspect(&self, p: usize, see: &mut dyn FnMut(&'static str, Word)) {
        L::inspect(&self.processes[p], see);
    }

    fn handle(&self, p: usize) -> String {
        tell(&self.processes[p])
    }
}

impl<G: RawGroup<SimMemory>> Instance for GroupInstance<G> {
    fn enter(&mut self, p: usize, session: u64) {
        let session = Session::new(session).expect("sessions are numbered from one");
        // SAFETY: `p` joined this lock, a run calls `enter` and `exit` by turns, and `check` refuses more
        // sessions than the algorithm can name.
        unsafe { self.lock.enter(&mut self.processes[p], session) }
    }

    fn exit(&mut self, p: usize) {
        // SAFETY: as above.
        unsafe { self.lock.exit(&mut self.processes[p]) }
    }

    fn inspect(&self, p: usize, see: &mut dyn FnMut(&'static str, Word)) {
        G::inspect(&self.processes[p], see);
    }

    fn handle(&self, p: usize) -> String {
        tell(&self.processes[p])
    }
}
