//! An etcd of our own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use super::EtcdError;

/// A server with one member, on this machine's loopback. It ends with the value, and its data goes.
#[derive(Debug)]
pub struct Server {
    process: Child,
    data: PathBuf,
    /// `host:port` for clients.
    pub endpoint: String,
    /// What kind of file system its data is on.
    pub file_system: String,
}

impl Server {
    /// Starts one with its data in a new directory in `base`, and waits until it serves.
    ///
    /// # Errors
    /// If etcd is not installed or does not start.
    pub fn start(base: &Path) -> Result<Self, EtcdError> {
        let data = base.join(format!("grouplock-bench-etcd-{}", std::process::id()));
        fs::create_dir_all(&data).map_err(EtcdError::system("make a directory for etcd's data"))?;
        let client = free_port()?;
        let peer = free_port()?;
        let (client, peer) = (format!("127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        // It dies with us, whatever happens.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "etcd", "--name", "bench", "--data-dir"])
            .arg(&data)
            .args(["--listen-client-urls", &format!("http://{client}")])
            .args(["--advertise-client-urls", &format!("http://{client}")])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("bench={peer}"), "--logger", "zap"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = command.spawn().map_err(EtcdError::system("start etcd"))?;
        let file_system = file_system(&data);
        let mut server = Server { process, data, endpoint: client, file_system };
        server.await_health()?;
        Ok(server)
    }

    fn await_health(&mut self) -> Result<(), EtcdError> {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            if self
                .etcdctl()
                .args(["endpoint", "health"])
                .output()
                .is_ok_and(|o| o.status.success())
            {
                return Ok(());
            }
            if let Ok(Some(status)) = self.process.try_wait() {
                return Err(EtcdError::program("etcd", format!("it ended with {status}")));
            }
            if Instant::now() > deadline {
                return Err(EtcdError::program("etcd", "it does not serve within 30 s"));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// etcd's own program, told where the server is.
    pub fn etcdctl(&self) -> Command {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").env("ETCDCTL_ENDPOINTS", &self.endpoint);
        command.stdin(Stdio::null());
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be dead already; and what was measured is worth more than a directory that stays.
        _ = self.process.kill();
        _ = self.process.wait();
        _ = fs::remove_dir_all(&self.data);
    }
}

/// What etcd calls itself.
///
/// # Errors
/// If it is not installed.
pub fn version() -> Result<String, EtcdError> {
    let output = Command::new("etcd").arg("--version").output();
    let output = output.map_err(EtcdError::system("run etcd (package etcd-server)"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let number = text.lines().next().and_then(|line| line.strip_prefix("etcd Version: "));
    number.map(str::to_owned).ok_or_else(|| EtcdError::program("etcd --version", text))
}

fn free_port() -> Result<u16, EtcdError> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.map(|address| address.port()).map_err(EtcdError::system("find a free port"))
}

/// The file system that a directory is on, as the system's list of mounts calls it.
fn file_system(directory: &Path) -> String {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?)).filter(|(point, _)| directory.starts_with(point))
    });
    // Of two mounts at one point the later one is seen.
    let deepest = mounts.max_by_key(|(point, _)| point.len());
    deepest.map_or_else(|| "unknown".to_owned(), |(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_of_a_directory_is_told() {
        assert_eq!(file_system(Path::new("/proc/self")), "proc");
    }
}
