use super::{Event, MOST_PROCESSES, Property, Violation};

/// Which process arrived before which: the order of first-come-first-served and
/// first-in-first-enabled.
///
/// Process p *precedes* process q if p finished its doorway before q began its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Precedence {
    processes: Vec<ProcessState>,
}

/// The state of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct ProcessState {
    section: Section,
    session: u64,
    /// The processes that precede its present request and have not entered since, a bit each.
    before: u64,
}

/// The section of its code in which a process is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Section {
    #[default]
    Remainder,
    Doorway,
    Waiting,
    Inside,
    Leaving,
}

impl Precedence {
    /// Reads an event.
    ///
    /// # Panics
    /// If there are more than [`MOST_PROCESSES`] processes.
    pub fn observe(&mut self, process: usize, event: Event) {
        assert!(process < MOST_PROCESSES, "process {process} is past the last one, number 63");
        if self.processes.len() <= process {
            self.processes.resize(process + 1, ProcessState::default());
        }
        match event {
            Event::Request(session) => {
                let waiting = |p: &ProcessState| p.section == Section::Waiting;
                let before = bits(self.processes.iter().map(waiting));
                self.processes[process] =
                    ProcessState { section: Section::Doorway, session, before };
            }
            Event::DoorwayEnd => self.processes[process].section = Section::Waiting,
            Event::Enter => {
                self.processes[process].section = Section::Inside;
                self.processes[process].before = 0;
                for other in &mut self.processes {
                    other.before &= !(1 << process);
                }
            }
            Event::Leave => self.processes[process].section = Section::Leaving,
            Event::Done => self.processes[process] = ProcessState::default(),
        }
    }

    /// The processes that precede the present request of `process` and have not entered yet, each
    /// with whether it requests the same session.
    pub fn before(&self, process: usize) -> impl Iterator<Item = (usize, bool)> + '_ {
        let me = self.processes.get(process).copied().unwrap_or_default();
        let others = self.processes.iter().enumerate();
        others
            .filter(move |(p, _)| me.before >> p & 1 == 1)
            .map(move |(p, other)| (p, other.session == me.session))
    }
}

fn bits(flags: impl Iterator<Item = bool>) -> u64 {
    flags.enumerate().fold(0, |bits, (p, flag)| bits | u64::from(flag) << p)
}

/// First come, first served: no process enters before a conflicting request that precedes its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fcfs(Precedence);

impl Property for Fcfs {
    fn observe(&mut self, process: usize, event: Event) -> Result<(), Violation> {
        let overtaken = self.0.before(process).find(|(_, same)| !same);
        if let (Event::Enter, Some((first, _))) = (event, overtaken) {
            let what = format!(
                "process {process} enters although process {first}, which asks for another \
                 session, had finished its doorway before {process} began its own"
            );
            return Err(Violation { property: "first come first served", what });
        }
        self.0.observe(process, event);
        Ok(())
    }
}

/// Every process finishes: when the execution is over, all are in the remainder section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LeftBehind(Precedence);

impl Property for LeftBehind {
    fn observe(&mut self, process: usize, event: Event) -> Result<(), Violation> {
        self.0.observe(process, event);
        Ok(())
    }

    fn finish(&self) -> Result<(), Violation> {
        let at = self.0.processes.iter().position(|p| p.section != Section::Remainder);
        at.map_or(Ok(()), |process| {
            let ProcessState { section, session, .. } = self.0.processes[process];
            let what = match section {
                Section::Doorway => "is in its doorway",
                Section::Waiting => "waits",
                Section::Inside => "is inside",
                Section::Leaving => "is leaving",
                Section::Remainder => "is idle",
            };
            let what = format!("process {process} {what}, for session {session}, for ever");
            Err(Violation { property: "nobody left behind", what })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRELUDE: [(usize, Event); 4] = [
        (0, Event::Request(7)),
        (0, Event::DoorwayEnd),
        (1, Event::Request(8)),
        (1, Event::DoorwayEnd),
    ];

    fn play<P: Property + Default>(events: &[(usize, Event)]) -> Result<P, Violation> {
        let mut monitor = P::default();
        for (process, event) in events {
            monitor.observe(*process, *event)?;
        }
        Ok(monitor)
    }

    #[test]
    fn a_conflicting_request_may_not_be_overtaken() {
        let overtaken = [&PRELUDE[..], &[(1, Event::Enter)]].concat();
        let objection = play::<Fcfs>(&overtaken).unwrap_err();
        assert!(objection.what.starts_with("process 1 enters although process 0"), "{objection}");
    }

    #[test]
    fn in_order_is_in_order() {
        let in_order = [(0, Event::Enter), (0, Event::Leave), (0, Event::Done), (1, Event::Enter)];
        assert!(play::<Fcfs>(&[&PRELUDE[..], &in_order].concat()).is_ok());
    }

    #[test]
    fn doorways_that_overlap_bind_nobody() {
        let overlapping = [
            (0, Event::Request(7)),
            (1, Event::Request(8)),
            (0, Event::DoorwayEnd),
            (1, Event::DoorwayEnd),
            (1, Event::Enter),
        ];
        assert!(play::<Fcfs>(&overlapping).is_ok());
    }

    #[test]
    fn the_same_session_may_overtake() {
        let same = [
            (0, Event::Request(7)),
            (0, Event::DoorwayEnd),
            (1, Event::Request(7)),
            (1, Event::DoorwayEnd),
            (1, Event::Enter),
        ];
        assert!(play::<Fcfs>(&same).is_ok());
    }

    #[test]
    fn a_second_passage_is_a_new_request() {
        // 0 passes twice. 1 precedes 0's second request and must enter first.
        let again = [
            (0, Event::Enter),
            (0, Event::Leave),
            (0, Event::Done),
            (0, Event::Request(7)),
            (0, Event::DoorwayEnd),
            (0, Event::Enter),
        ];
        assert!(play::<Fcfs>(&[&PRELUDE[..], &again].concat()).is_err());
    }

    #[test]
    fn a_process_that_waits_at_the_end_is_left_behind() {
        let monitor = play::<LeftBehind>(&PRELUDE).expect("nothing is broken on the way");
        assert_eq!(
            monitor.finish().unwrap_err().to_string(),
            "nobody left behind: process 0 waits, for session 7, for ever"
        );
    }
}
