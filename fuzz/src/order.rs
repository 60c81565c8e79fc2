//! The arguments of `guided`.

use std::path::PathBuf;

use crate::TARGETS;

/// How `guided` is used.
pub const USAGE: &str = "\
usage: guided TARGET FILE…                   reads files again: what was found, for instance
       guided TARGET [-OPTION…] DIRECTORY    searches with libFuzzer, and keeps in DIRECTORY what reaches something new
       guided --targets                      prints the names of the targets";

/// A command for `guided`.
#[derive(Debug, PartialEq, Eq)]
pub enum Order {
    /// Print the names of the targets.
    Names,
    /// A target reads files.
    Read {
        /// Its name.
        target: &'static str,
        /// The files.
        files: Vec<PathBuf>,
        /// Options of libFuzzer.
        options: Vec<String>,
    },
    /// Search with libFuzzer.
    Search {
        /// The name of the target.
        target: &'static str,
        /// The corpus: the first inputs, and the new ones.
        directory: PathBuf,
        /// Options of libFuzzer.
        options: Vec<String>,
    },
}

impl Order {
    /// Parses the arguments.
    ///
    /// # Errors
    /// What is wrong with them, for people.
    pub fn understand(arguments: impl IntoIterator<Item = String>) -> Result<Order, String> {
        let mut arguments = arguments.into_iter();
        let first = arguments.next().ok_or("a target is missing")?;
        let (options, paths): (Vec<_>, Vec<_>) =
            arguments.partition(|argument| argument.starts_with('-'));
        if first == "--targets" {
            let extra = options.first().or(paths.first());
            return match extra {
                None => Ok(Order::Names),
                Some(extra) => Err(format!("`{extra}` is one argument too many")),
            };
        }
        let known = TARGETS.iter().map(|(name, _)| *name).find(|name| *name == first);
        let target = known.ok_or_else(|| {
            let names = TARGETS.map(|(name, _)| name).join(", ");
            format!("there is no target `{first}`; there are {names}")
        })?;
        let paths: Vec<_> = paths.into_iter().map(PathBuf::from).collect();
        if let Some(missing) = paths.iter().find(|path| !path.exists()) {
            return Err(format!("`{}` is not there", missing.display()));
        }
        let directory = |path: &&PathBuf| path.is_dir();
        match (&*paths, paths.iter().find(directory)) {
            ([], _) => Err("a file to read or a directory to search with is missing".to_owned()),
            ([one], Some(_)) => Ok(Order::Search { target, directory: one.clone(), options }),
            (_, None) => Ok(Order::Read { target, files: paths, options }),
            (_, Some(one)) => {
                let shown = one.display();
                Err(format!("`{shown}` is a directory: it goes alone, or files without it"))
            }
        }
    }
}
