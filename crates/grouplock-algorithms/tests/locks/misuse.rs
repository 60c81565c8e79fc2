//! Bad input: what types cannot refuse is refused with an error that names the mistake. Nothing is
//! lost.

use grouplock_algorithms::black_white_bakery_gme::{BlackWhiteBakeryGme, MOST_PROCESSES};
use grouplock_algorithms::burns_lamport::BurnsLamport;
use grouplock_algorithms::dvir_taubenfeld_2::Domain;
use grouplock_algorithms::generalized_bakery::GeneralizedBakery;
use grouplock_algorithms::handover::Handover;
use grouplock_algorithms::mcs::Mcs;
use grouplock_algorithms::memory::Native;
use grouplock_algorithms::reductions::{AsMutex, AsReadersWriters};
use grouplock_algorithms::rooms::Rooms;
use grouplock_algorithms::{CapacityError, EnterError, Group, Mutual, Session};

#[test]
fn session_zero_is_refused() {
    let lock = Group::<Handover>::new(1).expect("handover serves any number");
    let mut process = lock.process().expect("handover serves any number");
    let error = process.enter(0).map(drop).unwrap_err();
    assert_eq!(error, EnterError::SessionZero);
    assert_eq!(
        error.to_string(),
        "session 0 was requested, but sessions are numbered from 1: zero means \"no request\""
    );
    assert!(process.enter(1).is_ok(), "nothing was lost");
}

#[test]
fn every_session_but_zero_will_do() {
    let lock = Group::<Handover>::new(1).expect("handover serves any number");
    let mut process = lock.process().expect("handover serves any number");
    assert!(process.enter(u64::MAX).is_ok());
    assert_eq!(Session::new(u64::MAX).map(Session::get), Ok(u64::MAX));
}

#[test]
fn a_session_that_does_not_fit_is_refused() {
    let lock = Group::<BlackWhiteBakeryGme>::new(1).expect("one is possible");
    let mut process = lock.process().expect("there is room for one");
    let error = process.enter(1 << 48).map(drop).unwrap_err();
    assert_eq!(
        error.to_string(),
        "session 281474976710656 was requested, but this algorithm has room for 1 to \
         281474976710655 only"
    );
    assert!(process.enter((1 << 48) - 1).is_ok());
}

#[test]
fn a_room_that_does_not_exist_is_refused() {
    let lock = Group::<Rooms<Native, 3>>::new(1).expect("one is possible");
    let mut process = lock.process().expect("there is room for one");
    assert_eq!(
        process.enter(4).map(drop).unwrap_err(),
        EnterError::SessionTooLarge { session: 4, largest: 3 }
    );
    assert!(process.enter(3).is_ok());
}

#[test]
fn more_processes_than_there_are_places_are_refused() {
    let lock = Group::<GeneralizedBakery>::new(2).expect("two are possible");
    let _both = (lock.process(), lock.process());
    assert_eq!(
        lock.process().map(drop).unwrap_err().to_string(),
        "this lock was made for 2 processes and all of them have joined: drop one first, or make \
         the lock larger"
    );
}

#[test]
fn a_fixed_lock_for_nobody_or_for_too_many_is_refused() {
    assert_eq!(
        Mutual::<BurnsLamport>::new(0).map(drop).unwrap_err().to_string(),
        format!(
            "a lock for 0 processes was asked for, but this algorithm serves 1 to {}",
            usize::MAX
        )
    );
    let asked = MOST_PROCESSES + 1;
    assert_eq!(
        Group::<BlackWhiteBakeryGme>::new(asked).map(drop).unwrap_err(),
        CapacityError::Unsupported { asked, most: MOST_PROCESSES }
    );
}

#[test]
fn a_leaked_guard_keeps_its_process_inside() {
    let lock = Group::<Handover>::new(2).expect("handover serves any number");
    let mut process = lock.process().expect("handover serves any number");
    std::mem::forget(process.enter(7).expect("the first passage"));
    assert!(process.is_inside());
    let error = process.enter(7).map(drop).unwrap_err();
    assert_eq!(error, EnterError::StillInside);
    assert!(error.to_string().contains("mem::forget"), "{error}");

    // Its session continues, and other processes enter and leave it.
    let mut other = lock.process().expect("handover serves any number");
    for _ in 0..3 {
        drop(other.enter(7).expect("the same session"));
    }
    // Dropping the handle or the lock does no harm.
    drop(process);
    drop(other);
    drop(lock);
}

#[test]
fn a_leaked_guard_keeps_its_place() {
    let lock = Mutual::<BurnsLamport>::new(1).expect("one is possible");
    let mut process = lock.process().expect("there is room for one");
    std::mem::forget(process.acquire().expect("the first passage"));
    drop(process);
    assert!(lock.process().is_err(), "the place is not free: its process is still inside");
}

#[test]
fn a_leaked_handle_is_a_place_lost_and_nothing_else() {
    let lock = Mutual::<Mcs>::new(0).expect("MCS serves any number");
    std::mem::forget(lock.process().expect("MCS serves any number"));
    let mut process = lock.process().expect("MCS serves any number");
    drop(process.acquire().expect("nobody is inside"));
}

#[test]
fn a_panic_inside_leaves_on_the_way_out() {
    let lock = Group::<Handover>::new(0).expect("handover serves any number");
    let mut process = lock.process().expect("handover serves any number");
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _inside = process.enter(1).expect("nobody is inside");
        std::panic::resume_unwind(Box::new("a panic inside"));
    }));
    assert!(outcome.is_err());
    let mut other = lock.process().expect("handover serves any number");
    assert!(other.enter(2).is_ok(), "session 1 is over");
    assert!(process.enter(3).is_ok());
}

#[test]
fn a_process_of_one_domain_cannot_use_the_locks_of_another() {
    let (here, there) = (Domain::new(), Domain::new());
    let foreign = there.lock();
    let mut process = here.process();
    let error = process.acquire(&foreign).map(drop).unwrap_err();
    assert_eq!(
        error.to_string(),
        "this lock belongs to another domain than the process that tries to acquire it"
    );
    assert!(process.acquire(&here.lock()).is_ok());
}

#[test]
fn a_leaked_guard_of_a_domain_keeps_its_nodes() {
    let domain = Domain::new();
    let lock = domain.lock();
    let mut process = domain.process();
    std::mem::forget(process.acquire(&lock).expect("nobody holds it"));
    let other = domain.lock();
    assert_eq!(process.acquire(&other).map(drop), Err(EnterError::StillInside));
    drop(process);
    drop(lock);
    // The node that the leaked guard left in the queue is not used again.
    let fresh = domain.lock();
    let mut process = domain.process();
    drop(process.acquire(&fresh).expect("nobody holds it"));
    assert_eq!(domain.nodes(), 5);
}

#[test]
#[cfg_attr(miri, ignore = "leaves a thread waiting, as it should, which miri takes for a leak")]
fn a_leaked_writer_keeps_its_session_to_itself() {
    let lock = <AsReadersWriters>::new(2).expect("handover serves any number");
    let mut writer = lock.process().expect("handover serves any number");
    std::mem::forget(writer.write().expect("nobody is inside"));
    drop(writer);
    // If the session were assigned again, this process would enter beside the leaked writer.
    let lock = std::sync::Arc::new(lock);
    let (tell, told) = std::sync::mpsc::channel();
    let theirs = std::sync::Arc::clone(&lock);
    std::thread::spawn(move || {
        let mut process = theirs.process().expect("handover serves any number");
        _ = tell.send(());
        let _inside = process.write();
        _ = tell.send(());
    });
    told.recv().expect("it comes");
    let outcome = told.recv_timeout(std::time::Duration::from_millis(200));
    assert!(outcome.is_err(), "a second writer is inside");
}

#[test]
fn a_lock_with_few_sessions_serves_no_more_processes_than_it_can_name() {
    let lock = Mutual::<AsMutex<Native, Rooms<Native, 2>>>::new(3).expect("any number is possible");
    let mut two = [lock.process(), lock.process()].map(|process| process.expect("it has a name"));
    assert_eq!(lock.process().map(drop), Err(CapacityError::Full { processes: 2 }));
    let [first, second] = &mut two;
    drop(first.acquire().expect("nothing was leaked"));
    drop(second.acquire().expect("nothing was leaked"));
    drop(two);
    assert!(lock.process().is_ok(), "its name is free again");

    let lock = AsReadersWriters::<Rooms<Native, 2>>::new(3).expect("any number is possible");
    let mut one = lock.process().expect("readers have one session, and it has the other");
    assert_eq!(lock.process().map(drop), Err(CapacityError::Full { processes: 2 }));
    drop(one.write().expect("nothing was leaked"));
}
