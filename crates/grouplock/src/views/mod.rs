//! Typed phases. The session decides what a guard can do with the data, and the compiler checks it.
//!
//! A guard of a [`GroupLock`](crate::GroupLock) gives `&T`. Often the purpose of a session is that
//! only some operations run together: insertions with insertions, lookups with lookups. Here each
//! session is a type, a [`Phase`], which builds a *view* of the data. [`Phased`] shows only views.
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
//! use grouplock::views::{Inside, Phase, Phased};
//!
//! /// The data. Its fields are private to this module: other modules see views only.
//! #[derive(Default)]
//! pub struct Ballot {
//!     ayes: AtomicU32,
//!     noes: AtomicU32,
//! }
//!
//! /// Any number of threads may vote at the same time …
//! pub struct Vote;
//! pub struct Voting<'a>(Inside<'a, Vote, Ballot>);
//!
//! impl Phase<Ballot> for Vote {
//!     type Name = &'static str;
//!     type View<'a> = Voting<'a>;
//!
//!     fn name(&self) -> &'static str {
//!         "vote"
//!     }
//!
//!     fn view<'a>(&'a self, inside: Inside<'a, Vote, Ballot>) -> Voting<'a> {
//!         Voting(inside)
//!     }
//! }
//!
//! impl Voting<'_> {
//!     pub fn vote(&self, aye: bool) {
//!         let Ballot { ayes, noes } = self.0.data();
//!         if aye { ayes } else { noes }.fetch_add(1, Relaxed);
//!     }
//! }
//!
//! /// … and any number may count, but none votes meanwhile: the two numbers belong together.
//! pub struct Count;
//! pub struct Counting<'a>(Inside<'a, Count, Ballot>);
//!
//! impl Phase<Ballot> for Count {
//!     type Name = &'static str;
//!     type View<'a> = Counting<'a>;
//!
//!     fn name(&self) -> &'static str {
//!         "count"
//!     }
//!
//!     fn view<'a>(&'a self, inside: Inside<'a, Count, Ballot>) -> Counting<'a> {
//!         Counting(inside)
//!     }
//! }
//!
//! impl Counting<'_> {
//!     pub fn carried(&self) -> bool {
//!         self.0.data().ayes.load(Relaxed) > self.0.data().noes.load(Relaxed)
//!     }
//! }
//!
//! let ballot = Phased::new(Ballot::default());
//! std::thread::scope(|scope| {
//!     for voter in 0..5 {
//!         let ballot = &ballot;
//!         scope.spawn(move || ballot.enter(Vote).view().vote(voter < 3));
//!     }
//! });
//! assert!(ballot.enter(Count).view().carried());
//! ```
//!
//! Code that does not belong to the phase does not compile:
//!
//! ```compile_fail,E0599
//! # use grouplock::views::{Inside, Phase, Phased};
//! # pub struct Ballot;
//! # pub struct Vote;
//! # pub struct Voting<'a>(Inside<'a, Vote, Ballot>);
//! # impl Phase<Ballot> for Vote {
//! #     type Name = &'static str;
//! #     type View<'a> = Voting<'a>;
//! #     fn name(&self) -> &'static str { "vote" }
//! #     fn view<'a>(&'a self, inside: Inside<'a, Vote, Ballot>) -> Voting<'a> { Voting(inside) }
//! # }
//! # impl Voting<'_> { pub fn vote(&self, aye: bool) { let _ = (self.0.data(), aye); } }
//! # pub struct Count;
//! # pub struct Counting<'a>(Inside<'a, Count, Ballot>);
//! # impl Phase<Ballot> for Count {
//! #     type Name = &'static str;
//! #     type View<'a> = Counting<'a>;
//! #     fn name(&self) -> &'static str { "count" }
//! #     fn view<'a>(&'a self, inside: Inside<'a, Count, Ballot>) -> Counting<'a> { Counting(inside) }
//! # }
//! # let ballot = Phased::new(Ballot);
//! # ballot.enter(Vote).view().vote(true);
//! let counting = ballot.enter(Count);
//! counting.view().vote(true); // no method named `vote` found for struct `Counting`
//! ```
//!
//! # Why `view()` and not `Deref`
//!
//! A view borrows the *guard*, so the guard outlives it. With `Deref`, the view would have to
//! borrow the *lock*. Then a program could copy the view and keep it as long as the lock lives.
//!
//! ```compile_fail,E0505
//! # use grouplock::views::{Inside, Phase, Phased};
//! # struct Look;
//! # impl Phase<u32> for Look {
//! #     type Name = ();
//! #     type View<'a> = &'a u32;
//! #     fn name(&self) {}
//! #     fn view<'a>(&'a self, inside: Inside<'a, Look, u32>) -> &'a u32 { inside.data() }
//! # }
//! # let lock = Phased::new(7);
//! let guard = lock.enter(Look);
//! let view = guard.view();
//! drop(guard); // cannot move out of `guard` because it is borrowed
//! assert_eq!(*view, 7);
//! ```

mod guards;
mod lock;

use std::fmt;
use std::marker::PhantomData;

pub use self::guards::{EnterPhase, InPhase, OwnedPhaseGuard, PhaseGuard};
pub use self::lock::Phased;

/// A session that decides what its holders see of the data `T`.
///
/// A phase is a small type, often without fields: `struct Insert;`. A type with fields can be
/// several sessions, as `struct Epoch(u32)`, and its view can use the fields.
///
/// # What the author of the data may rely on
///
/// Only the lock makes an [`Inside`], and only for holders. Let a view keep the `Inside` that it
/// was made of. Let all operations on the private fields of the data go through a view. Then, also
/// for `unsafe` code:
///
/// 1. While an `Inside<'_, P, T>` exists, all others for the same data were made for phases with an
///    *equal name*. So give equal names only to phases that may run together. Then views of phases
///    that may not run together never exist at the same time.
/// 2. While one exists, no code has `&mut T`, neither from [`exclusive`](Phased::exclusive) nor
///    from [`get_mut`](Phased::get_mut), and the data is not moved.
/// 3. Everything that is done with the views of a phase happens before everything that is done with
///    the views of the next phase. Only within a phase are atomics or fences needed.
///
/// For this, `name` must return the same name at each call, and names must compare as [`Eq`] says.
/// You control that: your phases choose their names.
///
/// # What the author must not assume
///
/// * That your phases are the only ones. Other code can write a `Phase<T>` of its own, with any
///   name, and get `&T` inside it. It gets no `Inside` for your phases, and so none of your views.
///   Whatever you make public on `&T` itself (a `Debug`, say) must be sound in every phase.
/// * That a view is dropped. A program can leak it with its guard. Then the phase is never left.
///
/// ```
/// use grouplock::views::{Inside, Phase, Phased};
///
/// /// Readers of a year see what was known in that year. Years exclude each other.
/// struct Year(u32);
///
/// impl Phase<Vec<(u32, &'static str)>> for Year {
///     type Name = u32;
///     type View<'a> = Vec<&'static str>;
///
///     fn name(&self) -> u32 {
///         self.0
///     }
///
///     fn view<'a>(&'a self, inside: Inside<'a, Year, Vec<(u32, &'static str)>>) -> Vec<&'static str> {
///         inside.data().iter().filter(|(year, _)| *year <= self.0).map(|(_, what)| *what).collect()
///     }
/// }
///
/// let known = Phased::new(vec![(1965, "mutual exclusion"), (1971, "readers, writers"), (1998, "sessions")]);
/// assert_eq!(known.enter(Year(1980)).view(), ["mutual exclusion", "readers, writers"]);
/// ```
pub trait Phase<T>: Sized {
    /// The type of names of sessions, the `S` of [`GroupLock`](crate::GroupLock): an enum, say.
    type Name: Eq + Clone;

    /// What a holder can do with the data.
    type View<'a>
    where
        Self: 'a,
        T: 'a;

    /// The session. Phases with equal names share the room.
    fn name(&self) -> Self::Name;

    /// Makes a view. Each [`PhaseGuard::view`](InPhase::view) calls it, so it should cost little.
    fn view<'a>(&'a self, inside: Inside<'a, Self, T>) -> Self::View<'a>;
}

/// The data, and the proof that a guard is inside phase `P` for as long as `'a`.
///
/// Only the lock makes it. [`Phase`] says what it proves.
///
/// ```compile_fail,E0451
/// # use grouplock::views::Inside;
/// struct Insert;
/// let forged: Inside<'_, Insert, u32> = Inside { data: &7, phase: std::marker::PhantomData };
/// ```
pub struct Inside<'a, P, T> {
    data: &'a T,
    /// Invariant in `P`.
    phase: PhantomData<fn(P) -> P>,
}

impl<'a, P, T> Inside<'a, P, T> {
    /// The caller is inside `P`, in the lock around `data`, for as long as `'a`.
    #[inline]
    fn new(data: &'a T) -> Self {
        Inside { data, phase: PhantomData }
    }

    /// The data.
    #[inline]
    pub fn data(self) -> &'a T {
        self.data
    }
}

// Not derived: a derive would require `P: Copy` and `T: Copy`.
impl<P, T> Copy for Inside<'_, P, T> {}
impl<P, T> Clone for Inside<'_, P, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, T: fmt::Debug> fmt::Debug for Inside<'_, P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Inside").field(self.data).finish()
    }
}
