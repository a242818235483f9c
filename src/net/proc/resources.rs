//! Memory, threads and open files of a process, with their limits.

use std::path::Path;

use rustix::fs::{AtFlags, readlinkat, statat};

use super::status::field;
use super::{Environ, Proc, control_group, for_each_entry, memory_limit, parse, words};
use crate::model::{Limited, OpenFileKind, OpenFiles, ResourceUse};

/// Number of open files from which the latest are examined.
const MIN_EXAMINED: u64 = 64;
/// Number of descriptors that are examined: the highest numbers, as a leak raises the number of the next one.
const EXAMINED: u64 = 32;
/// Maximum number of open files that are counted one by one.
const MAX_COUNTED: u64 = 65_536;
/// Share of the memory limit that the GC heap may use by default, and the minimum in bytes (.NET documentation, `GCHeapHardLimit`).
const DEFAULT_HEAP_SHARE: (f64, u64) = (0.75, 20 << 20);

impl Proc {
    /// Returns memory, threads and open files of a process. Of another user's process, open files are unknown.
    pub(crate) fn resources(&self, pid: u32) -> ResourceUse {
        let status = self.status(&pid.to_string()).unwrap_or_default();
        let memory =
            if self.is_real() { memory_limit::limits(Path::new(control_group::ROOT), &self.control_groups(pid)) } else { Vec::new() };
        ResourceUse {
            resident: status.bytes(b"VmRSS:"),
            anonymous: status.anonymous(),
            threads: status.number(b"Threads:"),
            disk_waiters: None,
            open_files: self.open_files(pid),
            memory: memory.iter().copied().max_by(|a, b| a.share().total_cmp(&b.share())),
            heap_limit: self.environ(pid).ok().and_then(|environ| heap_limit(&environ, memory.iter().map(|memory| memory.limit).min())),
        }
    }

    fn open_files(&self, pid: u32) -> Option<OpenFiles> {
        let limits = self.read(&format!("{pid}/limits"), 16_384).ok()?;
        // "Max open files    SOFT    HARD    files"; a process is limited by the first.
        let limit = words(field(&limits, b"Max open files")).next().and_then(parse)?;
        let folder = format!("{pid}/fd");
        // The size of the folder is the number of its entries since Linux 6.2, and 0 before.
        let size = statat(&self.directory, &folder, AtFlags::empty()).ok()?.st_size;
        let mut used = if self.is_real() { u64::try_from(size).unwrap_or(0) } else { 0 };
        if used == 0 {
            for_each_entry(&self.directory, &folder, &mut |name, _| {
                used += u64::from(parse::<u32>(name).is_some());
                used < MAX_COUNTED
            })
            .ok()?;
        }
        let kind = if used >= MIN_EXAMINED { self.latest_kind(&folder, used) } else { None };
        Some(OpenFiles { count: Limited { used, limit }, kind })
    }

    /// Returns the kind of most of the latest of `count` descriptors, given their folder. Numbers are reused: the highest are about the count.
    fn latest_kind(&self, folder: &str, count: u64) -> Option<OpenFileKind> {
        let mut counts = [0_u64; OpenFileKind::ALL.len()];
        for number in count.saturating_sub(EXAMINED)..count {
            if let Ok(target) = readlinkat(&self.directory, format!("{folder}/{number}"), Vec::new()) {
                counts[OpenFileKind::of_target(target.as_bytes()) as usize] += 1;
            }
        }
        OpenFileKind::ALL.into_iter().find(|kind| counts[*kind as usize] * 2 > counts.iter().sum())
    }
}

/// Returns the maximum size of the GC heap in bytes, given the environment of the process and its memory limit. A limit in
/// `runtimeconfig.json` is not visible.
fn heap_limit(environ: &Environ, memory: Option<u64>) -> Option<u64> {
    let setting = |name| environ.number(name).filter(|number| *number > 0);
    let share = |share: f64| memory.map(|memory| (memory as f64 * share) as u64);
    setting("GCHeapHardLimit").or_else(|| match setting("GCHeapHardLimitPercent") {
        Some(percent) => share(percent.min(100) as f64 / 100.0),
        None => share(DEFAULT_HEAP_SHARE.0).map(|limit| limit.max(DEFAULT_HEAP_SHARE.1)),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::net::fake_proc::{Fake, FakeProc, fake};

    #[test]
    fn heap_limit_is_configured_or_a_share_of_the_memory_limit() {
        let limit = |text: &str, memory| heap_limit(&Environ::new(text.replace(' ', "\0").into_bytes()), memory);
        let gigabyte = Some(1 << 30);
        for (environ, memory, expected) in [
            ("", None, None),
            ("", gigabyte, Some(805_306_368)),
            ("", Some(10 << 20), Some(20 << 20)),
            ("DOTNET_GCHeapHardLimit=0x6000000", gigabyte, Some(0x600_0000)),
            ("COMPlus_GCHeapHardLimit=6000000", None, Some(0x600_0000)),
            ("DOTNET_GCHeapHardLimit=0", gigabyte, Some(805_306_368)),
            ("DOTNET_GCHeapHardLimit=nonsense", None, None),
            ("DOTNET_GCHeapHardLimitPercent=32", gigabyte, Some(1 << 29)),
            ("DOTNET_GCHeapHardLimitPercent=80", gigabyte, Some(1 << 30)),
            ("DOTNET_GCHeapHardLimitPercent=32", None, None),
        ] {
            assert_eq!(limit(environ, memory), expected, "{environ} {memory:?}");
        }
    }

    #[test]
    fn open_files_and_memory_are_read() {
        let place = FakeProc::new();
        let status = format!("{}Threads:\t37\nRssAnon:\t  2048 kB\nVmSwap:\t 1024 kB\n", fake(7).status);
        place.add(&Fake { status, ..fake(7) });
        let folder = place.path("proc/7");
        fs::create_dir(folder.join("fd")).unwrap();
        let open = |range: std::ops::Range<u32>, target: &str| {
            range.for_each(|number| symlink(target, folder.join("fd").join(number.to_string())).unwrap());
        };
        let proc = Proc::open(&place.path("proc")).unwrap();
        assert_eq!(proc.resources(7).open_files, None, "the limits cannot be read");
        fs::write(
            folder.join("limits"),
            "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 524288               files\n",
        )
        .unwrap();
        open(0..60, "/srv/shop.db");
        let used = proc.resources(7);
        assert_eq!((used.anonymous, used.threads, used.memory, used.heap_limit), (Some(3 << 20), Some(37), None, None));
        let files = |used, kind| Some(OpenFiles { count: Limited { used, limit: 1024 }, kind });
        assert_eq!(used.open_files, files(60, None), "too few to examine");
        open(60..80, "socket:[4242]");
        assert_eq!(proc.resources(7).open_files, files(80, Some(OpenFileKind::Socket)));
        fs::write(folder.join("limits"), "Max open files            unlimited            unlimited            files\n").unwrap();
        assert_eq!(proc.resources(7).open_files, None, "without a limit, none can be reached");
        assert_eq!(proc.resources(8), ResourceUse::default());
    }
}
