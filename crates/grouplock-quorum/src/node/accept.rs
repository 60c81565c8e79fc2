//! Those who dial this member: who they are, and what they may say.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use tokio::io::split;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::time::{Instant, timeout};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::connection::{End, Outbox, Take, run};
use super::descriptors::Places;
use super::engine::{ConnectionId, Input, Who};
use super::metrics::Metrics;
use super::strangers::{Stranger, Strangers};
use crate::clock::Clock;
use crate::name::MemberId;
use crate::wire::{
    BadOpening, Cluster, Fingerprint, Frame, Hello, Reader, Reason, Role, Stream, Versions,
    Welcome, exchange_openings, is_for, write,
};

/// How long a newcomer has to say who it is, TLS and all.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long a member has to answer when another says it is the same.
const ALIVE: Duration = Duration::from_secs(2);

/// What all connections of a member need.
pub(super) struct House {
    pub(super) me: MemberId,
    pub(super) incarnation: u64,
    pub(super) cluster: Cluster,
    pub(super) fingerprint: Fingerprint,
    pub(super) versions: Versions,
    /// For the connections that are made from now on.
    pub(super) tls: RwLock<Tls>,
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
    pub(super) places: Places,
    /// How many clients are connected.
    pub(super) clients: AtomicUsize,
}

/// A member that is connected to us.
pub(super) struct Guest {
    connection: ConnectionId,
    incarnation: u64,
    outbox: Outbox,
    pong: Arc<Notify>,
}

/// Present or absent together.
#[derive(Clone, Default)]
pub(super) struct Tls {
    pub(super) accept: Option<TlsAcceptor>,
    pub(super) connect: Option<TlsConnector>,
}

impl House {
    pub(super) fn tls(&self) -> Tls {
        self.tls.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

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
pub(super) async fn accept(house: Arc<House>, listener: Arc<TcpListener>) {
    let strangers = Strangers::new(house.places.strangers);
    loop {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Such as too many open files: it may pass.
                tracing::error!("cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Some(stranger) = strangers.admit().await else { return };
        let (house, tls) = (house.clone(), house.tls().accept);
        tokio::spawn(async move {
            house.open.fetch_add(1, Relaxed);
            house.metrics.connections.fetch_add(1, Relaxed);
            secure(&house, stream, address, tls, stranger).await;
            house.open.fetch_sub(1, Relaxed);
        });
    }
}

async fn secure(
    house: &House,
    stream: TcpStream,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    stranger: Stranger,
) {
    // If it cannot be set messages come a little later.
    let _ = stream.set_nodelay(true);
    let whom = address.to_string();
    let Some(tls) = tls else {
        if address.ip().is_loopback() {
            serve(house, stream, whom, None, stranger, Instant::now() + HANDSHAKE).await;
        } else {
            let reason = "plain text is only for this machine".to_owned();
            house.metrics.refuse(&whom, &Reason::Unauthenticated(reason));
        }
        return;
    };
    let by = Instant::now() + HANDSHAKE;
    match soon(house, &whom, &stranger, by, tls.accept(stream)).await {
        Some(Ok(stream)) => {
            let certificates = stream.get_ref().1.peer_certificates();
            let certificate =
                certificates.and_then(|all| all.first()).map(|c| c.clone().into_owned());
            serve(house, stream, whom, certificate, stranger, by).await;
        }
        // Wrong, not broken.
        Some(Err(error)) if error.kind() == ErrorKind::InvalidData => {
            house.metrics.refuse(&whom, &Reason::Unauthenticated(error.to_string()));
        }
        Some(Err(error)) => tracing::debug!("{whom}: {error}"),
        None => {}
    }
}

/// What comes of a step of the handshake; `None` if it took too long, or others took its place meanwhile.
async fn soon<T>(
    house: &House,
    whom: &str,
    stranger: &Stranger,
    by: Instant,
    step: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        done = step => return Some(done),
        () = tokio::time::sleep_until(by) => {
            let why = format!("it did not say who it is within {} s", HANDSHAKE.as_secs());
            house.metrics.refuse(whom, &Reason::OutOfTurn(why));
        }
        () = stranger.evicted() => {
            let (what, most) = ("connections of strangers".to_owned(), house.places.strangers as u64);
            house.metrics.refuse(whom, &Reason::TooMany { what, most });
        }
    }
    None
}

async fn serve<S: Stream>(
    house: &House,
    mut stream: S,
    address: String,
    certificate: Option<CertificateDer<'static>>,
    stranger: Stranger,
    by: Instant,
) {
    let opened = exchange_openings(&mut stream, HANDSHAKE);
    match soon(house, &address, &stranger, by, opened).await {
        Some(Ok(())) => {}
        None => return,
        Some(Err(BadOpening::Version(theirs))) => {
            let theirs = Versions { lowest: theirs, highest: theirs };
            let reason = Reason::Version { theirs, ours: house.versions };
            return house.metrics.refuse(&address, &reason);
        }
        // Who only looks whether somebody listens is not worth a line.
        Some(Err(BadOpening::Io(error))) => return tracing::debug!("{address}: {error}"),
        Some(Err(bad)) => return house.metrics.refuse(&address, &Reason::NotGbp(bad.to_string())),
    }
    let (reader, mut writer) = split(stream);
    let mut reader = Reader::new(reader);
    let (outbox, inlet) = Outbox::new();
    let pong = Arc::new(Notify::new());
    let connection = house.next.fetch_add(1, Relaxed);
    let greeted = greet(house, &mut reader, certificate.as_ref(), connection, &outbox, &pong);
    let (who, version) = match soon(house, &address, &stranger, by, greeted).await {
        Some(Ok(Some(greeted))) => greeted,
        None | Some(Ok(None)) => return,
        Some(Err(reason)) => {
            house.metrics.refuse(&address, &reason);
            let refused = Frame::Refused { reason };
            let _ = timeout(Duration::from_secs(1), write(&mut writer, &refused)).await;
            return;
        }
    };
    drop(stranger);
    let welcome = Frame::Welcome(Welcome {
        cluster: house.cluster.clone(),
        me: house.me,
        incarnation: house.incarnation,
        now: house.clock.now(),
        version,
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
    match who {
        Who::Client(_) => drop(house.clients.fetch_sub(1, Relaxed)),
        Who::Member(peer) => {
            let mut guests = house.guests.lock().await;
            if guests.get(&peer).is_some_and(|guest| guest.connection == connection) {
                guests.remove(&peer);
            }
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

/// Hears who it is, and finds the version to speak; `None` if it went away.
async fn greet<S: Stream>(
    house: &House,
    reader: &mut Reader<tokio::io::ReadHalf<S>>,
    certificate: Option<&CertificateDer<'static>>,
    connection: ConnectionId,
    outbox: &Outbox,
    pong: &Arc<Notify>,
) -> Result<Option<(Who, u16)>, Reason> {
    let hello = match reader.next().await {
        Ok(None) => return Ok(None),
        Ok(Some(Frame::Hello(hello))) => hello,
        Ok(Some(frame)) => {
            return Err(Reason::OutOfTurn(format!("{} before Hello", frame.kind())));
        }
        Err(error) => return error.reason().map_or(Ok(None), Err),
    };
    let Hello { cluster, role, now, versions: theirs } = hello;
    let ours = house.versions;
    let Some(version) = ours.common(theirs) else { return Err(Reason::Version { theirs, ours }) };
    if let Some(theirs) = cluster {
        house.check_cluster(theirs)?;
    }
    house.check_clock(now)?;
    match role {
        Role::Client { client } => {
            let most = house.places.clients;
            // Given back in `serve`, when the connection ends.
            if house.clients.fetch_add(1, Relaxed) < most {
                return Ok(Some((Who::Client(client), version)));
            }
            house.clients.fetch_sub(1, Relaxed);
            Err(Reason::TooMany { what: "clients".to_owned(), most: most as u64 })
        }
        Role::Member { id, incarnation } => {
            if cluster.is_none() {
                return Err(Reason::OutOfTurn("a member's Hello without its cluster".to_owned()));
            }
            identify(house, id, certificate)?;
            let guest =
                Guest { connection, incarnation, outbox: outbox.clone(), pong: pong.clone() };
            seat(house, id, guest).await?;
            house.awake[id.index()].notify_one();
            Ok(Some((Who::Member(id), version)))
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
