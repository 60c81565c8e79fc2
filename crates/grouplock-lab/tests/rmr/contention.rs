//! Point and interval contention of passages in a known order.

use grouplock_lab::rmr::Contention;
use grouplock_lab::rmr::contention::Crowd;

#[test]
fn a_passage_by_itself_meets_itself() {
    let mut crowd = Crowd::new(2);
    for _ in 0..2 {
        crowd.begin(1);
        assert_eq!(crowd.end(1), Contention { point: 1, interval: 1 });
    }
}

#[test]
fn requests_one_after_another_count_for_the_interval_and_not_for_the_point() {
    let mut crowd = Crowd::new(256);
    crowd.begin(255);
    for p in 0..3 {
        crowd.begin(p);
        // Processes that left before it began do not count.
        assert_eq!(crowd.end(p), Contention { point: 2, interval: 2 });
    }
    // The same process does not count as another one.
    crowd.begin(0);
    crowd.end(0);
    assert_eq!(crowd.end(255), Contention { point: 2, interval: 4 });
}

#[test]
fn the_largest_number_at_once_counts_for_all_that_overlap() {
    let mut crowd = Crowd::new(4);
    crowd.begin(0);
    crowd.begin(1);
    crowd.begin(2);
    assert_eq!(crowd.end(1), Contention { point: 3, interval: 3 });
    crowd.begin(3);
    assert_eq!(crowd.end(0), Contention { point: 3, interval: 4 });
    assert_eq!(crowd.end(3), Contention { point: 3, interval: 3 });
    // It met all of the others, and at most two at once.
    assert_eq!(crowd.end(2), Contention { point: 3, interval: 4 });
}
