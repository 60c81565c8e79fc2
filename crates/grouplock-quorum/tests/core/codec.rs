//! Frames as bytes.

use std::time::Duration;

use grouplock_quorum::wire::{Frame, LONGEST, LONGEST_SESSION, Reader, Seen, WireError, encode};
use grouplock_quorum::{ProcessId, ProcessMessage, Time};
use tokio::io::AsyncWriteExt;

fn ask(room: &str, session: &str) -> Frame {
    let session = session.to_owned();
    let (attempt, stay, priority, sent, delay, pid) = (1, None, 0, Time::ZERO, Duration::ZERO, 1);
    Frame::Process {
        room: room.to_owned(),
        process: ProcessId(7),
        message: ProcessMessage::Ask { attempt, session, stay, priority, sent, delay, pid },
        about: None,
    }
}

fn bytes(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames {
        encode(frame, &mut bytes).unwrap();
    }
    bytes
}

async fn read(bytes: &[u8]) -> Result<Vec<Frame>, WireError> {
    let mut reader = Reader::new(bytes);
    let mut frames = Vec::new();
    while let Some(frame) = reader.next().await? {
        frames.push(frame);
    }
    Ok(frames)
}

#[tokio::test]
async fn frames_read_as_they_were_written() {
    let frames = vec![Frame::Ping, ask("room", ""), ask("ру́м", "session"), Frame::Pong];
    assert_eq!(read(&bytes(&frames)).await.unwrap(), frames);
}

#[tokio::test]
async fn a_frame_that_comes_in_drops_is_a_frame() {
    let (mut near, far) = tokio::io::duplex(3);
    let whole = bytes(&[ask("room", "session"), Frame::Ping]);
    let writer = tokio::spawn(async move { near.write_all(&whole).await });
    let mut reader = Reader::new(far);
    assert_eq!(reader.next().await.unwrap(), Some(ask("room", "session")));
    assert_eq!(reader.next().await.unwrap(), Some(Frame::Ping));
    writer.await.unwrap().unwrap();
    assert_eq!(reader.next().await.unwrap(), None);
}

#[tokio::test]
async fn what_is_no_frame_is_refused() {
    let label = async |bytes: &[u8]| read(bytes).await.unwrap_err().reason().unwrap().label();
    assert_eq!(label(&[0, 1, 0, 1]).await, "too_long");
    assert_eq!(label(&[255; 64]).await, "too_long");
    assert_eq!(label(&[0, 0, 0, 0]).await, "malformed");
    assert_eq!(label(&[0, 0, 0, 1, 200]).await, "malformed");
    // Bytes are left over.
    let mut long = bytes(&[Frame::Ping]);
    long[3] += 1;
    long.push(0);
    assert_eq!(label(&long).await, "malformed");
    let cut = bytes(&[ask("room", "session")]);
    for end in 1..cut.len() {
        assert_eq!(label(&cut[..end]).await, "malformed");
    }
}

#[test]
fn names_that_are_none_are_found() {
    assert!(ask("r", &"s".repeat(LONGEST_SESSION)).check_names().is_ok());
    for bad in
        [ask("", "s"), ask(&"x".repeat(241), "s"), ask("r", &"s".repeat(LONGEST_SESSION + 1))]
    {
        assert!(bad.check_names().is_err(), "{bad:?}");
    }
}

#[tokio::test]
async fn no_bytes_make_the_reader_panic() {
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..20_000 {
        let length = random.usize(..40);
        let mut bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
        if length > 4 {
            bytes[..4].copy_from_slice(&(length as u32 - 4).to_be_bytes());
            bytes[4] %= 12;
        }
        _ = read(&bytes).await;
    }
}

#[test]
fn a_frame_too_long_is_not_sent() {
    let seen = Seen::Rooms(vec!["x".repeat(LONGEST)]);
    let mut bytes = vec![1];
    assert!(encode(&Frame::Seen { question: 0, seen }, &mut bytes).is_err());
    assert_eq!(bytes, [1]);
}
