//! Everything that is measured: one passage through a lock by its only process.

use core::hint::black_box;

use grouplock_algorithms::claims::Limit;
use grouplock_algorithms::dvir_taubenfeld_1_swap::DvirTaubenfeld1Swap;
use grouplock_algorithms::for_each_algorithm;
use grouplock_algorithms::handover::Handover;
use grouplock_algorithms::memory::Native as M;
use grouplock_algorithms::raw::{RawGroup, RawMutex};
use grouplock_algorithms::{CapacityError, Group, Mutual, Session};

use crate::comparison::lock::Lock;
use crate::comparison::peers::{StdMutex, StdRwLock};
use crate::handover_by_hand::HandoverByHand;

/// The loop around nothing.
pub const NOTHING: &str = "nothing";
/// The peer of every ratio.
pub const STD_MUTEX: &str = "std-mutex";
/// Handover as users have it.
pub const HANDOVER: &str = "handover";
/// Handover without the handle.
pub const HANDOVER_RAW: &str = "handover-raw";
/// [`HandoverByHand`] behind the same handle.
pub const BY_HAND: &str = "handover-by-hand";
/// [`HandoverByHand`] without the handle.
pub const BY_HAND_RAW: &str = "handover-by-hand-raw";

/// What every process asks for.
const SESSION: u64 = 7;
/// The same, checked once and for all: the raw trait asks for it so.
const RAW_SESSION: Session = match Session::new(SESSION) {
    Ok(session) => session,
    Err(_) => panic!("the session to ask for is zero"),
};
/// What most locks are made for.
pub const FEW: usize = 2;
/// What the locks of a fixed size are also made for, as their cost grows with it.
pub const MANY: usize = 32;

/// A lock with one process that can make passages.
pub struct Subject {
    /// Its name, different from all others.
    pub name: String,
    /// What a passage goes through.
    pub way: &'static str,
    /// For how many processes the lock was made, if it matters.
    pub processes: Option<usize>,
    batch: Box<dyn FnMut(u64)>,
}

impl core::fmt::Debug for Subject {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Subject").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Subject {
    /// A subject of which `passage` makes one passage.
    ///
    /// The loop is compiled together with the passage, so a call through the box happens once per batch.
    pub(crate) fn new(
        name: impl Into<String>,
        way: &'static str,
        processes: Option<usize>,
        mut passage: impl FnMut() + 'static,
    ) -> Self {
        let batch = Box::new(move |passages| {
            for _ in 0..passages {
                passage();
            }
        });
        Subject { name: name.into(), way, processes, batch }
    }

    /// Makes `passages` passages.
    pub fn run(&mut self, passages: u64) {
        (self.batch)(passages);
    }

    /// `L` through the safe handle.
    fn mutual<L: RawMutex<M> + 'static>(processes: usize) -> Result<Self, CapacityError> {
        let lock = keep(Mutual::<L>::new(processes)?);
        let mut process = lock.process()?;
        let (name, shown) = label(L::claims().name, L::claims().processes, processes);
        Ok(Subject::new(name, "handle", shown, move || {
            let held = black_box(&mut process).acquire().expect("nothing was leaked");
            critical_section();
            drop(held);
        }))
    }

    /// `L` through the safe handle.
    fn group<L: RawGroup<M> + 'static>(processes: usize) -> Result<Self, CapacityError> {
        let lock = keep(Group::<L>::new(processes)?);
        let mut process = lock.process()?;
        let (name, shown) = label(L::claims().name, L::claims().processes, processes);
        Ok(Subject::new(name, "handle", shown, move || {
            let inside =
                black_box(&mut process).enter(black_box(SESSION)).expect("nothing was leaked");
            critical_section();
            drop(inside);
        }))
    }

    /// `L` without the handle. It must have no largest session.
    fn raw<L: RawGroup<M> + 'static>(processes: usize) -> Result<Self, CapacityError> {
        let lock = keep(L::new(processes)?);
        let mut process = lock.join()?;
        let (name, shown) = label(L::claims().name, L::claims().processes, processes);
        Ok(Subject::new(format!("{name}-raw"), "raw", shown, move || {
            let process = black_box(&mut process);
            // SAFETY: the process joined this lock, and is idle whenever the loop comes round.
            unsafe { lock.enter(process, black_box(RAW_SESSION)) };
            critical_section();
            // SAFETY: it entered above.
            unsafe { lock.exit(process) };
        }))
    }

    /// A lock of the standard library, as the comparison has it.
    fn standard<L: Lock<Local = ()>>(name: &str, session: u64) -> Self {
        let lock = keep(L::new());
        Subject::new(name, "std", None, move || {
            black_box(lock).pass(&mut (), black_box(session), critical_section);
        })
    }
}

/// Nothing happens in here, but the compiler does not know: it must have everything in memory before and
/// look again afterwards.
#[inline(always)]
pub(crate) fn critical_section() {
    black_box(());
}

/// Gives a lock to the rest of the program, so that its process can be kept next to it.
pub(crate) fn keep<L>(lock: L) -> &'static L {
    Box::leak(Box::new(lock))
}

/// The name of an algorithm's subject, and the number of processes to show: for one of a fixed size both
/// depend on it.
fn label(name: &str, limit: Limit, processes: usize) -> (String, Option<usize>) {
    match limit {
        Limit::Fixed(_) => (format!("{name}-{processes}"), Some(processes)),
        Limit::None | Limit::NotApplicable => (name.to_owned(), None),
    }
}

/// All of them, the forms of handover side by side.
///
/// # Errors
/// [`CapacityError`] if an algorithm no longer serves as many processes as are asked of it here.
pub fn all() -> Result<Vec<Subject>, CapacityError> {
    /// What locks over a mutex are made of.
    type L = DvirTaubenfeld1Swap<M>;
    let mut all = vec![
        Subject::new(NOTHING, "–", None, critical_section),
        Subject::standard::<StdMutex>(STD_MUTEX, 0),
        Subject::standard::<StdRwLock>("std-rwlock-read", 0),
        Subject::standard::<StdRwLock>("std-rwlock-write", 1),
        Subject::group::<HandoverByHand>(FEW)?,
        Subject::raw::<Handover>(FEW)?,
        Subject::raw::<HandoverByHand>(FEW)?,
    ];
    macro_rules! add {
        (($kind:ident) $($ident:ident $name:literal $lock:ty;)*) => {$(
            all.push(Subject::$kind::<$lock>(FEW)?);
            if matches!(<$lock>::claims().processes, Limit::Fixed(_)) {
                all.push(Subject::$kind::<$lock>(MANY)?);
            }
        )*};
    }
    for_each_algorithm!(over => add!(group));
    for_each_algorithm!(mutex => add!(mutual));
    for_each_algorithm!(withdrawing_mutex => add!(mutual));
    for_each_algorithm!(group => add!(group));
    for_each_algorithm!(rounds => add!(group));
    for_each_algorithm!(specimen => add!(group));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_has_a_name_of_its_own_and_runs() {
        let mut names = Vec::new();
        for mut subject in all().unwrap() {
            subject.run(3);
            assert!(!names.contains(&subject.name), "{} twice", subject.name);
            names.push(subject.name);
        }
        for name in [NOTHING, STD_MUTEX, HANDOVER, HANDOVER_RAW, BY_HAND, BY_HAND_RAW] {
            assert!(names.iter().any(|n| n == name), "{name} is missing");
        }
    }
}
