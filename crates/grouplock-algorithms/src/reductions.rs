//! A group lock as a mutex, and as a readers-writers lock.
//!
//! For both see Maor and Taubenfeld 2021, section 1.1. As a mutex, each process requests a session
//! of its own. As a readers-writers lock, readers share one session and each writer has its own.

use core::marker::PhantomData;

use crate::group_exclusion::handover::Handover;
use crate::memory::{Memory, Native, Word};
use crate::prelude::*;
use crate::{EnterError, Group, GroupProcess, Inside};

/// A group lock used as a mutual exclusion lock.
///
/// ```
/// use grouplock_algorithms::{Mutual, reductions::AsMutex};
///
/// let lock = Mutual::<AsMutex>::new(1)?;
/// let mut process = lock.process()?;
/// let held = process.acquire()?;
/// # drop(held);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AsMutex<M: Memory = Native, G: RawGroup<M> = Handover<M>> {
    group: G,
    names: Names,
    memory: PhantomData<M>,
}

/// A process: its part in the group lock, and a session of its own.
#[derive(Debug)]
pub struct Process<P> {
    process: P,
    session: Session,
}

/// Gives out sessions that no other process has, from `first` on.
#[derive(Debug)]
struct Names(std::sync::Mutex<(u64, Vec<Session>)>);

impl Names {
    fn starting_at(first: u64) -> Self {
        Names(std::sync::Mutex::new((first, Vec::new())))
    }

    /// A session for a process that has just joined a lock. No more sessions are in use than there
    /// are processes.
    ///
    /// # Errors
    /// [`CapacityError::Full`] if all sessions up to `largest` are in use, in a lock that has fewer
    /// sessions than processes.
    fn take(&self, largest: u64) -> Result<Session, CapacityError> {
        let mut names = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(session) = names.1.pop() {
            return Ok(session);
        }
        if names.0 > largest {
            return Err(CapacityError::Full { processes: largest as usize });
        }
        let session = Session::new(names.0).expect("names start above zero and only grow");
        names.0 += 1;
        Ok(session)
    }

    fn give_back(&self, session: Session) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).1.push(session);
    }
}

impl<M: Memory, G: RawGroup<M>> RawMutex<M> for AsMutex<M, G> {
    type Process = Process<G::Process>;

    /// The claims of the group lock, without those about groups.
    fn claims() -> Claims {
        let group = G::claims();
        Claims {
            name: "group-as-mutex",
            text: text!("reductions.rs"),
            kind: Kind::Mutual,
            strong_fifo: Claim::No,
            fife: Claim::NotApplicable,
            // With a session each, a single request has no conflict; two requests always conflict.
            entering: Entering::alone(Claim::No),
            sessions: Limit::NotApplicable,
            ..group
        }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        Ok(AsMutex { group: G::new(processes)?, names: Names::starting_at(1), memory: PhantomData })
    }

    fn join(&self) -> Result<Self::Process, CapacityError> {
        let process = self.group.join()?;
        match self.names.take(G::LARGEST_SESSION) {
            Ok(session) => Ok(Process { process, session }),
            Err(full) => {
                // SAFETY: it has just joined, and is idle.
                unsafe { self.group.leave(process) };
                Err(full)
            }
        }
    }

    unsafe fn leave(&self, me: Self::Process) {
        self.names.give_back(me.session);
        // SAFETY: it joined with us, and is idle as we are.
        unsafe { self.group.leave(me.process) };
    }

    #[inline]
    unsafe fn acquire(&self, me: &mut Self::Process) {
        // SAFETY: our part joined when we did and is idle as we are; `join` took a session that the
        // lock has.
        unsafe { self.group.enter(&mut me.process, me.session) };
    }

    #[inline]
    unsafe fn release(&self, me: &mut Self::Process) {
        // SAFETY: our part is inside as we are.
        unsafe { self.group.exit(&mut me.process) };
    }

    fn inspect(me: &Self::Process, see: &mut dyn FnMut(&'static str, Word)) {
        see("session", me.session.get().word());
        G::inspect(&me.process, see);
    }
}

/// The session that all readers share; writers have those above it.
const READERS: u64 = 1;

/// A group lock used as a readers-writers lock.
///
/// ```
/// use grouplock_algorithms::reductions::AsReadersWriters;
///
/// let lock = <AsReadersWriters>::new(2)?;
/// let (mut p, mut q) = (lock.process()?, lock.process()?);
/// let (one, two) = (p.read()?, q.read()?);
/// drop((one, two));
/// let alone = p.write()?;
/// # drop(alone);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AsReadersWriters<G = Handover, M: Memory = Native> {
    group: Group<G, M>,
    names: Names,
}

/// A process that may read and write.
#[derive(Debug)]
pub struct ReaderWriter<'l, G: RawGroup<M> = Handover, M: Memory = Native> {
    process: GroupProcess<'l, G, M>,
    names: &'l Names,
    as_writer: Session,
}

impl<M: Memory, G: RawGroup<M>> AsReadersWriters<G, M> {
    /// A lock for at most `processes` processes at once.
    ///
    /// # Errors
    /// [`CapacityError::Unsupported`] if the algorithm cannot serve so many, or so few.
    pub fn new(processes: usize) -> Result<Self, CapacityError> {
        Ok(AsReadersWriters {
            group: Group::new(processes)?,
            names: Names::starting_at(READERS + 1),
        })
    }

    /// A process joins.
    ///
    /// # Errors
    /// [`CapacityError::Full`] if the lock has as many processes as it was made for, or as it has
    /// sessions for.
    pub fn process(&self) -> Result<ReaderWriter<'_, G, M>, CapacityError> {
        let process = self.group.process()?;
        let as_writer = self.names.take(G::LARGEST_SESSION)?;
        Ok(ReaderWriter { process, names: &self.names, as_writer })
    }
}

impl<G: RawGroup<M>, M: Memory> ReaderWriter<'_, G, M> {
    /// Waits until no process writes, and enters with the other readers.
    ///
    /// # Errors
    /// [`EnterError::StillInside`] if the guard of an earlier passage was leaked.
    pub fn read(&mut self) -> Result<Inside<'_, G, M>, EnterError> {
        self.process.enter(READERS)
    }

    /// Waits until no other process is inside, and enters alone.
    ///
    /// # Errors
    /// [`EnterError::StillInside`] if the guard of an earlier passage was leaked.
    pub fn write(&mut self) -> Result<Inside<'_, G, M>, EnterError> {
        self.process.enter(self.as_writer.get())
    }
}

impl<G: RawGroup<M>, M: Memory> Drop for ReaderWriter<'_, G, M> {
    fn drop(&mut self) {
        // A process that is still inside keeps its session: no other process may share it.
        if !self.process.is_inside() {
            self.names.give_back(self.as_writer);
        }
    }
}
