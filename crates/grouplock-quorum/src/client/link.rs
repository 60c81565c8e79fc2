//! The connection to one member. It is made again whenever it breaks.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::security::ClientSecurity;
use crate::clock::{Clock, time_of_day};
use crate::name::MemberId;
use crate::wire::{
    Connection, DialError, Fingerprint, Frame, Hello, Outbox, Pauses, Peer, Reason, Role, Take,
    Versions, dial, run,
};

/// How long a member may take to welcome us.
const PATIENCE: Duration = Duration::from_secs(3);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// After a connection that lasted this long, the pauses begin again.
const STEADY: Duration = Duration::from_millis(200);
/// How many frames may wait to be written: some for each of very many threads.
const OUTBOX: usize = 1 << 16;

/// A change of the connection.
#[derive(Debug)]
pub(super) enum News {
    /// It is up: where to put frames, and how long one takes.
    Up(Outbox, Duration),
    /// A frame has arrived. [`Frame::Pong`] answers a Ping of the driver.
    Heard(Frame),
    /// It is down, and why.
    Down(String),
}

/// What all connections of a client share.
#[derive(Clone)]
pub(super) struct Dialler {
    pub(super) security: ClientSecurity,
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
        // Our clock may have stood still, and the time of day may have been set. Members compare
        // only this time with theirs.
        let (now, versions) = (time_of_day(), Versions::OURS);
        let hello = Hello { cluster: self.cluster, role, now, versions };
        dial(peer, member, self.security.connector(), hello, PATIENCE).await
    }
}

/// Keeps the connection up until the driver ends. `first` is a connection that is up already.
pub(super) async fn keep(
    dialler: Dialler,
    (member, peer): (MemberId, Peer),
    first: Option<Connection>,
    tell: impl Fn(News) -> bool + Send + Sync + 'static,
) {
    let mut next = first;
    let mut pauses = Pauses::new(FIRST_PAUSE);
    loop {
        let connection = match next.take() {
            Some(connection) => Ok(connection),
            None => dialler.dial(&peer, Some(member)).await,
        };
        let why = match connection {
            Err(error) => error.to_string(),
            Ok(Connection { reader, writer, delay, .. }) => {
                let since = Instant::now();
                let (outbox, inlet) = Outbox::new(OUTBOX);
                if !tell(News::Up(outbox.clone(), delay)) {
                    return;
                }
                // Not a Ping: every Pong that arrives must answer a Ping of the driver.
                let idle = Frame::Pong;
                let end = run(reader, writer, &outbox, inlet, idle, ToDriver(&tell)).await;
                if since.elapsed() >= STEADY {
                    pauses.reset();
                }
                end.to_string()
            }
        };
        if !tell(News::Down(why)) {
            return;
        }
        sleep(pauses.next()).await;
    }
}

struct ToDriver<'a, T>(&'a T);

impl<T: Fn(News) -> bool + Send + Sync> Take for ToDriver<'_, T> {
    async fn take(&mut self, frame: Frame) -> Result<(), Reason> {
        // Without a driver this task ends as well.
        (self.0)(News::Heard(frame));
        Ok(())
    }
}
