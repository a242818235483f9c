//! Paths in a target: as the target sees them, and as they are reachable from dn-top.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use super::{OutputName, Process};

/// Returns the prefix under which a path of the target is reachable: `/proc/PID/root` if it has a different root file system.
fn prefix(process: &Process) -> Option<PathBuf> {
    let root = PathBuf::from(format!("/proc/{}/root", process.key.pid));
    process.socket.as_ref().filter(|socket| socket.starts_with(&root)).map(|_| root)
}

/// Whether the target has a different root file system.
pub fn has_own_root(process: &Process) -> bool {
    prefix(process).is_some()
}

/// Converts a path of the target to one that is reachable from dn-top.
pub fn reachable_path(process: &Process, path: &Path) -> PathBuf {
    match (prefix(process), path.strip_prefix("/")) {
        (Some(root), Ok(path)) => root.join(path),
        _ => path.to_owned(),
    }
}

/// Returns the target's temporary folder, as the target sees it: the known one, or that of its socket.
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

/// `strftime` format of local date and time in file names, `yyyymmdd_hhmmss`.
pub const FILE_STAMP: &str = "%Y%m%d_%H%M%S";

/// Returns the default path of a dump: in the target's temporary folder, with `stamp` as local date and time if the pattern contains it.
pub fn default_dump_path(process: &Process, pattern: &OutputName, stamp: impl Display) -> PathBuf {
    temporary_folder(process).join(pattern.file(&process.name, process.key.pid, stamp, "dmp"))
}

/// Returns the part of an untrusted name that is safe in a file name: letters, digits, `.`, `-` and `_`.
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
    fn untrusted_names_become_safe_file_names() {
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
    fn paths_in_a_container_are_mapped_through_proc_root() {
        let inside = process("/proc/7/root/tmp/dotnet-diagnostic-1-9-socket");
        assert_eq!(temporary_folder(&inside), Path::new("/tmp"));
        assert_eq!(reachable_path(&inside, Path::new("/tmp/core")), Path::new("/proc/7/root/tmp/core"));
        assert!(has_own_root(&inside));

        let beside = process("/var/tmp/dotnet-diagnostic-7-9-socket");
        assert_eq!(temporary_folder(&beside), Path::new("/var/tmp"));
        assert_eq!(reachable_path(&beside, Path::new("/tmp/core")), Path::new("/tmp/core"));
        assert!(!has_own_root(&beside));
        let of_another = process("/proc/71/root/tmp/dotnet-diagnostic-7-9-socket");
        assert!(!has_own_root(&of_another));
    }
}
