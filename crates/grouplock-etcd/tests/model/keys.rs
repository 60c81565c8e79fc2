//! Keys and their owners.

use grouplock_etcd::keys::{Keys, Span, group, session_of};

fn within(span: &Span, key: &[u8]) -> bool {
    span.start.as_slice() <= key && key < span.end.as_slice()
}

#[test]
fn every_entry_and_mark_is_its_group_s_or_another_s() {
    let keys = Keys::new("p/room/");
    let names = ["", "a", "aa", "b", "a/b", "é", "\0", "/", "q"];
    let groups = names.map(|name| ["1-2", "1-2a", "1-20a"].map(|id| group(name, id)));
    for own in groups.iter().flatten() {
        for (other, name) in
            groups.iter().zip(names).flat_map(|(g, name)| g.iter().map(move |g| (g, name)))
        {
            assert_eq!(session_of(other).as_deref(), Some(name));
            for (key, is_mark) in
                [(keys.entry(other, "1-2"), false), (keys.mark(other, "1-2"), true)]
            {
                assert_eq!(within(&keys.group(own), &key), other == own, "{other:?} for {own:?}");
                assert_eq!(keys.others(own).iter().any(|span| within(span, &key)), other != own);
                assert!(within(&keys.queue(), &key) && within(&keys.state(), &key));
                assert!(!within(&keys.summary(), &key));
                let read = Some((other.clone(), "1-2".to_owned(), is_mark));
                assert_eq!(keys.read_queue(&key), read);
            }
            let (phase, elsewhere) = (keys.phase(other), keys.other_phases(own));
            assert_eq!(elsewhere.iter().any(|span| within(span, &phase)), other != own);
            assert!(elsewhere.iter().all(|span| span.start < span.end), "etcd wants no empty span");
            assert!(within(&keys.phases(), &phase) && within(&keys.summary(), &phase));
            assert_eq!(keys.read_phase(&phase).as_ref(), Some(other));
        }
    }
    assert!(within(&keys.summary(), &keys.died()) && within(&keys.summary(), &keys.made()));
    assert!(!within(&keys.state(), &keys.tombstone("1")));
}

#[test]
fn a_leaving_holder_deletes_only_its_own_pair() {
    let keys = Keys::new("p/room/");
    let pair = keys.pair("s", "5f-2");
    for id in ["5f-2", "5f-20", "5f-1", "5f-3", "5e-2"] {
        assert_eq!(within(&pair, &keys.entry("s", id)), id == "5f-2", "{id}");
        assert_eq!(within(&pair, &keys.mark("s", id)), id == "5f-2", "{id}");
    }
    assert!(!within(&pair, &keys.entry("t", "5f-2")));
}

#[test]
fn keys_of_others_are_not_read() {
    let keys = Keys::new("p/room/");
    for key in ["p/room/q/6", "p/room2/q/61/1", "p/room/t/1"] {
        assert_eq!(keys.read_queue(key.as_bytes()), None, "{key}");
    }
    assert_eq!((session_of("6"), session_of("zz")), (None, None));
    assert_eq!(keys.read_phase(b"p/room/q/61"), None);
}
