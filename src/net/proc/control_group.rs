//! The control groups of a process, versions 1 and 2.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// Where control groups are mounted.
pub(super) const ROOT: &str = "/sys/fs/cgroup";
/// Maximum number of control groups read, from that of the process upwards.
const MAX_DEPTH: usize = 16;

/// Returns the folders of the control groups of a process that a controller manages, innermost first, given the text of `/proc/PID/cgroup`; control
/// groups are mounted at `root`.
pub(super) fn folders(root: &Path, cgroup: &[u8], controller: &str) -> Vec<PathBuf> {
    let text = String::from_utf8_lossy(cgroup);
    let lines = || text.lines().filter_map(|line| line.split_once(':').and_then(|(_, rest)| rest.split_once(':')));
    // In version 1, each controller has its own tree.
    let first = lines().find(|(controllers, _)| controllers.split(',').any(|other| other == controller));
    let (mount, path) = match first.or_else(|| lines().find(|(controllers, _)| controllers.is_empty())) {
        Some(("", path)) => (root.to_owned(), path),
        Some((controllers, path)) => {
            ([root.join(controller), root.join(controllers)].into_iter().find(|mount| mount.is_dir()).unwrap_or_default(), path)
        }
        None => return Vec::new(),
    };
    let below = Path::new(path.trim_start_matches('/'));
    // A group outside of the mount is shown with `..`.
    // A group that is missing from this mount has other ancestors than those visible here.
    if !below.components().all(|part| matches!(part, Component::Normal(_))) || !mount.join(below).is_dir() {
        return Vec::new();
    }
    below.ancestors().take(MAX_DEPTH).map(|path| mount.join(path)).collect()
}

/// Returns the text of a file of a control group.
pub(super) fn read(folder: &Path, file: &str) -> Option<String> {
    let mut text = String::new();
    File::open(folder.join(file)).ok()?.take(16_384).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Returns a number from the text of a `stat` file, which has a name and a number in each line.
pub(super) fn number(stat: &str, name: &str) -> Option<u64> {
    stat.lines().filter_map(|line| line.split_once(' ')).find(|(key, _)| *key == name)?.1.parse().ok()
}
