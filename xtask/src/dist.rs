//! `cargo xtask dist`: makes the release. It packs a static program, its manual pages and
//! completions as a tarball and as a Debian package, installs the package into an empty root, and
//! tries it.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use crate::run::{LIMIT, Program, root};

/// The script that the package runs after its installation.
const POSTINST: &str = "packaging/postinst";
/// The rooms of the whole machine.
const SYSTEM: &str = "run/grouplock";

/// The target of the program.
pub(crate) const MUSL: &str = "x86_64-unknown-linux-musl";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Builds the static program and packs it, into target/dist.
pub(crate) fn run() -> Result<(), String> {
    let build = ["build", "--release", "-p", "grouplock-cli", "--all-features", "--target", MUSL];
    Program::cargo(&build).run()?;
    let program = root().join("target").join(MUSL).join("release/grouplock");
    let made = pack(&program, "target/dist", "-Zxz")?;
    try_out(&made.package, "target/dist", Inside::Root)?;
    for path in [&program, &made.tarball, &made.package] {
        let bytes = fs::metadata(path).map_or(0, |about| about.len());
        println!("{:6.2} MB  {}", bytes as f64 / 1e6, path.display());
    }
    Ok(())
}

/// The same with an existing program, as a test. It may be dynamic, so it does not run with the
/// package's root as its root.
pub(crate) fn test(program: &Path) -> Result<(), String> {
    // Small and fast: the test is not about compression.
    let stripped = root().join("target/xtask/grouplock");
    let strip = ["-o", &shown(&stripped), &shown(program)];
    Program::new("strip").arguments(&strip).quietly(LIMIT)?;
    let made = pack(&stripped, "target/dist-test", "-Znone")?;
    try_out(&made.package, "target/dist-test", Inside::Here)?;
    without_systemd("target/dist-test")
}

struct Made {
    tarball: PathBuf,
    package: PathBuf,
}

/// Packs a program into `out`, which is emptied first.
fn pack(program: &Path, out: &str, compression: &str) -> Result<Made, String> {
    let out = root().join(out);
    _ = fs::remove_dir_all(&out);
    let tree = out.join("tree");
    fill(&tree, program).map_err(|error| format!("the files cannot be laid out: {error}"))?;
    let name = format!("grouplock-{VERSION}-{MUSL}");
    let tarball = out.join(format!("{name}.tar.gz"));
    Program::new("tar")
        .arguments(&["--create", "--gzip", "--owner=0", "--group=0", "--sort=name"])
        .arguments(&[&format!("--transform=s,^tree,{name},"), "--file", &shown(&tarball)])
        .arguments(&["--directory", &shown(&out), "tree"])
        .quietly(LIMIT)?;
    let package = out.join(format!("grouplock_{VERSION}_amd64.deb"));
    let failed = |error: io::Error| format!("the package cannot be made: {error}");
    let control = fs::read_to_string(root().join("packaging/control")).map_err(failed)?;
    let control = control
        .replace("{version}", VERSION)
        .replace("{architecture}", "amd64")
        .replace("{kilobytes}", &size(&tree).map_err(failed)?.div_ceil(1024).to_string());
    fs::create_dir(tree.join("DEBIAN")).map_err(failed)?;
    fs::write(tree.join("DEBIAN/control"), control).map_err(failed)?;
    fs::copy(root().join(POSTINST), tree.join("DEBIAN/postinst")).map_err(failed)?;
    Program::new("dpkg-deb")
        .arguments(&["--root-owner-group", compression, "--build"])
        .arguments(&[&shown(&tree), &shown(&package)])
        .quietly(LIMIT)?;
    Ok(Made { tarball, package })
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Makes the tree of installed files, as below `/`.
fn fill(tree: &Path, program: &Path) -> io::Result<()> {
    let share = tree.join("usr/share");
    let manual = share.join("man/man1");
    let completions = [
        ("bash", share.join("bash-completion/completions/grouplock")),
        ("zsh", share.join("zsh/vendor-completions/_grouplock")),
        ("fish", share.join("fish/vendor_completions.d/grouplock.fish")),
    ];
    let copies = [
        (program.to_owned(), tree.join("usr/bin/grouplock")),
        (root().join("packaging/tmpfiles.conf"), tree.join("usr/lib/tmpfiles.d/grouplock.conf")),
        (root().join("packaging/sysusers.conf"), tree.join("usr/lib/sysusers.d/grouplock.conf")),
        (root().join("LICENSE-MIT"), share.join("doc/grouplock/copyright")),
        (root().join("LICENSE-APACHE"), share.join("doc/grouplock/LICENSE-APACHE")),
    ];
    for (from, to) in copies {
        fs::create_dir_all(to.parent().unwrap_or(tree))?;
        fs::copy(from, to)?;
    }
    fs::create_dir_all(&manual)?;
    let said = |arguments: &[&str]| {
        let ended = Program::new(program).arguments(arguments).quietly(LIMIT);
        ended.map(|ended| ended.output).map_err(io::Error::other)
    };
    said(&["man", "--out", &shown(&manual)])?;
    for (shell, path) in completions {
        fs::create_dir_all(path.parent().unwrap_or(tree))?;
        fs::write(path, said(&["completions", shell])?)?;
    }
    Ok(())
}

/// The size of all files below a directory, in bytes.
fn size(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        bytes += if about.is_dir() { size(&entry.path())? } else { about.len() };
    }
    Ok(bytes)
}

/// Where the installed program is run.
#[derive(Clone, Copy)]
enum Inside {
    /// In the root of the package, which has nothing else.
    Root,
    /// In the root of this machine.
    Here,
}

/// Installs the package into an empty root, and runs commands in a room with the installed program.
fn try_out(package: &Path, out: &str, inside: Inside) -> Result<(), String> {
    let clean = root().join(out).join("root");
    let database = clean.join("var/lib/dpkg");
    let made = fs::create_dir_all(database.join("info"))
        .and_then(|()| fs::create_dir(database.join("updates")))
        .and_then(|()| fs::write(database.join("status"), ""))
        .and_then(|()| fs::create_dir(clean.join("etc")))
        .and_then(|()| fs::create_dir_all(clean.join("rooms")));
    made.map_err(|error| format!("an empty root cannot be made: {error}"))?;
    // The empty root has no shell for the package's script, so the script runs in our root. Only
    // root can give a directory to a group.
    let action = if is_root() { "--install" } else { "--unpack" };
    Program::new("dpkg")
        .arguments(&["--root", &shown(&clean), "--force-not-root", "--log=/dev/null"])
        .arguments(&["--force-script-chrootless", action, &shown(package)])
        .quietly(LIMIT)?;
    if is_root() {
        has_system_place(&clean)?;
    } else {
        println!("not root: the group and the directory of the machine's rooms were not made");
    }
    for file in ["usr/share/man/man1/grouplock-run.1", "usr/lib/tmpfiles.d/grouplock.conf"] {
        if !clean.join(file).is_file() {
            return Err(format!("`{file}` was not installed"));
        }
    }
    let installed = clean.join("usr/bin/grouplock");
    match inside {
        // Root's rooms are the rooms of the machine, which the package has made.
        Inside::Root if is_root() => {
            let chroot = [&shown(&clean), "/usr/bin/grouplock"];
            let grouplock = || Program::new("chroot").arguments(&chroot);
            run_in_room(&grouplock, &[], "/usr/bin/grouplock")
        }
        // A user namespace permits its own root without privileges.
        Inside::Root => {
            let chroot = ["--map-root-user", "chroot", &shown(&clean), "/usr/bin/grouplock"];
            let grouplock = || Program::new("unshare").arguments(&chroot);
            run_in_room(&grouplock, &["--at", "/rooms"], "/usr/bin/grouplock")
        }
        Inside::Here => {
            let rooms = shown(&clean.join("rooms"));
            run_in_room(&|| Program::new(&installed), &["--at", &rooms], &shown(&installed))
        }
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0)
}

/// Whether a root has the group `grouplock`, and a directory for rooms that other users cannot use.
fn has_system_place(clean: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("the machine's rooms: {error}");
    let groups = fs::read_to_string(clean.join("etc/group")).map_err(failed)?;
    let mut groups = groups.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let group = groups.find(|group| group[0] == "grouplock");
    let number = group.and_then(|group| group.get(2)?.parse().ok());
    let number: u32 = number.ok_or("the group `grouplock` was not made")?;
    let about = fs::metadata(clean.join(SYSTEM)).map_err(failed)?;
    let found = (about.mode() & 0o7777, about.uid(), about.gid());
    if found == (0o2770, 0, number) {
        return Ok(());
    }
    let (mode, user, group) = found;
    Err(format!(
        "`{SYSTEM}` has mode {mode:04o}, user {user} and group {group}, not 2770, 0 and {number}"
    ))
}

/// Installs the package on a machine without systemd, such as a container.
fn without_systemd(out: &str) -> Result<(), String> {
    if !is_root() {
        return Ok(());
    }
    let clean = root().join(out).join("without-systemd");
    let programs = clean.join("programs");
    let made =
        ["etc", "run", "programs"].iter().try_for_each(|name| fs::create_dir_all(clean.join(name)));
    let made = made.and_then(|()| fs::write(clean.join("etc/group"), "root:x:0:\n"));
    made.map_err(|error| format!("an empty root cannot be made: {error}"))?;
    for name in ["sh", "grep", "sed", "install", "groupadd"] {
        let found = ["/bin", "/usr/bin", "/usr/sbin"].map(|folder| Path::new(folder).join(name));
        let found =
            found.iter().find(|path| path.exists()).ok_or(format!("there is no `{name}`"))?;
        symlink(found, programs.join(name)).map_err(|error| format!("`{name}`: {error}"))?;
    }
    // First a new installation, then one over it.
    for _ in 0..2 {
        Program::new(root().join(POSTINST))
            .arguments(&["configure"])
            .variable("DPKG_ROOT", &shown(&clean))
            .variable("PATH", &shown(&programs))
            .quietly(LIMIT)?;
        has_system_place(&clean)?;
    }
    Ok(())
}

/// Runs the program inside a room, and checks that the room exists afterwards. `place` has the
/// options for the place.
fn run_in_room(
    grouplock: &dyn Fn() -> Program,
    place: &[&str],
    installed: &str,
) -> Result<(), String> {
    let run = grouplock().arguments(&["run"]).arguments(place);
    let run = run.arguments(&["room", "session", "--", installed, "--version"]);
    let said = run.quietly(LIMIT)?.output;
    if said.trim() != format!("grouplock {VERSION}") {
        return Err(format!("the installed program said `{said}`"));
    }
    let status = grouplock().arguments(&["status", "room"]).arguments(place);
    let said = status.quietly(LIMIT)?.output;
    print!("{said}");
    if said.contains("nobody is inside") {
        Ok(())
    } else {
        Err("the room does not exist".to_owned())
    }
}
