//! Locks with sessions.

use super::*;

/// A word that holds the session and the number inside; a process tries to change it until it can.
const CHURN: u8 = 1;
/// A lock for each session.
const TWO_IN_ONE: u8 = 2;
/// A process waits while another of its session is leaving.
const WAITS_FOR_LEAVER: u8 = 4;
/// As the first, and a process that leaves waits until the others of its session are out.
const LEAVE_TOGETHER: u8 = 5;

#[derive(Debug)]
struct Crowd<const K: u8> {
    word: SimRegister<u64>,
    leaving: SimRegister<u64>,
    locks: [SimRegister<u64>; 2],
    nodes: Nodes<SimMemory, Record, Guest>,
}

#[derive(Debug)]
struct Guest {
    mine: Ptr<Record>,
    session: u64,
}

impl<const K: u8> Crowd<K> {
    fn change(&self, next: impl Fn(u64) -> u64) {
        loop {
            SimMemory::live(|| []);
            let word = self.word.read(SeqCst);
            if next(word) != word && self.word.cas(word, next(word), SeqCst) {
                return;
            }
        }
    }
}

impl<const K: u8> RawGroup<SimMemory> for Crowd<K> {
    type Process = Guest;

    fn claims() -> Claims {
        Claims {
            kind: Kind::Group,
            sessions: Limit::None,
            entering: Entering::CONCURRENT,
            exit: Exit::BOUNDED,
            ..claims()
        }
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        let register = |name| SimRegister::new(Site::shared(name), 0);
        Ok(Crowd {
            word: register("word"),
            leaving: register("leaving"),
            locks: ["zero", "one"].map(register),
            nodes: Nodes::new(),
        })
    }

    fn join(&self) -> Result<Guest, CapacityError> {
        Ok(self
            .nodes
            .take(|p| Guest { mine: self.nodes.allocate(|| Record::new(Some(p))), session: 0 }))
    }

    unsafe fn leave(&self, me: Guest) {
        self.nodes.give_back(me);
    }

    unsafe fn enter(&self, me: &mut Guest, session: Session) {
        me.session = session.get();
        if K == TWO_IN_ONE {
            return tas(&self.locks[me.session as usize - 1]);
        }
        if K == WAITS_FOR_LEAVER {
            SimMemory::await_until(|| self.leaving.read(SeqCst) == 0);
        }
        let session = me.session;
        self.change(|word| match word {
            0 => session * 16 + 1,
            word if word / 16 == session => word + 1,
            word => word,
        });
    }

    unsafe fn exit(&self, me: &mut Guest) {
        if K == TWO_IN_ONE {
            return self.locks[me.session as usize - 1].write(0, SeqCst);
        }
        if K == WAITS_FOR_LEAVER {
            self.leaving.write(1, SeqCst);
        }
        self.change(|word| if word % 16 == 1 { 0 } else { word - 1 });
        if K == WAITS_FOR_LEAVER {
            self.leaving.write(0, SeqCst);
        }
        if K == LEAVE_TOGETHER {
            SimMemory::await_until(|| self.word.read(SeqCst) == 0);
        }
    }

    fn inspect(me: &Guest, see: &mut dyn FnMut(&'static str, Word)) {
        see("mine", me.mine.word());
    }

    fn conflict(one: u64, other: u64) -> bool {
        (one == other) == (K == TWO_IN_ONE)
    }

    fn most(_: u64) -> usize {
        if K == TWO_IN_ONE { 1 } else { usize::MAX }
    }
}

fn crowd<const K: u8>(processes: usize, property: Property) -> String {
    explore(&Subject::group::<Crowd<K>>("odd"), processes, property)
}

/// The same has no bounded number of own steps, as a process tries again.
#[test]
fn a_process_that_tries_again_does_not_enter_concurrently() {
    let entering = Property::ConcurrentEntering;
    violates(&crowd::<CHURN>(2, entering), entering);
    holds(&crowd::<CHURN>(3, Property::MutualExclusion));
    violates(&crowd::<CHURN>(2, Property::BoundedExit), Property::BoundedExit);
}

/// Each session is a mutex of its own, and two of different sessions may be inside.
#[test]
fn sessions_that_do_not_conflict_are_counted_apart() {
    holds(&crowd::<TWO_IN_ONE>(2, Property::MutualExclusion));
    holds(&crowd::<TWO_IN_ONE>(3, Property::MutualExclusion));
}

#[test]
fn a_process_that_waits_for_one_that_leaves_its_own_session() {
    let entering = Property::ConcurrentEntering;
    violates(&crowd::<WAITS_FOR_LEAVER>(2, entering), entering);
    // The leaver gets out, and who leaves may be kept out by those who come. So it ends if none do.
    violates(&crowd::<LEAVE_TOGETHER>(2, Property::BoundedExit), Property::BoundedExit);
    violates(&crowd::<LEAVE_TOGETHER>(2, Property::TerminatingExit), Property::TerminatingExit);
}
