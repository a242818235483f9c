//! Memory limits of control groups.

use std::path::Path;

use super::control_group;
use crate::model::Limited;

/// Limits from here on are none: that of version 1 is unlimited at about 2⁶³ bytes.
const UNLIMITED: u64 = 1 << 60;
/// Share of a limit from which it is determined how much of the used memory is page cache, which takes the kernel longer.
const EXAMINED_SHARE: f64 = 0.5;

/// Returns memory in use and limit of the control groups of a process, innermost first, given the text of `/proc/PID/cgroup`; control groups
/// are mounted at `root`. Like the runtime and container tools, it does not count inactive file pages, which the kernel drops when it needs
/// memory (kernel, `Documentation/admin-guide/cgroup-v2.rst` and `cgroup-v1/memory.rst`).
pub(super) fn limits(root: &Path, cgroup: &[u8]) -> Vec<Limited> {
    control_group::folders(root, cgroup, "memory").iter().filter_map(|folder| limit(folder)).collect()
}

fn limit(folder: &Path) -> Option<Limited> {
    let read = |file| control_group::read(folder, file);
    let number = |name| read(name)?.trim().parse::<u64>().ok();
    let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes")).filter(|limit| (1..UNLIMITED).contains(limit))?;
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    let used = Limited { used, limit };
    if used.share() < EXAMINED_SHARE {
        return Some(used);
    }
    let stat = read("memory.stat").unwrap_or_default();
    let of = |name| control_group::number(&stat, name);
    // Version 1 counts subgroups separately.
    let inactive = of("total_inactive_file").or_else(|| of("inactive_file")).unwrap_or(0);
    Some(Limited { used: used.used.saturating_sub(inactive), limit })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn cgroup_v1_and_v2_memory_limits_are_found() {
        let place = tempfile::tempdir().unwrap();
        let group = |path: &str, files: &[(&str, &str)]| {
            let folder = place.path().join(path);
            fs::create_dir_all(&folder).unwrap();
            files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
        };
        let of = |text: &str| limits(place.path(), text.as_bytes());
        let stat = ("memory.stat", "anon 1\nfile 9\ninactive_file 30\n");
        group("pod/app", &[("memory.max", "200\n"), ("memory.current", "180\n"), stat]);
        group("pod", &[("memory.max", "max\n"), ("memory.current", "190\n"), stat]);
        assert_eq!(of("0::/pod/app\n"), [Limited { used: 150, limit: 200 }], "without inactive pages");
        group("pod", &[("memory.max", "1000\n")]);
        assert_eq!(of("0::/pod/app\n"), [Limited { used: 150, limit: 200 }, Limited { used: 190, limit: 1000 }], "far from the limit");
        let stat = ("memory.stat", "inactive_file 1\ntotal_inactive_file 40\n");
        group("memory/app", &[("memory.limit_in_bytes", "100\n"), ("memory.usage_in_bytes", "90\n"), stat]);
        group("memory", &[("memory.limit_in_bytes", "9223372036854771712\n"), ("memory.usage_in_bytes", "900\n")]);
        assert_eq!(of("4:memory:/app\n1:cpu:/x\n0::/pod/app\n"), [Limited { used: 50, limit: 100 }]);
        group("pod/app", &[("memory.max", "0\n")]);
        for text in ["0::/pod/app\n", "0::/none\n", "", "0::/../pod"] {
            assert!(of(text).iter().all(|limited| limited.limit == 1000), "{text}");
        }
    }
}
