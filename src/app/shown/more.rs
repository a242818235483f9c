//! What is shown of log messages, requests and the like, compilation, assemblies.

use crate::analysis::{Assembly, LogMessage, OperationSnapshot, SlowMethod};
use crate::app::more::Section;
use crate::app::pane::Tab;
use crate::app::state::State;

impl State {
    /// The section that is shown: the one that was chosen, else the first that has something.
    pub fn section(&self) -> Option<Section> {
        let snapshot = &self.findings()?.snapshot;
        let has = |section: &Section| section.count(snapshot) > 0;
        self.views.section.filter(has).or_else(|| Section::ALL.into_iter().find(has))
    }

    /// The next section that has something.
    pub(in crate::app) fn next_section(&mut self) {
        let Some(shown) = self.section() else { return };
        let Some(snapshot) = self.findings().map(|findings| &findings.snapshot) else { return };
        let others = Section::ALL.into_iter().cycle().skip_while(|section| *section != shown).skip(1);
        let next = others.take(Section::ALL.len()).find(|section| section.count(snapshot) > 0);
        self.views.section = next;
        self.views.first(Tab::More);
    }

    /// The latest log messages that the filter lets through, newest first.
    pub fn log_messages(&self) -> Vec<&LogMessage> {
        let all = self.findings().map(|findings| findings.snapshot.logs.recent.as_slice()).unwrap_or_default();
        all.iter().filter(|message| self.passes([&message.logger, &message.text])).collect()
    }

    /// Operations that the filter lets through, those that took most time first.
    pub fn operations(&self) -> Vec<&OperationSnapshot> {
        let all = self.findings().map(|findings| findings.snapshot.activities.operations.as_slice()).unwrap_or_default();
        let mut shown: Vec<_> = all.iter().filter(|operation| self.passes([&operation.provider, &operation.name])).collect();
        let time = |operation: &OperationSnapshot| operation.mean_ns.unwrap_or(0.0) * operation.ended as f64;
        shown.sort_by(|a, b| time(b).total_cmp(&time(a)).then(b.started.cmp(&a.started)));
        shown
    }

    /// The methods that took longest to compile and that the filter lets through.
    pub fn slow_methods(&self) -> Vec<&SlowMethod> {
        let time = self.findings().and_then(|findings| findings.snapshot.jit.time.as_ref());
        let all = time.map(|time| time.slowest.as_slice()).unwrap_or_default();
        all.iter().filter(|method| self.passes([&method.name, ""])).collect()
    }

    /// The assemblies that the filter lets through: those that came meanwhile first, the latest before the others.
    pub fn assemblies(&self) -> Vec<&Assembly> {
        let all = self.findings().map(|findings| findings.snapshot.assemblies.loaded.as_slice()).unwrap_or_default();
        let mut shown: Vec<_> = all.iter().filter(|assembly| self.passes([&assembly.full_name, ""])).collect();
        shown.sort_by_key(|assembly| std::cmp::Reverse(assembly.at));
        shown
    }

    /// The lines of the shown section, by what tells them apart.
    pub(in crate::app) fn section_names(&self) -> Vec<String> {
        match self.section() {
            Some(Section::Logs) => {
                self.log_messages().iter().map(|message| format!("{} {} {}", message.at, message.thread, message.text)).collect()
            }
            Some(Section::Activities) => {
                self.operations().iter().map(|operation| format!("{} {}", operation.provider, operation.name)).collect()
            }
            Some(Section::Compilation) => self.slow_methods().iter().map(|method| format!("{} {}", method.name, method.at)).collect(),
            Some(Section::Assemblies) => self.assemblies().iter().map(|assembly| assembly.full_name.clone()).collect(),
            None => Vec::new(),
        }
    }

    /// What is selected, and what to call it.
    pub(in crate::app) fn shown_of_section(&self, at: usize) -> Option<(&'static str, String)> {
        Some(match self.section()? {
            Section::Logs => {
                let message = *self.log_messages().get(at)?;
                ("message", format!("{}: {}\n{}", message.logger, message.text, message.exception))
            }
            Section::Activities => ("operation", self.operations().get(at)?.name.clone()),
            Section::Compilation => ("method", self.slow_methods().get(at)?.name.clone()),
            Section::Assemblies => ("assembly", self.assemblies().get(at)?.full_name.clone()),
        })
    }
}
