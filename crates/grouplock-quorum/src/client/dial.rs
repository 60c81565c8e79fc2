//! Reaching a member.

use std::io;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadHalf, WriteHalf};
use tokio::net::TcpStream;

use super::security::{Security, server_name};
use crate::name::MemberId;
use crate::wire::{
    BadOpening, Frame, Hello, Reader, Reason, Versions, Welcome, WireError, exchange_openings,
    write,
};

/// How long a member may take to welcome us.
const PATIENCE: Duration = Duration::from_secs(3);

/// Where to dial.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// `host:port`.
    pub(super) address: String,
    /// What its certificate has to be for.
    pub(super) name: String,
    /// Who has to answer; anyone of the cluster if it is not known.
    pub(super) member: Option<MemberId>,
}

impl Target {
    /// One of the hosts of a place.
    pub(super) fn unknown(address: &str, security: &Security) -> Self {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = match security {
            Security::Tls { name: Some(name), .. } => name,
            _ => host,
        };
        Target { address: address.to_owned(), name: name.to_owned(), member: None }
    }
}

pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

/// A connection on which we are welcome.
pub(super) struct Connection {
    pub(super) reader: Reader<ReadHalf<Box<dyn Duplex>>>,
    pub(super) writer: WriteHalf<Box<dyn Duplex>>,
    pub(super) welcome: Welcome,
}

/// Why a member cannot be talked to.
#[derive(Debug, Error)]
pub(super) enum DialError {
    #[error("{0}")]
    Connect(#[from] io::Error),
    #[error("no answer within {} s", PATIENCE.as_secs())]
    Silent,
    #[error(
        "plain text is for members on this machine only; for others cacert, cert and key are needed"
    )]
    PlainText,
    #[error("TLS: {0}")]
    Tls(String),
    #[error("{0}")]
    Opening(#[from] BadOpening),
    #[error("{0}")]
    Wire(#[from] WireError),
    #[error("it refused us: {0}")]
    Refused(Reason),
    #[error("it wants to speak version {0}, expected {ours}", ours = Versions::OURS)]
    Version(u16),
    #[error("it closed the connection instead of welcoming us")]
    Closed,
    #[error("it said {0} instead of welcoming us")]
    Unexpected(&'static str),
    #[error("it is {is}, expected {expected}")]
    AnotherMember { is: MemberId, expected: MemberId },
}

pub(super) async fn dial(
    target: &Target,
    security: &Security,
    hello: Hello,
) -> Result<Connection, DialError> {
    let reached = tokio::time::timeout(PATIENCE, reach(target, security, hello));
    let connection = reached.await.map_err(|_| DialError::Silent)??;
    match target.member {
        Some(expected) if expected != connection.welcome.me => {
            Err(DialError::AnotherMember { is: connection.welcome.me, expected })
        }
        _ => Ok(connection),
    }
}

async fn reach(
    target: &Target,
    security: &Security,
    hello: Hello,
) -> Result<Connection, DialError> {
    let stream = TcpStream::connect(&target.address).await?;
    // Every frame is small and somebody waits for it.
    stream.set_nodelay(true)?;
    let mut stream: Box<dyn Duplex> = match security {
        Security::PlainText if stream.peer_addr()?.ip().is_loopback() => Box::new(stream),
        Security::PlainText => return Err(DialError::PlainText),
        Security::Tls { connector, .. } => {
            let name = server_name(&target.name).map_err(DialError::Tls)?;
            let tls = connector.connect(name, stream).await;
            Box::new(tls.map_err(|error| DialError::Tls(error.to_string()))?)
        }
    };
    exchange_openings(&mut stream, PATIENCE).await?;
    let (reader, mut writer) = tokio::io::split(stream);
    let mut reader = Reader::new(reader);
    write(&mut writer, &Frame::Hello(hello)).await?;
    match reader.next().await? {
        Some(Frame::Welcome(Welcome { version, .. })) if !spoken(version) => {
            Err(DialError::Version(version))
        }
        Some(Frame::Welcome(welcome)) => Ok(Connection { reader, writer, welcome }),
        Some(Frame::Refused { reason }) => Err(DialError::Refused(reason)),
        Some(other) => Err(DialError::Unexpected(other.kind())),
        None => Err(DialError::Closed),
    }
}

fn spoken(version: u16) -> bool {
    (Versions::OURS.lowest..=Versions::OURS.highest).contains(&version)
}
