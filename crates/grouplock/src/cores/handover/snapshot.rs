//! Snapshots of a handover lock.

use std::time::Duration;

use super::{ALONE, Handover};
use crate::Snapshot;
use crate::snapshot::WaitingPhase;

impl<S: Copy> Handover<S> {
    /// The snapshot of a lock with these requests in its queue: the number and the process of each.
    pub(super) fn snapshot_of(&self, queue: &[(u64, usize)]) -> Snapshot<S> {
        let (mut shown, more) = self.pool.shown();
        shown.sort_unstable_by_key(|(name, _)| *name);
        let inside = queue.first().map_or(0, |(number, _)| *number);
        let holders = queue.iter().take_while(|(number, _)| *number == inside).count();
        // Holders exchange nodes, so the session inside is found by its number and not by a name.
        let session = shown.iter().find(|(_, shown)| shown.number == inside);
        let session = session.and_then(|(_, shown)| shown.session);
        let mut waiting: Vec<WaitingPhase<S>> = Vec::new();
        let mut before = inside;
        for (number, name) in &queue[holders..] {
            let index = shown.binary_search_by_key(name, |(name, _)| *name);
            let shown = index.map(|index| shown[index].1);
            let shown = shown.ok().filter(|shown| shown.number == *number);
            let age = shown.and_then(|shown| shown.since).map_or(Duration::ZERO, |at| at.elapsed());
            if *number != before {
                let session = shown.and_then(|shown| shown.session);
                waiting.push(WaitingPhase { session, waiters: 0, age });
                before = *number;
            }
            if let Some(phase) = waiting.last_mut() {
                phase.waiters += 1;
                phase.age = phase.age.max(age);
            }
        }
        Snapshot { session, exclusive: inside >= ALONE, holders: holders + more, waiting }
    }
}
