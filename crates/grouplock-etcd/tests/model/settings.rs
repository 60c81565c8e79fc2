//! What a place and the environment say about the servers.

use std::time::Duration;

use grouplock_etcd::settings::Settings;
use grouplock_room::{Room, RoomError};
use grouplock_testing::Scratch;
use grouplock_testing::actor::{self, Actor};

fn read(position: &str, variables: &[(&str, &str)]) -> Result<Settings, RoomError> {
    let position = position.parse()?;
    Settings::read(&position, |name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

#[test]
fn a_place_says_everything_but_the_password() {
    let text = "etcd://a:1,b:2/our/rooms?cacert=/ca&cert=/c&key=/k&ttl=7s&delay=1500ms&timeout=3";
    let login = [("GROUPLOCK_ETCD_USER", "me"), ("GROUPLOCK_ETCD_PASSWORD", "open sesame")];
    let settings = read(text, &login).unwrap();
    assert_eq!(settings.hosts, ["a:1", "b:2"]);
    assert_eq!(settings.prefix, "our/rooms");
    assert_eq!(settings.files.certificate, Some("/c".into()));
    assert_eq!(settings.ttl, Duration::from_secs(7));
    assert_eq!(settings.delay, Duration::from_millis(1500));
    assert_eq!(settings.timeout, Duration::from_secs(3));
    assert_eq!(settings.login.as_ref().unwrap().password, "open sesame");
    assert!(!format!("{settings:?}").contains("sesame"));
}

#[test]
fn what_is_not_said_is_as_usual() {
    let settings = read("etcd://a:1", &[("GROUPLOCK_ETCD_CACERT", "/ca")]).unwrap();
    assert_eq!((settings.prefix.as_str(), settings.ttl), ("grouplock", Duration::from_secs(10)));
    assert_eq!(settings.files.authority, Some("/ca".into()));
    assert_eq!(settings.login, None);
    let settings = read("etcd://a:1?cacert=/mine", &[("GROUPLOCK_ETCD_CACERT", "/ca")]);
    assert_eq!(settings.unwrap().files.authority, Some("/mine".into()));
}

#[test]
fn nonsense_is_refused_with_what_was_expected() {
    for (position, said, expected) in [
        ("etcd://a:1?ttl=0", "ttl cannot be `0`", "from 1 to"),
        ("etcd://a:1?ttl=1500ms", "ttl cannot be `1500ms`", "whole seconds"),
        ("etcd://a:1?ttl=99999999999999999999", "ttl", "whole seconds"),
        ("etcd://a:1?delay=soon", "delay cannot be `soon`", "such as"),
        ("etcd://a:1?timeout=0", "timeout cannot be `0`", "more than 0"),
        ("etcd://a:1?colour=red", "`colour`", "one of cacert"),
        ("etcd://a:1?cert=/c", "cert cannot be given without key", "both"),
        ("etcd://a:1?cert=/c&key=/k", "cacert", "authority"),
        ("etcd://a:1?cacert=", "a file among", "a path"),
    ] {
        let message = read(position, &[]).unwrap_err().to_string();
        assert!(message.contains(said) && message.contains(expected), "{message}");
    }
    let alone = read("etcd://a:1", &[("GROUPLOCK_ETCD_PASSWORD", "sesame")]).unwrap_err();
    assert!(alone.to_string().contains("GROUPLOCK_ETCD_USER"), "{alone}");
    assert!(!alone.to_string().contains("sesame"));
}

/// The room may be of any kind: the key depends on the place, the name and the guard.
#[test]
fn the_fence_needs_no_more_than_the_room() {
    let variables = [
        ("GROUPLOCK_ETCD_CACERT", "/ca"),
        ("GROUPLOCK_ETCD_USER", "me"),
        ("GROUPLOCK_ETCD_PASSWORD", "open sesame"),
    ];
    if actor::role().is_some() {
        let scratch = Scratch::new();
        let room = Room::open(scratch.path(), "build").unwrap();
        let inside = room.enter("release").unwrap();
        let place = "etcd://a:1/our?cert=/c&key=/k";
        let fence = grouplock_etcd::fence_key(place, "build", &inside);
        let fence = fence.map(|key| String::from_utf8(key).unwrap());
        let expected = format!("our/build/q/72656c65617365/{}", inside.holder());
        return actor::say(&format!("{:?}", fence.map(|fence| fence == expected)));
    }
    let (_, module) = module_path!().split_once("::").expect("a module is in a crate");
    let test = format!("{module}::the_fence_needs_no_more_than_the_room");
    let with = Actor::start_by(&test, &[""], |program| _ = program.envs(variables));
    assert_eq!(with.hear().as_deref(), Some("Ok(true)"));
}
