//! Which processes enter together, and in which order. There are three members, a network that
//! delivers at once, and a clock that grows by a millisecond with every request.

use std::sync::Arc;
use std::time::Duration;

use grouplock_quorum::{
    Admission, Coterie, Member, MemberId, Output, Precedence, Process, ProcessId, ProcessState,
    Settings, Time,
};

struct Cluster {
    members: Vec<Member>,
    processes: Vec<(Process, &'static str)>,
    settings: Settings,
    now: u64,
}

impl Cluster {
    fn new(admission: Admission, weight: Duration) -> Self {
        let precedence = Precedence::Aged { weight };
        let settings = Settings { precedence, admission, ..Settings::default() };
        let coterie = Arc::new(Coterie::plane(3).unwrap());
        let member = |id| Member::new(MemberId(id), coterie.clone(), settings).unwrap();
        Cluster { members: (0..3).map(member).collect(), processes: Vec::new(), settings, now: 1 }
    }

    fn in_order() -> Self {
        Cluster::new(Admission::InOrder, Duration::ZERO)
    }

    fn now(&self) -> Time {
        Time::from_micros(self.now * 1000)
    }

    /// The number of the process that asks.
    fn ask(&mut self, session: &'static str, priority: i32, stay: Option<Duration>) -> usize {
        self.ask_from(Duration::ZERO, session, priority, stay)
    }

    fn ask_from(
        &mut self,
        delay: Duration,
        session: &'static str,
        priority: i32,
        stay: Option<Duration>,
    ) -> usize {
        self.now += 1;
        let number = self.processes.len();
        let mut process = Process::new(ProcessId(number as u64), 3, self.settings);
        process.set_delay(delay);
        process.ask(self.now(), session, stay, priority).unwrap();
        self.processes.push((process, session));
        self.deliver();
        number
    }

    fn leave(&mut self, number: usize) {
        self.processes[number].0.leave();
        self.deliver();
    }

    fn deliver(&mut self) {
        let mut quiet = false;
        while !quiet {
            quiet = true;
            let now = self.now();
            for (process, _) in &mut self.processes {
                while let Some((home, message)) = process.poll_transmit() {
                    quiet = false;
                    let id = process.id();
                    self.members[home.index()].handle_process(now, id, message).unwrap();
                }
            }
            for from in 0..3_u16 {
                while let Some(output) = self.members[usize::from(from)].poll_transmit() {
                    quiet = false;
                    let from = MemberId(from);
                    match output {
                        Output::Save(_) => {}
                        Output::ToMember(to, message) => {
                            self.members[to.index()].handle(now, from, message).unwrap();
                        }
                        Output::ToProcess(to, message) => {
                            self.processes[to.0 as usize].0.handle(now, from, message);
                        }
                    }
                }
            }
        }
    }

    fn inside(&self) -> Vec<usize> {
        let inside = |process: &Process| matches!(process.state(), ProcessState::Inside { .. });
        (0..self.processes.len()).filter(|number| inside(&self.processes[*number].0)).collect()
    }

    /// Lets all holders leave until the room is empty. Returns the sessions in the order in which
    /// they were inside.
    fn order(&mut self) -> Vec<Vec<&'static str>> {
        let mut order = Vec::new();
        loop {
            let inside = self.inside();
            if inside.is_empty() {
                return order;
            }
            order.push(inside.iter().map(|number| self.processes[*number].1).collect());
            for number in inside {
                self.leave(number);
            }
        }
    }
}

#[test]
fn in_order_nobody_enters_before_an_earlier_request_for_another_session() {
    for names in [["a", "b", "c"], ["a", "c", "b"], ["s", "t", "u"], ["x", "y", "z"]] {
        let [a, b, c] = names;
        let mut cluster = Cluster::in_order();
        for session in [a, b, b, c, a, b, a] {
            cluster.ask(session, 0, None);
        }
        let expected = [vec![a], vec![b, b], vec![c], vec![a], vec![b], vec![a]];
        assert_eq!(cluster.order(), expected);
        let mut cluster = Cluster::in_order();
        for session in [a, b, a, b] {
            cluster.ask(session, 0, None);
        }
        assert_eq!(cluster.order(), [[a], [b], [a], [b]]);
    }
}

#[test]
fn together_all_of_a_session_enter() {
    let mut cluster = Cluster::new(Admission::Together, Duration::ZERO);
    for session in ["a", "b", "c", "b", "a"] {
        cluster.ask(session, 0, None);
    }
    assert_eq!(cluster.order(), [vec!["a"], vec!["b", "b"], vec!["c"], vec!["a"]]);
}

#[test]
fn a_better_claim_joins_and_a_worse_one_waits() {
    let mut cluster = Cluster::new(Admission::InOrder, Duration::from_secs(60));
    cluster.ask("a", 0, None);
    for (session, priority) in [("b", 0), ("c", 5), ("d", -3), ("c", 1), ("e", 5)] {
        cluster.ask(session, priority, None);
    }
    cluster.ask("a", 4, None);
    assert_eq!(cluster.inside(), [0], "two rank before it");
    let joined = cluster.ask("a", 9, None);
    assert_eq!(cluster.inside(), [0, joined], "it ranks before all who wait");
    let expected =
        [vec!["a", "a"], vec!["c"], vec!["e"], vec!["a"], vec!["c"], vec!["b"], vec!["d"]];
    assert_eq!(cluster.order(), expected);
}

#[test]
fn when_nobody_competes_any_more_waiters_are_admitted() {
    // Sessions with the same home as the one inside, and with other homes.
    for other in ["b", "c", "d", "e", "f", "g"] {
        for admission in [Admission::InOrder, Admission::Together] {
            let mut cluster = Cluster::new(admission, Duration::ZERO);
            let first = cluster.ask("a", 0, None);
            let gives_up = cluster.ask(other, 0, None);
            let behind = cluster.ask("a", 0, None);
            assert_eq!(cluster.inside(), [first]);
            cluster.leave(gives_up);
            assert_eq!(cluster.inside(), [first, behind], "{other} gave up");
        }
    }
}

#[test]
fn a_request_that_ends_before_the_holders_may_join() {
    let mut cluster = Cluster::in_order();
    let first = cluster.ask("a", 0, Some(Duration::from_secs(10)));
    cluster.ask("b", 0, None);
    let short = cluster.ask("a", 0, Some(Duration::from_secs(5)));
    cluster.ask("a", 0, Some(Duration::from_secs(20)));
    assert_eq!(cluster.inside(), [first, short]);
}

/// The time of its messages counts: the paper's tc, which each process has for itself.
#[test]
fn a_distant_process_has_less_time_to_stay() {
    let mut cluster = Cluster::in_order();
    let first = cluster.ask("a", 0, Some(Duration::from_secs(10)));
    cluster.ask("b", 0, None);
    let stay = Some(Duration::from_secs(5));
    let near = cluster.ask_from(Duration::from_secs(4), "a", 0, stay);
    cluster.ask_from(Duration::from_secs(6), "a", 0, stay);
    assert_eq!(cluster.inside(), [first, near]);
}

/// If a process leaves early, its announced stay counts no more. No announced stay counts for
/// longer than an hour.
#[test]
fn what_was_said_of_a_stay_counts_while_it_lasts_and_an_hour_at_most() {
    let mut cluster = Cluster::in_order();
    let first = cluster.ask("a", 0, Some(Duration::from_secs(10)));
    let long = cluster.ask("a", 0, Some(Duration::from_secs(24 * 3600)));
    cluster.ask("b", 0, None);
    cluster.ask("a", 0, Some(Duration::from_secs(2 * 3600)));
    let hour = cluster.ask("a", 0, Some(Duration::from_secs(3000)));
    assert_eq!(cluster.inside(), [first, long, hour], "more than an hour is not believed");
    cluster.leave(long);
    cluster.leave(hour);
    cluster.ask("a", 0, Some(Duration::from_secs(3000)));
    let short = cluster.ask("a", 0, Some(Duration::from_secs(5)));
    assert_eq!(cluster.inside(), [first, short], "who has left holds nobody's place open");
}
