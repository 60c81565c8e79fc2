//! A room on etcd.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use grouplock_room::backend::Submitted;
use grouplock_room::{
    Backend, Capabilities, HolderId, Patience, Phase, Policy, Request, RoomError, RoomName,
    Snapshot, remote,
};
use tokio::sync::{RwLock, oneshot};

use crate::client::Client;
use crate::keys::{self, Keys};
use crate::view::View;
use crate::visit::{self, Submission};
use crate::who::{self, Died, Who};

/// The longest name of a session.
const LONGEST: usize = 1024;

/// A handle of a room.
pub(crate) struct EtcdRoom {
    client: Arc<Client>,
    name: RoomName,
    keys: Keys,
    /// What others see of this process.
    myself: Who,
    /// A barrier: write-locking it proves that all earlier requests are answered.
    barrier: Arc<RwLock<()>>,
    /// The room was empty at the last entry through this handle.
    was_empty: Arc<AtomicBool>,
}

impl EtcdRoom {
    pub(crate) fn new(client: Arc<Client>, name: RoomName, command: Option<&str>) -> Self {
        let keys = Keys::of(&client.settings.prefix, &name);
        let was_empty = Arc::new(AtomicBool::new(true));
        EtcdRoom {
            client,
            name,
            keys,
            myself: who::this_process(command),
            barrier: Arc::default(),
            was_empty,
        }
    }

    /// Returns whether the room has been used and not removed since.
    pub(crate) fn exists(&self) -> Result<bool, RoomError> {
        let (client, remains) = (Arc::clone(&self.client), self.keys.remains());
        let range = self.client.wait_for(async move {
            client.rpc.range(&remains, true, 1, client.patience()).await
        })?;
        Ok(!range.kvs.is_empty())
    }

    /// Removes the room if nobody is present.
    pub(crate) fn remove(&self) -> Result<(), RoomError> {
        let (client, request) = (Arc::clone(&self.client), self.keys.remove());
        let answer = self
            .client
            .wait_for(async move { client.rpc.txn(request, client.patience()).await })?;
        if answer.message.succeeded {
            return Ok(());
        }
        let seen = self.snapshot()?;
        let users = format!("{} inside, {} waiting", seen.holders(), seen.waiters());
        let path = format!("{}/{}", self.client.settings.place, self.name).into();
        Err(RoomError::InUse { path, users })
    }

    fn ask(&self, request: &Request<'_>) -> Result<remote::PendingRequest, RoomError> {
        self.client.ours()?;
        let length = request.session.len();
        if length > LONGEST {
            return Err(RoomError::SessionTooLong { length, max: LONGEST });
        }
        let expected = request.expected.map(|time| u64::try_from(time.as_millis()));
        let who = Who {
            session: request.session.to_owned(),
            since: who::now(),
            priority: request.priority.0,
            expected: expected.map(|time| time.unwrap_or(u64::MAX)),
            ..self.myself.clone()
        };
        // The servers answer a request that may not wait, even if its time is over.
        let patience = if request.patience.exhausted() { Patience::None } else { request.patience };
        let (end, ended) = oneshot::channel();
        let alone = if request.alone { keys::ALONE } else { "" };
        let holder = HolderId::new(self.client.fresh_id() + alone);
        let runner = Arc::clone(&self.client.runner);
        let (pending, desk) = remote::ask_by(runner, holder, patience, move || {
            // If the task has ended, nothing is left to end.
            _ = end.send(());
        });
        let (client, keys, barrier) =
            (Arc::clone(&self.client), self.keys.clone(), Arc::clone(&self.barrier));
        let (patience, was_empty) = (request.patience, Arc::clone(&self.was_empty));
        self.client.runner.handle().spawn(async move {
            let barrier = barrier.read_owned().await;
            visit::serve(
                Submission { client, keys, who, patience, was_empty, barrier },
                desk,
                ended,
            )
            .await;
        });
        Ok(pending)
    }
}

impl Backend for EtcdRoom {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::least(LONGEST);
        capabilities.leases = true;
        capabilities.reports_deaths = true;
        capabilities.alone = true;
        capabilities
    }

    fn kind(&self) -> &'static str {
        "etcd"
    }

    fn submit(&self, request: &Request<'_>) -> Result<Submitted, RoomError> {
        self.ask(request)?.submitted()
    }

    fn begin(&self, request: &Request<'_>) -> Result<Submitted, RoomError> {
        Ok(self.ask(request)?.begun())
    }

    fn snapshot(&self) -> Result<Snapshot, RoomError> {
        let (client, state, barrier) =
            (Arc::clone(&self.client), self.keys.state(), Arc::clone(&self.barrier));
        let range = self.client.wait_for(async move {
            drop(barrier.write().await);
            client.rpc.range(&state, false, 0, client.patience()).await
        })?;
        let revision = range.header.map_or(0, |header| header.revision);
        Ok(picture(&self.name, &View::of(&self.keys, revision, &range.kvs)))
    }
}

/// The snapshot that the keys of a room give.
fn picture(name: &RoomName, view: &View) -> Snapshot {
    let mut snapshot = Snapshot::empty(name.as_str(), Policy::Fifo, SystemTime::now());
    if let Some(died) = &view.died {
        snapshot.deaths = who::read::<Died>(&died.value).total;
    }
    let mut waiting = None;
    let written = |group: &str| view.phase_of(group).map(|phase| phase.epoch);
    for (position, entry) in view.entries() {
        let mut participant = who::read::<Who>(&entry.value).participant(&entry.id);
        let Some(session) = keys::session_of(&entry.group) else { continue };
        let phase = if let Some(mark) = view.mark(entry) {
            participant.since = who::moment(who::read::<Who>(&mark.value).since);
            snapshot.inside.get_or_insert_with(|| {
                snapshot.epoch = written(&entry.group).unwrap_or(position).cast_unsigned();
                Phase::new(session, Vec::new())
            })
        } else {
            if waiting != Some(&entry.group) {
                waiting = Some(&entry.group);
                snapshot.waiting.push(Phase::new(session, Vec::new()));
            }
            let Some(phase) = snapshot.waiting.last_mut() else { continue };
            phase
        };
        phase.members.push(participant);
    }
    snapshot
}
