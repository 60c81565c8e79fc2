//! Opens the directory and the file safely.
//!
//! All operations are relative to the open directory. Nothing follows a symbolic link at the end of
//! a path. A new file gets its name only when it is complete.

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
use super::layout::{self, FIRST_SLOTS, Fixed, header};
use crate::error::RoomError;
use crate::name::RoomName;
use crate::place::Owner;
use crate::room::Access;

/// The ending of the file name of a room.
const ENDING: &str = ".room";

/// The directory of a room, and the name of its file.
pub(super) struct DirectoryEntry {
    directory: OwnedFd,
    facts: FileStat,
    file: String,
    /// For messages.
    pub(super) path: PathBuf,
}

/// The file of a room, and the facts in its header.
pub(super) struct Opened {
    pub(super) file: File,
    /// The same file, opened again: another description.
    pub(super) watch: File,
    pub(super) fixed: Fixed,
}

impl DirectoryEntry {
    /// Opens the directory. If `create` is given, it creates a missing directory with that access.
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
        // Other users could replace our file by theirs, or by a link to a valuable file.
        if facts.st_mode & 0o1002 == 0o0002 {
            let mode = facts.st_mode & 0o7777;
            let reason = format!(
                "every user may rename files in it (mode {mode:04o}); take away the permission for \
                 others or set the sticky bit"
            );
            return Err(unsafe_directory(directory, reason));
        }
        check_owner(directory, &facts)?;
        let kind = fstatfs(&fd).map_err(|errno| failed("look at", directory, errno))?;
        #[allow(clippy::cast_sign_loss, reason = "each C library has another type for it")]
        let kind = kind.filesystem_type().0 as u32;
        file_system::refuse_unfit(kind, directory)?;
        let file = name.encoded() + ENDING;
        let path = directory.join(&file);
        Ok(DirectoryEntry { directory: fd, facts, file, path })
    }

    /// Opens the file, whatever it contains, after checking its type and its owner.
    pub(super) fn any_file(&self, look_only: bool) -> Result<Option<File>, RoomError> {
        let access = if look_only { OFlag::O_RDONLY } else { OFlag::O_RDWR };
        // Do not block: another user may have put a pipe there.
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
            // Another process has just replaced it.
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
        let fixed = Fixed::read(&bytes, length, &self.path)?;
        Ok(Some(Opened { file, watch, fixed }))
    }

    /// Checks the type and the owner of the file. Returns its length.
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
            return Err(self.unsafe_file(&format!("every user may write to it (mode {mode:04o})")));
        }
        let owner = facts.uid();
        let known = owner == geteuid().as_raw() || owner == 0 || owner == self.facts.st_uid;
        // In a directory where every user may create files, a common group is not enough.
        let shared = facts.mode() & 0o060 == 0o060
            && self.facts.st_mode & 0o002 == 0
            && in_group(Gid::from_raw(facts.gid()));
        if !known && !shared {
            return Err(self.unsafe_file(&format!("it belongs to the user with number {owner}")));
        }
        Ok(facts.len())
    }

    /// Creates the file. Returns `false` if another process was faster.
    pub(super) fn create(&self, fixed: Fixed, access: Access) -> Result<bool, RoomError> {
        let flags = OFlag::O_RDWR | OFlag::O_TMPFILE | OFlag::O_CLOEXEC;
        let fd = match openat(&self.directory, ".", flags, Mode::S_IRUSR | Mode::S_IWUSR) {
            Ok(fd) => fd,
            // The file system has no files without names.
            Err(Errno::EOPNOTSUPP | Errno::EISDIR | Errno::EINVAL | Errno::ENOENT) => {
                return self.create_named(fixed, access);
            }
            Err(errno) => return Err(self.cannot_create(errno, fixed)),
        };
        self.fill(&fd, fixed, access)?;
        let nameless = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let (directory, name) = (&self.directory, self.file.as_str());
        match linkat(AT_FDCWD, nameless.as_str(), directory, name, AtFlags::AT_SYMLINK_FOLLOW) {
            Ok(()) => Ok(true),
            Err(Errno::EEXIST) => Ok(false),
            // /proc is missing.
            Err(Errno::ENOENT) => self.create_named(fixed, access),
            Err(errno) => Err(self.cannot_create(errno, fixed)),
        }
    }

    /// As [`create`](DirectoryEntry::create), but the file first has another name.
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
            // If this fails too, a stray file stays.
            _ = unlinkat(&self.directory, other.as_str(), UnlinkatFlags::NoRemoveDir);
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
        // Allocate every page now. A write to a page without space on the disk would end the
        // process by a signal.
        let size = libc::off_t::try_from(size).map_err(|_| cannot(Errno::EFBIG))?;
        posix_fallocate(fd, 0, size).map_err(cannot)?;
        let file = fd.try_clone().map(File::from).map_err(|error| self.io("create", error))?;
        let slots = u32::from(fixed.capacity.min(FIRST_SLOTS));
        // Epochs begin at the current time. So they are larger than those of a removed room of the
        // same name.
        let written = file
            .write_all_at(&fixed.write(), 0)
            .and_then(|()| file.write_all_at(&fixed.created.to_ne_bytes(), header::EPOCH as u64))
            .and_then(|()| file.write_all_at(&u64::MAX.to_ne_bytes(), header::MOST as u64))
            .and_then(|()| file.write_all_at(&slots.to_ne_bytes(), header::SLOTS as u64));
        written.map_err(|error| self.io("create", error))?;
        file.sync_all().map_err(|error| self.io("create", error))
    }

    /// Removes the name, if it still belongs to this file.
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

/// A name next to this one that no other process uses.
fn another_name(name: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed); // it only needs to be new
    format!(".{name}.{}.{number}", std::process::id())
}

/// Renames a file, unless the new name exists. nix has this call for one C library only.
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

/// The mode bits of a directory whose rooms belong to its group.
const SHARED: libc::mode_t = 0o2020;

/// The directory of a user or group must belong to them. In a public directory another user may
/// have created it.
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
    let reason = format!(
        "its name says that it is for {whose}, but it belongs to user {owner}, group {group}, with \
         mode {mode:04o}"
    );
    Err(unsafe_directory(path, reason))
}

fn make_directory(path: &Path, access: Access) -> Result<(), RoomError> {
    let owner = Owner::by_name(path);
    // `fchmod` below sets the mode again, because the umask must not change it.
    let mode = match (owner, access) {
        (Some(Owner::Group(_)), _) => 0o2770,
        (Some(Owner::User(_)), _) | (None, Access::Owner) => 0o700,
        (None, Access::Group) => 0o770,
    };
    // It has another name until its owner and mode are right, so that no process uses it too early.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let other = path.with_file_name(another_name(&name));
    match nix::unistd::mkdir(&other, Mode::S_IRWXU) {
        Ok(()) => {}
        // An earlier process with our number died before it could remove this directory.
        Err(Errno::EEXIST) => return make_directory(path, access),
        Err(Errno::ENOENT) => return Err(unsafe_directory(path, "its parent does not exist")),
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
        // After the change of the owner, which clears the bit.
        fchmod(&fd, Mode::from_bits_truncate(mode))?;
        rename_to_new(AT_FDCWD, other.as_os_str(), path.as_os_str())
    });
    if made.is_err() {
        // If this fails too, a stray directory stays.
        _ = std::fs::remove_dir(&other);
    }
    match made {
        Ok(()) | Err(Errno::EEXIST) => Ok(()),
        Err(errno) => Err(failed("create", path, errno)),
    }
}

/// What root creates in the directory of a user belongs to the user. Otherwise the user could not
/// use it.
fn give_away(made: &OwnedFd, directory: &FileStat) -> Result<(), Errno> {
    if directory.st_uid == 0 || !geteuid().is_root() {
        return Ok(());
    }
    // With the bit set, it already has the group of the directory.
    let group = (directory.st_mode & 0o2000 == 0).then(|| Gid::from_raw(directory.st_gid));
    fchown(made, Some(Uid::from_raw(directory.st_uid)), group)
}

fn refused_directory(errno: Errno, path: &Path) -> RoomError {
    let reason = match errno {
        // Linux returns ENOTDIR for a symbolic link if a directory is required.
        Errno::ELOOP | Errno::ENOTDIR if path.is_symlink() => "it is a symbolic link",
        Errno::ENOTDIR => "it is not a directory",
        Errno::ENOENT => "it does not exist",
        errno => return failed("open", path, errno),
    };
    unsafe_directory(path, reason)
}

fn unsafe_directory(path: &Path, reason: impl Into<String>) -> RoomError {
    RoomError::UnsafeDirectory { path: path.to_owned(), reason: reason.into() }
}

/// The error for an error code of the system.
pub(super) fn failed(what: &'static str, path: &Path, errno: Errno) -> RoomError {
    let path = path.to_owned();
    match errno {
        Errno::EACCES | Errno::EPERM => RoomError::Permission { what, path },
        Errno::EROFS => RoomError::ReadOnly { what, path },
        errno => RoomError::Io { what, path, source: errno.into() },
    }
}

/// The names of the rooms in a directory. A directory that does not exist has none.
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
