//! What all rooms of a process at one place share: the connection, the lease and the watches.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use grouplock_room::RoomError;
use grouplock_room::remote::{self, Clients, Runner as _};
use tokio::sync::{Semaphore, oneshot};

use crate::error::{Failure, OpenError};
use crate::keys::Keys;
use crate::lease::Lease;
use crate::mirror::Mirror;
use crate::rpc::Rpc;
use crate::runner::{REST, Runner};
use crate::settings::Settings;

/// How long the last message to the servers may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// How many requests for entry run at once. More would not be served faster.
const ENTRANCE: usize = 32;

/// The connection of this process to the servers of a place.
pub(crate) struct Client {
    pub(crate) rpc: Arc<Rpc>,
    pub(crate) settings: Settings,
    pub(crate) runner: Arc<Runner>,
    /// All our ids begin with this number. No other id does.
    id: u64,
    next: AtomicU64,
    lease: tokio::sync::Mutex<Option<Arc<Lease>>>,
    mirrors: Mutex<HashMap<Keys, Arc<Mirror>>>,
    /// Limits the requests for entry that run at once.
    pub(crate) entrance: Semaphore,
    /// The process that made this client. A child must not use it after `fork`: it has the sockets
    /// of its parent.
    process: u32,
    /// Ends the lease, then the thread.
    stop: Mutex<Option<oneshot::Sender<Option<Arc<Lease>>>>>,
}

/// The clients of this process.
static CLIENTS: Clients<Settings, Client> = Clients::new();

impl Client {
    /// Returns the client for a place. Makes it if there is none.
    pub(crate) fn of(settings: Settings) -> Result<Arc<Self>, OpenError> {
        CLIENTS.at(settings.clone(), || Client::start(settings))
    }

    fn start(settings: Settings) -> Result<Self, OpenError> {
        let runner = Runner::new(REST)?;
        let rpc = {
            let _within = runner.handle().enter();
            Arc::new(Rpc::new(&settings)?)
        };
        let (stop, stopped) = oneshot::channel::<Option<Arc<Lease>>>();
        let (its_runner, its_rpc) = (Arc::clone(&runner), Arc::clone(&rpc));
        let end = async move {
            // Nothing is held now. Without the lease, others need not wait for its end, and the
            // servers can forget it.
            if let Ok(Some(lease)) = stopped.await
                && lease.good_until().is_some()
            {
                let farewell = its_rpc.revoke(lease.id, Instant::now() + FAREWELL);
                _ = tokio::time::timeout(FAREWELL, farewell).await;
            }
        };
        remote::spawn("grouplock-etcd", move || its_runner.serve(end))?;
        Ok(Client {
            rpc,
            settings,
            runner,
            id: getrandom::u64().map_err(|error| std::io::Error::other(error.to_string()))?,
            next: AtomicU64::new(0),
            lease: tokio::sync::Mutex::new(None),
            mirrors: Mutex::new(HashMap::new()),
            entrance: Semaphore::new(ENTRANCE),
            process: std::process::id(),
            stop: Mutex::new(Some(stop)),
        })
    }

    /// Fails if a parent of this process made the client.
    pub(crate) fn ours(&self) -> Result<(), RoomError> {
        if self.process == std::process::id() { Ok(()) } else { Err(RoomError::Forked) }
    }

    /// Makes an id that nobody else has.
    pub(crate) fn fresh_id(&self) -> String {
        // Relaxed: it matters only that each number is used once.
        format!("{:016x}-{}", self.id, self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// When a request that begins now fails.
    pub(crate) fn patience(&self) -> Instant {
        Instant::now() + self.settings.timeout
    }

    /// Returns a lease that is still trusted. Asks for one if there is none.
    pub(crate) async fn lease(&self) -> Result<Arc<Lease>, Failure> {
        let mut current = self.lease.lock().await;
        if let Some(lease) = current.as_ref().filter(|lease| lease.good_until().is_some()) {
            return Ok(Arc::clone(lease));
        }
        let lease = Lease::grant(&self.rpc, &self.settings, self.patience()).await?;
        tokio::spawn(
            Arc::clone(&lease).keep(Arc::clone(&self.rpc), self.settings.uses_all_members),
        );
        *current = Some(Arc::clone(&lease));
        Ok(lease)
    }

    /// The mirror of a room. All handles of the room share it.
    pub(crate) fn mirror(&self, keys: &Keys) -> Arc<Mirror> {
        let mut mirrors = self.mirrors.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Arc::new(Mirror::new(Arc::clone(&self.rpc), keys, self.settings.ttl / 3));
        Arc::clone(mirrors.entry(keys.clone()).or_insert_with(made))
    }

    /// Runs `work` as a task, and waits for the result. Any thread can call it, inside any
    /// executor.
    pub(crate) fn wait_for<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, RoomError> {
        self.ours()?;
        let (answer, answered) = mpsc::sync_channel(1);
        let _running = Arc::clone(&self.runner).keep_running();
        self.runner.handle().spawn(async move {
            // The caller waits, so the channel is open.
            _ = answer.send(work.await);
        });
        let closed = || Failure::Closed { place: self.settings.place.clone() };
        Ok(answered.recv().unwrap_or_else(|_| Err(closed()))?)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(stop) = stop {
            // If the thread has ended, nothing is left to stop.
            _ = stop.send(self.lease.get_mut().take());
            self.runner.stop_resting();
        }
    }
}
