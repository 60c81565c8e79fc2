//! What all rooms of a process at one place share: a thread that talks to the servers, the lease, the watches.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::time::{Duration, Instant};

use grouplock_room::{RoomError, remote};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Semaphore, oneshot};

use crate::error::{Failure, OpenError};
use crate::keys::Keys;
use crate::lease::Lease;
use crate::mirror::Mirror;
use crate::rpc::Rpc;
use crate::settings::Settings;

/// How long the servers have to hear of our end.
const FAREWELL: Duration = Duration::from_secs(1);

/// How many ask for entry at once. More would not be served faster.
const ENTRANCE: usize = 32;

/// The connection of this process to the servers of a place.
pub(crate) struct Client {
    pub(crate) rpc: Arc<Rpc>,
    pub(crate) settings: Settings,
    pub(crate) runtime: Handle,
    /// What our ids begin with: nobody else's do.
    id: u64,
    next: AtomicU64,
    lease: tokio::sync::Mutex<Option<Arc<Lease>>>,
    mirrors: Mutex<HashMap<Keys, Arc<Mirror>>>,
    /// How many may ask for entry at once.
    pub(crate) entrance: Semaphore,
    /// The process that has made it: a child after `fork` has no thread that talks to the servers.
    process: u32,
    /// Ends the thread, after the lease.
    stop: Mutex<Option<oneshot::Sender<Option<Arc<Lease>>>>>,
}

/// The clients of this process.
static CLIENTS: Mutex<Vec<(u32, Settings, Weak<Client>)>> = Mutex::new(Vec::new());

impl Client {
    /// The client for a place, made if there is none yet.
    pub(crate) fn of(settings: Settings) -> Result<Arc<Self>, OpenError> {
        let process = std::process::id();
        let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|(owner, _, client)| *owner == process && client.strong_count() > 0);
        let known = clients.iter().find(|(_, known, _)| *known == settings);
        if let Some(client) = known.and_then(|(_, _, client)| client.upgrade()) {
            return Ok(client);
        }
        let client = Arc::new(Client::start(settings.clone())?);
        clients.push((process, settings, Arc::downgrade(&client)));
        Ok(client)
    }

    fn start(settings: Settings) -> Result<Self, OpenError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let rpc = {
            let _within = handle.enter();
            Arc::new(Rpc::new(&settings)?)
        };
        let (stop, stopped) = oneshot::channel::<Option<Arc<Lease>>>();
        let theirs = Arc::clone(&rpc);
        let run = move || {
            runtime.block_on(async move {
                // Nothing is held by then, so that others need not wait for the lease; the servers need not
                // remember it either.
                if let Ok(Some(lease)) = stopped.await
                    && lease.good_until().is_some()
                {
                    let farewell = theirs.revoke(lease.id, Instant::now() + FAREWELL);
                    _ = tokio::time::timeout(FAREWELL, farewell).await;
                }
            });
        };
        remote::spawn("grouplock-etcd", run)?;
        Ok(Client {
            rpc,
            settings,
            runtime: handle,
            id: getrandom::u64().map_err(|error| std::io::Error::other(error.to_string()))?,
            next: AtomicU64::new(0),
            lease: tokio::sync::Mutex::new(None),
            mirrors: Mutex::new(HashMap::new()),
            entrance: Semaphore::new(ENTRANCE),
            process: std::process::id(),
            stop: Mutex::new(Some(stop)),
        })
    }

    /// An error if this was made by a parent of this process.
    pub(crate) fn ours(&self) -> Result<(), RoomError> {
        if self.process == std::process::id() { Ok(()) } else { Err(RoomError::Forked) }
    }

    /// An id that nobody else has.
    pub(crate) fn fresh_id(&self) -> String {
        // Relaxed: only that each number is given once matters.
        format!("{:016x}-{}", self.id, self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// When a request that begins now is given up.
    pub(crate) fn patience(&self) -> Instant {
        Instant::now() + self.settings.timeout
    }

    /// A lease that can be trusted.
    pub(crate) async fn lease(&self) -> Result<Arc<Lease>, Failure> {
        let mut current = self.lease.lock().await;
        if let Some(lease) = current.as_ref().filter(|lease| lease.good_until().is_some()) {
            return Ok(Arc::clone(lease));
        }
        let lease = Lease::grant(&self.rpc, &self.settings, self.patience()).await?;
        tokio::spawn(Arc::clone(&lease).keep(Arc::clone(&self.rpc), self.settings.learn));
        *current = Some(Arc::clone(&lease));
        Ok(lease)
    }

    /// The queue of a room, as all its handles see it.
    pub(crate) fn mirror(&self, keys: &Keys) -> Arc<Mirror> {
        let mut mirrors = self.mirrors.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Arc::new(Mirror::new(Arc::clone(&self.rpc), keys, self.settings.ttl / 3));
        Arc::clone(mirrors.entry(keys.clone()).or_insert_with(made))
    }

    /// Does something on the thread that talks to the servers, and waits for it. From any thread and any executor.
    pub(crate) fn wait_for<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, RoomError> {
        self.ours()?;
        let (tell, told) = mpsc::sync_channel(1);
        self.runtime.spawn(async move {
            // Who asked is still there: it waits.
            _ = tell.send(work.await);
        });
        let closed = || Failure::Closed { place: self.settings.place.clone() };
        Ok(told.recv().unwrap_or_else(|_| Err(closed()))?)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(stop) = stop {
            // If the thread is gone there is nothing to stop.
            _ = stop.send(self.lease.get_mut().take());
        }
    }
}
