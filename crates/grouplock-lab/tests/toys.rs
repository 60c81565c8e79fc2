//! Toy locks. Each violates or keeps one property in a way that is easy to overlook.

mod scaffold;

use grouplock_algorithms::claims::{Claims, Kind, Limit, Text};
use grouplock_algorithms::memory::Ordering::SeqCst;
use grouplock_algorithms::memory::{Memory, Ptr, Register, Site, Value, Word};
use grouplock_algorithms::nodes::Nodes;
use grouplock_algorithms::raw::{RawGroup, RawMutex};
use grouplock_algorithms::slots::Slots;
use grouplock_algorithms::{CapacityError, Session};
use grouplock_lab::memory::{SimMemory, SimRegister};
use grouplock_lab::{
    Options, Outcome, Properties, Property, Sampling, Schedule, Subject, check, sample,
};

fn claims() -> Claims {
    scaffold::claims("toy", Text::new(file!(), include_str!("toys.rs")))
}

/// The entry section takes no step.
const EMPTY_ENTRY: u8 = 1;
/// The exit section takes no step.
const EMPTY_EXIT: u8 = 2;
/// Neither section takes a step.
const EMPTY: u8 = 3;
/// Test-and-set, in a loop of the text instead of an `await`.
const SPINS: u8 = 4;
/// The same, and the lock is never released.
const NEVER_FREE: u8 = 5;
/// Test-and-set. A process that finds it free enters by its first step. There is no doorway.
const ONE_STEP: u8 = 6;
/// Test-and-set, but a process enters at once in its third passage. `inspect` does not show the
/// number of passages.
const INSPECT_LIES: u8 = 7;
/// Process 1 enters at once, and `inspect` does not distinguish the processes.
const START_LIES: u8 = 8;
/// Test-and-set. A process that has left the critical section passes through another test-and-set.
const GATED_EXIT: u8 = 9;
/// Process 1 reads its own register forever. The explorer takes such reads at once.
const OWN_SPIN: u8 = 10;
/// Each process raises a counter, and lowers it again if it is not alone.
const RAISES: u8 = 11;
/// Test-and-set, but no process enters twice in a row while others try. With two, none starves.
const NOT_TWICE: u8 = 12;
/// A process that joins says so in a register.
const JOINS: u8 = 13;

#[derive(Debug)]
struct Toy<const K: u8> {
    held: SimRegister<u64>,
    last: SimRegister<u64>,
    count: SimRegister<u64>,
    own: Vec<SimRegister<bool>>,
    slots: Slots<Me>,
}

#[derive(Debug)]
struct Me {
    i: usize,
    passages: u64,
}

impl<const K: u8> RawMutex<SimMemory> for Toy<K> {
    type Process = Me;

    fn claims() -> Claims {
        claims()
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        let register = |name| SimRegister::new(Site::shared(name), 0);
        Ok(Toy {
            held: register("held"),
            last: register("last"),
            count: register("count"),
            own: (0..processes)
                .map(|i| SimRegister::new(Site::per_process("own", i), i == 1))
                .collect(),
            slots: Slots::new(processes, 8, |i| Me { i, passages: 0 })?,
        })
    }

    fn join(&self) -> Result<Me, CapacityError> {
        if K == JOINS {
            self.count.faa(1, SeqCst);
        }
        self.slots.take()
    }

    unsafe fn leave(&self, me: Me) {
        self.slots.give_back(me);
    }

    unsafe fn acquire(&self, me: &mut Me) {
        let tas = || SimMemory::await_until(|| self.held.cas(0, 1, SeqCst));
        match K {
            EMPTY_ENTRY | EMPTY => {}
            EMPTY_EXIT => self.held.write(1, SeqCst),
            SPINS | NEVER_FREE => loop {
                SimMemory::live(|| []);
                if self.held.cas(0, 1, SeqCst) {
                    return;
                }
            },
            INSPECT_LIES => {
                self.last.read(SeqCst);
                if me.passages != 2 {
                    tas();
                }
                me.passages = (me.passages + 1).min(3);
            }
            START_LIES if me.i == 1 => _ = self.last.read(SeqCst),
            ONE_STEP | GATED_EXIT | START_LIES => tas(),
            OWN_SPIN => {
                loop {
                    SimMemory::live(|| []);
                    if !self.own[me.i].read(SeqCst) {
                        break;
                    }
                }
                tas();
            }
            RAISES => loop {
                SimMemory::live(|| []);
                self.count.faa(1, SeqCst);
                if self.count.read(SeqCst) == 1 {
                    return;
                }
                self.count.faa(u64::MAX, SeqCst);
            },
            NOT_TWICE => {
                let mine = me.i as u64 + 1;
                self.count.faa(1, SeqCst);
                SimMemory::await_until(|| {
                    (self.last.read(SeqCst) != mine || self.count.read(SeqCst) == 1)
                        && self.held.cas(0, 1, SeqCst)
                });
                self.last.write(mine, SeqCst);
            }
            _ => unreachable!("there is no such toy"),
        }
    }

    unsafe fn release(&self, _: &mut Me) {
        match K {
            EMPTY_EXIT | EMPTY => {}
            NEVER_FREE => self.last.write(0, SeqCst),
            GATED_EXIT => {
                self.held.write(0, SeqCst);
                SimMemory::await_until(|| self.last.cas(0, 1, SeqCst));
                self.last.write(0, SeqCst);
            }
            RAISES => _ = self.count.faa(u64::MAX, SeqCst),
            NOT_TWICE => {
                self.count.faa(u64::MAX, SeqCst);
                self.held.write(0, SeqCst);
            }
            _ => self.held.write(0, SeqCst),
        }
    }

    fn inspect(me: &Me, see: &mut dyn FnMut(&'static str, Word)) {
        if matches!(K, OWN_SPIN | NOT_TWICE | INSPECT_LIES) {
            see("i", me.i.word());
        }
    }
}

/// A mutex in the place of a group lock: processes of a session are never inside together.
#[derive(Debug)]
struct Apart<const K: u8>(Toy<K>);

impl<const K: u8> RawGroup<SimMemory> for Apart<K> {
    type Process = Me;

    fn claims() -> Claims {
        Claims { kind: Kind::Group, sessions: Limit::None, ..claims() }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        RawMutex::new(processes).map(Apart)
    }

    fn join(&self) -> Result<Me, CapacityError> {
        self.0.join()
    }

    unsafe fn leave(&self, me: Me) {
        // SAFETY: as for the caller.
        unsafe { self.0.leave(me) };
    }

    unsafe fn enter(&self, me: &mut Me, _: Session) {
        // SAFETY: as for the caller.
        unsafe { self.0.acquire(me) };
    }

    unsafe fn exit(&self, me: &mut Me) {
        // SAFETY: as for the caller.
        unsafe { self.0.release(me) };
    }

    fn inspect(me: &Me, see: &mut dyn FnMut(&'static str, Word)) {
        Toy::<K>::inspect(me, see);
    }
}

/// The one-bit lock for two. The first values of their records distinguish the processes.
const PRIVILEGED_FIRST: u8 = 1;
/// The same, the other way round.
const PRIVILEGED_LAST: u8 = 2;
/// Follows a pointer that it did not declare as still needed, if there is one.
const DROPS_POINTER: u8 = 3;
/// Reads forever a record that no other process can reach.
const PRIVATE_SPIN: u8 = 4;
/// As the first, but the process that may starve is marked.
const PLAIN_FIRST: u8 = 5;
/// Follows a pointer that it did not declare as still needed.
const DROPS_ALWAYS: u8 = 6;

#[derive(Debug)]
struct NodeToy<const K: u8> {
    flags: [SimRegister<bool>; 2],
    held: SimRegister<u64>,
    last: SimRegister<Ptr<Record>>,
    nodes: Nodes<SimMemory, Record, Ptr<Record>>,
}

#[derive(Debug)]
struct Record {
    first: SimRegister<bool>,
}

fn at<'a>(record: Ptr<Record>) -> &'a Record {
    // SAFETY: all pointers come from `nodes`, and a run ends before its lock.
    unsafe { SimMemory::follow(record) }
}

impl<const K: u8> RawMutex<SimMemory> for NodeToy<K> {
    type Process = Ptr<Record>;

    fn claims() -> Claims {
        claims()
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        Ok(NodeToy {
            flags: [0, 1].map(|i| SimRegister::new(Site::shared(["zero", "one"][i]), false)),
            held: SimRegister::new(Site::shared("held"), 0),
            last: SimRegister::new(Site::shared("last"), Ptr::NIL),
            nodes: Nodes::new(),
        })
    }

    fn join(&self) -> Result<Ptr<Record>, CapacityError> {
        Ok(self.nodes.take(|p| {
            let first = if K == PRIVILEGED_LAST { p == 1 } else { p == 0 };
            self.nodes.allocate(|| Record { first: SimRegister::new(Site::of(p, "first"), first) })
        }))
    }

    unsafe fn leave(&self, me: Ptr<Record>) {
        self.nodes.give_back(me);
    }

    unsafe fn acquire(&self, me: &mut Ptr<Record>) {
        if K == DROPS_POINTER || K == DROPS_ALWAYS {
            let other = self.last.fas(*me, SeqCst);
            if other.is_nil() && K == DROPS_ALWAYS {
                SimMemory::await_until(|| self.held.cas(0, 1, SeqCst));
                return;
            }
            SimMemory::live(|| []);
            self.held.read(SeqCst);
            if !other.is_nil() {
                at(other).first.read(SeqCst);
            }
            SimMemory::await_until(|| self.held.cas(0, 1, SeqCst));
            return;
        }
        if K == PRIVATE_SPIN {
            loop {
                SimMemory::live(|| []);
                if at(*me).first.read(SeqCst) {
                    break;
                }
            }
            SimMemory::await_until(|| self.held.cas(0, 1, SeqCst));
            return;
        }
        if at(*me).first.read(SeqCst) == (K != PLAIN_FIRST) {
            self.flags[0].write(true, SeqCst);
            SimMemory::await_until(|| !self.flags[1].read(SeqCst));
            return;
        }
        loop {
            SimMemory::live(|| []);
            self.flags[1].write(true, SeqCst);
            let raised = self.flags[0].read(SeqCst);
            if !raised {
                return;
            }
            self.flags[1].write(false, SeqCst);
            SimMemory::await_until(|| !self.flags[0].read(SeqCst));
        }
    }

    unsafe fn release(&self, me: &mut Ptr<Record>) {
        if matches!(K, DROPS_POINTER | DROPS_ALWAYS | PRIVATE_SPIN) {
            self.held.write(0, SeqCst);
            return;
        }
        let flag = usize::from(at(*me).first.read(SeqCst) != (K != PLAIN_FIRST));
        self.flags[flag].write(false, SeqCst);
    }

    fn inspect(me: &Ptr<Record>, see: &mut dyn FnMut(&'static str, Word)) {
        see("me", me.word());
    }
}

fn explore(subject: &Subject, processes: usize, properties: Properties) -> Outcome {
    let mut options = Options::new(subject, processes, 2);
    options.properties = properties;
    options.memory_limit = 500 << 20;
    check(subject, &options).expect("the sizes are right")
}

fn only<const K: u8>(processes: usize, property: Property) -> String {
    told(explore(&Subject::mutex::<Toy<K>>("toy"), processes, Properties::only(property)), property)
}

fn nodes<const K: u8>(processes: usize, property: Property) -> String {
    let subject = Subject::mutex::<NodeToy<K>>("toy");
    told(explore(&subject, processes, Properties::only(property)), property)
}

fn told(outcome: Outcome, property: Property) -> String {
    match outcome.violation {
        Some(violation) => format!("violated: {}", violation.property),
        None if outcome.checked.contains(property) => format!("{:?}", outcome.verdict),
        None => format!("{:?}, not looked at", outcome.verdict),
    }
}

#[test]
fn a_process_that_takes_no_step_to_enter_or_to_leave_is_seen_inside() {
    let broken = "violated: mutual-exclusion";
    assert_eq!(only::<EMPTY_ENTRY>(2, Property::MutualExclusion), broken);
    assert_eq!(only::<EMPTY_EXIT>(2, Property::MutualExclusion), broken);
    assert_eq!(only::<EMPTY>(2, Property::MutualExclusion), broken);
}

#[test]
fn a_loop_that_changes_nothing_goes_on_for_ever_as_an_await_does() {
    let starves = "violated: starvation-freedom";
    assert_eq!(only::<SPINS>(2, Property::StarvationFreedom), starves);
    assert_eq!(only::<ONE_STEP>(2, Property::StarvationFreedom), starves);
    assert_eq!(only::<SPINS>(2, Property::DeadlockFreedom), "Holds");
    let stuck = "violated: deadlock-freedom";
    assert_eq!(only::<NEVER_FREE>(2, Property::DeadlockFreedom), stuck);
    // Steps that no other process can notice are taken at once, but not forever.
    assert_eq!(only::<OWN_SPIN>(2, Property::DeadlockFreedom), stuck);
    assert_eq!(nodes::<PRIVATE_SPIN>(2, Property::DeadlockFreedom), stuck);
}

/// Some process that leaves can always do so: only an infinite execution shows the fault.
#[test]
fn an_exit_that_others_pass_for_ever_is_not_group_bounded() {
    let endless = "violated: group-bounded-exit";
    assert_eq!(only::<GATED_EXIT>(2, Property::GroupBoundedExit), endless);
    assert_eq!(only::<GATED_EXIT>(2, Property::DeadlockFreedom), "Holds");
    assert_eq!(only::<ONE_STEP>(2, Property::GroupBoundedExit), "Holds");
}

/// One process stays inside, and nobody leaves in the cycle.
#[test]
fn a_mutex_is_not_a_group_lock_with_concurrent_occupancy() {
    let occupancy = Property::ConcurrentOccupancy;
    let spins = Subject::group::<Apart<SPINS>>("toy");
    let waits = Subject::group::<Apart<ONE_STEP>>("toy");
    for subject in [spins, waits] {
        let outcome = explore(&subject, 2, Properties::only(occupancy));
        assert_eq!(told(outcome, occupancy), "violated: concurrent-occupancy");
        let outcome = explore(&subject, 2, Properties::only(Property::DeadlockFreedom));
        assert_eq!(told(outcome, Property::DeadlockFreedom), "Holds");
    }
}

#[test]
fn a_process_that_enters_by_its_first_step_enters() {
    for processes in [2, 3] {
        assert_eq!(only::<ONE_STEP>(processes, Property::DeadlockFreedom), "Holds");
    }
}

#[test]
fn nothing_is_said_of_an_order_where_there_is_no_doorway() {
    assert_eq!(only::<ONE_STEP>(2, Property::Fcfs), "Holds, not looked at");
}

/// All processes have joined before the first step. This is enough only if joining is no step.
#[test]
#[should_panic(expected = "while a process joins, which is not explored")]
fn a_lock_whose_processes_access_a_register_when_they_join_is_refused() {
    only::<JOINS>(2, Property::MutualExclusion);
}

#[test]
fn a_handle_of_which_inspect_does_not_tell_enough_is_found_out() {
    let lies = "violated: dead-private";
    assert_eq!(only::<INSPECT_LIES>(2, Property::MutualExclusion), lies);
    assert_eq!(only::<START_LIES>(2, Property::MutualExclusion), lies);
}

#[test]
fn a_pointer_that_is_hidden_and_followed_is_found() {
    let lies = "violated: dead-private";
    assert_eq!(nodes::<DROPS_POINTER>(2, Property::MutualExclusion), lies);
    assert_eq!(nodes::<DROPS_ALWAYS>(2, Property::MutualExclusion), lies);
}

#[test]
fn a_sample_reports_a_lie_that_shows_in_two_executions() {
    let subject = Subject::mutex::<Toy<INSPECT_LIES>>("toy");
    let options = Options::new(&subject, 2, 2);
    let sampling = Sampling { schedule: Schedule::Random, runs: 100, steps: 100, seed: 1 };
    let outcome = sample(&subject, &options, &sampling).expect("the sizes are right");
    assert_eq!(told(outcome, Property::DeadPrivate), "violated: dead-private");
}

#[test]
fn processes_that_are_alike_can_keep_each_other_from_entering() {
    for processes in [2, 3] {
        let stuck = "violated: deadlock-freedom";
        assert_eq!(only::<RAISES>(processes, Property::DeadlockFreedom), stuck);
        assert_eq!(only::<RAISES>(processes, Property::MutualExclusion), "Holds");
    }
}

#[test]
fn a_third_process_can_make_another_starve() {
    assert_eq!(only::<NOT_TWICE>(2, Property::StarvationFreedom), "Holds");
    assert_eq!(only::<NOT_TWICE>(3, Property::StarvationFreedom), "violated: starvation-freedom");
}

#[test]
fn processes_that_begin_with_other_contents_are_not_alike() {
    let starves = "violated: starvation-freedom";
    assert_eq!(nodes::<PRIVILEGED_FIRST>(2, Property::StarvationFreedom), starves);
    assert_eq!(nodes::<PRIVILEGED_LAST>(2, Property::StarvationFreedom), starves);
    assert_eq!(nodes::<PLAIN_FIRST>(2, Property::StarvationFreedom), starves);
    assert_eq!(nodes::<PLAIN_FIRST>(2, Property::DeadlockFreedom), "Holds");
}
