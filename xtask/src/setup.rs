//! The requirements of the tests beyond a Rust toolchain. This checks them, and installs them if it
//! can.

use std::process::ExitCode;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::dist::MUSL;
use crate::python;
use crate::run::{LIMIT, Program};

/// Platforms that grouplock is built for but not tested on: Windows, macOS, and one without
/// threads.
pub(crate) const TARGETS: [&str; 3] =
    ["x86_64-pc-windows-gnu", "aarch64-apple-darwin", "wasm32-unknown-unknown"];

/// The `rust-version` of the workspace.
pub(crate) const OLDEST: &str = concat!(env!("CARGO_PKG_RUST_VERSION"), ".0");

/// A requirement of a step or a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    Miri,
    /// The sources of the standard library.
    Sources,
    Chromium,
    Etcd,
    Shells,
    /// The model checker for the lab's exported models.
    Spin,
    /// The standard library for [`TARGETS`].
    Targets,
    /// The toolchain of [`OLDEST`].
    Oldest,
    /// A virtual environment with the tools for the Python package.
    Python,
    /// The target for static programs.
    Musl,
    /// For measurements only.
    Valgrind,
}

impl Need {
    pub(crate) const ALL: [Need; 11] = [
        Need::Miri,
        Need::Sources,
        Need::Chromium,
        Need::Etcd,
        Need::Shells,
        Need::Spin,
        Need::Targets,
        Need::Oldest,
        Need::Python,
        Need::Musl,
        Need::Valgrind,
    ];

    pub(crate) fn shown(self) -> &'static str {
        match self {
            Need::Miri => "miri",
            Need::Sources => "the sources of the standard library",
            Need::Chromium => "chromium and chromedriver",
            Need::Etcd => "etcd and etcdctl",
            Need::Shells => "zsh and fish",
            Need::Spin => "spin and gcc",
            Need::Targets => "the standard library for other platforms",
            Need::Oldest => "the oldest Rust that builds grouplock",
            Need::Python => "maturin and pytest in a virtual environment",
            Need::Musl => "musl, and the standard library for it",
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
            Need::Spin => Program::new("spin").arguments(&["-V"]).succeeds() && runs("gcc"),
            Need::Targets => {
                let list = Program::new("rustup").arguments(&["target", "list", "--installed"]);
                let installed = list.watched(LIMIT, |_| None).output;
                TARGETS.iter().all(|target| installed.contains(target))
            }
            Need::Oldest => {
                let list = Program::new("rustup").arguments(&["toolchain", "list"]);
                list.watched(LIMIT, |_| None).output.contains(OLDEST)
            }
            Need::Python => python::is_there(),
            Need::Musl => {
                let list = Program::new("rustup").arguments(&["target", "list", "--installed"]);
                runs("musl-gcc") && list.watched(LIMIT, |_| None).output.contains(MUSL)
            }
            Need::Valgrind => runs("valgrind"),
        }
    }

    /// Installs it if it is missing. A later call returns the result of the first one.
    pub(crate) fn meet(self) -> Result<(), String> {
        static MET: [OnceLock<Result<(), String>>; Need::ALL.len()] =
            [const { OnceLock::new() }; Need::ALL.len()];
        // Neither apt-get nor rustup can run twice at a time.
        static INSTALLER: Mutex<()> = Mutex::new(());
        let install = || {
            let _alone = INSTALLER.lock().unwrap_or_else(PoisonError::into_inner);
            if self.is_there() { Ok(()) } else { self.install() }
        };
        MET[self as usize].get_or_init(install).clone()
    }

    fn install(self) -> Result<(), String> {
        match self {
            Need::Miri => {
                component("rust-src")?;
                component("miri")?;
            }
            Need::Sources => component("rust-src")?,
            Need::Chromium => packages(&["chromium", "chromium-driver", "fonts-liberation"])?,
            Need::Etcd => {
                packages(&["etcd-server", "etcd-client"])?;
                // The package starts a service, which is not needed. Without systemd it does not.
                Program::new("systemctl").arguments(&["disable", "--now", "etcd"]).succeeds();
            }
            Need::Shells => packages(&["zsh", "fish"])?,
            Need::Spin => packages(&["spin", "gcc"])?,
            Need::Targets => {
                Program::new("rustup").arguments(&["target", "add"]).arguments(&TARGETS).run()?;
            }
            Need::Oldest => {
                let install = ["toolchain", "install", OLDEST, "--profile", "minimal"];
                Program::new("rustup").arguments(&install).run()?;
            }
            Need::Python => {
                // Debian's Python lacks the module for virtual environments.
                if !Program::new("python3").arguments(&["-c", "import ensurepip"]).succeeds() {
                    packages(&["python3", "python3-venv"])?;
                }
                python::make()?;
            }
            Need::Musl => {
                packages(&["musl-tools"])?;
                Program::new("rustup").arguments(&["target", "add", MUSL]).run()?;
            }
            Need::Valgrind => packages(&["valgrind"])?,
        }
        if self.is_there() { Ok(()) } else { Err("installed, but it does not run".to_owned()) }
    }
}

/// Adds a component to the nightly toolchain.
fn component(name: &str) -> Result<(), String> {
    // The toolchain first: a component needs one.
    if !Program::nightly(&["--version"]).succeeds() {
        let install = ["toolchain", "install", "nightly", "--profile", "minimal"];
        Program::new("rustup").arguments(&install).run()?;
    }
    let add = ["component", "add", "--toolchain", "nightly", name];
    Program::new("rustup").arguments(&add).run()
}

/// Installs Debian packages, and no others that they only recommend.
fn packages(names: &[&str]) -> Result<(), String> {
    Program::new("apt-get").arguments(&["update"]).run()?;
    let install = ["install", "--yes", "--no-install-recommends"];
    Program::new("apt-get").arguments(&install).arguments(names).run()
}

/// Installs everything, and lists what cannot be installed. In CI the tests that need it fail,
/// elsewhere they are skipped.
pub(crate) fn run() -> ExitCode {
    for need in Need::ALL {
        match need.meet() {
            Ok(()) => println!("{}: there", need.shown()),
            Err(reason) => println!("{}: not there: {reason}", need.shown()),
        }
    }
    ExitCode::SUCCESS
}
