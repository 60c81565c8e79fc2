//! Until when a lease is trusted if the machine is suspended.

use std::time::{Duration, Instant};

use grouplock_etcd::lease::News;
use grouplock_room::remote::{self, LeaseEnd};

/// In its own function: the time slept is that of the moment of sending.
fn sent(trusted: Duration) -> (Instant, LeaseEnd) {
    let until = Instant::now() + trusted;
    (until, LeaseEnd::new(until, remote::slept()))
}

/// The only test of this program in which the machine sleeps.
#[test]
fn a_suspend_between_a_renewal_and_its_answer_counts() {
    let (four, eighty) = (Duration::from_secs(4), Duration::from_secs(80));
    let (until, end) = sent(eighty);
    let mut news = News::new(end);
    remote::pretend_to_sleep(four);
    assert_eq!(Some(news.until()), until.checked_sub(four), "before the lease was granted");
    let (until, end) = sent(eighty);
    remote::pretend_to_sleep(four);
    assert!(news.renew(end));
    assert_eq!(Some(news.until()), until.checked_sub(four), "before the renewal was answered");
    assert!(news.is_good());
    let (_, end) = sent(eighty);
    remote::pretend_to_sleep(eighty);
    assert!(!news.is_good());
    assert!(!news.renew(end), "it is too late");
}
