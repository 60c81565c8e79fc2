//! One request from its beginning to its end, as a task on the thread that talks to the servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grouplock_room::remote::{Desk, Grant};
use grouplock_room::{Loss, Patience, Recovered, RoomError};
use tokio::sync::oneshot;
use tokio::time::{sleep, sleep_until};

use crate::client::Client;
use crate::error::Failure;
use crate::keys::{self, Keys};
use crate::lease::Lease;
use crate::mirror::Mirror;
use crate::proto::{KeyValue, TxnRequest};
use crate::protocol::{Inside, MOST_BURIED, Standing, Ticket};
use crate::view::{Guess, Phase, Turn, View};
use crate::who::{self, Died, Who};

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
    mirror: Arc<Mirror>,
    /// The value of its entry.
    who: Vec<u8>,
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
    /// The lease was over before this was asked.
    NoLease,
    /// What to tell, after nothing is left of it.
    Failed(RoomError),
    /// Nobody wants it any more.
    Ended,
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NoLease { resent: false } => Trouble::NoLease,
            Failure::NoLease { resent: true } => Trouble::Lost(forgotten()),
            failure => Trouble::Failed(failure.into()),
        }
    }
}

fn forgotten() -> Loss {
    Loss::Expired("the servers do not know the lease any more".to_owned())
}

/// Serves a request until its end.
pub(crate) async fn serve(wish: Wish, desk: Desk, ended: oneshot::Receiver<()>) {
    let Wish { client, keys: room, who, patience, quiet, asking } = wish;
    let lease = match client.lease().await {
        Ok(lease) => lease,
        Err(failure) => return desk.failed(failure.into()),
    };
    let mirror = client.mirror(&room);
    let who_value = who::write(&who);
    let ticket = Ticket {
        keys: room,
        group: keys::group(&who.session, desk.holder().as_str()),
        id: desk.holder().as_str().to_owned(),
        lease: lease.id,
    };
    let mut visit = Visit {
        client,
        ticket,
        lease,
        mirror,
        who: who_value,
        desk,
        patience,
        quiet,
        ended,
        resent: false,
    };
    let mut entered = visit.enter().await;
    if let (Err(Trouble::NoLease), false) = (&entered, visit.resent) {
        // Nothing was put, so nothing is lost by asking with another lease. Else the mark of an id might be older than its
        // entry, and an epoch would be taken from it.
        visit.lease.end(forgotten());
        entered = match visit.client.lease().await {
            Ok(lease) => {
                visit.ticket.lease = lease.id;
                visit.lease = lease;
                visit.enter().await
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
                Err(Trouble::NoLease) => visit.desk.lost(forgotten()),
                Err(Trouble::Ended) => visit.leave(place, false).await,
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
            let error = visit.too_impatient(inside.as_deref().and_then(keys::session_of));
            visit.desk.failed(error);
        }
        Err(Trouble::Lost(loss)) => visit.desk.lost(loss),
        // What was unsettled has been settled.
        Err(Trouble::NoLease) | Ok(Standing::Unsettled(..)) => visit.desk.lost(forgotten()),
        Err(Trouble::Ended) => visit.desk.left(),
        Err(Trouble::Failed(error)) => {
            visit.forget();
            visit.desk.failed(error);
        }
    }
}

impl Visit {
    /// Asks for entry.
    async fn enter(&mut self) -> Result<Standing, Trouble> {
        // If very many come at once they would else wait for each other in the servers, where their time counts.
        let client = Arc::clone(&self.client);
        let _one_of_few = client.entrance.acquire().await;
        let mark = who::mark(&self.who);
        let standing = match self.guess() {
            Guess::Empty => {
                let request = self.ticket.knock(&self.who, &mark);
                self.attempt(request, None).await?
            }
            Guess::Joinable(phase, place, witness) => {
                let request = self.ticket.join((place, &witness), &self.who, &mark);
                self.attempt(request, Some(&phase)).await?
            }
            Guess::Busy => None,
        };
        let standing = if let Some(standing) = standing {
            standing
        } else {
            let request = self.ticket.enter(&self.who, &mark, !self.patience.exhausted());
            let answer = self.client.rpc.txn(request, self.client.patience()).await?;
            self.resent |= answer.resent;
            self.understood(self.ticket.read(answer.message, None))?
        };
        let standing = match standing {
            Standing::Unsettled(place, view) => Standing::Inside(self.settle(place, view).await?),
            standing => standing,
        };
        let alone = matches!(&standing, Standing::Inside(inside) if inside.place == inside.epoch);
        // Relaxed: it is a guess, and a wrong one costs a request.
        self.quiet.store(alone, Ordering::Relaxed);
        if matches!(standing, Standing::Inside(_)) && !alone {
            self.mirror.keep_watching();
        }
        Ok(standing)
    }

    /// What it will probably find.
    fn guess(&self) -> Guess {
        match self.mirror.current() {
            Some(view) => view.guess(&self.ticket.group),
            None if self.quiet.load(Ordering::Relaxed) => Guess::Empty,
            None => Guess::Busy,
        }
    }

    /// Asks for entry by a guess; `None` if the guess was wrong.
    async fn attempt(
        &mut self,
        request: TxnRequest,
        phase: Option<&Phase>,
    ) -> Result<Option<Standing>, Trouble> {
        let answer = self.client.rpc.txn(request, self.client.patience()).await?;
        self.resent |= answer.resent;
        if !answer.message.succeeded {
            return Ok(None);
        }
        self.understood(self.ticket.read(answer.message, phase)).map(Some)
    }

    /// Finds out the epoch, or writes it down.
    async fn settle(&self, place: i64, mut seen: Option<View>) -> Result<Inside, Trouble> {
        let keys = &self.ticket.keys;
        loop {
            let view = if let Some(view) = seen.take() {
                view
            } else {
                let until = self.client.patience();
                let range = self.client.rpc.range(&keys.state(), false, 0, until).await?;
                let revision = range.header.map_or(0, |header| header.revision);
                View::of(keys, revision, &range.kvs)
            };
            if view.is_gone(place) {
                return Err(Trouble::Lost(forgotten()));
            }
            if let Some(inside) = self.ticket.inside(place, &view) {
                return Ok(inside);
            }
            let (request, inside) = self.ticket.settle(place, &view);
            let answer = self.client.rpc.txn(request, self.client.patience()).await?;
            if answer.message.succeeded {
                return Ok(inside);
            }
            // Somebody else has written it, or our entry is gone.
        }
    }

    /// Waits in the queue and comes in.
    async fn wait(&mut self, place: i64) -> Result<Inside, Trouble> {
        let mirror = Arc::clone(&self.mirror);
        let mut news = self.lease.news();
        let mut deadline = self.patience.deadline();
        let (turn, view) = loop {
            let late = async {
                match deadline {
                    Some(time) => sleep_until(time.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = &mut self.ended => return Err(Trouble::Ended),
                turn = mirror.turn(place) => break turn,
                loss = over(&mut news) => return Err(Trouble::Lost(loss)),
                () = late => {
                    self.desk.expired();
                    deadline = None;
                }
            }
        };
        match turn {
            Turn::Gone => Err(Trouble::Lost(forgotten())),
            // The one who left has let it in, in a transaction that found its entry.
            Turn::Inside => match self.ticket.inside(place, &view) {
                Some(inside) => Ok(inside),
                None => self.settle(place, None).await,
            },
            Turn::Come | Turn::Wait => {
                let request = self.ticket.claim(place, &view, &who::mark(&self.who));
                let answer = self.client.rpc.txn(request, self.client.patience()).await?;
                let inside = self.ticket.read_claim(answer.message, place, &view);
                inside.ok_or_else(|| Trouble::Lost(forgotten()))
            }
        }
    }

    /// What to tell one who does not want to wait for long enough.
    fn too_impatient(&self, inside: Option<String>) -> RoomError {
        match self.patience {
            Patience::None => RoomError::Occupied { inside },
            _ => RoomError::TimedOut { waited: Duration::ZERO },
        }
    }

    fn understood(&self, standing: Option<Standing>) -> Result<Standing, Trouble> {
        let what = "a transaction has other steps than were asked for";
        let place = || self.client.settings.place.clone();
        Ok(standing.ok_or_else(|| Failure::Nonsense { place: place(), what })?)
    }

    /// Is inside, until it is left or lost.
    async fn stay(mut self, mut inside: Inside) {
        let place = inside.place;
        let told = Told::by(&inside, self.client.settings.delay);
        if !told.delay.is_zero() && !self.hold_back(&mut inside, &told).await {
            self.leave(place, true).await;
            return self.desk.failed(self.too_impatient(None));
        }
        if !inside.made {
            // Once in the life of a room. If it fails, the next one does it.
            _ = self.client.rpc.txn(self.ticket.keys.make(), self.client.patience()).await;
        }
        let mut news = self.lease.news();
        let Some(valid_until) = self.lease.good_until() else {
            return self.desk.lost(forgotten());
        };
        let admission = Grant {
            epoch: inside.epoch.cast_unsigned(),
            recovered: told.recovered.clone(),
            valid_until: Some(valid_until),
        };
        self.desk.grace(self.lease.grace());
        if self.desk.granted(admission) {
            // Only now is somebody told of the dead who will not be told again.
            self.bury(&inside, &told).await;
            let mirror = Arc::clone(&self.mirror);
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
        self.leave(place, true).await;
    }

    /// The one who opened a phase writes down who died before it, so that those who join it are told as well, and
    /// removes their marks, so that those after it are not. If this fails the marks stay, and tell the same.
    async fn bury(&self, inside: &Inside, told: &Told) {
        let dead: Vec<&KeyValue> = inside.dead.iter().collect();
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

    /// The transaction by which it leaves, if it takes one: to let others in, or to leave a tombstone. The view is not kept
    /// longer than that: a mirror that changes copies what somebody else still has.
    fn leaving(&self, place: i64, inside: bool) -> Option<TxnRequest> {
        let view = self.mirror.current().filter(|_| inside);
        let heirs = view.as_ref().map(|view| view.heirs(place)).unwrap_or_default();
        match &view {
            Some(view) if !heirs.is_empty() => {
                let marked = heirs.iter().map(|(its, heir)| (*its, *heir, who::mark(&heir.value)));
                let heirs: Vec<_> = marked.collect();
                Some(self.ticket.hand_over(place, view, &heirs, self.resent))
            }
            _ => self.resent.then(|| self.ticket.leave(true)),
        }
    }

    /// Leaves the room or the queue.
    async fn leave(&self, place: i64, inside: bool) {
        let until = self.lease.good_until().unwrap_or_else(Instant::now);
        let rpc = &self.client.rpc;
        // The number of its keys that were deleted, and whether an earlier attempt may have deleted them.
        let left = if let Some(request) = self.leaving(place, inside) {
            let answer = rpc.txn(request, until).await;
            answer.map(|answer| (Ticket::read_leave(answer.message), answer.resent))
        } else {
            // The same without a transaction, which is faster.
            let answer = rpc.delete(self.ticket.pair(), until).await;
            answer.map(|answer| (answer.message.deleted, answer.resent))
        };
        match left {
            Ok((2, _)) => self.desk.left(),
            Ok((0, true)) if self.lease.good_until().is_some() => self.desk.left(),
            Ok(_) if !inside => self.desk.left(),
            // Its entry is gone, and with it the lease.
            Ok(_) | Err(Failure::NoLease { .. }) => self.desk.lost(forgotten()),
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
        let mark: Who = who::read(&last.value);
        let known = known.unwrap_or_default();
        let came = last.create_revision;
        let epoch = if (1..=came).contains(&inside.before) { inside.before } else { came };
        let noticed = if known.seen >= came { known.noticed } else { who::now() };
        let died = Died {
            told: inside.epoch,
            total: known.total + inside.dead.len() as u64,
            epoch,
            session: mark.session,
            host: mark.host,
            pid: mark.pid,
            noticed,
            seen: came,
        };
        let left = left_of(delay, noticed);
        let notice = (known.seen < came).then_some(Died { noticed, seen: came, ..known });
        Told { recovered: Some(died.recovered()), died: Some(died), notice, delay: left }
    }
}

/// What is left of a delay that began then. By the clock of whoever noticed, so it is not trusted beyond its length.
fn left_of(delay: Duration, began: u64) -> Duration {
    let passed = Duration::from_millis(who::now().saturating_sub(began));
    delay.saturating_sub(passed)
}
