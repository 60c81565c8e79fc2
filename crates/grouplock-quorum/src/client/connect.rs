//! One client per process and place.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use grouplock_room::remote::{self, Clients};
use grouplock_room::{Place, RoomError, RoomName};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::driver::{Driver, Order};
use super::link::Dialler;
use super::question::Parts;
use super::security::ClientSecurity;
use super::view;
use crate::clock::Clock;
use crate::name::ProcessId;
use crate::node::hooks;
use crate::wire::{Cluster, Connection};

/// How long one host of a place may take before the next is tried.
const NEXT_HOST: Duration = Duration::from_millis(200);
/// How long to wait for the driver, which waits for members itself.
const LOOK: Duration = Duration::from_secs(5);

/// The connection of this process to the cluster at a place. It stays until the process ends, so
/// that a program that looks at a room repeatedly connects only once.
pub(super) struct Client {
    place: String,
    cluster: Cluster,
    orders: UnboundedSender<Order>,
    /// The process that made this client. After `fork` the child has no thread that drives it.
    pid: u32,
    random: RandomState,
    processes: AtomicU64,
    /// Itself, so that it does not end.
    kept: OnceLock<Arc<Client>>,
}

static CLIENTS: Clients<String, Client> = Clients::new();

impl Client {
    /// Returns the client for a place. Makes it if there is none.
    pub(super) fn at(place: &Place) -> Result<Arc<Self>, RoomError> {
        let client = CLIENTS.at(place.to_string(), || Client::start(place))?;
        client.kept.get_or_init(|| Arc::clone(&client));
        Ok(client)
    }

    fn start(place: &Place) -> Result<Self, RoomError> {
        let Place::Servers { hosts, .. } = place else {
            let (place, reason) = (place.to_string(), "expected gbp://host:port");
            return Err(RoomError::BadPlace { place, reason });
        };
        let (hosts, name) = (hosts.clone(), place.to_string());
        let random = RandomState::new();
        let security = ClientSecurity::of(place)?;
        let clock = hooks::clock(Clock::start());
        // Only the random state of the hasher gives this number, so nobody can guess it.
        let dialler = Dialler { security, clock, client: random.hash_one("client"), cluster: None };
        let (orders, inbox) = unbounded_channel();
        let (tell, told) = mpsc::channel();
        let theirs = name.clone();
        let work = move || drive(theirs, &hosts, dialler, &tell, inbox);
        let cannot = |error: std::io::Error| RoomError::Backend(Box::new(error));
        remote::spawn("grouplock-gbp", work).map_err(cannot)?;
        let gone = |_| RoomError::Backend("the thread that talks to the cluster has ended".into());
        let cluster = told.recv().map_err(gone)??;
        let (pid, processes) = (std::process::id(), AtomicU64::new(0));
        let kept = OnceLock::new();
        Ok(Client { place: name, cluster, orders, pid, random, processes, kept })
    }

    pub(super) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(super) fn is_ours(&self) -> bool {
        self.pid == std::process::id()
    }

    /// A number that no other process has.
    pub(super) fn new_process(&self) -> ProcessId {
        ProcessId(self.random.hash_one(self.processes.fetch_add(1, Ordering::Relaxed)))
    }

    pub(super) fn order(&self, order: Order) {
        // The driver ends after us.
        _ = self.orders.send(order);
    }

    /// What the members see.
    ///
    /// # Errors
    /// If no member answers.
    pub(super) fn look(&self, room: Option<&RoomName>) -> Result<Parts, RoomError> {
        if !self.is_ours() {
            return Err(RoomError::Forked);
        }
        let (answer, answered) = mpsc::channel();
        self.order(Order::Look { room: room.map(RoomName::to_string), answer });
        let parts = answered.recv_timeout(LOOK).unwrap_or_default();
        if parts.answered.is_empty() {
            return Err(view::unreachable(&self.place, &self.cluster, &parts));
        }
        Ok(parts)
    }

    /// What the members see of a room, if one of them knows it.
    ///
    /// # Errors
    /// [`RoomError::NoSuchRoom`] if no member that answers knows it.
    pub(super) fn look_at(&self, room: &RoomName) -> Result<Parts, RoomError> {
        let parts = self.look(Some(room))?;
        if parts.answered.values().any(|part| part.stage.is_some()) {
            return Ok(parts);
        }
        Err(RoomError::NoSuchRoom { name: room.to_string(), place: self.place.clone() })
    }

    /// The rooms that the members know.
    pub(super) fn rooms(&self) -> Result<Vec<RoomName>, RoomError> {
        let parts = self.look(None)?;
        let names = parts.answered.values().flat_map(|part| &part.rooms);
        let names: BTreeSet<_> = names.filter_map(|name| RoomName::new(name).ok()).collect();
        Ok(names.into_iter().collect())
    }
}

/// The thread of a client.
fn drive(
    place: String,
    hosts: &[String],
    dialler: Dialler,
    tell: &mpsc::Sender<Result<Cluster, RoomError>>,
    inbox: UnboundedReceiver<Order>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            _ = tell.send(Err(RoomError::Backend(Box::new(error))));
            return;
        }
    };
    runtime.block_on(async move {
        match find(hosts, &dialler).await {
            Ok(connection) => {
                let cluster = connection.welcome.cluster.clone();
                let driver = Driver::new(place, dialler, connection);
                if tell.send(Ok(cluster)).is_ok() {
                    driver.run(inbox).await;
                }
            }
            Err(reason) => _ = tell.send(Err(RoomError::Unreachable { place, reason })),
        }
    });
}

/// Connects to one of the hosts. Tries the next when one fails or is slow.
async fn find(hosts: &[String], dialler: &Dialler) -> Result<Connection, String> {
    let mut failures = Vec::new();
    let mut dials = JoinSet::new();
    let mut rest = hosts.iter();
    loop {
        if let Some(host) = rest.next() {
            let (dialler, host) = (dialler.clone(), host.clone());
            dials.spawn(async move {
                let peer = dialler.security.peer(&host);
                dialler.dial(&peer, None).await.map_err(|error| format!("{host}: {error}"))
            });
        } else if dials.is_empty() {
            return Err(failures.join("; "));
        }
        let patience = if rest.len() > 0 { NEXT_HOST } else { Duration::from_secs(3600) };
        match tokio::time::timeout(patience, dials.join_next()).await {
            Ok(Some(Ok(Ok(connection)))) => return Ok(connection),
            Ok(Some(Ok(Err(failure)))) => failures.push(failure),
            Ok(Some(Err(_)) | None) | Err(_) => {}
        }
    }
}
