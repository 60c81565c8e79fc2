//! The data that a member must keep, on disk.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use grouplock_quorum::node::StorageError;
use grouplock_quorum::node::storage::{FORMAT, Fact, Head, SMALL, Storage};
use grouplock_quorum::wire::{CoterieKind, Memory};
use grouplock_quorum::{Death, KnownDeath, MemberId, OpenStage, ProcessId, Record, Time, Vote};
use grouplock_testing::Scratch;

/// The length of the seal that a flush writes behind a batch.
const SEAL: usize = 21;

fn head() -> Head {
    let coterie = CoterieKind::Plane;
    Head { format: FORMAT, cluster: "test".to_owned(), me: MemberId(1), members: 3, coterie }
}

fn open(scratch: &Scratch) -> Result<Storage, StorageError> {
    Storage::open(scratch.path(), head())
}

fn vote(grant: u64) -> Record {
    Record::Vote(Vote { grant, ..Vote::default() })
}

fn room(name: &str) -> Arc<str> {
    name.into()
}

#[test]
fn what_was_committed_is_there_again() {
    let scratch = Scratch::new();
    let mut storage = open(&scratch).unwrap();
    assert!(storage.rooms().is_empty());
    let stage = OpenStage {
        session: "s".to_owned(),
        epoch: 4,
        inside: BTreeMap::from([(ProcessId(7), 1)]),
        recovered: None,
    };
    storage.commit(vec![(room("a"), vote(1)), (room("b"), Record::Wanting { stage: 3 })]).unwrap();
    storage.commit(vec![(room("a"), vote(2)), (room("b"), Record::Opened(stage.clone()))]).unwrap();
    let (rooms, length) = (storage.rooms().clone(), storage.length());
    drop(storage);
    let storage = open(&scratch).unwrap();
    assert_eq!(*storage.rooms(), rooms);
    assert_eq!(storage.length(), length);
    assert_eq!(rooms["a"].vote.grant, 2);
    assert_eq!(rooms["b"].open, Some(stage));
    assert_eq!(rooms["b"].stage, 3);
}

#[test]
fn a_torn_end_is_cut_wherever_it_is_torn() {
    let scratch = Scratch::new();
    let mut storage = open(&scratch).unwrap();
    storage.commit(vec![(room("a"), vote(1))]).unwrap();
    let good = storage.length() as usize;
    storage.commit(vec![(room("a"), vote(2)), (room("b"), vote(9))]).unwrap();
    drop(storage);
    // The second was never flushed, so it has no seal.
    let mut bytes = fs::read(scratch.join("log")).unwrap();
    bytes.truncate(bytes.len() - SEAL);
    for end in good..bytes.len() {
        fs::write(scratch.join("log"), &bytes[..end]).unwrap();
        let mut storage = open(&scratch).unwrap();
        assert_eq!(storage.rooms().len(), 1, "cut at {end}");
        assert_eq!(storage.rooms()["a"].vote.grant, 1);
        assert_eq!(fs::read(scratch.join("log")).unwrap().len(), good);
        // The log can grow further.
        storage.commit(vec![(room("a"), vote(3))]).unwrap();
        drop(storage);
        assert_eq!(open(&scratch).unwrap().rooms()["a"].vote.grant, 3);
    }
    // The file has its length, but the contents of the last pages are missing.
    for hole in good..bytes.len() {
        let mut torn = bytes.clone();
        torn[hole..].fill(0);
        fs::write(scratch.join("log"), &torn).unwrap();
        if torn != bytes {
            assert_eq!(open(&scratch).unwrap().rooms()["a"].vote.grant, 1, "a hole from {hole}");
        }
    }
}

#[test]
fn a_flipped_bit_in_the_last_batch_that_was_saved_is_damage() {
    let scratch = Scratch::new();
    let mut storage = open(&scratch).unwrap();
    storage.commit(vec![(room("a"), vote(1))]).unwrap();
    let last = storage.length() as usize;
    storage.commit(vec![(room("a"), vote(2)), (room("b"), vote(9))]).unwrap();
    let rooms = storage.rooms().clone();
    drop(storage);
    let bytes = fs::read(scratch.join("log")).unwrap();
    let seal = bytes.len() - SEAL;
    for bit in 8 * last..8 * bytes.len() {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(scratch.join("log"), &damaged).unwrap();
        let opened = open(&scratch);
        if bit < 8 * seal {
            let error = opened.unwrap_err();
            let here = matches!(error, StorageError::Damaged { at, .. } if at == last as u64);
            assert!(here, "bit {bit}: {error}");
            assert_eq!(fs::read(scratch.join("log")).unwrap(), damaged, "it was changed");
        } else {
            // The bit is in the seal: no saved data are lost.
            assert_eq!(*opened.unwrap().rooms(), rooms, "bit {bit}");
        }
    }
    // More than one bit.
    for hole in last..seal {
        let mut damaged = bytes.clone();
        damaged[hole..seal].fill(0);
        fs::write(scratch.join("log"), &damaged).unwrap();
        assert!(damaged == bytes || open(&scratch).is_err(), "a hole from {hole}");
    }
}

/// The member stopped before it wrote the seal. Then it started again, and relied on the batch.
#[test]
fn a_flipped_bit_in_a_batch_that_was_read_is_damage() {
    let scratch = Scratch::new();
    let mut storage = open(&scratch).unwrap();
    storage.commit(vec![(room("a"), vote(1))]).unwrap();
    drop(storage);
    let mut bytes = fs::read(scratch.join("log")).unwrap();
    let unsealed = bytes.len() - SEAL;
    bytes.truncate(unsealed);
    fs::write(scratch.join("log"), &bytes).unwrap();
    assert_eq!(open(&scratch).unwrap().rooms()["a"].vote.grant, 1);
    let mut damaged = fs::read(scratch.join("log")).unwrap();
    damaged[unsealed - 1] ^= 1;
    fs::write(scratch.join("log"), &damaged).unwrap();
    assert!(matches!(open(&scratch), Err(StorageError::Damaged { .. })));
}

#[test]
fn a_flipped_bit_in_a_log_that_was_written_anew_is_damage() {
    let scratch = Scratch::new();
    let mut storage = open(&scratch).unwrap();
    let many = || (0..20_000).map(|n| (room(&format!("room {}", n % 7)), vote(n))).collect();
    let mut longest = 0;
    while storage.length() >= longest {
        longest = storage.length();
        assert!(longest < 16 * SMALL, "it is never written anew");
        storage.commit(many()).unwrap();
    }
    drop(storage);
    let bytes = fs::read(scratch.join("log")).unwrap();
    assert!(bytes.len() < 1000, "it was not written anew: {} bytes", bytes.len());
    for bit in 0..8 * (bytes.len() - SEAL) {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(scratch.join("log"), &damaged).unwrap();
        assert!(open(&scratch).is_err(), "bit {bit}");
    }
}

#[test]
fn a_damaged_middle_is_not_started_with() {
    let scratch = Scratch::new();
    let mut storage = open(&scratch).unwrap();
    let first = storage.length() as usize;
    storage.commit(vec![(room("a"), vote(1))]).unwrap();
    let second = storage.length() as usize;
    storage.commit(vec![(room("a"), vote(2))]).unwrap();
    drop(storage);
    let bytes = fs::read(scratch.join("log")).unwrap();
    for at in first..second {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        fs::write(scratch.join("log"), &damaged).unwrap();
        let error = open(&scratch).unwrap_err();
        let begins = if at < second - SEAL { first } else { second - SEAL };
        assert!(
            matches!(error, StorageError::Damaged { at, .. } if at == begins as u64),
            "{error}"
        );
        assert_eq!(fs::read(scratch.join("log")).unwrap(), damaged, "it was changed");
    }
    // A whole batch is missing.
    fs::write(scratch.join("log"), [&bytes[..first], &bytes[second..]].concat()).unwrap();
    assert!(matches!(open(&scratch), Err(StorageError::Damaged { .. })));
    for at in 0..first - SEAL {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        fs::write(scratch.join("log"), &damaged).unwrap();
        assert!(matches!(open(&scratch), Err(StorageError::NotALog { .. })), "{at}");
    }
    fs::write(scratch.join("log"), b"").unwrap();
    assert!(matches!(open(&scratch), Err(StorageError::NotALog { .. })));
}

#[test]
fn a_long_log_is_written_anew_and_says_the_same() {
    let scratch = Scratch::new();
    let mut storage = open(&scratch).unwrap();
    let (mut grant, mut longest) = (0, 0);
    let mut shrunk = 0;
    while shrunk < 2 {
        let records = (0..2000).map(|number| {
            grant += 1;
            (room(&format!("room {}", number % 700)), vote(grant))
        });
        storage.commit(records.collect()).unwrap();
        assert!(grant < 1_000_000, "it is not written anew twice");
        shrunk += u32::from(storage.length() < longest);
        longest = storage.length();
        assert_eq!(fs::metadata(scratch.join("log")).unwrap().len(), storage.length());
    }
    storage.commit(vec![(room("last"), vote(1))]).unwrap();
    let rooms = storage.rooms().clone();
    assert_eq!(rooms.len(), 701);
    drop(storage);
    assert_eq!(*open(&scratch).unwrap().rooms(), rooms);
}

/// What is not in the rooms: the memories of this member and of others, the numbers of retired
/// rooms; and deaths, which are records beside the room.
#[test]
fn a_log_that_was_written_anew_has_all_facts_and_deaths() {
    let scratch = Scratch::new();
    let mut storage = open(&scratch).unwrap();
    let (mine, theirs) = (Memory { generation: 2, id: 7 }, Memory { generation: 3, id: 8 });
    for fact in [Fact::Memory(mine), Fact::Peer(MemberId(2), theirs), Fact::Floor(9)] {
        storage.note(fact).unwrap();
    }
    let (session, inside) = ("s".to_owned(), BTreeMap::from([(ProcessId(7), 1)]));
    let stage = OpenStage { session, epoch: 4, inside, recovered: None };
    let death = |epoch| Death { epoch, noticed: Time::ZERO, who: None };
    let died = KnownDeath { death: death(3), reported: false };
    let records = [Record::Opened(stage), Record::Recovered(death(2)), Record::Died(died.clone())];
    storage.commit(records.map(|record| (room("a"), record)).into()).unwrap();
    // A room that is retired later may have smaller numbers.
    storage.commit(vec![(room("retired"), vote(4))]).unwrap();
    storage.retire(&[room("retired")], 4).unwrap();
    let mut longest = 0;
    while storage.length() >= longest {
        longest = storage.length();
        assert!(longest < 16 * SMALL, "it is never written anew");
        storage.commit((0..20_000).map(|n| (room("b"), vote(n))).collect()).unwrap();
    }
    drop(storage);
    let storage = open(&scratch).unwrap();
    assert_eq!((storage.memory(), storage.memory_of(MemberId(2))), (mine, theirs));
    assert_eq!(storage.floor(), 9);
    assert_eq!(storage.rooms().keys().map(|name| &**name).collect::<Vec<_>>(), ["a", "b"]);
    let data = &storage.rooms()["a"];
    let recovered = data.open.as_ref().and_then(|open| open.recovered.clone());
    assert_eq!((data.died.as_ref(), recovered), (Some(&died), Some(death(2))));
}

#[test]
fn a_log_that_cannot_be_written_anew_goes_on_growing() {
    let scratch = Scratch::new();
    let mut storage = open(&scratch).unwrap();
    let many =
        |grant| (0..20_000).map(move |n| (room(&format!("room {n}")), vote(grant))).collect();
    // A directory blocks this name.
    let in_the_way = scratch.join("log.new");
    fs::create_dir(&in_the_way).unwrap();
    let mut grant = 0;
    while storage.length() < 8 * SMALL {
        grant += 1;
        assert!(grant < 100, "it does not grow");
        storage.commit(many(grant)).unwrap();
    }
    let rooms = storage.rooms().clone();
    drop(storage);
    let mut storage = open(&scratch).unwrap();
    assert_eq!(*storage.rooms(), rooms);
    // The log is rewritten as soon as that is possible again.
    fs::remove_dir(&in_the_way).unwrap();
    let long = storage.length();
    while storage.length() >= long {
        grant += 1;
        assert!(grant < 200, "it is not written anew");
        storage.commit(many(grant)).unwrap();
    }
    let rooms = storage.rooms().clone();
    drop(storage);
    assert_eq!(*open(&scratch).unwrap().rooms(), rooms);
}

#[test]
fn a_long_log_is_written_anew_when_it_is_opened() {
    let scratch = Scratch::new();
    let mut storage = open(&scratch).unwrap();
    let many =
        |grant| (0..70_000).map(move |n| (room(&format!("room {n}")), vote(grant))).collect();
    storage.commit(many(1)).unwrap();
    let new = storage.length();
    storage.commit(many(2)).unwrap();
    storage.commit(many(3)).unwrap();
    assert!(storage.length() > SMALL && storage.length() > 2 * new, "not long enough to tell");
    let rooms = storage.rooms().clone();
    drop(storage);
    let storage = open(&scratch).unwrap();
    assert!(storage.length() < 2 * new, "{} bytes, {new} would do", storage.length());
    assert_eq!(*storage.rooms(), rooms);
    drop(storage);
    assert_eq!(*open(&scratch).unwrap().rooms(), rooms);
}

#[test]
fn only_one_at_a_time_and_only_its_own() {
    let scratch = Scratch::new();
    let storage = open(&scratch).unwrap();
    assert!(matches!(open(&scratch), Err(StorageError::InUse { .. })));
    drop(storage);
    for other in [
        Head { me: MemberId(2), ..head() },
        Head { cluster: "other".to_owned(), ..head() },
        Head { coterie: CoterieKind::Majority, ..head() },
        Head { members: 7, ..head() },
    ] {
        let error = Storage::open(scratch.path(), other).unwrap_err();
        assert!(matches!(error, StorageError::Foreign { .. }), "{error}");
    }
    assert!(open(&scratch).is_ok());
}

#[test]
fn a_directory_that_cannot_be_is_named() {
    let scratch = Scratch::new();
    let file = scratch.join("file");
    fs::write(&file, "").unwrap();
    let error = Storage::open(&file.join("data"), head()).unwrap_err().to_string();
    assert!(error.contains("file/data"), "{error}");
}

/// The log of a member with messages of version 2: two stages in one room, and no name of its data.
#[test]
fn a_log_of_the_version_before_is_read_and_its_member_has_begun() {
    let scratch = Scratch::new();
    fs::write(scratch.join("log"), include_bytes!("logs/version-2.bin")).unwrap();
    let (cluster, me) = ("example".to_owned(), MemberId(0));
    let head = || Head { cluster: cluster.clone(), me, ..head() };
    let storage = Storage::open(scratch.path(), head()).unwrap();
    assert_eq!(storage.rooms().keys().map(|name| &**name).collect::<Vec<_>>(), ["build"]);
    let (memory, epoch) = (storage.memory(), storage.rooms()["build"].vote.epoch);
    assert!(memory.generation == 1 && epoch >= 1, "{memory}, epoch {epoch}");
    drop(storage);
    assert_eq!(
        Storage::open(scratch.path(), head()).unwrap().memory(),
        memory,
        "it has a new name"
    );
}
