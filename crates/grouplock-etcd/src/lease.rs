//! The lease under which everything of this client is.
//!
//! A lease is trusted until the moment at which the last request that the servers confirmed was *sent*, plus its time,
//! minus a margin. The servers count from when they get the request, which is later, so what is believed here
//! ends before what is true there. The margin is for those who have to stop working until then. The time during which
//! the machine sleeps counts: the servers' clocks go on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use grouplock_room::{Loss, remote};
use tokio::sync::watch;
use tokio::time::{sleep, sleep_until};

use crate::error::Failure;
use crate::proto::LeaseGrantRequest;
use crate::rpc::Rpc;
use crate::settings::Settings;

/// What is known of a lease.
#[derive(Clone, Debug)]
pub(crate) struct News {
    /// Until when it can be trusted, unless the machine sleeps.
    pub(crate) until: Instant,
    /// How long the machine had [`slept`](remote::slept) when that was asked for.
    slept: Duration,
    /// Why it is over.
    pub(crate) over: Option<Loss>,
}

impl News {
    fn is_late(&self) -> bool {
        self.until <= Instant::now() + remote::slept().saturating_sub(self.slept)
    }
}

/// A lease.
pub(crate) struct Lease {
    pub(crate) id: i64,
    ttl: Duration,
    news: watch::Sender<News>,
}

impl Lease {
    /// Asks for one.
    pub(crate) async fn grant(
        rpc: &Rpc,
        settings: &Settings,
        until: Instant,
    ) -> Result<Arc<Self>, Failure> {
        let (asked, slept) = (Instant::now(), remote::slept());
        let seconds = settings.ttl.as_secs().cast_signed();
        // Chosen here, so that the request can be repeated. 0 would mean that the server chooses.
        let random = getrandom::u64().map_err(|error| Failure::Random(error.to_string()))?;
        let id = (random >> 1).max(1).cast_signed();
        let (ttl, sent) = match rpc.grant(LeaseGrantRequest { ttl: seconds, id }, until).await {
            // An earlier attempt may have been the one that made it.
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
        let news = News { until: sent + trusted(ttl), slept, over: None };
        Ok(Arc::new(Lease { id, ttl, news: watch::Sender::new(news) }))
    }

    /// Until when it can be trusted; `None` if it cannot any more.
    pub(crate) fn good_until(&self) -> Option<Instant> {
        let news = self.news.borrow();
        (news.over.is_none() && !news.is_late()).then_some(news.until)
    }

    /// How long after it is not trusted any more nobody else is let in yet.
    pub(crate) fn grace(&self) -> Duration {
        grace(self.ttl)
    }

    /// What happens to it.
    pub(crate) fn news(&self) -> watch::Receiver<News> {
        self.news.subscribe()
    }

    /// It is over.
    pub(crate) fn end(&self, loss: Loss) {
        self.news.send_modify(|news| {
            news.over.get_or_insert(loss);
        });
    }

    /// Renews it again and again until it is over, and then ends it at the servers as well. They may have renewed it without our
    /// knowing, as a new leader does with all leases, and others would have to wait for that.
    pub(crate) async fn keep(self: Arc<Self>, rpc: Arc<Rpc>, learn: bool) {
        self.renew_while_possible(&rpc, learn).await;
        // Whoever was inside counts on being alone until then, and has to be gone.
        let until = self.news.borrow().until + self.ttl.saturating_sub(trusted(self.ttl));
        sleep_until(until.into()).await;
        // If they cannot be reached for as long as it lasts, it ends by itself.
        _ = rpc.revoke(self.id, Instant::now() + 2 * self.ttl).await;
    }

    async fn renew_while_possible(&self, rpc: &Rpc, learn: bool) {
        loop {
            if learn {
                // If it fails it is asked again with the next renewal. It must not hold that up.
                _ = rpc.learn_members(Instant::now() + rpc.attempt).await;
            }
            sleep(self.ttl / 3).await;
            let (until, slept) = (self.news.borrow().until, remote::slept());
            match rpc.keep_alive(self.id, until).await {
                Ok(answer) if answer.message.ttl > 0 => {
                    let ttl = Duration::from_secs(answer.message.ttl.cast_unsigned());
                    if !self.renew(answer.sent + trusted(ttl), slept) {
                        break self.end(late());
                    }
                }
                Ok(_) | Err(Failure::NoLease { .. }) => {
                    break self
                        .end(Loss::Expired("the servers do not know it any more".to_owned()));
                }
                Err(failure) => {
                    // It is trusted to its last moment.
                    sleep_until(until.into()).await;
                    break self.end(Loss::Expired(failure.to_string()));
                }
            }
        }
    }

    /// Whether this comes in time.
    fn renew(&self, until: Instant, slept: Duration) -> bool {
        self.news.send_if_modified(|news| {
            let in_time = news.over.is_none() && !news.is_late();
            if in_time {
                // If it has slept since, the later end holds with the later sleep only.
                (news.until, news.slept) = (until, slept);
            }
            in_time
        })
    }
}

fn late() -> Loss {
    Loss::Expired("the servers were not heard from for too long".to_owned())
}

/// How long a lease is trusted.
fn trusted(ttl: Duration) -> Duration {
    ttl / 5 * 4
}

/// How long after that one who was inside has to stop. What is left then is for clocks that do not go alike.
fn grace(ttl: Duration) -> Duration {
    ttl / 20 * 3
}
