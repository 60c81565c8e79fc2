//! File systems that cannot have rooms.

use std::path::Path;

use crate::error::RoomError;

/// File systems that may share files between machines, by the number from `statfs`. Mapped memory
/// and locks do not work there. 9p and FUSE are included: what is behind them is unknown, and often
/// it is another machine.
const REMOTE: &[(u32, &str)] = &[
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "FUSE"),
    (0x00c3_6400, "Ceph"),
    (0x7375_7245, "Coda"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x564c, "NCP"),
    (0x0bd0_0bd0, "Lustre"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x1983_0326, "BeeGFS"),
    (0x4750_4653, "GPFS"),
    (0x786f_4256, "VirtualBox"),
    (0xbacb_acbc, "VMware"),
];

/// File systems that may need new space to write to an existing page. If the disk is full, the
/// kernel ends the writing process by a signal.
const COPY_ON_WRITE: &[(u32, &str)] =
    &[(0x9123_683e, "btrfs"), (0x2fc1_2fc1, "ZFS"), (0xca45_1a4e, "bcachefs")];

/// An error if this kind of file system cannot have rooms.
pub(super) fn refuse_unfit(kind: u32, path: &Path) -> Result<(), RoomError> {
    match REMOTE.iter().find(|(remote, _)| *remote == kind) {
        Some((_, name)) => {
            Err(RoomError::NetworkFileSystem { path: path.to_owned(), kind: (*name).to_owned() })
        }
        None => match COPY_ON_WRITE.iter().find(|(unfit, _)| *unfit == kind) {
            Some((_, name)) => Err(RoomError::UnsafeDirectory {
                path: path.to_owned(),
                reason: format!(
                    "it is on {name}, where a full disk ends programs that write to mapped memory; choose a \
                     directory in memory, such as one in /dev/shm"
                ),
            }),
            None => Ok(()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_refused_by_name() {
        for (number, name) in REMOTE {
            let error = refuse_unfit(*number, Path::new("/mnt/x")).unwrap_err();
            let message = error.to_string();
            assert!(
                message.starts_with(&format!("`/mnt/x` is on a {name} file system")),
                "{message}"
            );
            assert!(message.contains("choose a local directory"), "{message}");
        }
    }

    #[test]
    fn copy_on_write_is_refused_by_name() {
        for (number, name) in COPY_ON_WRITE {
            let message = refuse_unfit(*number, Path::new("/home/x")).unwrap_err().to_string();
            assert!(message.contains(&format!("it is on {name}")), "{message}");
            assert!(message.contains("/dev/shm"), "{message}");
        }
    }

    #[test]
    fn local_ones_are_not() {
        for number in [0xef53, 0x0102_1994, 0x5846_5342, 0x794c_7630] {
            assert!(refuse_unfit(number, Path::new("/")).is_ok());
        }
    }
}
