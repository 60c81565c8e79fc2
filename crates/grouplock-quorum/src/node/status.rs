//! The content of `GET /status.json`: this member's part of all rooms.

use serde::Serialize;

use super::metrics::Gauges;
use super::room::Room;
use crate::coterie::Coterie;
use crate::name::MemberId;
use crate::rank::{Precedence, Rank};
use crate::time::Time;
use crate::wire::{About, Cluster};

/// The status. Times are in seconds since 1970, durations in seconds.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    cluster: String,
    fingerprint: String,
    member: u16,
    coterie: String,
    policy: String,
    quorum: Vec<u16>,
    now: f64,
    lease: Option<f64>,
    clients: usize,
    inside: usize,
    waiting: usize,
    members: Vec<MemberStatus>,
    rooms: Vec<RoomStatus>,
}

#[derive(Debug, Serialize)]
struct MemberStatus {
    id: u16,
    address: String,
    name: String,
    /// Whether this member can send to it; true for itself.
    connected: bool,
    in_quorum: bool,
}

#[derive(Debug, Serialize)]
struct RoomStatus {
    room: String,
    stage: u64,
    epoch: u64,
    inside: Option<StageStatus>,
    waiting: Vec<Person>,
    /// The votes that have arrived, while this member competes.
    votes: Option<u16>,
    votes_needed: usize,
    voted_for: Option<VoteStatus>,
    electors: Vec<VoteStatus>,
    recent: Vec<Recent>,
    deaths: u64,
}

#[derive(Debug, Serialize)]
struct StageStatus {
    session: String,
    epoch: u64,
    since: f64,
    contested: bool,
    participants: Vec<Person>,
}

#[derive(Debug, Serialize)]
struct Person {
    process: String,
    session: String,
    since: f64,
    host: Option<String>,
    user: Option<String>,
    pid: Option<u32>,
    command: Option<String>,
    priority: Option<i32>,
    expected: Option<f64>,
}

#[derive(Debug, Serialize)]
struct VoteStatus {
    member: u16,
    stage: u64,
    asked: f64,
}

#[derive(Debug, Serialize)]
struct Recent {
    session: String,
    epoch: u64,
    began: f64,
    duration: f64,
    entries: u64,
    died: bool,
}

fn seconds(time: Time) -> f64 {
    time.as_micros() as f64 / 1e6
}

impl Status {
    pub(super) fn new<'a>(
        me: MemberId,
        cluster: &Cluster,
        coterie: &Coterie,
        connected: &[bool],
        gauges: &Gauges,
        rooms: impl Iterator<Item = &'a Room>,
        now: Time,
    ) -> Self {
        let quorum: Vec<u16> =
            coterie.quorum(me).into_iter().flatten().map(|member| member.0).collect();
        let members = cluster.members.iter().enumerate().map(|(id, peer)| MemberStatus {
            id: id as u16,
            address: peer.address.clone(),
            name: peer.name.clone(),
            connected: id == me.index() || connected.get(id).copied().unwrap_or(false),
            in_quorum: quorum.contains(&(id as u16)),
        });
        Status {
            cluster: cluster.name.clone(),
            fingerprint: cluster.fingerprint().to_string(),
            member: me.0,
            coterie: cluster.coterie.to_string(),
            policy: policy(cluster.settings.precedence),
            now: seconds(now),
            lease: cluster.settings.lease.map(|lease| lease.as_secs_f64()),
            clients: gauges.clients,
            inside: gauges.inside,
            waiting: gauges.waiting,
            members: members.collect(),
            rooms: rooms.map(|room| room_status(room, quorum.len(), now)).collect(),
            quorum,
        }
    }
}

fn policy(precedence: Precedence) -> String {
    match precedence {
        Precedence::Static => "static".to_owned(),
        Precedence::Aged { weight } if weight.is_zero() => "fifo".to_owned(),
        Precedence::Aged { weight } => format!("priority:{}ms", weight.as_millis()),
    }
}

fn room_status(room: &Room, votes_needed: usize, now: Time) -> RoomStatus {
    let stage = room.stage(now);
    let inside = stage.inside.map(|inside| StageStatus {
        participants: room
            .inside()
            .into_iter()
            .map(|p| person(p.process.0, &inside.session, p.since, p.about.as_ref()))
            .collect(),
        session: inside.session,
        epoch: inside.epoch,
        since: seconds(inside.began),
        contested: inside.contested,
    });
    let waiting = room.waiting().into_iter();
    RoomStatus {
        room: room.name.to_string(),
        stage: stage.stage,
        epoch: stage.epoch,
        inside,
        waiting: waiting
            .map(|w| person(w.process.0, &w.session, w.since, w.about.as_ref()))
            .collect(),
        votes: stage.votes,
        votes_needed,
        voted_for: stage.voted_for.as_ref().map(vote),
        electors: stage.electors.iter().map(vote).collect(),
        recent: room
            .past()
            .map(|past| Recent {
                session: past.session.clone(),
                epoch: past.epoch,
                began: seconds(past.began),
                duration: past.ended.since(past.began).as_secs_f64(),
                entries: past.entries,
                died: past.died,
            })
            .collect(),
        deaths: stage.deaths,
    }
}

/// The number of a process is a text, because it does not fit the numbers of JavaScript.
fn person(process: u64, session: &str, since: Time, about: Option<&About>) -> Person {
    Person {
        process: format!("{process:016x}"),
        session: session.to_owned(),
        since: seconds(since),
        host: about.map(|about| about.host.clone()),
        user: about.map(|about| about.user.clone()),
        pid: about.map(|about| about.pid),
        command: about.map(|about| about.command.clone()),
        priority: about.map(|about| about.priority),
        expected: about.and_then(|about| about.expected).map(|time| time.as_secs_f64()),
    }
}

fn vote(rank: &Rank) -> VoteStatus {
    VoteStatus { member: rank.member.0, stage: rank.stage, asked: seconds(rank.claim.asked()) }
}
