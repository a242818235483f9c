//! CPU limits of control groups.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::model::CpuLimit;

/// Maximum number of control groups read, from that of the process upwards.
const MAX_DEPTH: usize = 16;

/// Returns the limits of the control groups of a process, innermost first, given the text of `/proc/PID/cgroup`; control groups are mounted at
/// `root`.
/// Counts are since the groups were created (kernel, `Documentation/admin-guide/cgroup-v2.rst` and `scheduler/sched-bwc.rst`).
pub(super) fn limits(root: &Path, cgroup: &[u8]) -> Vec<CpuLimit> {
    group_folders(root, cgroup, "cpu").iter().filter_map(|folder| limit(folder)).collect()
}

/// Returns the folders of the control groups of a process that a controller manages, innermost first, given the text of `/proc/PID/cgroup`.
pub(super) fn group_folders(root: &Path, cgroup: &[u8], controller: &str) -> Vec<PathBuf> {
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

fn limit(folder: &Path) -> Option<CpuLimit> {
    let read = |name: &str| {
        let mut text = String::new();
        File::open(folder.join(name)).ok()?.take(4096).read_to_string(&mut text).ok()?;
        Some(text)
    };
    let text = read("cpu.max").or_else(|| Some(format!("{} {}", read("cpu.cfs_quota_us")?.trim(), read("cpu.cfs_period_us")?)))?;
    let (quota, period) = text.trim().split_once(' ')?;
    // Unlimited is `max`, or -1.
    let (quota, period) = (quota.parse::<u64>().ok()?, period.parse::<u64>().ok().filter(|period| *period > 0)?);
    let stat = read("cpu.stat")?;
    let of = |name: &str| stat.lines().filter_map(|line| line.split_once(' ')).find(|(key, _)| *key == name)?.1.parse().ok();
    let group = folder.metadata().ok()?.ino();
    Some(CpuLimit { group, cores: quota as f64 / period as f64, periods: of("nr_periods")?, throttled: of("nr_throttled")? })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn group(root: &Path, path: &str, files: &[(&str, &str)]) {
        let folder = root.join(path);
        fs::create_dir_all(&folder).unwrap();
        files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
    }

    #[test]
    fn cgroup_v1_and_v2_limits_are_found() {
        let place = tempfile::tempdir().unwrap();
        let stat = ("cpu.stat", "usage_usec 9\nnr_periods 40\nnr_throttled 38\nthrottled_usec 9\n");
        group(place.path(), "pod/app", &[("cpu.max", "50000 100000\n"), stat]);
        group(place.path(), "pod", &[("cpu.max", "max 100000\n"), stat]);
        let group_of = |path: &str| place.path().join(path).metadata().unwrap().ino();
        let half = CpuLimit { group: group_of("pod/app"), cores: 0.5, periods: 40, throttled: 38 };
        assert_eq!(limits(place.path(), b"0::/pod/app\n"), [half]);
        group(place.path(), "pod", &[("cpu.max", "200000 100000\n"), ("cpu.stat", "nr_periods 7\nnr_throttled 0\n")]);
        assert_eq!(
            limits(place.path(), b"0::/pod/app\n"),
            [half, CpuLimit { group: group_of("pod"), cores: 2.0, periods: 7, throttled: 0 }]
        );
        group(place.path(), "cpu/app", &[("cpu.cfs_quota_us", "50000\n"), ("cpu.cfs_period_us", "100000\n"), stat]);
        group(place.path(), "cpu", &[("cpu.cfs_quota_us", "-1\n"), ("cpu.cfs_period_us", "100000\n"), stat]);
        assert_eq!(limits(place.path(), b"3:memory:/x\n1:cpu,cpuacct:/app\n0::/pod\n"), [CpuLimit { group: group_of("cpu/app"), ..half }]);
    }

    #[test]
    fn invalid_or_foreign_limits_are_ignored() {
        let place = tempfile::tempdir().unwrap();
        let limited = [("cpu.max", "50000 100000\n"), ("cpu.stat", "nr_periods 1\nnr_throttled 1\n")];
        group(place.path(), "", &limited);
        assert_eq!(limits(place.path(), b"0::/of/another/mount\n"), [], "the limit of the root is not its own");
        assert_eq!(limits(place.path(), b"0::/\n").len(), 1);
        limited.iter().for_each(|(name, _)| fs::remove_file(place.path().join(name)).unwrap());
        group(place.path(), "app", &[("cpu.max", "50000 0\n"), ("cpu.stat", "nr_periods 1\nnr_throttled 1\n")]);
        group(place.path(), "cut", &[("cpu.max", "50000 100000\n"), ("cpu.stat", "nr_periods\n")]);
        for text in ["", "0::/app", "0::/cut", "0::/../app", "0::/none", "nonsense", "1:cpu:/app", "0::"] {
            assert_eq!(limits(place.path(), text.as_bytes()), [], "{text}");
        }
        assert_eq!(limits(place.path(), &[b"0::/".as_slice(), &b"a/".repeat(5000)].concat()), []);
    }
}
