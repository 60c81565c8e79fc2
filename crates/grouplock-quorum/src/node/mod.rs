//! A member as a program: sockets, disk, clock and a status page around the protocol core.
//!
//! ```text
//!            accept ──┐                         ┌── links: one connection to each other member
//!   members, clients  ├─ inbox → engine → outboxes┤
//!   status page ──────┘         │               └── clients
//!                            storage
//! ```
//!
//! One task, the engine, owns all rooms and the disk. All other tasks carry frames to it and from
//! it. Queues are bounded: while the engine is behind, connections are not read. A connection that
//! does not read its frames is closed. The protocol repeats lost messages.

mod accept;
mod config;
mod descriptors;
mod engine;
pub(crate) mod hooks;
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

use self::accept::{Shared, Tls};
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
    /// The disk has failed, or its data are wrong. Nothing was sent that depends on unsaved data.
    #[error("{0}")]
    Storage(#[from] StorageError),
    /// A certificate or key is wrong.
    #[error("{0}")]
    Tls(#[from] TlsError),
    /// The coterie is not possible.
    #[error("{0}")]
    Coterie(#[from] CoterieError),
    /// The member is not in the coterie.
    #[error("{0}")]
    Refused(#[from] crate::member::Refused),
    /// The member cannot listen on an address.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// Another error of the system.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The engine has panicked.
    #[error("the engine of the member has panicked: this is a fault of the program")]
    Engine,
}

/// A member that has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Its number.
    pub me: MemberId,
    /// How many members there are.
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

/// Checks the certificates and the coterie without starting.
///
/// # Errors
/// The first error.
pub fn check(config: &Config) -> Result<(), NodeError> {
    config.cluster.coterie.coterie(config.members())?;
    security(config)?;
    Ok(())
}

/// Runs a member until SIGTERM or SIGINT. On SIGHUP it reads its certificates again. It calls
/// `ready` when it listens.
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
    // No remaining task is worth waiting for.
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

/// What stays when a member restarts by itself.
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
    // As if it was stopped and started: holders stay inside, with a new lease.
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
    let shared = Arc::new(Shared {
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
        members: Mutex::new(HashMap::new()),
        next: AtomicU64::new(0),
        open: AtomicU64::new(0),
        capacity: descriptors::capacity(members),
        clients: AtomicUsize::new(0),
    });
    let mut ended = start(engine, inputs)?;
    if let Some(ready) = ready.take() {
        let status = outside.page.as_ref().and_then(|page| page.local_addr().ok());
        ready(&Ready { me, members, listen: config.listen, status });
    }
    // The tasks end with this value.
    let mut tasks = JoinSet::new();
    tasks.spawn(accept::accept(shared.clone(), outside.listener.clone()));
    for other in (0..members).map(MemberId).filter(|other| *other != me) {
        tasks.spawn(link::keep(shared.clone(), other));
    }
    if let Some(page) = &outside.page {
        tasks.spawn(http::serve(shared.clone(), page.clone()));
    }
    let result = loop {
        tokio::select! {
            result = &mut ended => break result,
            _ = outside.hangup.recv() => reload(config, &shared),
            _ = outside.term.recv() => stop(&inbox).await,
            _ = outside.int.recv() => stop(&inbox).await,
        }
    };
    // Last frames are being written. A connection that does not read them is closed without.
    shared.empty().await;
    result.unwrap_or(Err(NodeError::Engine))
}

async fn stop(engine: &mpsc::Sender<Input>) {
    tracing::info!("stopping");
    // If the engine has ended, it has stopped.
    _ = engine.send(Input::Stop).await;
}

/// Reads the certificates again. Open connections stay.
fn reload(config: &Config, shared: &Shared) {
    match security(config) {
        Ok(tls) => {
            *shared.tls.write().unwrap_or_else(PoisonError::into_inner) = tls;
            tracing::info!("certificates were read again");
        }
        Err(error) => tracing::error!("certificates stay as they were: {error}"),
    }
}

/// Runs the engine on a thread of its own: flushing takes time, and connections must go on
/// meanwhile.
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
        // The receiver lives until the program ends.
        _ = end.send(result.map_err(NodeError::from));
    };
    thread.spawn(body).map_err(cannot)?;
    Ok(ended)
}
