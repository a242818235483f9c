//! The perf map dialog.

use std::path::PathBuf;

use crate::ipc::PerfMapKind;
use crate::model::{Process, has_own_root, reachable_path};

use super::{Form, Purpose, Question, Subject};

/// The target of the perf map dialog.
#[derive(Debug)]
pub struct PerfMap {
    ns_pid: u32,
    known: Option<PerfMapKind>,
    /// The target's temporary directory as seen from here, if that differs.
    folder: Option<PathBuf>,
}

const KINDS: [Option<PerfMapKind>; 4] = [Some(PerfMapKind::PerfMap), Some(PerfMapKind::JitDump), Some(PerfMapKind::All), None];

const OPTIONS: &[(&str, &str)] = &[
    ("on: perf map", "names of compiled methods, for perf report"),
    ("on: jit dump", "their code as well, for perf inject"),
    ("on: both", "perf map and jit dump"),
    ("off", "stop writing; the files stay"),
];

impl Form {
    /// Creates the form for the perf map of a process; `known` is the kind that dn-top has enabled.
    pub(in crate::app) fn perf_map(process: &Process, known: Option<PerfMapKind>) -> Self {
        let kind = Question::choice("Perf map", OPTIONS, if known.is_some() { KINDS.len() - 1 } else { 0 });
        let folder = has_own_root(process).then(|| reachable_path(process, "/tmp".as_ref()));
        let purpose = Purpose::PerfMap(PerfMap { ns_pid: process.ns_pid, known, folder });
        Self::new(purpose, Some(Subject::of(process)), "Perf map", &["No", "Yes"], Vec::new(), vec![kind])
    }

    /// Returns the kind to enable, or `None` to disable it.
    pub(in crate::app) fn perf_map_request(&self) -> Option<PerfMapKind> {
        KINDS[self.chosen(0)]
    }
}

impl PerfMap {
    pub(super) fn effects(&self, form: &Form) -> Vec<String> {
        let pid = self.ns_pid;
        let files = match KINDS[form.chosen(0)] {
            Some(PerfMapKind::PerfMap) => format!("perf-{pid}.map"),
            Some(PerfMapKind::JitDump) => format!("jit-{pid}.dump"),
            Some(PerfMapKind::All) => format!("perf-{pid}.map and jit-{pid}.dump"),
            None => {
                let known = match self.known {
                    Some(_) => "dn-top turned it on before.",
                    None => "dn-top did not turn it on; a startup setting or another tool may have.",
                };
                return vec!["The runtime stops writing names. The files stay.".to_owned(), known.to_owned()];
            }
        };
        let here = self.folder.as_ref().map(|folder| format!(" (from here {})", folder.display())).unwrap_or_default();
        vec![
            format!("The runtime writes {files} to /tmp{here}, or to its DOTNET_PerfMapJitDumpPath, until this is turned off."),
            "Every method it compiles from now on costs a little more time and disk.".to_owned(),
        ]
    }
}
