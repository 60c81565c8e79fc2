//! What the tests need beyond a Rust toolchain. It is looked for, and installed where that can be
//! done.

use std::process::ExitCode;

use crate::run::{LIMIT, Program};

/// What a step or a test may need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    Miri,
    /// The sources of the standard library.
    Sources,
    Chromium,
    Etcd,
    Shells,
    /// For measurements only.
    Valgrind,
}

impl Need {
    pub(crate) const ALL: [Need; 6] =
        [Need::Miri, Need::Sources, Need::Chromium, Need::Etcd, Need::Shells, Need::Valgrind];

    pub(crate) fn shown(self) -> &'static str {
        match self {
            Need::Miri => "miri",
            Need::Sources => "the sources of the standard library",
            Need::Chromium => "chromium and chromedriver",
            Need::Etcd => "etcd and etcdctl",
            Need::Shells => "zsh and fish",
            Need::Valgrind => "valgrind",
        }
    }

    fn is_there(self) -> bool {
        let runs = |name: &str| Program::new(name).arguments(&["--version"]).succeeds();
        match self {
            Need::Miri => Program::nightly(&["miri", "--version"]).succeeds(),
            Need::Sources => {
                let list = ["component", "list", "--toolchain", "nightly", "--installed"];
                let listed = Program::new("rustup").arguments(&list);
                listed.watched(LIMIT, |_| None).output.contains("rust-src")
            }
            Need::Chromium => runs("chromium") && runs("chromedriver"),
            Need::Etcd => {
                let etcdctl = Program::new("etcdctl").variable("ETCDCTL_API", "3");
                runs("etcd") && etcdctl.arguments(&["version"]).succeeds()
            }
            Need::Shells => runs("zsh") && runs("fish"),
            Need::Valgrind => runs("valgrind"),
        }
    }

    /// Makes sure that it is there.
    pub(crate) fn meet(self) -> Result<(), String> {
        if self.is_there() {
            return Ok(());
        }
        match self {
            Need::Miri => {
                Need::Sources.meet()?;
                component("miri")?;
            }
            Need::Sources => component("rust-src")?,
            Need::Chromium => packages(&["chromium", "chromium-driver"])?,
            Need::Etcd => {
                packages(&["etcd-server", "etcd-client"])?;
                // The package starts a service that nobody here asked for; where there is no
                // systemd it does not.
                Program::new("systemctl").arguments(&["disable", "--now", "etcd"]).succeeds();
            }
            Need::Shells => packages(&["zsh", "fish"])?,
            Need::Valgrind => packages(&["valgrind"])?,
        }
        if self.is_there() { Ok(()) } else { Err("installed, but it does not run".to_owned()) }
    }
}

/// Adds a component to the nightly toolchain.
fn component(name: &str) -> Result<(), String> {
    // The toolchain first: adding a component to one that is not there fails.
    if !Program::nightly(&["--version"]).succeeds() {
        let install = ["toolchain", "install", "nightly", "--profile", "minimal"];
        Program::new("rustup").arguments(&install).run()?;
    }
    let add = ["component", "add", "--toolchain", "nightly", name];
    Program::new("rustup").arguments(&add).run()
}

/// Installs packages of Debian's.
fn packages(names: &[&str]) -> Result<(), String> {
    Program::new("apt-get").arguments(&["update"]).run()?;
    Program::new("apt-get").arguments(&["install", "--yes"]).arguments(names).run()
}

/// Installs everything. What cannot be had is told; in CI the tests that need it fail, elsewhere
/// they are skipped.
pub(crate) fn run() -> ExitCode {
    for need in Need::ALL {
        match need.meet() {
            Ok(()) => println!("{}: there", need.shown()),
            Err(reason) => println!("{}: not there: {reason}", need.shown()),
        }
    }
    ExitCode::SUCCESS
}
