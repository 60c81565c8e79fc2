//! Rooms on etcd.

mod client;
mod error;
#[doc(hidden)]
pub mod keys;
mod lease;
#[doc(hidden)]
pub mod line;
mod mirror;
mod opener;
#[doc(hidden)]
pub mod proto;
#[doc(hidden)]
pub mod protocol;
mod room;
mod rpc;
mod settings;
mod visit;
mod who;

pub use opener::opener;
