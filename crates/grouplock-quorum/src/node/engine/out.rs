//! The outputs of the engine: first to disk, then to others.

use std::sync::atomic::Ordering::Relaxed;

use super::super::hooks;
use super::super::metrics::{Direction, Gauges};
use super::super::room::{Outputs, To};
use super::super::status;
use super::super::storage::StorageError;
use super::{Accepted, ConnectionId, Engine, OUTBOX, Who};
use crate::name::MemberId;
use crate::time::Time;
use crate::wire::{Frame, NotSent, Reason, Seen};

/// How many records may wait to be written.
const MOST_LATER: usize = 1024;

impl Engine {
    /// Writes the records and sends the frames. Records that can wait are written with the next one
    /// that cannot, or if `all` is set.
    pub(super) fn flush(&mut self, all: bool) -> Result<(), StorageError> {
        let Outputs { save, send } = std::mem::take(&mut self.outputs);
        if !all && save.len() < MOST_LATER && save.iter().all(|(_, record)| record.can_wait()) {
            self.outputs.save = save;
        } else if !save.is_empty() {
            let save = hooks::before_commit(save);
            let voted = hooks::votes(&save);
            if !save.is_empty() {
                self.metrics.flushed(self.storage.commit(save)?);
            }
            hooks::after_commit(voted);
        }
        for (to, frame, repeated) in send {
            self.send(to, frame, repeated);
        }
        for (name, process, attempt, client) in std::mem::take(&mut self.fresh) {
            let Some(member) = self.rooms.get(&name).map(|room| &room.member) else { continue };
            if let Some((waiting, claim)) = member.waits(process)
                && waiting == attempt
            {
                let room = name.to_string();
                let inside = member.stage_inside().map(|stage| stage.session.to_owned());
                let queued = Frame::Queued { room, process, attempt, claim, inside };
                self.send(To::Client(client), queued, false);
            }
        }
        Ok(())
    }

    fn send(&mut self, to: To, frame: Frame, repeated: bool) {
        let kind = match &frame {
            Frame::Peer { message, .. } => Some(message.kind()),
            Frame::Group { message, .. } => Some(message.kind()),
            _ => None,
        };
        let outbox = match to {
            To::Member(peer) => self.links.get(peer.index()).and_then(Option::as_ref),
            To::Client(client) => {
                let connection = self.clients.get(&client);
                let connection = connection.and_then(|id| self.connections.get(id));
                connection.map(|connection| &connection.outbox)
            }
        };
        match outbox.map(|outbox| outbox.push(frame)) {
            Some(Ok(())) => {
                if let Some(kind) = kind {
                    self.metrics.message(kind, Direction::Sent, repeated);
                }
            }
            Some(Err(NotSent::Full)) => {
                self.metrics.unsent.fetch_add(1, Relaxed);
                let whom = match to {
                    To::Member(peer) => peer.to_string(),
                    To::Client(_) => "a client".to_owned(),
                };
                self.metrics.refuse(&whom, &Reason::NotReading(OUTBOX as u64));
                if let Some(outbox) = outbox {
                    outbox.cut();
                }
            }
            Some(Err(NotSent::Gone)) | None => {
                self.metrics.unsent.fetch_add(1, Relaxed);
            }
        }
    }

    /// Refuses one request of a client.
    pub(super) fn deny(&self, connection: ConnectionId, denied: Frame) {
        let Some(Accepted { address, outbox, .. }) = self.connections.get(&connection) else {
            return;
        };
        if let Frame::Denied { reason, .. } = &denied {
            self.metrics.refuse(address, reason);
        }
        outbox.push_or_cut(denied);
    }

    /// Closes a connection. The rest of its frames is ignored.
    pub(in super::super) fn refuse(&mut self, connection: ConnectionId, reason: Reason) {
        let Some(Accepted { who, address, outbox }) = self.connections.remove(&connection) else {
            return;
        };
        if let Who::Client(client) = who
            && self.clients.get(&client) == Some(&connection)
        {
            self.clients.remove(&client);
        }
        self.metrics.refuse(&address, &reason);
        outbox.refuse(reason);
    }

    pub(super) fn look(
        &mut self,
        now: Time,
        connection: ConnectionId,
        question: u64,
        room: Option<&str>,
        brief: bool,
    ) {
        let mut pieces: Vec<Seen> = if let Some(name) = room {
            self.rooms.get(name).map(|room| room.look(now, brief)).unwrap_or_default()
        } else {
            let names: Vec<_> = self.rooms.keys().map(ToString::to_string).collect();
            names.chunks(128).map(|piece| Seen::Rooms(piece.to_vec())).collect()
        };
        pieces.push(Seen::End);
        let Some(Accepted { outbox, .. }) = self.connections.get(&connection) else { return };
        for seen in pieces {
            if outbox.push(Frame::Seen { question, seen }) == Err(NotSent::Full) {
                self.refuse(connection, Reason::NotReading(OUTBOX as u64));
                return;
            }
        }
    }

    pub(super) fn say_goodbye(&self) {
        self.connections.values().for_each(|connection| connection.outbox.refuse(Reason::Ending));
    }

    // ---- what others see ----

    pub(super) fn gauges(&self) -> Gauges {
        let members = self.rooms.values().map(|room| &room.member);
        let (inside, waiting) = members.fold((0, 0), |(inside, waiting), member| {
            (inside + member.inside().count(), waiting + member.waiting().len())
        });
        let all = (0..self.coterie.members()).map(MemberId);
        Gauges {
            rooms: self.rooms.len(),
            inside,
            waiting,
            clients: self.clients.len(),
            members_connected: all.filter(|member| self.is_present(*member)).count(),
            log_bytes: self.storage.length(),
        }
    }

    pub(super) fn status(&self, now: Time) -> serde_json::Value {
        let (present, rooms) = (|member| self.is_present(member), self.rooms.values());
        let Engine { me, cluster, coterie, .. } = self;
        status::status(*me, cluster, coterie, present, &self.gauges(), rooms, now)
    }
}
