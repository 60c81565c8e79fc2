//! An open room on a cluster.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use grouplock_room::backend::Submitted;
use grouplock_room::myself::{self, cut};
use grouplock_room::remote::{self, PendingRequest};
use grouplock_room::{
    Backend, Capabilities, Patience, Policy, Request, RoomError, RoomName, RoomOptions, Snapshot,
};

use super::connect::Client;
use super::driver::{NewRequest, Order};
use super::view;
use crate::clock::time_of_day;
use crate::wire::{About, LONGEST_COMMAND, LONGEST_HOST, LONGEST_SESSION, LONGEST_USER};

/// How often to ask again if the answers are of different moments.
const LOOKS: u32 = 20;
/// The pause between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

pub(super) struct GbpRoom {
    client: Arc<Client>,
    name: RoomName,
    /// The room must exist. The first look checks it.
    look_only: bool,
    command: Option<String>,
    /// Made at the first request.
    myself: OnceLock<Myself>,
}

impl GbpRoom {
    pub(super) fn new(client: Arc<Client>, name: RoomName, options: &RoomOptions) -> Self {
        let (look_only, command) = (options.look_only, options.command.clone());
        GbpRoom { client, name, look_only, command, myself: OnceLock::new() }
    }

    /// `decide`: a thread is blocked until it is known whether the request must wait.
    fn ask(
        &self,
        request: &Request<'_>,
        patience: Patience,
        decide: bool,
    ) -> Result<PendingRequest, RoomError> {
        let length = request.session.len();
        if length > LONGEST_SESSION {
            return Err(RoomError::SessionTooLong { length, max: LONGEST_SESSION });
        }
        if !self.client.is_ours() {
            return Err(RoomError::Forked);
        }
        let process = self.client.new_process();
        let client = Arc::clone(&self.client);
        let end = move || client.order(Order::End(process));
        let (ticket, desk) = remote::ask(view::holder(process), patience, end);
        let myself = self.myself.get_or_init(|| Myself::new(self.command.as_deref()));
        let about = myself.about(request.priority.0, request.expected);
        let (room, session) = (self.name.to_string(), request.session.to_owned());
        let wanted = NewRequest { process, room, session, about, desk, decide };
        self.client.order(Order::Enter(Box::new(wanted)));
        Ok(ticket)
    }
}

impl Backend for GbpRoom {
    fn capabilities(&self) -> Capabilities {
        let settings = &self.client.cluster().settings;
        let mut capabilities = Capabilities::least(LONGEST_SESSION);
        capabilities.priority = view::policy(settings) != Policy::Fifo;
        capabilities.leases = settings.lease.is_some();
        capabilities.reports_deaths = settings.lease.is_some();
        capabilities
    }

    fn kind(&self) -> &'static str {
        "gbp"
    }

    fn submit(&self, request: &Request<'_>) -> Result<Submitted, RoomError> {
        if !request.patience.exhausted() {
            return self.ask(request, request.patience, true)?.submitted();
        }
        let started = Instant::now();
        let submitted = self.ask(request, Patience::None, true)?.submitted();
        submitted.map_err(|error| match error {
            RoomError::Occupied { .. } if request.patience != Patience::None => {
                RoomError::TimedOut { waited: started.elapsed() }
            }
            error => error,
        })
    }

    fn begin(&self, request: &Request<'_>) -> Result<Submitted, RoomError> {
        if request.patience.exhausted() {
            return self.submit(request);
        }
        Ok(self.ask(request, request.patience, false)?.begun())
    }

    fn snapshot(&self) -> Result<Snapshot, RoomError> {
        let (name, cluster) = (self.name.as_str(), self.client.cluster());
        let mut looks = 1;
        loop {
            let parts = if self.look_only {
                self.client.look_at(&self.name)?
            } else {
                self.client.look(Some(&self.name))?
            };
            let agree = parts.agree();
            if agree || looks == LOOKS {
                return Ok(view::snapshot(name, cluster, &parts, agree));
            }
            looks += 1;
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }
}

/// What this process shows of itself to others.
#[derive(Clone, Debug)]
struct Myself {
    host: String,
    user: String,
    command: String,
}

impl Myself {
    /// If `command` is given, it replaces our command line.
    fn new(command: Option<&str>) -> Self {
        let command = command.map_or_else(myself::command_line, str::to_owned);
        Myself {
            host: cut(myself::host(), LONGEST_HOST),
            user: cut(myself::user(), LONGEST_USER),
            command: cut(command, LONGEST_COMMAND),
        }
    }

    fn about(&self, priority: i32, expected: Option<Duration>) -> About {
        About {
            host: self.host.clone(),
            user: self.user.clone(),
            pid: std::process::id(),
            command: self.command.clone(),
            since: time_of_day(),
            priority,
            expected,
        }
    }
}
