//! The record of what the workers do, and the resource. Both are in the test's own process. Other
//! processes reach them over a socket.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use grouplock_testing::overlaps::{self, Stay};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::{Deserialize, Serialize};

use super::clock::{self, Nanos};
use super::resource::Resource;

/// A message of a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum News {
    /// The worker entered.
    Entered { worker: usize, session: u64, id: String, epoch: u64, at: Nanos },
    /// The worker uses the resource. It believes that it holds until `valid_until`.
    Uses { holding: usize, valid_until: Nanos },
    /// The worker holds no more since `at`: it was going to leave, or found that its holding was
    /// lost.
    Ended { holding: usize, at: Nanos, lost: bool },
    /// The worker left, or leaving failed.
    Left { holding: usize, error: Option<String> },
    /// The worker could not enter.
    Failed { error: String },
}

/// The answer to a worker.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// The number of the worker's holding.
    pub(crate) holding: usize,
    /// Whether the resource accepted the use.
    pub(crate) accepted: bool,
    /// Whether the worker has to end.
    pub(crate) over: bool,
}

/// One holding.
#[derive(Clone, Debug)]
pub(crate) struct Holding {
    pub(crate) worker: usize,
    pub(crate) session: u64,
    /// The room's name for this holding.
    pub(crate) id: String,
    pub(crate) epoch: u64,
    pub(crate) from: Nanos,
    pub(crate) to: Option<Nanos>,
    pub(crate) lost: bool,
}

#[derive(Debug, Default)]
struct Book {
    holdings: Vec<Holding>,
    resource: Resource,
    failures: BTreeMap<String, u64>,
    /// When leases were revoked without their owners' knowledge, and whose entries went with them.
    revocations: Vec<(Nanos, BTreeSet<String>)>,
}

/// The record of a run.
#[derive(Debug, Default)]
pub(crate) struct Record {
    book: Mutex<Book>,
    over: AtomicBool,
}

impl Record {
    fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }

    /// Records a message.
    pub(crate) fn tell(&self, news: News) -> Answer {
        let mut book = self.book();
        let (mut holding, mut accepted) = (0, false);
        match news {
            News::Entered { worker, session, id, epoch, at } => {
                holding = book.holdings.len();
                let new = Holding { worker, session, id, epoch, from: at, to: None, lost: false };
                book.holdings.push(new);
            }
            News::Uses { holding, valid_until } => {
                let Holding { epoch, session, .. } = book.holdings[holding];
                let at = clock::now();
                accepted = book.resource.take(holding, (epoch, session), at, valid_until);
            }
            News::Ended { holding, at, lost } => {
                let ended = &mut book.holdings[holding];
                (ended.to, ended.lost) = (Some(at), lost);
            }
            News::Left { error: None, .. } => {}
            News::Left { holding, error: Some(error) } => {
                book.holdings[holding].lost = true;
                *book.failures.entry(format!("leaving: {error}")).or_default() += 1;
            }
            News::Failed { error } => {
                *book.failures.entry(format!("entering: {error}")).or_default() += 1;
            }
        }
        drop(book);
        Answer { holding, accepted, over: self.over.load(Ordering::SeqCst) }
    }

    /// Tells all workers to end.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    pub(crate) fn holdings(&self) -> Vec<Holding> {
        self.book().holdings.clone()
    }

    /// The workers that have entered since.
    pub(crate) fn entered_since(&self, time: Nanos) -> BTreeSet<usize> {
        let book = self.book();
        book.holdings.iter().filter(|one| one.from > time).map(|one| one.worker).collect()
    }

    /// The holdings of these workers that have not ended.
    pub(crate) fn inside(&self, workers: &[usize]) -> Vec<usize> {
        let book = self.book();
        let open = book.holdings.iter().enumerate().filter(|(_, one)| one.to.is_none());
        open.filter(|(_, one)| workers.contains(&one.worker)).map(|(number, _)| number).collect()
    }

    /// The process of these workers was killed after `at`. Until then the workers may have believed
    /// that they held.
    pub(crate) fn killed(&self, workers: &[usize], at: Nanos) {
        let mut book = self.book();
        for one in &mut book.holdings {
            if one.to.is_none() && workers.contains(&one.worker) {
                one.to = Some(at);
            }
        }
    }

    /// The servers have taken the entries of these holders away since then. No lock can keep its
    /// promise to these holders.
    pub(crate) fn revoked(&self, since: Nanos, whose: BTreeSet<String>) {
        self.book().revocations.push((since, whose));
    }

    /// How many holdings the servers have taken away.
    pub(crate) fn taken(&self) -> usize {
        let book = self.book();
        let lost = book.holdings.iter().filter(|one| one.lost);
        lost.filter(|one| book.taken_away(one).is_some()).count()
    }

    /// How often the resource was used, and how often it refused.
    pub(crate) fn uses(&self) -> (u64, usize) {
        let book = self.book();
        (book.resource.accepted(), book.resource.refused().len())
    }

    /// What failed, and how often.
    pub(crate) fn failures(&self) -> BTreeMap<String, u64> {
        self.book().failures.clone()
    }

    /// How many holdings overlapped a holding of another session. Holdings whose lease was revoked
    /// by force count too.
    pub(crate) fn overlaps(&self) -> usize {
        overlaps::contradictions(&self.book().stays(|_| None)).len()
    }

    /// All contradictions to the promises. Call this only after all workers have ended: a holding
    /// that is open then never ends.
    pub(crate) fn contradictions(&self) -> Vec<String> {
        let book = self.book();
        let stays = book.stays(|one| book.taken_away(one));
        let excused = |holding: usize, at: Nanos| {
            book.taken_away(&book.holdings[holding]).is_some_and(|since| at >= since)
        };
        let mut found = overlaps::contradictions(&stays);
        let open = book.holdings.iter().filter(|one| one.to.is_none());
        found.extend(open.map(|one| format!("still open, and its worker has ended: {one:?}")));
        found.extend(book.resource.complaints(excused));
        found
    }
}

impl Book {
    /// The holdings that are over, as their holders believed. A holding starts when `enter`
    /// returns. It ends when its holder begins to leave, learns of a loss, or reaches
    /// `valid_until`, whichever is first. The time after `end` does not count: the holding was
    /// taken away then.
    fn stays(&self, end: impl Fn(&Holding) -> Option<Nanos>) -> Vec<Stay> {
        let stay = |one: &Holding| {
            let to = end(one).map_or(one.to?, |at| at.min(one.to.unwrap_or(at)));
            let (who, session) = (format!("worker {}", one.worker), one.session.to_string());
            Some(Stay { who, session, epoch: one.epoch, from: one.from, to })
        };
        self.holdings.iter().filter_map(stay).collect()
    }

    /// When a holding was taken away by force, if the servers say that it was.
    fn taken_away(&self, holding: &Holding) -> Option<Nanos> {
        let hit = |(_, whose): &&(Nanos, BTreeSet<String>)| whose.contains(&holding.id);
        self.revocations.iter().find(hit).map(|(since, _)| *since)
    }
}

/// How a worker reaches the record.
pub(crate) enum Desk {
    /// The record is in this process.
    Here(Arc<Record>),
    /// The record is in another process.
    There(BufReader<UnixStream>),
}

impl Desk {
    /// Connects over a socket.
    pub(crate) fn connect(socket: &Path) -> Self {
        Desk::There(BufReader::new(UnixStream::connect(socket).expect("the record is there")))
    }

    /// Sends a message. A worker is useless without the record, so its process ends with it.
    pub(crate) fn tell(&mut self, news: News) -> Answer {
        match self {
            Desk::Here(record) => record.tell(news),
            Desk::There(stream) => {
                let line = serde_json::to_string(&news).expect("news can be written") + "\n";
                let mut answer = String::new();
                let sent = stream.get_mut().write_all(line.as_bytes());
                if sent.and_then(|()| stream.read_line(&mut answer)).unwrap_or(0) == 0 {
                    std::process::exit(1);
                }
                serde_json::from_str(&answer).expect("an answer can be read")
            }
        }
    }
}

/// The socket on which other processes reach the record, until the test ends.
pub(crate) struct Reception(Arc<Mutex<Vec<Arc<Line>>>>);

/// The connection of one worker in another process. A worker sends a message and waits for the
/// answer before the next message.
struct Line {
    stream: UnixStream,
    /// Whether the worker is gone. Locked while a message is read and recorded.
    gone: Mutex<bool>,
}

impl Reception {
    pub(crate) fn open(record: &Arc<Record>, socket: &Path) -> Self {
        let listener = UnixListener::bind(socket).expect("a socket can be made");
        let record = Arc::clone(record);
        let lines = Arc::new(Mutex::new(Vec::new()));
        let reception = Reception(Arc::clone(&lines));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let line = Arc::new(Line { stream, gone: Mutex::new(false) });
                lock(&lines).push(Arc::clone(&line));
                let record = Arc::clone(&record);
                std::thread::spawn(move || line.answer(&record));
            }
        });
        reception
    }

    /// Waits until all messages of a process are recorded. Only for processes that are stopped:
    /// they send nothing more.
    pub(crate) fn hear_all(&self, deadline: Instant) {
        let lines = lock(&self.0).clone();
        for line in lines {
            loop {
                let gone = lock(&line.gone);
                if *gone || !line.has_news(PollTimeout::ZERO) {
                    break;
                }
                drop(gone);
                assert!(Instant::now() < deadline, "a worker has never said everything");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    /// Whether an unread message has arrived.
    fn has_news(&self, timeout: PollTimeout) -> bool {
        let mut ready = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
        poll(&mut ready, timeout).is_ok_and(|ready| ready > 0)
    }

    /// Answers the worker until it is gone.
    fn answer(&self, record: &Record) {
        let mut stream = BufReader::new(&self.stream);
        let mut line = String::new();
        loop {
            if !self.has_news(PollTimeout::NONE) {
                continue;
            }
            let mut gone = lock(&self.gone);
            line.clear();
            // The worker may have been killed in the middle of a line.
            let read = stream.read_line(&mut line).ok().filter(|length| *length > 0);
            let Some(news) = read.and_then(|_| serde_json::from_str(&line).ok()) else {
                *gone = true;
                return;
            };
            let answer = record.tell(news);
            let answer = serde_json::to_string(&answer).expect("an answer can be written");
            // If this fails, the worker is gone, and the next read reports it.
            _ = (&self.stream).write_all((answer + "\n").as_bytes());
        }
    }
}

/// The check finds a fault of ours even at the time of a revocation.
#[test]
fn only_those_are_excused_whose_leases_the_servers_have_ended() {
    let overlap = |revoked: &[&str]| {
        let record = Record::default();
        for (worker, session, at) in [(0, 0, 10), (1, 1, 20)] {
            let id = format!("holder {worker}");
            record.tell(News::Entered { worker, session, id, epoch: 5 + session, at });
        }
        record.tell(News::Ended { holding: 0, at: 30, lost: true });
        record.tell(News::Ended { holding: 1, at: 40, lost: false });
        record.revoked(15, revoked.iter().map(|id| (*id).to_owned()).collect());
        (record.contradictions().len(), record.taken())
    };
    assert_eq!(overlap(&["holder 0"]), (0, 1));
    assert_eq!(overlap(&["holder 7"]), (1, 0));
    assert_eq!(overlap(&[]), (1, 0));
}
