//! A room as the servers tell it, kept up to date for those who wait in it and those who stay inside for long.
//!
//! A watch is set first and the room read then, so nothing is missed between the two. If the stream breaks, or
//! requests have had to go to another server, the same is done there: what was missed meanwhile is in what is
//! read, and a compaction cannot hurt. While somebody needs it the room is also read from time to time, in case a
//! stream is silent that should not be.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::time::{sleep, sleep_until};

use crate::error::Failure;
use crate::keys::{Keys, Span};
use crate::rpc::Rpc;
use crate::view::{Turn, View};

/// A room that nobody has waited or stayed in for so long is not watched any more.
const IDLE: Duration = Duration::from_secs(60);

/// A room.
pub(crate) struct Mirror {
    rpc: Arc<Rpc>,
    span: Span,
    /// How often to read the room while somebody needs it.
    period: Duration,
    state: Mutex<State>,
}

struct State {
    /// What waiters are given is not changed any more.
    view: Arc<View>,
    waiting: HashMap<i64, oneshot::Sender<(Turn, Arc<View>)>>,
    /// Those inside who want to know when their place is gone.
    staying: HashMap<i64, oneshot::Sender<()>>,
    /// Whether a task keeps it up to date.
    watched: bool,
    /// Whether a watch is set and everything until then is known.
    current: bool,
    /// When somebody needed it last.
    used: Instant,
}

impl State {
    /// Forgets who does not listen any more. Whether somebody does.
    fn is_needed(&mut self) -> bool {
        self.waiting.retain(|_, tell| !tell.is_closed());
        self.staying.retain(|_, tell| !tell.is_closed());
        let needed = !self.waiting.is_empty() || !self.staying.is_empty();
        if needed {
            self.used = Instant::now();
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
            watched: false,
            current: false,
            used: Instant::now(),
        };
        Mirror { rpc, span: keys.state(), period, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The room as it was a moment ago, if it is watched.
    pub(crate) fn current(&self) -> Option<Arc<View>> {
        let state = self.lock();
        state.current.then(|| Arc::clone(&state.view))
    }

    /// Many come to this room: it is worth watching.
    pub(crate) fn keep_watching(self: &Arc<Self>) {
        drop(self.used());
    }

    /// Completes when one who has come at that revision does not have to wait any more: with the reason, and the room.
    pub(crate) async fn turn(self: &Arc<Self>, place: i64) -> (Turn, Arc<View>) {
        loop {
            let told = {
                let mut state = self.used();
                match state.view.turn(place) {
                    Some(turn @ (Turn::Inside | Turn::Come | Turn::Gone)) => {
                        return (turn, Arc::clone(&state.view));
                    }
                    Some(Turn::Wait) | None => {
                        let (tell, told) = oneshot::channel();
                        state.waiting.insert(place, tell);
                        told
                    }
                }
            };
            if let Ok(turn) = told.await {
                return turn;
            }
        }
    }

    /// Completes when one who has come at that revision is not there any more.
    pub(crate) async fn gone(self: &Arc<Self>, place: i64) {
        loop {
            let told = {
                let mut state = self.used();
                if state.view.is_gone(place) {
                    return;
                }
                let (tell, told) = oneshot::channel();
                state.staying.insert(place, tell);
                told
            };
            if told.await.is_ok() {
                return;
            }
        }
    }

    /// Somebody needs it now.
    fn used(self: &Arc<Self>) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        state.used = Instant::now();
        if !state.watched {
            // Nothing old: what is not watched is not known.
            state.watched = true;
            tokio::spawn(keep(Arc::clone(self)));
        }
        state
    }

    /// Reads the room. Whether there was any news in it.
    async fn read(&self) -> Result<bool, Failure> {
        let until = Instant::now() + self.period;
        let range = self.rpc.range(&self.span, false, 0, until).await?;
        let revision = range.header.map_or(0, |header| header.revision);
        Ok(self.update(|view| view.reset(revision, &range.kvs)))
    }

    /// Changes the view and tells those who wait.
    fn update<T>(&self, change: impl FnOnce(&mut View) -> T) -> T {
        let mut state = self.lock();
        let result = change(Arc::make_mut(&mut state.view));
        state.is_needed();
        let State { view, waiting, staying, .. } = &mut *state;
        let turn = view.turns();
        let done = |turn: &Turn| *turn != Turn::Wait;
        for (place, tell) in waiting.extract_if(|place, _| turn(*place).as_ref().is_some_and(done))
        {
            if let Some(turn) = turn(place) {
                // Who does not listen any more has withdrawn.
                _ = tell.send((turn, Arc::clone(view)));
            }
        }
        for (_, tell) in staying.extract_if(|place, _| view.is_gone(*place)) {
            // Who does not listen any more has left.
            _ = tell.send(());
        }
        result
    }

    /// Watches until the stream breaks. `false` if nobody needs it any more.
    async fn watch(&self) -> Result<bool, Failure> {
        let opened = self.rpc.watch(&self.span, Instant::now() + self.period).await?;
        let (node, mut stream) = opened;
        self.read().await?;
        self.lock().current = true;
        let mut check = tokio::time::Instant::now() + self.period;
        // Whether something was read that the stream has not told yet.
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
                        self.rpc.give_up(node);
                        return Ok(true);
                    }
                },
                () = self.rpc.moved_from(node) => return Ok(true),
                () = sleep_until(check) => {
                    check = tokio::time::Instant::now() + self.period;
                    let (needed, used) = {
                        let mut state = self.lock();
                        (state.is_needed(), state.used)
                    };
                    if needed && behind {
                        self.rpc.give_up(node);
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

/// Keeps a mirror up to date until nobody has used it for long.
async fn keep(mirror: Arc<Mirror>) {
    loop {
        let watched = mirror.watch().await;
        mirror.lock().current = false;
        match watched {
            Ok(true) => {}
            Ok(false) => {
                let mut state = mirror.lock();
                // Somebody may have come at the last moment.
                if !state.is_needed() {
                    state.watched = false;
                    return;
                }
            }
            // Whoever waits ends with its lease, if it comes to that.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}
