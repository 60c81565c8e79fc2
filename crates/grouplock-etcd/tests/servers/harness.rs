//! The servers for the other tests start, answer, and end with the tests.

use crate::server;
use grouplock_testing::Scratch;
use nix::sys::signal::Signal;

#[test]
fn a_server_answers_and_can_be_killed_and_started_again() {
    if !server::is_installed() {
        return;
    }
    let scratch = Scratch::new();
    let mut server = server::Server::single(scratch.path(), &[], "http");
    server.told(&["put", "a", "1"]);
    server.kill();
    assert!(!server.etcdctl(&["--dial-timeout=200ms", "get", "a"]).status.success());
    server.start_again();
    server.until_ready().expect("it starts again");
    assert_eq!(server.told(&["get", "a"]), "a\n1\n", "it kept what it was told");
    server.signal(Signal::SIGSTOP);
    server.signal(Signal::SIGCONT);
    let path = scratch.path().to_owned();
    drop(server);
    drop(scratch);
    assert!(!path.exists());
}
