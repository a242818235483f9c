//! The dump dialog.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::Offset;
use tui_input::Input;

use crate::app::Now;
use crate::ipc::{DumpKind, TargetPath};
use crate::model::{Age, Bytes, Process};

use super::{Choice, Form, Purpose, Subject};

/// What the dump dialog knows of the target.
#[derive(Debug)]
pub struct Dump {
    rss_bytes: u64,
    user: String,
    contained: bool,
}

/// In the order of [`DumpKind::ALL`].
const OPTIONS: &[(&str, &str)] = &[
    ("mini", "threads, stacks and modules; no heap"),
    ("heap", "mini and the memory of the heaps: for objects and leaks"),
    ("triage", "mini without personal data, as far as the runtime knows it"),
    ("full", "all memory, secrets included"),
];

/// Bytes a second that a dump is written at, by a cautious guess.
const WRITE_RATE: u64 = 200_000_000;

impl Form {
    /// Asks about a dump of a process.
    pub(in crate::app) fn dump(process: &Process, now: Now) -> Self {
        let facts = Dump {
            rss_bytes: process.usage.rss_bytes,
            user: process.user.clone().unwrap_or_else(|| format!("uid {}", process.uid)),
            contained: process.ns_pid != process.key.pid || process.container.is_some(),
        };
        let subject = Subject { key: process.key, name: process.name.clone() };
        let mut form = Self::new(Some(subject), Purpose::Dump(facts));
        form.choice = Some(Choice { label: "Type", options: OPTIONS, at: 1 });
        let name: String = process.name.chars().map(|c| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' }).take(64).collect();
        let directory = temporary_directory(process);
        let path = format!("{}/{name}_{}_{}.dmp", directory.trim_end_matches('/'), process.key.pid, stamp(now));
        form.path = Some(Input::new(path));
        form
    }

    /// The dump that is asked for, or why it cannot be had like this.
    pub(in crate::app) fn dump_request(&self) -> Result<(DumpKind, TargetPath), String> {
        let path = self.path.as_ref().map(|path| path.value().trim()).unwrap_or_default();
        if !path.starts_with('/') {
            return Err("Give the whole path, from / on, as the target sees it.".to_owned());
        }
        if path.ends_with('/') {
            return Err("Give the file's name, too.".to_owned());
        }
        let path = TargetPath::new(path).map_err(|invalid| format!("This path cannot be used: {invalid}."))?;
        Ok((DumpKind::ALL[self.chosen()], path))
    }
}

impl Dump {
    pub(super) fn effects(&self, form: &Form) -> Vec<String> {
        let rss = Bytes(self.rss_bytes);
        let seconds = Duration::from_secs(1 + self.rss_bytes / WRITE_RATE);
        let (time, size) = match DumpKind::ALL[form.chosen()] {
            DumpKind::Mini | DumpKind::Triage => ("about a second".to_owned(), "some megabytes".to_owned()),
            DumpKind::Heap => (format!("up to about {}", Age(seconds)), format!("up to {rss} (its memory)")),
            DumpKind::Full => (format!("about {}", Age(seconds)), format!("{rss} (its memory) or more")),
        };
        let place = if self.contained { ", in its container's file system" } else { "" };
        let armed = form.armed.then(|| "All its memory goes into the file, secrets included. Press again to go on.".to_owned());
        armed
            .into_iter()
            .chain([
                format!("The process stops for {time}, and answers nothing meanwhile."),
                format!("It writes the file itself, as {}, where it sees this path{place}: {size}.", self.user),
            ])
            .collect()
    }
}

/// The directory in which a process keeps its temporary files, as it sees it: there its runtime puts its socket.
fn temporary_directory(process: &Process) -> String {
    let root = format!("/proc/{}/root", process.key.pid);
    let directory = process.socket.as_deref().and_then(Path::parent).map(|path| match path.strip_prefix(&root) {
        Ok(inside) => Path::new("/").join(inside),
        Err(_) => path.to_owned(),
    });
    directory.filter(|path| path.is_absolute()).map_or_else(|| "/tmp".to_owned(), |path| path.to_string_lossy().into_owned())
}

/// Local date and time as in file names, `yyyymmdd_hhmmss`.
fn stamp(now: Now) -> String {
    let time = Timestamp::from_millisecond(now.unix_ms as i64).unwrap_or_default();
    let offset = Offset::from_seconds(now.utc_offset).unwrap_or(Offset::UTC);
    offset.to_datetime(time).strftime("%Y%m%d_%H%M%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::world::process;

    #[test]
    fn stamps_are_local() {
        let stamp = |unix_s: u64, utc_offset| stamp(Now { unix_ms: unix_s * 1000, utc_offset, ..Now::default() });
        assert_eq!(stamp(0, 0), "19700101_000000");
        assert_eq!(stamp(1_709_251_199, 0), "20240229_235959");
        assert_eq!(stamp(1_709_251_199, 3600), "20240301_005959");
    }

    #[test]
    fn dumps_go_where_the_process_keeps_its_temporary_files() {
        let of = |socket: Option<&str>| temporary_directory(&Process { socket: socket.map(Into::into), ..process(42, "a") });
        assert_eq!(of(Some("/run/app/dotnet-diagnostic-42-420-socket")), "/run/app");
        assert_eq!(of(Some("/proc/42/root/var/tmp/dotnet-diagnostic-1-420-socket")), "/var/tmp");
        assert_eq!(of(Some("socket")), "/tmp");
        assert_eq!(of(None), "/tmp");
    }
}
