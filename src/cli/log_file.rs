//! Where the log goes: a new file, whatever there is already.

use std::io;
use std::path::Path;

use anyhow::Context as _;

use crate::model::SafeText;
use crate::net::log;
use crate::session::{file_stamp, numbered};

/// Logs that may lie beside one another.
const MOST: u32 = 1000;

/// Begins the log in this new file, or in a new file in this folder. A path out of the configuration file is that of every start: where it is taken, a number is
/// put behind the name.
///
/// # Errors
/// The file cannot be made, or there is one already.
pub(super) fn begin(path: &Path, is_default: bool) -> anyhow::Result<()> {
    let in_folder = || path.join(format!("dn-top_{}_{}.log", file_stamp(), std::process::id()));
    // In containers, programs of the same pid may share a folder.
    let (mut file, may_count) = if path.is_dir() { (in_folder(), true) } else { (path.to_owned(), is_default) };
    let first = file.clone();
    let mut begun = log::begin(&file);
    for number in 2..=MOST {
        if !may_count || !begun.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
            break;
        }
        file = numbered(&first, number);
        begun = log::begin(&file);
    }
    begun.with_context(|| format!("the log cannot be written to {}", SafeText::from_path(&file)))
}
