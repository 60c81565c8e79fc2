//! A client in a process of its own. It enters and leaves, and records when it was inside, by a
//! clock that all processes share.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use grouplock_room::{Guard, Places, Room, RoomOptions, Standing};
use grouplock_testing::overlaps::{Ledger, Nanos, Page, now};
use nix::fcntl::{Flock, FlockArg};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const PLAY: &str = "GROUPLOCK_TEST_CLIENT";
const SESSIONS: u8 = 6;

/// The body of the test `walker`. Does nothing if this process was not started as a walker.
pub(crate) fn play() {
    let Ok(play) = std::env::var(PLAY) else { return };
    set_pdeathsig(Signal::SIGKILL).expect("the kernel can end us with our parent");
    let mut words = play.split(' ');
    let mut word = || words.next().expect("a name, a directory and a place");
    let (name, directory, place) = (word(), Path::new(word()), word());
    let mut page = Ledger::open(directory.join("ledger")).page(name);
    let places = Places::new().with(grouplock_quorum::opener());
    let room = loop {
        match places.open(place, "room", &RoomOptions::new()) {
            Ok(room) => break room,
            Err(_) if directory.join("stop").exists() => return,
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    while !directory.join("stop").exists() {
        visit(&room, directory, &mut page);
    }
}

fn visit(room: &Room, directory: &Path, page: &mut Page) {
    let session = format!("session-{}", fastrand::u8(..SESSIONS));
    let Ok(guard) = room.request(&session).timeout(Duration::from_secs(2)).enter() else {
        std::thread::sleep(Duration::from_millis(5));
        return;
    };
    // A process that is stopped between the grant and this line may have lost its holding. So the
    // standing is checked after the clock is read.
    let entered = now();
    if guard.standing() != Standing::Held {
        return;
    }
    page.enter(entered, &session, guard.epoch());
    let last = stay(&guard, entered);
    if guard.standing() == Standing::Held {
        write_to_resource(directory, guard.epoch());
    }
    page.leave(last);
    // A loss was noticed above.
    _ = guard.leave();
}

/// The last time at which the process was certainly inside.
fn stay(guard: &Guard<'_>, entered: Nanos) -> Nanos {
    let end = Instant::now() + Duration::from_micros(fastrand::u64(..6000));
    let mut last = entered;
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
        let time = now();
        if guard.standing() != Standing::Held {
            break;
        }
        last = time;
    }
    last
}

/// A resource that refuses epochs smaller than the largest so far. A file counts the refusals.
fn write_to_resource(directory: &Path, epoch: u64) {
    let open = |name: &str| {
        let path = directory.join(name);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        options.open(path).expect("the resource can be opened")
    };
    let Ok(mut file) = Flock::lock(open("resource"), FlockArg::LockExclusive) else { return };
    let mut text = String::new();
    file.read_to_string(&mut text).expect("the resource can be read");
    let largest: u64 = text.trim().parse().unwrap_or(0);
    if epoch < largest {
        let mut refused = open("refused");
        refused.seek(std::io::SeekFrom::End(0)).expect("it is a file");
        refused.write_all(b"x").expect("it can be written");
    } else {
        file.rewind().expect("it is a file");
        file.write_all(format!("{epoch:020}").as_bytes()).expect("it can be written");
    }
}

/// A walker's process.
pub(crate) struct Walker {
    pub(crate) name: String,
    child: Child,
}

impl Walker {
    pub(crate) fn start(name: String, directory: &Path, place: &str) -> Self {
        let child = Command::new(std::env::current_exe().expect("this program has a path"))
            .args(["--exact", "long::walker", "--nocapture", "--test-threads=1"])
            .env(PLAY, format!("{name} {} {place}", directory.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        Walker { name, child: child.expect("this program can be started") }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        kill(pid, signal).expect("it is our child");
    }

    pub(crate) fn kill(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }

    /// Whether it has ended. It must have succeeded.
    pub(crate) fn has_ended(&mut self) -> bool {
        let status = self.child.try_wait().expect("it is our child");
        assert!(status.is_none_or(|it| it.success()), "{} ended with {status:?}", self.name);
        status.is_some()
    }
}

impl Drop for Walker {
    fn drop(&mut self) {
        self.kill();
    }
}
