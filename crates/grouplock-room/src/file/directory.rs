//! The directory and the file, opened so that nobody is tricked.
//!
//! Everything happens relative to the open directory, nothing follows a symbolic link at the end of a path, and a file gets
//! its name only when it is complete.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, open, openat, posix_fallocate};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, fchmod, fstat, fstatat};
use nix::sys::statfs::fstatfs;
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, getegid, geteuid, getgroups, linkat, unlinkat};

use super::file_system;
use super::layout::{self, FIRST_SLOTS, Fixed, Misfit, header};
use crate::error::RoomError;
use crate::name::RoomName;
use crate::place::Owner;
use crate::room::Access;

/// What the file of a room is called behind its name.
const ENDING: &str = ".room";

/// The place of a room's file.
pub(super) struct Site {
    directory: OwnedFd,
    facts: FileStat,
    file: String,
    /// For messages.
    pub(super) path: PathBuf,
}

/// A room's file with what its header says.
pub(super) struct Opened {
    pub(super) file: File,
    /// The same file, opened again: a description of its own.
    pub(super) watch: File,
    pub(super) fixed: Fixed,
}

impl Site {
    /// Opens the directory, and makes it if `create` says for whom.
    pub(super) fn open(
        directory: &Path,
        name: &RoomName,
        create: Option<Access>,
    ) -> Result<Self, RoomError> {
        let fd = match (open_directory(directory), create) {
            (Err(Errno::ENOENT), Some(access)) => {
                make_directory(directory, access)?;
                open_directory(directory)
            }
            (result, _) => result,
        };
        let fd = fd.map_err(|errno| refused_directory(errno, directory))?;
        let facts = fstat(&fd).map_err(|errno| failed("look at", directory, errno))?;
        // Others could exchange our file for theirs, or a link to something precious.
        if facts.st_mode & 0o1002 == 0o0002 {
            return Err(RoomError::UnsafeDirectory {
                path: directory.to_owned(),
                reason: format!(
                    "everybody may rename files in it (mode {:04o}); take away the permission \
                     for others or set the sticky bit",
                    facts.st_mode & 0o7777
                ),
            });
        }
        check_owner(directory, &facts)?;
        let kind = fstatfs(&fd).map_err(|errno| failed("look at", directory, errno))?;
        #[allow(clippy::cast_sign_loss, reason = "each C library has another type for it")]
        let kind = kind.filesystem_type().0 as u32;
        file_system::refuse_unfit(kind, directory)?;
        let file = name.encoded() + ENDING;
        let path = directory.join(&file);
        Ok(Site { directory: fd, facts, file, path })
    }

    /// Opens whatever has the name and can be trusted as far as its kind and owner go.
    pub(super) fn any_file(&self, look_only: bool) -> Result<Option<File>, RoomError> {
        let access = if look_only { OFlag::O_RDONLY } else { OFlag::O_RDWR };
        // Not blocking: somebody may have put a pipe there.
        let flags = access | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let file = match openat(&self.directory, self.file.as_str(), flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ELOOP) => return Err(self.unsafe_file("it is a symbolic link")),
            Err(Errno::EISDIR) => return Err(self.unsafe_file("it is a directory")),
            Err(Errno::ENXIO | Errno::ENODEV) => {
                return Err(self.unsafe_file("it is not an ordinary file"));
            }
            Err(errno) => return Err(failed("open", &self.path, errno)),
        };
        self.check(&file)?;
        Ok(Some(file))
    }

    /// Opens the room's file, if there is one.
    pub(super) fn file(&self, look_only: bool) -> Result<Option<Opened>, RoomError> {
        let Some(file) = self.any_file(look_only)? else { return Ok(None) };
        let Some(watch) = self.any_file(look_only)? else { return Ok(None) };
        let inode = |file: &File| file.metadata().map(|facts| (facts.dev(), facts.ino())).ok();
        if inode(&file) != inode(&watch) {
            // Somebody has replaced it just now.
            return self.file(look_only);
        }
        let length = self.check(&file)?;
        let mut bytes = [0; header::FIXED];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let reason = format!("it has only {length} bytes");
                return Err(RoomError::Foreign { path: self.path.clone(), reason });
            }
            Err(error) => return Err(self.io("read", error)),
        }
        let path = self.path.clone();
        let fixed = Fixed::read(&bytes, length).map_err(|misfit| match misfit {
            Misfit::Foreign(reason) => RoomError::Foreign { path, reason },
            Misfit::Version(found) => {
                RoomError::Version { path, found, supported: layout::VERSION }
            }
            Misfit::Corrupt(reason) => RoomError::Corrupt { path, reason },
        })?;
        Ok(Some(Opened { file, watch, fixed }))
    }

    /// Whether the file may be trusted as far as its kind and owner go; its length.
    fn check(&self, file: &File) -> Result<u64, RoomError> {
        let facts = file.metadata().map_err(|error| self.io("look at", error))?;
        if !facts.is_file() {
            return Err(self.unsafe_file("it is not an ordinary file"));
        }
        if facts.nlink() > 1 {
            return Err(self.unsafe_file("it has a second name elsewhere (a hard link)"));
        }
        if facts.mode() & 0o002 != 0 {
            let mode = facts.mode() & 0o7777;
            return Err(self.unsafe_file(&format!("everybody may write to it (mode {mode:04o})")));
        }
        let owner = facts.uid();
        let known = owner == geteuid().as_raw() || owner == 0 || owner == self.facts.st_uid;
        // Where everybody may create files, belonging to a common group is no reason to trust.
        let shared = facts.mode() & 0o060 == 0o060
            && self.facts.st_mode & 0o002 == 0
            && in_group(Gid::from_raw(facts.gid()));
        if !known && !shared {
            return Err(self.unsafe_file(&format!("it belongs to the user with number {owner}")));
        }
        Ok(facts.len())
    }

    /// Makes the file. False if somebody else was faster.
    pub(super) fn create(&self, fixed: Fixed, access: Access) -> Result<bool, RoomError> {
        let flags = OFlag::O_RDWR | OFlag::O_TMPFILE | OFlag::O_CLOEXEC;
        match openat(&self.directory, ".", flags, Mode::S_IRUSR | Mode::S_IWUSR) {
            Ok(fd) => {
                self.fill(&fd, fixed, access)?;
                let nameless = format!("/proc/self/fd/{}", fd.as_raw_fd());
                let follow = AtFlags::AT_SYMLINK_FOLLOW;
                match linkat(
                    AT_FDCWD,
                    nameless.as_str(),
                    &self.directory,
                    self.file.as_str(),
                    follow,
                ) {
                    Ok(()) => Ok(true),
                    Err(Errno::EEXIST) => Ok(false),
                    // No /proc here.
                    Err(Errno::ENOENT) => self.create_named(fixed, access),
                    Err(errno) => Err(self.cannot_create(errno, fixed)),
                }
            }
            // The file system cannot have files without names.
            Err(Errno::EOPNOTSUPP | Errno::EISDIR | Errno::EINVAL | Errno::ENOENT) => {
                self.create_named(fixed, access)
            }
            Err(errno) => Err(self.cannot_create(errno, fixed)),
        }
    }

    /// The same by way of a file with another name.
    fn create_named(&self, fixed: Fixed, access: Access) -> Result<bool, RoomError> {
        let other = another_name(&self.file);
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let fd = openat(&self.directory, other.as_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR);
        let fd = fd.map_err(|errno| self.cannot_create(errno, fixed))?;
        let filled = self.fill(&fd, fixed, access).and_then(|()| {
            match rename_to_new(self.directory.as_fd(), other.as_ref(), self.file.as_ref()) {
                Ok(()) => Ok(true),
                Err(Errno::EEXIST) => Ok(false),
                Err(errno) => Err(self.cannot_create(errno, fixed)),
            }
        });
        if !matches!(filled, Ok(true)) {
            // If this fails too there is nothing more to be done about a stray file.
            let _ = unlinkat(&self.directory, other.as_str(), UnlinkatFlags::NoRemoveDir);
        }
        filled
    }

    fn fill(&self, fd: &OwnedFd, fixed: Fixed, access: Access) -> Result<(), RoomError> {
        let cannot = |errno| self.cannot_create(errno, fixed);
        let group = access == Access::Group || self.facts.st_mode & SHARED == SHARED;
        let mode = if group { 0o660 } else { 0o600 };
        fchmod(fd, Mode::from_bits_truncate(mode)).map_err(cannot)?;
        give_away(fd, &self.facts).map_err(cannot)?;
        let size = layout::size(fixed.capacity.min(FIRST_SLOTS));
        // Every page now: a write to a page that the file system has no room for later would be a signal.
        let size = libc::off_t::try_from(size).map_err(|_| cannot(Errno::EFBIG))?;
        posix_fallocate(fd, 0, size).map_err(cannot)?;
        let file = fd.try_clone().map(File::from).map_err(|error| self.io("create", error))?;
        let slots = u32::from(fixed.capacity.min(FIRST_SLOTS));
        // Epochs begin at the time, so that they are beyond those of a room of this name that was removed.
        let written = file
            .write_all_at(&fixed.write(), 0)
            .and_then(|()| file.write_all_at(&fixed.created.to_ne_bytes(), header::EPOCH as u64))
            .and_then(|()| file.write_all_at(&u64::MAX.to_ne_bytes(), header::MOST as u64))
            .and_then(|()| file.write_all_at(&slots.to_ne_bytes(), header::SLOTS as u64));
        written.map_err(|error| self.io("create", error))?;
        file.sync_all().map_err(|error| self.io("create", error))
    }

    /// Takes the name away, if it is still this file's.
    pub(super) fn unlink(&self, opened: &File) -> Result<(), RoomError> {
        let ours = opened.metadata().map_err(|error| self.io("look at", error))?;
        let named = fstatat(&self.directory, self.file.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
        if ours.nlink() == 0 || !named.is_ok_and(|named| named.st_ino == ours.ino()) {
            return Ok(());
        }
        let result = unlinkat(&self.directory, self.file.as_str(), UnlinkatFlags::NoRemoveDir);
        result.map_err(|errno| failed("remove", &self.path, errno))
    }

    fn cannot_create(&self, errno: Errno, fixed: Fixed) -> RoomError {
        match errno {
            Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG => RoomError::NoSpace {
                path: self.path.clone(),
                bytes: layout::size(fixed.capacity.min(FIRST_SLOTS)) as u64,
            },
            errno => failed("create", &self.path, errno),
        }
    }

    fn unsafe_file(&self, reason: &str) -> RoomError {
        RoomError::UnsafeFile { path: self.path.clone(), reason: reason.to_owned() }
    }

    pub(super) fn io(&self, what: &'static str, source: io::Error) -> RoomError {
        RoomError::Io { what, path: self.path.clone(), source }
    }
}

/// A name next to this one that nobody else has.
fn another_name(name: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed); // only has to be new
    format!(".{name}.{}.{number}", std::process::id())
}

/// Renames a file, unless the new name is taken. Not nix's: that has it for one C library only.
fn rename_to_new(directory: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    let name = |name: &OsStr| CString::new(name.as_bytes()).map_err(|_| Errno::EINVAL);
    let (directory, from, to) = (directory.as_raw_fd(), name(from)?, name(to)?);
    let keep = libc::RENAME_NOREPLACE;
    // SAFETY: both names end with a zero byte and live for the call, which does not write to them.
    let renamed = unsafe {
        libc::syscall(libc::SYS_renameat2, directory, from.as_ptr(), directory, to.as_ptr(), keep)
    };
    Errno::result(renamed).map(drop)
}

fn in_group(group: Gid) -> bool {
    getegid() == group || getgroups().is_ok_and(|groups| groups.contains(&group))
}

fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_RDONLY;
    open(path, flags, Mode::empty())
}

/// The mode of a directory whose rooms are its group's.
const SHARED: libc::mode_t = 0o2020;

/// The directory that a name promises to a user or group must be theirs: where everybody may make directories, somebody else
/// may have made it.
fn check_owner(path: &Path, facts: &FileStat) -> Result<(), RoomError> {
    let (theirs, whose) = match Owner::by_name(path) {
        None => return Ok(()),
        Some(Owner::User(uid)) => (facts.st_uid == uid || facts.st_uid == 0, format!("user {uid}")),
        Some(Owner::Group(gid)) => {
            (facts.st_gid == gid && facts.st_mode & 0o2002 == 0o2000, format!("group {gid}"))
        }
    };
    if theirs {
        return Ok(());
    }
    let (owner, group, mode) = (facts.st_uid, facts.st_gid, facts.st_mode & 0o7777);
    Err(RoomError::UnsafeDirectory {
        path: path.to_owned(),
        reason: format!(
            "its name says that it is for {whose}, but it belongs to user {owner}, group {group}, with mode {mode:04o}"
        ),
    })
}

fn make_directory(path: &Path, access: Access) -> Result<(), RoomError> {
    let owner = Owner::by_name(path);
    // The mode is set again afterwards: the umask is about files that programs make without thinking.
    let mode = match (owner, access) {
        (Some(Owner::Group(_)), _) => 0o2770,
        (Some(Owner::User(_)), _) | (None, Access::Owner) => 0o700,
        (None, Access::Group) => 0o770,
    };
    // Under another name until it is whose it should be, so that nobody finds it half made.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let other = path.with_file_name(another_name(&name));
    match nix::unistd::mkdir(&other, Mode::S_IRWXU) {
        Ok(()) => {}
        // Somebody with our number has died before it could take that away.
        Err(Errno::EEXIST) => return make_directory(path, access),
        Err(errno) => return Err(failed("create", path, errno)),
    }
    let made = open_directory(&other).and_then(|fd| {
        match owner {
            Some(Owner::User(uid)) if geteuid().is_root() => {
                fchown(&fd, Some(Uid::from_raw(uid)), None)?;
            }
            Some(Owner::User(_)) => {}
            Some(Owner::Group(gid)) => fchown(&fd, None, Some(Gid::from_raw(gid)))?,
            None => give_away(&fd, &fstatat(&fd, "..", AtFlags::empty())?)?,
        }
        // After the change of the owner, which takes the bit away.
        fchmod(&fd, Mode::from_bits_truncate(mode))?;
        rename_to_new(AT_FDCWD, other.as_os_str(), path.as_os_str())
    });
    if made.is_err() {
        // If this fails too there is nothing more to be done about a stray directory.
        _ = std::fs::remove_dir(&other);
    }
    match made {
        Ok(()) | Err(Errno::EEXIST) => Ok(()),
        Err(errno) => Err(failed("create", path, errno)),
    }
}

/// What root makes in the directory of a user is the user's, who could not use it otherwise.
fn give_away(made: &OwnedFd, directory: &FileStat) -> Result<(), Errno> {
    if directory.st_uid == 0 || !geteuid().is_root() {
        return Ok(());
    }
    // With the bit set it has the group of the directory already.
    let group = (directory.st_mode & 0o2000 == 0).then(|| Gid::from_raw(directory.st_gid));
    fchown(made, Some(Uid::from_raw(directory.st_uid)), group)
}

fn refused_directory(errno: Errno, path: &Path) -> RoomError {
    let reason = match errno {
        // Linux says ENOTDIR for a symbolic link when a directory is demanded.
        Errno::ELOOP | Errno::ENOTDIR if path.is_symlink() => "it is a symbolic link",
        Errno::ENOTDIR => "it is not a directory",
        Errno::ENOENT => "it does not exist",
        errno => return failed("open", path, errno),
    };
    RoomError::UnsafeDirectory { path: path.to_owned(), reason: reason.to_owned() }
}

/// The error for what the system said.
pub(super) fn failed(what: &'static str, path: &Path, errno: Errno) -> RoomError {
    let path = path.to_owned();
    match errno {
        Errno::EACCES | Errno::EPERM => RoomError::Permission { what, path },
        Errno::EROFS => RoomError::ReadOnly { what, path },
        errno => RoomError::Io { what, path, source: errno.into() },
    }
}

/// The names of the rooms in a directory. One that does not exist has none.
pub(crate) fn list(directory: &Path) -> Result<Vec<RoomName>, RoomError> {
    let cannot = |error: io::Error| match error.raw_os_error() {
        Some(number) => failed("list", directory, Errno::from_raw(number)),
        None => RoomError::Io { what: "list", path: directory.to_owned(), source: error },
    };
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(cannot(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let file = entry.map_err(cannot)?.file_name();
        let name = file.to_str().and_then(|file| file.strip_suffix(ENDING));
        names.extend(name.and_then(RoomName::decode));
    }
    Ok(names)
}
