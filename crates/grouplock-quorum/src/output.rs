//! What a member asks its caller to do, in order.

use std::collections::VecDeque;

use crate::message::{GroupMessage, PeerMessage};
use crate::name::{MemberId, ProcessId};
use crate::record::Record;

/// One thing to do. The order matters: a record must be on disk before anything after it is sent.
/// (Several can be done together: write all records, flush once, then send.)
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Write it to disk.
    Save(Record),
    /// Send to another member.
    ToMember(MemberId, PeerMessage),
    /// Send to a process.
    ToProcess(ProcessId, GroupMessage),
}

/// Collects the outputs. A message of a member to itself never leaves it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PendingOutputs {
    me: MemberId,
    loopback: VecDeque<PeerMessage>,
    queue: VecDeque<Output>,
}

impl PendingOutputs {
    pub(crate) fn new(me: MemberId) -> Self {
        PendingOutputs { me, loopback: VecDeque::new(), queue: VecDeque::new() }
    }

    pub(crate) fn save(&mut self, record: Record) {
        self.queue.push_back(Output::Save(record));
    }

    pub(crate) fn save_if(&mut self, record: Option<Record>) {
        self.queue.extend(record.map(Output::Save));
    }

    pub(crate) fn send(&mut self, to: MemberId, message: PeerMessage) {
        if to == self.me {
            self.loopback.push_back(message);
        } else {
            self.queue.push_back(Output::ToMember(to, message));
        }
    }

    pub(crate) fn tell(&mut self, to: ProcessId, message: GroupMessage) {
        self.queue.push_back(Output::ToProcess(to, message));
    }

    pub(crate) fn pop_loopback(&mut self) -> Option<PeerMessage> {
        self.loopback.pop_front()
    }

    pub(crate) fn pop(&mut self) -> Option<Output> {
        self.queue.pop_front()
    }
}
