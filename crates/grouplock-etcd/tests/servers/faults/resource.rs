//! The resource that a room protects. It remembers the largest epoch and refuses smaller ones.

use super::clock::Nanos;

/// The resource.
#[derive(Debug, Default)]
pub(crate) struct Resource {
    /// The largest epoch, and its session.
    seen: Option<(u64, u64)>,
    accepted: u64,
    refused: Vec<Refused>,
    misuses: Vec<String>,
}

/// A use that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The holding of the use.
    pub(crate) holding: usize,
    pub(crate) epoch: u64,
    /// The largest epoch at that time.
    pub(crate) largest: u64,
    pub(crate) at: Nanos,
    /// The time until which the holder was promised exclusion.
    pub(crate) valid_until: Nanos,
}

impl Resource {
    /// Uses the resource. Returns whether it accepted.
    pub(crate) fn take(
        &mut self,
        holding: usize,
        (epoch, session): (u64, u64),
        at: Nanos,
        valid_until: Nanos,
    ) -> bool {
        match self.seen {
            Some((largest, _)) if epoch < largest => {
                self.refused.push(Refused { holding, epoch, largest, at, valid_until });
                return false;
            }
            Some((largest, other)) if epoch == largest && session != other => {
                self.misuses
                    .push(format!("epoch {epoch} was used by sessions {other} and {session}"));
            }
            _ => {}
        }
        self.seen = Some((epoch, session));
        self.accepted += 1;
        true
    }

    pub(crate) fn accepted(&self) -> u64 {
        self.accepted
    }

    pub(crate) fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// The uses that contradict the promises, without holdings that were taken away by force.
    /// `excused` finds those.
    pub(crate) fn complaints(&self, excused: impl Fn(usize, Nanos) -> bool) -> Vec<String> {
        let wronged = self
            .refused
            .iter()
            .filter(|one| one.at < one.valid_until && !excused(one.holding, one.at))
            .map(|one| format!("a holder was refused although it held: {one:?}"));
        self.misuses.iter().cloned().chain(wronged).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equal_epoch_is_accepted_and_a_smaller_one_is_not() {
        let mut resource = Resource::default();
        assert!(resource.take(0, (5, 1), 10, 100));
        assert!(resource.take(1, (5, 1), 11, 100));
        assert!(resource.take(2, (7, 2), 120, 200));
        assert!(!resource.take(0, (5, 1), 121, 100));
        assert_eq!((resource.accepted(), resource.refused().len()), (3, 1));
        assert_eq!(resource.complaints(|_, _| false), [""; 0]);
    }

    #[test]
    fn a_holder_that_is_refused_while_it_holds_complains() {
        let mut resource = Resource::default();
        resource.take(0, (7, 2), 10, 100);
        resource.take(1, (5, 1), 20, 100);
        assert!(resource.complaints(|_, _| false)[0].contains("although it held"));
        assert_eq!(resource.complaints(|holding, _| holding == 1), [""; 0]);
    }

    #[test]
    fn two_sessions_with_one_epoch_are_found() {
        let mut resource = Resource::default();
        resource.take(0, (5, 1), 10, 100);
        resource.take(1, (5, 2), 11, 100);
        assert!(resource.complaints(|_, _| false)[0].contains("sessions 1 and 2"));
    }
}
