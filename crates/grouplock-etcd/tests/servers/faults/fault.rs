//! The faults. Each is done to a [`Stage`].

use std::collections::BTreeSet;
use std::time::Duration;

use nix::sys::signal::Signal::SIGCONT;
use serde_json::json;

use super::clock;
use super::stage::{Stage, TTL};
use crate::cluster::{self, Cluster};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    LeaderKilled,
    LeaderStopped,
    LeaderCutFromMembers,
    LeaderCutFromAll,
    MemberKilled,
    AllKilled,
    ServerRestarted,
    Compaction,
    ClientKilled,
    ClientStopped,
    WaiterStopped,
    LeaseRevoked,
}

/// Longer than a lease lasts, even if it was renewed just before.
const LONGER_THAN_A_LEASE: Duration = Duration::from_millis(TTL * 1000 + 1200);

impl Fault {
    pub(crate) const ALL: [Fault; 12] = [
        Fault::LeaderKilled,
        Fault::LeaderStopped,
        Fault::LeaderCutFromMembers,
        Fault::LeaderCutFromAll,
        Fault::MemberKilled,
        Fault::AllKilled,
        Fault::ServerRestarted,
        Fault::Compaction,
        Fault::ClientKilled,
        Fault::ClientStopped,
        Fault::WaiterStopped,
        Fault::LeaseRevoked,
    ];

    /// A description.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Fault::LeaderKilled => "the leader is killed (SIGKILL) and restarted",
            Fault::LeaderStopped => "the leader is stopped (SIGSTOP) for longer than a lease",
            Fault::LeaderCutFromMembers => "the leader is cut off from the other members",
            Fault::LeaderCutFromAll => "the leader is cut off from the members and the clients",
            Fault::MemberKilled => "a follower is killed and restarted",
            Fault::AllKilled => "all three members are killed and restarted",
            Fault::ServerRestarted => "one node only: the server is killed and restarted",
            Fault::Compaction => "the history is compacted and all members defragmented",
            Fault::ClientKilled => "a client process is killed while inside",
            Fault::ClientStopped => "a client process is stopped inside for longer than its lease",
            Fault::WaiterStopped => {
                "a client process is stopped in the queue for longer than its lease"
            }
            Fault::LeaseRevoked => "all leases are revoked from outside",
        }
    }

    /// Starts the cluster that the fault needs. `None`, with a notice, if this is not possible.
    pub(crate) fn cluster(self) -> Option<Cluster> {
        match self {
            Fault::LeaderCutFromMembers | Fault::LeaderCutFromAll => Cluster::start_apart(),
            Fault::ServerRestarted => Cluster::start(1),
            _ => Cluster::start(3),
        }
    }

    /// Injects the fault. If the room should go on during the fault, waits for that recovery. Then
    /// waits for the recovery after the fault.
    pub(crate) fn inject(self, stage: &mut Stage) {
        let everybody = stage.workers();
        let mut since = clock::now();
        match self {
            Fault::LeaderKilled | Fault::MemberKilled => {
                let leader = stage.cluster.leader();
                let victim = if self == Fault::LeaderKilled { leader } else { (leader + 1) % 3 };
                since = clock::now();
                stage.cluster.kill(victim);
                stage.await_recovery(since, &everybody);
                stage.cluster.restart(victim);
                stage.cluster.await_health();
            }
            Fault::LeaderStopped => {
                let leader = stage.cluster.leader();
                since = clock::now();
                stage.cluster.stop(leader);
                std::thread::sleep(LONGER_THAN_A_LEASE);
                stage.await_recovery(since, &everybody);
                let (woken, revision) = (clock::now(), stage.cluster.revision());
                stage.cluster.go_on(leader);
                stage.cluster.await_health();
                // This version has a bug. A leader that resumes does not know that it is deposed,
                // and revokes leases that the new leader has renewed (etcd's issues 12528 and
                // 15247).
                if cluster::version().is_some_and(|version| version == "etcd 3.4.23") {
                    stage.record.revoked(woken, stage.cluster.entries_ended_since(revision));
                }
            }
            Fault::LeaderCutFromMembers | Fault::LeaderCutFromAll => {
                let leader = stage.cluster.leader();
                since = clock::now();
                stage.cluster.network().link_to_members(leader, false);
                if self == Fault::LeaderCutFromAll {
                    stage.cluster.network().link_to_clients(leader, false);
                }
                std::thread::sleep(LONGER_THAN_A_LEASE);
                stage.await_recovery(since, &everybody);
                stage.cluster.network().link_to_members(leader, true);
                stage.cluster.network().link_to_clients(leader, true);
                stage.cluster.await_health();
            }
            Fault::AllKilled | Fault::ServerRestarted => {
                let members = 0..stage.cluster.endpoints().len();
                members.clone().for_each(|member| stage.cluster.kill(member));
                std::thread::sleep(Duration::from_millis(300));
                members.for_each(|member| stage.cluster.restart(member));
                stage.cluster.await_health();
                stage.await_recovery(since, &everybody);
            }
            Fault::Compaction => {
                let revision = stage.cluster.revision().to_string();
                let request = json!({ "revision": revision, "physical": true });
                stage.cluster.call("/v3/kv/compaction", &request);
                for member in 0..stage.cluster.endpoints().len() {
                    stage.cluster.call_on(member, "/v3/maintenance/defragment", &json!({}));
                }
                stage.await_recovery(since, &everybody);
            }
            Fault::ClientKilled => {
                let (victim, _) = stage.stop_crew(true);
                since = clock::now();
                let mut crew = stage.crews.swap_remove(victim);
                crew.kill();
                stage.record.killed(&crew.workers, since);
                stage.await_recovery(since, &stage.workers());
                stage.add_crew();
            }
            Fault::ClientStopped | Fault::WaiterStopped => {
                let (sleeper, holdings) = stage.stop_crew(self == Fault::ClientStopped);
                since = clock::now();
                let asleep: BTreeSet<usize> =
                    stage.crews[sleeper].workers.iter().copied().collect();
                std::thread::sleep(LONGER_THAN_A_LEASE);
                stage.await_recovery(since, &(&everybody - &asleep));
                let woken = clock::now();
                stage.crews[sleeper].signal(SIGCONT);
                stage.await_entries(woken, &everybody);
                let all = stage.record.holdings();
                for holding in holdings {
                    assert!(all[holding].lost, "it slept and did not notice: {:?}", all[holding]);
                }
            }
            Fault::LeaseRevoked => {
                let revision = stage.cluster.revision();
                let leases = stage.cluster.call("/v3/lease/leases", &json!({}));
                for lease in leases["leases"].as_array().into_iter().flatten() {
                    stage.cluster.call("/v3/lease/revoke", &json!({ "ID": lease["ID"] }));
                }
                stage.record.revoked(since, stage.cluster.entries_ended_since(revision));
                stage.await_recovery(since, &everybody);
            }
        }
        // The missing part is back. All workers must enter again.
        stage.await_entries(clock::now(), &stage.workers());
    }
}
