//! The lock as its users see it. One program, because each program takes long to link.
#![cfg(not(any(loom, shuttle)))]

#[path = "../common/mod.rs"]
mod common;

// The thread sanitizer runs these,
#[cfg(not(miri))]
mod storms;
#[cfg(not(miri))]
mod striped;

// miri runs these,
#[cfg(not(tsan))]
mod at_most;
#[cfg(not(tsan))]
mod guards;
#[cfg(not(tsan))]
mod set_up;
#[cfg(not(tsan))]
mod sharing;
#[cfg(not(tsan))]
mod views;

// and neither runs these, because they would take long.
#[cfg(not(any(miri, tsan)))]
mod bounds;
#[cfg(not(any(miri, tsan)))]
mod foreign_code;
#[cfg(not(any(miri, tsan)))]
mod giving_up;
#[cfg(all(feature = "handover", not(any(miri, tsan))))]
mod handover;
#[cfg(not(any(miri, tsan)))]
mod misuse;
#[cfg(not(any(miri, tsan)))]
mod policies;
#[cfg(not(any(miri, tsan)))]
mod programs;
#[cfg(not(any(miri, tsan)))]
mod reference;
#[cfg(not(any(miri, tsan)))]
mod snapshot;
