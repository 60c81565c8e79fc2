//! The lease of all keys of this client.
//!
//! A lease is trusted until the time at which the last confirmed request was *sent*, plus its
//! duration, minus a margin. The servers count from the time at which they receive the request,
//! which is later. So the trust here ends before the lease ends there. The margin is the time that
//! a holder has to stop its work. The time for which the machine is suspended counts, because the
//! clocks of the servers go on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use grouplock_room::Loss;
use grouplock_room::remote::{self, LeaseEnd};
use tokio::sync::watch;
use tokio::time::{sleep, sleep_until};

use crate::error::Failure;
use crate::proto::LeaseGrantRequest;
use crate::rpc::Rpc;
use crate::settings::Settings;

/// The state of a lease.
#[derive(Clone, Debug)]
pub struct News {
    /// The end of the trust. It counts what was slept since the request was sent.
    end: LeaseEnd,
    /// Why the lease has ended.
    pub over: Option<Loss>,
}

impl News {
    /// The state of a lease that is trusted until then.
    pub fn new(end: LeaseEnd) -> Self {
        News { end, over: None }
    }

    /// The end of the trust, unless the machine is suspended after this call.
    pub fn until(&self) -> Instant {
        self.end.instant()
    }

    /// Whether the lease can be trusted now.
    pub fn is_good(&self) -> bool {
        self.over.is_none() && !self.end.has_passed()
    }

    /// Returns `false` if the renewal comes too late.
    pub fn renew(&mut self, end: LeaseEnd) -> bool {
        let in_time = self.is_good();
        if in_time {
            self.end = end;
        }
        in_time
    }
}

/// A lease.
pub(crate) struct Lease {
    pub(crate) id: i64,
    ttl: Duration,
    news: watch::Sender<News>,
}

impl Lease {
    /// Asks the servers for a lease.
    pub(crate) async fn grant(
        rpc: &Rpc,
        settings: &Settings,
        until: Instant,
    ) -> Result<Arc<Self>, Failure> {
        let (asked, slept) = (Instant::now(), remote::slept());
        let seconds = settings.ttl.as_secs().cast_signed();
        // The id is chosen here, so that the request can be repeated. 0 would let the server
        // choose.
        let random = getrandom::u64().map_err(|error| Failure::Random(error.to_string()))?;
        let id = (random >> 1).max(1).cast_signed();
        let (ttl, sent) = match rpc.grant(LeaseGrantRequest { ttl: seconds, id }, until).await {
            // An earlier attempt may have made the lease.
            Ok(answer) if answer.message.error.is_empty() => {
                (answer.message.ttl, answer.first_sent)
            }
            Ok(answer) => {
                let message = answer.message.error;
                return Err(Failure::Refused { place: settings.place.clone(), message });
            }
            Err(Failure::Refused { message, .. }) if message.contains("lease already exists") => {
                (seconds, asked)
            }
            Err(failure) => return Err(failure),
        };
        let ttl = Duration::from_secs(ttl.max(1).cast_unsigned());
        let news = News::new(LeaseEnd::new(sent + trusted(ttl), slept));
        Ok(Arc::new(Lease { id, ttl, news: watch::Sender::new(news) }))
    }

    /// The end of the trust; `None` if it has passed.
    pub(crate) fn good_until(&self) -> Option<Instant> {
        let news = self.news.borrow();
        news.is_good().then(|| news.until())
    }

    /// For how long after the end of the trust nobody else is admitted.
    pub(crate) fn grace(&self) -> Duration {
        grace(self.ttl)
    }

    /// The changes of the lease.
    pub(crate) fn news(&self) -> watch::Receiver<News> {
        self.news.subscribe()
    }

    /// Ends the lease here.
    pub(crate) fn end(&self, loss: Loss) {
        self.news.send_modify(|news| {
            news.over.get_or_insert(loss);
        });
    }

    /// Renews the lease until it has ended, then revokes it at the servers. They may have renewed
    /// it without our knowledge, as a new leader does with all leases. Others would have to wait
    /// for it.
    pub(crate) async fn keep(self: Arc<Self>, rpc: Arc<Rpc>, uses_all_members: bool) {
        self.renew_while_possible(&rpc, uses_all_members).await;
        // The last holder may work until that time. After a suspend it needs a moment to learn of
        // the loss.
        let until = self.news.borrow().until().max(Instant::now());
        sleep_until((until + self.ttl.saturating_sub(trusted(self.ttl))).into()).await;
        // If the servers cannot be reached for that long, the lease ends by itself.
        _ = rpc.revoke(self.id, Instant::now() + 2 * self.ttl).await;
    }

    async fn renew_while_possible(&self, rpc: &Rpc, uses_all_members: bool) {
        loop {
            if uses_all_members {
                // If it fails, the next renewal tries again. It must not delay the renewal.
                _ = rpc.learn_members(Instant::now() + rpc.attempt).await;
            }
            sleep(self.ttl / 3).await;
            let (until, slept) = (self.news.borrow().until(), remote::slept());
            match rpc.keep_alive(self.id, until).await {
                Ok(answer) if answer.message.ttl > 0 => {
                    let ttl = Duration::from_secs(answer.message.ttl.cast_unsigned());
                    let end = LeaseEnd::new(answer.sent + trusted(ttl), slept);
                    if !self.news.send_if_modified(|news| news.renew(end)) {
                        break self.end(late());
                    }
                }
                Ok(_) | Err(Failure::NoLease { .. }) => {
                    break self.end(Loss::Expired("the servers no longer know it".to_owned()));
                }
                Err(failure) => {
                    // The lease is trusted until its last moment.
                    sleep_until(until.into()).await;
                    break self.end(Loss::Expired(failure.to_string()));
                }
            }
        }
    }
}

fn late() -> Loss {
    Loss::Expired("the servers have not answered for too long".to_owned())
}

/// How long a lease is trusted.
fn trusted(ttl: Duration) -> Duration {
    ttl / 5 * 4
}

/// For how long after that a holder may still run. The rest is for clocks of different speed.
fn grace(ttl: Duration) -> Duration {
    ttl / 20 * 3
}
