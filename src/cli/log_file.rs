//! Creation of the log file: always a new file.

use std::io;
use std::path::Path;

use anyhow::Context as _;

use crate::model::SafeText;
use crate::net::log;
use crate::session::{file_stamp, numbered};

/// Maximum number of numbered log files with the same base name.
const MAX_LOG_FILES: u32 = 1000;

/// Starts the log in the new file `path`, or in a new file if `path` is a folder. A path from the configuration file is the same at every start: if
/// it exists, a number is appended to its name.
///
/// # Errors
/// The file cannot be created or already exists.
pub(super) fn begin(path: &Path, is_default: bool) -> anyhow::Result<()> {
    begin_by(path, is_default, log::begin)
}

fn begin_by(path: &Path, is_default: bool, begin: impl Fn(&Path) -> io::Result<()>) -> anyhow::Result<()> {
    let in_folder = || path.join(format!("dn-top_{}_{}.log", file_stamp(), std::process::id()));
    // Containers that share a folder can run programs with the same pid.
    let (mut file, may_count) = if path.is_dir() { (in_folder(), true) } else { (path.to_owned(), is_default) };
    let first = file.clone();
    let mut begun = begin(&file);
    for number in 2..=MAX_LOG_FILES {
        if !may_count || !begun.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
            break;
        }
        file = numbered(&first, number);
        begun = begin(&file);
    }
    begun.with_context(|| format!("the log cannot be written to {}", SafeText::from_path(&file)))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Returns the names tried if the first `taken` exist, and whether the log was started.
    fn tried(path: &Path, is_default: bool, taken: usize, error: io::ErrorKind) -> (Vec<String>, Result<(), String>) {
        let names = RefCell::new(Vec::new());
        let begin = |file: &Path| {
            names.borrow_mut().push(file.file_name().unwrap_or_default().to_string_lossy().into_owned());
            if names.borrow().len() > taken { Ok(()) } else { Err(error.into()) }
        };
        let begun = begin_by(path, is_default, begin).map_err(|error| error.to_string());
        (names.into_inner(), begun)
    }

    #[test]
    fn taken_default_name_gets_a_number() {
        let exists = io::ErrorKind::AlreadyExists;
        let file = Path::new("/no/such/app.log");
        let refused = Err("the log cannot be written to /no/such/app.log".to_owned());
        assert_eq!(tried(file, false, 0, exists), (vec!["app.log".to_owned()], Ok(())));
        assert_eq!(tried(file, false, 1, exists), (vec!["app.log".to_owned()], refused.clone()));
        assert_eq!(tried(file, true, 2, exists), (["app.log", "app_2.log", "app_3.log"].map(str::to_owned).to_vec(), Ok(())));
        assert_eq!(tried(file, true, 2, io::ErrorKind::PermissionDenied), (vec!["app.log".to_owned()], refused));
        let (names, begun) = tried(file, true, usize::MAX, exists);
        assert_eq!(
            (names.len(), begun),
            (MAX_LOG_FILES as usize, Err(format!("the log cannot be written to /no/such/app_{MAX_LOG_FILES}.log")))
        );
    }

    #[test]
    fn log_in_a_folder_gets_a_default_file_name() {
        let folder = tempfile::tempdir().unwrap();
        let (names, begun) = tried(folder.path(), false, 1, io::ErrorKind::AlreadyExists);
        let pid = std::process::id();
        assert_eq!((names.len(), begun), (2, Ok(())));
        assert!(names[0].starts_with("dn-top_") && names[0].ends_with(&format!("_{pid}.log")), "{names:?}");
        assert_eq!(names[1], names[0].replace(".log", "_2.log"));
    }
}
