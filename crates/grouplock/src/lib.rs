//! A lock with *sessions*: any number of holders share a session, different sessions exclude each other.
//!
//! A mutex is the case where everyone has a session of their own, a readers-writers lock the one where readers share a session and each
//! writer has its own. [`GroupLock`] is the general one: backups may overlap each other but not migrations; any number of jobs use the machine
//! while it is set up for red, then for blue; threads insert into a table together, or look up together, but not both.
//!
//! # A room that is set up for one thing at a time
//!
//! A machine serves one model, database or mode at a time, any number of requests for it, and a change is expensive. The request that finds the
//! wrong one loads its own, alone; the others wait for that and share.
//!
//! ```
//! use grouplock::{GroupLock, Policy};
//!
//! // Prefers the model that is loaded, but nobody is passed over more than 20 times.
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
//! The same lock, also at the same time as threads, on any executor. A future that is dropped leaves no trace in the queue.
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
//! With [`views`], a session is a type that decides what one can do with the data, and the compiler checks it: inside `Vote` only voting compiles, inside
//! `Count` only counting.
//!
//! # When to use it
//!
//! | you have | use |
//! |---|---|
//! | everyone excludes everyone | [`std::sync::Mutex`] |
//! | readers who share, writers who do not | [`std::sync::RwLock`] |
//! | two or more kinds of users, each of which may share with its own kind | **`GroupLock`** |
//! | a `Mutex`, a `Condvar` and a field that says which mode is on | **`GroupLock`** |
//! | an `RwLock` whose "writers" could run together | **`GroupLock`**: they are a session of their own |
//! | any of these where threads and tasks meet, or where waiting has to be bounded or given up | **`GroupLock`** |
//!
//! Compared with `std::sync::RwLock`: as many sessions as you like instead of one; a stated bound on being overtaken, by [`Policy`], instead of
//! whatever the system does; timeouts, tasks, owned guards, [`snapshot`](GroupLock::snapshot), [`switch`](guards::Guard::switch); no
//! poisoning. `enter` is `read`, `exclusive` is `write`. What it does not give is `&mut T` to several at once: those who share a
//! session share `&T`, so what they change together must be atomic, locked, or behind a [view](views).
//!
//! # The calls
//!
//! | call | gives |
//! |---|---|
//! | [`new`](GroupLock::new), [`with_policy`](GroupLock::with_policy), [`with_priorities`](GroupLock::with_priorities), [`striped`](GroupLock::striped), [`over`](GroupLock::over), [`at_most`](GroupLock::at_most) | a lock |
//! | [`enter_with`](GroupLock::enter_with), [`enter_with_async`](GroupLock::enter_with_async), [`enter_with_result`](GroupLock::enter_with_result), [`enter_with_result_async`](GroupLock::enter_with_result_async) | the same as `enter`, in a room that is set up for the session |
//! | [`enter`](GroupLock::enter), [`try_enter`](GroupLock::try_enter), [`try_enter_for`](GroupLock::try_enter_for), [`try_enter_until`](GroupLock::try_enter_until), [`enter_async`](GroupLock::enter_async) | [`SessionGuard`]: `&T` |
//! | [`exclusive`](GroupLock::exclusive), [`try_exclusive`](GroupLock::try_exclusive), [`try_exclusive_for`](GroupLock::try_exclusive_for), [`try_exclusive_until`](GroupLock::try_exclusive_until), [`exclusive_async`](GroupLock::exclusive_async) | [`ExclusiveGuard`]: `&mut T` |
//! | [`enter_arc`](GroupLock::enter_arc), [`exclusive_arc`](GroupLock::exclusive_arc) and their `try_` and `_async` forms | [`OwnedSessionGuard`], [`OwnedExclusiveGuard`], which keep the lock alive |
//! | [`SessionGuard::session(&g)`](guards::Guard::session), [`switch(&mut g, s)`](guards::Guard::switch), [`try_switch`](guards::Guard::try_switch), [`switch_async`](guards::Guard::switch_async), [`try_switch_for`](guards::Guard::try_switch_for) | the session, and another in its place |
//! | [`SessionGuard::again(&g)`](guards::Guard::again), [`epoch(&g)`](guards::Guard::epoch), [`map(g, f)`](guards::Guard::map), [`ExclusiveGuard::downgrade(g, s)`](guards::Guard::downgrade) | a second guard of a stay, its epoch, a part of the data, the room opened to a session |
//! | [`snapshot`](GroupLock::snapshot) | who is inside, who waits and for how long |
//! | [`get_mut`](GroupLock::get_mut), [`into_inner`](GroupLock::into_inner) | the data, without locking |
//! | the same on [`Phased`](views::Phased) | guards with a [`view`](views::InPhase::view) in place of `&T` |
//!
//! # Policies and cores
//!
//! A [`Policy`] says who goes next and what a waiter can rely on: `Eventual` (the default), `Fifo`, `Batch`, `Priority`. A
//! [core](cores) is the lock without data: `Phases` (the default), `Striped` for one session on many processors, and, with feature `handover`,
//! `Handover` for a constant number of remote memory references. All have the same calls.
//!
//! # Features
//!
//! None is on by default, and what is off costs nothing.
//!
//! * `lock_api`: `Mutex` and `RwLock` with the calls of `parking_lot`, through `lock_api` 0.5; needs Rust 1.95. See module `raw`.
//!   With `send_guard`, their guards may be sent to other threads.
//! * `deadlock_detection`: reports threads that wait for themselves or for each other. See module `deadlock`.
//! * `tracing`: events and spans for long waits. See module `long_waits`.
//! * `handover`: the core `cores::Handover`.
//!
//! Without features the one dependency is `atomic-wait`, on systems where threads can sleep on a word. The crate needs Rust 1.88, and 1.95 with
//! `lock_api`. It builds for `wasm32-unknown-unknown`, where nobody can wait as a thread: there is one, and no clock.
//!
//! There is no `no_std`: a lock that waits needs threads that sleep, a clock for its policies and memory for its queue. What is left without
//! those, the policy as data and the snapshot, is of no use alone.
//!
//! # What it costs
//!
//! Entering a session that is inside already, or was the last to be, is one atomic addition and a comparison of names; leaving is one atomic
//! subtraction. Changing the name of an empty room takes the short internal lock. The lock is a word, a pointer and a
//! name, with nothing on the heap (in the default core and policy) until somebody waits; `new` is `const`. Threads that wait spin for a moment and then sleep.

pub mod cores;
#[cfg(all(feature = "deadlock_detection", not(any(loom, shuttle))))]
pub mod deadlock;
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
