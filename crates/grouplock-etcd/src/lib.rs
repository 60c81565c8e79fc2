//! Rooms on etcd: named rooms with sessions that processes on different machines share.
//!
//! Holders of the same session are inside together. Different sessions exclude each other.
//! Admission is first come, first served.
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
//! | `ttl` | how long a holding survives without contact to its holder, in seconds | 10 |
//! | `timeout` | how long to try a request before it fails | 5 s |
//! | `members` | `all`: also use members of the cluster that the place does not name | `named` |
//! | `delay` | how long nobody is admitted after a death | none |
//! | `cacert` | use TLS; this authority has signed the certificates of the servers | plain text |
//! | `cert`, `key` | the certificate of this client | none |
//!
//! The variables `GROUPLOCK_ETCD_CACERT`, `_CERT` and `_KEY` can also name the files. The user name
//! and the password come only from `GROUPLOCK_ETCD_USER` and `GROUPLOCK_ETCD_PASSWORD`, because
//! every user of a machine can read command lines.
//!
//! `docs/etcd.md` describes the keys, the transactions and the promises. In short: only
//! transactions admit. A holding that may be lost is reported before others can be admitted.
//! Without the epoch, a room protects only against holders that notice their loss in time.
//!
//! All rooms of a process at one place share a connection, a lease and a thread. Threads and tasks
//! of any executor can enter. The crate uses only the API of etcd 3.4. It does not use the lock
//! service of etcd, which admits waiters whose lease has ended.

mod client;
#[doc(hidden)]
pub mod deaths;
mod error;
mod fence;
#[doc(hidden)]
pub mod keys;
#[doc(hidden)]
pub mod lease;
mod mirror;
mod opener;
#[doc(hidden)]
pub mod proto;
#[doc(hidden)]
pub mod protocol;
mod room;
mod rpc;
#[doc(hidden)]
pub mod runner;
#[doc(hidden)]
pub mod settings;
#[doc(hidden)]
pub mod view;
mod visit;
#[doc(hidden)]
pub mod who;

pub use fence::fence_key;
pub use opener::opener;
