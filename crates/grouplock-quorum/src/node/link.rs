//! The connections that this member dials: one to each other member, over which everything for it is sent.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::io::split;
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::accept::{HANDSHAKE, House};
use super::connection::{End, Outbox, Stream, Take, run};
use super::engine::Input;
use crate::name::MemberId;
use crate::wire::{
    BadOpening, Frame, Hello, Peer, Reader, Reason, Role, Versions, WireError, exchange_openings,
    write,
};

/// The first pause after a failure; each next one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Why a member could not be reached.
#[derive(Debug, Error)]
enum LinkError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Opening(#[from] BadOpening),
    #[error("{0}")]
    Wire(#[from] WireError),
    #[error("it did not answer in time")]
    Slow,
    #[error("it closed the connection")]
    Closed,
    #[error("plain text is only for this machine, but it is at {0}")]
    Elsewhere(std::net::IpAddr),
    /// Told by it.
    #[error("it refuses this member: {0}")]
    Refused(Reason),
    /// Found by us.
    #[error("{0}")]
    Wrong(Reason),
}

/// Keeps up a connection to one member, for ever.
pub(super) async fn keep(house: Arc<House>, id: MemberId) {
    let Some(peer) = house.cluster.members.get(id.index()) else { return };
    let whom = format!("{id} at {}", peer.address);
    let mut pause = FIRST_PAUSE;
    let mut reported = String::new();
    loop {
        let error = match dial(&house, id, peer, house.tls().connect).await {
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
async fn dial(
    house: &House,
    id: MemberId,
    peer: &Peer,
    tls: Option<TlsConnector>,
) -> Result<LinkError, LinkError> {
    let stream = timeout(HANDSHAKE, connect(peer, tls.is_none())).await;
    let stream = stream.map_err(|_| LinkError::Slow)??;
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return talk(house, id, stream).await };
    let name = ServerName::try_from(peer.name.clone()).map_err(io::Error::other)?;
    let stream = timeout(HANDSHAKE, tls.connect(name, stream)).await;
    match stream.map_err(|_| LinkError::Slow)? {
        Ok(stream) => talk(house, id, stream).await,
        // Wrong, not broken.
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(LinkError::Wrong(Reason::Unauthenticated(error.to_string())))
        }
        Err(error) => Err(error.into()),
    }
}

async fn connect(peer: &Peer, plain: bool) -> Result<TcpStream, LinkError> {
    let mut last = LinkError::Io(io::Error::new(io::ErrorKind::NotFound, "it has no address"));
    for address in lookup_host(&peer.address).await? {
        if plain && !address.ip().is_loopback() {
            return Err(LinkError::Elsewhere(address.ip()));
        }
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error.into(),
        }
    }
    Err(last)
}

async fn talk<S: Stream>(
    house: &House,
    id: MemberId,
    mut stream: S,
) -> Result<LinkError, LinkError> {
    exchange_openings(&mut stream, HANDSHAKE).await?;
    let (reader, mut writer) = split(stream);
    let mut reader = Reader::new(reader);
    let role = Role::Member { id: house.me, incarnation: house.incarnation };
    let (cluster, now) = (Some(house.fingerprint), house.clock.now());
    write(&mut writer, &Frame::Hello(Hello { cluster, role, now, versions: house.versions }))
        .await?;
    // It may have to ask another connection first whether it is alive.
    let answer = timeout(HANDSHAKE * 2, reader.next()).await.map_err(|_| LinkError::Slow)??;
    let welcome = match answer {
        Some(Frame::Welcome(welcome)) => welcome,
        Some(Frame::Refused { reason }) => return Err(LinkError::Refused(reason)),
        Some(frame) => {
            let why = format!("{} instead of Welcome", frame.kind());
            return Err(LinkError::Wrong(Reason::OutOfTurn(why)));
        }
        None => return Err(LinkError::Closed),
    };
    let theirs = Versions { lowest: welcome.version, highest: welcome.version };
    if house.versions.common(theirs).is_none() {
        return Err(LinkError::Wrong(Reason::Version { theirs, ours: house.versions }));
    }
    house.check_cluster(welcome.cluster.fingerprint()).map_err(LinkError::Wrong)?;
    house.check_clock(welcome.now).map_err(LinkError::Wrong)?;
    if welcome.me != id {
        let why = format!("{} answers where {id} should be", welcome.me);
        return Err(LinkError::Wrong(Reason::OutOfTurn(why)));
    }
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
