//! What a member counts.

use std::time::Duration;

use grouplock_quorum::node::metrics::{Direction, Gauges, Metrics};
use grouplock_quorum::wire::Reason;

#[test]
fn the_text_has_each_family_once_and_every_value() {
    let metrics = Metrics::default();
    metrics.message("request", Direction::Sent, false);
    metrics.message("request", Direction::Sent, false);
    metrics.refuse("somebody", &Reason::Ending);
    metrics.flushed(Duration::from_micros(500));
    metrics.flushed(Duration::from_secs(2));
    let text = metrics.text(&Gauges { rooms: 3, ..Gauges::default() });
    let sent = "kind=\"request\",direction=\"sent\",repeated=\"false\"";
    for line in [
        &format!("grouplock_messages_total{{{sent}}} 2"),
        "grouplock_refused_total{reason=\"ending\"} 1",
        "grouplock_flush_seconds_bucket{le=\"0.0003\"} 0",
        "grouplock_flush_seconds_bucket{le=\"0.001\"} 1",
        "grouplock_flush_seconds_bucket{le=\"+Inf\"} 2",
        "grouplock_flush_seconds_sum 2.000500",
        "grouplock_flush_seconds_count 2",
        "grouplock_rooms 3",
    ] {
        assert_eq!(text.lines().filter(|l| *l == line).count(), 1, "{line}\n{text}");
    }
    let mut families: Vec<_> = text.lines().filter(|l| l.starts_with("# TYPE")).collect();
    let all = families.len();
    families.dedup();
    assert_eq!(families.len(), all);
}
