//! A group lock that checks first and enters later, when the check may no longer be true.

use grouplock_algorithms::claims::{
    Bound, Claim, Claims, Entering, Exit, Growth, Kind, Limit, Primitive, Text,
};
use grouplock_algorithms::memory::{Memory, Ordering::SeqCst, Register, Site, Word};
use grouplock_algorithms::raw::RawGroup;
use grouplock_algorithms::{CapacityError, Session};

#[derive(Debug)]
pub(crate) struct Careless<M: Memory> {
    session: M::Register<u64>,
}

#[derive(Debug)]
pub(crate) struct Process;

impl<M: Memory> RawGroup<M> for Careless<M> {
    type Process = Process;

    fn claims() -> Claims {
        Claims {
            // The name looks like markup: names must not become part of the page.
            name: "careless<script>alert(1)</script>",
            source: "nobody",
            text: Text::new(file!(), include_str!("careless.rs")),
            kind: Kind::Group,
            mutual_exclusion: Claim::Yes,
            deadlock_freedom: Claim::Yes,
            starvation_freedom: Claim::No,
            fcfs: Claim::No,
            strong_fifo: Claim::NotApplicable,
            fife: Claim::No,
            entering: Entering::CONCURRENT,
            exit: Exit::BOUNDED,
            group_bounded_abort: Claim::NotApplicable,
            rmr_cc: Bound::of(Growth::Unbounded),
            rmr_dsm: Bound::of(Growth::Unbounded),
            space: Growth::Constant,
            primitives: &[Primitive::Read, Primitive::Write],
            processes: Limit::None,
            sessions: Limit::None,
            bounded_registers: Claim::Yes,
        }
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        Ok(Careless { session: M::Register::new(Site::shared("session"), 0) })
    }

    fn join(&self) -> Result<Process, CapacityError> {
        Ok(Process)
    }

    unsafe fn leave(&self, _: Process) {}

    unsafe fn enter(&self, _: &mut Process, session: Session) {
        M::doorway_end();
        let mine = session.get();
        M::await_until(|| [0, mine].contains(&self.session.read(SeqCst))); // 1
        self.session.write(mine, SeqCst); // 2
    }

    unsafe fn exit(&self, _: &mut Process) {
        self.session.write(0, SeqCst); // 3
    }

    fn inspect(_: &Process, _: &mut dyn FnMut(&'static str, Word)) {}
}
