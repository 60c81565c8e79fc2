//! Which keys a room has.

use grouplock_etcd::keys::{Keys, Span};

#[test]
fn every_entry_is_its_session_s_or_another_s() {
    let keys = Keys::new("p/room/");
    let sessions = ["", "a", "aa", "b", "a/b", "é", "\0", "/", "q"];
    for session in sessions {
        let own = keys.session(session);
        let others = keys.others(session);
        for other in sessions {
            let key = keys.entry(other, "1-2");
            let within = |span: &Span| span.start <= key && key < span.end;
            assert_eq!(within(&own), other == session, "{other:?} for {session:?}");
            assert_eq!(others.iter().any(within), other != session);
            assert!(within(&keys.queue()));
            assert_eq!(keys.read_entry(&key), Some((other.to_owned(), "1-2".to_owned())));
        }
    }
}

#[test]
fn keys_of_others_are_not_read() {
    let keys = Keys::new("p/room/");
    for key in ["p/room/q/6", "p/room/q/6/1", "p/room/q/zz/1", "p/room2/q/61/1", "p/room/h/1"] {
        assert_eq!(keys.read_entry(key.as_bytes()), None, "{key}");
    }
    assert_eq!(keys.read_mark(b"p/room/h/7"), Some("7".to_owned()));
    assert_eq!(keys.read_mark(b"p/room/t/7"), None);
}
