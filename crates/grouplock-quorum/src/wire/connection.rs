//! A connection after Welcome, at both ends: a bounded outbox, keep-alive frames, a last frame.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use super::{Frame, PING_AFTER, Reader, Reason, SILENT_AFTER, Stream, WireError, encode};

/// How long the last frame may take.
const LAST_FRAME: Duration = Duration::from_secs(1);

/// The longest pause between two attempts to dial.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

#[derive(Debug)]
enum Outgoing {
    Frame(Frame),
    /// The connection is closed after this frame.
    Last(Frame),
}

/// The frames that a connection must write.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    frames: mpsc::Sender<Outgoing>,
    cut: Arc<Notify>,
}

/// The other side does not read, or is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotSent {
    Full,
    Gone,
}

impl Outbox {
    /// For at most `most` frames. More wait only if the other side does not read.
    pub(crate) fn new(most: usize) -> (Self, Inlet) {
        let (frames, receiver) = mpsc::channel(most);
        let cut = Arc::new(Notify::new());
        (Outbox { frames, cut: cut.clone() }, Inlet { frames: receiver, cut })
    }

    /// Adds a frame. Never waits.
    pub(crate) fn push(&self, frame: Frame) -> Result<(), NotSent> {
        self.put(Outgoing::Frame(frame))
    }

    /// Adds a frame, and closes the connection if there is no room for it.
    pub(crate) fn push_or_cut(&self, frame: Frame) {
        if self.push(frame) == Err(NotSent::Full) {
            self.cut();
        }
    }

    /// Whether less than half of it is taken.
    pub(crate) fn has_room(&self) -> bool {
        self.frames.capacity() > self.frames.max_capacity() / 2
    }

    /// Sends the reason, and closes the connection.
    pub(crate) fn refuse(&self, reason: Reason) {
        if self.put(Outgoing::Last(Frame::Refused { reason })).is_err() {
            self.cut();
        }
    }

    /// Closes the connection without a last frame.
    pub(crate) fn cut(&self) {
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
pub(crate) struct Inlet {
    frames: mpsc::Receiver<Outgoing>,
    cut: Arc<Notify>,
}

/// How a connection ended.
#[derive(Debug, Error)]
pub(crate) enum End {
    /// The other side closed it, or we did on purpose.
    #[error("it closed the connection")]
    Closed,
    /// It broke.
    #[error("{0}")]
    Broken(WireError),
    /// Nothing arrived for too long.
    #[error("it has been silent for {} s", SILENT_AFTER.as_secs())]
    Silent,
    /// We refused a frame.
    #[error("{0}")]
    Refused(Reason),
    /// The other side refused us.
    #[error("it refused us: {0}")]
    RefusedUs(Reason),
}

/// Handles the frames of a connection.
pub(crate) trait Take: Send {
    /// While it waits nothing is read. An error ends the connection.
    fn take(&mut self, frame: Frame) -> impl Future<Output = Result<(), Reason>> + Send;
}

/// Runs a connection until it ends. `take` gets every frame except Ping and Refused. `idle` is
/// written when nothing else was for [`PING_AFTER`].
pub(crate) async fn run<S: Stream>(
    mut reader: Reader<ReadHalf<S>>,
    writer: WriteHalf<S>,
    outbox: &Outbox,
    inlet: Inlet,
    idle: Frame,
    take: impl Take,
) -> End {
    let Inlet { frames, cut } = inlet;
    let mut writing = std::pin::pin!(write_all(writer, frames, idle));
    let end = tokio::select! {
        end = read_all(&mut reader, outbox, take) => end,
        end = &mut writing => return end,
        () = cut.notified() => return End::Closed,
    };
    let reason = match &end {
        End::Refused(reason) => Some(reason.clone()),
        End::Broken(error) => error.reason(),
        End::Closed | End::Silent | End::RefusedUs(_) => None,
    };
    if let Some(reason) = reason {
        outbox.refuse(reason);
        // Reads what the other side still sends. Otherwise the system would drop our last frame
        // with the connection.
        let last = async {
            tokio::select! {
                _ = &mut writing => {}
                () = reader.discard() => {}
            }
            reader.discard().await;
        };
        _ = timeout(LAST_FRAME, last).await;
    }
    end
}

async fn read_all<S: Stream>(
    reader: &mut Reader<ReadHalf<S>>,
    outbox: &Outbox,
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
            // If there is no room, enough other frames show that we are alive.
            Frame::Ping => _ = outbox.push(Frame::Pong),
            Frame::Refused { reason } => return End::RefusedUs(reason),
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
    idle: Frame,
) -> End {
    let (mut some, mut bytes) = (Vec::new(), Vec::new());
    loop {
        bytes.clear();
        let mut last = false;
        match timeout(PING_AFTER, frames.recv_many(&mut some, 64)).await {
            Ok(0) => return End::Closed,
            Ok(_) => {}
            Err(_) => some.push(Outgoing::Frame(idle.clone())),
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

/// The pauses between attempts to dial: each is twice as long as the one before.
pub(crate) struct Pauses {
    first: Duration,
    next: Duration,
}

impl Pauses {
    pub(crate) fn new(first: Duration) -> Self {
        Pauses { first, next: first }
    }

    /// Begins with the first pause again.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }

    /// Between half and all of the pause, so that not all dial a member at once that comes back.
    pub(crate) fn next(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST_PAUSE);
        pause.mul_f64(0.5 + fastrand::f64() / 2.0)
    }
}
