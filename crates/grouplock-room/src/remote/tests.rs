use super::*;
use std::sync::mpsc;
use std::thread;

fn grant(lease: Option<Duration>) -> Grant {
    let valid_until = lease.map(|lease| Instant::now() + lease);
    Grant { epoch: 1, recovered: None, valid_until }
}

fn pair(patience: Patience) -> (PendingRequest, Desk, mpsc::Receiver<()>) {
    let (ended, end) = mpsc::channel();
    let (pending, desk) = ask(HolderId::new("h"), patience, move || {
        _ = ended.send(());
    });
    (pending, desk, end)
}

fn inside(lease: Option<Duration>) -> (Box<dyn Holding>, Desk, mpsc::Receiver<()>) {
    let (pending, desk, end) = pair(Patience::Unlimited);
    assert!(desk.granted(grant(lease)));
    match pending.submitted() {
        Ok(Submitted::Granted(holding)) => (holding, desk, end),
        _ => panic!("it was granted"),
    }
}

#[test]
fn a_queued_request_waits_for_its_grant() {
    let (pending, desk, _end) = pair(Patience::Unlimited);
    desk.queued();
    let Ok(Submitted::Waiting(mut pending)) = pending.submitted() else { panic!("it waits") };
    assert!(pending.wait(Some(Instant::now())).unwrap().is_none());
    let granting = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        assert!(desk.granted(grant(None)));
        desk
    });
    let holding = pending.wait(None).unwrap().expect("no deadline, so a grant");
    assert_eq!(holding.watch().standing(), Standing::Held);
    granting.join().unwrap().lost(Loss::Removed);
    assert_eq!(holding.watch().wait(None), Standing::Lost(Loss::Removed));
}

#[test]
fn a_withdrawn_request_is_not_granted() {
    let (pending, desk, end) = pair(Patience::Unlimited);
    desk.queued();
    let task = thread::spawn(move || {
        end.recv().unwrap();
        let wanted = desk.granted(grant(None));
        desk.left();
        wanted
    });
    drop(pending);
    assert!(!task.join().unwrap());
}

#[test]
fn a_grant_that_nobody_took_is_given_back() {
    let (pending, desk, end) = pair(Patience::Unlimited);
    assert!(desk.granted(grant(None)));
    let task = thread::spawn(move || {
        end.recv().unwrap();
        desk.left();
    });
    drop(pending);
    task.join().unwrap();
}

#[test]
fn a_refusal_is_reported_once_and_ends_nothing_at_the_servers() {
    let (pending, desk, end) = pair(Patience::None);
    desk.failed(RoomError::Withdrawn);
    assert!(matches!(pending.submitted(), Err(RoomError::Withdrawn)));
    // The task gets the call anyway, and may do nothing.
    assert!(end.try_recv().is_ok());
}

#[test]
fn a_lease_that_ran_out_stays_so() {
    let (holding, desk, _end) = inside(Some(Duration::from_millis(10)));
    assert_eq!(holding.watch().wait(None), Standing::Lost(late()));
    assert!(!desk.renewed(Instant::now() + Duration::from_secs(9)));
    assert_eq!(holding.watch().standing(), Standing::Lost(late()));
    assert!(matches!(holding.leave(), Err(RoomError::Lost(_))));
}

#[test]
fn a_holder_that_lost_a_lease_knows_how_long_others_are_kept_out() {
    let (holding, desk, _end) = inside(Some(Duration::from_millis(10)));
    desk.grace(Duration::from_secs(60));
    let end = holding.watch().valid_until().expect("it has a lease");
    assert_eq!(holding.watch().wait(None), Standing::Lost(late()));
    assert_eq!(holding.watch().valid_until(), Some(end + Duration::from_secs(60)));
    let (holding, desk, _end) = inside(Some(Duration::from_secs(60)));
    desk.grace(Duration::from_secs(60));
    desk.lost(Loss::Removed);
    assert!(holding.watch().valid_until().is_some_and(|end| end <= Instant::now()));
}

#[test]
fn a_renewal_moves_the_end_and_an_older_one_does_not_move_it_back() {
    let (holding, desk, _end) = inside(Some(Duration::from_secs(60)));
    let far = Instant::now() + Duration::from_secs(120);
    assert!(desk.renewed(far));
    assert!(desk.renewed(Instant::now()));
    assert_eq!(holding.watch().valid_until(), Some(far));
    desk.lost(Loss::Removed);
}

#[test]
fn leaving_waits_until_the_servers_know() {
    let (holding, desk, end) = inside(Some(Duration::from_secs(60)));
    let watch = holding.watch();
    let leaving = thread::spawn(move || holding.leave());
    end.recv().unwrap();
    assert_eq!(watch.standing(), Standing::Left);
    assert!(!leaving.is_finished());
    desk.left();
    leaving.join().unwrap().unwrap();
}

#[test]
fn a_leave_that_the_servers_never_confirm_is_reported_when_the_lease_ends() {
    let (holding, _desk, _end) = inside(Some(Duration::from_millis(30)));
    assert!(matches!(holding.leave(), Err(RoomError::Lost(Loss::Expired(_)))));
}

#[test]
fn a_deadline_ends_a_blocking_and_a_polled_request() {
    let (pending, desk, end) = pair(Patience::for_time(Duration::from_millis(10)));
    // The servers have not answered. Dropping still asks the task to withdraw.
    let task = thread::spawn(move || {
        end.recv().unwrap();
        desk.left();
    });
    assert!(matches!(pending.submitted(), Err(RoomError::TimedOut { .. })));
    task.join().unwrap();

    let (mut pending, desk, _end) = pair(Patience::for_time(Duration::ZERO));
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(Err(RoomError::TimedOut { .. })) = pending.poll(&mut context) else {
        panic!("its time is over")
    };
    desk.failed(RoomError::Withdrawn);
}

#[test]
fn a_polled_request_is_woken_when_its_deadline_passes() {
    struct Tell(mpsc::Sender<()>);
    impl std::task::Wake for Tell {
        fn wake(self: Arc<Self>) {
            _ = self.0.send(());
        }
    }
    let (tell, told) = mpsc::channel();
    let waker = Waker::from(Arc::new(Tell(tell)));
    let (mut pending, desk, _end) = pair(Patience::for_time(Duration::from_secs(60)));
    assert!(pending.poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(told.try_recv().is_err());
    desk.expired();
    assert!(told.try_recv().is_ok());
    desk.failed(RoomError::Withdrawn);
}

#[test]
fn all_threads_get_the_client_of_their_place_until_nothing_holds_it() {
    let clients = Clients::<&str, String>::new();
    let start = |place: &'static str| {
        move || {
            // Long enough for others to find that there is no client yet.
            thread::sleep(Duration::from_millis(5));
            Ok::<_, ()>(place.to_owned())
        }
    };
    let got: Vec<_> = thread::scope(|scope| {
        let clients = &clients;
        let get = |place| scope.spawn(move || clients.at(place, start(place)).expect("it starts"));
        let threads: Vec<_> = ["here", "there"].repeat(8).into_iter().map(get).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    for (at, client) in got.iter().enumerate() {
        assert_eq!(**client, ["here", "there"][at % 2]);
        assert!(Arc::ptr_eq(client, &got[at % 2]), "one for each place");
    }
    drop(got);
    assert_eq!(clients.at("here", || Err("starts again")), Err("starts again"));
}

#[test]
fn a_client_that_does_not_start_is_no_client() {
    let clients = Clients::<u8, u8>::new();
    assert_eq!(clients.at(1, || Err("no server")), Err("no server"));
    let client = clients.at(1, || Ok::<_, ()>(7)).expect("it starts");
    assert_eq!(clients.at(1, || Err("not called")), Ok(client));
}

#[test]
fn a_lost_holding_that_is_dropped_stays_lost_and_waits_for_nobody() {
    let (holding, desk, _end) = inside(Some(Duration::from_secs(60)));
    let watch = holding.watch();
    desk.lost(Loss::Removed);
    drop(holding);
    assert_eq!(watch.standing(), Standing::Lost(Loss::Removed));
}
