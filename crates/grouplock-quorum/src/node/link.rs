//! The connections that this member dials: one to each other member, over which everything for it is sent.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;

use super::accept::{HANDSHAKE, House};
use super::connection::{End, Outbox, Take, run};
use super::engine::Input;
use crate::name::MemberId;
use crate::wire::{Connection, DialError, Frame, Hello, Peer, Reason, Role, WireError, dial};

/// The first pause after a failure; each next one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How a connection ended, or why there is none.
#[derive(Debug, Error)]
enum LinkError {
    #[error("{0}")]
    Dial(DialError),
    #[error("{0}")]
    Wire(#[from] WireError),
    #[error("it did not answer in time")]
    Slow,
    #[error("it closed the connection")]
    Closed,
    /// Told by it.
    #[error("it refuses this member: {0}")]
    Refused(Reason),
    /// Found by us.
    #[error("{0}")]
    Wrong(Reason),
}

impl From<DialError> for LinkError {
    fn from(error: DialError) -> Self {
        match (error.reason(), error) {
            (Some(wrong), _) => LinkError::Wrong(wrong),
            (None, DialError::Refused(reason)) => LinkError::Refused(reason),
            (None, error) => LinkError::Dial(error),
        }
    }
}

/// Keeps up a connection to one member, for ever.
pub(super) async fn keep(house: Arc<House>, id: MemberId) {
    let Some(peer) = house.cluster.members.get(id.index()) else { return };
    let whom = format!("{id} at {}", peer.address);
    let mut pause = FIRST_PAUSE;
    let mut reported = String::new();
    loop {
        let error = match talk(&house, id, peer, house.tls().connect).await {
            Ok(error) => {
                // It was up for a while.
                pause = FIRST_PAUSE;
                reported.clear();
                error
            }
            Err(error) => error,
        };
        match &error {
            LinkError::Refused(reason) => house.metrics.refused_by(&whom, reason),
            LinkError::Wrong(reason) => house.metrics.refuse(&whom, reason),
            // The same again and again is said once.
            other if other.to_string() != reported => {
                reported = other.to_string();
                tracing::info!("{whom} cannot be reached: {other}");
            }
            _ => {}
        }
        // Between half and all of it, so that those who lost a member do not all come back at once.
        let wait = pause.mul_f64(0.5 + fastrand::f64() / 2.0);
        pause = (pause * 2).min(LONGEST_PAUSE);
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = house.awake[id.index()].notified() => {}
        }
    }
}

/// Dials once, and stays until the connection ends: then the reason is `Ok`.
async fn talk(
    house: &House,
    id: MemberId,
    peer: &Peer,
    tls: Option<TlsConnector>,
) -> Result<LinkError, LinkError> {
    let role = Role::Member { id: house.me, incarnation: house.incarnation };
    let (cluster, now, versions) = (Some(house.fingerprint), house.clock.now(), house.versions);
    let hello = Hello { cluster, role, now, versions };
    // It may have to ask another connection first whether it is alive.
    let dialled = dial(peer, Some(id), tls.as_ref(), hello, HANDSHAKE * 2).await;
    let Connection { reader, writer, welcome, .. } = dialled?;
    house.check_cluster(welcome.cluster.fingerprint()).map_err(LinkError::Wrong)?;
    house.check_clock(welcome.now).map_err(LinkError::Wrong)?;
    let (outbox, inlet) = Outbox::new();
    let _ = house.engine.send(Input::LinkUp { peer: id, outbox: outbox.clone() }).await;
    house.metrics.links_made.fetch_add(1, Relaxed);
    tracing::info!("connected to {id}");
    let pong = Notify::new();
    let mut refused = None;
    let take = OnlyRefusals(&mut refused);
    let end = run(reader, writer, &outbox, inlet, &pong, take).await;
    house.metrics.links_broken.fetch_add(1, Relaxed);
    let _ = house.engine.send(Input::LinkDown { peer: id }).await;
    Ok(match (refused, end) {
        (Some(Reason::Ending), _) | (None, End::Closed) => LinkError::Closed,
        (Some(reason), _) => LinkError::Refused(reason),
        (None, End::Broken(error)) => LinkError::Wire(error),
        (None, End::Silent) => LinkError::Slow,
        (None, End::Refused(reason)) => LinkError::Wrong(reason),
    })
}

/// Whoever was dialled has nothing to say but that it refuses.
struct OnlyRefusals<'a>(&'a mut Option<Reason>);

impl Take for OnlyRefusals<'_> {
    async fn take(&mut self, frame: Frame) -> Result<(), Reason> {
        match frame {
            Frame::Refused { reason } => {
                *self.0 = Some(reason);
                Ok(())
            }
            other => {
                let (frame, role) = (other.kind().to_owned(), "member that was dialled".to_owned());
                Err(Reason::NotItsRole { frame, role })
            }
        }
    }
}
