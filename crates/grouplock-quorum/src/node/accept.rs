//! The connections that others dial: who they are, and which frames they may send.

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

use super::descriptors::Capacity;
use super::engine::{ConnectionId, Input, OUTBOX, Who};
use super::metrics::Metrics;
use super::strangers::{Stranger, Strangers};
use crate::clock::Clock;
use crate::name::MemberId;
use crate::wire::{
    BadOpening, Cluster, End, Fingerprint, Frame, Hello, Outbox, Reader, Reason, Role, Stream,
    Take, Versions, Welcome, exchange_openings, is_for, run, write,
};

/// How long a new connection has to identify itself, including TLS.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long a member has to answer when another process claims to be the same member.
const ALIVE: Duration = Duration::from_secs(2);

/// What all connections of a member need.
pub(super) struct Shared {
    pub(super) me: MemberId,
    pub(super) incarnation: u64,
    pub(super) cluster: Cluster,
    pub(super) fingerprint: Fingerprint,
    pub(super) versions: Versions,
    /// For connections that are made from now on.
    pub(super) tls: RwLock<Tls>,
    pub(super) clock: Clock,
    pub(super) metrics: Arc<Metrics>,
    pub(super) engine: mpsc::Sender<Input>,
    /// One per member. Notified when that member has dialled us, so it can be reached.
    pub(super) awake: Vec<Notify>,
    /// The members that are connected to us.
    pub(super) members: Mutex<HashMap<MemberId, ConnectedMember>>,
    pub(super) next: AtomicU64,
    /// How many connections are open.
    pub(super) open: AtomicU64,
    pub(super) capacity: Capacity,
    /// How many clients are connected.
    pub(super) clients: AtomicUsize,
}

/// A member that is connected to us.
pub(super) struct ConnectedMember {
    connection: ConnectionId,
    incarnation: u64,
    outbox: Outbox,
    pong: Arc<Notify>,
}

/// Both are present, or none.
#[derive(Clone, Default)]
pub(super) struct Tls {
    pub(super) accept: Option<TlsAcceptor>,
    pub(super) connect: Option<TlsConnector>,
}

impl Shared {
    pub(super) fn tls(&self) -> Tls {
        self.tls.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn check_clock(&self, theirs: crate::Time) -> Result<(), Reason> {
        let now = self.clock.now();
        let apart = theirs.since(now).max(now.since(theirs));
        self.cluster.check_clock(apart)
    }

    pub(super) fn check_cluster(&self, theirs: Fingerprint) -> Result<(), Reason> {
        let ours = self.fingerprint;
        if theirs == ours { Ok(()) } else { Err(Reason::WrongCluster { theirs, ours }) }
    }

    /// Waits until all connections are closed, but at most half a second.
    pub(super) async fn empty(&self) {
        for _ in 0..100 {
            if self.open.load(Relaxed) == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Accepts connections, forever.
pub(super) async fn accept(shared: Arc<Shared>, listener: Arc<TcpListener>) {
    let strangers = Strangers::new(shared.capacity.strangers);
    loop {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // For example too many open files. It may pass.
                tracing::error!("cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Some(stranger) = strangers.admit().await else { return };
        let (shared, tls) = (shared.clone(), shared.tls().accept);
        tokio::spawn(async move {
            shared.open.fetch_add(1, Relaxed);
            shared.metrics.connections.fetch_add(1, Relaxed);
            secure(&shared, stream, address, tls, stranger).await;
            shared.open.fetch_sub(1, Relaxed);
        });
    }
}

async fn secure(
    shared: &Shared,
    stream: TcpStream,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    stranger: Stranger,
) {
    // Without it messages only arrive a little later.
    _ = stream.set_nodelay(true);
    let whom = address.to_string();
    let Some(tls) = tls else {
        if address.ip().is_loopback() {
            serve(shared, stream, whom, None, stranger, Instant::now() + HANDSHAKE).await;
        } else {
            let reason = "plain text is only for clients and members on this machine".to_owned();
            shared.metrics.refuse(&whom, &Reason::Unauthenticated(reason));
        }
        return;
    };
    let by = Instant::now() + HANDSHAKE;
    match soon(shared, &whom, &stranger, by, tls.accept(stream)).await {
        Some(Ok(stream)) => {
            let certificates = stream.get_ref().1.peer_certificates();
            let certificate =
                certificates.and_then(|all| all.first()).map(|c| c.clone().into_owned());
            serve(shared, stream, whom, certificate, stranger, by).await;
        }
        // The other side is wrong, the connection did not just break.
        Some(Err(error)) if error.kind() == ErrorKind::InvalidData => {
            shared.metrics.refuse(&whom, &Reason::Unauthenticated(error.to_string()));
        }
        Some(Err(error)) => tracing::debug!("{whom}: {error}"),
        None => {}
    }
}

/// Runs a step of the handshake; `None` if it took too long, or a newer connection needed the slot.
async fn soon<T>(
    shared: &Shared,
    whom: &str,
    stranger: &Stranger,
    by: Instant,
    step: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        done = step => return Some(done),
        () = tokio::time::sleep_until(by) => {
            let why = format!("it did not identify itself within {} s", HANDSHAKE.as_secs());
            shared.metrics.refuse(whom, &Reason::OutOfTurn(why));
        }
        () = stranger.evicted() => {
            let (what, most) = ("unidentified connections".to_owned(), shared.capacity.strangers as u64);
            shared.metrics.refuse(whom, &Reason::TooMany { what, most });
        }
    }
    None
}

async fn serve<S: Stream>(
    shared: &Shared,
    mut stream: S,
    address: String,
    certificate: Option<CertificateDer<'static>>,
    stranger: Stranger,
    by: Instant,
) {
    let opened = exchange_openings(&mut stream, HANDSHAKE);
    match soon(shared, &address, &stranger, by, opened).await {
        Some(Ok(())) => {}
        None => return,
        Some(Err(BadOpening::Version(theirs))) => {
            let theirs = Versions { lowest: theirs, highest: theirs };
            let reason = Reason::Version { theirs, ours: shared.versions };
            return shared.metrics.refuse(&address, &reason);
        }
        // A port scan is not worth a line in the log.
        Some(Err(BadOpening::Io(error))) => return tracing::debug!("{address}: {error}"),
        Some(Err(bad)) => return shared.metrics.refuse(&address, &Reason::NotGbp(bad.to_string())),
    }
    let (reader, mut writer) = split(stream);
    let mut reader = Reader::new(reader);
    let (outbox, inlet) = Outbox::new(OUTBOX);
    let pong = Arc::new(Notify::new());
    let connection = shared.next.fetch_add(1, Relaxed);
    let greeted = greet(shared, &mut reader, certificate.as_ref(), connection, &outbox, &pong);
    let (who, version) = match soon(shared, &address, &stranger, by, greeted).await {
        Some(Ok(Some(greeted))) => greeted,
        None | Some(Ok(None)) => return,
        Some(Err(reason)) => {
            shared.metrics.refuse(&address, &reason);
            let refused = Frame::Refused { reason };
            _ = timeout(Duration::from_secs(1), write(&mut writer, &refused)).await;
            return;
        }
    };
    drop(stranger);
    let welcome = Frame::Welcome(Welcome {
        cluster: shared.cluster.clone(),
        me: shared.me,
        incarnation: shared.incarnation,
        now: shared.clock.now(),
        version,
    });
    // The outbox is empty, so there is room.
    _ = outbox.push(welcome);
    let joined =
        Input::Joined { connection, who, address: address.clone(), outbox: outbox.clone() };
    if shared.engine.send(joined).await.is_ok() {
        let take = ToEngine { engine: &shared.engine, connection, pong: &pong };
        let end = run(reader, writer, &outbox, inlet, Frame::Ping, take).await;
        match &end {
            End::Broken(error) => {
                error.reason().iter().for_each(|reason| shared.metrics.refuse(&address, reason));
            }
            End::Silent => tracing::info!("{address} was silent for too long: closed"),
            End::Closed | End::Refused(_) | End::RefusedUs(_) => {}
        }
        tracing::debug!("{address}: {end}");
    }
    // If the engine has ended, nobody needs to know.
    _ = shared.engine.send(Input::Left { connection }).await;
    match who {
        Who::Client(_) => _ = shared.clients.fetch_sub(1, Relaxed),
        Who::Member(peer) => {
            let mut members = shared.members.lock().await;
            if members.get(&peer).is_some_and(|member| member.connection == connection) {
                members.remove(&peer);
            }
        }
    }
}

struct ToEngine<'a> {
    engine: &'a mpsc::Sender<Input>,
    connection: ConnectionId,
    pong: &'a Notify,
}

impl Take for ToEngine<'_> {
    async fn take(&mut self, frame: Frame) -> Result<(), Reason> {
        if frame == Frame::Pong {
            self.pong.notify_waiters();
            return Ok(());
        }
        let said = Input::Said { connection: self.connection, frame };
        self.engine.send(said).await.map_err(|_| Reason::Ending)
    }
}

/// Reads who it is, and chooses the version; `None` if it closed the connection.
async fn greet<S: Stream>(
    shared: &Shared,
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
    let ours = shared.versions;
    let Some(version) = ours.common(theirs) else { return Err(Reason::Version { theirs, ours }) };
    if let Some(theirs) = cluster {
        shared.check_cluster(theirs)?;
    }
    shared.check_clock(now)?;
    match role {
        Role::Client { client } => {
            let most = shared.capacity.clients;
            // `serve` counts down when the connection ends.
            if shared.clients.fetch_add(1, Relaxed) < most {
                return Ok(Some((Who::Client(client), version)));
            }
            shared.clients.fetch_sub(1, Relaxed);
            Err(Reason::TooMany { what: "clients".to_owned(), most: most as u64 })
        }
        Role::Member { id, incarnation } => {
            if cluster.is_none() {
                return Err(Reason::OutOfTurn("a member's Hello without its cluster".to_owned()));
            }
            identify(shared, id, certificate)?;
            let member = ConnectedMember {
                connection,
                incarnation,
                outbox: outbox.clone(),
                pong: pong.clone(),
            };
            seat(shared, id, member).await?;
            shared.awake[id.index()].notify_one();
            Ok(Some((Who::Member(id), version)))
        }
    }
}

/// Whether the other side may be that member.
fn identify(
    shared: &Shared,
    id: MemberId,
    certificate: Option<&CertificateDer<'static>>,
) -> Result<(), Reason> {
    let Some(peer) = shared.cluster.members.get(id.index()) else {
        let members = shared.cluster.members.len() as u16;
        return Err(Reason::UnknownMember { member: id, members });
    };
    if id == shared.me {
        return Err(Reason::TwoWithOneId(id));
    }
    match certificate {
        Some(certificate) if !is_for(certificate, &peer.name) => {
            let why =
                format!("it claims to be {id}, but its certificate is not for `{}`", peer.name);
            Err(Reason::Unauthenticated(why))
        }
        _ => Ok(()),
    }
}

/// Makes it the only connection of that member, unless another living process is that member.
async fn seat(shared: &Shared, id: MemberId, member: ConnectedMember) -> Result<(), Reason> {
    let other = {
        let members = shared.members.lock().await;
        members
            .get(&id)
            .filter(|old| old.incarnation != member.incarnation)
            .map(|old| (old.connection, old.outbox.clone(), old.pong.clone()))
    };
    if let Some((connection, outbox, pong)) = other {
        let answer = pong.notified();
        let asked = outbox.push(Frame::Ping);
        if asked.is_ok() && timeout(ALIVE, answer).await.is_ok() {
            return Err(Reason::TwoWithOneId(id));
        }
        tracing::info!("connection {connection} of {id} does not answer; a new one replaces it");
    }
    let mut members = shared.members.lock().await;
    if let Some(old) = members.insert(id, member) {
        old.outbox.cut();
    }
    Ok(())
}
