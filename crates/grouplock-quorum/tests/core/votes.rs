//! Which votes make a quorum, with seven members. {0, 1, 3} is the quorum of member 0, {1, 2, 4}
//! that of member 1.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use grouplock_quorum::{
    Coterie, Member, MemberId, Output, PeerMessage, Process, ProcessId, ProcessMessage,
    ProcessState, Settings, Time, home, homes,
};

/// Member 0 with a request.
fn asked() -> Member {
    let coterie = Arc::new(Coterie::plane(7).unwrap());
    let mut member = Member::new(MemberId(0), coterie, Settings::default()).unwrap();
    let mut names = (0..).map(|number| format!("s{number}"));
    let session = names.find(|name| home(name, 7) == MemberId(0)).unwrap();
    let (attempt, stay, priority, sent, delay, pid) = (1, None, 0, Time::ZERO, Duration::ZERO, 1);
    let ask = ProcessMessage::Ask { attempt, session, stay, priority, sent, delay, pid };
    member.handle_process(Time::ZERO, ProcessId(1), ask).unwrap();
    member
}

/// The members that it asks for their votes now.
fn asks(member: &mut Member) -> BTreeSet<u16> {
    let outputs = std::iter::from_fn(|| member.poll_transmit());
    outputs
        .filter_map(|output| match output {
            Output::ToMember(to, PeerMessage::Request { .. }) => Some(to.0),
            _ => None,
        })
        .collect()
}

/// The member `from` votes for it. It has its own vote.
fn vote(member: &mut Member, from: u16) {
    let (stage, grant, epoch, heard, rival) = (1, 1, 0, Time::ZERO, None);
    let locked = PeerMessage::Locked { stage, grant, epoch, heard, rival, died: None };
    member.handle(Time::ZERO, MemberId(from), locked).unwrap();
}

#[test]
fn as_many_votes_as_a_quorum_has_are_not_a_quorum() {
    let mut member = asked();
    assert_eq!(asks(&mut member), [1, 3].into());
    for from in [1, 2, 5] {
        vote(&mut member, from);
    }
    assert_eq!(member.stage_inside(), None, "0, 1, 2 and 5 have no quorum among them");
    vote(&mut member, 3);
    assert!(member.stage_inside().is_some(), "0, 1 and 3 are one");
}

#[test]
fn while_somebody_is_away_a_whole_quorum_without_it_is_asked() {
    let mut member = asked();
    asks(&mut member);
    vote(&mut member, 1);
    member.handle_disconnect(Time::ZERO, MemberId(3));
    assert_eq!(asks(&mut member), [2, 4].into());
    vote(&mut member, 2);
    assert_eq!(member.stage_inside(), None, "neither quorum is whole");
    vote(&mut member, 4);
    assert!(member.stage_inside().is_some(), "1, 2 and 4 are one");
}

/// Seven members and seven processes, each with a session of another home. Time stands still.
struct Cluster {
    members: Vec<Member>,
    processes: Vec<Process>,
    away: BTreeSet<MemberId>,
}

impl Cluster {
    fn new(coterie: &Arc<Coterie>) -> Self {
        let settings = Settings::default();
        let member = |id| Member::new(MemberId(id), coterie.clone(), settings).unwrap();
        let process = |id| Process::new(ProcessId(id), 7, settings);
        let (members, processes) = ((0..7).map(member).collect(), (0..7).map(process).collect());
        Cluster { members, processes, away: BTreeSet::new() }
    }

    /// Process p asks the first member in the order of homes that is not in `except`.
    fn ask(&mut self, p: usize, except: &BTreeSet<MemberId>) {
        let mut names = (0..).map(|number| format!("s{number}"));
        let session = names.find(|name| home(name, 7).index() == p).unwrap();
        let stand_in = homes(&session, 7).into_iter().find(|it| !except.contains(it)).unwrap();
        let process = &mut self.processes[p];
        process.ask(Time::ZERO, &session, None, 0).unwrap();
        if stand_in.index() != p {
            process.poll_transmit().expect("it asks its home first, in vain");
            process.turn_to(Time::ZERO, stand_in);
        }
        self.carry();
    }

    /// These members are gone, and the others notice it.
    fn lose(&mut self, away: &BTreeSet<MemberId>) {
        self.away.clone_from(away);
        for member in &mut self.members {
            for gone in away {
                member.handle_disconnect(Time::ZERO, *gone);
            }
        }
        self.carry();
    }

    fn carry(&mut self) {
        let mut quiet = false;
        while !quiet {
            quiet = true;
            for from in (0..7).map(MemberId) {
                while let Some(output) = self.members[from.index()].poll_transmit() {
                    quiet = false;
                    match output {
                        _ if self.away.contains(&from) => {}
                        Output::ToMember(to, message) if !self.away.contains(&to) => {
                            self.members[to.index()].handle(Time::ZERO, from, message).unwrap();
                        }
                        Output::ToProcess(to, message) => {
                            self.processes[to.0 as usize].handle(Time::ZERO, from, message);
                        }
                        Output::ToMember(..) | Output::Save(_) => {}
                    }
                }
            }
            for p in 0..7 {
                while let Some((to, message)) = self.processes[p].poll_transmit() {
                    quiet = false;
                    if !self.away.contains(&to) {
                        let (member, id) = (&mut self.members[to.index()], ProcessId(p as u64));
                        member.handle_process(Time::ZERO, id, message).unwrap();
                    }
                }
            }
        }
    }

    /// The process inside, with its epoch.
    fn inside(&self) -> Option<(usize, u64)> {
        let inside = self.processes.iter().enumerate().filter_map(|(p, it)| match it.state() {
            ProcessState::Inside { epoch, .. } => Some((p, epoch)),
            _ => None,
        });
        let inside: Vec<_> = inside.collect();
        assert!(inside.len() < 2, "{inside:?} are inside together without {:?}", self.away);
        inside.first().copied()
    }
}

/// Every set of members that leaves a quorum: one, two, three or four of the seven. They are gone
/// from the beginning, or from when somebody is inside and the others wait.
#[test]
fn every_session_goes_on_while_a_quorum_stands() {
    let coterie = Arc::new(Coterie::plane(7).unwrap());
    let mut sets = [0; 8];
    for bits in 0_u16..1 << 7 {
        let away: BTreeSet<_> = (0..7).filter(|id| bits >> id & 1 == 1).map(MemberId).collect();
        let mut quorums = (0..7).filter_map(|id| coterie.quorum(MemberId(id)));
        if !quorums.any(|quorum| quorum.is_disjoint(&away)) {
            continue;
        }
        sets[away.len()] += 1;
        for later in [false, true] {
            let mut cluster = Cluster::new(&coterie);
            if !later {
                cluster.lose(&away);
            }
            (0..7).for_each(|p| cluster.ask(p, &away));
            if later {
                cluster.lose(&away);
            }
            let (mut entered, mut last) = (BTreeSet::new(), 0);
            while let Some((p, epoch)) = cluster.inside() {
                assert!(epoch > last, "epoch {epoch} after {last} without {away:?}");
                last = epoch;
                assert!(entered.insert(p), "{p} enters twice without {away:?}");
                cluster.processes[p].leave();
                cluster.carry();
            }
            assert_eq!(entered.len(), 7, "{entered:?} have been inside without {away:?}");
        }
    }
    // Two quorums miss any two members. One misses three, unless these are a quorum themselves.
    assert_eq!(sets, [1, 7, 21, 28, 7, 0, 0, 0]);
}
