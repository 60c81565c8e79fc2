//! Room synchronisation: a fixed number of rooms, opened in rounds.
//!
//! G. E. Blelloch, P. Cheng and P. B. Gibbons, "Room synchronizations", SPAA 2001. Maor and
//! Taubenfeld name it beside group mutual exclusion, as a problem "defined using a set of
//! properties that is different" (2021, section 1.4). We have not seen the paper: **the program
//! text is a restatement**, and the claims are ours for that text.
//!
//! * **Promises** mutual exclusion, starvation freedom and a bounded exit, for any number of
//!   processes and a fixed number of rooms. Of two requests for one room, the second is not
//!   admitted without the first.
//! * **Costs** O(m) remote references for m rooms with coherent caches, and O(m) space, whatever
//!   the number of processes. On distributed memory the cost has no bound.
//! * **Does not promise** concurrent occupancy: a process that arrives while its room is open waits
//!   for the next round, even if no process requests another room. Nor first-come-first-served:
//!   rooms open in the order of their numbers.
//!
//! Each room is a ticket counter with a mark: tickets up to `cur` are admitted. A round of a room
//! ends when as many processes have left as were admitted. The last of them opens the next room
//! with waiters, for all processes that wait there at that moment.
//!
//! The line numbers are ours:
//!
//! ```text
//! shared: which ∈ {NONE, 0..m-1} (NONE), for each room wait, cur, prev (0)
//!
//! enter(i)                                                     exit
//!  1  t := FAA(wait[i], 1) + 1      doorway ends                6  w := which; j := FAA(prev[w], 1) + 1
//!  2  while t > cur[i]:                                         7  if j = cur[w]:
//!  3      if which = NONE:                                      8      for k := 1..m: r := (w + k) mod m
//!  4          if CAS(which, NONE, i):                           9          if cur[r] < wait[r]:
//!  5              cur[i] := wait[i]                            10              which := r; cur[r] := wait[r]; return
//!                                                              11      which := NONE
//! ```
//!
//! The counters are 64 bits wide and only grow: at a billion passages a second they last five
//! centuries. Rooms are sessions, from 1.
//!
//! # Orderings
//! A process announces itself in line 1 and then reads `which`; a process that leaves reads `wait`
//! and then writes `which`. So every access is sequentially consistent.

use crate::memory::Ordering::SeqCst;
use crate::memory::{Memory, Native, Register, Site, Word};
use crate::prelude::*;

/// The lock, with so many rooms. See the [module](self).
#[derive(Debug)]
pub struct Rooms<M: Memory = Native, const ROOMS: usize = 8> {
    which: M::Register<u64>,
    rooms: [Room<M>; ROOMS],
}

/// In `which`: no room is open. Rooms are counted from one there.
const NONE: u64 = 0;

/// How many processes have arrived at a room, were admitted, and have left.
#[derive(Debug)]
#[repr(align(128))]
struct Room<M: Memory> {
    wait: M::Register<u64>,
    cur: M::Register<u64>,
    prev: M::Register<u64>,
}

/// A process: it has no private variables.
#[derive(Debug)]
pub struct Process;

impl<M: Memory, const ROOMS: usize> Rooms<M, ROOMS> {
    /// Admits all waiters of room `i`, which has just been opened.
    #[track_caller]
    fn let_in(&self, i: usize) {
        let wait = self.rooms[i].wait.read(SeqCst); // 5, 10
        self.rooms[i].cur.write(wait, SeqCst); // 5, 10
    }
}

impl<M: Memory, const ROOMS: usize> RawGroup<M> for Rooms<M, ROOMS> {
    const LARGEST_SESSION: u64 = ROOMS as u64;

    type Process = Process;

    fn claims() -> Claims {
        Claims {
            name: "rooms",
            source: "Blelloch, Cheng and Gibbons 2001, restated",
            text: text!("rooms.rs"),
            starvation_freedom: Claim::Yes,
            fcfs: Claim::No,
            fife: Claim::Yes,
            entering: Entering::ROUNDS,
            exit: Exit::BOUNDED,
            rmr_cc: Bound::of(Growth::Constant),
            rmr_dsm: Bound::of(Growth::Unbounded),
            space: Growth::Constant,
            primitives: &[
                Primitive::Read,
                Primitive::Write,
                Primitive::CompareAndSwap,
                Primitive::FetchAndAdd,
            ],
            processes: Limit::None,
            sessions: Limit::Fixed(ROOMS as u64),
            bounded_registers: Claim::No,
            ..Claims::GROUP
        }
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        let room = |i| Room {
            wait: M::Register::new(Site::element("wait", i), 0),
            cur: M::Register::new(Site::element("cur", i), 0),
            prev: M::Register::new(Site::element("prev", i), 0),
        };
        let which = M::Register::new(Site::shared("which"), NONE);
        Ok(Rooms { which, rooms: core::array::from_fn(room) })
    }

    fn join(&self) -> Result<Process, CapacityError> {
        Ok(Process)
    }

    unsafe fn leave(&self, _: Process) {}

    unsafe fn enter(&self, _: &mut Process, session: Session) {
        let i = session.get() as usize - 1;
        let room = &self.rooms[i];
        let t = room.wait.faa(1, SeqCst) + 1; // 1
        M::doorway_end();
        loop {
            M::live(|| [t.word()]);
            M::await_until(|| t <= room.cur.read(SeqCst) || self.which.read(SeqCst) == NONE); // 2-3
            let is_in = t <= room.cur.read(SeqCst); // 2
            if is_in {
                return;
            }
            let opened = self.which.cas(NONE, session.get(), SeqCst); // 4
            if opened {
                M::live(|| []);
                return self.let_in(i); // 5
            }
        }
    }

    unsafe fn exit(&self, _: &mut Process) {
        let w = self.which.read(SeqCst) as usize - 1; // 6
        M::live(|| [w.word()]);
        let j = self.rooms[w].prev.faa(1, SeqCst) + 1; // 6
        let last = j == self.rooms[w].cur.read(SeqCst); // 7
        if last {
            for k in 1..=ROOMS {
                M::live(|| [w.word(), k.word()]);
                let r = (w + k) % ROOMS;
                let somebody = self.rooms[r].cur.read(SeqCst) < self.rooms[r].wait.read(SeqCst); // 9
                if somebody {
                    M::live(|| [r.word()]);
                    self.which.write(r as u64 + 1, SeqCst); // 10
                    return self.let_in(r); // 10
                }
            }
            self.which.write(NONE, SeqCst); // 11
        }
    }

    fn inspect(_: &Process, _: &mut dyn FnMut(&'static str, Word)) {}
}
