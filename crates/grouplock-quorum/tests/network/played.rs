//! How a client handles a member's answers. The test plays the member.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use grouplock_quorum::wire::{
    Cluster, CoterieKind, Frame, Inside, Peer, Reader, Reason, Seen, Stage, Versions, Welcome,
    exchange_openings, write,
};
use grouplock_quorum::{Clock, GroupMessage, MemberId, Precedence, ProcessMessage, Settings, Time};
use grouplock_room::{Places, Room, RoomError, RoomOptions};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

const LEASE: Duration = Duration::from_secs(10);

/// The requests that the member received.
#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    asks: AtomicUsize,
    looks: AtomicUsize,
    /// The member answers looks after so many requests.
    awaited: AtomicUsize,
    /// After how many milliseconds the member sends Welcome and Pong.
    slow: AtomicU64,
    /// How long a message takes, in milliseconds, by the last request.
    delay: AtomicU64,
}

struct Member {
    address: String,
    counts: Arc<Counts>,
    _runtime: Runtime,
}

impl Member {
    fn start() -> Self {
        Self::start_slow(0)
    }

    fn start_slow(millis: u64) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let cluster = Cluster {
            name: "test".to_owned(),
            members: vec![Peer { address: address.clone(), name: "member".to_owned() }],
            coterie: CoterieKind::Majority,
            settings: Settings { lease: Some(LEASE), ..Settings::default() },
            clock_tolerance: Duration::from_secs(5),
        };
        let counts = Arc::new(Counts { slow: AtomicU64::new(millis), ..Counts::default() });
        let theirs = counts.clone();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                theirs.connections.fetch_add(1, SeqCst);
                tokio::spawn(serve(stream, cluster.clone(), theirs.clone()));
            }
        });
        Member { address, counts, _runtime: runtime }
    }

    fn open(&self, name: &str) -> Room {
        let places = Places::new().with(grouplock_quorum::opener());
        let place = format!("gbp://{}", self.address);
        places.open(place.as_str(), name, &RoomOptions::new()).unwrap()
    }
}

async fn serve(mut stream: TcpStream, cluster: Cluster, counts: Arc<Counts>) -> Option<()> {
    exchange_openings(&mut stream, Duration::from_secs(5)).await.ok()?;
    let (reader, mut writer) = stream.into_split();
    let mut reader = Reader::new(reader);
    let mut seen = Vec::new();
    while let Some(frame) = reader.next().await.ok()? {
        for answer in answers(frame, &cluster, &counts) {
            if matches!(answer, Frame::Welcome(_) | Frame::Pong) {
                let slow = counts.slow.load(SeqCst);
                tokio::time::sleep(Duration::from_millis(slow)).await;
            }
            if matches!(answer, Frame::Seen { .. }) {
                seen.push(answer);
            } else {
                write(&mut writer, &answer).await.ok()?;
            }
        }
        if counts.asks.load(SeqCst) >= counts.awaited.load(SeqCst) {
            for answer in seen.drain(..) {
                write(&mut writer, &answer).await.ok()?;
            }
        }
    }
    Some(())
}

/// Admits every request, with three exceptions. `bad` refuses all requests. In `known` and
/// `unknown` another session is inside. In `unknown` only a look shows it.
fn answers(frame: Frame, cluster: &Cluster, counts: &Counts) -> Vec<Frame> {
    match frame {
        Frame::Hello(_) => {
            let (me, incarnation, now) = (MemberId(0), 1, Clock::start().now());
            let (cluster, version) = (cluster.clone(), Versions::OURS.highest);
            vec![Frame::Welcome(Welcome { cluster, me, incarnation, now, version })]
        }
        Frame::Ping => vec![Frame::Pong],
        Frame::Process {
            room,
            process,
            message: ProcessMessage::Ask { attempt, sent, delay, .. },
            ..
        } => {
            counts.asks.fetch_add(1, SeqCst);
            counts.delay.store(delay.as_millis() as u64, SeqCst);
            let claim = Precedence::Static.claim(sent, 0);
            let inside = (room == "known").then(|| "another".to_owned());
            vec![match room.as_str() {
                "bad" => {
                    let reason = Reason::Protocol("it is tested".to_owned());
                    Frame::Denied { room, process, attempt, reason }
                }
                "known" | "unknown" => Frame::Queued { room, process, attempt, claim, inside },
                _ => {
                    let (epoch, heard, recovered) = (1, sent, None);
                    let message = GroupMessage::Enter { attempt, epoch, heard, recovered };
                    Frame::Group { room, process, message }
                }
            }]
        }
        Frame::Process {
            room, process, message: ProcessMessage::Renew { attempt, sent }, ..
        } => {
            let message = GroupMessage::Renewed { attempt, heard: sent };
            vec![Frame::Group { room, process, message }]
        }
        Frame::Look { question, room: Some(room), brief: false } if room == "nowhere" => {
            vec![Frame::Seen { question, seen: Seen::End }]
        }
        Frame::Look { question, room: Some(room), brief } => {
            assert!(brief || room == "there", "the whole line is asked for");
            counts.looks.fetch_add(1, SeqCst);
            let (session, epoch, began) = ("another".to_owned(), 1, Time::ZERO);
            let inside = Some(Inside { session, epoch, contested: false, began });
            let stage = Stage {
                stage: 1,
                epoch: 1,
                inside,
                votes: None,
                voted_for: None,
                electors: Vec::new(),
                deaths: 0,
                now: Time::ZERO,
            };
            [Seen::Stage(stage), Seen::End].map(|seen| Frame::Seen { question, seen }).into()
        }
        _ => Vec::new(),
    }
}

#[test]
fn a_denied_request_fails_with_the_reason_and_others_stay() {
    let member = Member::start();
    let (good, bad) = (member.open("good"), member.open("bad"));
    let inside = good.enter("session").unwrap();
    let why = bad.enter("session").unwrap_err().to_string();
    assert!(why.contains("it is tested") && why.contains(&member.address), "{why}");
    assert!(bad.try_enter("session").unwrap_err().to_string().contains("it is tested"));
    inside.leave().expect("it was kept");
    assert_eq!(member.counts.connections.load(SeqCst), 1, "the connection was lost");
}

/// For each room, the list of all rooms would be as long as the number of rooms. So this member
/// does not even answer a request for the list.
#[test]
fn to_see_whether_a_room_exists_members_are_asked_about_that_room() {
    let member = Member::start();
    let places = Places::new().with(grouplock_quorum::opener());
    let place = format!("gbp://{}", member.address);
    let open = |name, options: &RoomOptions| places.open(place.as_str(), name, options);
    let existing = RoomOptions::new().existing(true);
    assert!(open("there", &existing).is_ok());
    let look = RoomOptions::new().look_only();
    assert_eq!(open("there", &look).unwrap().snapshot().unwrap().epoch, 1);
    assert_eq!(member.counts.looks.load(SeqCst), 2, "it is looked at once each time");
    let missing = open("nowhere", &existing).map(drop).unwrap_err();
    assert!(matches!(missing, RoomError::NoSuchRoom { .. }), "{missing}");
    let missing = open("nowhere", &look).unwrap().snapshot().unwrap_err();
    assert!(matches!(missing, RoomError::NoSuchRoom { .. }), "{missing}");
}

#[test]
fn members_are_asked_about_a_room_once_for_all_requests() {
    const THREADS: usize = 100;
    let member = Member::start();
    for (name, looks) in [("known", 0), ("unknown", THREADS / 4)] {
        let room = member.open(name);
        let occupied = room.try_enter("session").unwrap_err();
        assert!(
            matches!(&occupied, RoomError::Occupied { inside: Some(inside) } if inside == "another"),
            "{occupied}"
        );
        member.counts.asks.store(0, SeqCst);
        member.counts.looks.store(0, SeqCst);
        member.counts.awaited.store(THREADS, SeqCst);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let waited = room.request("session").timeout(Duration::from_secs(1)).enter();
                    assert!(matches!(waited, Err(RoomError::TimedOut { .. })));
                });
            }
        });
        assert!(member.counts.asks.load(SeqCst) >= THREADS, "not all of them have asked");
        let asked = member.counts.looks.load(SeqCst);
        assert!(asked <= looks, "`{name}`: {asked} questions for {THREADS} requests");
        member.counts.awaited.store(0, SeqCst);
        // At least one request that needed the members' knowledge sent a look.
        assert!(asked > 0 || looks == 0);
    }
}

/// What is left of the lease is the time that a holder has to stop, before others are admitted.
#[test]
fn a_holder_trusts_its_lease_for_less_than_it_lasts() {
    let member = Member::start();
    let room = member.open("good");
    let inside = room.enter("session").unwrap();
    let until = inside.watch().valid_until().expect("it has a lease");
    assert!(until <= Instant::now() + LEASE * 7 / 8);
}

/// The paper's tc: half of the time from Hello to Welcome, then from a Ping to its Pong.
#[test]
fn how_long_a_message_takes_is_measured_on_each_link() {
    let member = Member::start_slow(200);
    let room = member.open("good");
    let inside = room.enter("session").unwrap();
    let first = member.counts.delay.load(SeqCst);
    assert!(first >= 100, "{first} ms by Welcome");
    let slower = 2 * (first + 100);
    member.counts.slow.store(slower, SeqCst);
    inside.leave().unwrap();
    room.enter("session").unwrap().leave().unwrap();
    let second = member.counts.delay.load(SeqCst);
    assert!(second >= slower / 2, "{second} ms by Pong, {first} ms by Welcome");
}
