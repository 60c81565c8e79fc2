//! Whether what holders believed can all have been true at once.

use super::clock::Nanos;

/// Somebody believed to hold the room, from the return of `enter` to the moment it began to leave, was told of a loss, or reached the
/// end of what `valid_until` had promised, whichever came first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Belief {
    pub(crate) worker: usize,
    pub(crate) session: u64,
    pub(crate) epoch: u64,
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
}

/// What contradicts the promises: two sessions at once, members of one phase with different epochs (they would fence each other
/// out), an epoch with two sessions, a later phase with a smaller epoch.
pub(crate) fn contradictions(beliefs: &[Belief]) -> Vec<String> {
    // Who was let in when it was already too late has never believed anything.
    let mut beliefs: Vec<&Belief> = beliefs.iter().filter(|one| one.from < one.to).collect();
    beliefs.sort_by_key(|belief| belief.from);
    let mut found = Vec::new();
    let mut inside: Vec<&Belief> = Vec::new();
    let mut ended: Option<&Belief> = None;
    for new in beliefs {
        inside.retain(|old| {
            let stays = old.to > new.from;
            if !stays && ended.is_none_or(|latest| latest.epoch < old.epoch) {
                ended = Some(old);
            }
            stays
        });
        for old in &inside {
            if old.session != new.session {
                found.push(format!("two sessions at once: {old:?} and {new:?}"));
            } else if old.epoch != new.epoch {
                found.push(format!("two epochs at once: {old:?} and {new:?}"));
            }
        }
        if let Some(old) = ended {
            if new.epoch < old.epoch {
                found.push(format!("the epoch went back: {old:?}, then {new:?}"));
            } else if new.epoch == old.epoch && new.session != old.session {
                found.push(format!("two sessions with one epoch: {old:?} and {new:?}"));
            }
        }
        inside.push(new);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn belief(worker: usize, session: u64, epoch: u64, from: Nanos, to: Nanos) -> Belief {
        Belief { worker, session, epoch, from, to }
    }

    fn verdict(beliefs: &[Belief]) -> String {
        contradictions(beliefs).join("\n")
    }

    #[test]
    fn a_good_history_has_none() {
        let good = [
            belief(0, 1, 5, 10, 20),
            belief(1, 1, 5, 12, 30),
            belief(2, 2, 7, 30, 40),
            belief(3, 1, 8, 45, 50),
            // Told too late: its lease had expired.
            belief(4, 1, 5, 47, 33),
        ];
        assert_eq!(verdict(&good), "");
    }

    #[test]
    fn two_sessions_at_once_are_found() {
        let bad = [belief(0, 1, 5, 10, 20), belief(1, 1, 5, 10, 12), belief(2, 2, 7, 19, 40)];
        assert!(verdict(&bad).contains("two sessions at once: Belief { worker: 0"), "{bad:?}");
    }

    #[test]
    fn a_long_belief_is_not_forgotten_behind_short_ones() {
        let mut bad: Vec<Belief> =
            (0..50).map(|i| belief(1, 1, 5, 100 + i * 10, 105 + i * 10)).collect();
        bad.push(belief(0, 1, 5, 90, 1000));
        bad.push(belief(2, 2, 7, 999, 1001));
        assert!(verdict(&bad).contains("two sessions at once: Belief { worker: 0"));
    }

    #[test]
    fn epochs_that_differ_within_a_phase_are_found() {
        let bad = [belief(0, 1, 5, 10, 20), belief(1, 1, 6, 15, 30)];
        assert!(verdict(&bad).contains("two epochs at once"));
    }

    #[test]
    fn an_epoch_that_goes_back_is_found() {
        let bad = [belief(0, 1, 5, 10, 20), belief(1, 2, 9, 20, 30), belief(2, 1, 8, 30, 40)];
        assert!(verdict(&bad).contains("the epoch went back"));
    }

    #[test]
    fn an_epoch_with_two_sessions_is_found() {
        let bad = [belief(0, 1, 5, 10, 20), belief(1, 2, 5, 20, 30)];
        assert!(verdict(&bad).contains("two sessions with one epoch"));
    }
}
