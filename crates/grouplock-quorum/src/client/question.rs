//! Asking all members what they see.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::driver::{Driver, Link};
use super::parts::{Part, Parts};
use crate::name::{MemberId, ProcessId};
use crate::time::Time;
use crate::wire::{Frame, Seen};

/// How long members may take to answer. Who is slower is named as missing.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is asked, and who has not answered.
pub(super) struct Question {
    pub(super) room: Option<String>,
    extent: Extent,
    /// Those who have not answered yet, with the beginning of their answers.
    pub(super) open: BTreeMap<MemberId, Part>,
    pub(super) parts: Parts,
    pub(super) by: Time,
    pub(super) asker: Asker,
}

/// Who wants to know.
pub(super) enum Asker {
    Caller(Sender<Parts>),
    /// Requests in that room.
    Entries(Vec<ProcessId>),
}

/// How much members are to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    /// What is enough to know whether somebody has to wait.
    Brief,
}

impl Question {
    pub(super) fn frame(&self, question: u64) -> Frame {
        Frame::Look { question, room: self.room.clone(), brief: self.extent == Extent::Brief }
    }

    /// That member will not answer.
    pub(super) fn miss(&mut self, member: MemberId, why: &str) {
        if self.open.remove(&member).is_some() {
            self.parts.missing.insert(member, why.to_owned());
        }
    }
}

impl Driver {
    /// Asks all members.
    pub(super) fn ask(&mut self, room: Option<String>, extent: Extent, asker: Asker) {
        self.last_question += 1;
        let number = self.last_question;
        let members = (0..self.links.len() as u16).map(MemberId);
        members.clone().for_each(|member| self.start_link(member, None));
        let by = self.clock.now() + PATIENCE;
        let mut question = Question {
            room,
            extent,
            open: members.map(|member| (member, Part::default())).collect(),
            parts: Parts::default(),
            by,
            asker,
        };
        for (index, link) in self.links.iter().enumerate() {
            match link {
                Link::Up { frames, .. } => {
                    let _ = frames.send(question.frame(number));
                }
                Link::Down { why, .. } => question.miss(MemberId(index as u16), why),
                Link::Unused | Link::Dialling => {}
            }
        }
        self.questions.insert(number, question);
        self.answer_if_done(number);
    }

    fn answer_if_done(&mut self, number: u64) {
        if self.questions.get(&number).is_some_and(|question| question.open.is_empty())
            && let Some(question) = self.questions.remove(&number)
        {
            match question.asker {
                // Who asked may have gone.
                Asker::Caller(answer) => drop(answer.send(question.parts)),
                Asker::Entries(ids) => {
                    let room = question.room.unwrap_or_default();
                    self.weigh_all(&room, &ids, &question.parts);
                }
            }
        }
    }

    /// That member will not answer what was asked.
    pub(super) fn miss(&mut self, member: MemberId, why: &str) {
        let open: Vec<_> = self.questions.keys().copied().collect();
        for number in open {
            if let Some(question) = self.questions.get_mut(&number) {
                question.miss(member, why);
            }
            self.answer_if_done(number);
        }
    }

    /// A piece of an answer.
    pub(super) fn read_seen(&mut self, member: MemberId, number: u64, seen: Seen) {
        let Some(question) = self.questions.get_mut(&number) else { return };
        let Some(part) = question.open.get_mut(&member) else { return };
        if part.take(seen)
            && let Some(part) = question.open.remove(&member)
        {
            question.parts.answered.insert(member, part);
            self.answer_if_done(number);
        }
    }

    /// Who has not answered by now will not.
    pub(super) fn ring_for_questions(&mut self, now: Time) {
        let late = self.questions.iter().filter(|(_, question)| question.by <= now);
        let late: Vec<_> = late.map(|(number, _)| *number).collect();
        for number in late {
            if let Some(question) = self.questions.get_mut(&number) {
                let why = format!("no answer within {} s", PATIENCE.as_secs());
                for member in question.open.keys().copied().collect::<Vec<_>>() {
                    question.miss(member, &why);
                }
            }
            self.answer_if_done(number);
        }
    }
}
