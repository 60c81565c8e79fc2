//! Processes that withdraw.

use super::*;

/// A process that withdraws keeps the gate.
const KEEPS_GATE: u8 = 3;
/// It opens the gate.
const OPENS_GATE: u8 = 4;

/// For two. A process that withdraws takes no step. If it returns, it first gives back what it was
/// given in the meantime.
const TAKES_NO_STEP: u8 = 5;
/// Waits in `acquire` for another value, and never gives up.
const NEVER_GIVES_UP: u8 = 6;

#[derive(Debug)]
struct Quits<const K: u8> {
    /// 0 free, 1 taken, 2 given.
    held: SimRegister<u64>,
    gate: SimRegister<u64>,
    wants: SimRegister<bool>,
    slots: Slots<Asker>,
}

#[derive(Debug)]
struct Asker {
    i: usize,
}

impl<const K: u8> Quits<K> {
    /// Process 1 does not withdraw, has no doorway, and gives way to process 0.
    fn no_step(&self, me: usize, give_up: GiveUp<'_>) -> bool {
        if me == 1 {
            self.gate.read(SeqCst);
            SimMemory::await_until(|| !self.wants.read(SeqCst) && self.held.cas(0, 1, SeqCst));
            return true;
        }
        if self.held.read(SeqCst) == 2 {
            self.wants.write(false, SeqCst);
            self.held.write(0, SeqCst);
        }
        self.wants.write(true, SeqCst);
        SimMemory::doorway_end();
        loop {
            SimMemory::live(|| []);
            if self.held.cas(0, 1, SeqCst) {
                break;
            }
            match self.held.await_other(1, SeqCst, &mut *give_up) {
                None => return false,
                Some(2) => {
                    self.held.write(1, SeqCst);
                    break;
                }
                Some(_) => {}
            }
        }
        self.wants.write(false, SeqCst);
        true
    }
}

impl<const K: u8> RawMutex<SimMemory> for Quits<K> {
    type Process = Asker;

    fn claims() -> Claims {
        claims()
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        let register = |name| SimRegister::new(Site::shared(name), 0);
        Ok(Quits {
            held: register("held"),
            gate: register("gate"),
            wants: SimRegister::new(Site::shared("wants"), false),
            slots: Slots::new(processes, 8, |i| Asker { i })?,
        })
    }

    fn join(&self) -> Result<Asker, CapacityError> {
        self.slots.take()
    }

    unsafe fn leave(&self, me: Asker) {
        self.slots.give_back(me);
    }

    unsafe fn acquire(&self, _: &mut Asker) {
        if K == NEVER_GIVES_UP {
            while !self.held.cas(0, 1, SeqCst) {
                SimMemory::live(|| []);
                let held = self.held.await_other(1, SeqCst, &mut || false);
                assert_eq!(held, Some(0), "nobody gives up, and it is 0 or 1");
                SimMemory::live(|| []);
            }
            return;
        }
        tas(&self.held);
    }

    unsafe fn release(&self, me: &mut Asker) {
        if K == TAKES_NO_STEP && me.i == 1 && self.wants.read(SeqCst) {
            self.held.write(2, SeqCst);
        } else {
            self.held.write(0, SeqCst);
        }
    }

    fn inspect(me: &Asker, see: &mut dyn FnMut(&'static str, Word)) {
        if K == TAKES_NO_STEP {
            see("i", me.i.word());
        }
    }
}

impl<const K: u8> WithdrawMutex<SimMemory> for Quits<K> {
    unsafe fn acquire_unless(&self, me: &mut Asker, give_up: GiveUp<'_>) -> bool {
        if K == TAKES_NO_STEP {
            return self.no_step(me.i, give_up);
        }
        tas(&self.gate);
        let free = self.held.await_other(1, SeqCst, give_up).is_some();
        if free {
            self.held.write(1, SeqCst);
        }
        if free || K == OPENS_GATE {
            self.gate.write(0, SeqCst);
        }
        free
    }
}

fn quits<const K: u8>(processes: usize, property: Property) -> String {
    explore(&Subject::withdrawing_mutex::<Quits<K>>("odd"), processes, property)
}

#[test]
fn a_process_that_withdraws_and_keeps_something() {
    let deadlock = Property::DeadlockFreedom;
    violates(&quits::<KEEPS_GATE>(2, deadlock), deadlock);
    holds(&quits::<OPENS_GATE>(2, deadlock));
    holds(&quits::<OPENS_GATE>(3, Property::MutualExclusion));
    holds(&quits::<OPENS_GATE>(2, Property::GroupBoundedAbort));
}

/// Process 0 withdraws and process 1 leaves: the lock is given to process 0, which is idle. Process 1
/// asks again and waits. Process 0 asks again and gives the lock back before its doorway ends. Now
/// process 1 enters. Process 0 asked earlier, but withdrew that request.
#[test]
fn a_withdrawal_without_a_step_ends_the_request() {
    holds(&quits::<TAKES_NO_STEP>(2, Property::MutualExclusion));
    holds(&quits::<TAKES_NO_STEP>(2, Property::Fcfs));
}

/// It asks nobody whether to give up, so the wait returns zero.
#[test]
fn a_wait_for_another_value_in_a_lock_without_withdrawal() {
    let subject = Subject::mutex::<Quits<NEVER_GIVES_UP>>("odd");
    holds(&explore(&subject, 2, Property::MutualExclusion));
}
