//! The dump dialog.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::ipc::{CommandCode, DumpFlags, DumpKind, DumpRequest, TargetPath};
use crate::model::{Age, Bytes, Process, SafeText, check_file_name, has_own_root, reachable_path};

use super::{Form, Purpose, Question, Subject};
use crate::app::Effect;

/// The target of the dump dialog.
#[derive(Debug)]
pub struct Dump {
    /// The larger of resident and writable memory: a dump also contains writable memory that was never touched.
    bytes: u64,
    user: SafeText,
    /// The process, if its file system view differs from ours.
    elsewhere: Option<Box<Process>>,
    free_space: Option<FreeSpace>,
}

/// The free space in the folder that was entered last.
#[derive(Debug)]
struct FreeSpace {
    folder: PathBuf,
    /// `None` until the answer arrives, or if it is not known.
    bytes: Option<u64>,
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

/// Space for a dump without a heap, in bytes: 2 MB with .NET Core 3.1, 7 MB with .NET 10, and more with many threads.
const SMALL_DUMP_BYTES: u64 = 10_000_000;

impl Form {
    /// Creates the form for dumping a process, proposing the path `file`.
    pub(in crate::app) fn dump(process: &Process, file: &Path) -> Self {
        let facts = Dump {
            bytes: process.usage.heap_dump_bytes(),
            user: process.user.clone().unwrap_or_else(|| format!("uid {}", process.uid).into()),
            elsewhere: has_own_root(process).then(|| Box::new(process.clone())),
            free_space: None,
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

    /// Requests the free space in the folder of a dump, unless it was requested before.
    pub(in crate::app) fn request_free_space(&mut self) -> Option<Effect> {
        let path = target_path(self.typed(PATH)).ok().filter(|_| matches!(self.purpose, Purpose::Dump(_)))?;
        let Purpose::Dump(dump) = &mut self.purpose else { return None };
        let folder = Path::new(path.as_str()).parent()?.to_owned();
        if dump.free_space.as_ref().is_some_and(|known| known.folder == folder) {
            return None;
        }
        dump.free_space = Some(FreeSpace { folder: folder.clone(), bytes: None });
        let here = dump.elsewhere.as_ref().map_or_else(|| folder.clone(), |process| reachable_path(process, &folder));
        Some(Effect::FindFreeSpace { folder, here })
    }

    /// Shows the free space in a folder, if it is still the one that was entered.
    pub(in crate::app) fn show_free_space(&mut self, folder: &Path, bytes: Option<u64>) {
        if let Purpose::Dump(Dump { free_space: Some(known), .. }) = &mut self.purpose
            && known.folder == folder
        {
            known.bytes = bytes;
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
    /// Returns the free space in the folder that was entered last, in bytes, if it is known.
    fn free_bytes(&self) -> Option<u64> {
        self.free_space.as_ref()?.bytes
    }

    /// Returns a warning if the dump is not expected to fit into the folder.
    pub(super) fn warning(&self, form: &Form) -> Option<String> {
        let expected = match DumpKind::ALL[form.chosen(KIND)] {
            DumpKind::Mini | DumpKind::Triage => SMALL_DUMP_BYTES,
            DumpKind::Heap | DumpKind::Full => self.bytes,
        };
        let FreeSpace { folder, .. } = self.free_space.as_ref()?;
        let free = self.free_bytes().filter(|free| *free < expected)?;
        let folder = SafeText::new(&folder.to_string_lossy());
        Some(format!(
            "Only {} are free in {folder}: this dump will probably not fit. Choose another folder or a smaller type.",
            Bytes(free)
        ))
    }

    pub(super) fn effects(&self, form: &Form) -> Vec<String> {
        let bytes = Bytes(self.bytes);
        let seconds = Duration::from_secs(1 + self.bytes / WRITE_RATE);
        let (time, size) = match DumpKind::ALL[form.chosen(KIND)] {
            DumpKind::Mini | DumpKind::Triage => ("about a second".to_owned(), "some megabytes".to_owned()),
            DumpKind::Heap => (format!("about {}", Age(seconds)), format!("about {bytes}")),
            DumpKind::Full => (format!("about {}", Age(seconds)), format!("{bytes} or more")),
        };
        let path = form.typed(PATH);
        let here = self.elsewhere.as_ref().map(|process| reachable_path(process, path.as_ref()));
        let free = self.free_bytes().filter(|_| self.warning(form).is_none());
        let free = free.map(|free| format!("; {} are free there", Bytes(free))).unwrap_or_default();
        let place = here.map(|here| format!(" in its container; from here that is {}", here.display())).unwrap_or_default();
        let pressed_once =
            form.pressed_once.then(|| "The file will contain all its memory, secrets included. Press again to continue.".to_owned());
        pressed_once
            .into_iter()
            .chain([
                format!("The process is stopped for {time} and answers no requests."),
                format!("It writes the file itself, as {}, to this path{place}: {size}{free}.", self.user),
            ])
            .collect()
    }
}
