//! What a room looks like, as dictionaries: the same fields as `grouplock status --json`.

use std::time::{SystemTime, UNIX_EPOCH};

use grouplock_room::{Participant, PastPhase, Phase, Snapshot};
use pyo3::IntoPyObject;

#[derive(IntoPyObject)]
pub(crate) struct Status {
    room: String,
    policy: String,
    epoch: u64,
    inside: Option<PhaseNow>,
    waiting: Vec<PhaseNow>,
    recent: Vec<Past>,
    deaths: u64,
    taken: f64,
    exact: bool,
    unanswered: Vec<String>,
}

#[derive(IntoPyObject)]
struct PhaseNow {
    session: String,
    members: Vec<Member>,
}

#[derive(IntoPyObject)]
struct Member {
    id: String,
    pid: u32,
    host: String,
    user: String,
    command: String,
    since: f64,
    priority: i32,
    expected_seconds: Option<f64>,
}

#[derive(IntoPyObject)]
struct Past {
    session: String,
    epoch: u64,
    began: f64,
    ended: f64,
    entries: u64,
    died: bool,
}

/// Seconds since 1970, as `time.time()` gives.
fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

impl From<Participant> for Member {
    fn from(member: Participant) -> Self {
        Member {
            id: member.id.to_string(),
            pid: member.pid,
            host: member.host,
            user: member.user,
            command: member.command,
            since: seconds(member.since),
            priority: member.priority.0,
            expected_seconds: member.expected.map(|time| time.as_secs_f64()),
        }
    }
}

impl From<Phase> for PhaseNow {
    fn from(phase: Phase) -> Self {
        let members = phase.members.into_iter().map(Member::from).collect();
        PhaseNow { session: phase.session, members }
    }
}

impl From<PastPhase> for Past {
    fn from(phase: PastPhase) -> Self {
        Past {
            session: phase.session,
            epoch: phase.epoch,
            began: seconds(phase.began),
            ended: seconds(phase.ended),
            entries: phase.entries,
            died: phase.died,
        }
    }
}

impl From<Snapshot> for Status {
    fn from(room: Snapshot) -> Self {
        Status {
            room: room.room,
            policy: room.policy.to_string(),
            epoch: room.epoch,
            inside: room.inside.map(PhaseNow::from),
            waiting: room.waiting.into_iter().map(PhaseNow::from).collect(),
            recent: room.recent.into_iter().map(Past::from).collect(),
            deaths: room.deaths,
            taken: seconds(room.taken),
            exact: room.exact,
            unanswered: room.unanswered,
        }
    }
}
