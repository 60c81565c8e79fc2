//! Rooms on etcd next to etcd's own lock, on the same server, in turns.
//!
//! * [`server`]: an etcd of our own, with its data on a disk or in memory.
//! * [`rpc`]: etcd's lock, called as directly as possible.
//! * [`party`]: a process that enters and leaves as it is told, by either lock.
//! * [`libraries`]: those processes measured: alone, and one after the other.
//! * [`programs`]: `grouplock run` next to `etcdctl lock`.
//! * [`page`]: the report.

pub mod libraries;
pub mod page;
pub mod party;
pub mod programs;
pub mod rpc;
pub mod server;

use std::io;

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum EtcdError {
    /// A program that is needed does not do what it should.
    #[error("{program}: {reason}")]
    Program {
        /// Which one.
        program: String,
        /// What it did.
        reason: String,
    },
    /// The system has refused something.
    #[error("cannot {what}: {source}")]
    System {
        /// What.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Our lock.
    #[error("a room on etcd: {0}")]
    Room(#[from] grouplock_room::RoomError),
    /// etcd's lock.
    #[error("etcd's lock: {0}")]
    Call(Box<tonic::Status>),
    /// The connection for etcd's lock.
    #[error("no connection to etcd: {0}")]
    Connection(#[from] tonic::transport::Error),
}

impl EtcdError {
    fn system(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| EtcdError::System { what, source }
    }

    fn program(program: impl Into<String>, reason: impl Into<String>) -> Self {
        EtcdError::Program { program: program.into(), reason: reason.into() }
    }
}

impl From<tonic::Status> for EtcdError {
    fn from(status: tonic::Status) -> Self {
        EtcdError::Call(Box::new(status))
    }
}

/// Times of two subjects in milliseconds, a list per round: ours, and theirs.
#[derive(Clone, Debug, Default)]
pub struct Pair {
    /// Ours.
    pub ours: Vec<Vec<f64>>,
    /// etcd's.
    pub theirs: Vec<Vec<f64>>,
}

/// Nanoseconds of a clock that all processes share, `CLOCK_MONOTONIC`.
///
/// # Errors
/// If the system does not have it.
pub fn now() -> Result<u64, EtcdError> {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)
        .map_err(|errno| EtcdError::System { what: "read the clock", source: errno.into() })?;
    Ok(std::time::Duration::from(time).as_nanos() as u64)
}
