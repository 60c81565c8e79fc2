//! What members answer when they are asked what they see.

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
    /// Takes in one piece more; true if it was the last.
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

/// What all members see, as far as they have answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    pub(super) answered: BTreeMap<MemberId, Part>,
    /// Who has not, and why.
    pub(super) missing: BTreeMap<MemberId, String>,
}

impl Parts {
    /// The parts of those who know of a stage under way: one, or two if one ended and the other began while they
    /// were asked.
    pub(super) fn holding(&self) -> impl Iterator<Item = (MemberId, &Part, &crate::wire::Inside)> {
        self.answered.iter().filter_map(|(member, part)| {
            let inside = part.stage.as_ref()?.inside.as_ref()?;
            Some((*member, part, inside))
        })
    }

    /// All who wait, and where.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (MemberId, &Waiter)> {
        let at = |(member, part)| -> Box<dyn Iterator<Item = _>> {
            let (member, part): (&MemberId, &Part) = (member, part);
            Box::new(part.waiting.iter().map(move |waiter| (*member, waiter)))
        };
        self.answered.iter().flat_map(at)
    }

    /// Whether the parts can be of one moment: only one has the room, and it has heard of those who wait elsewhere.
    pub(super) fn agree(&self) -> bool {
        let mut holding = self.holding();
        let Some((holder, _, inside)) = holding.next() else { return true };
        holding.next().is_none()
            && (inside.contested || self.waiting().all(|(member, _)| member == holder))
    }
}
