//! What a new holder learns about deaths, and how long it waits. This module has no clock and no
//! network: the model in `tests/model` explores this text.

use std::time::Duration;

use crate::proto::{KeyValue, TxnRequest, TxnResponse};
use crate::protocol::{Entrant, Holder, MOST_BURIED};
use crate::who::{self, Died, Who};

/// What a new holder learns about deaths.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Deaths {
    /// What is reported to the holder.
    pub report: Option<Died>,
    /// The report is new: the opener of the phase writes it after the grant.
    is_new: bool,
    /// The record to write before the delay, if it is not written.
    notice: Option<Died>,
    /// How long the holder must wait before it enters.
    pub delay: Duration,
}

impl Deaths {
    /// What the holder learns at the time `now`, in milliseconds since 1970.
    pub fn by(inside: &Holder, delay: Duration, now: u64) -> Self {
        let known: Option<Died> = inside.died.as_ref().map(|kv| who::read(&kv.value));
        let Some(last) = inside.dead.iter().max_by_key(|mark| mark.create_revision) else {
            let report = known.filter(|known| known.told == inside.epoch);
            let began = report.as_ref().map(|known| known.noticed);
            let delay = began.map_or(Duration::ZERO, |began| left_of(delay, began, now));
            return Deaths { report, is_new: false, notice: None, delay };
        };
        let mark: Who = who::read(&last.value);
        let known = known.unwrap_or_default();
        let came = last.create_revision;
        let epoch = if (1..=came).contains(&inside.before) { inside.before } else { came };
        let noticed = if known.seen >= came { known.noticed } else { now };
        let report = Died {
            told: inside.epoch,
            total: known.total + inside.dead.len() as u64,
            epoch,
            session: mark.session,
            host: mark.host,
            pid: mark.pid,
            noticed,
            seen: came,
        };
        let delay = left_of(delay, noticed, now);
        let notice = (known.seen < came).then_some(Died { noticed, seen: came, ..known });
        Deaths { report: Some(report), is_new: true, notice, delay }
    }

    /// The transaction before the delay. It writes when the deaths were noticed. If it fails, the
    /// delay begins again with the next holder.
    pub fn notice(&self, entrant: &Entrant, inside: &Holder) -> Option<TxnRequest> {
        let notice = who::write(self.notice.as_ref()?);
        Some(entrant.bury(inside, &[], Some(&notice)))
    }

    /// Reads the answer to [`notice`](Deaths::notice).
    pub fn read_notice(&self, inside: &mut Holder, answer: TxnResponse) {
        if let (true, Some(header), Some(notice)) = (answer.succeeded, answer.header, &self.notice)
        {
            let (mod_revision, value) = (header.revision, who::write(notice));
            inside.died = Some(KeyValue { mod_revision, value, ..KeyValue::default() });
        }
    }

    /// The transactions after the grant, in order. They record the deaths before this phase, so
    /// that later holders of the phase learn of them, and remove the marks, so that later phases do
    /// not. If one fails, the marks stay and report the same. Only the holder that opened the phase
    /// sends them.
    pub fn burials(&self, entrant: &Entrant, inside: &Holder) -> Vec<TxnRequest> {
        let Some(died) = self.report.as_ref().filter(|_| self.is_new && inside.opened_phase) else {
            return Vec::new();
        };
        let dead: Vec<&KeyValue> = inside.dead.iter().collect();
        let died = who::write(died);
        let parts = dead.chunks(MOST_BURIED).enumerate().rev();
        parts.map(|(n, part)| entrant.bury(inside, part, (n == 0).then_some(&died))).collect()
    }
}

/// The rest of a delay that began at that time. `began` is by the clock of another machine; the
/// result is at most `delay`.
fn left_of(delay: Duration, began: u64, now: u64) -> Duration {
    delay.saturating_sub(Duration::from_millis(now.saturating_sub(began)))
}
