//! The promises of the gateway.

use std::time::Duration;

use tokio::time::timeout;

use super::{Load, compare};

#[tokio::test]
async fn every_request_gets_its_model_and_batches_swap_less() {
    let load =
        Load { requests: 60, request: Duration::from_millis(1), gap: Duration::from_millis(2) };
    let reports = timeout(Duration::from_secs(60), compare(load));
    let reports = reports.await.expect("all are served in time").expect("no request panics");
    for (name, report) in &reports {
        assert_eq!((report.served, report.wrong_model), (load.requests, 0), "{name}: {report:?}");
        assert!(report.swaps >= 3, "{name} never loaded a model: {report:?}");
    }
    let [(_, mutex), _, _, (_, batch)] = reports;
    assert!(batch.swaps < mutex.swaps, "{} swaps, a mutex makes {}", batch.swaps, mutex.swaps);
}
