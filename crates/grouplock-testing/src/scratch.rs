//! Temporary directories.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, io};

/// A new directory, which is removed when this is dropped. It is in memory if possible: rooms
/// belong there.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Removes the directory when the pipe to it breaks.
    janitor: Option<Child>,
}

impl Scratch {
    /// Makes it.
    ///
    /// # Panics
    /// If it cannot be made.
    #[expect(clippy::new_without_default, reason = "it makes something")]
    pub fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        Self::below(&base).expect("a directory for the test")
    }

    /// Makes it in the directory `base`.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn below(base: &Path) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            // Relaxed: it only matters that each number is used once.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = base.join(format!("grouplock-test-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                // An earlier process with this number was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| Scratch { path, janitor: None }),
            }
        }
    }

    /// Makes one for a static, which is never dropped. It is removed soon after this program ends,
    /// however that happens.
    ///
    /// # Panics
    /// If it cannot be made, or no shell be started.
    pub fn until_the_end() -> Self {
        let mut scratch = Self::new();
        // A server that dies for the same reason needs a moment.
        let janitor = Command::new("sh")
            .args(["-c", r#"cat >/dev/null; sleep 0.3; rm -rf "$1""#, "janitor"])
            .arg(&scratch.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        scratch.janitor = Some(janitor.expect("a shell can be started"));
        scratch
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same as text.
    ///
    /// # Panics
    /// If the path cannot be written as text.
    pub fn text(&self) -> &str {
        self.path.to_str().expect("a readable path")
    }

    /// Something in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Leftover files are no reason to fail.
        _ = fs::remove_dir_all(&self.path);
        if let Some(janitor) = &mut self.janitor {
            _ = janitor.kill();
            _ = janitor.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::until;

    #[test]
    fn it_is_empty_its_own_and_goes_away() {
        let (one, other) = (Scratch::new(), Scratch::new());
        assert_ne!(one.path(), other.path());
        assert_eq!(fs::read_dir(one.path()).expect("it is there").count(), 0);
        fs::write(one.join("file"), "text").expect("it can be used");
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists() && other.path().exists());
    }

    #[test]
    fn a_directory_that_a_killed_process_left_is_passed_over() {
        let base = Scratch::new();
        for number in 0..100 {
            let left = format!("grouplock-test-{}-{number}", std::process::id());
            fs::create_dir(base.join(&left)).expect("it can be made");
        }
        let own = Scratch::below(base.path()).expect("another name is free");
        assert_eq!(fs::read_dir(own.path()).expect("it is there").count(), 0);
    }

    #[test]
    fn one_that_is_never_dropped_goes_away_with_the_program() {
        let mut scratch = Scratch::until_the_end();
        fs::write(scratch.join("file"), "text").expect("it can be used");
        // The end of the program does the same.
        drop(scratch.janitor.as_mut().and_then(|janitor| janitor.stdin.take()));
        until("the directory is gone", || !scratch.path().exists());
    }
}
