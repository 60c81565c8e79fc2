//! What a client concludes from what the servers report.

use grouplock_etcd::keys::Keys;
use grouplock_etcd::proto::{Event, EventType, KeyValue};
use grouplock_etcd::view::EntryState::{Gone, Inside, MayEnter, Waits};
use grouplock_etcd::view::View;

fn keys() -> Keys {
    Keys::new("p/r/")
}

fn kv(key: Vec<u8>, revision: i64) -> KeyValue {
    KeyValue { key, create_revision: revision, mod_revision: revision, ..KeyValue::default() }
}

fn entry(group: &str, id: &str, position: i64) -> KeyValue {
    kv(keys().entry(group, id), position)
}

fn put(kv: KeyValue) -> Event {
    Event { r#type: EventType::Put.into(), kv: Some(kv) }
}

fn gone(key: Vec<u8>, revision: i64) -> Event {
    Event { r#type: EventType::Delete.into(), kv: Some(kv(key, revision)) }
}

#[test]
fn the_first_session_comes_up_to_the_first_of_another() {
    let mut view = View::new(keys());
    assert_eq!(view.entry_state(3), None, "nothing is known yet");
    let kvs = [entry("a", "1", 3), entry("a", "2", 5), entry("b", "3", 6), entry("a", "4", 7)];
    assert!(view.reset(7, &kvs));
    let states =
        |view: &View| [3, 5, 6, 7].map(|position| view.entry_state(position).expect("it is known"));
    assert_eq!(states(&view), [MayEnter, MayEnter, Waits, Waits]);
    view.apply(&[gone(keys().entry("a", "1"), 8), put(entry("b", "5", 9))]);
    assert_eq!(states(&view), [Gone, MayEnter, Waits, Waits]);
    view.apply(&[put(kv(keys().mark("a", "2"), 10)), gone(keys().entry("b", "3"), 11)]);
    assert_eq!(states(&view), [Gone, Inside, Gone, MayEnter]);
    assert_eq!(view.entry_state(9), Some(Waits));
}

#[test]
fn old_news_is_none() {
    let mut view = View::new(keys());
    assert!(view.reset(7, &[entry("a", "1", 3)]));
    assert!(!view.reset(8, &[entry("a", "1", 3)]), "nothing is different");
    assert!(!view.reset(6, &[]), "that was before");
    view.apply(&[gone(keys().entry("a", "1"), 5), put(entry("b", "2", 2))]);
    assert_eq!(view.entry_state(3), Some(MayEnter));
    assert_eq!(view.revision, 8);
}

#[test]
fn only_the_last_of_its_session_has_heirs() {
    let kvs = [entry("a", "1", 3), entry("a", "2", 5), entry("b", "3", 6), entry("b", "4", 7)];
    let mut view = View::of(&keys(), 8, &kvs);
    assert!(view.heirs(3).is_empty() && view.heirs(5).is_empty(), "two are inside");
    view.apply(&[gone(keys().entry("a", "1"), 9), put(entry("a", "5", 10))]);
    let heirs: Vec<i64> = view.heirs(5).into_iter().map(|(position, _)| position).collect();
    assert_eq!(heirs, [6, 7]);
    assert!(view.heirs(6).is_empty(), "it is not inside");
}

/// The watch reports the end of a phase and the next phase together, in any order.
#[test]
fn the_phase_of_another_session_is_not_taken_for_the_new_one() {
    let phase = |group: &str, value: &str, revision| KeyValue {
        value: value.as_bytes().to_vec(),
        ..kv(keys().phase(group), revision)
    };
    let mut view = View::of(&keys(), 8, &[phase("b", "5", 6)]);
    assert_eq!(view.phase_of("b").map(|phase| (phase.epoch, phase.deaths)), Some((5, None)));
    view.apply(&[put(phase("a", "0 5", 9)), gone(keys().phase("b"), 9)]);
    assert_eq!(view.phase_of("a").map(|phase| (phase.epoch, phase.deaths)), Some((9, Some(5))));
    assert_eq!(view.phase_of("b"), None);
    let dead = kv(keys().mark("a", "1"), 4);
    view.apply(&[put(KeyValue { mod_revision: 10, ..dead })]);
    assert_eq!(view.dead().count(), 1, "a mark without an entry");
}
