//! A room, composed of what its members see.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use grouplock_room::{
    HolderId, Participant, PastPhase, Phase, Policy, Priority, Recovered, RoomError, Snapshot,
};

use super::question::Parts;
use crate::death::Death;
use crate::name::ProcessId;
use crate::rank::{Claim, Precedence};
use crate::settings::{Admission, Settings};
use crate::time::Time;
use crate::wire::{About, Cluster};

/// How many past phases are shown.
const RECENT: usize = 64;

/// The id of a process in snapshots.
pub(super) fn holder(process: ProcessId) -> HolderId {
    HolderId::new(format!("{:016x}", process.0))
}

/// The report of a death for a new holder.
pub(super) fn recovered(death: &Death) -> Recovered {
    let (session, pid) =
        death.who.as_ref().map_or(("", 0), |dead| (dead.session.as_str(), dead.pid));
    Recovered::new(death.epoch, session, pid, system_time(death.noticed))
}

/// A moment of any member's clock as a time of day.
fn system_time(time: Time) -> SystemTime {
    UNIX_EPOCH + time.since(Time::ZERO)
}

/// The policy of all rooms of a cluster.
pub(super) fn policy(settings: &Settings) -> Policy {
    match settings.precedence {
        Precedence::Aged { weight } if weight.is_zero() => Policy::Fifo,
        Precedence::Aged { weight } => Policy::Priority { aging: weight },
        // No waiting time outweighs a step of priority.
        Precedence::Static => Policy::Priority { aging: Duration::from_secs(u64::MAX) },
    }
}

/// The whole room. `exact`: the parts are of one moment.
pub(super) fn snapshot(room: &str, cluster: &Cluster, parts: &Parts, exact: bool) -> Snapshot {
    let mut snapshot = Snapshot::empty(room, policy(&cluster.settings), SystemTime::now());
    snapshot.exact = exact && parts.missing.is_empty();
    let address = |member: &crate::name::MemberId| {
        let peer = cluster.members.get(member.index());
        peer.map_or_else(|| member.to_string(), |peer| format!("{member} ({})", peer.address))
    };
    snapshot.unanswered = parts.missing.keys().map(address).collect();
    for part in parts.answered.values() {
        let Some(stage) = &part.stage else { continue };
        snapshot.epoch = snapshot.epoch.max(stage.epoch);
        snapshot.deaths += stage.deaths;
        snapshot.recent.extend(part.past.iter().map(|past| {
            let (began, ended) = (system_time(past.began), system_time(past.ended));
            let mut phase = PastPhase::new(past.session.clone(), past.epoch, began, ended);
            phase.entries = past.entries;
            phase.died = past.died;
            phase
        }));
    }
    // If two members seem to have the room, the one with the larger epoch came later.
    if let Some((_, part, inside)) = parts.open_stages().max_by_key(|(_, _, inside)| inside.epoch) {
        snapshot.epoch = snapshot.epoch.max(inside.epoch);
        let members = part.inside.iter();
        let members = members.map(|p| participant(p.process, p.since, p.about.as_ref())).collect();
        snapshot.inside = Some(Phase::new(inside.session.clone(), members));
    }
    snapshot.recent.sort_by_key(|phase| phase.epoch);
    let forgotten = snapshot.recent.len().saturating_sub(RECENT);
    snapshot.recent.drain(..forgotten);
    snapshot.waiting = waiting(cluster, parts);
    snapshot
}

/// The waiters, grouped and ordered as they will enter.
fn waiting(cluster: &Cluster, parts: &Parts) -> Vec<Phase> {
    let mut waiters: Vec<_> = parts.waiting().collect();
    waiters.sort_by_key(|(member, waiter)| (waiter.claim, *member, waiter.process));
    let mut phases: Vec<Phase> = Vec::new();
    for (_, waiter) in waiters {
        let shown = participant(waiter.process, waiter.since, waiter.about.as_ref());
        let shared = match cluster.settings.admission {
            Admission::InOrder => phases.last_mut().filter(|p| p.session == waiter.session),
            Admission::Together => phases.iter_mut().find(|p| p.session == waiter.session),
        };
        match shared {
            Some(phase) => phase.members.push(shown),
            None => phases.push(Phase::new(waiter.session.clone(), vec![shown])),
        }
    }
    phases
}

fn participant(process: ProcessId, since: Time, about: Option<&About>) -> Participant {
    let mut shown = Participant::new(holder(process), system_time(since));
    if let Some(about) = about {
        shown.pid = about.pid;
        shown.host.clone_from(&about.host);
        shown.user.clone_from(&about.user);
        shown.command.clone_from(&about.command);
        shown.priority = Priority(about.priority);
        shown.expected = about.expected;
    }
    shown
}

/// What a process waits for.
pub(super) enum Obstacle {
    /// Another session is inside.
    Session(String),
    /// Better claims for other sessions wait.
    Waiters,
    /// Only messages that are on their way.
    None,
}

/// Why a process is not inside yet.
pub(super) fn in_the_way(
    mine: Option<Claim>,
    session: &str,
    admission: Admission,
    parts: &Parts,
) -> Obstacle {
    let inside = parts.open_stages().max_by_key(|(_, _, inside)| inside.epoch);
    let inside = inside.map(|(_, _, inside)| inside.session.as_str());
    if let Some(other) = inside.filter(|inside| *inside != session) {
        return Obstacle::Session(other.to_owned());
    }
    let Some(mine) = mine else { return Obstacle::None };
    let together = admission == Admission::Together && inside.is_some();
    let mut others = parts.waiting().filter(|(_, waiter)| waiter.session != session);
    if others.any(|(_, other)| other.claim < mine || together) {
        Obstacle::Waiters
    } else {
        Obstacle::None
    }
}

/// The error if no member answers.
pub(super) fn unreachable(place: &str, cluster: &Cluster, parts: &Parts) -> RoomError {
    let reasons = parts.missing.iter().map(|(member, why)| {
        let address = cluster.members.get(member.index()).map_or("", |peer| &peer.address);
        format!("{member} ({address}): {why}")
    });
    let reason = reasons.collect::<Vec<_>>().join("; ");
    RoomError::Unreachable { place: place.to_owned(), reason }
}
