//! The errors of this crate.

use std::path::PathBuf;

use grouplock_room::RoomError;
use tonic::{Code, Status};

/// Why a client cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("cannot read `{path}`: {source}", path = .path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("`{host}` cannot be used as an etcd server: {source}{}", cause(.source))]
    Host { host: String, source: tonic::transport::Error },
    #[error("cannot start a thread for the connection to etcd: {0}")]
    Thread(#[from] std::io::Error),
}

fn cause(error: &tonic::transport::Error) -> String {
    std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default()
}

impl From<OpenError> for RoomError {
    fn from(error: OpenError) -> Self {
        RoomError::Backend(Box::new(error))
    }
}

/// Why a request has failed.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("`{place}` cannot be reached: {reason}")]
    Unreachable { place: String, reason: String },
    #[error("the lease has ended")]
    NoLease {
        /// An earlier attempt, whose answer was lost, may have found the lease.
        resent: bool,
    },
    #[error("`{place}` refuses: {message}")]
    Refused { place: String, message: String },
    #[error("`{place}` sent an unexpected answer: {what}")]
    Nonsense { place: String, what: &'static str },
    #[error("the system provides no random numbers: {0}")]
    Random(String),
    #[error("the connection to `{place}` was closed")]
    Closed { place: String },
}

impl Failure {
    pub(crate) fn refused(place: &str, status: &Status, resent: bool) -> Self {
        if status.code() == Code::NotFound && status.message().contains("lease not found") {
            return Failure::NoLease { resent };
        }
        let hint = match status.message() {
            message if message.contains("user name is empty") => {
                "; set GROUPLOCK_ETCD_USER and GROUPLOCK_ETCD_PASSWORD"
            }
            _ => "",
        };
        let message = format!("{}{hint}", status.message());
        Failure::Refused { place: place.to_owned(), message }
    }
}

impl From<Failure> for RoomError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unreachable { place, reason } => RoomError::Unreachable { place, reason },
            Failure::NoLease { .. } => RoomError::Lost(grouplock_room::Loss::Expired(
                "the servers have forgotten the lease".to_owned(),
            )),
            other => RoomError::Backend(Box::new(other)),
        }
    }
}
