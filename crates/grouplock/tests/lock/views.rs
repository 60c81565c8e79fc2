//! Typed phases: a guard shows the view of its phase, on every core and under every policy, and no
//! other view exists at the same time.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

#[cfg(feature = "handover")]
use grouplock::cores::Handover;
use grouplock::cores::{Core, Phases, Striped};
use grouplock::future::{Enter, EnterArc};
use grouplock::views::{EnterPhase, Inside, OwnedPhaseGuard, Phase, PhaseGuard, Phased};
use grouplock::{ExclusiveGuard, GroupLock, Policy};

/// The names of the phases. `Copy` and a number, as `Handover` needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Name {
    Add,
    Sum,
    Epoch(u32),
}

impl From<Name> for u32 {
    fn from(name: Name) -> u32 {
        match name {
            Name::Add => 0,
            Name::Sum => 1,
            Name::Epoch(number) => 2 + number,
        }
    }
}

/// Counts the uses of views: `adding` for adders, `summing` for summers, `epoch` for epochs (number
/// + 1 for each, above the 32nd bit).
#[derive(Default)]
struct Books {
    adding: AtomicUsize,
    summing: AtomicUsize,
    epoch: AtomicU64,
    sum: AtomicU64,
    /// Only a holder that is alone writes it.
    audits: u64,
}

struct Add;
struct Sum;
struct Epoch(u32);

struct Adding<'a>(Inside<'a, Add, Books>);
struct Summing<'a>(Inside<'a, Sum, Books>);
struct Era<'a>(&'a Epoch, Inside<'a, Epoch, Books>);

impl Phase<Books> for Add {
    type Name = Name;
    type View<'a> = Adding<'a>;

    fn name(&self) -> Name {
        Name::Add
    }

    fn view<'a>(&'a self, inside: Inside<'a, Add, Books>) -> Adding<'a> {
        Adding(inside)
    }
}

impl Phase<Books> for Sum {
    type Name = Name;
    type View<'a> = Summing<'a>;

    fn name(&self) -> Name {
        Name::Sum
    }

    fn view<'a>(&'a self, inside: Inside<'a, Sum, Books>) -> Summing<'a> {
        Summing(inside)
    }
}

impl Phase<Books> for Epoch {
    type Name = Name;
    type View<'a> = Era<'a>;

    fn name(&self) -> Name {
        Name::Epoch(self.0)
    }

    fn view<'a>(&'a self, inside: Inside<'a, Epoch, Books>) -> Era<'a> {
        Era(self, inside)
    }
}

/// Sometimes stays inside for a while.
fn linger() {
    if fastrand::u8(..8) == 0 {
        std::thread::yield_now();
    }
}

impl Adding<'_> {
    fn add(&self, amount: u64) {
        let books = self.0.data();
        books.adding.fetch_add(1, SeqCst);
        linger();
        assert_eq!((books.summing.load(SeqCst), books.epoch.load(SeqCst)), (0, 0));
        books.sum.fetch_add(amount, SeqCst);
        books.adding.fetch_sub(1, SeqCst);
    }
}

impl Summing<'_> {
    fn sum(&self) -> u64 {
        let books = self.0.data();
        books.summing.fetch_add(1, SeqCst);
        let sum = books.sum.load(SeqCst);
        linger();
        assert_eq!(sum, books.sum.load(SeqCst), "no holder adds while others sum");
        assert_eq!((books.adding.load(SeqCst), books.epoch.load(SeqCst)), (0, 0));
        books.summing.fetch_sub(1, SeqCst);
        sum
    }
}

impl Era<'_> {
    fn live(&self) {
        let (one, books) = ((u64::from(self.0.0) + 1) << 32, self.1.data());
        let before = books.epoch.fetch_add(one, SeqCst);
        linger();
        assert!(before.is_multiple_of(one), "another epoch is inside: {before:x}");
        assert_eq!((books.adding.load(SeqCst), books.summing.load(SeqCst)), (0, 0));
        books.epoch.fetch_sub(one, SeqCst);
    }
}

fn audit<C: Core<Session = Name>>(mut alone: ExclusiveGuard<'_, Name, Books, C>) {
    let books = &mut *alone;
    assert_eq!((*books.adding.get_mut(), *books.summing.get_mut()), (0, 0));
    assert_eq!(*books.epoch.get_mut(), 0);
    books.audits += 1;
}

const THREADS: u64 = if cfg!(miri) { 3 } else { 4 };
const ROUNDS: u64 = if cfg!(miri) { 4 } else { 4_000 };

/// Threads use all phases, by the calls that every core has. Returns the expected number of audits
/// and the expected sum.
fn storm<C: Core<Session = Name> + Sync>(lock: &Phased<Name, Books, C>) -> (u64, u64) {
    let (audits, sum) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    match fastrand::u8(..10) {
                        0 => {
                            audit(lock.exclusive());
                            audits.fetch_add(1, SeqCst);
                        }
                        1..4 => {
                            lock.enter(Add).view().add(1);
                            sum.fetch_add(1, SeqCst);
                        }
                        4..7 => drop(lock.enter(Sum).view().sum()),
                        _ => lock.enter(Epoch(fastrand::u32(..3))).view().live(),
                    }
                }
            });
        }
    });
    (audits.into_inner(), sum.into_inner())
}

/// Threads change phases by `switch`, `downgrade` and timeouts.
fn wander<C: Core<Session = Name> + Sync>(lock: &Phased<Name, Books, C>) -> (u64, u64) {
    let (audits, sum) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS / 4 {
                    let adding = lock.enter(Add);
                    adding.view().add(1);
                    sum.fetch_add(1, SeqCst);
                    let summing = adding.switch(Sum);
                    assert!(summing.view().sum() >= 1);
                    let era = summing.switch(Epoch(fastrand::u32(..3)));
                    era.view().live();
                    drop(era);
                    let timeout = Duration::from_micros(fastrand::u64(..50));
                    if let Some(mut alone) = lock.try_exclusive_for(timeout) {
                        alone.audits += 1;
                        audits.fetch_add(1, SeqCst);
                        let known = *alone.sum.get_mut();
                        let summing = PhaseGuard::downgrade(alone, Sum);
                        assert_eq!(summing.view().sum(), known, "no holder was inside in between");
                    }
                    if let Some(adding) = lock.try_enter_for(Add, timeout) {
                        adding.view().add(1);
                        sum.fetch_add(1, SeqCst);
                    }
                }
            });
        }
    });
    (audits.into_inner(), sum.into_inner())
}

fn all_calls<C: Core<Session = Name> + Sync>(lock: Phased<Name, Books, C>) {
    let (audits, sum) = storm(&lock);
    let (more_audits, more) = wander(&lock);
    let seen = lock.snapshot();
    assert_eq!((seen.holders, seen.waiting.len()), (0, 0));
    assert_eq!(lock.enter(Sum).view().sum(), sum + more);
    assert_eq!(lock.into_inner().audits, audits + more_audits);
}

#[test]
fn phases_exclude_each_other_under_every_policy() {
    for policy in [
        Policy::default(),
        Policy::Eventual { patience: Duration::ZERO },
        Policy::Fifo,
        Policy::Batch { passes: 10 },
        Policy::BatchFor { wait: Duration::from_micros(100) },
    ] {
        all_calls(Phased::over(GroupLock::with_policy(policy, Books::default())));
    }
    all_calls(Phased::over(GroupLock::with_priorities(
        Duration::from_micros(100),
        |name| u32::from(name == Some(&Name::Sum)),
        Books::default(),
    )));
}

#[test]
fn phases_exclude_each_other_on_every_core() {
    all_calls(Phased::over(GroupLock::striped(Books::default())));
    all_calls(Phased::over(GroupLock::over(Striped::new(Policy::Fifo), Books::default())));
    #[cfg(feature = "handover")]
    all_calls(Phased::over(GroupLock::over(Handover::new(), Books::default())));
}

#[test]
fn trying_and_timeouts() {
    let lock = Phased::new(Books::default());
    let adding = lock.enter(Add);
    assert!(lock.try_enter(Add).is_some());
    assert!(lock.try_enter(Sum).is_none());
    assert!(lock.try_enter_for(Sum, Duration::from_millis(1)).is_none());
    assert!(lock.try_enter_for(Sum, Duration::ZERO).is_none());
    assert!(lock.try_enter_until(Sum, Instant::now()).is_none());
    assert!(lock.try_exclusive().is_none());
    assert!(lock.try_exclusive_until(Instant::now()).is_none());
    drop(adding);
    assert!(lock.try_enter(Sum).is_some());
    assert!(lock.try_exclusive().is_some());
}

#[test]
fn a_phase_with_a_value_is_several_sessions() {
    let lock = Phased::new(Books::default());
    let first = lock.enter(Epoch(1));
    assert!(lock.try_enter(Epoch(1)).is_some());
    assert!(lock.try_enter(Epoch(2)).is_none());
    assert_eq!(first.phase().0, 1);
    let second = first.switch(Epoch(2));
    assert!(lock.try_enter(Epoch(2)).is_some());
    assert_eq!(second.view().0.0, 2);
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn tasks_wait_and_withdraw() {
    let lock = Phased::new(Books::default());
    let Poll::Ready(adding) = poll(&mut lock.enter_async(Add)) else { panic!("the room is free") };
    let mut sum = lock.enter_async(Sum);
    let mut alone = lock.exclusive_async();
    assert!(poll(&mut sum).is_pending());
    assert!(poll(&mut alone).is_pending());
    assert_eq!(lock.snapshot().waiting.len(), 2);
    drop(alone);
    assert_eq!(lock.snapshot().waiting.len(), 1);
    adding.view().add(3);
    drop(adding);
    let Poll::Ready(summing) = poll(&mut sum) else { panic!("the room was handed over") };
    assert_eq!(summing.view().sum(), 3);
    drop(summing);
    assert!(poll(&mut lock.exclusive_async()).is_ready());
}

#[test]
fn owned_guards_keep_the_lock_alive() {
    let lock = Arc::new(Phased::new(Books::default()));
    let adding = lock.enter_arc(Add);
    let mut sum = lock.enter_arc_async(Sum);
    assert!(poll(&mut sum).is_pending());
    let waiting = Arc::downgrade(&lock);
    drop(lock);
    let summing = std::thread::spawn(move || {
        adding.view().add(2);
        drop(adding);
        let Poll::Ready(summing) = poll(&mut sum) else { panic!("the room was handed over") };
        summing
    });
    let summing = summing.join().expect("the thread does not panic");
    assert_eq!(summing.view().sum(), 2);
    let era = summing.switch(Epoch(0));
    era.view().live();
    assert!(waiting.upgrade().is_some_and(|lock| lock.try_enter(Sum).is_none()));
    drop(era);
    assert!(waiting.upgrade().is_none(), "the last guard took the lock with it");
}

#[test]
fn two_phases_of_one_name_share_the_room() {
    struct Peek;
    impl Phase<Books> for Peek {
        type Name = Name;
        type View<'a> = u64;

        fn name(&self) -> Name {
            Name::Sum
        }

        fn view<'a>(&'a self, inside: Inside<'a, Peek, Books>) -> u64 {
            inside.data().sum.load(SeqCst)
        }
    }
    let lock = Phased::new(Books::default());
    let summing = lock.enter(Sum);
    assert_eq!(lock.try_enter(Peek).map(|peek| peek.view()), Some(summing.view().sum()));
}

#[test]
fn a_panic_in_a_phase_or_in_a_name_leaves_the_room_free() {
    struct Nameless;
    impl Phase<Books> for Nameless {
        type Name = Name;
        type View<'a> = ();

        fn name(&self) -> Name {
            panic!("no name")
        }

        fn view<'a>(&'a self, _: Inside<'a, Nameless, Books>) {}
    }
    let lock = Arc::new(Phased::new(Books::default()));
    let attempts: [fn(&Phased<Name, Books>); 4] = [
        |lock| {
            let _adding = lock.enter(Add);
            panic!("inside");
        },
        |lock| drop(lock.enter(Nameless)),
        |lock| drop(lock.enter(Add).switch(Nameless)),
        |lock| drop(PhaseGuard::downgrade(lock.exclusive(), Nameless)),
    ];
    for attempt in attempts {
        let shared = Arc::clone(&lock);
        assert!(std::thread::spawn(move || attempt(&shared)).join().is_err());
        assert!(lock.try_exclusive().is_some());
    }
}

#[test]
fn debug_shows_the_phase_and_never_the_data() {
    let lock = Arc::new(Phased::new(Books::default()));
    let adding = lock.enter_arc(Add);
    assert_eq!(format!("{adding:?}"), "PhaseGuard { name: Add, .. }");
    assert_eq!(format!("{:?}", lock.enter(Add)), "PhaseGuard { name: Add, .. }");
    let seen = format!("{lock:?}");
    assert!(seen.starts_with("Phased(GroupLock { session: Some(Add)"), "{seen}");
}

/// Which types can be sent and shared.
#[test]
fn bounds() {
    fn is<X: Send + Sync + fmt::Debug>() {}
    fn both<X: Send + Sync>() {}
    fn unpin<X: Unpin + Send>() {}

    is::<Phased<Name, Books>>();
    is::<Phased<Name, Books, Striped<Name>>>();
    #[cfg(feature = "handover")]
    is::<Phased<Name, Books, Handover<Name>>>();
    is::<PhaseGuard<'static, Add, Books>>();
    is::<PhaseGuard<'static, Epoch, Books, Striped<Name>>>();
    is::<OwnedPhaseGuard<Add, Books, Phases<Name>>>();
    both::<ExclusiveGuard<'static, Name, Books>>();
    both::<Inside<'static, Add, Books>>();
    unpin::<EnterPhase<Add, Enter<'static, Name, Books>>>();
    unpin::<EnterPhase<Add, EnterArc<Name, Books>>>();
}
