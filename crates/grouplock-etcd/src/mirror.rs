//! A copy of a room, for its waiters and for holders that stay long.
//!
//! The task sets a watch first and reads the room after that, so it misses nothing in between. If
//! the stream breaks, or requests go to another server, it does the same there. The read then
//! contains what was missed, so a compaction cannot hurt. While the mirror is needed, the task also
//! reads the room from time to time. This finds a stream that is silent by mistake.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::time::{sleep, sleep_until};

use crate::error::Failure;
use crate::keys::{Keys, Span};
use crate::rpc::Rpc;
use crate::view::{EntryState, View};

/// After this time without use, the room is no longer watched.
const IDLE: Duration = Duration::from_secs(60);

/// The mirror of a room.
pub(crate) struct Mirror {
    rpc: Arc<Rpc>,
    span: Span,
    /// How often to read the room while the mirror is needed.
    period: Duration,
    state: Mutex<State>,
}

struct State {
    /// A view that a waiter has received never changes.
    view: Arc<View>,
    waiting: HashMap<i64, oneshot::Sender<(EntryState, Arc<View>)>>,
    /// The holders that must learn when their entries are gone.
    staying: HashMap<i64, oneshot::Sender<()>>,
    /// A task updates the mirror.
    has_task: bool,
    /// The watch is set, and the view is complete.
    is_current: bool,
    /// When the mirror was last needed.
    last_used: Instant,
}

impl State {
    /// Removes waiters and holders that no longer listen. Returns whether any is left.
    fn is_needed(&mut self) -> bool {
        self.waiting.retain(|_, tell| !tell.is_closed());
        self.staying.retain(|_, tell| !tell.is_closed());
        let needed = !self.waiting.is_empty() || !self.staying.is_empty();
        if needed {
            self.last_used = Instant::now();
        }
        needed
    }
}

impl Mirror {
    pub(crate) fn new(rpc: Arc<Rpc>, keys: &Keys, period: Duration) -> Self {
        let state = State {
            view: Arc::new(View::new(keys.clone())),
            waiting: HashMap::new(),
            staying: HashMap::new(),
            has_task: false,
            is_current: false,
            last_used: Instant::now(),
        };
        Mirror { rpc, span: keys.state(), period, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The room as it was a moment ago, if it is watched.
    pub(crate) fn current(&self) -> Option<Arc<View>> {
        let state = self.lock();
        state.is_current.then(|| Arc::clone(&state.view))
    }

    /// Starts the watch of a room that has many requests.
    pub(crate) fn keep_watching(self: &Arc<Self>) {
        drop(self.use_now());
    }

    /// Completes when the entry at `position` need not wait any more, with the reason and the room.
    pub(crate) async fn end_of_wait(self: &Arc<Self>, position: i64) -> (EntryState, Arc<View>) {
        loop {
            let told = {
                let mut state = self.use_now();
                match state.view.entry_state(position) {
                    Some(EntryState::Waits) | None => {
                        let (tell, told) = oneshot::channel();
                        state.waiting.insert(position, tell);
                        told
                    }
                    Some(found) => return (found, Arc::clone(&state.view)),
                }
            };
            if let Ok(found) = told.await {
                return found;
            }
        }
    }

    /// Completes when the entry at `position` is gone.
    pub(crate) async fn gone(self: &Arc<Self>, position: i64) {
        loop {
            let told = {
                let mut state = self.use_now();
                if state.view.is_gone(position) {
                    return;
                }
                let (tell, told) = oneshot::channel();
                state.staying.insert(position, tell);
                told
            };
            if told.await.is_ok() {
                return;
            }
        }
    }

    /// Locks the state, notes the use, and starts the task if it does not run.
    fn use_now(self: &Arc<Self>) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        state.last_used = Instant::now();
        if !state.has_task {
            // The view is old: nothing has watched the room. The task reads it again.
            state.has_task = true;
            tokio::spawn(keep(Arc::clone(self)));
        }
        state
    }

    /// Reads the room. Returns whether the read contained news.
    async fn read(&self) -> Result<bool, Failure> {
        let until = Instant::now() + self.period;
        let range = self.rpc.range(&self.span, false, 0, until).await?;
        let revision = range.header.map_or(0, |header| header.revision);
        Ok(self.update(|view| view.reset(revision, &range.kvs)))
    }

    /// Changes the view and wakes waiters and holders.
    fn update<T>(&self, change: impl FnOnce(&mut View) -> T) -> T {
        let mut state = self.lock();
        let result = change(Arc::make_mut(&mut state.view));
        state.is_needed();
        let State { view, waiting, staying, .. } = &mut *state;
        let state_at = view.entry_states();
        let done = |found: &EntryState| *found != EntryState::Waits;
        for (position, tell) in
            waiting.extract_if(|position, _| state_at(*position).as_ref().is_some_and(done))
        {
            if let Some(found) = state_at(position) {
                // A waiter that no longer listens has withdrawn.
                _ = tell.send((found, Arc::clone(view)));
            }
        }
        for (_, tell) in staying.extract_if(|position, _| view.is_gone(*position)) {
            // A holder that no longer listens has left.
            _ = tell.send(());
        }
        result
    }

    /// Watches until the stream breaks. Returns `false` if the mirror is no longer needed.
    async fn watch(&self) -> Result<bool, Failure> {
        let opened = self.rpc.watch(&self.span, Instant::now() + self.period).await?;
        let (server, mut stream) = opened;
        self.read().await?;
        self.lock().is_current = true;
        let mut check = tokio::time::Instant::now() + self.period;
        // The last read contained news that the stream has not reported yet.
        let mut behind = false;
        loop {
            tokio::select! {
                message = stream.message() => match message {
                    Ok(Some(message)) if !message.canceled => {
                        behind &= message.events.is_empty();
                        self.update(|view| view.apply(&message.events));
                    }
                    Ok(_) => return Ok(true),
                    Err(_) => {
                        self.rpc.give_up(server);
                        return Ok(true);
                    }
                },
                () = self.rpc.moved_from(server) => return Ok(true),
                () = sleep_until(check) => {
                    check = tokio::time::Instant::now() + self.period;
                    let (needed, used) = {
                        let mut state = self.lock();
                        (state.is_needed(), state.last_used)
                    };
                    if needed && behind {
                        self.rpc.give_up(server);
                        return Ok(true);
                    }
                    if needed {
                        behind = self.read().await?;
                    } else if used.elapsed() > IDLE {
                        return Ok(false);
                    }
                }
            }
        }
    }
}

/// Updates a mirror until it has been unused for long.
async fn keep(mirror: Arc<Mirror>) {
    loop {
        let ended = mirror.watch().await;
        mirror.lock().is_current = false;
        match ended {
            Ok(true) => {}
            Ok(false) => {
                let mut state = mirror.lock();
                // A request may have come at the last moment.
                if !state.is_needed() {
                    state.has_task = false;
                    return;
                }
            }
            // If this goes on, the waiters end with their lease.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}
