//! Two small clients: one sends the frames that a test gives it, one enters and leaves.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grouplock_quorum::wire::{
    About, Fingerprint, Frame, Hello, Reader, Role, Versions, Welcome, encode, opening,
};
use grouplock_quorum::{
    Clock, GroupMessage, MemberId, Process, ProcessId, ProcessMessage, ProcessState, Settings, home,
};
use grouplock_testing::overlaps::{self, Nanos};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::PATIENCE;

pub(crate) trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// A connection that sends the frames that a test gives it.
pub(crate) struct Raw {
    /// The connection itself, for its timeouts.
    socket: TcpStream,
    stream: Box<dyn Stream>,
    /// Bytes that have arrived and were not taken yet.
    bytes: Vec<u8>,
    pub(crate) clock: Clock,
}

impl Raw {
    /// Connects, and exchanges the opening.
    pub(crate) fn connect(address: &str) -> io::Result<Self> {
        let mut raw = Self::silent(address)?;
        raw.open()?;
        Ok(raw)
    }

    /// Connects, and sends nothing.
    pub(crate) fn silent(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let socket = stream.try_clone()?;
        Ok(Raw { socket, stream: Box::new(stream), bytes: Vec::new(), clock: Clock::start() })
    }

    /// The same over TLS, with a certificate from `directory` or none, for the name of member 0.
    pub(crate) fn secure(address: &str, directory: &Path, who: Option<&str>) -> io::Result<Self> {
        let mut raw = Self::silent(address)?;
        let name = ServerName::try_from("member-0.test").expect("a name");
        let config = client_config(directory, who);
        let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        raw.stream = Box::new(StreamOwned::new(connection, raw.socket.try_clone()?));
        Ok(raw)
    }

    /// Sends the opening and reads the member's opening.
    pub(crate) fn open(&mut self) -> io::Result<()> {
        self.write(&opening())?;
        let mut theirs = [0; 8];
        self.stream.read_exact(&mut theirs)?;
        assert_eq!(theirs, opening());
        Ok(())
    }

    pub(crate) fn hello(&self, cluster: Option<Fingerprint>, role: Role) -> Frame {
        Frame::Hello(Hello { cluster, role, now: self.clock.now(), versions: Versions::OURS })
    }

    /// Connects a client and waits for its Welcome.
    pub(crate) fn client(address: &str, secret: u64) -> io::Result<(Self, Welcome)> {
        let mut raw = Self::connect(address)?;
        let welcome = raw.greet(None, Role::Client { client: secret })?;
        Ok((raw, welcome))
    }

    /// Sends Hello and waits for Welcome.
    pub(crate) fn greet(
        &mut self,
        cluster: Option<Fingerprint>,
        role: Role,
    ) -> io::Result<Welcome> {
        self.send(&self.hello(cluster, role))?;
        match self.hear(PATIENCE)? {
            Some(Frame::Welcome(welcome)) => Ok(welcome),
            other => Err(io::Error::other(format!("instead of a welcome: {other:?}"))),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    pub(crate) fn send(&mut self, frame: &Frame) -> io::Result<()> {
        let mut bytes = Vec::new();
        encode(frame, &mut bytes).map_err(io::Error::other)?;
        self.write(&bytes)
    }

    /// Sends frames until nobody has read them for a second; at most 200,000.
    pub(crate) fn flood(&mut self, frame: &Frame) -> io::Result<()> {
        self.socket.set_write_timeout(Some(Duration::from_secs(1)))?;
        (0..200_000).try_for_each(|_| self.send(frame))
    }

    /// The next frame, without Ping, which is answered, and Pong. `None` if no frame arrives in
    /// time or the connection is closed.
    pub(crate) fn hear(&mut self, patience: Duration) -> io::Result<Option<Frame>> {
        let deadline = Instant::now() + patience;
        loop {
            match self.take()? {
                Some(Frame::Ping) => self.send(&Frame::Pong)?,
                Some(Frame::Pong) => {}
                Some(frame) => return Ok(Some(frame)),
                None => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(None);
                    }
                    self.socket.set_read_timeout(Some(left))?;
                    let mut chunk = [0; 4096];
                    match self.stream.read(&mut chunk) {
                        Ok(0) => return Ok(None),
                        Ok(read) => self.bytes.extend_from_slice(&chunk[..read]),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                        Err(error) => return Err(error),
                    }
                }
            }
        }
    }

    /// Takes a whole frame from the bytes.
    fn take(&mut self) -> io::Result<Option<Frame>> {
        let Some(length) = self.bytes.first_chunk::<4>() else { return Ok(None) };
        let end = 4 + u32::from_be_bytes(*length) as usize;
        if self.bytes.len() < end {
            return Ok(None);
        }
        let frame: Vec<u8> = self.bytes.drain(..end).collect();
        let mut reader = Reader::new(frame.as_slice());
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        runtime.block_on(reader.next()).map_err(io::Error::other)
    }

    /// The label of the reason why the member refuses it. `closed` if the member gives no reason.
    pub(crate) fn refusal(&mut self) -> String {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            match self.hear(PATIENCE) {
                Ok(Some(Frame::Refused { reason } | Frame::Denied { reason, .. })) => {
                    return reason.label().to_owned();
                }
                Ok(Some(Frame::Group { message: GroupMessage::Enter { .. }, .. })) => {
                    return "let in".to_owned();
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return "closed".to_owned(),
            }
        }
        "not refused".to_owned()
    }

    pub(crate) fn ask(&mut self, room: &str, session: &str, process: u64) -> io::Result<()> {
        let message = ProcessMessage::Ask {
            attempt: 1,
            session: session.to_owned(),
            stay: None,
            priority: 0,
            sent: self.clock.now(),
            delay: Duration::ZERO,
            pid: std::process::id(),
        };
        self.process(room, process, message)
    }

    pub(crate) fn leave(&mut self, room: &str, process: u64) -> io::Result<()> {
        self.process(room, process, ProcessMessage::Leave { attempt: 1, entered: true })
    }

    pub(crate) fn process(
        &mut self,
        room: &str,
        process: u64,
        message: ProcessMessage,
    ) -> io::Result<()> {
        let (room, process, about) = (room.to_owned(), ProcessId(process), Some(self.about()));
        self.send(&Frame::Process { room, process, message, about })
    }

    fn about(&self) -> About {
        About {
            host: "localhost".to_owned(),
            user: "tester".to_owned(),
            pid: std::process::id(),
            command: "a test".to_owned(),
            since: self.clock.now(),
            priority: 0,
            expected: None,
        }
    }

    /// Waits until the process is admitted. Returns the epoch.
    pub(crate) fn entered(&mut self, process: u64, patience: Duration) -> io::Result<Option<u64>> {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.hear(left)? {
                Some(Frame::Group {
                    process: ProcessId(found),
                    message: GroupMessage::Enter { epoch, .. },
                    ..
                }) if found == process => return Ok(Some(epoch)),
                Some(Frame::Refused { reason } | Frame::Denied { reason, .. }) => {
                    return Err(io::Error::other(reason));
                }
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }
}

fn client_config(directory: &Path, who: Option<&str>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_file(directory.join("ca.pem")).expect("an authority");
    roots.add(authority).expect("an authority");
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("there are versions")
        .with_root_certificates(roots);
    let Some(who) = who else { return Arc::new(builder.with_no_client_auth()) };
    let cert = CertificateDer::from_pem_file(directory.join(format!("{who}.pem")));
    let key = PrivateKeyDer::from_pem_file(directory.join(format!("{who}.key")));
    let (cert, key) = (cert.expect("a certificate"), key.expect("a key"));
    Arc::new(builder.with_client_auth_cert(vec![cert], key).expect("they belong together"))
}

/// A session name whose home is that member.
pub(crate) fn session_at(home_at: u16, members: u16) -> String {
    let mut names = (0..).map(|number| format!("session-{number}"));
    names.find(|name| home(name, members) == MemberId(home_at)).expect("there are enough names")
}

/// A client that enters and leaves one session after the other. It connects again when a member
/// comes back, and renews its lease.
pub(crate) struct Walker {
    addresses: Vec<String>,
    settings: Settings,
    room: String,
    secret: u64,
    clock: Clock,
    process: Process,
    at: Option<(MemberId, Raw)>,
}

impl Walker {
    pub(crate) fn new(addresses: &[String], settings: Settings, room: &str) -> Self {
        let process = Process::new(ProcessId(fastrand::u64(..)), addresses.len() as u16, settings);
        Walker {
            addresses: addresses.to_vec(),
            settings,
            room: room.to_owned(),
            secret: fastrand::u64(..),
            clock: Clock::start(),
            process,
            at: None,
        }
    }

    /// Waits until it is admitted. Returns the epoch, or `None` if it has withdrawn.
    pub(crate) fn enter(&mut self, session: &str, patience: Duration) -> Option<u64> {
        let id = ProcessId(fastrand::u64(..));
        self.process = Process::new(id, self.addresses.len() as u16, self.settings);
        self.process.ask(self.clock.now(), session, None, 0).expect("it is new");
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            self.step();
            if let ProcessState::Inside { epoch, .. } = self.process.state() {
                return Some(epoch);
            }
        }
        self.leave();
        None
    }

    /// Stays inside for a time, or until its lease ends. Returns the last moment at which it was
    /// certainly inside. `None` if it was not inside at the beginning.
    pub(crate) fn stay(&mut self, time: Duration) -> Option<Nanos> {
        let until = Instant::now() + time;
        let mut last = None;
        loop {
            // The process can be stopped at any time. So the client checks that it is inside after
            // it has read the clock.
            let now = overlaps::now();
            if !self.is_inside() {
                return last;
            }
            last = Some(now);
            if Instant::now() >= until {
                return last;
            }
            self.step();
        }
    }

    pub(crate) fn is_inside(&mut self) -> bool {
        self.process.handle_timeout(self.clock.now());
        matches!(self.process.state(), ProcessState::Inside { .. })
    }

    pub(crate) fn leave(&mut self) {
        self.process.leave();
        self.flush();
    }

    /// Sends all pending messages and waits a moment for answers.
    fn step(&mut self) {
        self.process.handle_timeout(self.clock.now());
        self.flush();
        let Some((home, raw)) = &mut self.at else {
            std::thread::sleep(Duration::from_millis(20));
            return;
        };
        let home = *home;
        match raw.hear(Duration::from_millis(5)) {
            Ok(Some(Frame::Group { process, message, .. })) if process == self.process.id() => {
                self.process.handle(self.clock.now(), home, message);
            }
            Ok(Some(Frame::Refused { .. })) | Err(_) => self.at = None,
            Ok(_) => {}
        }
        self.flush();
    }

    /// Messages that cannot be sent are lost. The protocol repeats them.
    fn flush(&mut self) {
        while let Some((home, message)) = self.process.poll_transmit() {
            if self.at.as_ref().is_none_or(|(at, _)| *at != home) {
                let found = Raw::client(&self.addresses[home.index()], self.secret);
                self.at = found.ok().map(|(raw, _)| (home, raw));
            }
            let process = self.process.id().0;
            if let Some((_, raw)) = &mut self.at
                && raw.process(&self.room, process, message).is_err()
            {
                self.at = None;
            }
        }
    }
}
