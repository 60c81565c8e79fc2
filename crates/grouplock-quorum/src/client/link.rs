//! The connection to one member, made again whenever it breaks.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep, timeout};

use super::security::Security;
use crate::clock::Clock;
use crate::name::MemberId;
use crate::wire::{
    Connection, DialError, Fingerprint, Frame, Hello, PING_AFTER, Peer, Role, SILENT_AFTER,
    Versions, WireError, dial, encode,
};

/// How long a member may take to welcome us.
const PATIENCE: Duration = Duration::from_secs(3);
/// The first pause after a failure; then twice as long each time, up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_secs(2);
/// A connection that lasted so long was a good one.
const STEADY: Duration = Duration::from_millis(200);

/// What becomes of the connection.
#[derive(Debug)]
pub(super) enum News {
    /// It stands: where to put frames, and how long one takes.
    Up(UnboundedSender<Frame>, Duration),
    /// A frame has come. [`Frame::Pong`] only for what was put in by who listens here.
    Heard(Frame),
    /// It does not stand, and why.
    Down(String),
}

/// What stays the same for all connections of a client.
#[derive(Clone)]
pub(super) struct Dialler {
    pub(super) security: Security,
    pub(super) clock: Clock,
    /// The client's secret.
    pub(super) client: u64,
    pub(super) cluster: Option<Fingerprint>,
}

impl Dialler {
    pub(super) async fn dial(
        &self,
        peer: &Peer,
        member: Option<MemberId>,
    ) -> Result<Connection, DialError> {
        let role = Role::Client { client: self.client };
        let (now, versions) = (self.clock.now(), Versions::OURS);
        let hello = Hello { cluster: self.cluster, role, now, versions };
        dial(peer, member, self.security.connector(), hello, PATIENCE).await
    }
}

/// Keeps the connection up, beginning with one that stands already if there is one, until nobody listens.
pub(super) async fn keep(
    dialler: Dialler,
    (member, peer): (MemberId, Peer),
    first: Option<Connection>,
    tell: impl Fn(News) -> bool + Send + Sync + 'static,
) {
    let mut next = first;
    let mut pause = FIRST_PAUSE;
    loop {
        let connection = match next.take() {
            Some(connection) => Ok(connection),
            None => dialler.dial(&peer, Some(member)).await.map_err(|error| error.to_string()),
        };
        let why = match connection {
            Err(why) => why,
            Ok(connection) => {
                let since = Instant::now();
                let (frames, outgoing) = unbounded_channel();
                let answers = frames.clone();
                if !tell(News::Up(frames, connection.delay)) {
                    return;
                }
                let why = talk(connection, outgoing, &answers, &tell).await;
                if since.elapsed() >= STEADY {
                    pause = FIRST_PAUSE;
                }
                why
            }
        };
        if !tell(News::Down(why)) {
            return;
        }
        // Not all clients of a member that comes back at the same moment.
        sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

/// Until it breaks: why it did.
async fn talk(
    connection: Connection,
    outgoing: UnboundedReceiver<Frame>,
    answers: &UnboundedSender<Frame>,
    tell: &(impl Fn(News) -> bool + Send + Sync),
) -> String {
    let Connection { mut reader, writer, .. } = connection;
    // For each Ping that was written, whether it is one of those that are listened for.
    let pings = Mutex::new(VecDeque::new());
    let lock = || pings.lock().unwrap_or_else(PoisonError::into_inner);
    let read = async {
        loop {
            let frame = match timeout(SILENT_AFTER, reader.next()).await {
                Err(_) => return format!("it has been silent for {} s", SILENT_AFTER.as_secs()),
                Ok(Err(error)) => return error.to_string(),
                Ok(Ok(None)) => return "it closed the connection".to_owned(),
                Ok(Ok(Some(frame))) => frame,
            };
            match frame {
                Frame::Ping => drop(answers.send(Frame::Pong)),
                Frame::Pong if lock().pop_front() != Some(true) => {}
                Frame::Refused { reason } => return format!("it refused us: {reason}"),
                frame => {
                    if !tell(News::Heard(frame)) {
                        return "nobody listens any more".to_owned();
                    }
                }
            }
        }
    };
    let write = async {
        match send_all(writer, outgoing, |ours| lock().push_back(ours)).await {
            Ok(()) => "nobody talks any more".to_owned(),
            Err(error) => error.to_string(),
        }
    };
    tokio::select! { why = read => why, why = write => why }
}

/// Writes what there is to write together, and a Ping when there has been nothing for long.
async fn send_all<W: tokio::io::AsyncWrite + Unpin>(
    mut writer: W,
    mut outgoing: UnboundedReceiver<Frame>,
    pinged: impl Fn(bool),
) -> Result<(), WireError> {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match timeout(PING_AFTER, outgoing.recv()).await {
            Ok(None) => return Ok(()),
            Err(_) => {
                pinged(false);
                encode(&Frame::Ping, &mut bytes)?;
            }
            Ok(Some(frame)) => {
                let mut frame = Some(frame);
                while let Some(next) = frame {
                    if matches!(next, Frame::Ping) {
                        pinged(true);
                    }
                    encode(&next, &mut bytes)?;
                    frame = outgoing.try_recv().ok();
                }
            }
        }
        writer.write_all(&bytes).await?;
        writer.flush().await?;
    }
}
