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
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Mutex, Notify, mpsc, oneshot};

pub use self::config::{Config, ConfigError, Security};
pub use self::storage::StorageError;

use self::accept::{House, Tls};
use self::engine::{Engine, INBOX, Input};
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

async fn listen(address: SocketAddr) -> Result<TcpListener, NodeError> {
    TcpListener::bind(address).await.map_err(|source| NodeError::Listen { address, source })
}

async fn serve(config: &Config, ready: impl FnOnce(&Ready)) -> Result<(), NodeError> {
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
    let metrics = Arc::new(Metrics::default());
    let cluster = config.cluster.clone();
    let engine = Engine::new(me, cluster.clone(), coterie, clock, metrics.clone(), storage)?;
    let listener = listen(config.listen).await?;
    let page = match config.status {
        Some(status) => Some(listen(status).await?),
        None => None,
    };
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
    let signals =
        |kind| signal(kind).map_err(|source| NodeError::Io { what: "wait for signals", source });
    let (mut term, mut int) =
        (signals(SignalKind::terminate())?, signals(SignalKind::interrupt())?);
    let mut hangup = signals(SignalKind::hangup())?;
    let mut ended = start(engine, inputs)?;
    let status = page.as_ref().and_then(|page| page.local_addr().ok());
    ready(&Ready { me, members, listen: config.listen, status });
    tokio::spawn(accept::accept(house.clone(), listener));
    for other in (0..members).map(MemberId).filter(|other| *other != me) {
        tokio::spawn(link::keep(house.clone(), other));
    }
    if let Some(page) = page {
        tokio::spawn(http::serve(house.clone(), page));
    }
    loop {
        tokio::select! {
            result = &mut ended => return result.unwrap_or(Err(NodeError::Engine)),
            _ = hangup.recv() => reload(config, &house),
            _ = term.recv() => break,
            _ = int.recv() => break,
        }
    }
    tracing::info!("told to end");
    let _ = inbox.send(Input::Stop).await;
    let result = ended.await.unwrap_or(Err(NodeError::Engine));
    // Last words are being written; whoever does not read them has to do without.
    house.empty().await;
    result
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
) -> Result<oneshot::Receiver<Result<(), NodeError>>, NodeError> {
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
