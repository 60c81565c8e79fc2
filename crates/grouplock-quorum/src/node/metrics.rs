//! The counters of a member, in the text format of Prometheus. It is written by hand: writing the
//! format takes fewer lines than the label types of a library.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::wire::Reason;

/// Upper bounds of the histogram of flushes, in seconds.
const BOUNDS: [f64; 7] = [0.000_1, 0.000_3, 0.001, 0.003, 0.01, 0.1, 1.0];

/// Whether a message was sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    Sent,
    Received,
}

/// All counters. They need not be of the same moment.
#[derive(Debug, Default)]
pub struct Metrics {
    messages: Mutex<BTreeMap<(&'static str, Direction, bool), u64>>,
    refused: Mutex<BTreeMap<&'static str, u64>>,
    refused_by_others: Mutex<BTreeMap<&'static str, u64>>,
    flushes: [AtomicU64; BOUNDS.len() + 1],
    flush_micros: AtomicU64,
    pub(super) unsent: AtomicU64,
    pub(super) links_made: AtomicU64,
    pub(super) links_broken: AtomicU64,
    pub(super) connections: AtomicU64,
    pub(super) stages: AtomicU64,
    pub(super) entries: AtomicU64,
    pub(super) deaths: AtomicU64,
    pub(super) votes: AtomicU64,
    pub(super) clock_jumps: AtomicU64,
}

/// Present values that are not counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gauges {
    pub rooms: usize,
    pub inside: usize,
    pub waiting: usize,
    pub clients: usize,
    pub members_connected: usize,
    pub log_bytes: u64,
}

impl Metrics {
    pub fn message(&self, kind: &'static str, direction: Direction, repeated: bool) {
        add(&self.messages, (kind, direction, repeated));
    }

    /// Counts and logs that this member refused somebody.
    pub fn refuse(&self, whom: &str, reason: &Reason) {
        tracing::warn!("refused {whom}: {reason}");
        add(&self.refused, reason.label());
    }

    /// Counts and logs that another member refused this one.
    pub(super) fn refused_by(&self, whom: &str, reason: &Reason) {
        tracing::warn!("{whom} refused this member: {reason}");
        add(&self.refused_by_others, reason.label());
    }

    pub fn flushed(&self, took: Duration) {
        let bucket = BOUNDS.iter().position(|bound| took.as_secs_f64() <= *bound);
        self.flushes[bucket.unwrap_or(BOUNDS.len())].fetch_add(1, Relaxed);
        self.flush_micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    /// The text for Prometheus.
    pub fn text(&self, now: &Gauges) -> String {
        let mut page = Page(String::new());
        page.family("grouplock_messages_total", "counter", "Messages of the protocol.");
        for ((kind, direction, repeated), count) in snapshot(&self.messages) {
            let direction = match direction {
                Direction::Sent => "sent",
                Direction::Received => "received",
            };
            let labels =
                format!("kind=\"{kind}\",direction=\"{direction}\",repeated=\"{repeated}\"");
            page.labelled("grouplock_messages_total", &labels, count);
        }
        page.family("grouplock_refused_total", "counter", "Refusals by this member, by reason.");
        for (reason, count) in snapshot(&self.refused) {
            page.labelled("grouplock_refused_total", &format!("reason=\"{reason}\""), count);
        }
        let name = "grouplock_refused_by_members_total";
        page.family(name, "counter", "Refusals of this member by others, by reason.");
        for (reason, count) in snapshot(&self.refused_by_others) {
            page.labelled(name, &format!("reason=\"{reason}\""), count);
        }
        self.flushes(&mut page);
        for (name, help, counter) in [
            (
                "unsent",
                "Messages that were not sent because there was no connection.",
                &self.unsent,
            ),
            ("links_made", "Connections made to other members.", &self.links_made),
            ("links_broken", "Connections to other members that broke.", &self.links_broken),
            ("connections", "Connections accepted.", &self.connections),
            ("stages", "Stages that began here.", &self.stages),
            ("entries", "Processes that entered here.", &self.entries),
            ("deaths", "Processes whose lease ended inside.", &self.deaths),
            ("votes", "Votes given.", &self.votes),
            ("clock_jumps", "Times the time of day has jumped.", &self.clock_jumps),
        ] {
            let name = format!("grouplock_{name}_total");
            page.family(&name, "counter", help);
            page.plain(&name, counter.load(Relaxed));
        }
        for (name, help, value) in [
            ("rooms", "Rooms known here.", now.rooms as u64),
            ("inside", "Processes inside here.", now.inside as u64),
            ("waiting", "Processes that wait here.", now.waiting as u64),
            ("clients", "Clients connected.", now.clients as u64),
            ("members_connected", "Members connected to this one.", now.members_connected as u64),
            ("log_bytes", "The length of the log on disk.", now.log_bytes),
        ] {
            let name = format!("grouplock_{name}");
            page.family(&name, "gauge", help);
            page.plain(&name, value);
        }
        page.0
    }

    fn flushes(&self, page: &mut Page) {
        let name = "grouplock_flush_seconds";
        page.family(name, "histogram", "How long flushing the log to disk took.");
        let mut total = 0;
        for (bucket, count) in self.flushes.iter().enumerate() {
            total += count.load(Relaxed);
            let bound = BOUNDS.get(bucket).map_or("+Inf".to_owned(), ToString::to_string);
            page.labelled(&format!("{name}_bucket"), &format!("le=\"{bound}\""), total);
        }
        let micros = self.flush_micros.load(Relaxed);
        page.line(&format!("{name}_sum {}.{:06}", micros / 1_000_000, micros % 1_000_000));
        page.plain(&format!("{name}_count"), total);
    }
}

fn add<K: Ord>(counters: &Mutex<BTreeMap<K, u64>>, key: K) {
    let mut counters = counters.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *counters.entry(key).or_default() += 1;
}

fn snapshot<K: Ord + Clone>(counters: &Mutex<BTreeMap<K, u64>>) -> BTreeMap<K, u64> {
    counters.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
}

struct Page(String);

impl Page {
    fn line(&mut self, line: &str) {
        // Writing to a String cannot fail.
        _ = writeln!(self.0, "{line}");
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.line(&format!("# HELP {name} {help}"));
        self.line(&format!("# TYPE {name} {kind}"));
    }

    fn labelled(&mut self, name: &str, labels: &str, value: u64) {
        self.line(&format!("{name}{{{labels}}} {value}"));
    }

    fn plain(&mut self, name: &str, value: u64) {
        self.line(&format!("{name} {value}"));
    }
}
