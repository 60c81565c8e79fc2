//! Mutexes whose processes read pointers.

use super::*;

/// Waits on no register of its own.
const STALE: u8 = 1;
/// The same, and the text says that the pointer is needed.
const STALE_TOLD: u8 = 2;
/// A hidden pointer of the handle is compared.
const HIDDEN: u8 = 3;
/// A process writes its own record forever.
const WRITES_FOREVER: u8 = 4;
/// As the first, and the pointer that was read second is told and compared later.
const STALE_LATER: u8 = 6;
/// Follows a pointer that a wait read.
const CARRIED: u8 = 7;

#[derive(Debug)]
struct Linked<const K: u8> {
    held: SimRegister<u64>,
    current: SimRegister<Ptr<Record>>,
    other: SimRegister<Ptr<Record>>,
    nodes: Nodes<SimMemory, Record, Holder>,
}

#[derive(Debug)]
struct Holder {
    mine: Ptr<Record>,
    before: Ptr<Record>,
    n: u64,
}

impl<const K: u8> RawMutex<SimMemory> for Linked<K> {
    type Process = Holder;

    fn claims() -> Claims {
        claims()
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        let nodes = Nodes::new();
        let [one, two] = [(); 2].map(|()| nodes.allocate(|| Record::new(None)));
        at(one).next.write(two, SeqCst);
        at(two).next.write(one, SeqCst);
        Ok(Linked {
            held: SimRegister::new(Site::shared("held"), 0),
            current: SimRegister::new(Site::shared("current"), one),
            other: SimRegister::new(Site::shared("other"), two),
            nodes,
        })
    }

    fn join(&self) -> Result<Holder, CapacityError> {
        Ok(self.nodes.take(|p| Holder {
            mine: self.nodes.allocate(|| Record::new(Some(p))),
            before: Ptr::NIL,
            n: 0,
        }))
    }

    unsafe fn leave(&self, me: Holder) {
        self.nodes.give_back(me);
    }

    unsafe fn acquire(&self, me: &mut Holder) {
        match K {
            STALE | STALE_TOLD => {
                let seen = self.current.read(SeqCst);
                SimMemory::live(|| (K == STALE_TOLD).then_some(seen.word()));
                if self.current.read(SeqCst) == seen {
                    tas(&self.held);
                } else {
                    self.held.read(SeqCst);
                }
            }
            STALE_LATER => {
                let seen = self.current.read(SeqCst);
                SimMemory::live(|| []);
                let now = self.current.read(SeqCst);
                SimMemory::live(|| [now.word()]);
                self.held.read(SeqCst);
                if now == seen {
                    tas(&self.held);
                } else {
                    self.held.read(SeqCst);
                }
            }
            CARRIED => {
                let seen = Cell::new(Ptr::NIL);
                SimMemory::await_until(|| {
                    seen.set(self.current.read(SeqCst));
                    at(seen.get()).a.read(SeqCst) == 0
                });
                at(seen.get()).b.read(SeqCst);
                tas(&self.held);
            }
            HIDDEN if me.n == 0 => {
                me.n = 1;
                self.other.read(SeqCst);
                me.before = self.current.read(SeqCst);
                tas(&self.held);
            }
            HIDDEN => {
                if self.current.read(SeqCst) == me.before {
                    self.held.read(SeqCst);
                } else {
                    tas(&self.held);
                }
            }
            WRITES_FOREVER => loop {
                SimMemory::live(|| []);
                at(me.mine).a.write(1, SeqCst);
            },
            _ => tas(&self.held),
        }
    }

    unsafe fn release(&self, _: &mut Holder) {
        if matches!(K, STALE | STALE_TOLD | STALE_LATER) {
            let next = at(self.current.read(SeqCst)).next.read(SeqCst);
            self.current.write(next, SeqCst);
        }
        self.held.write(0, SeqCst);
    }

    fn inspect(me: &Holder, see: &mut dyn FnMut(&'static str, Word)) {
        see("mine", me.mine.word());
        if K == HIDDEN {
            see("n", me.n.word());
        }
    }
}

fn linked<const K: u8>(processes: usize, property: Property) -> String {
    explore(&Subject::mutex::<Linked<K>>("odd"), processes, property)
}

/// Between two reads of one process another passes and changes the pointer. The first process
/// enters at once, and the other passes again.
#[test]
fn a_pointer_that_is_still_compared_and_told() {
    violates(&linked::<STALE_TOLD>(2, Property::MutualExclusion), Property::MutualExclusion);
}

/// The same, but the text says that the pointer is dead. That is a false statement.
#[test]
fn a_pointer_that_is_called_dead_and_compared() {
    let said = linked::<STALE>(2, Property::MutualExclusion);
    assert!(said.starts_with("violated"), "{said}");
    let said = linked::<STALE_LATER>(2, Property::MutualExclusion);
    assert!(said.starts_with("violated"), "{said}");
}

/// The pointer never changes. So every second passage enters at once.
#[test]
fn a_hidden_pointer_that_the_next_passage_compares() {
    let said = linked::<HIDDEN>(2, Property::MutualExclusion);
    assert!(said.starts_with("violated"), "{said}");
}

/// Nobody ever enters.
#[test]
fn a_process_that_writes_its_own_record_forever() {
    violates(&linked::<WRITES_FOREVER>(2, Property::DeadlockFreedom), Property::DeadlockFreedom);
}

/// A wait leaves nothing behind but that its condition held.
#[test]
fn a_pointer_that_a_wait_read_is_followed() {
    violates(&linked::<CARRIED>(2, Property::MutualExclusion), Property::DeadPrivate);
}
