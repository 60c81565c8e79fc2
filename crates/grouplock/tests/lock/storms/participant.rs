//! The participants of a storm, as threads and as tasks, and their journals.

use std::future::Future;
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use grouplock::cores::Core;
use grouplock::{ExclusiveGuard, GroupLock, SessionGuard};
use grouplock_algorithms::monitor::{Event, Journal, now};

/// The data: how often each session was entered. Exclusive holders use it without atomics.
pub(crate) type Data = [AtomicU64; SESSIONS as usize];

pub(crate) const SESSIONS: u32 = 3;

pub(crate) fn data() -> Data {
    std::array::from_fn(|_| AtomicU64::new(0))
}

/// One participant, with a journal.
pub(crate) struct Participant {
    pub(crate) journal: Journal,
    random: fastrand::Rng,
    /// Whether requests may be withdrawn.
    gives_up: bool,
}

/// An exclusive request is a session of its own.
fn alone() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Lets other tasks run.
struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Records the end of the doorway when the request is in the queue: after the first poll.
struct Noting<'a, F> {
    future: F,
    participant: &'a mut Participant,
    polled: bool,
}

impl<F: Future + Unpin> Future for Noting<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let outcome = Pin::new(&mut self.future).poll(cx);
        if !std::mem::replace(&mut self.polled, true) {
            self.participant.journal.note(Event::DoorwayEnd);
        }
        outcome
    }
}

impl Participant {
    pub(crate) fn new(seed: u64, gives_up: bool) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Participant { journal: Journal::default(), random, gives_up }
    }

    /// Waits for a random time: often none, rarely a long one.
    fn linger(&mut self) {
        match self.random.u32(0..256) {
            0..=150 => {}
            151..=235 => (0..self.random.u32(0..300)).for_each(|_| spin_loop()),
            236..=253 => thread::yield_now(),
            _ => thread::sleep(Duration::from_micros(self.random.u64(1..300))),
        }
    }

    /// The same for a task. It does not block its executor.
    async fn linger_async(&mut self) {
        match self.random.u32(0..256) {
            0..=150 => {}
            151..=225 => (0..self.random.u32(0..300)).for_each(|_| spin_loop()),
            _ => {
                for _ in 0..self.random.u32(1..10) {
                    Yield(false).await;
                }
            }
        }
    }

    /// Inside, as a thread. Leaves by dropping `guard`, and sometimes by a panic.
    fn inside<G>(&mut self, guard: G) {
        self.linger();
        self.leave(guard);
    }

    fn leave<G>(&mut self, guard: G) {
        self.journal.note(Event::Leave);
        if self.random.u8(..) < 16 {
            let cut_short = catch_unwind(AssertUnwindSafe(move || {
                let _guard = guard;
                // Without the panic hook, which would print a message.
                resume_unwind(Box::new("as planned"));
            }));
            assert!(cut_short.is_err());
        } else {
            drop(guard);
        }
        self.journal.note(Event::Done);
    }

    fn request(&mut self) -> u32 {
        let session = self.random.u32(..SESSIONS);
        self.journal.note(Event::Request(u64::from(session) + 1));
        session
    }

    fn entered(&mut self) {
        self.journal.note_entry(now());
    }

    /// Calls that every core has.
    pub(crate) fn block<C: Core<Session = u32>>(&mut self, lock: &GroupLock<u32, Data, C>) {
        self.linger();
        if self.random.u8(..) < 40 {
            self.journal.note(Event::Request(alone()));
            let mut guard = lock.exclusive();
            self.entered();
            *guard[0].get_mut() += 1;
            self.inside(guard);
        } else {
            let session = self.request();
            let guard = lock.enter(session);
            self.entered();
            assert_eq!(*SessionGuard::session(&guard), session);
            guard[session as usize].fetch_add(1, Ordering::Relaxed);
            self.inside(guard);
        }
    }

    /// One passage, or an attempt at one, as a thread.
    pub(crate) fn pass<C: Core<Session = u32>>(&mut self, lock: &GroupLock<u32, Data, C>) {
        // Downgrading lets a session enter before waiting requests. So it is not used where the
        // order is checked.
        let deed = self.random.u8(..if self.gives_up { 8 } else { 3 });
        match deed {
            0..=1 => self.block(lock),
            2 => {
                let session = self.request();
                let mut guard = lock.enter(session);
                self.entered();
                self.linger();
                self.journal.note(Event::Leave);
                self.journal.note(Event::Done);
                // Another session: a switch to the session inside does nothing.
                let session = (session + self.random.u32(1..SESSIONS)) % SESSIONS;
                self.journal.note(Event::Request(u64::from(session) + 1));
                SessionGuard::switch(&mut guard, session);
                self.entered();
                assert_eq!(*SessionGuard::session(&guard), session);
                self.inside(guard);
            }
            3 => {
                self.journal.note(Event::Request(alone()));
                let guard = lock.exclusive();
                self.entered();
                self.linger();
                self.journal.note(Event::Leave);
                self.journal.note(Event::Done);
                let session = self.request();
                let guard = ExclusiveGuard::downgrade(guard, session);
                self.entered();
                self.inside(guard);
            }
            4 => {
                let session = self.request();
                let guard = lock.try_enter(session);
                self.inside_or_not(guard);
            }
            5 => {
                self.journal.note(Event::Request(alone()));
                let guard = lock.try_exclusive_for(Duration::from_micros(self.random.u64(..100)));
                self.inside_or_not(guard);
            }
            _ => {
                let session = self.request();
                let time = Duration::from_micros(self.random.u64(..100));
                let guard = lock.try_enter_for(session, time);
                self.inside_or_not(guard);
            }
        }
    }

    fn inside_or_not<G>(&mut self, guard: Option<G>) {
        match guard {
            Some(guard) => {
                self.entered();
                self.inside(guard);
            }
            None => self.journal.note(Event::Done),
        }
    }

    /// One passage, or an attempt at one, as a task.
    pub(crate) async fn pass_async<C: Core<Session = u32>>(
        &mut self,
        lock: &GroupLock<u32, Data, C>,
    ) {
        self.linger_async().await;
        match self.random.u8(..if self.gives_up { 8 } else { 5 }) {
            0 => {
                self.journal.note(Event::Request(alone()));
                let future = lock.exclusive_async();
                let mut guard = Noting { future, participant: self, polled: false }.await;
                self.journal.note(Event::Enter);
                *guard[1].get_mut() += 1;
                self.linger_async().await;
                self.leave(guard);
            }
            1..=4 => {
                let session = self.request();
                let future = lock.enter_async(session);
                let guard = Noting { future, participant: self, polled: false }.await;
                self.journal.note(Event::Enter);
                guard[session as usize].fetch_add(1, Ordering::Relaxed);
                self.linger_async().await;
                self.leave(guard);
            }
            _ => {
                // Withdraws after a few polls, admitted or not.
                let session = self.request();
                let mut future = lock.enter_async(session);
                let mut polls = self.random.u8(..4);
                let outcome = std::future::poll_fn(|cx| match Pin::new(&mut future).poll(cx) {
                    Poll::Ready(guard) => Poll::Ready(Some(guard)),
                    Poll::Pending if polls == 0 => Poll::Ready(None),
                    Poll::Pending => {
                        polls -= 1;
                        cx.waker().wake_by_ref();
                        Poll::Pending
                    }
                })
                .await;
                if let Some(guard) = outcome {
                    self.entered();
                    self.linger_async().await;
                    self.leave(guard);
                } else {
                    drop(future);
                    self.journal.note(Event::Done);
                }
            }
        }
    }
}
