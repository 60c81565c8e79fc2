//! Processes that die, on real memory.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::Duration;

use grouplock_algorithms::memory::{
    Flag, Memory, Native, NativeFlag, NativeRegister, Number, Ordering, Register, Site, Value,
};
use grouplock_algorithms::raw::{GiveUp, RawGroup};
use grouplock_algorithms::recoverable::{Process, Recoverable};
use grouplock_algorithms::{CapacityError, Session};

/// Longer than any step here takes, even on a busy machine.
const LATE: Duration = Duration::from_secs(120);

thread_local! {
    /// How many steps the thread's process has taken, and after how many it dies.
    static STEPS: Cell<usize> = const { Cell::new(0) };
    static LIFE: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Whether a process that would have to wait dies instead, because there is no other process.
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// The death of a process, as its caller sees it.
struct Death;

fn step() {
    STEPS.set(STEPS.get() + 1);
    if STEPS.get() > LIFE.get() {
        resume_unwind(Box::new(Death));
    }
}

/// Real memory, on which a process may die before any step.
#[derive(Clone, Copy, Debug)]
struct Mortal;

#[derive(Debug)]
struct MortalRegister<T: Value>(NativeRegister<T>);

#[derive(Debug)]
struct MortalFlag(NativeFlag);

impl Memory for Mortal {
    type Register<T: Value> = MortalRegister<T>;
    type Flag = MortalFlag;

    fn await_until(condition: impl Fn() -> bool) {
        if ALONE.get() && !condition() {
            resume_unwind(Box::new(Death));
        }
        Native::await_until(condition);
    }
}

impl<T: Value> Register<T> for MortalRegister<T> {
    fn new(site: Site, initial: T) -> Self {
        MortalRegister(NativeRegister::new(site, initial))
    }

    fn read(&self, order: Ordering) -> T {
        step();
        self.0.read(order)
    }

    fn write(&self, value: T, order: Ordering) {
        step();
        self.0.write(value, order);
    }

    fn fas(&self, value: T, order: Ordering) -> T {
        step();
        self.0.fas(value, order)
    }

    fn cas(&self, old: T, new: T, order: Ordering) -> bool {
        step();
        self.0.cas(old, new, order)
    }

    fn faa(&self, delta: T, order: Ordering) -> T
    where
        T: Number,
    {
        step();
        self.0.faa(delta, order)
    }

    fn await_other(&self, value: T, order: Ordering, give_up: GiveUp<'_>) -> Option<T> {
        step();
        self.0.await_other(value, order, give_up)
    }
}

impl Flag for MortalFlag {
    fn new(site: Site, initial: bool) -> Self {
        MortalFlag(NativeFlag::new(site, initial))
    }

    fn set(&self, value: bool) {
        step();
        self.0.set(value);
    }

    fn signal(&self, value: bool) {
        step();
        self.0.signal(value);
    }

    fn wait_for(&self, value: bool) {
        step();
        self.0.wait_for(value);
    }

    fn wait_unless(&self, value: bool, give_up: GiveUp<'_>) -> bool {
        step();
        if ALONE.get() && !self.0.holds(value) && !give_up() {
            resume_unwind(Box::new(Death));
        }
        self.0.wait_unless(value, give_up)
    }

    fn holds(&self, value: bool) -> bool {
        step();
        self.0.holds(value)
    }
}

type Lock = Recoverable<Mortal>;

fn session(number: u64) -> Session {
    Session::new(number).expect("numbered from one")
}

/// Runs `work` as a process that dies after `life` steps. Returns the steps it took, or its death.
fn live(life: usize, work: impl FnOnce()) -> Result<usize, Death> {
    STEPS.set(0);
    LIFE.set(life);
    let end = catch_unwind(AssertUnwindSafe(work));
    LIFE.set(usize::MAX);
    match end {
        Ok(()) => Ok(STEPS.get()),
        Err(payload) => match payload.downcast::<Death>() {
            Ok(_) => Err(Death),
            Err(payload) => resume_unwind(payload),
        },
    }
}

fn enter(lock: &Lock, me: &mut Process, number: u64) {
    // SAFETY: each test alternates entering and leaving, with processes of its lock.
    unsafe { lock.enter(me, session(number)) };
}

fn exit(lock: &Lock, me: &mut Process) {
    // SAFETY: as above.
    unsafe { lock.exit(me) };
}

fn died(lock: &Lock, me: Process) {
    // SAFETY: the process joined this lock, and its caller has caught its death.
    unsafe { lock.died(me) };
}

/// Process `a` is inside. Process `b` waits, or dies on its way there. `a` leaves, or dies
/// meanwhile. Process `c` requests another session than `a`. It enters, wherever the two have died.
/// Then all three slots can be used again.
#[test]
fn a_living_process_enters_wherever_the_others_died() {
    ALONE.set(true);
    let mut cases = 0;
    for asks in 0.. {
        let mut ends = false;
        for leaves in 0.. {
            let lock = Lock::new(3).expect("three are possible");
            let join = || lock.join().expect("there is a place");
            let (mut a, mut b, mut c) = (join(), join(), join());
            enter(&lock, &mut a, 1);
            // It cannot enter. If it does not die earlier, it dies while it waits.
            let waited = live(asks, || enter(&lock, &mut b, 2)).is_err();
            assert!(waited, "two sessions were inside");
            ends = STEPS.get() <= asks;
            died(&lock, b);
            let left = live(leaves, || exit(&lock, &mut a)).is_ok();
            if !left {
                died(&lock, a);
            }
            enter(&lock, &mut c, 2);
            exit(&lock, &mut c);
            // A dead process that blocked no request is buried by the next process that must wait.
            enter(&lock, &mut c, 1);
            let mut others = Vec::new();
            while let Ok(other) = lock.join() {
                others.push(other);
            }
            assert!(!others.is_empty(), "no place is free again");
            cases += 1;
            assert!(cases < 100_000, "more steps than any request or exit has");
            if left {
                break;
            }
        }
        if ends {
            break;
        }
    }
    println!("{cases} cases");
    assert!(cases > 400, "only {cases} cases");
}

/// A passage takes as many steps among many processes as among few. Building the links again takes
/// some steps for each slot.
#[test]
fn a_passage_costs_a_constant_and_a_repair_is_linear() {
    ALONE.set(true);
    let costs = [4, 16, 64, 256].map(|places| {
        let lock = Lock::new(places).expect("so many are possible");
        let mut processes: Vec<Process> = std::iter::from_fn(|| lock.join().ok()).collect();
        let mut me = processes.pop().expect("there is one");
        let passage = || {
            enter(&lock, &mut me, 1);
            exit(&lock, &mut me);
        };
        let passage = live(usize::MAX, passage).unwrap_or_else(|Death| unreachable!("it is alone"));
        // All but three are inside, one waits, and one dies after it has left and before it
        // settles.
        let mut waits = processes.pop().expect("there is another");
        let mut leaves = processes.pop().expect("there is a third");
        for other in &mut processes {
            enter(&lock, other, 1);
        }
        enter(&lock, &mut leaves, 1);
        assert!(live(usize::MAX, || enter(&lock, &mut waits, 2)).is_err(), "it has to wait");
        assert!(live(5, || exit(&lock, &mut leaves)).is_err(), "it dies in the middle");
        died(&lock, leaves);
        died(&lock, waits);
        let comes = live(usize::MAX, || enter(&lock, &mut me, 2));
        assert!(comes.is_err(), "the others are inside");
        let repair = STEPS.get();
        println!("{places} places: {passage} steps a passage, {repair} for one that repairs");
        (places, passage, repair)
    });
    for (places, passage, repair) in costs {
        assert_eq!(passage, costs[0].1, "{places} places");
        assert!(repair <= 10 * places + 60, "{repair} steps among {places} places");
    }
}

/// Threads whose processes die at random. Two sessions are never inside together, and no process
/// waits forever.
#[test]
fn storm() {
    const THREADS: usize = 4;
    const PASSAGES: usize = 400;
    static INSIDE: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
    let lock: &'static Lock = Box::leak(Box::new(Lock::new(8 * THREADS).expect("possible")));
    let (done, dones) = mpsc::channel();
    for thread in 0..THREADS {
        let done = done.clone();
        std::thread::spawn(move || {
            let mut random = fastrand::Rng::with_seed(thread as u64);
            let (mut passages, mut deaths) = (0, 0);
            let mut next = lock.join();
            while let (Ok(mut me), true) = (next, passages < PASSAGES) {
                let which = random.usize(0..2);
                let life = if random.bool() { random.usize(0..90) } else { usize::MAX };
                let lived = live(life, || {
                    enter(lock, &mut me, which as u64 + 1);
                    INSIDE[which].fetch_add(1, SeqCst);
                    let others = INSIDE[1 - which].load(SeqCst);
                    // Before the first step of the exit, which may be the last step of its life.
                    INSIDE[which].fetch_sub(1, SeqCst);
                    assert_eq!(others, 0, "two sessions are inside");
                    exit(lock, &mut me);
                });
                passages += 1;
                next = if lived.is_ok() {
                    Ok(me)
                } else {
                    deaths += 1;
                    died(lock, me);
                    lock.join()
                };
                // A slot is free after a waiter has buried its dead owner. Perhaps no process waits
                // any more.
                let tries = 1000;
                for _ in 0..tries {
                    if !matches!(next, Err(CapacityError::Full { .. })) {
                        break;
                    }
                    std::thread::yield_now();
                    next = lock.join();
                }
            }
            done.send((passages, deaths)).expect("the test waits");
        });
    }
    let (mut passages, mut deaths) = (0, 0);
    for _ in 0..THREADS {
        let (more, dead) = dones.recv_timeout(LATE).expect("nobody waits for ever");
        (passages, deaths) = (passages + more, deaths + dead);
    }
    println!("{passages} passages, {deaths} deaths");
    assert!(passages > PASSAGES && deaths > passages / 10, "{passages} passages, {deaths} deaths");
}
