//! Every lock under loom: are the orderings strong enough?
//!
//! Loom runs a small program in all ways that its memory model has, and reports accesses of the
//! protected data that are not ordered. (The language allows more: loom's reads return no value
//! that is written later.) Two processes use every lock, three use every mutex and
//! most group locks. Loom is the wrong tool for the protocol itself: the explorer of
//! `grouplock-lab` checks that. So sizes stay small.
//!
//! The specimen `maor_taubenfeld` is not here. Its line 39 needs one order of all writes to a
//! register, which loom does not model (see `docs/verification.md`).

#[path = "../common/mod.rs"]
#[macro_use]
mod common;
mod memory;

use std::time::{Duration, Instant};

use grouplock_algorithms as locks;
use grouplock_algorithms::Session;
use grouplock_algorithms::memory::Memory;
use grouplock_algorithms::raw::{RawGroup, RawMutex};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use memory::Loom;

/// The time limit for a model, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(9 * 60);

/// The time for a model that need not end.
const A_WHILE: Duration = Duration::from_secs(60);

/// Explores `model`, but not for longer than `time`. Without a `bound` it explores all of it,
/// otherwise all executions with at most so many involuntary switches. Returns whether it reached
/// the end. A process that waits forever reaches the limit on branches, and the test fails.
fn explore(
    bound: Option<usize>,
    time: Duration,
    processes: usize,
    model: impl Fn() + Sync + Send + 'static,
) -> bool {
    memory::give_up_after((processes > 2).then_some(3));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = bound;
    builder.max_branches = 10_000;
    builder.max_duration = Some(time);
    // How often it reads the clock.
    builder.checkpoint_interval = 1_000;
    let start = Instant::now();
    builder.check(model);
    // Loom does not report that its time is over.
    start.elapsed() < time
}

/// What the processes do to the data inside: read it together, or write it alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Deed {
    Read,
    Write,
}

/// The data behind a lock. Loom reports accesses that nothing orders.
struct Data(UnsafeCell<usize>);

// SAFETY: loom checks the accesses.
unsafe impl Sync for Data {}
// SAFETY: as above.
unsafe impl Send for Data {}

impl Data {
    fn inside(&self, deed: Deed) {
        match deed {
            Deed::Read => {
                // SAFETY: loom reports a concurrent write.
                self.0.with(|data| unsafe { *data });
            }
            // SAFETY: loom reports a concurrent access.
            Deed::Write => self.0.with_mut(|data| unsafe { *data += 1 }),
        }
    }
}

/// Runs one thread per process. The processes join before that, on this thread. Joining uses a
/// mutex of `std`, which loom cannot see. So a process that took over another's nodes would look
/// like a race.
fn run<L: Send + Sync + 'static, P: Send + 'static>(
    lock: L,
    processes: Vec<P>,
    passages: impl Fn(usize, &L, &mut P, &Data) + Copy + Send + 'static,
) {
    let shared = Arc::new((lock, Data(UnsafeCell::new(0))));
    let mut processes = processes.into_iter().enumerate();
    let (_, mut mine) = processes.next().expect("there is at least one process");
    let others: Vec<_> = processes
        .map(|(p, mut process)| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                passages(p, &shared.0, &mut process, &shared.1);
                process
            })
        })
        .collect();
    passages(0, &shared.0, &mut mine, &shared.1);
    for other in others {
        drop(other.join().expect("it does not panic"));
    }
}

/// Each of `processes` processes writes the data in each of its passages.
fn mutex<M: Memory, L: RawMutex<M> + 'static>(
    bound: Option<usize>,
    processes: usize,
    passages: usize,
) {
    let ended = explore(bound, LIMIT, processes, move || {
        let lock = L::new(processes).expect("this many are possible");
        let joined = (0..processes).map(|_| lock.join().expect("there is room")).collect();
        run(lock, joined, move |_, lock, process, data| {
            for _ in 0..passages {
                // SAFETY: the process joined this lock and is idle.
                unsafe { lock.acquire(process) };
                data.inside(Deed::Write);
                // SAFETY: it is inside.
                unsafe { lock.release(process) };
            }
        });
    });
    assert!(ended, "not explored to its end in {LIMIT:?}");
}

/// Process `p` makes a passage for each session in `sessions[p]`. Session 1 is for reading, the
/// others are for writing.
fn group<M: Memory, G: RawGroup<M> + 'static>(
    bound: Option<usize>,
    sessions: &'static [&'static [u64]],
) {
    let ended = explore_group::<M, G>(bound, LIMIT, sessions, |_, _, _| ());
    assert!(ended, "not explored to its end in {LIMIT:?}");
}

/// As [`group`], for a limited time. `watch` gets each process before each of its passages, and the
/// number of passages it has made.
fn explore_group<M: Memory, G: RawGroup<M> + 'static>(
    bound: Option<usize>,
    time: Duration,
    sessions: &'static [&'static [u64]],
    watch: impl Fn(usize, usize, &G::Process) + Copy + Send + Sync + 'static,
) -> bool {
    explore(bound, time, sessions.len(), move || {
        let lock = G::new(sessions.len()).expect("this many are possible");
        let joined = sessions.iter().map(|_| lock.join().expect("there is room")).collect();
        run(lock, joined, move |p, lock, process, data| {
            for (made, session) in sessions[p].iter().enumerate() {
                watch(p, made, process);
                // SAFETY: the process joined this lock and is idle.
                unsafe { lock.enter(process, Session::new(*session).expect("not zero")) };
                data.inside(if *session == 1 { Deed::Read } else { Deed::Write });
                // SAFETY: it is inside.
                unsafe { lock.exit(process) };
            }
        });
    })
}

macro_rules! mutex_tests {
    ($lock:ty) => {
        #[test]
        fn two_processes() {
            mutex::<Loom, $lock>(None, 2, 1);
        }

        #[test]
        fn two_processes_twice() {
            mutex::<Loom, $lock>(Some(3), 2, 2);
        }
    };
}

macro_rules! group_tests {
    ($lock:ty) => {
        #[test]
        fn two_sessions() {
            group::<Loom, $lock>(Some(4), &[&[2], &[3]]);
        }

        #[test]
        fn one_session() {
            group::<Loom, $lock>(Some(4), &[&[1], &[1]]);
        }

        #[test]
        #[ignore = "up to a minute each; `cargo xtask soak` runs it"]
        fn two_sessions_without_bound_for_a_while() {
            let ended = explore_group::<Loom, $lock>(None, A_WHILE, &[&[2], &[3]], |_, _, _| ());
            println!("{}", if ended { "to its end" } else { "not to its end" });
        }

        /// Two processes request session 1, and then a session each.
        #[test]
        fn back_and_forth() {
            group::<Loom, $lock>(Some(2), &[&[1, 2], &[1, 3]]);
        }
    };
}

macro_rules! policy_tests {
    ($lock:ty) => {
        #[test]
        fn two_sessions() {
            group::<Loom, $lock>(Some(2), &[&[2], &[3]]);
        }

        #[test]
        fn one_session() {
            group::<Loom, $lock>(Some(2), &[&[1], &[1]]);
        }

        #[test]
        #[ignore = "minutes for some; `cargo xtask soak` runs it"]
        fn with_three_switches() {
            group::<Loom, $lock>(Some(3), &[&[2], &[3]]);
            group::<Loom, $lock>(Some(3), &[&[1], &[1]]);
        }

        /// Two processes request session 1, and then a session each.
        #[test]
        #[ignore = "a minute for some; `cargo xtask soak` runs it"]
        fn back_and_forth() {
            group::<Loom, $lock>(Some(2), &[&[1, 2], &[1, 3]]);
        }
    };
}

every_mutex!(Loom, mutex_tests);
every_group!(Loom, group_tests);
every_round!(Loom, group_tests);
every_policy!(Loom, policy_tests);

mod three_processes {
    use super::*;

    macro_rules! mutex_tests {
        ($lock:ty) => {
            /// Three processes make one passage each.
            #[test]
            fn once_each() {
                mutex::<Loom, $lock>(Some(2), 3, 1);
            }
        };
    }

    macro_rules! group_tests {
        ($lock:ty) => {
            #[test]
            fn two_readers_and_a_writer() {
                group::<Loom, $lock>(Some(2), &[&[1], &[1], &[2]]);
            }
        };
    }

    every_mutex!(Loom, mutex_tests);
    // The group locks that finish in a second or so.
    each! { group_tests:
        handover = locks::handover::Handover<Loom>,
        handover_over_dvir_taubenfeld_1 = locks::handover::Handover<Loom, locks::dvir_taubenfeld_1::DvirTaubenfeld1<Loom>>,
        handover_over_dvir_taubenfeld_2 = locks::handover::Handover<Loom, locks::dvir_taubenfeld_2::DvirTaubenfeld2<Loom>>,
        keane_moir = locks::keane_moir::KeaneMoir<Loom>,
        petrovic = locks::petrovic::Petrovic<Loom>,
        petrovic_unbounded = locks::petrovic::Petrovic<Loom, locks::petrovic::Unbounded>,
        generalized_bakery = locks::generalized_bakery::GeneralizedBakery<Loom>,
        black_white_bakery_gme = locks::black_white_bakery_gme::BlackWhiteBakeryGme<Loom>,
        forums = locks::forums::Forums<Loom>,
        rooms = locks::rooms::Rooms<Loom>,
    }
}

/// Handover, with a node that one process took over from another. It uses the node in its third
/// passage, because a node rests for one.
mod nodes_used_again {
    use super::*;
    use core::cell::RefCell;
    use grouplock_algorithms::dvir_taubenfeld_1_swap::DvirTaubenfeld1Swap;
    use grouplock_algorithms::dvir_taubenfeld_2::DvirTaubenfeld2;
    use grouplock_algorithms::handover::{Handover, Process};
    use grouplock_algorithms::memory::Word;

    thread_local! {
        /// The first nodes of the first process, and in how many passages it used another node.
        /// (Loom runs all threads of a model on one.)
        static SEEN: RefCell<(Vec<Word>, usize)> = const { RefCell::new((Vec::new(), 0)) };
    }

    fn watch<L: RawMutex<Loom>>(p: usize, made: usize, process: &Process<Loom, L>) {
        let mut spare = Vec::new();
        Handover::<Loom, L>::inspect(process, &mut |name, word| {
            if ["ready", "cool"].contains(&name) {
                spare.push(word);
            }
        });
        SEEN.with_borrow_mut(|(own, others)| match (p, made) {
            (0, 0) => *own = spare,
            // The node that is ready is the first, and is used now.
            (0, _) => *others += usize::from(!own.contains(&spare[0])),
            _ => {}
        });
    }

    /// Explores the model, which must end. In it, the first process must use a node of another
    /// process.
    fn again<L: RawMutex<Loom> + 'static>(bound: usize, sessions: &'static [&'static [u64]]) {
        let ended =
            explore_group::<Loom, Handover<Loom, L>>(Some(bound), LIMIT, sessions, watch::<L>);
        assert!(ended, "not explored to its end in {LIMIT:?}");
        let others = SEEN.with_borrow(|seen| seen.1);
        println!("{others} passages with a node of another's");
        assert!(others > 0, "no node was used again by another process");
    }

    #[test]
    fn in_one_session() {
        again::<DvirTaubenfeld1Swap<Loom>>(4, &[&[1, 1, 1], &[1]]);
    }

    #[test]
    fn in_another_session() {
        again::<DvirTaubenfeld1Swap<Loom>>(4, &[&[1, 2, 3], &[1]]);
    }

    #[test]
    fn while_the_other_comes_back() {
        again::<DvirTaubenfeld1Swap<Loom>>(3, &[&[1, 2, 1], &[1, 1, 3]]);
    }

    #[test]
    fn over_another_exit_lock() {
        again::<DvirTaubenfeld2<Loom>>(3, &[&[1, 2, 3], &[1]]);
    }

    #[test]
    fn beside_a_third_process() {
        again::<DvirTaubenfeld1Swap<Loom>>(2, &[&[1, 1, 2], &[1], &[1]]);
    }
}

/// Requests that withdraw, against each of their rivals.
mod giving_up {
    use super::*;
    use core::cell::Cell;
    use grouplock_algorithms::handover_withdraw::HandoverWithdraw;
    use grouplock_algorithms::jayanti_jayanti::JayantiJayanti;
    use grouplock_algorithms::raw::{WithdrawGroup, WithdrawMutex};
    use memory::{Relaxed, Swapping};

    /// A session, and whether the request withdraws as soon as it must wait. Loom tries all moments
    /// for that.
    type Plan = &'static [(u64, bool)];

    thread_local! {
        /// How many requests withdrew, and how many should withdraw and entered instead. (Loom runs
        /// all threads of a model on one.)
        static SEEN: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
        /// How many processes left when a node had been marked `FORWARD`. Only then there are more
        /// than two nodes for each process.
        static FORWARDED: Cell<usize> = const { Cell::new(0) };
    }

    fn withdraw<M: Memory>(bound: Option<usize>, plans: &'static [Plan]) {
        SEEN.set((0, 0));
        FORWARDED.set(0);
        let ended = explore(bound, LIMIT, plans.len(), move || {
            let lock = HandoverWithdraw::<M>::new(plans.len()).expect("this many are possible");
            let joined = plans.iter().map(|_| lock.join().expect("there is room")).collect();
            run(lock, joined, move |p, lock, process, data| {
                for &(session, gives_up) in plans[p] {
                    let asked = Session::new(session).expect("not zero");
                    // SAFETY: the process joined this lock and is idle.
                    let inside = unsafe { lock.enter_unless(process, asked, &mut || gives_up) };
                    let (given_up, entered) = SEEN.get();
                    if !inside {
                        SEEN.set((given_up + 1, entered));
                        continue;
                    }
                    SEEN.set((given_up, entered + usize::from(gives_up)));
                    data.inside(if session == 1 { Deed::Read } else { Deed::Write });
                    // SAFETY: it is inside.
                    unsafe { lock.exit(process) };
                }
                FORWARDED.set(FORWARDED.get() + usize::from(lock.nodes() > 2 * plans.len()));
            });
        });
        assert!(ended, "not explored to its end in {LIMIT:?}");
        let (given_up, entered) = SEEN.get();
        let forwarded = FORWARDED.get();
        println!(
            "{given_up} given up, {entered} entered though they were to be, {forwarded} after a FORWARD"
        );
        assert!(given_up > 0 && entered > 0, "{given_up} given up, {entered} entered");
    }

    /// The predecessor leaves, and signals in line 20.
    #[test]
    fn against_an_exit() {
        withdraw::<Loom>(Some(4), &[&[(2, false)], &[(3, true)]]);
    }

    /// The predecessor enables in line 12.
    #[test]
    fn against_the_predecessor() {
        withdraw::<Loom>(Some(4), &[&[(1, false)], &[(1, true)]]);
    }

    /// The successor is between lines 2 and 7, or just after them.
    #[test]
    fn against_a_late_successor() {
        const PLANS: [&[Plan]; 2] = [
            &[&[(2, false)], &[(3, true)], &[(4, false)]],
            // In one session that reads, so both may be inside at once.
            &[&[(2, false)], &[(1, true)], &[(1, false)]],
        ];
        for plans in PLANS {
            // The first is inside. The second reaches line 7, and the third reaches line 2.
            withdraw::<Loom>(Some(3), plans);
            assert!(FORWARDED.get() > 0, "no successor was late");
        }
    }

    /// The same, and the successor joins the session before the gap.
    #[test]
    fn against_a_successor_that_joins() {
        withdraw::<Loom>(Some(2), &[&[(1, false)], &[(2, true)], &[(1, false)]]);
    }

    /// Both withdraw, one behind the other.
    #[test]
    fn against_another_that_withdraws() {
        withdraw::<Loom>(Some(2), &[&[(2, false)], &[(3, true)], &[(1, true)]]);
    }

    /// The node is used again.
    #[test]
    fn and_coming_back() {
        withdraw::<Loom>(Some(2), &[&[(1, false), (2, false)], &[(3, true), (1, true)]]);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn needs_release_and_acquire() {
        withdraw::<Relaxed>(None, &[&[(2, false)], &[(3, true)]]);
    }

    /// Each process of [`JayantiJayanti`] makes these requests. The value says whether a request
    /// withdraws as soon as it must wait.
    fn abort<M: Memory>(bound: Option<usize>, plans: &'static [&'static [bool]]) {
        SEEN.set((0, 0));
        let ended = explore(bound, LIMIT, plans.len(), move || {
            let lock = JayantiJayanti::<M>::new(plans.len()).expect("this many are possible");
            let joined = plans.iter().map(|_| lock.join().expect("there is room")).collect();
            run(lock, joined, move |p, lock, process, data| {
                for &gives_up in plans[p] {
                    // SAFETY: the process joined this lock and is idle.
                    let held = unsafe { lock.acquire_unless(process, &mut || gives_up) };
                    let (given_up, entered) = SEEN.get();
                    if !held {
                        SEEN.set((given_up + 1, entered));
                        continue;
                    }
                    SEEN.set((given_up, entered + usize::from(gives_up)));
                    data.inside(Deed::Write);
                    // SAFETY: it is inside.
                    unsafe { lock.release(process) };
                }
            });
        });
        assert!(ended, "not explored to its end in {LIMIT:?}");
        let (given_up, entered) = SEEN.get();
        println!("{given_up} given up, {entered} entered though they were to be");
        assert!(given_up > 0 && entered > 0, "{given_up} given up, {entered} entered");
    }

    /// No request withdraws.
    #[test]
    fn jayanti_jayanti_while_nobody_does() {
        mutex::<Swapping, JayantiJayanti<Swapping>>(None, 2, 1);
        mutex::<Swapping, JayantiJayanti<Swapping>>(Some(3), 2, 2);
        mutex::<Swapping, JayantiJayanti<Swapping>>(Some(2), 3, 1);
    }

    /// Line 8 against line 6, and line 1 of the next request.
    #[test]
    fn jayanti_jayanti_against_an_exit_and_coming_back() {
        abort::<Swapping>(None, &[&[false], &[true, true]]);
        abort::<Swapping>(Some(3), &[&[false, false], &[true, true]]);
    }

    /// Line 8, and line 1 of the next request, against lines 3 and 5 of the successor.
    #[test]
    fn jayanti_jayanti_against_a_successor() {
        abort::<Swapping>(Some(2), &[&[false], &[true, true], &[false]]);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn jayanti_jayanti_needs_release_and_acquire() {
        abort::<Relaxed>(None, &[&[false], &[true]]);
    }
}

/// The tests above can fail: with weaker orderings they fail.
mod weaker_orderings {
    use super::*;
    use grouplock_algorithms::anderson::Anderson;
    use grouplock_algorithms::bakery::Bakery;
    use grouplock_algorithms::burns_lamport::BurnsLamport;
    use grouplock_algorithms::clh::Clh;
    use grouplock_algorithms::dvir_taubenfeld_1::DvirTaubenfeld1;
    use grouplock_algorithms::dvir_taubenfeld_1_swap::DvirTaubenfeld1Swap;
    use grouplock_algorithms::dvir_taubenfeld_2::DvirTaubenfeld2;
    use grouplock_algorithms::forums::Forums;
    use grouplock_algorithms::handover::Handover;
    use grouplock_algorithms::mcs::Mcs;
    use grouplock_algorithms::pairwise_bakery::PairwiseBakery;
    use memory::{Fenceless, Relaxed};

    /// Lines 7-8 against 10-11: each side writes, and then misses the other's write. The successor
    /// waits forever.
    #[test]
    #[should_panic(expected = "exceeded maximum number of branches")]
    fn the_printed_dvir_taubenfeld_1_needs_sequential_consistency() {
        mutex::<Fenceless, DvirTaubenfeld1<Fenceless>>(None, 2, 1);
    }

    #[test]
    #[should_panic(expected = "exceeded maximum number of branches")]
    fn dvir_taubenfeld_2_needs_sequential_consistency() {
        mutex::<Fenceless, DvirTaubenfeld2<Fenceless>>(None, 2, 1);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn burns_lamport_needs_sequential_consistency() {
        mutex::<Fenceless, BurnsLamport<Fenceless>>(None, 2, 1);
    }

    #[test]
    fn the_swap_form_and_handover_do_not() {
        mutex::<Fenceless, DvirTaubenfeld1Swap<Fenceless>>(None, 2, 1);
        group::<Fenceless, Handover<Fenceless>>(None, &[&[2], &[3]]);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn mcs_needs_release_and_acquire() {
        mutex::<Relaxed, Mcs<Relaxed>>(None, 2, 1);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn clh_needs_release_and_acquire() {
        mutex::<Relaxed, Clh<Relaxed>>(None, 2, 1);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn anderson_needs_release_and_acquire() {
        mutex::<Relaxed, Anderson<Relaxed>>(None, 2, 1);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn the_bakery_needs_sequential_consistency() {
        mutex::<Fenceless, Bakery<Fenceless>>(None, 2, 1);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn forums_need_release_and_acquire() {
        group::<Relaxed, Forums<Relaxed>>(None, &[&[2], &[3]]);
    }

    /// Line 6 sets a flag after it was cleared for the last time. The process waits forever.
    #[test]
    #[should_panic(expected = "exceeded maximum number of branches")]
    fn the_pairwise_bakery_needs_sequential_consistency() {
        group::<Fenceless, PairwiseBakery<Fenceless>>(None, &[&[2], &[3]]);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn handover_needs_release_and_acquire() {
        group::<Relaxed, Handover<Relaxed>>(None, &[&[2], &[3]]);
    }
}
