//! Running other programs.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}

/// A program to be run in the root of the repository.
pub(crate) struct Program {
    command: Command,
    shown: String,
}

impl Program {
    pub(crate) fn new(name: &str) -> Self {
        let mut command = Command::new(name);
        command.current_dir(root());
        // `cargo xtask` runs under a toolchain of its own; the programs it starts choose theirs by `+nightly`.
        command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
        Program { command, shown: name.to_owned() }
    }

    /// Cargo of the default toolchain.
    pub(crate) fn cargo(arguments: &[&str]) -> Self {
        Program::new("cargo").arguments(arguments)
    }

    /// Cargo of the nightly toolchain.
    pub(crate) fn nightly(arguments: &[&str]) -> Self {
        Program::new("cargo").arguments(&["+nightly"]).arguments(arguments)
    }

    pub(crate) fn arguments(mut self, arguments: &[&str]) -> Self {
        self.command.args(arguments);
        for argument in arguments {
            self.shown.push(' ');
            self.shown.push_str(argument);
        }
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.shown = format!("{name}={value:?} {}", self.shown);
        self.command.env(name, value);
        self
    }

    /// Runs it with its output where ours goes.
    pub(crate) fn run(mut self) -> Result<(), String> {
        println!("$ {}", self.shown);
        match self.command.stdin(Stdio::null()).status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("`{}` ended with {status}", self.shown)),
            Err(reason) => Err(format!("`{}` could not be started: {reason}", self.shown)),
        }
    }

    /// Runs it without showing anything. Whether it succeeded.
    pub(crate) fn succeeds(mut self) -> bool {
        let quiet = self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    }
}
