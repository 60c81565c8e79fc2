//! An executor in forty lines, which knows nothing of locks: every executor works.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;

use crate::common::LATE;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Task {
    work: Mutex<Option<Work>>,
    ready: Sender<Arc<Task>>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let ready = self.ready.clone();
        // If the channel is closed, all tasks have ended.
        _ = ready.send(self);
    }
}

/// Runs all `works` to their ends, on `threads` threads.
pub(crate) fn run(threads: usize, works: impl IntoIterator<Item = Work>) {
    let (ready, queue) = mpsc::channel::<Arc<Task>>();
    for work in works {
        let task = Arc::new(Task { work: Mutex::new(Some(work)), ready: ready.clone() });
        ready.send(task).expect("the queue is there");
    }
    // The queue ends when no task is left that could be woken.
    drop(ready);
    let queue = Mutex::new(queue);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    // A panic here ends the other threads too: they share the mutex.
                    let task = match queue.lock().expect("a task is ready").recv_timeout(LATE) {
                        Ok(task) => task,
                        Err(RecvTimeoutError::Disconnected) => return,
                        Err(RecvTimeoutError::Timeout) => panic!("for {LATE:?} no task was woken"),
                    };
                    let waker = Waker::from(Arc::clone(&task));
                    let mut work = task.work.lock().expect("tasks do not panic");
                    if let Some(future) = work.as_mut()
                        && future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
                    {
                        *work = None;
                    }
                }
            });
        }
    });
}
