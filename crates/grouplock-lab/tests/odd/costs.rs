//! Proven bounds on remote references.

use super::*;

/// All processes wait at one record, which is in the memory of the first.
const ONE_RECORD: u8 = 1;
/// Every process has a record, and all records are in the memory of the first.
const ONE_HOME: u8 = 2;
/// Every process has a record in the memory of the next.
const NEXT_HOME: u8 = 3;
/// A process that meets the value that an atomic wait leaves reads ten times.
const ATOMIC_WAIT: u8 = 4;
/// The same with a plain write.
const PLAIN_WRITE: u8 = 5;
/// As `ONE_HOME`, each in its own memory.
const OWN_HOME: u8 = 7;

/// No lock, but it has an entry section and an exit section.
#[derive(Debug)]
struct Costs<const K: u8> {
    last: SimRegister<Ptr<Place>>,
    word: SimRegister<u64>,
    other: SimRegister<u64>,
    places: Nodes<SimMemory, Place, Ptr<Place>>,
    shared: Ptr<Place>,
}

#[derive(Debug)]
struct Place {
    flag: SimFlag,
}

impl Place {
    fn new(home: usize) -> Self {
        Place { flag: SimFlag::new(Site::of(home, "flag"), false) }
    }
}

fn place<'a>(place: Ptr<Place>) -> &'a Place {
    // SAFETY: all pointers come from the store of the lock, and a run ends before its lock.
    unsafe { SimMemory::follow(place) }
}

impl<const K: u8> RawMutex<SimMemory> for Costs<K> {
    type Process = Ptr<Place>;

    fn claims() -> Claims {
        Claims { processes: Limit::None, ..claims() }
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        let places = Nodes::new();
        let shared = places.allocate(|| Place::new(0));
        Ok(Costs {
            last: SimRegister::new(Site::shared("last"), shared),
            word: SimRegister::new(Site::shared("word"), 0),
            other: SimRegister::new(Site::shared("other"), 0),
            places,
            shared,
        })
    }

    fn join(&self) -> Result<Ptr<Place>, CapacityError> {
        if K == ONE_RECORD {
            return Ok(self.shared);
        }
        Ok(self.places.take(|p| {
            let home = match K {
                ONE_HOME => 0,
                NEXT_HOME => p + 1,
                _ => p,
            };
            self.places.allocate(|| Place::new(home))
        }))
    }

    unsafe fn leave(&self, _: Ptr<Place>) {}

    unsafe fn acquire(&self, me: &mut Ptr<Place>) {
        match K {
            ONE_RECORD => {
                place(*me).flag.wait_for(false);
                place(*me).flag.set(true);
            }
            ONE_HOME | NEXT_HOME | OWN_HOME => {
                place(*me).flag.set(true);
                self.last.fas(*me, SeqCst);
                place(*me).flag.wait_for(false);
            }
            ATOMIC_WAIT | PLAIN_WRITE => {
                if self.word.read(SeqCst) == 2 {
                    for _ in 0..10 {
                        self.other.read(SeqCst);
                    }
                }
                if K == ATOMIC_WAIT {
                    self.word.await_cas(0, 2);
                } else {
                    self.word.write(2, SeqCst);
                }
            }
            _ => unreachable!("there is no such probe"),
        }
    }

    unsafe fn release(&self, me: &mut Ptr<Place>) {
        match K {
            ONE_RECORD => place(*me).flag.signal(false),
            ONE_HOME | NEXT_HOME | OWN_HOME => {
                let last = self.last.read(SeqCst);
                place(last).flag.signal(false);
            }
            ATOMIC_WAIT | PLAIN_WRITE => self.word.write(0, SeqCst),
            _ => _ = self.word.read(SeqCst),
        }
    }

    fn inspect(me: &Ptr<Place>, see: &mut dyn FnMut(&'static str, Word)) {
        see("me", me.word());
    }
}

fn costs<const K: u8>() -> Option<[u64; 4]> {
    bounds_of(&Subject::mutex::<Costs<K>>("odd"))
}

/// Others set the flag again while a process waits for it, and it is remote to all but one.
#[test]
fn a_record_that_all_own_has_no_bound() {
    assert_eq!(costs::<ONE_RECORD>(), None);
}

/// Every process but the first waits on a register that is remote to it.
#[test]
fn records_in_one_memory_have_no_bound() {
    assert!(costs::<OWN_HOME>().is_some());
    assert_eq!(costs::<ONE_HOME>(), None);
}

#[test]
fn a_record_in_the_memory_of_another_has_no_bound() {
    assert_eq!(costs::<NEXT_HOME>(), None);
    assert_eq!(costs::<OWN_HOME>(), Some([5, 5, 6, 3]));
}

/// Read, ten reads, the atomic wait and a write: at least the eleven reads are remote.
#[test]
fn what_an_atomic_wait_writes_is_met() {
    assert_eq!(costs::<PLAIN_WRITE>(), Some([13; 4]));
    assert!(costs::<ATOMIC_WAIT>().is_none_or(|bound| bound[0] >= 11));
}
