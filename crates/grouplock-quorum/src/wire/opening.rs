//! The first eight bytes of each side.

use std::io;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

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
    tokio::time::timeout(patience, exchange).await.map_err(|_| BadOpening::Silent(patience))?
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
