//! A death inside is reported to the next stage. There are three members, a network that delivers
//! at once, and leases.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use grouplock_quorum::{
    Coterie, DeadProcess, Death, Durable, Member, MemberId, Output, Process, ProcessId,
    ProcessState, Settings, Time, home,
};

const LEASE: Duration = Duration::from_secs(8);

struct World {
    members: Vec<Member>,
    disks: Vec<Durable>,
    processes: Vec<Process>,
    settings: Settings,
    /// Processes and members that send and receive nothing any more.
    dead: BTreeSet<ProcessId>,
    gone: BTreeSet<MemberId>,
    now: Time,
}

impl World {
    fn new() -> Self {
        let settings = Settings { lease: Some(LEASE), ..Settings::default() };
        let coterie = Arc::new(Coterie::plane(3).unwrap());
        let member = |id| Member::new(MemberId(id), coterie.clone(), settings).unwrap();
        World {
            members: (0..3).map(member).collect(),
            disks: vec![Durable::default(); 3],
            processes: Vec::new(),
            settings,
            dead: BTreeSet::new(),
            gone: BTreeSet::new(),
            now: Time::from_micros(1),
        }
    }

    /// A new process asks. Its pid is its number plus 100.
    fn ask(&mut self, session: &str) -> usize {
        let number = self.processes.len();
        let process = Process::new(ProcessId(number as u64), 3, self.settings);
        let mut process = process.with_pid(100 + number as u32);
        process.ask(self.now, session, None, 0).unwrap();
        self.processes.push(process);
        self.carry();
        number
    }

    fn leave(&mut self, number: usize) {
        self.processes[number].leave();
        self.carry();
    }

    fn carry(&mut self) {
        let now = self.now;
        let mut quiet = false;
        while !quiet {
            quiet = true;
            for process in &mut self.processes {
                while let Some((to, message)) = process.poll_transmit() {
                    quiet = false;
                    if !self.dead.contains(&process.id()) && !self.gone.contains(&to) {
                        let member = &mut self.members[to.index()];
                        member.handle_process(now, process.id(), message).unwrap();
                    }
                }
            }
            for from in (0..3).map(MemberId) {
                while let Some(output) = self.members[from.index()].poll_transmit() {
                    quiet = false;
                    match output {
                        _ if self.gone.contains(&from) => {}
                        Output::Save(record) => self.disks[from.index()].apply(record),
                        Output::ToMember(to, message) if !self.gone.contains(&to) => {
                            self.members[to.index()].handle(now, from, message).unwrap();
                        }
                        Output::ToProcess(to, message) if !self.dead.contains(&to) => {
                            self.processes[to.0 as usize].handle(now, from, message);
                        }
                        Output::ToMember(..) | Output::ToProcess(..) => {}
                    }
                }
            }
        }
    }

    /// Waits until the condition holds, at most four leases.
    fn until(&mut self, what: &str, so: impl Fn(&World) -> bool) {
        let began = self.now;
        while !so(self) {
            assert!(self.now.since(began) < LEASE * 4, "it takes too long: {what}");
            self.now = self.now + Duration::from_millis(50);
            let now = self.now;
            self.processes.iter_mut().for_each(|process| process.handle_timeout(now));
            self.members.iter_mut().for_each(|member| member.handle_timeout(now));
            self.carry();
        }
    }

    fn epoch(&self, number: usize) -> Option<u64> {
        match self.processes[number].state() {
            ProcessState::Inside { epoch, .. } => Some(epoch),
            _ => None,
        }
    }

    fn until_inside(&mut self, number: usize) -> u64 {
        self.until("it is inside", |world| world.epoch(number).is_some());
        self.epoch(number).unwrap()
    }

    /// Two processes enter the session, and the second dies. Returns the first, and the epoch.
    fn survivor_beside_victim(&mut self, session: &str) -> (usize, u64) {
        let survivor = self.ask(session);
        self.until_inside(survivor);
        let victim = self.ask(session);
        let epoch = self.until_inside(victim);
        assert_eq!(self.recovered(victim), None, "nobody has died");
        self.dead.insert(ProcessId(victim as u64));
        (survivor, epoch)
    }

    fn recovered(&self, number: usize) -> Option<Death> {
        self.processes[number].recovered().cloned()
    }
}

/// A session for each member as its home.
fn sessions() -> [String; 3] {
    let at = |member| {
        let mut names = (0..).map(|n| format!("s{n}"));
        names.find(|name| home(name, 3) == MemberId(member)).unwrap()
    };
    [at(0), at(1), at(2)]
}

#[test]
fn the_next_stage_learns_session_and_process_and_the_one_after_does_not() {
    let [a, b, c] = sessions();
    let mut world = World::new();
    let victim = world.ask(&a);
    let epoch = world.until_inside(victim);
    world.dead.insert(ProcessId(victim as u64));
    let (first, second) = (world.ask(&b), world.ask(&b));
    world.until_inside(first);
    let who = Some(DeadProcess { session: a.clone(), pid: 100 + victim as u32 });
    for told in [first, second] {
        let death = world.recovered(told).expect("everybody of the next stage is told");
        assert_eq!((death.epoch, &death.who), (epoch, &who));
    }
    let joined = world.ask(&b);
    world.until_inside(joined);
    assert!(world.recovered(joined).is_some(), "also who joins it");
    for number in [first, second, joined] {
        world.leave(number);
    }
    // The home of the next sessions does not matter.
    for session in [&c, &a, &b] {
        let next = world.ask(session);
        world.until_inside(next);
        assert_eq!(world.recovered(next), None, "{session}: it was told");
        world.leave(next);
    }
}

#[test]
fn a_process_that_joins_the_stage_of_the_dead_learns_of_it_and_the_next_stage_too() {
    let [a, b, _] = sessions();
    let mut world = World::new();
    let (survivor, epoch) = world.survivor_beside_victim(&a);
    world.until("it is noticed", |world| {
        world.members.iter().map(|m| m.inside().count()).sum::<usize>() == 1
    });
    let joined = world.ask(&a);
    world.until_inside(joined);
    assert_eq!(world.recovered(joined).map(|death| death.epoch), Some(epoch));
    world.leave(survivor);
    world.leave(joined);
    let next = world.ask(&b);
    world.until_inside(next);
    assert_eq!(world.recovered(next).map(|death| death.epoch), Some(epoch));
}

/// A process that is admitted after its withdrawal reads no report. The next process gets the
/// report.
#[test]
fn a_stage_in_which_nobody_looked_does_not_count_as_reported() {
    let [a, b, c] = sessions();
    let mut world = World::new();
    let victim = world.ask(&a);
    world.until_inside(victim);
    world.dead.insert(ProcessId(victim as u64));
    let unwanted = world.ask(&b);
    world.until_inside(unwanted);
    assert!(world.recovered(unwanted).is_some());
    world.processes[unwanted].withdraw();
    world.carry();
    let next = world.ask(&c);
    world.until_inside(next);
    assert!(world.recovered(next).is_some(), "nobody has heard of it");
}

/// The home is gone with its data. The others only know that a death is possible.
#[test]
fn a_home_that_is_gone_with_its_stage_is_reported() {
    let [a, b, c] = sessions();
    let mut world = World::new();
    let victim = world.ask(&a);
    let epoch = world.until_inside(victim);
    world.gone.insert(MemberId(0));
    for other in [1, 2] {
        world.members[other].handle_disconnect(world.now, MemberId(0));
    }
    let next = world.ask(&b);
    let second = world.until_inside(next);
    let death = world.recovered(next).expect("somebody may have died");
    assert_eq!(death.who, None);
    assert!(epoch <= death.epoch && death.epoch < second, "{epoch}, {death:?}, {second}");
    world.leave(next);
    let last = world.ask(&c);
    world.until_inside(last);
    assert_eq!(world.recovered(last), None, "it was told");
}

/// The members that know a death keep the room until it is reported.
#[test]
fn a_room_with_a_death_to_report_is_not_idle() {
    let [a, b, _] = sessions();
    let mut world = World::new();
    let victim = world.ask(&a);
    world.until_inside(victim);
    world.dead.insert(ProcessId(victim as u64));
    world.until("it is noticed", |world| world.members[0].stage_inside().is_none());
    assert!(!world.members[0].is_idle() && !world.members[1].is_idle());
    let next = world.ask(&b);
    world.until_inside(next);
    assert!(world.recovered(next).is_some());
    world.leave(next);
    assert!(world.members[1].is_idle(), "it was reported");
}

/// A home and arbiters that start again remember a death that is noticed and not yet reported.
#[test]
fn a_death_is_not_forgotten_by_a_restart() {
    let [a, b, _] = sessions();
    let mut world = World::new();
    let (survivor, epoch) = world.survivor_beside_victim(&a);
    world.until("it is noticed", |world| world.members[0].inside().count() == 1);
    let restart = |world: &mut World| {
        let coterie = Arc::new(Coterie::plane(3).unwrap());
        for id in (0..3).map(MemberId) {
            let disk = world.disks[id.index()].clone();
            let (settings, now) = (world.settings, world.now);
            let again = Member::recover(id, coterie.clone(), settings, disk, now).unwrap();
            world.members[id.index()] = again;
        }
        world.carry();
    };
    restart(&mut world);
    world.leave(survivor);
    let next = world.ask(&b);
    world.until_inside(next);
    assert_eq!(world.recovered(next).map(|death| death.epoch), Some(epoch));
    // A process that joins after another restart also gets the report.
    restart(&mut world);
    let joined = world.ask(&b);
    world.until_inside(joined);
    assert_eq!(world.recovered(joined).map(|death| death.epoch), Some(epoch));
}
