//! The dump dialog.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::ipc::{CommandCode, DumpFlags, DumpKind, DumpRequest, TargetPath};
use crate::model::{Age, Bytes, FreeSpace, Process, SafeText, Usage, check_file_name, has_own_root, reachable_path};

use super::{Form, Purpose, Question, Subject};
use crate::app::Effect;

/// The target of the dump dialog.
#[derive(Debug)]
pub struct Dump {
    usage: Usage,
    user: SafeText,
    /// The process, if its file system view differs from ours.
    elsewhere: Option<Box<Process>>,
    /// The folder that was entered last, with its free space; that is `None` until the answer arrives, or if it is not known.
    folder: Option<(PathBuf, Option<FreeSpace>)>,
}

/// Same order as [`DumpKind::ALL`].
const OPTIONS: &[(&str, &str)] = &[
    ("mini", "threads, stacks and modules; no heap"),
    ("heap", "mini and the memory of the heaps: for objects and leaks"),
    ("triage", "mini with personal data removed, as far as the runtime can"),
    ("full", "all memory, secrets included"),
];

const EXTRA_OPTIONS: &[(&str, &str)] = &[
    ("nothing", "only the dump"),
    ("crash report", "a JSON file beside it: threads, stacks, modules"),
    ("log", "createdump logs to the target's console"),
    ("both", "a crash report, and a log on the target's console"),
];

/// Question indices.
const KIND: usize = 0;
const PATH: usize = 1;
const FLAGS: usize = 2;

/// Conservative estimate of the write rate of a dump, in bytes per second.
const WRITE_RATE: u64 = 200_000_000;

impl Form {
    /// Creates the form for dumping a process, proposing the path `file`.
    pub(in crate::app) fn dump(process: &Process, file: &Path) -> Self {
        let facts = Dump {
            usage: process.usage,
            user: process.user.clone().unwrap_or_else(|| format!("uid {}", process.uid).into()),
            elsewhere: has_own_root(process).then(|| Box::new(process.clone())),
            folder: None,
        };
        let needs = process.capabilities().unsupported_reason(CommandCode::GenerateCoreDump2);
        let questions = vec![
            Question::choice("Type", OPTIONS, 1),
            Question::text("Path", file.to_string_lossy(), ""),
            Question::choice("Also", EXTRA_OPTIONS, 0).refused(needs.map(str::to_owned)),
        ];
        Self::new(Purpose::Dump(facts), Some(Subject::of(process)), "Dump", &["No", "Yes, dump"], Vec::new(), questions)
    }

    /// Returns the requested dump, or the invalid field and the reason.
    pub(in crate::app) fn dump_request(&self) -> Result<DumpRequest, (usize, String)> {
        let path = target_path(self.typed(PATH)).map_err(|problem| (PATH, problem))?;
        check_file_name(path.as_str().as_ref(), "dmp").map_err(|wrong| (PATH, format!("{wrong}.")))?;
        let also = self.chosen(FLAGS);
        let flags = DumpFlags { crash_report: also & 1 != 0, log: also & 2 != 0, ..DumpFlags::default() };
        Ok(DumpRequest { path, kind: DumpKind::ALL[self.chosen(KIND)], flags })
    }

    /// Requests the free space in the folder of a dump, unless it is that of the last request.
    pub(in crate::app) fn request_free_space(&mut self) -> Option<Effect> {
        let path = target_path(self.typed(PATH)).ok().filter(|_| matches!(self.purpose, Purpose::Dump(_)))?;
        let key = self.subject.as_ref()?.key;
        let Purpose::Dump(dump) = &mut self.purpose else { return None };
        let folder = Path::new(path.as_str()).parent()?.to_owned();
        if dump.folder.as_ref().is_some_and(|(known, _)| *known == folder) {
            return None;
        }
        dump.folder = Some((folder.clone(), None));
        let here = dump.elsewhere.as_ref().map_or_else(|| folder.clone(), |process| reachable_path(process, &folder));
        Some(Effect::FindFreeSpace { key, folder, here })
    }

    /// Shows the free space in a folder, if it is still the one that was entered.
    pub(in crate::app) fn show_free_space(&mut self, folder: &Path, space: Option<FreeSpace>) {
        if let Purpose::Dump(Dump { folder: Some((entered, known)), .. }) = &mut self.purpose
            && entered == folder
        {
            *known = space;
        }
    }
}

/// Validates a file path as seen by the target.
pub(super) fn target_path(path: &str) -> Result<TargetPath, String> {
    if !path.starts_with('/') {
        return Err("Enter an absolute path in the target's file system.".to_owned());
    }
    if path.ends_with('/') {
        return Err("Enter a file name, too.".to_owned());
    }
    TargetPath::new(path).map_err(|invalid| format!("This path cannot be used: {invalid}."))
}

impl Dump {
    /// Returns a warning if the dump is not expected to fit into the folder, or its program into the memory limit.
    pub(super) fn warning(&self, form: &Form) -> Option<String> {
        let (folder, space) = self.folder.as_ref()?;
        let space = (*space)?;
        let FreeSpace { bytes, is_memory, .. } = space;
        if bytes >= self.usage.dump_bytes(DumpKind::ALL[form.chosen(KIND)]) {
            return space.dump_warning().map(|warning| format!("The {warning}."));
        }
        let (folder, bytes) = (SafeText::from_path(folder), Bytes(bytes));
        Some(if is_memory {
            format!(
                "{folder} is in memory, of which the limit of the process leaves {bytes}: the kernel would kill it during this dump. Choose a folder on a disk or a smaller type."
            )
        } else {
            format!("Only {bytes} are free in {folder}: this dump will probably not fit. Choose another folder or a smaller type.")
        })
    }

    pub(super) fn effects(&self, form: &Form) -> Vec<String> {
        let kind = DumpKind::ALL[form.chosen(KIND)];
        let bytes = self.usage.dump_bytes(kind);
        let (seconds, bytes) = (Duration::from_secs(1 + bytes / WRITE_RATE), Bytes(bytes));
        let (time, size) = match kind {
            DumpKind::Mini | DumpKind::Triage => ("about a second".to_owned(), "some megabytes".to_owned()),
            DumpKind::Heap => (format!("about {}", Age(seconds)), format!("about {bytes}")),
            DumpKind::Full => (format!("about {}", Age(seconds)), format!("{bytes} or more")),
        };
        let path = form.typed(PATH);
        let here = self.elsewhere.as_ref().map(|process| reachable_path(process, path.as_ref()));
        let free = self.folder.as_ref().and_then(|(_, space)| *space).filter(|_| self.warning(form).is_none());
        let free = free.map(|free| format!("; {} are free there", Bytes(free.bytes))).unwrap_or_default();
        let place = here.map(|here| format!(" in its container; from here that is {}", here.display())).unwrap_or_default();
        let pressed_once =
            form.pressed_once.then(|| "The file will contain all its memory, secrets included. Press again to continue.".to_owned());
        pressed_once
            .into_iter()
            .chain([
                format!("The process is stopped for {time}, even if dn-top ends, and answers no requests."),
                format!("It writes the file itself, as {}, to this path{place}: {size}{free}.", self.user),
            ])
            .collect()
    }
}
