//! Processes that die.

use super::*;

/// A process whose last user died between two writes of its record enters at once.
const HALF_WRITTEN: u8 = 1;
/// A process that leaves is busy for a while after it has released the latch.
const BUSY_AFTERWARDS: u8 = 2;
/// It is busy before that.
const BUSY_BEFORE: u8 = 3;
/// Every process waits for the latch.
const WAITS: u8 = 4;
/// Who leaves looks at the gate first. Who attends to a death shuts it meanwhile.
const GATE: u8 = 5;

/// A mutex whose processes may die.
#[derive(Debug)]
struct Mortal<const K: u8> {
    latch: WordLatch<SimMemory>,
    busy: SimRegister<u64>,
    states: Vec<SimRegister<u64>>,
    deaths: Deaths<SimMemory>,
    nodes: Nodes<SimMemory, Record, Mortals>,
}

#[derive(Debug)]
struct Mortals {
    name: u64,
    mine: Ptr<Record>,
}

impl<const K: u8> RawGroup<SimMemory> for Mortal<K> {
    type Process = Mortals;

    fn claims() -> Claims {
        Claims { kind: Kind::Group, sessions: Limit::None, ..claims() }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        let state = |p| SimRegister::new(Site::per_process("State", p), 0);
        Ok(Mortal {
            latch: RecoverableMutex::new(processes)?,
            busy: SimRegister::new(Site::shared("busy"), 0),
            states: (0..processes).map(state).collect(),
            deaths: Deaths::new(processes),
            nodes: Nodes::new(),
        })
    }

    fn join(&self) -> Result<Mortals, CapacityError> {
        Ok(self.nodes.take(|p| Mortals {
            name: p as u64 + 1,
            mine: self.nodes.allocate(|| Record::new(Some(p))),
        }))
    }

    unsafe fn leave(&self, me: Mortals) {
        self.nodes.give_back(me);
    }

    unsafe fn enter(&self, me: &mut Mortals, _: Session) {
        let mine = at(me.mine);
        if K == HALF_WRITTEN {
            let half = mine.a.read(SeqCst) == 1 && mine.b.read(SeqCst) == 0;
            mine.a.write(1, SeqCst);
            mine.b.write(1, SeqCst);
            if half {
                self.busy.read(SeqCst);
                return;
            }
        }
        // SAFETY: the process lives, and does not own the latch.
        let died = unsafe { self.latch.acquire(me.name, &self.deaths) };
        if K == GATE {
            if died {
                self.busy.write(1, SeqCst);
                // There are two processes.
                self.states[2 - me.name as usize].write(0, SeqCst);
                self.busy.write(0, SeqCst);
            }
            self.states[me.name as usize - 1].write(1, SeqCst);
            return;
        }
        // A dead owner counts as inside until this one has the latch.
        SimMemory::await_until(|| self.busy.read(SeqCst) == 0);
    }

    unsafe fn exit(&self, me: &mut Mortals) {
        if K == BUSY_AFTERWARDS {
            self.states[me.name as usize - 1].read(SeqCst);
            self.busy.write(1, SeqCst);
        }
        if K == BUSY_BEFORE {
            self.states[me.name as usize - 1].read(SeqCst);
            self.busy.write(1, SeqCst);
            self.busy.write(0, SeqCst);
        }
        if K == GATE {
            SimMemory::await_until(|| self.busy.read(SeqCst) == 0);
            self.states[me.name as usize - 1].write(0, SeqCst);
        }
        // SAFETY: it owns the latch.
        unsafe { self.latch.release(me.name) };
        if K == BUSY_AFTERWARDS {
            self.busy.write(0, SeqCst);
        }
        if K == HALF_WRITTEN {
            at(me.mine).a.write(0, SeqCst);
            at(me.mine).b.write(0, SeqCst);
        }
    }

    fn inspect(me: &Mortals, see: &mut dyn FnMut(&'static str, Word)) {
        see("name", me.name.word());
        see("mine", me.mine.word());
    }

    fn conflict(_: u64, _: u64) -> bool {
        true
    }
}

fn mortal<const K: u8>(property: Property, deaths: u8, alone: bool) -> String {
    let subject = Subject::recovering::<Mortal<K>>("odd");
    explore_with(&subject, 2, property, |options| {
        options.deaths = Some(deaths);
        options.sessions = 1;
        options.reductions.alone = alone;
    })
}

/// A process dies with one and zero in its record. The next process in its place enters at once.
#[test]
fn a_death_between_two_writes_of_an_own_record() {
    let mutual = Property::MutualExclusion;
    holds(&mortal::<WAITS>(mutual, 1, true));
    holds(&mortal::<HALF_WRITTEN>(mutual, 0, true));
    violates(&mortal::<HALF_WRITTEN>(mutual, 1, false), mutual);
    violates(&mortal::<HALF_WRITTEN>(mutual, 1, true), mutual);
}

/// If a process dies while it is busy, the others wait forever, in both orders. In each the latch is
/// taken from a process that dies inside.
#[test]
fn a_death_in_the_exit_section() {
    let deadlock = Property::DeadlockFreedom;
    holds(&mortal::<BUSY_AFTERWARDS>(deadlock, 0, true));
    violates(&mortal::<BUSY_AFTERWARDS>(deadlock, 1, true), deadlock);
    violates(&mortal::<BUSY_BEFORE>(deadlock, 1, true), deadlock);
}

/// The gate is shut only while the process that owns the latch attends to a death. The dead process
/// was inside, and takes no more steps. So no process has to wait in its exit.
#[test]
fn a_dead_process_need_not_leave() {
    let exit = Property::BoundedExit;
    holds(&mortal::<GATE>(exit, 0, true));
    holds(&mortal::<GATE>(exit, 1, true));
}
