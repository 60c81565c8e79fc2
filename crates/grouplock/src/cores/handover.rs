//! `handover`: a constant number of remote memory references per passage.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use grouplock_algorithms::handover::Handover as Algorithm;
use grouplock_algorithms::memory::Native;
use grouplock_algorithms::{Session, raw::RawGroup};
use thread_local::ThreadLocal;

use super::Core;

/// What a process of the algorithm keeps between its passages.
type Process = <Algorithm as RawGroup<Native>>::Process;

/// The corrected algorithm of Maor and Taubenfeld, [`grouplock_algorithms::handover`]: first come first served, and a passage costs a constant
/// number of remote memory references however many threads there are.
///
/// For machines with very many processors, and for those who study it. A request cannot be given up, so there is no `try_enter`, no timeout and
/// no async. Sessions are told apart by a number. Needs feature `handover`.
///
/// ```
/// use grouplock::{GroupLock, cores::Handover};
///
/// let lock = GroupLock::<u32, _, Handover<u32>>::over(Handover::new(), vec![1, 2, 3]);
/// assert_eq!(lock.enter(7).len(), 3);
/// lock.exclusive().push(4);
/// ```
pub struct Handover<S> {
    algorithm: Algorithm,
    /// Each thread's process, while it is idle. Whoever leaves keeps the process it left by.
    idle: ThreadLocal<Cell<Option<Process>>>,
    /// How many have asked to be alone: each of them is a session of its own.
    alone: AtomicU64,
    sessions: PhantomData<fn(S) -> S>,
}

/// What a holder keeps.
pub struct Pass<S> {
    /// There until the holder leaves.
    process: Option<Process>,
    session: Option<S>,
}

/// The numbers of named sessions are below this, and not zero.
const ALONE: u64 = 1 << 33;

impl<S> Handover<S> {
    /// A lock for any number of threads.
    ///
    /// # Panics
    /// Never: the algorithm serves any number.
    pub fn new() -> Self {
        let algorithm = Algorithm::new(0).expect("the algorithm serves any number of processes");
        Handover {
            algorithm,
            idle: ThreadLocal::new(),
            alone: AtomicU64::new(ALONE),
            sessions: PhantomData,
        }
    }

    /// Where this thread keeps its process while that is idle. Late in the life of a thread, when its locals are gone, there is no such place.
    fn idle(&self) -> Option<&Cell<Option<Process>>> {
        struct Late;
        impl Drop for Late {
            fn drop(&mut self) {}
        }
        thread_local! {
            // It has a destructor, so that one can see that locals are being destroyed.
            static LATE: Late = const { Late };
        }
        // `get` works at any time, and `get_or_default` does not.
        self.idle.get().or_else(|| LATE.try_with(|_| ()).ok().map(|()| self.idle.get_or_default()))
    }

    fn leave_by(&self, pass: &mut Pass<S>) {
        if let Some(mut process) = pass.process.take() {
            // SAFETY: the process joined this lock and is in its critical section since `enter`.
            unsafe { self.algorithm.exit(&mut process) };
            let spare = match self.idle() {
                Some(idle) => idle.replace(Some(process)),
                None => Some(process),
            };
            if let Some(spare) = spare {
                // SAFETY: it joined this lock, and is idle.
                unsafe { self.algorithm.leave(spare) };
            }
        }
    }
}

impl<S> Default for Handover<S> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: the algorithm excludes requests with different numbers, and each request to be alone has a number of its own. Its steps order what
// holders did, as its page says and loom agrees.
unsafe impl<S: Copy + Into<u32>> Core for Handover<S> {
    type Session = S;
    type Pass = Pass<S>;

    fn enter(&self, session: Option<S>) -> Pass<S> {
        let number = match session {
            Some(session) => u64::from(session.into()) + 1,
            // Relaxed: the numbers need only differ.
            None => self.alone.fetch_add(1, Relaxed),
        };
        let number = Session::new(number).expect("not zero");
        let idle = self.idle().and_then(Cell::take);
        let mut process = idle.unwrap_or_else(|| {
            self.algorithm.join().expect("the algorithm serves any number of processes")
        });
        // SAFETY: the process joined this lock and is idle; every number is allowed.
        unsafe { self.algorithm.enter(&mut process, number) };
        Pass { process: Some(process), session }
    }

    unsafe fn leave(&self, pass: &mut Pass<S>) {
        self.leave_by(pass);
    }

    unsafe fn leave_exclusive(&self, pass: &mut Pass<S>) {
        self.leave_by(pass);
    }

    unsafe fn session<'a>(&'a self, pass: &'a Pass<S>) -> &'a S {
        pass.session.as_ref().expect("the holder asked for a session")
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
