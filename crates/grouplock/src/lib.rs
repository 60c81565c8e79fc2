//! A lock with *sessions*: holders of one session share, different sessions exclude each other.
//!
//! A mutex is the case in which every request has a session of its own. A readers-writers lock is
//! the case in which readers share a session and each writer has its own. [`GroupLock`] is the
//! general case. Backups may overlap each other but not migrations. Any number of jobs use a
//! machine while it is set up for red, then for blue. Threads insert together, or look up together,
//! but not both.
//!
//! # A room that is set up for one thing at a time
//!
//! A machine serves one model, database or mode at a time, for any number of requests. A change is
//! expensive. A request that finds the wrong one loads its own, alone. Then others share it.
//!
//! ```
//! use grouplock::{GroupLock, Policy};
//!
//! // Prefers the model that is loaded, but no request is overtaken more than 20 times.
//! let gpu = GroupLock::with_policy(Policy::Batch { passes: 20 }, String::new());
//! let load = |name: &'static str| move |model: &mut String| *model = format!("weights of {name}");
//! std::thread::scope(|scope| {
//!     for name in ["A", "B", "A", "A"] {
//!         let gpu = &gpu;
//!         scope.spawn(move || {
//!             let model = gpu.enter_with(name, load(name)); // `enter_with_async` for tasks
//!             assert_eq!(*model, format!("weights of {name}"));
//!         });
//!     }
//! });
//! ```
//!
//! # Threads
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
//! use grouplock::GroupLock;
//!
//! #[derive(Clone, Copy, PartialEq, Eq)]
//! enum Job {
//!     Backup,
//!     Migration,
//! }
//!
//! let done = GroupLock::new(AtomicU32::new(0));
//! std::thread::scope(|scope| {
//!     for job in [Job::Backup, Job::Migration, Job::Backup] {
//!         let done = &done;
//!         scope.spawn(move || {
//!             let inside = done.enter(job); // waits while other jobs are inside
//!             inside.fetch_add(1, Relaxed); // both backups may be here at once
//!         });
//!     }
//! });
//! assert_eq!(*done.exclusive().get_mut(), 3); // alone, with `&mut` to the data
//! ```
//!
//! # Tasks
//!
//! Tasks use the same lock as threads, on any executor. A dropped future leaves the queue.
//!
//! ```
//! use std::time::Duration;
//! use grouplock::GroupLock;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let gpu = GroupLock::new("weights");
//! let inside = gpu.enter_async('A').await;
//! let other = tokio::time::timeout(Duration::from_millis(1), gpu.enter_async('B')).await;
//! assert!(other.is_err(), "model A is still inside");
//! drop(inside);
//! assert_eq!(*gpu.enter_async('B').await, "weights");
//! # });
//! ```
//!
//! # Typed phases
//!
//! With [`views`], a session is a type that decides what a holder can do with the data, and the
//! compiler checks it: inside `Vote` only voting compiles, inside `Count` only counting.
//!
//! # When to use it
//!
//! | you have | use |
//! |---|---|
//! | requests that all exclude each other | [`std::sync::Mutex`] |
//! | readers that share, writers that do not | [`std::sync::RwLock`] |
//! | two or more kinds of requests, each of which may share with its own kind | **`GroupLock`** |
//! | a `Mutex`, a `Condvar` and a field with the current mode | **`GroupLock`** |
//! | an `RwLock` whose "writers" could run together | **`GroupLock`**: they get a session of their own |
//! | any of these for threads and tasks together, or with bounded or cancelled waits | **`GroupLock`** |
//!
//! Compared with `std::sync::RwLock`, it has any number of sessions instead of one, and a stated
//! bound on overtaking, by [`Policy`], instead of an unspecified order. It has timeouts, tasks,
//! owned guards, [`snapshot`](GroupLock::snapshot) and [`switch`](guards::Guard::switch), and no
//! poisoning. `enter` is `read`, `exclusive` is `write`. It does not give `&mut T` to several
//! holders at once. Holders of a session share `&T`. So data that they change together must be
//! atomic, locked, or behind a [view](views).
//!
//! # The calls
//!
//! | call | gives |
//! |---|---|
//! | [`new`](GroupLock::new), [`with_policy`](GroupLock::with_policy), [`with_priorities`](GroupLock::with_priorities), [`striped`](GroupLock::striped), [`over`](GroupLock::over), [`at_most`](GroupLock::at_most) | a lock |
//! | [`enter_with`](GroupLock::enter_with), [`enter_with_async`](GroupLock::enter_with_async), [`enter_with_result`](GroupLock::enter_with_result), [`enter_with_result_async`](GroupLock::enter_with_result_async) | as `enter`, in a room that is set up for the session |
//! | [`enter`](GroupLock::enter), [`try_enter`](GroupLock::try_enter), [`try_enter_for`](GroupLock::try_enter_for), [`try_enter_until`](GroupLock::try_enter_until), [`enter_async`](GroupLock::enter_async) | [`SessionGuard`]: `&T` |
//! | [`exclusive`](GroupLock::exclusive), [`try_exclusive`](GroupLock::try_exclusive), [`try_exclusive_for`](GroupLock::try_exclusive_for), [`try_exclusive_until`](GroupLock::try_exclusive_until), [`exclusive_async`](GroupLock::exclusive_async) | [`ExclusiveGuard`]: `&mut T` |
//! | [`enter_arc`](GroupLock::enter_arc), [`exclusive_arc`](GroupLock::exclusive_arc) and their `try_` and `_async` forms | [`OwnedSessionGuard`], [`OwnedExclusiveGuard`], which keep the lock alive |
//! | [`SessionGuard::session(&g)`](guards::Guard::session), [`switch(&mut g, s)`](guards::Guard::switch), [`try_switch`](guards::Guard::try_switch), [`switch_async`](guards::Guard::switch_async), [`try_switch_for`](guards::Guard::try_switch_for) | the session; a change to another session |
//! | [`SessionGuard::again(&g)`](guards::Guard::again), [`epoch(&g)`](guards::Guard::epoch), [`map(g, f)`](guards::Guard::map), [`ExclusiveGuard::downgrade(g, s)`](guards::Guard::downgrade) | a second guard of the session; its epoch; a part of the data; the room opened to a session |
//! | [`snapshot`](GroupLock::snapshot) | the holders, the waiters and how long they have waited |
//! | [`get_mut`](GroupLock::get_mut), [`into_inner`](GroupLock::into_inner) | the data, without locking |
//! | `enter`, `exclusive` and most of their forms on [`Phased`](views::Phased) | guards with a [`view`](views::InPhase::view) in place of `&T` |
//!
//! # Policies and cores
//!
//! A [`Policy`] decides which session enters next, and states what a waiter can rely on: `Eventual`
//! (the default), `Fifo`, `Batch`, `BatchFor`, `Priority`. A [core](cores) is the lock without
//! data: `Phases` (the default), `Striped` for one session on many processors, and, with feature
//! `handover`, `Handover` for a constant number of remote memory references.
//!
//! # Features
//!
//! No feature is on by default, and a feature that is off costs nothing.
//!
//! * `lock_api`: `Mutex` and `RwLock` with the calls of `parking_lot`, through `lock_api` 0.5;
//!   needs Rust 1.95. With `send_guard`, their guards may be sent to other threads. See module
//!   `raw`.
//! * `deadlock_detection`: reports threads that wait for themselves or each other.
//! * `tracing`: events and spans for long waits. See module `long_waits`.
//! * `handover`: the core `cores::Handover`.
//!
//! Without features the only dependency is `atomic-wait`, on systems where threads can sleep on a
//! word. The crate needs Rust 1.88, and 1.95 with `lock_api`. It builds for
//! `wasm32-unknown-unknown`. That target has one thread and no clock, so no thread can wait there.
//!
//! There is no `no_std`: a lock that waits needs threads that sleep, a clock and memory.
//!
//! # What it costs
//!
//! To enter a session that is inside already, or was inside last, takes one atomic addition and a
//! comparison of sessions. To leave takes one atomic subtraction. To change the session of an empty
//! room takes the short internal lock. The lock is a word, a pointer and a session. With the
//! default core and policy it allocates nothing until a request waits or asks for its
//! [epoch](guards::Guard::epoch), and `new` is `const`. Threads that wait spin for a moment and
//! then sleep.

pub mod cores;
#[cfg(all(feature = "deadlock_detection", not(any(loom, shuttle))))]
pub mod deadlock;
mod foreign;
#[cfg(not(any(loom, shuttle)))]
mod futex;
pub mod future;
pub mod guards;
mod lock;
#[cfg(all(feature = "tracing", not(any(loom, shuttle))))]
pub mod long_waits;
mod policy;
#[cfg(all(feature = "lock_api", not(any(loom, shuttle))))]
pub mod raw;
mod snapshot;
mod sync;
#[cfg(not(any(loom, shuttle)))]
pub mod views;
mod watch;

pub use guards::{ExclusiveGuard, OwnedExclusiveGuard, OwnedSessionGuard, SessionGuard};
pub use lock::GroupLock;
pub use policy::Policy;
#[cfg(all(feature = "lock_api", not(any(loom, shuttle))))]
pub use raw::{Mutex, RawMutex, RawRwLock, RwLock};
pub use snapshot::{Snapshot, WaitingPhase};
#[cfg(loom)]
#[doc(hidden)]
pub use sync::LOOM_SPIN_ROUNDS;

/// The guide's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../guide.md")]
struct Guide;
