//! A lock with *sessions*: any number of holders share a session, different sessions exclude each other.
//!
//! A mutex is the case where everyone has a session of their own, a readers-writers lock the one where readers share a session and each
//! writer has its own. [`GroupLock`] is the general one: backups may overlap each other but not migrations; any number of jobs use the machine
//! while it is set up for red, then for blue; threads insert into a table together, or look up together, but not both.
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
//! With [`views`], the session decides what one can do with the data, and the compiler checks it.
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
//! use grouplock::views::{Inside, Phase, Phased};
//!
//! struct Vote; // a session, as a type …
//! struct Voting<'a>(Inside<'a, Vote, AtomicU32>); // … and what one can do inside it
//!
//! impl Phase<AtomicU32> for Vote {
//!     type Name = &'static str;
//!     type View<'a> = Voting<'a>;
//!     fn name(&self) -> &'static str { "vote" }
//!     fn view<'a>(&'a self, inside: Inside<'a, Vote, AtomicU32>) -> Voting<'a> { Voting(inside) }
//! }
//!
//! impl Voting<'_> {
//!     fn vote(&self) { self.0.data().fetch_add(1, Relaxed); }
//! }
//!
//! struct Count;
//!
//! impl Phase<AtomicU32> for Count {
//!     type Name = &'static str;
//!     type View<'a> = u32;
//!     fn name(&self) -> &'static str { "count" }
//!     fn view<'a>(&'a self, inside: Inside<'a, Count, AtomicU32>) -> u32 { inside.data().load(Relaxed) }
//! }
//!
//! let ballot = Phased::new(AtomicU32::new(0));
//! ballot.enter(Vote).view().vote();
//! assert_eq!(ballot.enter(Count).view(), 1); // and `.view().vote()` would not compile
//! ```
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
//! whatever the system does; timeouts, tasks, owned guards, [`snapshot`](GroupLock::snapshot), [`switch`](SessionGuard::switch); no
//! poisoning. `enter` is `read`, `exclusive` is `write`. What it does not give is `&mut T` to several at once: those who share a
//! session share `&T`, so what they change together must be atomic, locked, or behind a [view](views).
//!
//! # The calls
//!
//! | call | gives |
//! |---|---|
//! | [`new`](GroupLock::new), [`with_policy`](GroupLock::with_policy), [`with_priorities`](GroupLock::with_priorities), [`striped`](GroupLock::striped), [`over`](GroupLock::over) | a lock |
//! | [`enter`](GroupLock::enter), [`try_enter`](GroupLock::try_enter), [`try_enter_for`](GroupLock::try_enter_for), [`try_enter_until`](GroupLock::try_enter_until), [`enter_async`](GroupLock::enter_async) | [`SessionGuard`]: `&T`, [`session`](SessionGuard::session), [`switch`](SessionGuard::switch) |
//! | [`exclusive`](GroupLock::exclusive), [`try_exclusive`](GroupLock::try_exclusive), [`try_exclusive_for`](GroupLock::try_exclusive_for), [`try_exclusive_until`](GroupLock::try_exclusive_until), [`exclusive_async`](GroupLock::exclusive_async) | [`ExclusiveGuard`]: `&mut T`, [`downgrade`](ExclusiveGuard::downgrade) |
//! | [`enter_arc`](GroupLock::enter_arc), [`enter_arc_async`](GroupLock::enter_arc_async) | [`OwnedSessionGuard`], which keeps the lock alive |
//! | [`snapshot`](GroupLock::snapshot) | who is inside, who waits and for how long |
//! | [`get_mut`](GroupLock::get_mut), [`into_inner`](GroupLock::into_inner) | the data, without locking |
//! | the same on [`Phased`](views::Phased) | guards with a [`view`](views::PhaseGuard::view) in place of `&T` |
//!
//! # Policies and cores
//!
//! A [`Policy`] says who goes next and what a waiter can rely on: `Eventual` (the default), `Fifo`, `Batch`, `Priority`. A
//! [core](cores) is the lock without data: `Phases` (the default), `Striped` for one session on many processors, `Handover` for a
//! constant number of remote memory references.
//!
//! # Features
//!
//! None is on by default, and what is off costs nothing.
//!
//! * `lock_api`: `Mutex` and `RwLock` with the calls of `parking_lot`, through `lock_api` 0.5; needs Rust 1.95. See module `raw`.
//!   With `send_guard`, their guards may be sent to other threads.
//! * `deadlock_detection`: reports threads that wait for themselves or for each other. See module `deadlock`.
//! * `tracing`: events and spans for long waits. See module `long_waits`.
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
pub mod views;
mod watch;

pub use guards::{ExclusiveGuard, OwnedExclusiveGuard, OwnedSessionGuard, SessionGuard};
pub use lock::GroupLock;
pub use policy::Policy;
#[cfg(all(feature = "lock_api", not(any(loom, shuttle))))]
pub use raw::{Mutex, RawMutex, RawRwLock, RwLock};
pub use snapshot::{Snapshot, WaitingPhase};

/// The guide's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/grouplock.md")]
struct Guide;
