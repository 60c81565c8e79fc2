//! The watch of a client, step by step. The steps and their order are those of `src/mirror.rs`;
//! what they do to the view is the text that ships.

use grouplock_etcd::keys::Keys;
use grouplock_etcd::proto::{Event, EventType, KeyValue};
use grouplock_etcd::view::View;

use crate::mutants::Mutant;
use crate::store::Store;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Watch {
    /// What the client knows.
    pub(crate) view: Option<View>,
    /// The changes that the stream has not reported yet, a list for each revision.
    stream: Option<Vec<Vec<Event>>>,
    /// The answer to a read, on its way.
    read: Option<(i64, Vec<KeyValue>)>,
    /// The watch is set, and the view is complete.
    is_current: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The watch is set, from now on.
    Open,
    /// The server reads the room.
    Read,
    /// The client receives what was read.
    Hear,
    /// The stream reports the changes of one revision.
    Report,
    /// The stream breaks. What it has not reported is lost.
    Break,
}

impl Watch {
    pub(crate) fn steps(&self, is_needed: bool, may_break: bool, mutant: Mutant) -> Vec<Step> {
        let reads_first = mutant == Mutant::ReadsFirst;
        match (&self.stream, &self.read) {
            (None, None) if is_needed && reads_first => vec![Step::Read],
            (None, None) if is_needed => vec![Step::Open],
            (None, None) => Vec::new(),
            (None, Some(_)) => vec![Step::Open],
            (Some(_), Some(_)) => vec![Step::Hear],
            (Some(_), None) if !self.is_current => vec![Step::Read],
            (Some(waiting), None) => {
                let news = (!waiting.is_empty()).then_some(Step::Report);
                news.into_iter().chain(may_break.then_some(Step::Break)).collect()
            }
        }
    }

    pub(crate) fn step(&mut self, step: Step, store: &Store, keys: &Keys, mutant: Mutant) {
        let view = self.view.get_or_insert_with(|| View::new(keys.clone()));
        match step {
            Step::Open => {
                self.stream = Some(Vec::new());
                self.is_current = mutant == Mutant::RestartsUnread && view.revision > 0;
            }
            Step::Read => {
                let kvs = store.in_span(&keys.state()).cloned().collect();
                self.read = Some((store.revision, kvs));
            }
            Step::Hear => {
                let (revision, kvs) = self.read.take().expect("it was read");
                view.reset(revision, &kvs);
                self.is_current = true;
            }
            Step::Report => {
                let waiting = self.stream.as_mut().expect("it is open");
                view.apply(&waiting.remove(0));
            }
            Step::Break => (self.stream, self.is_current) = (None, false),
        }
    }

    /// The server tells an open stream what has changed.
    pub(crate) fn changed(&mut self, events: &[Event]) {
        if let Some(waiting) = &mut self.stream {
            waiting.push(events.to_vec());
        }
    }

    /// What the client knows, if it has a watch.
    pub(crate) fn current(&self) -> Option<&View> {
        self.view.as_ref().filter(|_| self.is_current)
    }

    /// Whether the client will know everything as soon as the stream has reported the rest.
    pub(crate) fn misses_nothing(&self, store: &Store, keys: &Keys) -> bool {
        let (Some(view), Some(waiting)) = (self.current(), &self.stream) else { return true };
        let (mut then, mut now) = (view.clone(), store.view(keys));
        for events in waiting {
            then.apply(events);
        }
        now.revision = then.revision;
        then == now
    }

    /// Whether the client knows that this entry is gone, or will know it.
    pub(crate) fn tells_that_it_is_gone(&self, position: i64) -> bool {
        let (Some(view), Some(waiting)) = (self.current(), &self.stream) else { return true };
        !waiting.is_empty() || view.is_gone(position)
    }
}

/// What has changed in a room from one revision to the next. etcd reports it in the order of keys.
pub(crate) fn events(before: &Store, after: &Store, keys: &Keys) -> Vec<Event> {
    let span = keys.state();
    let put = after.in_span(&span).filter(|kv| before.keys.get(&kv.key) != Some(kv));
    let put = put.map(|kv| (EventType::Put, kv.clone()));
    let gone = before.in_span(&span).filter(|kv| !after.keys.contains_key(&kv.key));
    let gone = gone.map(|kv| {
        let (key, mod_revision) = (kv.key.clone(), after.revision);
        (EventType::Delete, KeyValue { key, mod_revision, ..KeyValue::default() })
    });
    let mut all: Vec<_> = put.chain(gone).collect();
    all.sort_by(|(_, one), (_, other)| one.key.cmp(&other.key));
    let event = |(kind, kv): (EventType, _)| Event { r#type: kind.into(), kv: Some(kv) };
    all.into_iter().map(event).collect()
}
