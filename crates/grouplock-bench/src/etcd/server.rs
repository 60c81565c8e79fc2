//! Starts an etcd.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use grouplock_testing::{Scratch, free_port};

use crate::report::{Cannot, Outcome};

/// A server with one member, on the loopback of this machine. Dropping it ends it and removes its
/// data.
#[derive(Debug)]
pub(super) struct Server {
    process: Child,
    _data: Scratch,
    /// `host:port` for clients.
    pub(super) endpoint: String,
    /// The file system of its data.
    pub(super) file_system: String,
}

impl Server {
    /// Starts one with its data in a new directory below `base`, and waits until it serves.
    pub(super) fn start(base: &Path) -> Outcome<Self> {
        let data = Scratch::below(base).cannot("make a directory for etcd's data")?;
        let client = format!("127.0.0.1:{}", free_port());
        let peer = format!("http://127.0.0.1:{}", free_port());
        // It dies with this program.
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "etcd", "--name", "bench", "--data-dir"])
            .arg(data.path())
            .args(["--listen-client-urls", &format!("http://{client}")])
            .args(["--advertise-client-urls", &format!("http://{client}")])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("bench={peer}"), "--logger", "zap"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .cannot("start etcd")?;
        let file_system = file_system(data.path());
        let mut server = Server { process, _data: data, endpoint: client, file_system };
        server.await_health()?;
        Ok(server)
    }

    fn await_health(&mut self) -> Outcome<()> {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let health = self.etcdctl().args(["endpoint", "health"]).output();
            if health.is_ok_and(|output| output.status.success()) {
                return Ok(());
            }
            if let Ok(Some(status)) = self.process.try_wait() {
                return Err(format!("etcd ended with {status}").into());
            }
            if Instant::now() > deadline {
                return Err("etcd does not serve within 30 s".into());
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// etcd's own program, for this server.
    pub(super) fn etcdctl(&self) -> Command {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").env("ETCDCTL_ENDPOINTS", &self.endpoint);
        command.stdin(Stdio::null());
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be dead already.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// The version of the installed etcd.
pub(super) fn version() -> Outcome<String> {
    let output = Command::new("etcd").arg("--version").output();
    let output = output.cannot("run etcd (package etcd-server)")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let number = text.lines().next().and_then(|line| line.strip_prefix("etcd Version: "));
    Ok(number.ok_or_else(|| format!("etcd --version printed `{text}`"))?.to_owned())
}

/// The file system of a directory, from the system's list of mounts.
fn file_system(directory: &Path) -> String {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?)).filter(|(point, _)| directory.starts_with(point))
    });
    // Of two mounts at one point the later one is in force.
    let deepest = mounts.max_by_key(|(point, _)| point.len());
    deepest.map_or_else(|| "unknown".to_owned(), |(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_of_a_directory_is_found() {
        assert_eq!(file_system(Path::new("/proc/self")), "proc");
    }
}
