//! Toy locks, each of which has a bound or none for one reason; and what the bounds of real locks
//! depend on.

use grouplock_algorithms::CapacityError;
use grouplock_algorithms::claims::Claims;
use grouplock_algorithms::mcs::Mcs;
use grouplock_algorithms::memory::Ordering::SeqCst;
use grouplock_algorithms::memory::{Flag, Memory, Ptr, Register, Site, Value, Word};
use grouplock_algorithms::nodes::Nodes;
use grouplock_algorithms::raw::RawMutex;

use grouplock_lab::memory::{SimFlag, SimMemory, SimRegister};
use grouplock_lab::rmr::{PROCESSES, bounds, bounds_of, bounds_with, names};
use grouplock_lab::{Subject, registry};

/// Sets its own flag, joins others, and waits until one of them clears the flag. Then it clears the
/// flag of another process.
const PLAIN: u8 = 0;
/// Does not set the flag before it waits.
const UNTOUCHED: u8 = 1;
/// Reads its own registers, which no other process writes.
const LOOKS_TWICE: u8 = 2;
/// Does more if it finds a pointer to itself.
const MEETS_ITSELF: u8 = 3;
/// Sets the flag of another process before it clears it.
const SETS_ANOTHERS: u8 = 4;
/// Waits for the flag of another process.
const WAITS_ELSEWHERE: u8 = 5;
/// Tries again until a compare-and-swap succeeds.
const RETRIES: u8 = 6;
/// Counts without end.
const COUNTS: u8 = 7;
/// Waits for a register on which other processes try a compare-and-swap.
const COMPARED: u8 = 8;

/// No lock, but it has an entry section and an exit section.
#[derive(Debug)]
struct Toy<const KIND: u8> {
    last: SimRegister<Ptr<Record>>,
    count: SimRegister<u32>,
    records: Nodes<SimMemory, Record, Ptr<Record>>,
}

#[derive(Debug)]
struct Record {
    flag: SimFlag,
    word: SimRegister<u32>,
}

fn at<'a>(record: Ptr<Record>) -> &'a Record {
    // SAFETY: all pointers come from `Toy::records`, and a run ends before its lock does.
    unsafe { SimMemory::follow(record) }
}

impl<const KIND: u8> RawMutex<SimMemory> for Toy<KIND> {
    type Process = Ptr<Record>;

    fn claims() -> Claims {
        Claims { name: "toy", ..Mcs::<SimMemory>::claims() }
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        Ok(Toy {
            last: SimRegister::new(Site::shared("last"), Ptr::NIL),
            count: SimRegister::new(Site::shared("count"), 0),
            records: Nodes::new(),
        })
    }

    fn join(&self) -> Result<Ptr<Record>, CapacityError> {
        Ok(self.records.take(|p| {
            self.records.allocate(|| Record {
                flag: SimFlag::new(Site::of(p, "flag"), true),
                word: SimRegister::new(Site::of(p, "word"), 0),
            })
        }))
    }

    unsafe fn leave(&self, me: Ptr<Record>) {
        self.records.give_back(me);
    }

    unsafe fn acquire(&self, me: &mut Ptr<Record>) {
        let mine = at(*me);
        match KIND {
            UNTOUCHED => {}
            COMPARED | LOOKS_TWICE => mine.word.write(1, SeqCst),
            _ => mine.flag.set(true),
        }
        let other = self.last.fas(*me, SeqCst);
        if other.is_nil() {
            return;
        }
        match KIND {
            WAITS_ELSEWHERE => at(other).flag.wait_for(false),
            COMPARED => SimMemory::await_until(|| mine.word.read(SeqCst) == 0),
            LOOKS_TWICE => _ = mine.word.read(SeqCst) + mine.word.read(SeqCst),
            _ => mine.flag.wait_for(false),
        }
    }

    unsafe fn release(&self, me: &mut Ptr<Record>) {
        match KIND {
            RETRIES => while !self.last.cas(*me, Ptr::NIL, SeqCst) {},
            COUNTS => {
                let count = self.count.read(SeqCst);
                self.count.write(count + 1, SeqCst);
            }
            _ => {}
        }
        let other = self.last.read(SeqCst);
        if other.is_nil() {
            return;
        }
        match KIND {
            COMPARED => _ = at(other).word.cas(1, 0, SeqCst),
            LOOKS_TWICE => {}
            MEETS_ITSELF if other == *me => {
                self.count.write(0, SeqCst);
                self.count.write(1, SeqCst);
            }
            SETS_ANOTHERS => {
                at(other).flag.signal(true);
                at(other).flag.signal(false);
            }
            _ => at(other).flag.signal(false),
        }
    }

    fn inspect(me: &Ptr<Record>, see: &mut dyn FnMut(&'static str, Word)) {
        see("me", me.word());
    }
}

fn toy<const KIND: u8>() -> Option<[u64; 4]> {
    bounds_of(&Subject::mutex::<Toy<KIND>>("toy"))
}

#[test]
fn a_wait_costs_one_reference_if_its_flag_is_in_the_cache_and_two_if_not() {
    // Set, fetch-and-store, wait, read, signal. With write-through, setting leaves no copy.
    assert_eq!(toy::<PLAIN>(), Some([5, 5, 6, 3]));
    assert_eq!(toy::<UNTOUCHED>(), Some([5, 5, 5, 3]));
}

#[test]
fn a_look_at_what_nobody_else_writes_is_free_if_it_is_in_the_cache() {
    // Write, fetch-and-store, read. With write-through, also the first of the two reads.
    assert_eq!(toy::<LOOKS_TWICE>(), Some([3, 3, 4, 2]));
}

#[test]
fn a_pointer_may_lead_to_any_object_that_the_process_knows() {
    assert_eq!(toy::<MEETS_ITSELF>(), Some([6, 6, 7, 4]));
}

#[test]
fn what_has_no_bound_gets_none() {
    assert_eq!(toy::<SETS_ANOTHERS>(), None);
    assert_eq!(toy::<WAITS_ELSEWHERE>(), None);
    assert_eq!(toy::<RETRIES>(), None);
    assert_eq!(toy::<COUNTS>(), None);
    assert_eq!(toy::<COMPARED>(), None);
}

#[test]
fn a_lock_over_another_costs_as_much_in_two_parts_as_in_one() {
    let whole = registry::find("maor-taubenfeld+dvir-taubenfeld-1-swap").expect("it is registered");
    let parts = bounds("maor-taubenfeld").expect("it is known");
    assert_eq!(parts, bounds_of(&whole));
    assert!(parts.is_some());
}

#[test]
fn the_number_of_processes_that_the_code_is_run_on_makes_no_difference() {
    for name in names() {
        let subject = registry::find(name).expect("it is registered");
        if let Some(few) = bounds_with(&subject, PROCESSES) {
            // Registers outside objects have the same numbers for any number of processes.
            let many = bounds_with(&subject, PROCESSES + 2);
            assert_eq!(many, Some(few), "{name}: another bound, or other states or registers");
        }
    }
}
