//! Tasks share a lock with sessions. Requests for model A run together, then requests for model B.
//! A request that takes too long is withdrawn.
//!
//! `cargo run --release -p grouplock --example tasks`

use std::sync::Arc;
use std::time::{Duration, Instant};

use grouplock::{GroupLock, SessionGuard};
use tokio::time::{sleep, timeout};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Model {
    A,
    B,
}

#[tokio::main]
async fn main() -> Result<(), tokio::task::JoinError> {
    let gpu = Arc::new(GroupLock::new(()));
    let start = Instant::now();
    let mut tasks = Vec::new();
    for number in 0..8 {
        let gpu = Arc::clone(&gpu);
        tasks.push(tokio::spawn(async move {
            let model = if number % 2 == 0 { Model::A } else { Model::B };
            let inside = gpu.enter_async(model).await;
            let waited = start.elapsed().as_millis();
            // The task may hold the guard across an await: no thread is blocked.
            sleep(Duration::from_millis(20)).await;
            drop(inside);
            println!("request {number} had {model:?}, after {waited} ms");
        }));
    }
    for task in tasks {
        task.await?;
    }

    // Dropping a future, by a timeout for example, withdraws its request.
    let inside = gpu.enter_async(Model::A).await;
    let late = timeout(Duration::from_millis(10), gpu.enter_async(Model::B)).await;
    println!("model B in time: {}; waiting now: {:?}", late.is_ok(), gpu.snapshot().waiting);
    drop(inside);

    // Threads use the same lock at the same time.
    let same = Arc::clone(&gpu);
    let thread = tokio::task::spawn_blocking(move || *SessionGuard::session(&same.enter(Model::B)));
    println!("a thread had {:?}", thread.await?);
    Ok(())
}
