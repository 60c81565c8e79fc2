//! The answers of members about what they see.

use std::collections::BTreeMap;

use crate::name::MemberId;
use crate::wire::{Participant, PastStage, Seen, Stage, Waiter};

/// What one member sees.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub(super) rooms: Vec<String>,
    pub(super) stage: Option<Stage>,
    pub(super) inside: Vec<Participant>,
    pub(super) waiting: Vec<Waiter>,
    pub(super) past: Vec<PastStage>,
}

impl Part {
    /// Adds one more piece. Returns `true` if it was the last.
    pub(super) fn take(&mut self, seen: Seen) -> bool {
        match seen {
            Seen::Rooms(rooms) => self.rooms.extend(rooms),
            Seen::Stage(stage) => self.stage = Some(stage),
            Seen::Inside(inside) => self.inside.extend(inside),
            Seen::Waiting(waiting) => self.waiting.extend(waiting),
            Seen::Past(past) => self.past.extend(past),
            Seen::End => return true,
        }
        false
    }
}

/// What the members see that have answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    pub(super) answered: BTreeMap<MemberId, Part>,
    /// The members that have not answered, and why.
    pub(super) missing: BTreeMap<MemberId, String>,
}

impl Parts {
    /// The members with an open stage. They are two if one stage ended and the next began during
    /// the question.
    pub(super) fn holding(&self) -> impl Iterator<Item = (MemberId, &Part, &crate::wire::Inside)> {
        self.answered.iter().filter_map(|(member, part)| {
            let inside = part.stage.as_ref()?.inside.as_ref()?;
            Some((*member, part, inside))
        })
    }

    /// All waiters, and their homes.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (MemberId, &Waiter)> {
        let at = |(member, part)| -> Box<dyn Iterator<Item = _>> {
            let (member, part): (&MemberId, &Part) = (member, part);
            Box::new(part.waiting.iter().map(move |waiter| (*member, waiter)))
        };
        self.answered.iter().flat_map(at)
    }

    /// Whether the parts can be of one moment: one member has the room, and it knows of the waiters
    /// elsewhere.
    pub(super) fn agree(&self) -> bool {
        let mut holding = self.holding();
        let Some((holder, _, inside)) = holding.next() else { return true };
        holding.next().is_none()
            && (inside.contested || self.waiting().all(|(member, _)| member == holder))
    }
}
