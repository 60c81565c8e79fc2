//! Ports for the servers that tests start.
#![allow(clippy::incompatible_msrv, reason = "tests run with the current toolchain")]

use std::fs::{self, File};
use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};

/// A port of 127.0.0.1 that this process keeps until it ends, also while the server that uses it is
/// down. Test programs that run at the same time get different ports.
///
/// # Panics
/// If there is none.
pub fn free_port() -> u16 {
    /// The locks. A lock lasts as long as its file is open.
    static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let folder = std::env::temp_dir().join("grouplock-ports");
    fs::create_dir_all(&folder).expect("the folder for temporary files is writable");
    // Below the ports that the system gives to clients.
    for port in 20_000..32_000 {
        let file = File::options().create(true).append(true).open(folder.join(port.to_string()));
        // Another user's file cannot be opened.
        if let Ok(file) = file
            && file.try_lock().is_ok()
            && TcpListener::bind(("127.0.0.1", port)).is_ok()
        {
            HELD.lock().unwrap_or_else(PoisonError::into_inner).push(file);
            return port;
        }
    }
    panic!("all ports are taken")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::process::Command;

    use super::free_port;

    /// Not a test: prints a port, in a separate process.
    #[test]
    fn a_port_when_told() {
        if std::env::var_os("GROUPLOCK_TESTING_PORT").is_some() {
            println!("port {}", free_port());
        }
    }

    #[test]
    fn no_port_is_given_twice() {
        let ours: BTreeSet<_> = (0..20).map(|_| free_port()).collect();
        assert_eq!(ours.len(), 20);
        let mut other = Command::new(std::env::current_exe().expect("this program has a path"));
        other.args(["a_port_when_told", "--nocapture"]).env("GROUPLOCK_TESTING_PORT", "1");
        let said = other.output().expect("this program can be started").stdout;
        let said = String::from_utf8_lossy(&said).into_owned();
        let (_, port) = said.split_once("port ").expect("it says one");
        let port = port.lines().next().and_then(|port| port.parse().ok()).expect("a number");
        assert!(!ours.contains(&port), "{port} is ours");
    }
}
