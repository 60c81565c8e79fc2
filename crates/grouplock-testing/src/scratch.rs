//! Directories that go away.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of one's own until it is dropped, in memory where possible: rooms belong there.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes it.
    ///
    /// # Panics
    /// If it cannot be made.
    #[expect(clippy::new_without_default, reason = "it makes something")]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only that each number is given once matters.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let path = base.join(format!("grouplock-test-{}-{number}", std::process::id()));
        fs::create_dir(&path).expect("a directory for the test");
        Scratch(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The same as text.
    ///
    /// # Panics
    /// If the path cannot be written as text.
    pub fn text(&self) -> &str {
        self.0.to_str().expect("a readable path")
    }

    /// Something in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left there is not worth failing for.
        _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
