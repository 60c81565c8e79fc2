//! Checks whether the crates are ready for crates.io: packs each, and checks that it has what its
//! readers need.

use std::fs;
use std::path::PathBuf;

use crate::run::{LIMIT, Program, root};

/// The files of every package.
const FILES: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Lines of a manifest without which a package is hard to find or to use.
const FIELDS: [&str; 7] = [
    "description = ",
    "documentation = ",
    "license = ",
    "readme = ",
    "keywords = ",
    "categories = ",
    "rust-version = ",
];

/// The directory for packing and building. It is separate: the builds there are the builds of
/// users, and nothing else can use them.
const TARGET: &str = "target/publish";

/// The step: packs and checks the crates. It does not build them, which takes minutes.
pub(crate) fn check() -> Result<(), String> {
    publish(&["--no-verify"]).map(drop)
}

/// `cargo xtask publish --dry-run`: also builds the packed crates, with each feature alone, with
/// none and with all. If cargo-deny is installed, it checks licences and sources of the
/// dependencies.
pub(crate) fn dry_run() -> Result<(), String> {
    if Program::cargo(&["deny", "--version"]).succeeds() {
        Program::cargo(&["deny", "check", "bans", "licenses", "sources"]).run()?;
    } else {
        println!("cargo-deny is not installed: licences and sources were not looked at");
    }
    let packages = publish(&[])?;
    for package in &packages {
        let name = &package.name;
        let sets = package.features();
        for set in &sets {
            Program::cargo(&["check", "--quiet", "--package", name, "--no-default-features"])
                .arguments(&["--target-dir", TARGET, "--features", set])
                .variable("RUSTFLAGS", "-D warnings")
                .quietly(LIMIT)?;
        }
        let kilobytes = fs::metadata(&package.path).map_or(0, |about| about.len().div_ceil(1024));
        let file = package.path.file_name().unwrap_or_default().to_string_lossy();
        println!("{file}: {kilobytes} kB, built; checked with {} sets of features", sets.len());
    }
    let lacking = packages.iter().filter(|package| !package.has_line("repository = "));
    let lacking: Vec<_> = lacking.map(|package| &*package.name).collect();
    if !lacking.is_empty() {
        println!("no `repository`, which a release needs: {}", lacking.join(", "));
    }
    Ok(())
}

/// Packs all crates in order, against each other, as `cargo publish` does, and checks the packages.
/// Uploads nothing.
fn publish(options: &[&str]) -> Result<Vec<Package>, String> {
    // Cargo makes a registry of them, so that they find each other.
    let folder = root().join(TARGET).join("package/tmp-registry");
    _ = fs::remove_dir_all(&folder);
    Program::cargo(&["publish", "--workspace", "--dry-run", "--allow-dirty", "--quiet"])
        .arguments(&["--target-dir", TARGET])
        .arguments(options)
        .quietly(LIMIT)?;
    let failed = |error: std::io::Error| format!("`{}`: {error}", folder.display());
    let mut packages = Vec::new();
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "crate") {
            packages.push(Package::read(path)?);
        }
    }
    packages.sort_by(|one, other| one.name.cmp(&other.name));
    if packages.is_empty() { Err("nothing was packed".to_owned()) } else { Ok(packages) }
}

/// A package as it would be uploaded.
struct Package {
    name: String,
    path: PathBuf,
    manifest: String,
}

impl Package {
    /// Reads the package. A missing part is an error.
    fn read(path: PathBuf) -> Result<Self, String> {
        let shown = path.display().to_string();
        let folder = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let list = Program::new("tar").arguments(&["--list", "--file", &shown]);
        let list = list.quietly(LIMIT)?.output;
        let lacks = |file: &&&str| !list.lines().any(|line| line == format!("{folder}/{file}"));
        if let Some(file) = FILES.iter().find(lacks) {
            return Err(format!("{folder} has no {file}"));
        }
        let manifest = format!("{folder}/Cargo.toml");
        let manifest = ["--extract", "--to-stdout", "--file", &shown, &manifest];
        let manifest = Program::new("tar").arguments(&manifest).quietly(LIMIT)?.output;
        let version = concat!("-", env!("CARGO_PKG_VERSION"));
        let name = folder.strip_suffix(version).unwrap_or(&folder).to_owned();
        let package = Package { name, path, manifest };
        match FIELDS.iter().find(|field| !package.has_line(field)) {
            Some(field) => Err(format!("{folder} has no `{field}…`")),
            None => Ok(package),
        }
    }

    fn has_line(&self, beginning: &str) -> bool {
        self.manifest.lines().any(|line| line.starts_with(beginning))
    }

    /// Sets of its features, for cargo: none, each alone, and all.
    fn features(&self) -> Vec<String> {
        let names = features(&self.manifest);
        let all = names.join(",");
        let several = names.len() > 1;
        let sets = std::iter::once(String::new()).chain(names).chain(several.then_some(all));
        sets.collect()
    }
}

/// The features in a manifest as cargo packs it: a line each, or the first of several.
fn features(manifest: &str) -> Vec<String> {
    let section = manifest.lines().skip_while(|line| *line != "[features]").skip(1);
    let section = section.take_while(|line| !line.starts_with('['));
    let names = section.filter_map(|line| line.split_once(" = [")).map(|(name, _)| name.to_owned());
    names.filter(|name| name != "default").collect()
}

#[cfg(test)]
mod tests {
    use super::features;

    #[test]
    fn features_are_those_of_their_section_without_the_default() {
        let manifest = "[package]\nkeywords = [\"a\"]\n\n[features]\ndefault = [\"one\"]\none = [\n    \
                        \"dep:x\",\n]\ntwo-more = []\n\n[lib]\nx = [1]\n";
        assert_eq!(features(manifest), ["one", "two-more"]);
        assert_eq!(features("[package]\nname = \"x\"\n"), [""; 0]);
    }
}
