//! The connections that this member dials: one to each other member. All frames for that member use
//! it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio_rustls::TlsConnector;

use super::accept::{HANDSHAKE, Shared};
use super::engine::{Input, OUTBOX};
use crate::name::MemberId;
use crate::wire::{
    Connection, DialError, End, Frame, Hello, Outbox, Pauses, Peer, Reason, Role, Take, dial, run,
};

const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Keeps a connection to one member up, forever.
pub(super) async fn keep(shared: Arc<Shared>, id: MemberId) {
    let Some(peer) = shared.cluster.members.get(id.index()) else { return };
    let whom = format!("{id} at {}", peer.address);
    let mut pauses = Pauses::new(FIRST_PAUSE);
    let mut reported = String::new();
    loop {
        let (why, wrong, refused_us) = match talk(&shared, id, peer, shared.tls().connect).await {
            Ok(end) => {
                pauses.reset();
                reported.clear();
                let why = end.to_string();
                match end {
                    End::Refused(reason) => (why, Some(reason), None),
                    End::RefusedUs(reason) if reason != Reason::Ending => (why, None, Some(reason)),
                    _ => (why, None, None),
                }
            }
            Err(DialError::Refused(reason)) => (String::new(), None, Some(reason)),
            Err(error) => (error.to_string(), error.reason(), None),
        };
        if let Some(wrong) = wrong {
            shared.metrics.refuse(&whom, &wrong);
        } else if let Some(reason) = refused_us {
            shared.metrics.refused_by(&whom, &reason);
        } else if why != reported {
            // The same error is logged once.
            tracing::info!("{whom} cannot be reached: {why}");
            reported = why;
        }
        tokio::select! {
            () = tokio::time::sleep(pauses.next()) => {}
            () = shared.awake[id.index()].notified() => {}
        }
    }
}

/// Dials once, and stays until the connection ends.
async fn talk(
    shared: &Shared,
    id: MemberId,
    peer: &Peer,
    tls: Option<TlsConnector>,
) -> Result<End, DialError> {
    let role = Role::Member { id: shared.me, incarnation: shared.incarnation };
    let (cluster, now, versions) = (Some(shared.fingerprint), shared.clock.now(), shared.versions);
    let hello = Hello { cluster, role, now, versions };
    // The other side may first have to check whether our last connection is alive.
    let dialled = dial(peer, Some(id), tls.as_ref(), hello, HANDSHAKE * 2).await;
    let Connection { reader, writer, welcome, .. } = dialled?;
    shared.check_cluster(welcome.cluster.fingerprint())?;
    shared.check_clock(welcome.now)?;
    let (outbox, inlet) = Outbox::new(OUTBOX);
    _ = shared.engine.send(Input::LinkUp { peer: id, outbox: outbox.clone() }).await;
    shared.metrics.links_made.fetch_add(1, Relaxed);
    tracing::info!("connected to {id}");
    let end = run(reader, writer, &outbox, inlet, Frame::Ping, OnlyPongs).await;
    shared.metrics.links_broken.fetch_add(1, Relaxed);
    _ = shared.engine.send(Input::LinkDown { peer: id }).await;
    Ok(end)
}

/// A member that was dialled sends no other frames.
struct OnlyPongs;

impl Take for OnlyPongs {
    async fn take(&mut self, frame: Frame) -> Result<(), Reason> {
        if frame == Frame::Pong {
            return Ok(());
        }
        let (frame, role) = (frame.kind().to_owned(), "member that was dialled".to_owned());
        Err(Reason::NotItsRole { frame, role })
    }
}
