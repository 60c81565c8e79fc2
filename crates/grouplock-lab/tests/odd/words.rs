//! Mutexes whose processes share words.

use super::*;

/// The operation after a wait depends on what the wait read.
const CARRIES_OUT: u8 = 1;
/// The doorway ends before the first step.
const EARLY_DOORWAY: u8 = 2;
/// As before, and the first step waits.
const EARLY_DOORWAY_THEN_WAITS: u8 = 3;
/// The exit section takes 600 steps.
const LONG_EXIT: u8 = 5;
/// `live` in a function that is called in two places.
const HELPER: u8 = 6;
/// If three processes try at once, they all step back.
const THREE_STEP_BACK: u8 = 9;
/// A process enters at once in its third passage, and `inspect` shows how many passages it made.
const THIRD_PASSAGE: u8 = 10;
/// The exit section alternates between two loops as long as others want that.
const TWO_LOOPS: u8 = 11;
/// The exit compares, and a waiter may have changed the word.
const EXIT_COMPARES: u8 = 12;
/// The last of seven that come at once enters.
const SEVENTH: u8 = 13;
/// The doorway ends twice, the first time where the order is decided.
const TWO_DOORWAYS: u8 = 15;
/// One process of three goes through another text.
const ODD_ONE: u8 = 16;
/// The exit section leaves the lock taken.
const NEVER_FREE: u8 = 17;
/// The exit section waits for a register that a later process sets.
const EXIT_NEEDS_NEXT: u8 = 18;
/// What is written after a wait depends on what the wait read.
const CARRIES_VALUE: u8 = 19;
/// A weak compare-and-swap in the exit.
const WEAK_EXIT: u8 = 20;
/// The exit section waits for what nobody writes.
const EXIT_STOPS: u8 = 22;
/// Test-and-set.
const PLAIN: u8 = 25;

#[derive(Debug)]
struct Flat<const K: u8> {
    held: SimRegister<u64>,
    word: SimRegister<u64>,
    count: SimRegister<u64>,
    locks: [SimRegister<u64>; 2],
    slots: Slots<Me>,
}

#[derive(Debug)]
struct Me {
    i: usize,
    n: u64,
}

fn pause() {
    SimMemory::live(|| []);
}

impl<const K: u8> Flat<K> {
    fn first_loop(&self) {
        SimMemory::live(|| []);
        if self.word.read(SeqCst) == 0 {
            self.held.write(0, SeqCst);
        } else {
            self.second_loop();
        }
    }

    fn second_loop(&self) {
        SimMemory::live(|| []);
        if self.count.read(SeqCst) == 0 {
            self.held.write(0, SeqCst);
        } else {
            self.first_loop();
        }
    }
}

impl<const K: u8> RawMutex<SimMemory> for Flat<K> {
    type Process = Me;

    fn claims() -> Claims {
        claims()
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        let register = |name| SimRegister::new(Site::shared(name), 0);
        Ok(Flat {
            held: register("held"),
            word: register("word"),
            count: register("count"),
            locks: ["zero", "one"].map(register),
            slots: Slots::new(processes, 8, |i| Me { i, n: 0 })?,
        })
    }

    fn join(&self) -> Result<Me, CapacityError> {
        self.slots.take()
    }

    unsafe fn leave(&self, me: Me) {
        self.slots.give_back(me);
    }

    #[allow(clippy::too_many_lines, reason = "one arm for each lock")]
    unsafe fn acquire(&self, me: &mut Me) {
        match K {
            CARRIES_OUT => {
                let seen = Cell::new(0);
                SimMemory::await_until(|| {
                    seen.set(self.word.read(SeqCst));
                    seen.get() < 2
                });
                tas(&self.locks[seen.get() as usize]);
                self.word.write(1, SeqCst);
            }
            CARRIES_VALUE => {
                tas(&self.held);
                let seen = Cell::new(0);
                SimMemory::await_until(|| {
                    seen.set(self.word.read(SeqCst));
                    seen.get() < 3
                });
                self.count.write(seen.get(), SeqCst);
                let given = self.count.read(SeqCst) == 1;
                if given {
                    self.held.write(0, SeqCst);
                }
            }
            EARLY_DOORWAY => {
                SimMemory::doorway_end();
                let mine = self.word.faa(1, SeqCst);
                SimMemory::await_until(|| self.count.read(SeqCst) == mine);
            }
            EARLY_DOORWAY_THEN_WAITS => {
                SimMemory::doorway_end();
                self.held.await_cas(0, 1);
            }
            HELPER => {
                let first = self.word.read(SeqCst) == 0;
                if first {
                    pause();
                    tas(&self.held);
                } else {
                    pause();
                    self.word.read(SeqCst);
                    tas(&self.held);
                }
                self.word.write(1, SeqCst);
            }
            THREE_STEP_BACK => loop {
                SimMemory::live(|| []);
                self.count.faa(1, SeqCst);
                if self.count.read(SeqCst) < 3 {
                    tas(&self.held);
                    self.word.read(SeqCst);
                    return;
                }
                self.count.faa(u64::MAX, SeqCst);
            },
            THIRD_PASSAGE => {
                me.n = (me.n + 1).min(4);
                self.word.read(SeqCst);
                if me.n != 3 {
                    tas(&self.held);
                }
            }
            TWO_LOOPS if me.i == 1 => loop {
                SimMemory::live(|| []);
                self.word.write(1, SeqCst);
                self.count.write(1, SeqCst);
                self.word.write(0, SeqCst);
                self.count.write(0, SeqCst);
                if self.held.cas(0, 1, SeqCst) {
                    return;
                }
            },
            EXIT_COMPARES => loop {
                SimMemory::live(|| []);
                if self.held.cas(0, 1, SeqCst) {
                    return;
                }
                // Somebody waits.
                self.held.cas(1, 2, SeqCst);
            },
            SEVENTH => {
                if self.count.faa(1, SeqCst) != 6 {
                    tas(&self.held);
                }
            }
            TWO_DOORWAYS => {
                let mine = self.word.faa(1, SeqCst);
                SimMemory::doorway_end();
                SimMemory::await_until(|| self.count.read(SeqCst) == mine);
                SimMemory::doorway_end();
                self.held.read(SeqCst);
            }
            ODD_ONE if me.i == 2 => {
                // Looks, and then takes.
                SimMemory::await_until(|| self.held.read(SeqCst) == 0);
                self.held.write(1, SeqCst);
            }
            EXIT_NEEDS_NEXT => {
                tas(&self.held);
                self.word.write(0, SeqCst);
            }
            _ => tas(&self.held),
        }
    }

    unsafe fn release(&self, me: &mut Me) {
        match K {
            CARRIES_OUT => {
                self.word.write(0, SeqCst);
                self.locks[0].write(0, SeqCst);
                self.locks[1].write(0, SeqCst);
            }
            CARRIES_VALUE => {
                self.word.write(1, SeqCst);
                self.held.write(0, SeqCst);
            }
            EARLY_DOORWAY | TWO_DOORWAYS => _ = self.count.faa(1, SeqCst),
            LONG_EXIT => {
                for i in 0..600_u64 {
                    SimMemory::live(|| [i.word()]);
                    self.word.read(SeqCst);
                }
                self.held.write(0, SeqCst);
            }
            THREE_STEP_BACK => {
                self.held.write(0, SeqCst);
                self.count.faa(u64::MAX, SeqCst);
            }
            SEVENTH => {
                self.count.faa(u64::MAX, SeqCst);
                self.held.write(0, SeqCst);
            }
            TWO_LOOPS => {
                if me.i == 0 {
                    self.first_loop();
                } else {
                    self.held.write(0, SeqCst);
                }
            }
            EXIT_COMPARES => _ = self.held.cas(1, 0, SeqCst),
            EXIT_NEEDS_NEXT => {
                self.held.write(0, SeqCst);
                SimMemory::await_until(|| self.word.read(SeqCst) == 0);
                self.word.write(1, SeqCst);
            }
            WEAK_EXIT => _ = self.held.cas(1, 0, Relaxed),
            NEVER_FREE => _ = self.held.read(SeqCst),
            EXIT_STOPS => SimMemory::await_until(|| self.word.read(SeqCst) == 9),
            _ => self.held.write(0, SeqCst),
        }
    }

    fn inspect(me: &Me, see: &mut dyn FnMut(&'static str, Word)) {
        if matches!(K, TWO_LOOPS | ODD_ONE) {
            see("i", me.i.word());
        }
        if K == THIRD_PASSAGE {
            see("n", me.n.word());
        }
    }
}

fn flat<const K: u8>(processes: usize, property: Property) -> String {
    explore(&Subject::mutex::<Flat<K>>("odd"), processes, property)
}

fn flat_bounded<const K: u8>(processes: usize, property: Property, passages: u8) -> String {
    let subject = Subject::mutex::<Flat<K>>("odd");
    explore_with(&subject, processes, property, |options| options.passages = Some(passages))
}

/// The first process takes lock zero and sets the word. The second reads one, and takes lock one.
#[test]
fn an_operation_that_depends_on_what_a_wait_read() {
    let said = flat::<CARRIES_OUT>(2, Property::MutualExclusion);
    assert!(said.starts_with("violated"), "{said}");
}

/// The second passage writes 1, reads it, and gives the lock away before it enters.
#[test]
fn a_written_value_that_depends_on_what_a_wait_read() {
    let said = flat::<CARRIES_VALUE>(2, Property::MutualExclusion);
    assert!(said.starts_with("violated"), "{said}");
}

/// The doorway of a process that has taken no step has ended. Another takes the first ticket.
#[test]
fn a_doorway_that_ends_before_the_first_step() {
    violates(&flat_bounded::<EARLY_DOORWAY>(2, Property::Fcfs, 2), Property::Fcfs);
}

/// The same, where the first step may wait, so that it is no part of the request.
#[test]
fn a_doorway_that_ends_before_a_wait() {
    violates(&flat::<EARLY_DOORWAY_THEN_WAITS>(2, Property::Fcfs), Property::Fcfs);
}

/// The first end counts: tickets are served in their order. If the second end counted, that would
/// hold too, because only the called process gets there.
#[test]
fn a_doorway_that_ends_twice() {
    holds(&flat_bounded::<TWO_DOORWAYS>(2, Property::StrongFifo, 2));
    holds(&flat_bounded::<TWO_DOORWAYS>(3, Property::Fcfs, 1));
}

/// 601 steps, none of which waits: bounded, and so group bounded.
#[test]
fn a_long_exit_is_bounded() {
    holds(&flat::<LONG_EXIT>(2, Property::BoundedExit));
}

#[test]
fn a_long_exit_is_group_bounded() {
    holds(&flat::<LONG_EXIT>(2, Property::GroupBoundedExit));
}

/// Both paths take the same lock. But the place of `live` is one line, and what follows differs. A
/// text has to say there where it continues, so this is a false statement.
#[test]
fn a_function_that_says_live_is_called_in_two_places() {
    violates(&flat::<HELPER>(2, Property::MutualExclusion), Property::DeadPrivate);
}

/// Two never count to three. Three may: each raises, each reads three, each lowers, and so on.
#[test]
fn three_processes_step_back_and_two_do_not() {
    holds(&flat::<THREE_STEP_BACK>(2, Property::DeadlockFreedom));
    violates(&flat::<THREE_STEP_BACK>(3, Property::DeadlockFreedom), Property::DeadlockFreedom);
    holds(&flat::<THREE_STEP_BACK>(3, Property::MutualExclusion));
}

/// Only the third passage is wrong, and the lock forgets nothing.
#[test]
fn the_third_passage_is_wrong() {
    let mutual = Property::MutualExclusion;
    holds(&flat_bounded::<THIRD_PASSAGE>(2, mutual, 2));
    violates(&flat_bounded::<THIRD_PASSAGE>(2, mutual, 3), mutual);
    violates(&flat::<THIRD_PASSAGE>(2, mutual), mutual);
}

/// The waiter sets and clears both words again and again, so the exit of process 0 may always read
/// ones. If the waiter stops between, it reads ones forever alone.
#[test]
fn an_exit_through_two_loops() {
    violates(&flat::<TWO_LOOPS>(2, Property::BoundedExit), Property::BoundedExit);
    violates(&flat::<TWO_LOOPS>(2, Property::TerminatingExit), Property::TerminatingExit);
    violates(&flat::<TWO_LOOPS>(2, Property::GroupBoundedExit), Property::GroupBoundedExit);
}

/// A waiter makes the word 2, and the exit does nothing: the lock is never free again.
#[test]
fn an_exit_that_compares_and_fails() {
    violates(&flat::<EXIT_COMPARES>(2, Property::DeadlockFreedom), Property::DeadlockFreedom);
    holds(&flat::<EXIT_COMPARES>(2, Property::MutualExclusion));
    holds(&flat::<EXIT_COMPARES>(1, Property::DeadlockFreedom));
}

/// Six never count to seven.
#[test]
fn seven_processes_find_what_six_do_not() {
    holds(&flat::<SEVENTH>(6, Property::MutualExclusion));
    violates(&flat::<SEVENTH>(7, Property::MutualExclusion), Property::MutualExclusion);
}

/// Two are alike, and keep the third out as long as it only looks and they swap. It writes what it
/// did not compare.
#[test]
fn one_of_three_is_careless() {
    holds(&flat::<ODD_ONE>(2, Property::MutualExclusion));
    violates(&flat::<ODD_ONE>(3, Property::MutualExclusion), Property::MutualExclusion);
}

/// The second process waits forever. Nobody moves any more, which is an execution too.
#[test]
fn a_process_that_waits_when_nobody_moves_starves() {
    violates(&flat::<NEVER_FREE>(2, Property::DeadlockFreedom), Property::DeadlockFreedom);
    violates(&flat::<NEVER_FREE>(2, Property::StarvationFreedom), Property::StarvationFreedom);
}

/// The process that leaves waits for what nobody writes.
#[test]
fn an_exit_that_waits_when_nobody_moves_does_not_end() {
    violates(&flat::<EXIT_STOPS>(2, Property::BoundedExit), Property::BoundedExit);
    violates(&flat::<EXIT_STOPS>(2, Property::TerminatingExit), Property::TerminatingExit);
}

/// It has taken no step of its exit section, and all others wait too.
#[test]
fn an_exit_that_waits_when_nobody_moves_is_not_group_bounded() {
    violates(&flat::<EXIT_STOPS>(2, Property::GroupBoundedExit), Property::GroupBoundedExit);
}

/// The first to leave finds the word 0 and leaves 1. The next finds what it wrote itself.
#[test]
fn an_exit_that_waits_for_the_next() {
    // One process sets the word to 0 before it leaves. With two, the second may leave between: the
    // first sets it to 1, and the second waits until a third enters, which need not come.
    let said = flat::<EXIT_NEEDS_NEXT>(2, Property::TerminatingExit);
    holds(&flat::<EXIT_NEEDS_NEXT>(1, Property::TerminatingExit));
    // Process 1 could request again, but process 0 is idle and need not.
    violates(&flat::<EXIT_NEEDS_NEXT>(2, Property::DeadlockFreedom), Property::DeadlockFreedom);
    violates(&said, Property::TerminatingExit);
}

/// In partial store order the exit overtakes the data; in total store order it drains the buffer.
#[test]
fn a_relaxed_compare_and_swap_in_the_exit() {
    let mutual = Property::MutualExclusion;
    let subject = Subject::mutex::<Flat<WEAK_EXIT>>("odd");
    let with = |model| explore_with(&subject, 2, mutual, |options| options.memory_model = model);
    holds(&with(MemoryModel::Sc));
    holds(&with(MemoryModel::Tso));
    violates(&with(MemoryModel::Pso), mutual);
}

/// Only mutual exclusion and the order are asked for, and both hold.
#[test]
fn only_what_is_asked_for_is_reported() {
    let subject = Subject::mutex::<Flat<NEVER_FREE>>("odd");
    let said = explore_with(&subject, 2, Property::Fcfs, |options| {
        options.properties = options.properties.with(Property::MutualExclusion);
    });
    assert!(!said.starts_with("violated: deadlock"), "{said}");
}

/// With six that are alike there are too many orders, and that is said.
#[test]
fn infinite_executions_of_six_are_not_looked_at() {
    let starvation = Property::StarvationFreedom;
    assert_eq!(flat::<PLAIN>(6, starvation), "Holds, not looked at");
    violates(&flat::<PLAIN>(3, starvation), starvation);
    holds(&flat::<PLAIN>(1, starvation));
}
