//! What the compiler knows about the public types: where they may be sent, their variance, which
//! must be used, and their size. And `Debug` never waits.
#![deny(unfulfilled_lint_expectations)]

use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::marker::{PhantomData, PhantomPinned};
use std::rc::Rc;
use std::sync::{Arc, MutexGuard};

#[cfg(feature = "handover")]
use grouplock::cores::Handover;
use grouplock::cores::{Phases, Striped};
use grouplock::future::{Enter, EnterArc, Exclusive, ExclusiveArc, Switch};
use grouplock::guards::Part;
use grouplock::{
    ExclusiveGuard, GroupLock, OwnedExclusiveGuard, OwnedSessionGuard, Policy, SessionGuard,
    Snapshot, WaitingPhase,
};
use static_assertions::{assert_impl_all, assert_not_impl_any};

/// `Send` and not `Sync`.
type NotSync = Cell<u8>;
/// `Sync` and not `Send`.
type NotSend = PhantomData<MutexGuard<'static, u8>>;
/// Neither.
type Neither = Rc<u8>;

/// Which types are `Send`, `Sync` and `Unpin`, and for which data.
#[test]
fn bounds() {
    // The lock owns the data. It gives `&T` to many threads at once and `&mut T` to one after the
    // other.
    assert_impl_all!(GroupLock<u8, u8>: Send, Sync, Unpin);
    assert_impl_all!(GroupLock<u8, NotSync>: Send);
    assert_not_impl_any!(GroupLock<u8, NotSync>: Sync);
    assert_not_impl_any!(GroupLock<u8, NotSend>: Send, Sync);
    assert_not_impl_any!(GroupLock<u8, Neither>: Send, Sync);
    assert_not_impl_any!(GroupLock<u8, PhantomPinned>: Unpin);
    // Many threads compare sessions at once, and any thread may drop them.
    assert_impl_all!(GroupLock<NotSync, u8>: Send);
    assert_not_impl_any!(GroupLock<NotSync, u8>: Sync);
    assert_not_impl_any!(GroupLock<NotSend, u8>: Send, Sync);
    assert_not_impl_any!(GroupLock<Neither, u8>: Send, Sync);
    // The other cores.
    assert_impl_all!(GroupLock<u8, u8, Striped<u8>>: Send, Sync);
    assert_not_impl_any!(GroupLock<NotSync, u8, Striped<NotSync>>: Sync);
    assert_not_impl_any!(GroupLock<Neither, u8, Striped<Neither>>: Send, Sync);
    #[cfg(feature = "handover")]
    {
        assert_impl_all!(GroupLock<u32, u8, Handover<u32>>: Send, Sync);
        assert_not_impl_any!(GroupLock<u32, NotSync, Handover<u32>>: Sync);
        assert_impl_all!(SessionGuard<'static, u32, u8, Handover<u32>>: Send);
    }
    assert_impl_all!(Phases<u8>: Send, Sync);
    assert_not_impl_any!(Phases<NotSync>: Sync);

    // A guard is a `&T` that leaves when dropped.
    assert_impl_all!(SessionGuard<'static, u8, u8>: Send, Sync, Unpin);
    assert_impl_all!(SessionGuard<'static, u8, NotSend>: Send, Sync);
    assert_not_impl_any!(SessionGuard<'static, u8, NotSync>: Send, Sync);
    assert_not_impl_any!(SessionGuard<'static, NotSync, u8>: Send, Sync);
    assert_not_impl_any!(SessionGuard<'static, NotSend, u8>: Send, Sync);
    assert_impl_all!(SessionGuard<'static, u8, u8, Striped<u8>>: Send, Sync);

    // An exclusive guard is a `&mut T`. The thread that it was sent to may make it a `&T`, while
    // other threads get `&T` from the lock.
    assert_impl_all!(ExclusiveGuard<'static, u8, u8>: Send, Sync, Unpin);
    assert_not_impl_any!(ExclusiveGuard<'static, u8, NotSync>: Send, Sync);
    assert_not_impl_any!(Exclusive<'static, u8, NotSync>: Send, Sync);
    assert_impl_all!(ExclusiveGuard<'static, u8, NotSend>: Sync);
    assert_not_impl_any!(ExclusiveGuard<'static, u8, NotSend>: Send);
    assert_not_impl_any!(ExclusiveGuard<'static, NotSync, u8>: Send, Sync);

    // An owned guard may be the one that drops the data.
    assert_impl_all!(OwnedSessionGuard<u8, u8>: Send, Sync, Unpin);
    assert_not_impl_any!(OwnedSessionGuard<u8, NotSync>: Send, Sync);
    assert_not_impl_any!(OwnedSessionGuard<u8, NotSend>: Send, Sync);
    assert_not_impl_any!(OwnedSessionGuard<Neither, u8>: Send, Sync);
    assert_impl_all!(OwnedExclusiveGuard<u8, u8>: Send, Sync, Unpin);
    assert_not_impl_any!(OwnedExclusiveGuard<u8, NotSync>: Send, Sync);
    assert_not_impl_any!(OwnedExclusiveGuard<u8, NotSend>: Send, Sync);
    // A guard that shows a part of the data has the bounds of the whole and of the part.
    assert_impl_all!(OwnedSessionGuard<u8, u8, Phases<u8>, str, Part>: Send, Sync);
    assert_not_impl_any!(OwnedSessionGuard<u8, u8, Phases<u8>, NotSync, Part>: Send, Sync);

    // A future is a `&GroupLock`, or an `Arc` of one, with a session. Nothing points into it.
    assert_impl_all!(Enter<'static, u8, u8>: Send, Sync, Unpin);
    assert_impl_all!(Exclusive<'static, u8, u8>: Send, Sync, Unpin);
    assert_impl_all!(EnterArc<u8, u8>: Send, Sync, Unpin);
    assert_impl_all!(ExclusiveArc<u8, u8>: Send, Sync, Unpin);
    assert_impl_all!(Switch<'static, &'static Phases<u8>, u8, Phases<u8>, u8>: Send, Sync, Unpin);
    assert_not_impl_any!(Switch<'static, &'static Phases<u8>, u8, Phases<u8>, NotSync>: Send, Sync);
    assert_impl_all!(Enter<'static, u8, PhantomPinned>: Unpin);
    assert_impl_all!(Exclusive<'static, u8, PhantomPinned>: Unpin);
    assert_impl_all!(EnterArc<u8, PhantomPinned>: Unpin);
    assert_not_impl_any!(Enter<'static, u8, NotSync>: Send, Sync);
    assert_not_impl_any!(Enter<'static, Neither, u8>: Send, Sync);
    assert_not_impl_any!(Exclusive<'static, u8, NotSend>: Send);
    assert_not_impl_any!(EnterArc<u8, NotSend>: Send, Sync);

    assert_impl_all!(Policy: Send, Sync, Copy, Debug);
    assert_impl_all!(Snapshot<u8>: Send, Sync, Clone, Debug);
    assert_impl_all!(WaitingPhase<u8>: Send, Sync, Clone, Debug);
}

/// A guard of long-lived data can replace one of short-lived data, as with references.
///
/// `OwnedSessionGuard` cannot: it shows its lock, through which a program could replace the data by
/// shorter-lived data. `ExclusiveGuard` must not, as `&mut` must not.
#[test]
fn a_session_guard_is_covariant() {
    fn shorten<'a, 'b>(
        guard: SessionGuard<'a, u8, &'static str>,
        _: &'b str,
    ) -> SessionGuard<'a, u8, &'b str> {
        guard
    }
    fn shorten_loan<'a, 'b: 'a>(guard: SessionGuard<'b, u8, u8>) -> SessionGuard<'a, u8, u8> {
        guard
    }
    let lock = GroupLock::new("long");
    let local = String::from("short");
    assert_eq!(*shorten(lock.enter(1), &local), "long");
    let number = GroupLock::new(7);
    assert_eq!(*shorten_loan(number.enter(1)), 7);
}

#[test]
fn guards_and_futures_must_be_used() {
    let lock = Arc::new(GroupLock::new(()));
    #[expect(unused_must_use, reason = "the compiler is to object")]
    {
        lock.enter(1);
    }
    #[expect(unused_must_use, reason = "the compiler is to object")]
    {
        lock.exclusive();
    }
    #[expect(unused_must_use, reason = "the compiler is to object")]
    {
        lock.enter_arc(1);
    }
    #[expect(unused_must_use, reason = "the compiler is to object")]
    {
        lock.enter_async(1);
    }
    #[expect(unused_must_use, reason = "the compiler is to object")]
    {
        lock.exclusive_async();
    }
    #[expect(unused_must_use, reason = "the compiler is to object")]
    {
        lock.enter_arc_async(1);
    }
}

#[test]
#[cfg(not(feature = "deadlock_detection"))] // guards then say where they were made
fn a_lock_is_small() {
    assert!(size_of::<GroupLock<u64, ()>>() <= 24, "{}", size_of::<GroupLock<u64, ()>>());
    assert_eq!(size_of::<GroupLock<u8, ()>>(), 16);
    assert_eq!(size_of::<SessionGuard<'static, u64, u64>>(), 2 * size_of::<usize>());
    assert_eq!(size_of::<Option<SessionGuard<'static, u64, u64>>>(), 2 * size_of::<usize>());
}

thread_local! {
    /// What to do during a comparison of sessions, which happens while the internal lock is held.
    static MEANWHILE: RefCell<Option<Box<dyn Fn()>>> = const { RefCell::new(None) };
}

/// A session that runs code during its comparison.
#[derive(Clone, Debug)]
struct Busy(u8);

impl PartialEq for Busy {
    fn eq(&self, other: &Self) -> bool {
        if let Some(meanwhile) = MEANWHILE.take() {
            meanwhile();
        }
        self.0 == other.0
    }
}
impl Eq for Busy {}

#[test]
fn showing_a_lock_or_a_guard_never_waits() {
    let lock = Arc::new(GroupLock::with_policy(Policy::Fifo, 5));
    let inside = lock.enter(Busy(1));
    let mut waiting = lock.enter_async(Busy(2));
    assert!(std::pin::Pin::new(&mut waiting).poll(&mut noop()).is_pending());
    assert_eq!(format!("{inside:?}"), "SessionGuard { session: Busy(1), data: 5 }");
    let shown = format!("{lock:?}");
    assert!(shown.starts_with("GroupLock { session: Some(Busy(1)), exclusive: false, holders: 1, waiting: [WaitingPhase { session: Some(Busy(2)), waiters: 1"), "{shown}");
    // The internal lock is held by a request that joins the queue and compares its session with
    // those there.
    let owned: OwnedSessionGuard<_, _> =
        GroupLock::enter_arc(&Arc::new(GroupLock::new(6)), Busy(1));
    let shown = Rc::new(Cell::new(false));
    let (lock_too, shown_too) = (Arc::clone(&lock), Rc::clone(&shown));
    MEANWHILE.set(Some(Box::new(move || {
        assert_eq!(format!("{lock_too:?}"), "GroupLock { .. }");
        assert_eq!(format!("{owned:?}"), "SessionGuard { session: Busy(1), data: 6 }");
        shown_too.set(true);
    })));
    let mut third = lock.enter_async(Busy(3));
    assert!(std::pin::Pin::new(&mut third).poll(&mut noop()).is_pending());
    assert!(shown.get(), "nothing was compared");
    assert!(format!("{third:?}").starts_with("Request { session: Some(Busy(3))"));
    drop((waiting, third, inside));
    let alone = lock.exclusive();
    assert_eq!(format!("{alone:?}"), "ExclusiveGuard { data: 5 }");
    assert!(format!("{lock:?}").starts_with("GroupLock { session: None, exclusive: true"));
}

fn noop() -> std::task::Context<'static> {
    std::task::Context::from_waker(std::task::Waker::noop())
}

/// A task whose session has a lifetime can be sent to another thread, with its guard.
#[test]
fn tasks_with_borrowed_names_are_send() {
    fn sendable<F: Future + Send + 'static>(_: F) {}

    let lock = Arc::new(GroupLock::<&'static str, _>::new(5));
    sendable(async move {
        let one = lock.enter_async("a").await;
        std::future::ready(()).await;
        drop(one);
        let alone = lock.exclusive_async().await;
        std::future::ready(()).await;
        drop(alone);
        let owned = lock.enter_arc_async("b").await;
        std::future::ready(()).await;
        drop(owned);
    });
}
