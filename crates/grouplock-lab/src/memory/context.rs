//! What the accesses of the calling thread mean just now.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, Location};
use std::sync::Once;

use grouplock_algorithms::memory::{Site, Word};

/// What a process does to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Observes the value.
    Read,
    /// Writes the value.
    Write(Word),
    /// Writes the value, observes the old one.
    Fas(Word),
    /// Writes the second if it holds the first; observes whether it did.
    Cas(Word, Word),
    /// Adds, observes the old value.
    Faa(Word),
    /// Waits until it holds the value.
    WaitFor(Word),
    /// Waits until it holds the first, and writes the second.
    AwaitCas(Word, Word),
}

/// What a process learns from an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nothing but that it is done.
    Unit,
    /// What the register held.
    Value(Word),
    /// Whether a compare-and-swap succeeded.
    Swapped(bool),
}

/// One entry of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The answer to the next operation.
    Answer(Answer),
    /// The process goes on from a merge point.
    Pass,
    /// The process leaves its remainder section and asks for a session.
    Request(u64),
}

/// A register, as told when it was made.
#[derive(Clone, Debug)]
pub(crate) struct RegisterPlan {
    pub(crate) site: Site,
    pub(crate) initial: Word,
    /// The object it lies in, if it was made inside `Memory::allocate`.
    pub(crate) object: Option<u32>,
    /// The text says that what it holds at first is dead.
    pub(crate) forgotten: bool,
}

/// An object made by `Memory::allocate`.
#[derive(Clone, Debug)]
pub(crate) struct ObjectPlan {
    pub(crate) place: *const (),
    pub(crate) type_name: &'static str,
}

/// Everything that was made while a lock was set up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    pub(crate) registers: Vec<RegisterPlan>,
    pub(crate) objects: Vec<ObjectPlan>,
    open: Vec<u32>,
}

/// Something a process says without taking a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remark {
    /// The contents of this register are dead.
    Forget(u32),
    /// The doorway is done.
    DoorwayEnd,
}

/// Where a run along a script came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// Before this operation.
    Operation { register: u32, operation: Operation, at: &'static Location<'static> },
    /// At `Memory::live`.
    Live { words: Vec<Word>, at: &'static Location<'static> },
    /// A round of an `await` has failed.
    RoundFailed,
}

/// A run in progress.
#[derive(Debug, Default)]
pub(crate) struct Run {
    script: Vec<Entry>,
    position: usize,
    pub(crate) remarks: Vec<Remark>,
    pub(crate) halt: Option<Halt>,
    /// Where in the script the present `await` began, and in which line.
    pub(crate) round: Option<(usize, &'static Location<'static>)>,
    /// The script's last entry ended an `await`.
    pub(crate) passed: bool,
    /// Operations that were answered since the count was last reset.
    pub(crate) answered: usize,
    /// Where the lock's objects are.
    places: Vec<*const ()>,
}

impl Run {
    /// A run along `script`, of a lock that was made by `plan`.
    pub(crate) fn along(script: Vec<Entry>, plan: &Plan) -> Self {
        let places = plan.objects.iter().map(|object| object.place).collect();
        Run { script, places, ..Run::default() }
    }

    pub(crate) fn at_end(&self) -> bool {
        self.position == self.script.len()
    }

    /// The next entry, if there is one.
    pub(crate) fn next(&mut self) -> Option<Entry> {
        let entry = self.script.get(self.position).copied();
        self.position += usize::from(entry.is_some());
        entry
    }
}

#[derive(Debug)]
enum Context {
    None,
    SetUp(Plan, Vec<Word>),
    Run(Run),
}

thread_local! {
    static CONTEXT: RefCell<Context> = const { RefCell::new(Context::None) };
}

/// What a run leaves with when it halts inside the algorithm.
struct Leave;

fn with<R>(f: impl FnOnce(&mut Context) -> R) -> R {
    CONTEXT.with_borrow_mut(f)
}

fn leave(halt: Halt) -> ! {
    with(|context| {
        if let Context::Run(run) = context {
            run.halt = Some(halt);
        }
    });
    // Not a panic: the hook stays silent.
    panic::resume_unwind(Box::new(Leave))
}

/// Runs `f`, which makes a lock and lets its processes join, and tells what it made.
pub(crate) fn set_up<R>(f: impl FnOnce() -> R) -> (R, Plan) {
    with(|context| *context = Context::SetUp(Plan::default(), Vec::new()));
    let made = f();
    let plan = with(|context| match std::mem::replace(context, Context::None) {
        Context::SetUp(mut plan, memory) => {
            for (register, word) in plan.registers.iter_mut().zip(memory) {
                register.initial = word;
            }
            plan
        }
        _ => unreachable!("nothing else changes the context during set-up"),
    });
    (made, plan)
}

/// Runs `f` along `run`'s script. Returns `f`'s result, `None` if it halted inside, and what was noted; an error
/// if the algorithm panicked by itself.
pub(crate) fn run<R>(run: Run, f: impl FnOnce() -> R) -> (Result<Option<R>, String>, Run) {
    hush_panics();
    with(|context| *context = Context::Run(run));
    let result = panic::catch_unwind(AssertUnwindSafe(f));
    let run = with(|context| match std::mem::replace(context, Context::None) {
        Context::Run(run) => run,
        _ => unreachable!("nothing else changes the context during a run"),
    });
    let result = match result {
        Ok(value) => Ok(Some(value)),
        Err(payload) if payload.is::<Leave>() => Ok(None),
        Err(payload) => Err(payload
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string))
            .unwrap_or_else(|| "a panic without a message".to_owned())),
    };
    (result, run)
}

/// Keeps the panic hook from printing what an explored algorithm panics with: that is a finding, and reported
/// as one. Other threads and times print as before.
fn hush_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let exploring = CONTEXT
                .try_with(|context| {
                    context.try_borrow().map_or(true, |context| matches!(*context, Context::Run(_)))
                })
                .unwrap_or(false);
            if !exploring {
                before(info);
            }
        }));
    });
}

/// Access to the run in progress, for the code that drives the algorithm from passage to passage.
pub(crate) fn with_run<R>(f: impl FnOnce(&mut Run) -> R) -> R {
    with(|context| match context {
        Context::Run(run) => f(run),
        _ => unreachable!("only called during a run"),
    })
}

pub(super) fn create(site: Site, initial: Word) -> u32 {
    with(|context| match context {
        Context::SetUp(plan, memory) => {
            let object = plan.open.last().copied();
            plan.registers.push(RegisterPlan { site, initial, object, forgotten: false });
            memory.push(initial);
            plan.registers.len() as u32 - 1
        }
        _ => panic!("a register was made after the processes had joined: {site:?}"),
    })
}

pub(super) fn begin_object(type_name: &'static str) {
    with(|context| {
        if let Context::SetUp(plan, _) = context {
            plan.open.push(plan.objects.len() as u32);
            plan.objects.push(ObjectPlan { place: std::ptr::null(), type_name });
        }
    });
}

pub(super) fn end_object(place: *const ()) {
    with(|context| {
        if let Context::SetUp(plan, _) = context
            && let Some(object) = plan.open.pop()
        {
            plan.objects[object as usize].place = place;
        }
    });
}

/// Whether there is an object at `place`, as far as can be told: when a lock is set up or dropped everything is real.
pub(super) fn is_object(place: *const ()) -> bool {
    with(|context| match context {
        Context::Run(run) => run.places.contains(&place),
        Context::None | Context::SetUp(..) => place.addr() > 2,
    })
}

pub(super) fn operate(
    register: u32,
    operation: Operation,
    at: &'static Location<'static>,
) -> Option<Answer> {
    let halted = with(|context| match context {
        Context::None => Ok(None),
        Context::SetUp(_, memory) => Ok(Some(at_once(&mut memory[register as usize], operation))),
        Context::Run(run) => match run.next() {
            Some(Entry::Answer(answer)) => {
                run.answered += 1;
                Ok(Some(answer))
            }
            Some(other) => unreachable!("{other:?} answers {operation:?}: scripts come from runs"),
            None => Err(at),
        },
    });
    match halted {
        Ok(answer) => answer,
        Err(at) => leave(Halt::Operation { register, operation, at }),
    }
}

/// An operation during set-up, when nobody else is there.
fn at_once(contents: &mut Word, operation: Operation) -> Answer {
    let old = *contents;
    match operation {
        Operation::Write(word) => {
            *contents = word;
            Answer::Unit
        }
        Operation::Fas(word) => {
            *contents = word;
            Answer::Value(old)
        }
        Operation::Cas(expected, word) => {
            if expected == old {
                *contents = word;
            }
            Answer::Swapped(expected == old)
        }
        Operation::Read => Answer::Value(old),
        Operation::Faa(_) | Operation::WaitFor(_) | Operation::AwaitCas(..) => {
            panic!("{operation:?} while a lock is set up")
        }
    }
}

pub(super) fn await_until(condition: impl Fn() -> bool, at: &'static Location<'static>) {
    let began = with(|context| match context {
        Context::Run(run) => {
            run.round = Some((run.position, at));
            Some(run.position)
        }
        _ => None,
    });
    let Some(began) = began else {
        assert!(condition(), "waiting while a lock is set up or dropped");
        return;
    };
    let holds = condition();
    let failed = with_run(|run| {
        run.round = None;
        // True exactly if the last entry of the script decided this round.
        run.passed = run.at_end() && run.position > began;
        !holds
    });
    if failed {
        assert!(with_run(|run| run.passed), "an await that reads nothing can never end");
        leave(Halt::RoundFailed);
    }
}

pub(super) fn doorway_end() {
    remark(Remark::DoorwayEnd);
}

pub(super) fn forget(register: u32) {
    with(|context| {
        if let Context::SetUp(plan, _) = context {
            plan.registers[register as usize].forgotten = true;
        }
    });
    remark(Remark::Forget(register));
}

fn remark(remark: Remark) {
    with(|context| {
        if let Context::Run(run) = context
            && run.at_end()
        {
            run.remarks.push(remark);
        }
    });
}

pub(super) fn live(words: impl FnOnce() -> Vec<Word>, at: &'static Location<'static>) {
    let halts = with(|context| match context {
        Context::Run(run) => match run.next() {
            Some(Entry::Pass) => false,
            Some(other) => unreachable!("{other:?} at a merge point: scripts come from runs"),
            None => true,
        },
        _ => false,
    });
    if halts {
        leave(Halt::Live { words: words(), at });
    }
}
