//! What `compare` can be told to do.

use std::path::PathBuf;

use clap::Parser;

use super::plan::Size;

/// Measures `GroupLock` and the locks people use otherwise, side by side.
#[derive(Clone, Debug, Parser)]
#[command(name = "compare")]
pub struct Arguments {
    /// How much to measure.
    #[arg(long, value_enum, default_value_t = Size::Standard)]
    pub plan: Size,
    /// Write the page, the pictures and the raw figures into this directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub out: Option<PathBuf>,
    /// Also count instructions; needs valgrind.
    #[arg(long)]
    pub instructions: bool,
    /// Measure only locks whose name contains one of these, and the peer of all ratios.
    #[arg(long, value_name = "NAME", value_delimiter = ';')]
    pub locks: Vec<String>,
    /// Run only workloads whose name contains this, for example "8 threads, 2 sessions".
    #[arg(long, value_name = "TEXT")]
    pub workloads: Option<String>,
    /// Make passages through one way in and measure nothing, for use under callgrind.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["out", "instructions", "locks", "workloads"])]
    pub only: Option<String>,
    /// How many passages `--only` makes.
    #[arg(long, value_name = "NUMBER", default_value_t = 20_000, requires = "only")]
    pub passages: u64,
    /// Print the names for `--locks` and for `--only`.
    #[arg(long, exclusive = true)]
    pub list: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Result<Arguments, String> {
        let line = ["compare"].iter().chain(line);
        Arguments::try_parse_from(line).map_err(|error| error.to_string())
    }

    #[test]
    fn the_standard_plan_is_the_default() {
        let arguments = parsed(&[]).unwrap();
        assert_eq!((arguments.plan, arguments.instructions), (Size::Standard, false));
        let arguments = parsed(&["--plan", "quick", "--locks", "std;by hand, fair"]).unwrap();
        assert_eq!(arguments.plan, Size::Quick);
        assert_eq!(arguments.locks, ["std", "by hand, fair"]);
    }

    #[test]
    fn mistakes_are_told() {
        assert!(parsed(&["--plan", "huge"]).unwrap_err().contains("smoke, quick, standard, full"));
        assert!(
            parsed(&["--only", "x", "--out", "y"]).unwrap_err().contains("cannot be used with")
        );
        assert!(parsed(&["--passages", "3"]).unwrap_err().contains("--only"));
        assert!(parsed(&["--fast"]).unwrap_err().contains("--fast"));
    }
}
