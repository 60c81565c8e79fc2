//! The queue as the servers report it.

use grouplock_etcd::keys::Keys;
use grouplock_etcd::proto::{Event, EventType, KeyValue};
use grouplock_etcd::view::{Turn, View};

fn entry(session: &str, id: u32, position: i64) -> KeyValue {
    KeyValue {
        key: Keys::new("p/r/").entry(session, &id.to_string()),
        create_revision: position,
        mod_revision: position,
        ..KeyValue::default()
    }
}

fn gone(session: &str, id: u32, revision: i64) -> Event {
    let kv = KeyValue { mod_revision: revision, create_revision: 0, ..entry(session, id, 0) };
    Event { r#type: EventType::Delete.into(), kv: Some(kv) }
}

fn came(session: &str, id: u32, position: i64) -> Event {
    Event { r#type: EventType::Put.into(), kv: Some(entry(session, id, position)) }
}

#[test]
fn the_first_session_comes_up_to_the_first_of_another() {
    let mut view = View::new(Keys::new("p/r/"));
    assert_eq!(view.turn(3), None, "nothing is known yet");
    let kvs = [entry("a", 1, 3), entry("a", 2, 5), entry("b", 3, 6), entry("a", 4, 7)];
    assert!(view.reset(7, &kvs));
    let turns =
        |view: &View| [3, 5, 6, 7].map(|position| view.turn(position).expect("it is known"));
    assert_eq!(turns(&view), [Turn::Come, Turn::Come, Turn::Wait, Turn::Wait]);
    view.apply(&[gone("a", 1, 8), came("b", 5, 9)]);
    assert_eq!(turns(&view), [Turn::Gone, Turn::Come, Turn::Wait, Turn::Wait]);
    view.apply(&[gone("b", 3, 10)]);
    assert_eq!(turns(&view), [Turn::Gone, Turn::Come, Turn::Gone, Turn::Come]);
    assert_eq!(view.turn(9), Some(Turn::Wait));
}

#[test]
fn old_news_is_none() {
    let mut view = View::new(Keys::new("p/r/"));
    assert!(view.reset(7, &[entry("a", 1, 3)]));
    assert!(!view.reset(8, &[entry("a", 1, 3)]), "nothing is different");
    assert!(!view.reset(6, &[]), "that was before");
    view.apply(&[gone("a", 1, 5), came("b", 2, 2)]);
    assert_eq!(view.turn(3), Some(Turn::Come));
    assert_eq!(view.revision, 8);
}
