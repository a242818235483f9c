//! Where the log goes: a new file, whatever there is already.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::net::log;
use crate::session::file_stamp;

/// Logs that may lie beside one another.
const MOST: u32 = 1000;

/// Begins the log in this new file, or in a new file in this folder. A path out of the configuration file is that of every start: where it is taken, a number is
/// put behind the name.
///
/// # Errors
/// The file cannot be made, or there is one already.
pub(super) fn begin(path: &Path, is_default: bool) -> anyhow::Result<()> {
    let in_folder = || path.join(format!("dn-top_{}_{}.log", file_stamp(), std::process::id()));
    let first = if path.is_dir() { in_folder() } else { path.to_owned() };
    let mut begun = log::begin(&first);
    for number in 2..=MOST {
        match &begun {
            Err(error) if is_default && error.kind() == io::ErrorKind::AlreadyExists => begun = log::begin(&numbered(&first, number)),
            _ => break,
        }
    }
    begun.with_context(|| format!("the log cannot be written to {}", first.display()))
}

/// `dn-top_2.log` beside `dn-top.log`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("_{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_goes_before_the_extension() {
        for (path, second) in [("a/dn-top.log", "a/dn-top_2.log"), ("log", "log_2"), ("/x/.log", "/x/.log_2"), ("a.b.log", "a.b_2.log")] {
            assert_eq!(numbered(Path::new(path), 2), Path::new(second));
        }
    }
}
