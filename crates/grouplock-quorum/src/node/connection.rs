//! What both ends of a connection have in common: a bounded outbox, keep-alive, a last word.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use crate::wire::{Frame, PING_AFTER, Reader, Reason, SILENT_AFTER, Stream, WireError, encode};

/// How many frames may wait to be written. More wait only if the other side does not read.
pub(super) const OUTBOX: usize = 1024;

/// How long a last word may take.
const LAST_WORD: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) enum Outgoing {
    Frame(Frame),
    /// The connection is closed when this is written.
    Last(Frame),
}

/// Where frames for one connection are put.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    frames: mpsc::Sender<Outgoing>,
    cut: Arc<Notify>,
}

/// The other side does not read, or is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotSent {
    Full,
    Gone,
}

impl Outbox {
    pub(super) fn new() -> (Self, Inlet) {
        let (frames, receiver) = mpsc::channel(OUTBOX);
        let cut = Arc::new(Notify::new());
        (Outbox { frames, cut: cut.clone() }, Inlet { frames: receiver, cut })
    }

    /// Never waits.
    pub(super) fn push(&self, frame: Frame) -> Result<(), NotSent> {
        self.put(Outgoing::Frame(frame))
    }

    /// Whether less than half of it is taken.
    pub(super) fn has_room(&self) -> bool {
        self.frames.capacity() > OUTBOX / 2
    }

    /// Says why, and closes the connection.
    pub(super) fn refuse(&self, reason: Reason) {
        if self.put(Outgoing::Last(Frame::Refused { reason })).is_err() {
            self.cut();
        }
    }

    /// Closes the connection without a word.
    pub(super) fn cut(&self) {
        self.cut.notify_one();
    }

    fn put(&self, outgoing: Outgoing) -> Result<(), NotSent> {
        self.frames.try_send(outgoing).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NotSent::Full,
            mpsc::error::TrySendError::Closed(_) => NotSent::Gone,
        })
    }
}

/// The other end of an [`Outbox`].
#[derive(Debug)]
pub(super) struct Inlet {
    frames: mpsc::Receiver<Outgoing>,
    cut: Arc<Notify>,
}

/// How a connection ended.
#[derive(Debug)]
pub(super) enum End {
    /// By the other side, or by us on purpose.
    Closed,
    /// It broke.
    Broken(WireError),
    /// Nothing was heard for long.
    Silent,
    /// We refused what came.
    Refused(Reason),
}

/// What becomes of frames that come.
pub(super) trait Take: Send {
    /// While it waits nothing is read. An error ends the connection.
    fn take(&mut self, frame: Frame) -> impl Future<Output = Result<(), Reason>> + Send;
}

/// Runs a connection until it ends. `take` gets every frame but Ping and Pong; while it waits nothing is read. When a Pong comes
/// `pong` is told.
pub(super) async fn run<S: Stream>(
    reader: Reader<ReadHalf<S>>,
    writer: WriteHalf<S>,
    outbox: &Outbox,
    inlet: Inlet,
    pong: &Notify,
    take: impl Take,
) -> End {
    let Inlet { frames, cut } = inlet;
    let mut reader = reader;
    let mut writing = std::pin::pin!(write_all(writer, frames));
    let end = tokio::select! {
        end = read_all(&mut reader, outbox, pong, take) => end,
        end = &mut writing => return end,
        () = cut.notified() => return End::Closed,
    };
    let reason = match &end {
        End::Refused(reason) => Some(reason.clone()),
        End::Broken(error) => error.reason(),
        End::Closed | End::Silent => None,
    };
    if let Some(reason) = reason {
        outbox.refuse(reason);
        // What the other side still sends is read, or the system would throw away our last word with the connection.
        let last = async {
            tokio::select! {
                _ = &mut writing => {}
                () = reader.discard() => {}
            }
            reader.discard().await;
        };
        let _ = timeout(LAST_WORD, last).await;
    }
    end
}

async fn read_all<S: Stream>(
    reader: &mut Reader<ReadHalf<S>>,
    outbox: &Outbox,
    pong: &Notify,
    mut take: impl Take,
) -> End {
    loop {
        let frame = match timeout(SILENT_AFTER, reader.next()).await {
            Err(_) => return End::Silent,
            Ok(Err(error)) => return End::Broken(error),
            Ok(Ok(None)) => return End::Closed,
            Ok(Ok(Some(frame))) => frame,
        };
        match frame {
            // If it cannot be put there is enough else to write.
            Frame::Ping => drop(outbox.push(Frame::Pong)),
            Frame::Pong => pong.notify_waiters(),
            frame => {
                if let Err(reason) = take.take(frame).await {
                    return End::Refused(reason);
                }
            }
        }
    }
}

async fn write_all<S: Stream>(
    mut writer: WriteHalf<S>,
    mut frames: mpsc::Receiver<Outgoing>,
) -> End {
    let (mut some, mut bytes) = (Vec::new(), Vec::new());
    loop {
        bytes.clear();
        let mut last = false;
        match timeout(PING_AFTER, frames.recv_many(&mut some, 64)).await {
            Ok(0) => return End::Closed,
            Ok(_) => {}
            Err(_) => some.push(Outgoing::Frame(Frame::Ping)),
        }
        for outgoing in some.drain(..) {
            let (Outgoing::Frame(frame) | Outgoing::Last(frame)) = &outgoing;
            last |= matches!(outgoing, Outgoing::Last(_));
            if let Err(error) = encode(frame, &mut bytes) {
                tracing::error!("a {} frame was not sent: {error}", frame.kind());
            }
        }
        let written = async {
            writer.write_all(&bytes).await?;
            writer.flush().await?;
            if last { writer.shutdown().await } else { Ok(()) }
        };
        if let Err(error) = written.await {
            return End::Broken(error.into());
        }
        if last {
            return End::Closed;
        }
    }
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Reads and forgets until the other side closes.
    async fn discard(&mut self) {
        let mut chunk = [0; 8 * 1024];
        while self.stream_mut().read(&mut chunk).await.is_ok_and(|read| read > 0) {}
    }
}
