//! The overview of the selected process: findings, facts, and graphs.

mod collections;
mod graphs;
mod layout;
mod requests;

use std::path::Path;
use std::time::Duration;

pub(super) use graphs::rates;
pub use graphs::{Graph, Layer, Mark};
pub use layout::{LABEL_WIDTH, MIN_GRAPH_WIDTH, OverviewLayout};
pub(super) use requests::histogram;

use super::{Descriptor, Figure, Role, Shows};
use crate::app::action::Run::Emit;
use crate::app::action::{Action, Context, ENTER, Entry, Status, details, places, ready_if};
use crate::app::update::panes;
use crate::app::{AutoWatch, CurrentFinding, Row, RowKind, State, Tab, Watch};
use crate::diagnosis::MIN_BUSY_CORES;
use crate::model::{Age, Bytes, Capability, Count, Process, RunState, has_own_root, reachable_path, temporary_folder};

pub(super) const TAB: Descriptor = Descriptor {
    titles: ["Overview", "Over", "Ovw"],
    is_shown: RowKind::is_process,
    context: |_| Context::Overview,
    actions: ACTIONS,
    shows: Shows::Itself,
};

const ACTIONS: &[Entry] =
    &[details(Action::Open, &[ENTER], "why", "Show what is behind the selected finding.", places::OVERVIEW, Emit(panes::open_finding))
        .hint(86)
        .when(|state| ready_if(!state.findings_of_selected().is_empty()))];

/// The content of the overview.
pub struct Overview<'a> {
    pub row: &'a Row,
    /// The worst first.
    pub findings: Vec<CurrentFinding>,
    /// Index of the selected finding.
    pub selected: usize,
    /// Whether counters are available, so that no findings means no counter is above its threshold.
    pub is_watched: bool,
    /// Why figures are missing, and what to do about it.
    pub notice: Option<(String, Role)>,
    /// Figures and short facts.
    pub facts: Vec<Figure>,
    /// The most important first.
    pub graphs: Vec<Graph>,
    /// Rarely needed facts, below everything else.
    pub details: Vec<(&'static str, String)>,
    /// Capabilities; empty while nothing is known about the runtime.
    pub capabilities: Vec<Capability>,
}

/// Consecutive scans in which an idle process uses less than 1 % of a core on average.
const IDLE_SCANS: usize = 5;
/// A process that ends sooner has hardly been selected when it is gone.
const SHORT_LIFE: Duration = Duration::from_secs(10);

impl State {
    /// Returns the overview of the selected process.
    pub fn overview(&self) -> Option<Overview<'_>> {
        let row = self.selected()?;
        let process = &row.process;
        let watch = self.selected_watch();
        let counters = watch.and_then(|watch| watch.counters.as_deref());
        let findings = self.findings_of_selected();
        let selected = findings.iter().position(|found| Some(found.finding.kind()) == self.details.finding).unwrap_or(0);
        Some(Overview {
            row,
            findings,
            selected,
            is_watched: counters.is_some() && row.exited_at.is_none() && !row.is_stopped(),
            notice: self.notice(row),
            facts: facts(row, watch, self.uptime(row)),
            graphs: self.graphs(process, counters),
            details: further_facts(process),
            capabilities: capabilities(process),
        })
    }

    /// Returns whether the selected process has hardly used CPU for some seconds: it has no work, or is blocked.
    pub fn is_idle(&self) -> bool {
        let usage = self.list.selected().map(|key| self.usage.cpu(key)).unwrap_or_default();
        let recent = usage.len().checked_sub(IDLE_SCANS).map(|first| &usage[first..]);
        // On a busy machine, a process that has work waits for CPUs.
        let has_work = self.selected_watch().and_then(|watch| watch.cpu?.waiting()).is_some_and(|waiting| waiting >= MIN_BUSY_CORES);
        !has_work && recent.is_some_and(|recent| recent.iter().map(|(_, percent)| percent).sum::<f64>() < recent.len() as f64)
    }

    /// Returns which keys show more about a process without findings.
    pub fn advice_without_findings(&self) -> Vec<String> {
        let mut keys = [(Action::WhySlow, ": find out why it is slow"), (Action::Stacks, ": what every thread is doing")];
        if self.is_idle() {
            // Asynchronous work that waits has no thread.
            keys = [(Action::Stacks, ": what threads wait for"), (Action::WalkHeap, ": async methods")];
        }
        let ready = keys.into_iter().filter(|(action, _)| action.status(self) == Status::Ready);
        ready.map(|(action, shows)| format!("{}{shows}", self.key(action))).collect()
    }

    /// Returns why figures are missing, and what to do about it.
    fn notice(&self, row: &Row) -> Option<(String, Role)> {
        const STARTING: &str = "Watched 10 s after its start: a session can hang a program that starts on .NET 8 or older.";
        const WAITING: &str = "Waiting for the first values of its counters …";
        let process = &row.process;
        if row.exited_at.is_some() {
            let is_recorded = self.recordings.shown().iter().any(|tracked| tracked.value.key == process.key);
            let has_jobs = is_recorded || self.jobs.newest_first().any(|job| job.subject.key == process.key);
            let place = format!(" Its recordings and dumps are in {}: Jobs.", Tab::Jobs.key(self.row_kind()));
            let port = if self.uptime(row).0 < SHORT_LIFE {
                format!(
                    " It ran only briefly: {} serves a diagnostic port, to record such a process from its start.",
                    self.key(Action::Port)
                )
            } else {
                String::new()
            };
            return Some((format!("The process has ended.{}{port}", if has_jobs { &place } else { "" }), Role::Warning));
        }
        if let Some(reason) = row.stop_reason() {
            return Some((reason, Role::Warning));
        }
        if let Some(reason) = process.contact.reason() {
            let job = self.jobs.newest_first().find(|job| job.subject.key == process.key && job.ended.is_none());
            let progress = job.and_then(|job| job.percent).map(|percent| format!(", about {percent} % so far")).unwrap_or_default();
            return Some((format!("{reason}{progress}"), Role::Warning));
        }
        if process.run_state == RunState::Suspended {
            let is_ready = |action: Action| action.status(self) == Status::Ready;
            let resume = is_ready(Action::Resume).then(|| format!("{} resumes it", self.key(Action::Resume)));
            let record = (!row.recording && is_ready(Action::Trace))
                .then(|| format!("{} before that records it from its first instruction", self.key(Action::Trace)));
            let advice = resume.into_iter().chain(record).collect::<Vec<_>>().join("; ");
            let text = if advice.is_empty() { "Suspended at startup.".to_owned() } else { format!("Suspended at startup: {advice}.") };
            return Some((text, Role::Accent));
        }
        let watch = self.watches.of(process.key);
        let retry = self.watch_retry().map(Age);
        let text = match (watch, retry) {
            (None, _) if self.is_watch_delayed() => STARTING.to_owned(),
            (None, _) if self.will_be_watched() => WAITING.to_owned(),
            (None, Some(retry)) => {
                format!("Not watched: it failed, {} shows why. The next attempt is in {retry}.", self.key(Action::Messages))
            }
            (Some(watch), _) if watch.counters.is_none() => WAITING.to_owned(),
            (None, None) if Action::Watch.status(self) == Status::Ready => {
                format!("Not watched: {} shows heap, GC, exceptions, thread pool and locks.", self.key(Action::Watch))
            }
            (None, None) if self.options.readonly && self.options.watch == AutoWatch::Never => {
                "Not watched: dn-top was started with --readonly. --watch selected allows it.".to_owned()
            }
            _ => return None,
        };
        Some((text, Role::Dim))
    }

    /// Returns the tab for the finding at this screen line.
    pub(in crate::app) fn finding_at(&self, y: u16) -> Option<Tab> {
        let body = self.layout().detail?.body;
        let overview = self.overview()?;
        let line = usize::from(y.checked_sub(body.y)?) + overview.scroll_bar(body, self.details.scroll).offset();
        let found = overview.findings.get(line).filter(|_| line < usize::from(overview.layout(body).findings))?;
        Some(found.finding.tab)
    }

    /// Returns the graphs of the selected process with these titles.
    pub(super) fn graphs_of(&self, titles: &[&str]) -> Vec<Graph> {
        let Some(row) = self.selected() else { return Vec::new() };
        let counters = self.selected_watch().and_then(|watch| watch.counters.as_deref());
        let all = self.graphs(&row.process, counters);
        all.into_iter().filter(|graph| titles.contains(&graph.title)).collect()
    }
}

/// Returns the capability table of a process; empty while nothing is known about its runtime.
fn capabilities(process: &Process) -> Vec<Capability> {
    process.known_capabilities().map(|known| Capability::table(&known)).unwrap_or_default()
}

fn facts(row: &Row, watch: Option<&Watch>, uptime: Age) -> Vec<Figure> {
    let process = &row.process;
    let (_, role, state) = row.process_state();
    let version = match &process.runtime {
        Some(version) if process.native_aot => format!(".NET {version} (NativeAOT)"),
        Some(version) => format!(".NET {version}"),
        None if process.native_aot => ".NET (NativeAOT)".to_owned(),
        None if process.contact == crate::model::Contact::Ok => ".NET 3.x".to_owned(),
        None => "unknown".to_owned(),
    };
    let platform = process.rid.as_deref().or(process.arch.as_deref());
    let runtime = [Some(version.as_str()), platform].into_iter().flatten().collect::<Vec<_>>().join(" · ");
    let pid = match process.ns_pid {
        same if same == process.key.pid => process.key.pid.to_string(),
        other => format!("{} · {other} in its container", process.key.pid),
    };
    let user = process.user.as_deref().map_or_else(|| process.uid.to_string(), |user| format!("{user} ({})", process.uid));
    let mut facts = vec![
        Figure::new("State", state, role),
        Figure::new("Runtime", runtime, Role::Text),
        Figure::new("PID", pid, Role::Text),
        Figure::new("Uptime", uptime, Role::Text),
        Figure::new("User", user, Role::Text),
    ];
    if let Some(container) = &process.container {
        facts.push(Figure::new("Container", container, Role::Text));
    }
    if process.usage.rss_bytes > 0 {
        facts.push(Figure::new(MEMORY, format!("{} RSS", Bytes(process.usage.rss_bytes)), Role::Text));
    }
    if process.usage.threads > 0 {
        facts.push(Figure::new(THREADS, process.usage.threads, Role::Text));
    }
    let resources = watch.and_then(|watch| watch.resources.latest()).unwrap_or_default();
    if let Some(files) = resources.open_files {
        facts.push(Figure::new("Open files", Count(files.count.used), Role::Text));
    }
    if let Some(memory) = resources.memory {
        facts.push(Figure::new("Memory limit", Bytes(memory.limit), Role::Text));
    }
    if let Some(limit) = watch.and_then(|watch| watch.cpu?.constraints.lowest) {
        facts.push(Figure::new("CPU limit", limit, Role::Text));
    }
    let can = capabilities(process);
    if !can.is_empty() {
        let available = can.iter().filter(|capability| capability.available.is_ok()).count();
        facts.push(Figure::new("Capabilities", format!("{available} of {}", can.len()), Role::Text));
    }
    facts
}

const MEMORY: &str = "Memory";
const MEMORY_GRAPH: &str = "Memory (RSS)";
const THREADS: &str = "Threads";
/// Labels of the facts whose value also has a graph, with the title of the graph.
const FACTS_WITH_GRAPH: [(&str, &str); 2] = [(MEMORY, MEMORY_GRAPH), (THREADS, THREADS)];

/// Label of the detail that is shown above the graphs if there is room.
const COMMAND: &str = "Command";

fn further_facts(process: &Process) -> Vec<(&'static str, String)> {
    let mut details = Vec::new();
    if has_own_root(process) {
        // The process writes to the path as it sees it; we reach the file through another path.
        let both = |path: &Path| format!("{} · from here {}", path.display(), reachable_path(process, path).display());
        details.push(("Dump folder", both(&temporary_folder(process))));
        details.push(("Perf map", both(Path::new(&format!("/tmp/perf-{}.map", process.ns_pid)))));
    }
    // The one above may be truncated.
    details.push((COMMAND, process.command_line.to_string()));
    if let Some(socket) = &process.socket {
        details.push(("Socket", socket.to_string_lossy().into_owned()));
    }
    if let Some(cookie) = &process.cookie {
        details.push(("Cookie", cookie.to_string()));
    }
    details
}
