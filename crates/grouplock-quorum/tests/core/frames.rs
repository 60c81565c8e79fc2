//! Frames of each version, as bytes on the wire when that version was the newest.
//!
//! A version's file never changes after a release. A change of a frame raises [`Versions::OURS`]
//! and needs a file for the new version. Before a release, `GROUPLOCK_WRITE_FRAMES=1` writes the
//! file of the newest version again.

use std::time::Duration;

use grouplock_quorum::wire::{
    About, Cluster, CoterieKind, Fingerprint, Frame, Hello, Inside, LONGEST, Memory, Participant,
    PastStage, Peer, Reader, Reason, Recall, Role, Seen, Stage, Versions, Waiter, Welcome, encode,
};
use grouplock_quorum::{
    DeadProcess, Death, GroupMessage, KnownDeath, MemberId, PeerMessage, Precedence, ProcessId,
    ProcessMessage, Rank, Settings, Time,
};

/// The bytes of the newest version.
const NEWEST: &[u8] = include_bytes!("frames/version-3.bin");
/// The bytes of the version before.
const BEFORE: &[u8] = include_bytes!("frames/version-2.bin");

fn time(seconds: u64) -> Time {
    Time::from_micros(seconds * 1_000_000)
}

/// One frame of each kind, in all its forms.
#[expect(clippy::too_many_lines, reason = "it is a list")]
fn frames() -> Vec<Frame> {
    let room = || "gpu0".to_owned();
    let process = ProcessId(0x0123_4567_89ab_cdef);
    let claim = Precedence::Aged { weight: Duration::from_secs(10) }.claim(time(1000), 3);
    let rank = Rank { claim, member: MemberId(2), stage: 9 };
    let about = || About {
        host: "host".to_owned(),
        user: "user".to_owned(),
        pid: 4711,
        command: "make all".to_owned(),
        since: time(1001),
        priority: -3,
        expected: Some(Duration::from_millis(1500)),
    };
    let cluster = Cluster {
        name: "example".to_owned(),
        members: vec![Peer { address: "127.0.0.1:7100".to_owned(), name: "a".to_owned() }],
        coterie: CoterieKind::Plane,
        settings: Settings { lease: Some(Duration::from_secs(10)), ..Settings::default() },
        clock_tolerance: Duration::from_secs(5),
    };
    let hello = |role| {
        let (cluster, now) = (Some(Fingerprint(77)), time(1002));
        Frame::Hello(Hello { cluster, role, now, versions: Versions { lowest: 3, highest: 3 } })
    };
    let memory = Memory { generation: 1, id: 96 };
    let who = Some(DeadProcess { session: "B".to_owned(), pid: 4712 });
    let death = Death { epoch: 38, noticed: time(1000), who };
    let seen = |seen| Frame::Seen { question: 5, seen };
    let mut frames = vec![
        hello(Role::Member { id: MemberId(1), incarnation: 99 }),
        hello(Role::Client { client: 98 }),
        Frame::Welcome(Welcome {
            cluster,
            me: MemberId(0),
            incarnation: 97,
            now: time(1003),
            version: 3,
        }),
        Frame::Refused { reason: Reason::Ending },
        Frame::Look { question: 5, room: Some(room()), brief: true },
        Frame::Look { question: 6, room: None, brief: false },
        Frame::Queued { room: room(), process, attempt: 1, claim, inside: Some("C".to_owned()) },
        Frame::Denied { room: room(), process, attempt: 1, reason: Reason::NotItsProcess(process) },
        Frame::Ping,
        Frame::Pong,
        Frame::Memory { mine: memory, recall: None },
        Frame::Memory { mine: memory, recall: Some(Recall { known: memory, floor: 1234 }) },
        seen(Seen::Rooms(vec![room(), "gpu1".to_owned()])),
        seen(Seen::Stage(Stage {
            stage: 9,
            epoch: 40,
            inside: Some(Inside {
                session: "A".to_owned(),
                epoch: 41,
                contested: true,
                began: time(1004),
            }),
            votes: Some(1),
            voted_for: Some(rank),
            electors: vec![rank],
            deaths: 2,
            now: time(1005),
        })),
        seen(Seen::Inside(vec![Participant { process, since: time(1006), about: Some(about()) }])),
        seen(Seen::Waiting(vec![Waiter {
            process,
            session: "B".to_owned(),
            claim,
            since: time(1007),
            about: None,
        }])),
        seen(Seen::Past(vec![PastStage {
            session: "A".to_owned(),
            epoch: 39,
            began: time(900),
            ended: time(901),
            entries: 12,
            died: false,
        }])),
        seen(Seen::End),
    ];
    let peers = [
        PeerMessage::Request { rank, sent: time(1010), epoch: 39 },
        PeerMessage::Locked {
            stage: 9,
            grant: 3,
            epoch: 40,
            heard: time(1010),
            rival: Some(claim),
            died: Some(KnownDeath { death: death.clone(), reported: true }),
        },
        PeerMessage::Inquire { stage: 9, grant: 3, rival: claim, again: false },
        PeerMessage::Contested { stage: 9, grant: 3, rival: None, again: true },
        PeerMessage::Relinquish { stage: 9, grant: 3 },
        PeerMessage::Release { stage: 9, epoch: 41, died: None },
    ];
    frames.extend(peers.into_iter().map(|message| Frame::Peer { room: room(), message }));
    let asks = [
        ProcessMessage::Ask {
            attempt: 1,
            session: "A".to_owned(),
            stay: Some(Duration::from_secs(2)),
            priority: 3,
            sent: time(1008),
            delay: Duration::from_micros(250),
            pid: 4711,
        },
        ProcessMessage::Leave { attempt: 1, entered: true },
        ProcessMessage::Renew { attempt: 1, sent: time(1009) },
    ];
    frames.extend(asks.into_iter().map(|message| {
        let about = matches!(message, ProcessMessage::Ask { .. }).then(about);
        Frame::Process { room: room(), process, message, about }
    }));
    let answers = [
        GroupMessage::Enter { attempt: 1, epoch: 41, heard: time(1008), recovered: Some(death) },
        GroupMessage::Renewed { attempt: 1, heard: time(1009) },
        GroupMessage::Gone { attempt: 1 },
    ];
    frames.extend(answers.into_iter().map(|message| Frame::Group {
        room: room(),
        process,
        message,
    }));
    frames
}

fn bytes(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames {
        encode(frame, &mut bytes).unwrap();
    }
    bytes
}

#[tokio::test]
async fn the_newest_version_is_what_its_file_says() {
    let written = bytes(&frames());
    if std::env::var_os("GROUPLOCK_WRITE_FRAMES").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/core/frames/version-3.bin");
        std::fs::write(path, &written).unwrap();
        return;
    }
    let mut reader = Reader::new(NEWEST);
    for expected in frames() {
        let found = reader.next().await.unwrap();
        assert_eq!(found.as_ref(), Some(&expected), "a frame has another meaning than it had");
    }
    assert_eq!(reader.next().await.unwrap(), None);
    assert_eq!(written, NEWEST, "a frame is written in another way than it was");
}

/// A peer of the version before is understood in that version, and understands why it is refused.
#[tokio::test]
async fn the_version_before_is_refused_as_too_old() {
    let mut reader = Reader::new(BEFORE);
    for _ in 0..2 {
        let Some(Frame::Hello(hello)) = reader.next().await.unwrap() else { panic!("no Hello") };
        assert_eq!(hello.versions, Versions { lowest: 2, highest: 2 });
        assert_eq!(Versions::OURS.common(hello.versions), None);
        let reason = Reason::Version { theirs: hello.versions, ours: Versions::OURS };
        assert_eq!(reason.to_string(), "version 2 is spoken there, 3 here");
        // The form of version 2: the third frame, the second reason, and two pairs of numbers.
        assert_eq!(bytes(&[Frame::Refused { reason }]), [0, 0, 0, 6, 2, 1, 2, 2, 3, 3]);
    }
}

/// Later versions may say more in a Hello or Welcome.
#[tokio::test]
async fn what_a_later_hello_says_besides_is_skipped() {
    let greetings = |frame: &Frame| matches!(frame, Frame::Hello(_) | Frame::Welcome(_));
    for frame in frames() {
        let mut longer = bytes(std::slice::from_ref(&frame));
        longer.extend_from_slice(b"more");
        longer[3] += 4;
        let read = Reader::new(longer.as_slice()).next().await;
        if greetings(&frame) {
            assert_eq!(read.unwrap(), Some(frame));
        } else {
            assert!(read.is_err(), "{} with more behind it", frame.kind());
        }
    }
    assert!(NEWEST.len() < LONGEST, "they would not be whole");
}

#[test]
fn two_speak_the_highest_version_that_both_know() {
    let versions = |lowest, highest| Versions { lowest, highest };
    for (one, other, common) in [
        (versions(2, 2), versions(2, 2), Some(2)),
        (versions(2, 3), versions(2, 2), Some(2)),
        (versions(2, 3), versions(3, 9), Some(3)),
        (versions(2, 4), versions(1, 9), Some(4)),
        (versions(2, 2), versions(3, 3), None),
        (versions(5, 9), versions(1, 4), None),
    ] {
        assert_eq!((one.common(other), other.common(one)), (common, common), "{one} and {other}");
    }
    assert_eq!(versions(2, 3).to_string(), "2 to 3");
}
