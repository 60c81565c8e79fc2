//! A member that refuses a request, as a client sees it. The member is played by the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use grouplock_quorum::wire::{
    Cluster, CoterieKind, Frame, Peer, Reader, Reason, Versions, Welcome, exchange_openings, write,
};
use grouplock_quorum::{Clock, GroupMessage, MemberId, ProcessMessage, Settings};
use grouplock_room::{Places, RoomOptions};
use tokio::net::{TcpListener, TcpStream};

/// Lets everybody in, but not into the room `bad`.
async fn serve(mut stream: TcpStream, cluster: Cluster) -> Option<()> {
    exchange_openings(&mut stream, Duration::from_secs(5)).await.ok()?;
    let (reader, mut writer) = stream.into_split();
    let mut reader = Reader::new(reader);
    loop {
        let answer = match reader.next().await.ok()?? {
            Frame::Hello(_) => {
                let (me, incarnation, now) = (MemberId(0), 1, Clock::start().now());
                let (cluster, version) = (cluster.clone(), Versions::OURS.highest);
                Frame::Welcome(Welcome { cluster, me, incarnation, now, version })
            }
            Frame::Ping => Frame::Pong,
            Frame::Process {
                room,
                process,
                message: ProcessMessage::Ask { attempt, sent, .. },
                ..
            } => {
                if room == "bad" {
                    let reason = Reason::Protocol("it is tested".to_owned());
                    Frame::Denied { room, process, attempt, reason }
                } else {
                    let message = GroupMessage::Enter { attempt, epoch: 1, heard: sent };
                    Frame::Group { room, process, message }
                }
            }
            Frame::Process {
                room,
                process,
                message: ProcessMessage::Renew { attempt, sent },
                ..
            } => {
                let message = GroupMessage::Renewed { attempt, heard: sent };
                Frame::Group { room, process, message }
            }
            _ => continue,
        };
        write(&mut writer, &answer).await.ok()?;
    }
}

#[test]
fn a_denied_request_fails_with_the_reason_and_others_stay() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let cluster = Cluster {
        name: "test".to_owned(),
        members: vec![Peer { address: address.clone(), name: "member".to_owned() }],
        coterie: CoterieKind::Majority,
        settings: Settings { lease: Some(Duration::from_secs(10)), ..Settings::default() },
        clock_tolerance: Duration::from_secs(5),
    };
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, SeqCst);
            tokio::spawn(serve(stream, cluster.clone()));
        }
    });
    let places = Places::new().with(grouplock_quorum::opener());
    let open = |name| places.open(&*format!("gbp://{address}"), name, &RoomOptions::new()).unwrap();
    let (good, bad) = (open("good"), open("bad"));
    let inside = good.enter("session").unwrap();
    let why = bad.enter("session").unwrap_err().to_string();
    assert!(why.contains("it is tested") && why.contains(&address), "{why}");
    assert!(bad.try_enter("session").unwrap_err().to_string().contains("it is tested"));
    inside.leave().expect("it was kept");
    assert_eq!(connections.load(SeqCst), 1, "the connection was lost");
}
