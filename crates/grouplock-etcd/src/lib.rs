//! Rooms on etcd: named rooms with sessions that processes on different machines share.
//!
//! Those who enter the same session of a room are inside together; different sessions exclude each other, first come,
//! first served.
//!
//! ```no_run
//! use grouplock_room::{Places, RoomOptions};
//!
//! let places = Places::new().with(grouplock_etcd::opener());
//! let room = places.open("etcd://one:2379,two:2379,three:2379", "build", &RoomOptions::new())?;
//! let inside = room.enter("release")?; // waits while another session is inside
//! // What the room protects should refuse an epoch smaller than the largest it has seen.
//! println!("with epoch {}", inside.epoch());
//! inside.leave()?;
//! # Ok::<(), grouplock_room::RoomError>(())
//! ```
//!
//! A place is `etcd://host:port[,host:port…][/prefix][?option=value&…]`:
//!
//! | option | meaning | default |
//! |---|---|---|
//! | `ttl` | how long a holding outlives contact with its holder, in seconds | 10 |
//! | `timeout` | how long to try before a request is given up | 5 s |
//! | `members` | `all`: ask the cluster for its members, and use those too that are not named | `named` |
//! | `delay` | how long to keep others out after somebody has died inside | none |
//! | `cacert` | speak TLS, with servers whose certificates this authority has signed | plain text |
//! | `cert`, `key` | our own certificate | none |
//!
//! The files can also be named by `GROUPLOCK_ETCD_CACERT`, `_CERT` and `_KEY`. A name and a password come from
//! `GROUPLOCK_ETCD_USER` and `GROUPLOCK_ETCD_PASSWORD` only, as everybody on a machine can read command lines.
//!
//! Everything is told in `docs/etcd.md`: the keys, the transactions, and what is promised. In short: ownership is decided
//! inside transactions only; a holding that may be lost is reported before others can be let in; and without
//! the epoch, a room protects only against those who notice in time that they have lost it.
//!
//! All rooms of a process at one place share a connection, a lease and a thread. Threads and tasks of any executor can
//! enter. Only what etcd 3.4 has is used, and not its lock service, which lets in those whose lease has run out.

mod client;
mod error;
mod fence;
#[doc(hidden)]
pub mod keys;
mod lease;
mod mirror;
mod opener;
#[doc(hidden)]
pub mod proto;
#[doc(hidden)]
pub mod protocol;
mod room;
mod rpc;
#[doc(hidden)]
pub mod settings;
#[doc(hidden)]
pub mod view;
mod visit;
mod who;

pub use fence::fence_key;
pub use opener::opener;
