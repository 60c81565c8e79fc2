//! A member as a process: sockets, disk, clock and a status page around the protocol core.
//!
//! ```text
//!            accept ──┐                         ┌── links: one connection to each other member
//!   members, clients  ├─ inbox → engine → outboxes┤
//!   status page ──────┘         │               └── clients
//!                            storage
//! ```
//!
//! One task, the engine, owns all rooms and the disk; everything else carries frames to it and from it.
//! Queues are bounded: when the engine is behind, connections are not read; who does not read what it is sent is cut off.
//! The protocol repeats what is lost.

mod accept;
mod config;
mod connection;
mod descriptors;
mod engine;
mod hooks;
mod http;
mod link;
mod memory;
#[doc(hidden)]
pub mod metrics;
mod room;
mod status;
#[doc(hidden)]
pub mod storage;
mod strangers;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use thiserror::Error;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Mutex, Notify, mpsc, oneshot};
use tokio::task::JoinSet;

pub use self::config::{Config, ConfigError, Security};
pub use self::storage::StorageError;

use self::accept::{House, Tls};
use self::engine::{Ended, Engine, INBOX, Input};
use self::metrics::Metrics;
use self::storage::{FORMAT, Fact, Head, Storage};
use crate::clock::Clock;
use crate::coterie::CoterieError;
use crate::name::MemberId;
use crate::wire::{Identity, Memory, TlsError, Versions};

/// Why a member could not start, or ended.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The disk: what is there is not right, or it failed. Nothing was sent that depends on what is not saved.
    #[error("{0}")]
    Storage(#[from] StorageError),
    /// Certificates.
    #[error("{0}")]
    Tls(#[from] TlsError),
    /// Quorums.
    #[error("{0}")]
    Coterie(#[from] CoterieError),
    /// The member is not in the coterie.
    #[error("{0}")]
    Refused(#[from] crate::member::Refused),
    /// An address cannot be used.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// Something else of the operating system.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A part of the program has failed.
    #[error("the member's engine ended without a word: this is a mistake in the program")]
    Engine,
}

/// A member that has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Which one.
    pub me: MemberId,
    /// Of how many.
    pub members: u16,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where its status page is.
    pub status: Option<SocketAddr>,
}

impl std::fmt::Display for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Ready { me, members, listen, status } = self;
        write!(f, "ready: {me} of {members}, listening on {listen}")?;
        status.map_or(Ok(()), |status| write!(f, ", status on http://{status}/"))
    }
}

/// Checks what can be checked without starting: certificates and the coterie.
///
/// # Errors
/// What is wrong.
pub fn check(config: &Config) -> Result<(), NodeError> {
    config.cluster.coterie.coterie(config.members())?;
    security(config)?;
    Ok(())
}

/// Runs a member until SIGTERM or SIGINT; SIGHUP has it read its certificates again. `ready` is called when it listens.
///
/// # Errors
/// If it cannot start, or its disk fails.
pub fn run(config: &Config, ready: impl FnOnce(&Ready)) -> Result<(), NodeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|source| NodeError::Io { what: "start", source })?;
    let result = runtime.block_on(serve(config, ready));
    // Nothing that is still going on is worth waiting for.
    runtime.shutdown_timeout(Duration::from_millis(200));
    result
}

fn security(config: &Config) -> Result<Tls, TlsError> {
    match &config.security {
        Security::Plain => Ok(Tls::default()),
        Security::Tls { cert, key, ca } => {
            let identity = Identity { cert, key, ca };
            let (server, client) = (identity.server_config()?, identity.client_config()?);
            Ok(Tls { accept: Some(server.into()), connect: Some(client.into()) })
        }
    }
}

async fn listen(address: SocketAddr) -> Result<Arc<TcpListener>, NodeError> {
    let listener = TcpListener::bind(address).await;
    listener.map(Arc::new).map_err(|source| NodeError::Listen { address, source })
}

/// What stays when a member starts again by itself.
struct Outside {
    listener: Arc<TcpListener>,
    page: Option<Arc<TcpListener>>,
    term: Signal,
    int: Signal,
    hangup: Signal,
    metrics: Arc<Metrics>,
}

impl Outside {
    async fn new(config: &Config, metrics: Arc<Metrics>) -> Result<Self, NodeError> {
        let signals = |kind| {
            signal(kind).map_err(|source| NodeError::Io { what: "wait for signals", source })
        };
        let page = match config.status {
            Some(status) => Some(listen(status).await?),
            None => None,
        };
        Ok(Outside {
            listener: listen(config.listen).await?,
            page,
            term: signals(SignalKind::terminate())?,
            int: signals(SignalKind::interrupt())?,
            hangup: signals(SignalKind::hangup())?,
            metrics,
        })
    }
}

async fn serve(config: &Config, ready: impl FnOnce(&Ready)) -> Result<(), NodeError> {
    let (mut outside, mut ready) = (None, Some(ready));
    // As if somebody had ended it and started it: those inside stay inside, with a new lease.
    while live(config, &mut outside, &mut ready).await? == Ended::ClockIsWrong {
        tracing::warn!("starts again with the time of day");
    }
    Ok(())
}

async fn live(
    config: &Config,
    outside: &mut Option<Outside>,
    ready: &mut Option<impl FnOnce(&Ready)>,
) -> Result<Ended, NodeError> {
    let tls = RwLock::new(security(config)?);
    let coterie = Arc::new(config.cluster.coterie.coterie(config.members())?);
    let (me, members) = (config.id, config.members());
    let head = Head {
        format: FORMAT,
        cluster: config.cluster.name.clone(),
        me,
        members,
        coterie: config.cluster.coterie,
    };
    let mut storage = Storage::open(&config.data, head)?;
    if hooks::begun() && storage.memory().is_blank() {
        storage.note(Fact::Memory(Memory { generation: 1, ..storage.memory() }))?;
    }
    let clock = hooks::clock(Clock::start());
    let metrics = outside.as_ref().map_or_else(Arc::default, |outside| outside.metrics.clone());
    let cluster = config.cluster.clone();
    let engine = Engine::new(me, cluster.clone(), coterie, clock, metrics.clone(), storage)?;
    if outside.is_none() {
        *outside = Some(Outside::new(config, metrics.clone()).await?);
    }
    let Some(outside) = outside else { return Err(NodeError::Engine) };
    let (inbox, inputs) = mpsc::channel(INBOX);
    let house = Arc::new(House {
        me,
        incarnation: fastrand::u64(..),
        fingerprint: cluster.fingerprint(),
        versions: hooks::versions(Versions::OURS),
        tls,
        awake: cluster.members.iter().map(|_| Notify::new()).collect(),
        cluster,
        clock,
        metrics,
        engine: inbox.clone(),
        guests: Mutex::new(HashMap::new()),
        next: AtomicU64::new(0),
        open: AtomicU64::new(0),
        places: descriptors::places(members),
        clients: AtomicUsize::new(0),
    });
    let mut ended = start(engine, inputs)?;
    if let Some(ready) = ready.take() {
        let status = outside.page.as_ref().and_then(|page| page.local_addr().ok());
        ready(&Ready { me, members, listen: config.listen, status });
    }
    // They end with this.
    let mut tasks = JoinSet::new();
    tasks.spawn(accept::accept(house.clone(), outside.listener.clone()));
    for other in (0..members).map(MemberId).filter(|other| *other != me) {
        tasks.spawn(link::keep(house.clone(), other));
    }
    if let Some(page) = &outside.page {
        tasks.spawn(http::serve(house.clone(), page.clone()));
    }
    let result = loop {
        tokio::select! {
            result = &mut ended => break result,
            _ = outside.hangup.recv() => reload(config, &house),
            _ = outside.term.recv() => stop(&inbox).await,
            _ = outside.int.recv() => stop(&inbox).await,
        }
    };
    // Last words are being written; whoever does not read them has to do without.
    house.empty().await;
    result.unwrap_or(Err(NodeError::Engine))
}

async fn stop(engine: &mpsc::Sender<Input>) {
    tracing::info!("told to end");
    // If it has ended by itself, that is what it was told.
    let _ = engine.send(Input::Stop).await;
}

/// Reads the certificates again. Connections that stand are not touched.
fn reload(config: &Config, house: &House) {
    match security(config) {
        Ok(tls) => {
            *house.tls.write().unwrap_or_else(PoisonError::into_inner) = tls;
            tracing::info!("certificates were read again");
        }
        Err(error) => tracing::error!("certificates stay as they were: {error}"),
    }
}

/// Gives the engine a thread of its own: flushing a disk takes time, and connections have to go on meanwhile.
fn start(
    engine: Engine,
    inputs: mpsc::Receiver<Input>,
) -> Result<oneshot::Receiver<Result<Ended, NodeError>>, NodeError> {
    let cannot = |source| NodeError::Io { what: "start the engine", source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(cannot)?;
    let (end, ended) = oneshot::channel();
    let thread = std::thread::Builder::new().name("engine".to_owned());
    let body = move || {
        let result = runtime.block_on(engine.run(inputs));
        // Whoever waits for it is there until the process ends.
        let _ = end.send(result.map_err(NodeError::from));
    };
    thread.spawn(body).map_err(cannot)?;
    Ok(ended)
}
