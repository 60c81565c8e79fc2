//! Those who dial this member: who they are, and what they may say.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use tokio::io::split;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Notify, Semaphore, mpsc};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::connection::{End, Outbox, Stream, Take, run};
use super::engine::{ConnectionId, Input, Who};
use super::metrics::Metrics;
use crate::clock::Clock;
use crate::name::MemberId;
use crate::wire::{
    BadOpening, Cluster, Fingerprint, Frame, Hello, Reader, Reason, Role, VERSION, Welcome,
    exchange_openings, is_for, write,
};

/// How long a newcomer has to say who it is.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long a member has to answer when another says it is the same.
const ALIVE: Duration = Duration::from_secs(2);
/// How many connections there can be.
const MOST_CONNECTIONS: usize = 8192;

/// What all connections of a member need.
pub(super) struct House {
    pub(super) me: MemberId,
    pub(super) incarnation: u64,
    pub(super) cluster: Cluster,
    pub(super) fingerprint: Fingerprint,
    pub(super) clock: Clock,
    pub(super) metrics: Arc<Metrics>,
    pub(super) engine: mpsc::Sender<Input>,
    /// One for each member: told when it has dialled us, so that it is there.
    pub(super) awake: Vec<Notify>,
    /// The members that are connected to us.
    pub(super) guests: Mutex<HashMap<MemberId, Guest>>,
    pub(super) next: AtomicU64,
    /// How many connections are served.
    pub(super) open: AtomicU64,
}

/// A member that is connected to us.
pub(super) struct Guest {
    connection: ConnectionId,
    incarnation: u64,
    outbox: Outbox,
    pong: Arc<Notify>,
}

impl House {
    pub(super) fn check_clock(&self, theirs: crate::Time) -> Result<(), Reason> {
        let now = self.clock.now();
        let apart = theirs.since(now).max(now.since(theirs));
        let tolerance = self.cluster.clock_tolerance;
        if apart > tolerance { Err(Reason::Clock { apart, tolerance }) } else { Ok(()) }
    }

    pub(super) fn check_cluster(&self, theirs: Fingerprint) -> Result<(), Reason> {
        let ours = self.fingerprint;
        if theirs == ours { Ok(()) } else { Err(Reason::WrongCluster { theirs, ours }) }
    }
}

impl House {
    /// Waits until all connections are closed, but not for long.
    pub(super) async fn empty(&self) {
        for _ in 0..100 {
            if self.open.load(Relaxed) == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Accepts for ever.
pub(super) async fn accept(house: Arc<House>, listener: TcpListener, tls: Option<TlsAcceptor>) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Such as too many open files: it may pass.
                tracing::error!("cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (house, tls) = (house.clone(), tls.clone());
        tokio::spawn(async move {
            house.open.fetch_add(1, Relaxed);
            secure(&house, stream, address, tls).await;
            house.open.fetch_sub(1, Relaxed);
            drop(place);
        });
    }
}

async fn secure(house: &House, stream: TcpStream, address: SocketAddr, tls: Option<TlsAcceptor>) {
    // If it cannot be set messages come a little later.
    let _ = stream.set_nodelay(true);
    house.metrics.connections.fetch_add(1, Relaxed);
    let whom = address.to_string();
    let Some(tls) = tls else {
        if address.ip().is_loopback() {
            serve(house, stream, whom, None).await;
        } else {
            let reason = "plain text is only for this machine".to_owned();
            house.metrics.refuse(&whom, &Reason::Unauthenticated(reason));
        }
        return;
    };
    match timeout(HANDSHAKE, tls.accept(stream)).await {
        Ok(Ok(stream)) => {
            let certificates = stream.get_ref().1.peer_certificates();
            let certificate =
                certificates.and_then(|all| all.first()).map(|c| c.clone().into_owned());
            serve(house, stream, whom, certificate).await;
        }
        // Wrong, not broken.
        Ok(Err(error)) if error.kind() == ErrorKind::InvalidData => {
            house.metrics.refuse(&whom, &Reason::Unauthenticated(error.to_string()));
        }
        Ok(Err(error)) => tracing::debug!("{whom}: {error}"),
        Err(_) => {
            let reason = "no TLS handshake in time".to_owned();
            house.metrics.refuse(&whom, &Reason::Unauthenticated(reason));
        }
    }
}

async fn serve<S: Stream>(
    house: &House,
    mut stream: S,
    address: String,
    certificate: Option<CertificateDer<'static>>,
) {
    match exchange_openings(&mut stream, HANDSHAKE).await {
        Ok(()) => {}
        Err(BadOpening::Version(theirs)) => {
            let reason = Reason::Version { theirs, ours: VERSION };
            return house.metrics.refuse(&address, &reason);
        }
        // Who only looks whether somebody listens is not worth a line.
        Err(BadOpening::Io(error)) => return tracing::debug!("{address}: {error}"),
        Err(bad) => return house.metrics.refuse(&address, &Reason::NotGbp(bad.to_string())),
    }
    let (reader, mut writer) = split(stream);
    let mut reader = Reader::new(reader);
    let (outbox, inlet) = Outbox::new();
    let pong = Arc::new(Notify::new());
    let connection = house.next.fetch_add(1, Relaxed);
    let who =
        match greet(house, &mut reader, certificate.as_ref(), connection, &outbox, &pong).await {
            Ok(Some(who)) => who,
            Ok(None) => return,
            Err(reason) => {
                house.metrics.refuse(&address, &reason);
                let refused = Frame::Refused { reason };
                let _ = timeout(Duration::from_secs(1), write(&mut writer, &refused)).await;
                return;
            }
        };
    let welcome = Frame::Welcome(Welcome {
        cluster: house.cluster.clone(),
        me: house.me,
        incarnation: house.incarnation,
        now: house.clock.now(),
    });
    // The outbox is empty and large.
    let _ = outbox.push(welcome);
    let joined =
        Input::Joined { connection, who, address: address.clone(), outbox: outbox.clone() };
    if house.engine.send(joined).await.is_ok() {
        let take = ToEngine { engine: &house.engine, connection };
        let end = run(reader, writer, &outbox, inlet, &pong, take).await;
        match end {
            End::Refused(reason) => tracing::debug!("{address}: {reason}"),
            End::Broken(error) => {
                if let Some(reason) = error.reason() {
                    house.metrics.refuse(&address, &reason);
                } else {
                    tracing::debug!("{address}: {error}");
                }
            }
            End::Silent => tracing::info!("{address} was silent for long: closed"),
            End::Closed => {}
        }
    }
    // Without an engine there is nobody to tell.
    let _ = house.engine.send(Input::Left { connection }).await;
    if let Who::Member(peer) = who {
        let mut guests = house.guests.lock().await;
        if guests.get(&peer).is_some_and(|guest| guest.connection == connection) {
            guests.remove(&peer);
        }
    }
}

struct ToEngine<'a> {
    engine: &'a mpsc::Sender<Input>,
    connection: ConnectionId,
}

impl Take for ToEngine<'_> {
    async fn take(&mut self, frame: Frame) -> Result<(), Reason> {
        let said = Input::Said { connection: self.connection, frame };
        self.engine.send(said).await.map_err(|_| Reason::Ending)
    }
}

/// Hears who it is; `None` if it went away.
async fn greet<S: Stream>(
    house: &House,
    reader: &mut Reader<tokio::io::ReadHalf<S>>,
    certificate: Option<&CertificateDer<'static>>,
    connection: ConnectionId,
    outbox: &Outbox,
    pong: &Arc<Notify>,
) -> Result<Option<Who>, Reason> {
    let hello = match timeout(HANDSHAKE, reader.next()).await {
        Err(_) => return Err(Reason::OutOfTurn("no Hello in time".to_owned())),
        Ok(Ok(None)) => return Ok(None),
        Ok(Ok(Some(Frame::Hello(hello)))) => hello,
        Ok(Ok(Some(frame))) => {
            return Err(Reason::OutOfTurn(format!("{} before Hello", frame.kind())));
        }
        Ok(Err(error)) => return error.reason().map_or(Ok(None), Err),
    };
    let Hello { cluster, role, now } = hello;
    if let Some(theirs) = cluster {
        house.check_cluster(theirs)?;
    }
    house.check_clock(now)?;
    match role {
        Role::Client { client } => Ok(Some(Who::Client(client))),
        Role::Member { id, incarnation } => {
            if cluster.is_none() {
                return Err(Reason::OutOfTurn("a member's Hello without its cluster".to_owned()));
            }
            identify(house, id, certificate)?;
            let guest =
                Guest { connection, incarnation, outbox: outbox.clone(), pong: pong.clone() };
            seat(house, id, guest).await?;
            house.awake[id.index()].notify_one();
            Ok(Some(Who::Member(id)))
        }
    }
}

/// Whether it may be that member.
fn identify(
    house: &House,
    id: MemberId,
    certificate: Option<&CertificateDer<'static>>,
) -> Result<(), Reason> {
    let Some(peer) = house.cluster.members.get(id.index()) else {
        let members = house.cluster.members.len() as u16;
        return Err(Reason::UnknownMember { member: id, members });
    };
    if id == house.me {
        return Err(Reason::TwoWithOneId(id));
    }
    match certificate {
        Some(certificate) if !is_for(certificate, &peer.name) => {
            let why = format!("it says it is {id}, but its certificate is not for `{}`", peer.name);
            Err(Reason::Unauthenticated(why))
        }
        _ => Ok(()),
    }
}

/// Makes it the one connection of that member, unless another process is that member already.
async fn seat(house: &House, id: MemberId, guest: Guest) -> Result<(), Reason> {
    let other = {
        let guests = house.guests.lock().await;
        guests
            .get(&id)
            .filter(|old| old.incarnation != guest.incarnation)
            .map(|old| (old.connection, old.outbox.clone(), old.pong.clone()))
    };
    if let Some((connection, outbox, pong)) = other {
        let answer = pong.notified();
        let asked = outbox.push(Frame::Ping);
        if asked.is_ok() && timeout(ALIVE, answer).await.is_ok() {
            return Err(Reason::TwoWithOneId(id));
        }
        tracing::info!("connection {connection} of {id} does not answer; another takes its place");
    }
    let mut guests = house.guests.lock().await;
    if let Some(old) = guests.insert(id, guest) {
        old.outbox.cut();
    }
    Ok(())
}
