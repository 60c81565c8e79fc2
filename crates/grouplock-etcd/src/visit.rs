//! One request from its beginning to its end, as a task on the thread that talks to the servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grouplock_room::remote::{Admission, Desk};
use grouplock_room::{Loss, Patience, Recovered, RoomError};
use tokio::sync::oneshot;
use tokio::time::{sleep, sleep_until};

use crate::client::Client;
use crate::error::Failure;
use crate::keys::Keys;
use crate::lease::Lease;
use crate::line::Turn;
use crate::proto::{KeyValue, TxnResponse};
use crate::protocol::{Inside, Left, MOST_BURIED, Standing, Ticket};
use crate::who::{self, Died, Mark, Who};

/// Who stays for longer than this watches its own key. A shorter stay is over before anything would come of it, and a watch
/// costs the servers something.
const MOMENT: Duration = Duration::from_millis(50);

/// What is wanted.
pub(crate) struct Wish {
    pub(crate) client: Arc<Client>,
    pub(crate) keys: Keys,
    pub(crate) who: Who,
    pub(crate) patience: Patience,
    /// Whether the room was empty the last time somebody came.
    pub(crate) quiet: Arc<AtomicBool>,
    /// Keeps looks at the room behind requests that came before them.
    pub(crate) asking: tokio::sync::OwnedRwLockReadGuard<()>,
}

/// A request that is being served.
struct Visit {
    client: Arc<Client>,
    ticket: Ticket,
    lease: Arc<Lease>,
    mark: Vec<u8>,
    desk: Desk,
    patience: Patience,
    quiet: Arc<AtomicBool>,
    /// Says that nobody wants it any more.
    ended: oneshot::Receiver<()>,
    /// Whether a request to enter may still be on its way.
    resent: bool,
}

/// Why a visit ended before it was left.
enum Trouble {
    /// The lease is over, and with it everything.
    Lost(Loss),
    /// What to tell, after nothing is left of it.
    Failed(RoomError),
    /// Nobody wants it any more.
    Ended,
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NoLease => Trouble::Lost(forgotten()),
            failure => Trouble::Failed(failure.into()),
        }
    }
}

fn forgotten() -> Loss {
    Loss::Expired("the servers do not know the lease any more".to_owned())
}

/// Serves a request until its end.
pub(crate) async fn serve(wish: Wish, desk: Desk, ended: oneshot::Receiver<()>) {
    let Wish { client, keys, who, patience, quiet, asking } = wish;
    let lease = match client.lease().await {
        Ok(lease) => lease,
        Err(failure) => return desk.failed(failure.into()),
    };
    let mark = Mark {
        session: who.session.clone(),
        host: who.host.clone(),
        pid: who.pid,
        since: who::now(),
    };
    let ticket = Ticket {
        keys,
        session: who.session.clone(),
        id: desk.holder().as_str().to_owned(),
        lease: lease.id,
    };
    let mark = who::write(&mark);
    let mut visit =
        Visit { client, ticket, lease, mark, desk, patience, quiet, ended, resent: false };
    let mut entered = visit.enter(&who).await;
    if let Err(Trouble::Lost(loss)) = &entered {
        // The servers have forgotten the lease, and everything under it, before this was asked: nothing is lost by
        // asking with another one.
        visit.lease.end(loss.clone());
        entered = match visit.client.lease().await {
            Ok(lease) => {
                visit.ticket.lease = lease.id;
                visit.lease = lease;
                visit.enter(&who).await
            }
            Err(failure) => Err(failure.into()),
        };
    }
    drop(asking);
    match entered {
        Ok(Standing::Inside(inside)) => visit.stay(inside).await,
        Ok(Standing::Queued(place)) => {
            visit.desk.queued();
            match visit.wait(place).await {
                Ok(inside) => visit.stay(inside).await,
                Err(Trouble::Lost(loss)) => visit.desk.lost(loss),
                Err(Trouble::Ended) => visit.leave(place).await,
                Err(Trouble::Failed(error)) => {
                    visit.forget();
                    visit.desk.failed(error);
                }
            }
        }
        Ok(Standing::Absent(inside)) => {
            if visit.resent {
                visit.forget();
            }
            let error = visit.too_impatient(inside);
            visit.desk.failed(error);
        }
        Err(Trouble::Lost(loss)) => visit.desk.lost(loss),
        Err(Trouble::Ended) => visit.desk.left(),
        Err(Trouble::Failed(error)) => {
            visit.forget();
            visit.desk.failed(error);
        }
    }
}

impl Visit {
    /// Asks for entry.
    async fn enter(&mut self, who: &Who) -> Result<Standing, Trouble> {
        let who = who::write(who);
        // Relaxed: it is a guess, and a wrong one costs a request.
        if self.quiet.load(Ordering::Relaxed) {
            let request = self.ticket.knock(&who, &self.mark);
            let answer = self.client.rpc.txn(request, self.client.patience()).await?;
            self.resent = answer.resent;
            if let Some(inside) = self.ticket.read_knock(answer.message) {
                return Ok(Standing::Inside(inside));
            }
        }
        let wait = !self.patience.exhausted();
        let request = self.ticket.enter(&who, &self.mark, wait);
        let answer = self.client.rpc.txn(request, self.client.patience()).await?;
        self.resent |= answer.resent;
        let standing = self.read(answer.message)?;
        let alone = matches!(&standing, Standing::Inside(inside) if inside.place == inside.epoch);
        self.quiet.store(alone, Ordering::Relaxed);
        Ok(standing)
    }

    /// Waits in the queue and comes in.
    async fn wait(&mut self, place: i64) -> Result<Inside, Trouble> {
        let mirror = self.client.mirror(&self.ticket.keys);
        let mut news = self.lease.news();
        let mut deadline = self.patience.deadline();
        loop {
            let late = async {
                match deadline {
                    Some(time) => sleep_until(time.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = &mut self.ended => return Err(Trouble::Ended),
                turn = mirror.turn(place) => match turn {
                    Turn::Gone => return Err(Trouble::Lost(forgotten())),
                    Turn::Come | Turn::Wait => break,
                },
                loss = over(&mut news) => return Err(Trouble::Lost(loss)),
                () = late => {
                    self.desk.expired();
                    deadline = None;
                }
            }
        }
        let request = self.ticket.claim(place, &self.mark);
        let answer = self.client.rpc.txn(request, self.client.patience()).await?;
        match self.read(answer.message)? {
            Standing::Inside(inside) => Ok(inside),
            // The guard has held: the key is gone, or not the one that was made.
            Standing::Queued(_) | Standing::Absent(_) => Err(Trouble::Lost(forgotten())),
        }
    }

    /// What to tell one who does not want to wait for long enough.
    fn too_impatient(&self, inside: Option<String>) -> RoomError {
        match self.patience {
            Patience::None => RoomError::Occupied { inside },
            _ => RoomError::TimedOut { waited: Duration::ZERO },
        }
    }

    fn read(&self, response: TxnResponse) -> Result<Standing, Trouble> {
        let what = "a transaction has other steps than were asked for";
        let place = || self.client.settings.place.clone();
        Ok(self.ticket.read(response).ok_or_else(|| Failure::Nonsense { place: place(), what })?)
    }

    /// Is inside, until it is left or lost.
    async fn stay(mut self, mut inside: Inside) {
        let place = inside.place;
        let told = Told::by(&inside, self.client.settings.delay);
        if !told.delay.is_zero() && !self.hold_back(&mut inside, &told).await {
            self.leave(place).await;
            return self.desk.failed(self.too_impatient(None));
        }
        let mut news = self.lease.news();
        let Some(valid_until) = self.lease.good_until() else {
            return self.desk.lost(forgotten());
        };
        let admission = Admission {
            epoch: inside.epoch.cast_unsigned(),
            recovered: told.recovered.clone(),
            valid_until: Some(valid_until),
        };
        self.desk.grace(self.lease.grace());
        if self.desk.granted(admission) {
            // Only now is somebody told of the dead who will not be told again.
            self.bury(&inside, &told).await;
            let mirror = self.client.mirror(&self.ticket.keys);
            let taken = async {
                sleep(MOMENT).await;
                mirror.gone(place).await;
            };
            tokio::pin!(taken);
            loop {
                tokio::select! {
                    biased;
                    _ = &mut self.ended => break,
                    // Its time is not over, so somebody else has done it: the lease, or the key, was taken away.
                    () = &mut taken => {
                        let loss = Loss::Revoked("its key in etcd is gone".to_owned());
                        return self.desk.lost(loss);
                    }
                    changed = news.changed() => {
                        let latest = news.borrow_and_update().clone();
                        match latest.over {
                            Some(loss) => return self.desk.lost(loss),
                            None if changed.is_err() => break,
                            None => _ = self.desk.renewed(latest.until),
                        }
                    }
                }
            }
        }
        self.leave(place).await;
    }

    /// The one who opened a phase writes down who died before it, so that those who join it are told as well, and
    /// removes their marks, so that those after it are not. If this fails the marks stay, and tell the same.
    async fn bury(&self, inside: &Inside, told: &Told) {
        let dead: Vec<&KeyValue> = inside.died_before().collect();
        let (Some(died), true) = (&told.died, inside.opener && !dead.is_empty()) else { return };
        let died = who::write(died);
        let mut parts = dead.chunks(MOST_BURIED).rev().peekable();
        while let Some(part) = parts.next() {
            let died = parts.peek().is_none().then_some(died.as_slice());
            let request = self.ticket.bury(inside, part, died);
            if self.client.rpc.txn(request, self.client.patience()).await.is_err() {
                return;
            }
        }
    }

    /// Waits before coming in after somebody has died. Whether there was enough patience for that.
    async fn hold_back(&mut self, inside: &mut Inside, told: &Told) -> bool {
        if let Some(notice) = &told.notice {
            // If it fails the delay begins again with the next.
            let value = who::write(notice);
            let request = self.ticket.bury(inside, &[], Some(&value));
            if let Ok(answer) = self.client.rpc.txn(request, self.client.patience()).await
                && let (true, Some(header)) = (answer.message.succeeded, answer.message.header)
            {
                let mod_revision = header.revision;
                inside.died = Some(KeyValue { mod_revision, value, ..KeyValue::default() });
            }
        }
        let end = Instant::now() + told.delay;
        if self.patience == Patience::None
            || self.patience.deadline().is_some_and(|time| time < end)
        {
            return false;
        }
        self.desk.queued();
        tokio::select! {
            () = sleep_until(end.into()) => {}
            // It is given back in the usual way.
            _ = &mut self.ended => {}
        }
        true
    }

    /// Leaves the room or the queue.
    async fn leave(&self, place: i64) {
        let until = self.lease.good_until().unwrap_or_else(Instant::now);
        let request = self.ticket.leave(place, self.resent);
        match self.client.rpc.txn(request, until).await {
            Ok(answer) => match Ticket::read_leave(&answer.message) {
                Left::Now => self.desk.left(),
                // An earlier attempt may have been the one that left; if the lease has lasted, it was.
                Left::WithoutTrace if answer.resent && self.lease.good_until().is_some() => {
                    self.desk.left();
                }
                Left::WithoutTrace | Left::Taken => self.desk.lost(forgotten()),
            },
            Err(Failure::NoLease) => self.desk.lost(forgotten()),
            Err(failure) => {
                self.forget();
                self.desk.lost(Loss::Expired(failure.to_string()));
            }
        }
    }

    /// Sees to it that nothing is left, for as long as the lease lasts: then it is gone with that.
    fn forget(&self) {
        let (client, lease) = (Arc::clone(&self.client), Arc::clone(&self.lease));
        let request = self.ticket.abandon();
        tokio::spawn(async move {
            while lease.good_until().is_some() {
                let until = Instant::now() + client.settings.timeout;
                match client.rpc.txn(request.clone(), until).await {
                    Err(Failure::Unreachable { .. }) => {}
                    Ok(_) | Err(_) => return,
                }
            }
        });
    }
}

/// Completes when the lease is over or not trusted any more.
async fn over(news: &mut tokio::sync::watch::Receiver<crate::lease::News>) -> Loss {
    loop {
        let latest = news.borrow_and_update().clone();
        if let Some(loss) = latest.over {
            return loss;
        }
        tokio::select! {
            changed = news.changed() => if changed.is_err() { return forgotten() },
            () = sleep_until(latest.until.into()) => {
                if news.borrow().until <= Instant::now() { return forgotten() }
            }
        }
    }
}

/// What one who comes in is told of the dead.
struct Told {
    recovered: Option<Recovered>,
    /// What is to be written down when it has been told.
    died: Option<Died>,
    /// What is to be written down before it holds back, if that has not been done.
    notice: Option<Died>,
    /// How long it has to hold back.
    delay: Duration,
}

impl Told {
    fn by(inside: &Inside, delay: Duration) -> Self {
        let known: Option<Died> = inside.died.as_ref().map(|kv| who::read(&kv.value));
        let Some(last) = inside.dead.iter().max_by_key(|mark| mark.create_revision) else {
            let known = known.filter(|known| known.told == inside.epoch);
            let left = known.as_ref().map_or(Duration::ZERO, |known| left_of(delay, known.noticed));
            let recovered = known.map(|known| known.recovered());
            return Told { recovered, died: None, notice: None, delay: left };
        };
        let mark: Mark = who::read(&last.value);
        let known = known.unwrap_or_default();
        let came = last.create_revision;
        let epoch = match &inside.before {
            _ if came >= inside.epoch => inside.epoch,
            Some((epoch, _)) if came >= *epoch => *epoch,
            _ => came,
        };
        let noticed = if known.seen >= came { known.noticed } else { who::now() };
        let died = Died {
            told: inside.epoch,
            total: known.total + inside.died_before().count() as u64,
            epoch,
            session: mark.session,
            host: mark.host,
            pid: mark.pid,
            noticed,
            seen: came,
        };
        // One of this phase who died leaves its fellows inside: there is nobody to be kept out.
        let left = if came < inside.epoch { left_of(delay, noticed) } else { Duration::ZERO };
        let notice = (known.seen < came).then_some(Died { noticed, seen: came, ..known });
        Told { recovered: Some(died.recovered()), died: Some(died), notice, delay: left }
    }
}

/// What is left of a delay that began then. By the clock of whoever noticed, so it is not trusted beyond its length.
fn left_of(delay: Duration, began: u64) -> Duration {
    let passed = Duration::from_millis(who::now().saturating_sub(began));
    delay.saturating_sub(passed)
}
