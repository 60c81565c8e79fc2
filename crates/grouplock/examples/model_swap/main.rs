//! A gateway in front of one device that has one model at a time. Which lock swaps models least,
//! and how long do requests wait?
//!
//! Loading a model takes as long as 50 requests. Requests for three models arrive at random. The
//! device can answer them if models are rarely swapped. The same requests go to four gateways,
//! which run at the same time.
//!
//! `cargo run --release -p grouplock --example model_swap`

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use grouplock::{GroupLock, Policy};
use tokio::sync::Mutex;
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Model {
    Chat,
    Code,
    Speech,
}

/// A sequence of requests that is the same every time.
#[derive(Clone, Copy)]
struct Load {
    requests: usize,
    /// How long the device needs for one.
    request: Duration,
    /// The mean time from one arrival to the next.
    gap: Duration,
}

/// The device. It computes with the loaded model, for any number of requests at a time.
#[derive(Default)]
struct Device {
    loaded: Mutex<Option<Model>>,
    swaps: AtomicUsize,
}

impl Device {
    /// Loads `model` unless it is loaded.
    async fn load(&self, model: Model, takes: Duration) {
        let mut loaded = self.loaded.lock().await;
        if *loaded != Some(model) {
            // Set at the end: if this request is withdrawn, the next one loads.
            *loaded = None;
            sleep(takes).await;
            *loaded = Some(model);
            self.swaps.fetch_add(1, Relaxed);
        }
    }

    /// Computes. Returns whether `model` was loaded from the beginning to the end.
    async fn compute(&self, model: Model, takes: Duration) -> bool {
        let before = *self.loaded.lock().await;
        sleep(takes).await;
        [before, *self.loaded.lock().await] == [Some(model); 2]
    }
}

/// The result of a request.
struct Answer {
    waited: Duration,
    right_model: bool,
}

/// How a request gets to the device.
trait Gateway: Send + Sync + 'static {
    fn device(&mut self) -> &Device;
    fn serve(&self, model: Model, request: Duration) -> impl Future<Output = Answer> + Send;
}

/// A mutex: one request after the other.
impl Gateway for Mutex<Device> {
    fn device(&mut self) -> &Device {
        self.get_mut()
    }

    async fn serve(&self, model: Model, request: Duration) -> Answer {
        let asked = Instant::now();
        let device = self.lock().await;
        device.load(model, request * 50).await;
        let waited = asked.elapsed();
        Answer { waited, right_model: device.compute(model, request).await }
    }
}

/// The model is the session: requests for the loaded model are answered together. The first request
/// for another model loads it, alone.
impl Gateway for GroupLock<Model, Device> {
    fn device(&mut self) -> &Device {
        self.get_mut()
    }

    async fn serve(&self, model: Model, request: Duration) -> Answer {
        let asked = Instant::now();
        let load = async |device: &mut Device| device.load(model, request * 50).await;
        let device = self.enter_with_async(model, load).await;
        let waited = asked.elapsed();
        Answer { waited, right_model: device.compute(model, request).await }
    }
}

/// The results of a load.
#[derive(Debug)]
struct Report {
    served: usize,
    wrong_model: usize,
    swaps: usize,
    time: Duration,
    /// Sorted.
    waits: Vec<Duration>,
}

/// Sends the requests of `load` to `gateway` as they arrive.
async fn run(gateway: impl Gateway, load: Load) -> Result<Report, JoinError> {
    let Load { requests, request, gap } = load;
    let mut random = fastrand::Rng::with_seed(7);
    let gateway = Arc::new(gateway);
    let (start, mut arrival) = (Instant::now(), Duration::ZERO);
    let mut tasks = JoinSet::new();
    for _ in 0..requests {
        let model = [Model::Chat, Model::Code, Model::Speech][random.usize(..3)];
        // The times between independent arrivals are distributed exponentially.
        arrival += gap.mul_f64(-(1.0 - random.f64()).ln());
        sleep(arrival.saturating_sub(start.elapsed())).await;
        let gateway = Arc::clone(&gateway);
        tasks.spawn(async move { gateway.serve(model, request).await });
    }
    let (mut waits, mut wrong_model) = (Vec::new(), 0);
    while let Some(answer) = tasks.join_next().await {
        let Answer { waited, right_model } = answer?;
        waits.push(waited);
        wrong_model += usize::from(!right_model);
    }
    let time = start.elapsed();
    waits.sort_unstable();
    let mut gateway = Arc::into_inner(gateway).expect("all requests are answered");
    let swaps = gateway.device().swaps.load(Relaxed);
    Ok(Report { served: waits.len(), wrong_model, swaps, time, waits })
}

/// A mutex per request, then sessions under three policies, all at the same time.
async fn compare(load: Load) -> Result<[(&'static str, Report); 4], JoinError> {
    let sessions = |policy| GroupLock::with_policy(policy, Device::default());
    let (mutex, barging, fifo, batch) = tokio::try_join!(
        run(Mutex::new(Device::default()), load),
        run(sessions(Policy::default()), load),
        run(sessions(Policy::Fifo), load),
        run(sessions(Policy::Batch { passes: 100 }), load),
    )?;
    Ok([("mutex", mutex), ("barging", barging), ("Fifo", fifo), ("Batch", batch)])
}

#[tokio::main]
async fn main() -> Result<(), JoinError> {
    let load =
        Load { requests: 150, request: Duration::from_millis(2), gap: Duration::from_millis(10) };
    let Load { requests, request, gap } = load;
    println!("{requests} requests for 3 models, one every {gap:?}; a request takes {request:?},");
    println!("loading a model {:?}\n", request * 50);
    let heads = ["", "swaps", "requests/s", "wait p50", "p99", "longest"];
    println!("{}", heads.map(|head| format!("{head:>12}")).concat());
    for (name, report) in compare(load).await? {
        let Report { served, wrong_model, swaps, time, waits } = report;
        assert_eq!(wrong_model, 0, "{name} let a request meet another model");
        let rate = served as f64 / time.as_secs_f64();
        let wait =
            |percent: usize| format!("{} ms", waits[(served - 1) * percent / 100].as_millis());
        println!(
            "{name:>12}{swaps:>12}{rate:>12.1}{:>12}{:>12}{:>12}",
            wait(50),
            wait(99),
            wait(100)
        );
    }
    Ok(())
}
