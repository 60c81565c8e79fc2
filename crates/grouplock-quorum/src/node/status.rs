//! The content of `GET /status.json`: this member's part of all rooms. Times are in seconds since
//! 1970, durations in seconds.

use serde_json::{Value, json};

use super::metrics::Gauges;
use super::room::Room;
use crate::coterie::Coterie;
use crate::name::{MemberId, ProcessId};
use crate::rank::{Precedence, Rank};
use crate::time::Time;
use crate::wire::{About, Cluster};

/// `is_present`: whether this member can send to another one.
pub(super) fn status<'a>(
    me: MemberId,
    cluster: &Cluster,
    coterie: &Coterie,
    is_present: impl Fn(MemberId) -> bool,
    gauges: &Gauges,
    rooms: impl Iterator<Item = &'a Room>,
    now: Time,
) -> Value {
    let quorum = coterie.quorum(me).into_iter().flatten().copied().collect::<Vec<_>>();
    let members = (0..).map(MemberId).zip(&cluster.members).map(|(id, peer)| {
        json!({
            "id": id,
            "address": peer.address,
            "name": peer.name,
            "connected": id == me || is_present(id),
            "in_quorum": quorum.contains(&id),
        })
    });
    let settings = &cluster.settings;
    json!({
        "cluster": cluster.name,
        "fingerprint": cluster.fingerprint().to_string(),
        "member": me,
        "coterie": cluster.coterie.to_string(),
        "policy": match settings.precedence {
            Precedence::Static => "static".to_owned(),
            Precedence::Aged { weight } if weight.is_zero() => "fifo".to_owned(),
            Precedence::Aged { weight } => format!("priority:{}ms", weight.as_millis()),
        },
        "now": seconds(now),
        "lease": settings.lease.map(|lease| lease.as_secs_f64()),
        "clients": gauges.clients,
        "inside": gauges.inside,
        "waiting": gauges.waiting,
        "members": members.collect::<Vec<_>>(),
        "rooms": rooms.map(|it| room(it, quorum.len(), now)).collect::<Vec<_>>(),
        "quorum": quorum,
    })
}

fn room(room: &Room, votes_needed: usize, now: Time) -> Value {
    let stage = room.stage(now);
    let inside = stage.inside.map(|inside| {
        let people = room.inside().into_iter();
        let people =
            people.map(|it| person(it.process, &inside.session, it.since, it.about.as_ref()));
        json!({
            "participants": people.collect::<Vec<_>>(),
            "session": inside.session,
            "epoch": inside.epoch,
            "since": seconds(inside.began),
            "contested": inside.contested,
        })
    });
    let waiting = room.waiting().into_iter();
    let waiting = waiting.map(|it| person(it.process, &it.session, it.since, it.about.as_ref()));
    let recent = room.past().map(|past| {
        json!({
            "session": past.session,
            "epoch": past.epoch,
            "began": seconds(past.began),
            "duration": past.ended.since(past.began).as_secs_f64(),
            "entries": past.entries,
            "died": past.died,
        })
    });
    json!({
        "room": &*room.name,
        "stage": stage.stage,
        "epoch": stage.epoch,
        "inside": inside,
        "waiting": waiting.collect::<Vec<_>>(),
        // The votes that have arrived, while this member competes.
        "votes": stage.votes,
        "votes_needed": votes_needed,
        "voted_for": stage.voted_for.as_ref().map(vote),
        "electors": stage.electors.iter().map(vote).collect::<Vec<_>>(),
        "recent": recent.collect::<Vec<_>>(),
        "deaths": stage.deaths,
    })
}

/// The number of a process is a text, because it does not fit the numbers of JavaScript.
fn person(process: ProcessId, session: &str, since: Time, about: Option<&About>) -> Value {
    json!({
        "process": format!("{:016x}", process.0),
        "session": session,
        "since": seconds(since),
        "host": about.map(|about| &about.host),
        "user": about.map(|about| &about.user),
        "pid": about.map(|about| about.pid),
        "command": about.map(|about| &about.command),
        "priority": about.map(|about| about.priority),
        "expected": about.and_then(|about| about.expected).map(|time| time.as_secs_f64()),
    })
}

fn vote(rank: &Rank) -> Value {
    json!({ "member": rank.member, "stage": rank.stage, "asked": seconds(rank.claim.asked()) })
}

fn seconds(time: Time) -> f64 {
    time.as_micros() as f64 / 1e6
}
