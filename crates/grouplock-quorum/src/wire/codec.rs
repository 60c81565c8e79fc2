//! Frames as bytes. The codec of tokio-util would not do: a refusal reports how long the frame was,
//! or after how many bytes it ended.

use std::io;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::frame::Frame;
use super::reason::Reason;

/// The longest frame, in bytes, without its length.
pub const LONGEST: usize = 64 * 1024;

const LENGTH: usize = 4;

/// Why a frame could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WireError {
    /// Longer than [`LONGEST`].
    #[error("a frame of {0} bytes, at most {LONGEST} are allowed")]
    TooLong(u64),
    /// The bytes are not a frame.
    #[error("{length} bytes are not a frame: {why}")]
    Malformed {
        /// How many bytes.
        length: usize,
        /// What is wrong.
        why: String,
    },
    /// The connection ended in the middle of a frame.
    #[error("the connection ended in the middle of a frame, after {0} bytes of it")]
    Truncated(usize),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
}

impl WireError {
    /// The reason to send to the other side; `None` if it is gone.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            WireError::TooLong(length) => {
                Some(Reason::TooLong { length: *length, most: LONGEST as u64 })
            }
            WireError::Malformed { .. } | WireError::Truncated(_) => {
                Some(Reason::Malformed(self.to_string()))
            }
            WireError::Io(_) => None,
        }
    }
}

/// Appends a frame to `bytes`.
///
/// # Errors
/// [`WireError::TooLong`]. Then `bytes` is as before.
pub fn encode(frame: &Frame, bytes: &mut Vec<u8>) -> Result<(), WireError> {
    let encoded = postcard::to_allocvec(frame)
        .map_err(|why| WireError::Malformed { length: 0, why: why.to_string() })?;
    if encoded.len() > LONGEST {
        return Err(WireError::TooLong(encoded.len() as u64));
    }
    bytes.extend_from_slice(&(encoded.len() as u32).to_be_bytes());
    bytes.extend_from_slice(&encoded);
    Ok(())
}

/// Writes one frame and flushes.
///
/// # Errors
/// If it is too long, or the connection broke.
pub async fn write<W: AsyncWrite + Unpin>(stream: &mut W, frame: &Frame) -> Result<(), WireError> {
    let mut bytes = Vec::new();
    encode(frame, &mut bytes)?;
    stream.write_all(&bytes).await?;
    stream.flush().await?;
    Ok(())
}

fn decode(bytes: &[u8]) -> Result<Frame, WireError> {
    let malformed = |why: String| WireError::Malformed { length: bytes.len(), why };
    match postcard::take_from_bytes::<Frame>(bytes) {
        // Later versions may append fields to these.
        Ok((frame @ (Frame::Hello(_) | Frame::Welcome(_)), _) | (frame, [])) => Ok(frame),
        Ok((frame, rest)) => {
            Err(malformed(format!("{} bytes are left over after {}", rest.len(), frame.kind())))
        }
        Err(why) => Err(malformed(why.to_string())),
    }
}

/// Reads frames.
#[derive(Debug)]
pub struct Reader<R> {
    stream: R,
    buffer: Vec<u8>,
    /// Where the unread bytes begin.
    start: usize,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Reads from a stream after its [opening](super::opening()).
    pub fn new(stream: R) -> Self {
        Reader { stream, buffer: Vec::new(), start: 0 }
    }

    /// The next frame; `None` if the other side closed the connection between two frames.
    ///
    /// # Errors
    /// If the bytes are not a frame. The connection is unusable after that.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: the next call continues with what was read.
    pub async fn next(&mut self) -> Result<Option<Frame>, WireError> {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(Some(frame));
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            self.buffer.reserve(8 * 1024);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                let left = self.buffer.len();
                return if left == 0 { Ok(None) } else { Err(WireError::Truncated(left)) };
            }
        }
    }

    /// Reads and drops everything until the other side closes.
    pub(crate) async fn discard(&mut self) {
        let mut chunk = [0; 8 * 1024];
        while self.stream.read(&mut chunk).await.is_ok_and(|read| read > 0) {}
    }

    fn take(&mut self) -> Result<Option<Frame>, WireError> {
        let bytes = &self.buffer[self.start..];
        let Some((length, rest)) = bytes.split_first_chunk::<LENGTH>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > LONGEST {
            return Err(WireError::TooLong(length as u64));
        }
        let Some(frame) = rest.get(..length) else { return Ok(None) };
        let frame = decode(frame)?;
        self.start += LENGTH + length;
        Ok(Some(frame))
    }
}
