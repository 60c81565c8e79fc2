//! Where workers write down what they do, and where the resource is: in the test's own process, reached by other processes over a
//! socket.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::clock::{self, Nanos};
use super::history::{self, Belief};
use super::resource::Resource;

/// What a worker has to say.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum News {
    /// It was let in.
    Entered { worker: usize, session: u64, epoch: u64, at: Nanos },
    /// It uses the resource, as it believes to hold until then.
    Uses { holding: usize, valid_until: Nanos },
    /// It holds no more since then, as it was going to leave or found that it had lost.
    Ended { holding: usize, at: Nanos, lost: bool },
    /// It has left, or that failed.
    Left { holding: usize, error: Option<String> },
    /// It was not let in.
    Failed { error: String },
}

/// What it is told.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// The number of its holding.
    pub(crate) holding: usize,
    /// Whether the resource let itself be used.
    pub(crate) accepted: bool,
    /// Whether it is time to end.
    pub(crate) over: bool,
}

/// One holding.
#[derive(Clone, Debug)]
pub(crate) struct Holding {
    pub(crate) worker: usize,
    pub(crate) session: u64,
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
    /// When leases were revoked behind their owners' backs.
    revocations: Vec<(Nanos, Nanos)>,
}

/// The record of a run.
#[derive(Debug, Default)]
pub(crate) struct Record {
    book: Mutex<Book>,
    over: AtomicBool,
}

impl Record {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes it down.
    pub(crate) fn tell(&self, news: News) -> Answer {
        let mut book = self.book();
        let (mut holding, mut accepted) = (0, false);
        match news {
            News::Entered { worker, session, epoch, at } => {
                holding = book.holdings.len();
                let new = Holding { worker, session, epoch, from: at, to: None, lost: false };
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

    /// Who has entered since.
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

    /// The process of these workers was killed after that moment: until then they may have believed to hold.
    pub(crate) fn killed(&self, workers: &[usize], at: Nanos) {
        let mut book = self.book();
        for one in &mut book.holdings {
            if one.to.is_none() && workers.contains(&one.worker) {
                one.to = Some(at);
            }
        }
    }

    /// Leases were taken away by force in that time: no lock can keep its promise to their owners.
    pub(crate) fn revoked(&self, from: Nanos, to: Nanos) {
        self.book().revocations.push((from, to));
    }

    /// How often the resource was used and how often it refused.
    pub(crate) fn uses(&self) -> (u64, usize) {
        let book = self.book();
        (book.resource.accepted(), book.resource.refused().len())
    }

    /// What was not possible, and how often.
    pub(crate) fn failures(&self) -> BTreeMap<String, u64> {
        self.book().failures.clone()
    }

    /// How many were inside together with another session, those included whose lease was taken away by force.
    pub(crate) fn overlaps(&self) -> usize {
        history::contradictions(&self.book().beliefs(|_| None)).len()
    }

    /// All that contradicts the promises.
    pub(crate) fn contradictions(&self) -> Vec<String> {
        let book = self.book();
        let beliefs = book.beliefs(|one| book.taken_away(one));
        let excused = |holding: usize, at: Nanos| {
            book.taken_away(&book.holdings[holding]).is_some_and(|since| at >= since)
        };
        let mut found = history::contradictions(&beliefs);
        found.extend(book.resource.complaints(excused));
        found
    }
}

impl Book {
    /// What holders believed, but for the time after `end` says that it was taken from them.
    fn beliefs(&self, end: impl Fn(&Holding) -> Option<Nanos>) -> Vec<Belief> {
        let belief = |one: &Holding| {
            let to = one.to.unwrap_or(Nanos::MAX);
            let to = end(one).map_or(to, |at| to.min(at));
            let Holding { worker, session, epoch, from, .. } = *one;
            Belief { worker, session, epoch, from, to }
        };
        self.holdings.iter().map(belief).collect()
    }

    /// When a holding was taken away by force, if it was. Also one that was granted before and told after, up to a second.
    fn taken_away(&self, holding: &Holding) -> Option<Nanos> {
        let ended = holding.to.unwrap_or(Nanos::MAX);
        let hit = |&&(from, to): &&(Nanos, Nanos)| {
            holding.lost && ended >= from && holding.from <= to + 1_000_000_000
        };
        self.revocations.iter().find(hit).map(|(from, _)| *from)
    }
}

/// How a worker reaches the record.
pub(crate) enum Desk {
    /// In this process.
    Here(Arc<Record>),
    /// In another one.
    There(BufReader<UnixStream>),
}

impl Desk {
    /// Over a socket.
    pub(crate) fn connect(socket: &Path) -> Self {
        Desk::There(BufReader::new(UnixStream::connect(socket).expect("the record is there")))
    }

    /// Tells the news. Without a record there is nothing to work for, so a process ends with it.
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

/// Lets other processes reach the record, until the test ends.
pub(crate) fn serve(record: &Arc<Record>, socket: &Path) {
    let listener = UnixListener::bind(socket).expect("a socket can be made");
    let record = Arc::clone(record);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let record = Arc::clone(&record);
            std::thread::spawn(move || answer(&record, stream));
        }
    });
}

/// Answers one worker until it is gone.
fn answer(record: &Record, stream: UnixStream) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while stream.read_line(&mut line).is_ok_and(|length| length > 0) {
        // A worker that was killed in the middle of a line.
        let Ok(news) = serde_json::from_str(&line) else { return };
        let answer = serde_json::to_string(&record.tell(news)).expect("an answer can be written");
        if stream.get_mut().write_all((answer + "\n").as_bytes()).is_err() {
            return;
        }
        line.clear();
    }
}
