//! Records what real threads do.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

use super::{Event, Property, Violation};
use crate::memory::{Memory, Native, Value};

/// [`Native`] memory that also records when the calling thread last finished a doorway.
#[derive(Clone, Copy, Debug)]
pub struct Watched;

thread_local! {
    static DOORWAY_END: Cell<u64> = const { Cell::new(0) };
}

impl Memory for Watched {
    type Register<T: Value> = <Native as Memory>::Register<T>;
    type Flag = <Native as Memory>::Flag;

    fn await_until(condition: impl Fn() -> bool) {
        Native::await_until(condition);
    }

    fn doorway_end() {
        DOORWAY_END.set(now());
    }
}

impl Watched {
    /// When this thread last finished a doorway.
    pub fn last_doorway_end() -> u64 {
        DOORWAY_END.get()
    }
}

/// The next moment: later than every moment before, on any thread.
pub fn now() -> u64 {
    static CLOCK: AtomicU64 = AtomicU64::new(1);
    // Sequentially consistent: for all threads, the earlier steps of this thread happened before.
    CLOCK.fetch_add(1, Ordering::SeqCst)
}

/// The events of one process, each with its moment.
///
/// Moments are conservative. A request is recorded *before* the doorway begins, its end *after* it
/// has ended, entry and exit *inside* the critical section. So everything that a monitor rejects
/// really happened.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    events: Vec<(u64, Event)>,
}

impl Journal {
    /// Records `event` now.
    pub fn note(&mut self, event: Event) {
        self.events.push((now(), event));
    }

    /// Records that the process is inside, and when it finished its doorway.
    pub fn note_entry(&mut self, doorway_end: u64) {
        self.events.push((doorway_end, Event::DoorwayEnd));
        self.note(Event::Enter);
    }

    /// The last recorded request is withdrawn: the journal drops it.
    ///
    /// # Panics
    /// If the last record is not a request.
    pub fn withdraw(&mut self) {
        let last = self.events.pop();
        assert!(matches!(last, Some((_, Event::Request(_)))), "{last:?} is no request");
    }

    /// Feeds the journals of processes 0, 1, … to a monitor, in the order of their moments.
    ///
    /// # Errors
    /// The violation that the monitor found.
    pub fn judge(journals: &[Journal], monitor: &mut dyn Property) -> Result<(), Violation> {
        let mut all: Vec<_> = journals
            .iter()
            .enumerate()
            .flat_map(|(process, journal)| {
                journal.events.iter().map(move |(t, e)| (*t, process, *e))
            })
            .collect();
        all.sort_unstable_by_key(|(moment, ..)| *moment);
        all.into_iter().try_for_each(|(_, process, event)| monitor.observe(process, event))?;
        monitor.finish()
    }
}
