//! The questions to all members about what they see, and their answers.

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::Sender;
use std::time::Duration;

use crate::name::{MemberId, ProcessId};
use crate::time::Time;
use crate::wire::{Frame, Inside, Participant, PastStage, Seen, Stage, Waiter};

/// How long members may take to answer. A slower one counts as missing.
const PATIENCE: Duration = Duration::from_secs(1);

/// The questions without a complete answer.
#[derive(Default)]
pub(super) struct Questions {
    open: HashMap<u64, Question>,
    last: u64,
}

/// A question, and the members that have not answered.
pub(super) struct Question {
    pub(super) room: Option<String>,
    extent: Extent,
    /// The members that have not answered completely, with the beginnings of their answers.
    open: BTreeMap<MemberId, Part>,
    pub(super) parts: Parts,
    by: Time,
    pub(super) asker: Asker,
}

/// Who asks.
pub(super) enum Asker {
    Caller(Sender<Parts>),
    /// Requests in that room.
    Requests(Vec<ProcessId>),
}

/// How much members must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    /// Enough to know whether a request must wait.
    Brief,
}

impl Question {
    fn frame(&self, question: u64) -> Frame {
        Frame::Look { question, room: self.room.clone(), brief: self.extent == Extent::Brief }
    }

    fn miss(&mut self, member: MemberId, why: &str) {
        if self.open.remove(&member).is_some() {
            self.parts.missing.insert(member, why.to_owned());
        }
    }
}

impl Questions {
    /// Adds a question to all members.
    pub(super) fn ask(
        &mut self,
        now: Time,
        members: u16,
        (room, extent): (Option<String>, Extent),
        asker: Asker,
    ) -> Frame {
        let open = (0..members).map(|member| (MemberId(member), Part::default())).collect();
        let by = now + PATIENCE;
        let question = Question { room, extent, open, parts: Parts::default(), by, asker };
        self.last += 1;
        let frame = question.frame(self.last);
        self.open.insert(self.last, question);
        frame
    }

    /// The questions that a member has not answered.
    pub(super) fn unanswered(&self, member: MemberId) -> impl Iterator<Item = Frame> {
        let open = self.open.iter().filter(move |(_, it)| it.open.contains_key(&member));
        open.map(|(number, question)| question.frame(*number))
    }

    /// When the next question ends.
    pub(super) fn due(&self) -> Option<Time> {
        self.open.values().map(|question| question.by).min()
    }

    /// That member will not answer.
    pub(super) fn miss(&mut self, member: MemberId, why: &str) {
        self.open.values_mut().for_each(|question| question.miss(member, why));
    }

    /// A piece of an answer.
    pub(super) fn hear(&mut self, member: MemberId, number: u64, seen: Seen) {
        let Some(question) = self.open.get_mut(&number) else { return };
        let Some(part) = question.open.get_mut(&member) else { return };
        if part.take(seen)
            && let Some(part) = question.open.remove(&member)
        {
            question.parts.answered.insert(member, part);
        }
    }

    /// Members that have not answered by now will not.
    pub(super) fn expire(&mut self, now: Time) {
        let why = format!("no answer within {} s", PATIENCE.as_secs());
        for question in self.open.values_mut().filter(|question| question.by <= now) {
            for member in question.open.keys().copied().collect::<Vec<_>>() {
                question.miss(member, &why);
            }
        }
    }

    /// Takes the questions that every member has answered or missed.
    pub(super) fn take_answered(&mut self) -> Vec<Question> {
        self.open.extract_if(|_, question| question.open.is_empty()).map(|(_, it)| it).collect()
    }
}

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
    pub(super) fn open_stages(&self) -> impl Iterator<Item = (MemberId, &Part, &Inside)> {
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
        let mut open = self.open_stages();
        let Some((holder, _, inside)) = open.next() else { return true };
        open.next().is_none()
            && (inside.contested || self.waiting().all(|(member, _)| member == holder))
    }
}
