//! CPU limits of control groups.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::control_group::{folders, number, read};
use crate::model::CpuLimit;

/// Returns the limits of the control groups of a process, innermost first, given the text of `/proc/PID/cgroup`; control groups are mounted at
/// `root`.
/// Counts are since the groups were created (kernel, `Documentation/admin-guide/cgroup-v2.rst` and `scheduler/sched-bwc.rst`).
pub(super) fn limits(root: &Path, cgroup: &[u8]) -> Vec<CpuLimit> {
    folders(root, cgroup, "cpu").iter().filter_map(|folder| limit(folder)).collect()
}

fn limit(folder: &Path) -> Option<CpuLimit> {
    let read = |file| read(folder, file);
    let text = read("cpu.max").or_else(|| Some(format!("{} {}", read("cpu.cfs_quota_us")?.trim(), read("cpu.cfs_period_us")?)))?;
    let (quota, period) = text.trim().split_once(' ')?;
    // Unlimited is `max`, or -1.
    let (quota, period) = (quota.parse::<u64>().ok()?, period.parse::<u64>().ok().filter(|period| *period > 0)?);
    let stat = read("cpu.stat")?;
    let group = folder.metadata().ok()?.ino();
    Some(CpuLimit {
        group,
        cores: quota as f64 / period as f64,
        periods: number(&stat, "nr_periods")?,
        throttled: number(&stat, "nr_throttled")?,
    })
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
