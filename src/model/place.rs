//! Paths of a target, as it sees them and as they are reached from here.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use super::{OutputName, Process};

/// What stands before a path of the target's to reach it from here: `/proc/PID/root` where it has a file system of its own.
fn prefix(process: &Process) -> Option<PathBuf> {
    let root = PathBuf::from(format!("/proc/{}/root", process.key.pid));
    process.socket.as_ref().filter(|socket| socket.starts_with(&root)).map(|_| root)
}

/// Whether the target sees other files than we do.
pub fn is_elsewhere(process: &Process) -> bool {
    prefix(process).is_some()
}

/// A path of the target's, as it is reached from here.
pub fn seen_here(process: &Process, path: &Path) -> PathBuf {
    match (prefix(process), path.strip_prefix("/")) {
        (Some(root), Ok(path)) => root.join(path),
        _ => path.to_owned(),
    }
}

/// The target's temporary folder as it sees it: where its socket is, unless it is known.
pub fn temporary_folder(process: &Process) -> PathBuf {
    if let Some(folder) = &process.temporary_folder {
        return folder.clone();
    }
    let folder = process.socket.as_deref().and_then(Path::parent).unwrap_or(Path::new("/tmp"));
    match prefix(process).and_then(|root| folder.strip_prefix(root).ok().map(|below| Path::new("/").join(below))) {
        Some(folder) => folder,
        None => folder.to_owned(),
    }
}

/// Local date and time in names of files, `yyyymmdd_hhmmss`, for `strftime`.
pub const FILE_STAMP: &str = "%Y%m%d_%H%M%S";

/// Where a dump goes by default: into the target's temporary folder, under a name with this local date and time where the pattern has them.
pub fn default_dump_path(process: &Process, pattern: &OutputName, stamp: impl Display) -> PathBuf {
    temporary_folder(process).join(pattern.file(&process.name, process.key.pid, stamp, "dmp"))
}

/// The part of a name from outside that is safe in a file name: letters, digits, `.`, `-` and `_`.
pub fn file_stem(name: &str) -> String {
    let clean: String = name.chars().filter(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_')).take(64).collect();
    Some(clean.trim_start_matches(['.', '-'])).filter(|clean| !clean.is_empty()).unwrap_or("dotnet").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProcessKey;

    fn process(socket: &str) -> Process {
        Process { socket: Some(socket.into()), ..Process::new(ProcessKey { pid: 7, started: 1 }) }
    }

    #[test]
    fn names_from_outside_become_plain_file_names() {
        let cases = [
            ("Order.Service", "Order.Service"),
            ("../../etc/passwd", "etcpasswd"),
            ("\u{1b}[31m", "31m"),
            ("", "dotnet"),
            ("..", "dotnet"),
        ];
        for (name, stem) in cases {
            assert_eq!(OutputName::default().file(name, 7, "20231114_221320", "dmp"), format!("{stem}_7_20231114_221320.dmp"));
        }
        assert!(file_stem(&"x".repeat(5000)).len() < 100);
    }

    #[test]
    fn a_container_has_its_own_tree() {
        let inside = process("/proc/7/root/tmp/dotnet-diagnostic-1-9-socket");
        assert_eq!(temporary_folder(&inside), Path::new("/tmp"));
        assert_eq!(seen_here(&inside, Path::new("/tmp/core")), Path::new("/proc/7/root/tmp/core"));
        assert!(is_elsewhere(&inside));

        let beside = process("/var/tmp/dotnet-diagnostic-7-9-socket");
        assert_eq!(temporary_folder(&beside), Path::new("/var/tmp"));
        assert_eq!(seen_here(&beside, Path::new("/tmp/core")), Path::new("/tmp/core"));
        assert!(!is_elsewhere(&beside));
    }
}
