//! The first eight bytes of each side, and dialling a member until it welcomes us. Members and
//! clients use it.

use std::io;
use std::time::Duration;

use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use super::{Frame, Hello, Peer, Reader, Reason, Versions, Welcome, WireError, write};
use crate::name::MemberId;

/// A stream that a connection can use.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for S {}

/// A connection after Welcome.
pub(crate) struct Connection {
    pub(crate) reader: Reader<ReadHalf<Box<dyn Stream>>>,
    pub(crate) writer: WriteHalf<Box<dyn Stream>>,
    pub(crate) welcome: Welcome,
    /// How long a message takes, measured by Hello and Welcome.
    pub(crate) delay: Duration,
}

/// Why a member cannot be used.
#[derive(Debug, Error)]
pub(crate) enum DialError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("no answer within {} s", .0.as_secs())]
    Silent(Duration),
    #[error(
        "plain text is only for members on this machine; other members need cacert, cert and key"
    )]
    PlainText,
    #[error("TLS: {0}")]
    Tls(String),
    #[error("{0}")]
    Opening(#[from] BadOpening),
    #[error("{0}")]
    Wire(#[from] WireError),
    /// The member refused us.
    #[error("it refused us: {0}")]
    Refused(Reason),
    /// We refuse the member.
    #[error("{0}")]
    Wrong(#[from] Reason),
    #[error("it speaks version {theirs}, expected {ours}")]
    Version { theirs: Versions, ours: Versions },
    #[error("it closed the connection instead of sending Welcome")]
    Closed,
    #[error("it sent {0} instead of Welcome")]
    Unexpected(&'static str),
    #[error("it is {is}, expected {expected}")]
    AnotherMember { is: MemberId, expected: MemberId },
}

impl DialError {
    /// The reason, if the member is wrong and the connection did not just break.
    pub(crate) fn reason(&self) -> Option<Reason> {
        match self {
            DialError::Wrong(reason) => Some(reason.clone()),
            DialError::Tls(why) => Some(Reason::Unauthenticated(why.clone())),
            DialError::Version { theirs, ours } => {
                Some(Reason::Version { theirs: *theirs, ours: *ours })
            }
            DialError::Unexpected(_) | DialError::AnotherMember { .. } => {
                Some(Reason::OutOfTurn(self.to_string()))
            }
            _ => None,
        }
    }
}

/// Dials a member. If `member` is given, it must be that one.
pub(crate) async fn dial(
    peer: &Peer,
    member: Option<MemberId>,
    tls: Option<&TlsConnector>,
    hello: Hello,
    patience: Duration,
) -> Result<Connection, DialError> {
    let reached = timeout(patience, reach(peer, tls, hello, patience)).await;
    let connection = reached.map_err(|_| DialError::Silent(patience))??;
    match member {
        Some(expected) if expected != connection.welcome.me => {
            Err(DialError::AnotherMember { is: connection.welcome.me, expected })
        }
        _ => Ok(connection),
    }
}

async fn reach(
    peer: &Peer,
    tls: Option<&TlsConnector>,
    hello: Hello,
    patience: Duration,
) -> Result<Connection, DialError> {
    let stream = TcpStream::connect(&peer.address).await?;
    // Every frame is small, and somebody waits for it.
    stream.set_nodelay(true)?;
    let mut stream: Box<dyn Stream> = match tls {
        None if stream.peer_addr()?.ip().is_loopback() => Box::new(stream),
        None => return Err(DialError::PlainText),
        Some(tls) => match tls.connect(server_name(&peer.name)?, stream).await {
            Ok(stream) => Box::new(stream),
            // The other side is wrong, the connection did not just break.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(DialError::Tls(error.to_string()));
            }
            Err(error) => return Err(error.into()),
        },
    };
    exchange_openings(&mut stream, patience).await?;
    let (reader, mut writer) = tokio::io::split(stream);
    let mut reader = Reader::new(reader);
    let (said, ours) = (Instant::now(), hello.versions);
    write(&mut writer, &Frame::Hello(hello)).await?;
    match reader.next().await? {
        Some(Frame::Welcome(welcome)) => {
            let theirs = Versions { lowest: welcome.version, highest: welcome.version };
            if ours.common(theirs).is_none() {
                return Err(DialError::Version { theirs, ours });
            }
            Ok(Connection { reader, writer, welcome, delay: said.elapsed() / 2 })
        }
        Some(Frame::Refused { reason }) => Err(DialError::Refused(reason)),
        Some(other) => Err(DialError::Unexpected(other.kind())),
        None => Err(DialError::Closed),
    }
}

/// A name as in certificates.
fn server_name(name: &str) -> Result<ServerName<'static>, DialError> {
    ServerName::try_from(name.to_owned()).map_err(|_| {
        DialError::Tls(format!(
            "`{name}` cannot be in a certificate: expected a host name or an address"
        ))
    })
}

/// The version of the opening, Hello and Welcome. Other frames have [versions](super::Versions) of
/// their own.
pub const HANDSHAKE: u16 = 2;

const MAGIC: &[u8; 5] = b"GBPLK";

/// Why the opening of the other side is not accepted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BadOpening {
    /// It is another protocol.
    #[error(
        "it begins with {0:02x?}, expected `GBPLK`: this is not a member or client of a GBP cluster"
    )]
    Foreign([u8; 8]),
    /// It is another version of the handshake.
    #[error("it begins with handshake {0}, expected handshake {HANDSHAKE}")]
    Version(u16),
    /// Nothing arrived.
    #[error("it sent nothing for {} s, expected eight bytes", .0.as_secs_f32())]
    Silent(Duration),
    /// The connection broke.
    #[error("the connection ended before it had begun: {0}")]
    Io(#[from] io::Error),
}

/// The opening of this side.
pub fn opening() -> [u8; 8] {
    let [high, low] = HANDSHAKE.to_be_bytes();
    let [a, b, c, d, e] = *MAGIC;
    [a, b, c, d, e, high, low, 0]
}

/// Sends our opening and checks theirs, within `patience`.
///
/// # Errors
/// If their opening is missing or wrong.
pub async fn exchange_openings<S>(stream: &mut S, patience: Duration) -> Result<(), BadOpening>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let exchange = async {
        stream.write_all(&opening()).await?;
        stream.flush().await?;
        let mut theirs = [0; 8];
        stream.read_exact(&mut theirs).await?;
        check(theirs)
    };
    timeout(patience, exchange).await.map_err(|_| BadOpening::Silent(patience))?
}

fn check(theirs: [u8; 8]) -> Result<(), BadOpening> {
    if theirs == opening() {
        return Ok(());
    }
    match theirs {
        [m @ .., high, low, 0] if m == *MAGIC => {
            Err(BadOpening::Version(u16::from_be_bytes([high, low])))
        }
        _ => Err(BadOpening::Foreign(theirs)),
    }
}
