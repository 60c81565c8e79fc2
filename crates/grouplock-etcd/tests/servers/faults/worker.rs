//! Workers that enter and leave all the time.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use grouplock_room::{Guard, LossWatch, Places, Room, RoomOptions, Standing};
use grouplock_testing::Random;
use serde::{Deserialize, Serialize};

use super::clock::{self, Nanos};
use super::record::{Desk, News, Record};

/// The settings of workers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// Where the room is.
    pub(crate) place: String,
    /// Where the record is.
    pub(crate) socket: PathBuf,
    /// The numbers of the workers of one process.
    pub(crate) workers: Vec<usize>,
    /// How many sessions there are.
    pub(crate) sessions: u64,
}

/// The room that all workers enter.
pub(crate) const ROOM: &str = "faults";

/// How long a worker waits before it asks again.
const PATIENCE: Duration = Duration::from_secs(10);

impl Plan {
    pub(crate) fn room(&self) -> Room {
        let places = Places::new().with(grouplock_etcd::opener());
        places.open(&self.place, ROOM, &RoomOptions::new()).expect("the room can be opened")
    }

    /// Starts the workers in threads of this process.
    pub(crate) fn start(&self, record: Option<&Arc<Record>>) -> Vec<JoinHandle<()>> {
        let room = self.room();
        let start = |&worker: &usize| {
            let mut desk = match record {
                Some(record) => Desk::Here(Arc::clone(record)),
                None => Desk::connect(&self.socket),
            };
            let (room, sessions) = (room.clone(), self.sessions);
            std::thread::spawn(move || work(&room, worker, sessions, &mut desk))
        };
        self.workers.iter().map(start).collect()
    }
}

/// Enters and leaves until the record says that it is over.
fn work(room: &Room, worker: usize, sessions: u64, desk: &mut Desk) {
    let mut random = Random::new(worker as u64);
    loop {
        let session = random.below(sessions);
        // Most holdings are short, so that the room changes hands often. Some are long, so that
        // faults happen while a holder is inside.
        let longest = if random.below(8) == 0 { 300 } else { 15 };
        let stay = Duration::from_millis(random.below(longest));
        let over = match room.request(&format!("session {session}")).timeout(PATIENCE).enter() {
            Ok(guard) => inside(guard, worker, session, stay, desk),
            Err(error) => {
                let over = desk.tell(News::Failed { error: error.to_string() }).over;
                std::thread::sleep(Duration::from_millis(50));
                over
            }
        };
        if over {
            return;
        }
    }
}

/// Whether a holder may still believe that it holds, the time of this check, and the latest end of
/// its holding.
fn believes(watch: &LossWatch) -> (bool, Nanos, Nanos) {
    // This order matters: the process can be stopped between any two of these lines.
    let valid_until = watch.valid_until().map_or(Nanos::MAX, clock::at);
    let held = watch.standing() == Standing::Held;
    let now = clock::now();
    (held && now < valid_until, now, valid_until)
}

/// Uses the resource for a while, as long as it is held. Returns whether it is time to end.
fn inside(guard: Guard<'_>, worker: usize, session: u64, stay: Duration, desk: &mut Desk) -> bool {
    let at = clock::now();
    let watch = guard.watch();
    let (id, epoch) = (guard.holder().to_string(), guard.epoch());
    let holding = desk.tell(News::Entered { worker, session, id, epoch, at }).holding;
    let mut promised = at;
    loop {
        let (held, now, valid_until) = believes(&watch);
        if !held {
            // A lost holding knows until when other sessions are kept out. Otherwise `valid_until`
            // has passed between two checks.
            let lost = matches!(watch.standing(), Standing::Lost(_));
            let kept_out = watch.valid_until().filter(|_| lost).map(clock::at);
            let to = kept_out.unwrap_or_else(|| now.min(promised.max(at)));
            desk.tell(News::Ended { holding, at: to, lost: true });
            // The worker uses the time that it has to stop. If it left at once, others could
            // rightly enter at once.
            std::thread::sleep(Duration::from_nanos(to.saturating_sub(clock::now())));
            break;
        }
        promised = valid_until;
        if now > at + clock::nanos(stay) {
            desk.tell(News::Ended { holding, at: now, lost: false });
            break;
        }
        desk.tell(News::Uses { holding, valid_until });
        std::thread::sleep(Duration::from_millis(1));
    }
    let error = guard.leave().err().map(|error| error.to_string());
    desk.tell(News::Left { holding, error }).over
}
