//! Feature `tracing`: what it reports about long waits, and that it reports nothing else.
#![cfg(feature = "tracing")]

mod common;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use common::{try_again, wait_until};
use grouplock::long_waits::set_threshold;
use grouplock::{GroupLock, Policy, SessionGuard};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

const LONG: Duration = Duration::from_millis(30);

/// A report: an event, or a span that was opened or closed.
#[derive(Clone, Debug)]
struct Told {
    what: String,
    level: Level,
    fields: BTreeMap<&'static str, String>,
    /// The number of open spans on the reporting thread.
    depth: usize,
}

impl Visit for Told {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.what = format!("{value:?}");
        } else {
            self.fields.insert(field.name(), format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

/// Collects all reports with the target `grouplock`.
#[derive(Clone, Default)]
struct Collector {
    told: Arc<Mutex<Vec<Told>>>,
}

thread_local! {
    static DEPTH: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl Collector {
    fn told(&self) -> MutexGuard<'_, Vec<Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, metadata: &Metadata<'_>, what: &str) -> Told {
        assert_eq!(metadata.target(), "grouplock");
        let fields = BTreeMap::new();
        Told { what: what.to_owned(), level: *metadata.level(), fields, depth: DEPTH.get() }
    }

    /// The reports of the lock with this address.
    fn of(&self, lock: usize) -> Vec<Told> {
        let lock = format!("{lock:#x}");
        let of_lock = |told: &&Told| told.fields.get("lock") == Some(&lock);
        self.told().iter().filter(of_lock).cloned().collect()
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "grouplock"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut told = self.tell(span.metadata(), &format!("span {}", span.metadata().name()));
        span.record(&mut told);
        self.told().push(told);
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut told = self.tell(event.metadata(), "");
        event.record(&mut told);
        self.told().push(told);
    }

    fn enter(&self, _span: &Id) {
        DEPTH.set(DEPTH.get() + 1);
    }

    fn exit(&self, _span: &Id) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// The one collector of the process: the test cannot set up the threads that wait.
fn collector() -> &'static Collector {
    static COLLECTOR: OnceLock<Collector> = OnceLock::new();
    COLLECTOR.get_or_init(|| {
        set_threshold(LONG);
        let collector = Collector::default();
        tracing::subscriber::set_global_default(collector.clone()).expect("set once");
        collector
    })
}

/// A lock that is never dropped. So no later lock has the same address.
fn lock_with<S: Eq + Clone>(policy: Policy) -> &'static GroupLock<S, ()> {
    Box::leak(Box::new(GroupLock::with_policy(policy, ())))
}

fn whats(told: &[Told]) -> Vec<&str> {
    told.iter().filter(|told| told.level != Level::DEBUG).map(|told| &told.what[..]).collect()
}

#[test]
fn a_long_wait_is_reported_while_it_lasts_and_at_its_end() {
    let collector = collector();
    let lock = lock_with(Policy::Fifo);
    thread::scope(|scope| {
        let guard = lock.enter("one");
        scope.spawn(|| drop(lock.exclusive()));
        wait_until("the wait is told", || collector.of(lock.address()).len() == 2);
        assert_eq!(whats(&collector.of(lock.address())), ["span long_wait", "still waiting"]);
        drop(guard);
    });
    let told = collector.of(lock.address());
    assert_eq!(whats(&told), ["span long_wait", "still waiting", "waited"]);
    let [span, still, waited] = &told[..] else { panic!("{told:?}") };
    assert_eq!(span.fields["exclusive"], "true");
    assert_eq!(span.fields["sessions"], "&str");
    assert_eq!(still.fields["policy"], "Fifo");
    assert_eq!(still.fields["holders"], "1");
    assert_eq!(still.fields["waiting_phases"], "1");
    assert_eq!(still.fields["waiters"], "1");
    assert_eq!((span.level, still.level, waited.level), (Level::WARN, Level::WARN, Level::WARN));
    assert_eq!((span.depth, still.depth, waited.depth), (0, 1, 1), "the events are in the span");
    let milliseconds = |told: &Told| told.fields["waited_ms"].parse::<f64>().unwrap();
    assert!(milliseconds(still) >= 30.0, "{still:?}");
    assert!(milliseconds(waited) >= milliseconds(still), "{waited:?} after {still:?}");
    assert_eq!(waited.fields["inside"], "true");
}

#[test]
fn a_long_wait_that_is_given_up() {
    let collector = collector();
    let mut time = LONG;
    let told = try_again("the thread woke up before its time was over", || {
        time *= 2;
        let lock = lock_with(Policy::EVENTUAL);
        let _guard = lock.enter(1);
        assert!(lock.try_enter_for(2, time).is_none());
        let told = collector.of(lock.address());
        // A thread that is woken late reports only the end. A thread that is too late to wait
        // reports nothing.
        whats(&told).contains(&"still waiting").then_some(told)
    });
    assert_eq!(whats(&told), ["span long_wait", "still waiting", "waited"]);
    assert_eq!(told.last().unwrap().fields["inside"], "false");
}

#[test]
fn short_waits_and_no_waits_are_not_reported() {
    let collector = collector();
    let told = try_again("a wait was short", || {
        let lock = lock_with(Policy::Fifo);
        let start = Instant::now();
        thread::scope(|scope| {
            let guard = lock.enter(1);
            scope.spawn(|| drop(lock.enter(2)));
            wait_until("it waits", || !lock.snapshot().waiting.is_empty());
            drop(guard);
        });
        assert!(lock.try_enter(1).is_some());
        (start.elapsed() < LONG).then(|| collector.of(lock.address()))
    });
    assert!(told.is_empty(), "{told:?}");
}

/// The default policy turns to strict order for a waiter whose patience is over.
#[test]
fn strict_order_is_reported() {
    let collector = collector();
    let lock = lock_with(Policy::Eventual { patience: LONG / 10 });
    thread::scope(|scope| {
        let guard = lock.enter(1);
        scope.spawn(|| drop(lock.enter(2)));
        wait_until("strict order is told", || {
            collector.of(lock.address()).iter().any(|told| told.what == "strict order")
        });
        drop(guard);
    });
    let told = collector.of(lock.address());
    let strict: Vec<_> = told.iter().filter(|told| told.what == "strict order").collect();
    let [strict] = &strict[..] else { panic!("{told:?}") };
    assert_eq!(strict.level, Level::DEBUG);
    assert!(strict.fields["waited_ms"].parse::<f64>().unwrap() >= 3.0, "{strict:?}");
}

#[test]
fn tasks_tell_at_the_end() {
    let collector = collector();
    let lock = lock_with(Policy::EVENTUAL);
    let guard = lock.enter(1);
    let mut entering = std::pin::pin!(lock.enter_async(2));
    let mut dropped = Box::pin(lock.exclusive_async());
    let context = &mut Context::from_waker(Waker::noop());
    assert!(entering.as_mut().poll(context).is_pending());
    assert!(dropped.as_mut().poll(context).is_pending());
    thread::sleep(2 * LONG);
    drop(dropped);
    drop(guard);
    let Poll::Ready(guard) = entering.as_mut().poll(context) else { panic!("the room is free") };
    drop(guard);
    let told = collector.of(lock.address());
    assert_eq!(whats(&told), ["waited", "waited"]);
    assert_eq!(told[0].fields["inside"], "false");
    assert_eq!(told[1].fields["inside"], "true");
}

/// A subscriber may use locks itself, even the lock that the thread waits for.
#[test]
fn nothing_is_locked_during_a_report() {
    /// The lock, and the number of holders when a span was opened or an event was reported.
    struct Nosy(Arc<GroupLock<u32, ()>>, Arc<Mutex<Vec<usize>>>);

    impl Subscriber for Nosy {
        fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _span: &Attributes<'_>) -> Id {
            self.1.lock().unwrap().push(self.0.snapshot().holders);
            Id::from_u64(1)
        }

        fn record(&self, _span: &Id, _values: &Record<'_>) {}

        fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

        fn event(&self, _event: &Event<'_>) {
            self.1.lock().unwrap().push(self.0.snapshot().holders);
        }

        fn enter(&self, _span: &Id) {
            _ = self.0.try_enter(1);
        }

        fn exit(&self, _span: &Id) {}
    }

    collector();
    let lock = Arc::new(GroupLock::new(()));
    let guard = lock.enter(1);
    let theirs = Arc::clone(&lock);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let nosy = Nosy(Arc::clone(&lock), Arc::clone(&seen));
    let waiter = thread::spawn(move || {
        tracing::subscriber::with_default(nosy, || drop(theirs.enter(2)));
    });
    // The strict order, the span, and the event that it still waits.
    wait_until("the wait is told", || seen.lock().unwrap().len() >= 3);
    assert_eq!(*seen.lock().unwrap(), [1, 1, 1]);
    drop(guard);
    waiter.join().unwrap();
}

/// A subscriber that panics loses its event, and nothing else.
#[test]
fn a_subscriber_that_panics_does_no_harm() {
    struct Clumsy(Arc<AtomicUsize>);

    impl Subscriber for Clumsy {
        fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _span: &Attributes<'_>) -> Id {
            self.0.fetch_add(1, SeqCst);
            panic!("on purpose");
        }

        fn record(&self, _span: &Id, _values: &Record<'_>) {}

        fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

        fn event(&self, _event: &Event<'_>) {
            self.0.fetch_add(1, SeqCst);
            panic!("on purpose");
        }

        fn enter(&self, _span: &Id) {}

        fn exit(&self, _span: &Id) {}
    }

    collector();
    let lock = Arc::new(GroupLock::new(()));
    let guard = lock.enter(1);
    let theirs = Arc::clone(&lock);
    let panics = Arc::new(AtomicUsize::new(0));
    let clumsy = Clumsy(Arc::clone(&panics));
    let waiter = thread::spawn(move || {
        tracing::subscriber::with_default(clumsy, || {
            let mut guard = theirs.enter(2);
            SessionGuard::switch(&mut guard, 3);
            *SessionGuard::session(&guard)
        })
    });
    wait_until("the subscriber has panicked", || panics.load(SeqCst) > 0);
    drop(guard);
    assert_eq!(waiter.join().unwrap(), 3);
    assert!(lock.try_exclusive().is_some());
}
