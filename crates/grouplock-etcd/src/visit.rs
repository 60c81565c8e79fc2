//! One request from its beginning to its end, as a task of the [runner](crate::runner).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grouplock_room::remote::{Desk, Grant};
use grouplock_room::{Loss, Patience, RoomError};
use tokio::sync::oneshot;
use tokio::time::{sleep, sleep_until};

use crate::client::Client;
use crate::deaths::Deaths;
use crate::error::Failure;
use crate::keys::{self, Keys};
use crate::lease::Lease;
use crate::mirror::Mirror;
use crate::proto::TxnRequest;
use crate::protocol::{Entrant, Holder, Outcome};
use crate::view::{EntryState, Guess, Phase, View};
use crate::who::{self, Died, Who};

/// A holder that stays longer than this watches its own key. A shorter stay ends before a watch
/// would help, and a watch costs the servers work.
const MOMENT: Duration = Duration::from_millis(50);

/// What the task needs to serve a request.
pub(crate) struct Submission {
    pub(crate) client: Arc<Client>,
    pub(crate) keys: Keys,
    pub(crate) who: Who,
    pub(crate) patience: Patience,
    /// The room was empty at the last entry.
    pub(crate) was_empty: Arc<AtomicBool>,
    /// Delays snapshots until this request is answered.
    pub(crate) barrier: tokio::sync::OwnedRwLockReadGuard<()>,
}

/// A request that is being served.
struct Visit {
    client: Arc<Client>,
    entrant: Entrant,
    lease: Arc<Lease>,
    mirror: Arc<Mirror>,
    /// The value of its entry.
    who: Vec<u8>,
    desk: Desk,
    patience: Patience,
    was_empty: Arc<AtomicBool>,
    /// Completes when the program no longer wants the request.
    ended: oneshot::Receiver<()>,
    /// A copy of the request to enter may still arrive.
    resent: bool,
}

/// Why a request ended early.
enum Trouble {
    /// The lease has ended, and the request with it.
    Lost(Loss),
    /// The lease had ended before the request was sent.
    NoLease,
    /// The error for the program. Nothing of the request is left.
    Failed(RoomError),
    /// The program no longer wants the request.
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
    Loss::Expired("the servers no longer know the lease".to_owned())
}

/// Serves a request until its end.
pub(crate) async fn serve(submission: Submission, desk: Desk, ended: oneshot::Receiver<()>) {
    let Submission { client, keys: room, who, patience, was_empty, barrier } = submission;
    let lease = match client.lease().await {
        Ok(lease) => lease,
        Err(failure) => return desk.failed(failure.into()),
    };
    let mirror = client.mirror(&room);
    let who_value = who::write(&who);
    let entrant = Entrant {
        keys: room,
        group: keys::group(&who.session, desk.holder().as_str()),
        id: desk.holder().as_str().to_owned(),
        lease: lease.id,
    };
    let mut visit = Visit {
        client,
        entrant,
        lease,
        mirror,
        who: who_value,
        desk,
        patience,
        was_empty,
        ended,
        resent: false,
    };
    let mut entered = visit.enter().await;
    if let (Err(Trouble::NoLease), false) = (&entered, visit.resent) {
        // Nothing was put, so the request can use another lease. If something were put, the mark of
        // an id could be older than its entry, and a wrong epoch would follow.
        visit.lease.end(forgotten());
        entered = match visit.client.lease().await {
            Ok(lease) => {
                visit.entrant.lease = lease.id;
                visit.lease = lease;
                visit.enter().await
            }
            Err(failure) => Err(failure.into()),
        };
    }
    drop(barrier);
    match entered {
        Ok(Outcome::Inside(inside)) => visit.stay(inside).await,
        Ok(Outcome::Queued(position)) => {
            visit.desk.queued();
            match visit.wait(position).await {
                Ok(inside) => visit.stay(inside).await,
                Err(Trouble::Lost(loss)) => visit.desk.lost(loss),
                Err(Trouble::NoLease) => visit.desk.lost(forgotten()),
                Err(Trouble::Ended) => visit.leave(position, false).await,
                Err(Trouble::Failed(error)) => {
                    visit.forget();
                    visit.desk.failed(error);
                }
            }
        }
        Ok(Outcome::Absent(inside)) => {
            if visit.resent {
                visit.forget();
            }
            let error = visit.too_impatient(inside.as_deref().and_then(keys::session_of));
            visit.desk.failed(error);
        }
        Err(Trouble::Lost(loss)) => visit.desk.lost(loss),
        // `enter` has settled what was unsettled.
        Err(Trouble::NoLease) | Ok(Outcome::Unsettled(..)) => visit.desk.lost(forgotten()),
        Err(Trouble::Ended) => visit.desk.left(),
        Err(Trouble::Failed(error)) => {
            visit.forget();
            visit.desk.failed(error);
        }
    }
}

impl Visit {
    /// Asks for entry.
    async fn enter(&mut self) -> Result<Outcome, Trouble> {
        // Without the limit, many requests would wait for each other in the servers, where time
        // limits count.
        let client = Arc::clone(&self.client);
        let _one_of_few = client.entrance.acquire().await;
        let mark = who::mark(&self.who);
        let outcome = match self.guess() {
            Guess::Empty => {
                let request = self.entrant.knock(&self.who, &mark);
                self.attempt(request, None).await?
            }
            Guess::Joinable(phase, position, witness) => {
                let request = self.entrant.join((position, &witness), &self.who, &mark);
                self.attempt(request, Some(&phase)).await?
            }
            Guess::Busy => None,
        };
        let outcome = if let Some(outcome) = outcome {
            outcome
        } else {
            let request = self.entrant.enter(&self.who, &mark, !self.patience.exhausted());
            let answer = self.client.rpc.txn(request, self.client.patience()).await?;
            self.resent |= answer.resent;
            self.understood(self.entrant.read(answer.message, None))?
        };
        let outcome = match outcome {
            Outcome::Unsettled(position, view) => {
                Outcome::Inside(self.settle(position, view).await?)
            }
            outcome => outcome,
        };
        let alone = matches!(&outcome, Outcome::Inside(inside) if inside.position == inside.epoch);
        // Relaxed: it is a guess. A wrong guess costs one request.
        self.was_empty.store(alone, Ordering::Relaxed);
        if matches!(outcome, Outcome::Inside(_)) && !alone {
            self.mirror.keep_watching();
        }
        Ok(outcome)
    }

    /// Guesses the state of the room.
    fn guess(&self) -> Guess {
        match self.mirror.current() {
            Some(view) => view.guess(&self.entrant.group),
            None if self.was_empty.load(Ordering::Relaxed) => Guess::Empty,
            None => Guess::Busy,
        }
    }

    /// Asks for entry by a guess; `None` if the guess was wrong.
    async fn attempt(
        &mut self,
        request: TxnRequest,
        phase: Option<&Phase>,
    ) -> Result<Option<Outcome>, Trouble> {
        let answer = self.client.rpc.txn(request, self.client.patience()).await?;
        self.resent |= answer.resent;
        if !answer.message.succeeded {
            return Ok(None);
        }
        self.understood(self.entrant.read(answer.message, phase)).map(Some)
    }

    /// Reads the epoch, or writes it.
    async fn settle(&self, position: i64, mut seen: Option<View>) -> Result<Holder, Trouble> {
        let keys = &self.entrant.keys;
        loop {
            let view = if let Some(view) = seen.take() {
                view
            } else {
                let until = self.client.patience();
                let range = self.client.rpc.range(&keys.state(), false, 0, until).await?;
                let revision = range.header.map_or(0, |header| header.revision);
                View::of(keys, revision, &range.kvs)
            };
            if view.is_gone(position) {
                return Err(Trouble::Lost(forgotten()));
            }
            if let Some(inside) = self.entrant.inside(position, &view) {
                return Ok(inside);
            }
            let (request, inside) = self.entrant.settle(position, &view);
            let answer = self.client.rpc.txn(request, self.client.patience()).await?;
            if answer.message.succeeded {
                return Ok(inside);
            }
            // Another holder has written it, or our entry is gone.
        }
    }

    /// Waits in the queue, and enters.
    async fn wait(&mut self, position: i64) -> Result<Holder, Trouble> {
        let mirror = Arc::clone(&self.mirror);
        let mut news = self.lease.news();
        let mut deadline = self.patience.deadline();
        let (state, view) = loop {
            let late = async {
                match deadline {
                    Some(time) => sleep_until(time.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = &mut self.ended => return Err(Trouble::Ended),
                found = mirror.end_of_wait(position) => break found,
                loss = over(&mut news) => return Err(Trouble::Lost(loss)),
                () = late => {
                    self.desk.expired();
                    deadline = None;
                }
            }
        };
        match state {
            EntryState::Gone => Err(Trouble::Lost(forgotten())),
            // A leaving holder admitted it, in a transaction that found its entry.
            EntryState::Inside => match self.entrant.inside(position, &view) {
                Some(inside) => Ok(inside),
                None => self.settle(position, None).await,
            },
            EntryState::MayEnter | EntryState::Waits => {
                let request = self.entrant.claim(position, &view, &who::mark(&self.who));
                let answer = self.client.rpc.txn(request, self.client.patience()).await?;
                let inside = self.entrant.read_claim(answer.message, position, &view);
                inside.ok_or_else(|| Trouble::Lost(forgotten()))
            }
        }
    }

    /// The error for a request that may not wait long enough.
    fn too_impatient(&self, inside: Option<String>) -> RoomError {
        match self.patience {
            Patience::None => RoomError::Occupied { inside },
            _ => RoomError::TimedOut { waited: Duration::ZERO },
        }
    }

    fn understood(&self, outcome: Option<Outcome>) -> Result<Outcome, Trouble> {
        let what = "the steps of a transaction differ from the request";
        let place = || self.client.settings.place.clone();
        Ok(outcome.ok_or_else(|| Failure::Nonsense { place: place(), what })?)
    }

    /// Stays inside until the program leaves or the holding is lost.
    async fn stay(mut self, mut inside: Holder) {
        let position = inside.position;
        let deaths = Deaths::by(&inside, self.client.settings.delay, who::now());
        if !deaths.delay.is_zero() && !self.hold_back(&mut inside, &deaths).await {
            self.leave(position, true).await;
            return self.desk.failed(self.too_impatient(None));
        }
        if !inside.is_listed {
            // Once in the life of a room. If it fails, the next holder does it.
            _ = self.client.rpc.txn(self.entrant.keys.make(), self.client.patience()).await;
        }
        let mut news = self.lease.news();
        let Some(valid_until) = self.lease.good_until() else {
            return self.desk.lost(forgotten());
        };
        let admission = Grant {
            epoch: inside.epoch.cast_unsigned(),
            recovered: deaths.report.as_ref().map(Died::recovered),
            valid_until: Some(valid_until),
        };
        self.desk.grace(self.lease.grace());
        if self.desk.granted(admission) {
            // First the grant, because the deaths are not reported again after this.
            self.bury(&inside, &deaths).await;
            let mirror = Arc::clone(&self.mirror);
            let taken = async {
                sleep(MOMENT).await;
                mirror.gone(position).await;
            };
            tokio::pin!(taken);
            loop {
                tokio::select! {
                    biased;
                    _ = &mut self.ended => break,
                    // The lease is not over, so somebody has deleted the key or revoked the lease.
                    () = &mut taken => {
                        let loss = Loss::Revoked("its key in etcd is gone".to_owned());
                        return self.desk.lost(loss);
                    }
                    changed = news.changed() => {
                        let latest = news.borrow_and_update().clone();
                        match latest.over {
                            Some(loss) => return self.desk.lost(loss),
                            None if changed.is_err() => break,
                            None => _ = self.desk.renewed(latest.until()),
                        }
                    }
                }
            }
        }
        self.leave(position, true).await;
    }

    /// Buries the dead of earlier phases.
    async fn bury(&self, inside: &Holder, deaths: &Deaths) {
        for request in deaths.burials(&self.entrant, inside) {
            if self.client.rpc.txn(request, self.client.patience()).await.is_err() {
                return;
            }
        }
    }

    /// Waits after a death, before the entry. Returns `false` if the patience is too short for it.
    async fn hold_back(&mut self, inside: &mut Holder, deaths: &Deaths) -> bool {
        if let Some(request) = deaths.notice(&self.entrant, inside)
            && let Ok(answer) = self.client.rpc.txn(request, self.client.patience()).await
        {
            deaths.read_notice(inside, answer.message);
        }
        let end = Instant::now() + deaths.delay;
        if self.patience == Patience::None
            || self.patience.deadline().is_some_and(|time| time < end)
        {
            return false;
        }
        self.desk.queued();
        tokio::select! {
            () = sleep_until(end.into()) => {}
            // The program withdraws. The request leaves as usual.
            _ = &mut self.ended => {}
        }
        true
    }

    /// The transaction to leave with, if one is needed: to admit heirs, or to put a tombstone. It
    /// does not keep the view, because a mirror copies a view that is still used before it changes
    /// it.
    fn leaving(&self, position: i64, inside: bool) -> Option<TxnRequest> {
        let view = self.mirror.current().filter(|_| inside);
        let heirs = view.as_ref().map(|view| view.heirs(position)).unwrap_or_default();
        match &view {
            Some(view) if !heirs.is_empty() => {
                let marked = heirs.iter().map(|(its, heir)| (*its, *heir, who::mark(&heir.value)));
                let heirs: Vec<_> = marked.collect();
                Some(self.entrant.hand_over(position, view, &heirs, self.resent))
            }
            _ => self.resent.then(|| self.entrant.leave(true)),
        }
    }

    /// Leaves the room or the queue.
    async fn leave(&self, position: i64, inside: bool) {
        let until = self.lease.good_until().unwrap_or_else(Instant::now);
        let rpc = &self.client.rpc;
        // How many of the keys were deleted, and whether an earlier attempt may have deleted them.
        let left = if let Some(request) = self.leaving(position, inside) {
            let answer = rpc.txn(request, until).await;
            answer.map(|answer| (Entrant::read_leave(answer.message), answer.resent))
        } else {
            // The same without a transaction, which is faster.
            let answer = rpc.delete(self.entrant.pair(), until).await;
            answer.map(|answer| (answer.message.deleted, answer.resent))
        };
        match left {
            Ok((2, _)) => self.desk.left(),
            Ok((0, true)) if self.lease.good_until().is_some() => self.desk.left(),
            Ok(_) if !inside => self.desk.left(),
            // The entry is gone, so the lease is gone.
            Ok(_) | Err(Failure::NoLease { .. }) => self.desk.lost(forgotten()),
            Err(failure) => {
                self.forget();
                self.desk.lost(Loss::Expired(failure.to_string()));
            }
        }
    }

    /// Removes the request in the background, for as long as the lease lasts. Without the lease
    /// nothing is left.
    fn forget(&self) {
        let (client, lease) = (Arc::clone(&self.client), Arc::clone(&self.lease));
        let request = self.entrant.abandon();
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

/// Completes when the lease has ended or is no longer trusted.
async fn over(news: &mut tokio::sync::watch::Receiver<crate::lease::News>) -> Loss {
    loop {
        let latest = news.borrow_and_update().clone();
        if let Some(loss) = latest.over {
            return loss;
        }
        tokio::select! {
            changed = news.changed() => if changed.is_err() { return forgotten() },
            () = sleep_until(latest.until().into()) => {
                if news.borrow().until() <= Instant::now() { return forgotten() }
            }
        }
    }
}
