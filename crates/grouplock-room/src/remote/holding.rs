//! A holding in a room on servers, and its watch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Exchange, Ours, PATIENCE_OF_DROP, Stage, late};
use crate::backend::{Holding, Watch};
use crate::error::RoomError;
use crate::guard::{Recovered, Standing};
use crate::snapshot::HolderId;

/// How often a watch checks whether the machine was suspended.
const GLANCE: Duration = Duration::from_secs(1);

/// A holding in a room on servers.
pub(super) struct RemoteHolding {
    pub(super) ours: Ours,
    pub(super) epoch: u64,
    pub(super) recovered: Option<Recovered>,
}

impl Holding for RemoteHolding {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn holder(&self) -> HolderId {
        self.ours.exchange.holder.clone()
    }

    fn deaths(&self) -> Vec<Recovered> {
        self.recovered.clone().into_iter().collect()
    }

    fn watch(&self) -> Box<dyn Watch> {
        Box::new(RemoteWatch(Arc::clone(&self.ours.exchange)))
    }

    fn leave(self: Box<Self>) -> Result<(), RoomError> {
        let mut state = self.ours.exchange.lock();
        state.lose_if_late();
        if let Stage::Lost(loss, _) = &state.stage {
            return Err(RoomError::Lost(loss.clone()));
        }
        let until = state.valid_until().unwrap_or_else(|| Instant::now() + PATIENCE_OF_DROP);
        drop(state);
        self.ours.end(until);
        match &self.ours.exchange.lock().stage {
            Stage::Lost(loss, _) => Err(RoomError::Lost(loss.clone())),
            // No other session entered before the lease ended, and the lease ends by itself.
            Stage::Leaving => Err(RoomError::Lost(late())),
            _ => Ok(()),
        }
    }
}

impl Drop for RemoteHolding {
    fn drop(&mut self) {
        self.ours.end(Instant::now() + PATIENCE_OF_DROP);
    }
}

/// The watch of a [`RemoteHolding`].
struct RemoteWatch(Arc<Exchange>);

impl Watch for RemoteWatch {
    fn standing(&self) -> Standing {
        self.0.lock().standing()
    }

    fn wait(&self, until: Option<Instant>) -> Standing {
        let mut state = self.0.lock();
        loop {
            let standing = state.standing();
            if standing != Standing::Held || until.is_some_and(|until| until <= Instant::now()) {
                return standing;
            }
            // The machine may be suspended, and no event reports that.
            let soon = state.valid_until().map(|end| end.min(Instant::now() + GLANCE));
            let next = until.into_iter().chain(soon).min();
            state = self.0.wait(state, next);
        }
    }

    /// For a lost holding: when others may enter. It may be in the past.
    fn valid_until(&self) -> Option<Instant> {
        self.0.lock().valid_until()
    }
}
