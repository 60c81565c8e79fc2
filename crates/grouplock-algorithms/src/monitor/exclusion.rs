use super::{Event, Property, Violation, of};

/// No two sessions are inside at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Exclusion {
    /// The session that each process requested last.
    sessions: Vec<u64>,
    /// The processes that are inside.
    inside: Vec<usize>,
}

impl Exclusion {
    /// The processes inside.
    pub fn inside(&self) -> &[usize] {
        &self.inside
    }
}

impl Property for Exclusion {
    fn observe(&mut self, process: usize, event: Event) -> Result<(), Violation> {
        match event {
            Event::Request(session) => *of(&mut self.sessions, process) = session,
            Event::Enter => {
                let mine = self.sessions[process];
                if let Some(other) = self.inside.iter().find(|p| self.sessions[**p] != mine) {
                    let what = format!(
                        "process {process} is in session {mine} while process {other} is in \
                         session {}",
                        self.sessions[*other]
                    );
                    return Err(Violation { property: "mutual exclusion", what });
                }
                self.inside.push(process);
                self.inside.sort_unstable();
            }
            Event::Leave => self.inside.retain(|p| *p != process),
            Event::DoorwayEnd | Event::Done => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays events and returns the first violation.
    fn play(events: &[(usize, Event)]) -> Result<(), Violation> {
        let mut monitor = Exclusion::default();
        events.iter().try_for_each(|(process, event)| monitor.observe(*process, *event))
    }

    #[test]
    fn one_session_may_share() {
        let shared = [
            (0, Event::Request(7)),
            (1, Event::Request(7)),
            (0, Event::Enter),
            (1, Event::Enter),
            (0, Event::Leave),
            (1, Event::Leave),
        ];
        assert_eq!(play(&shared), Ok(()));
    }

    #[test]
    fn two_sessions_may_not() {
        let broken =
            [(0, Event::Request(7)), (1, Event::Request(8)), (0, Event::Enter), (1, Event::Enter)];
        assert_eq!(
            play(&broken).unwrap_err().to_string(),
            "mutual exclusion: process 1 is in session 8 while process 0 is in session 7"
        );
    }

    #[test]
    fn two_sessions_may_follow_each_other() {
        let in_turn = [
            (0, Event::Request(7)),
            (1, Event::Request(8)),
            (0, Event::Enter),
            (0, Event::Leave),
            (1, Event::Enter),
        ];
        assert_eq!(play(&in_turn), Ok(()));
    }
}
