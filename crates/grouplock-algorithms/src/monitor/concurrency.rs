use super::{Event, Property, Violation, of};

/// How much sharing there was. It rejects nothing and only counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Concurrency {
    sessions: Vec<u64>,
    inside: usize,
    current: u64,
    /// Passages so far.
    pub entries: usize,
    /// The largest number of processes that were inside at once.
    pub most_inside: usize,
    /// How often the session inside differed from the one before.
    pub switches: usize,
}

impl Property for Concurrency {
    fn observe(&mut self, process: usize, event: Event) -> Result<(), Violation> {
        match event {
            Event::Request(session) => *of(&mut self.sessions, process) = session,
            Event::Enter => {
                self.entries += 1;
                self.inside += 1;
                self.most_inside = self.most_inside.max(self.inside);
                let session = self.sessions[process];
                self.switches += usize::from(session != self.current);
                self.current = session;
            }
            Event::Leave => self.inside -= 1,
            Event::DoorwayEnd | Event::Done => {}
        }
        Ok(())
    }
}
