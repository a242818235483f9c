//! The overview of the selected process: what asks for a look, facts, and its figures over time.

use std::path::Path;

use ratatui::layout::Rect;

use super::geometry::figure_lines;
use super::view::{Figure, Role};
use crate::analysis::{CounterSnapshot, CountersSnapshot};
use crate::app::action::{Action, Status, capabilities};
use crate::app::list::Row;
use crate::app::pane::Tab;
use crate::app::state::State;
use crate::app::text::wrap;
use crate::app::usage::History;
use crate::app::watches::CurrentFinding;
use crate::model::{Age, ByteRate, Bytes, Capability, Count, CountRate, Process, is_elsewhere, seen_here, temporary_folder};

/// A figure over time.
pub struct Graph {
    /// The title.
    pub title: &'static str,
    /// The newest value with its unit.
    pub now: String,
    /// Writes a value of its axis.
    pub unit: fn(f64) -> String,
    /// What is drawn, one on the other from the bottom. All are as long as each other.
    pub layers: Vec<Layer>,
}

/// A part of a graph.
pub struct Layer {
    /// What it is, with its newest value; empty where the graph has no others.
    pub label: String,
    /// How it looks.
    pub role: Role,
    /// A value for each second, the newest last; NaN where there is none.
    pub values: Vec<f64>,
}

/// All of it.
pub struct Overview<'a> {
    /// The row of the process.
    pub row: &'a Row,
    /// The worst first.
    pub findings: Vec<CurrentFinding>,
    /// Whether its counters are known, so that no finding means that none of them is too high.
    pub is_watched: bool,
    /// What keeps figures from being shown, and what to do about it.
    pub notice: Option<(String, Role)>,
    /// Figures and short facts.
    pub facts: Vec<Figure>,
    /// The command line.
    pub command: &'a str,
    /// The most important first.
    pub graphs: Vec<Graph>,
    /// Facts that are seldom needed, below everything else.
    pub details: Vec<(&'static str, String)>,
    /// What can be done with the process; empty while nothing is known of its runtime.
    pub capabilities: Vec<Capability>,
}

/// Where the parts of the overview are, in lines from its start, as far as they do not follow from what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OverviewLayout {
    /// Lines of the findings, and of the notice below them.
    pub findings: u16,
    /// Lines of the notice.
    pub notice: u16,
    /// Lines of the facts.
    pub facts: u16,
    /// Lines of the command line.
    pub command: u16,
    /// How many graphs are side by side.
    pub columns: u16,
    /// How many rows of them have room on the first page.
    pub rows: u16,
    /// Lines of each.
    pub height: u16,
    /// Lines of the figures whose graphs have no room.
    pub others: u16,
    /// Lines of the details.
    pub details: u16,
    /// How many capabilities are side by side.
    pub capability_columns: u16,
    /// Lines of capabilities, with their heading.
    pub capabilities: u16,
}

/// Columns of a graph at least.
const NARROWEST: u16 = 36;
/// Lines of a graph at least, with its title, and at most.
const LOWEST: u16 = 4;
const HIGHEST: u16 = 14;
/// Columns of a capability.
const CAPABILITY: u16 = 42;
/// Lines of a long text at most, and of the command line where there is little room.
const LONG: usize = 4;
const SHORT: usize = 2;
/// From this height on, there is room for a long command line.
const TALL: u16 = 20;
const COMMAND: &str = "Command";
/// Columns of the names of the details.
pub const LABELS: u16 = 11;

impl OverviewLayout {
    /// All lines.
    pub fn lines(&self) -> usize {
        let page = self.first_page() + self.details + self.capabilities;
        usize::from(page)
    }

    /// Lines up to the details.
    pub fn first_page(&self) -> u16 {
        self.findings + self.notice + self.facts + self.command + self.graphs() + self.others
    }

    /// Lines of the graphs, with their time axis.
    pub fn graphs(&self) -> u16 {
        self.rows * self.height + u16::from(self.rows > 0)
    }

    /// How many graphs are shown.
    pub fn shown(&self) -> usize {
        usize::from(self.rows * self.columns)
    }
}

impl Overview<'_> {
    /// The details, each with its label and its lines.
    pub fn details_in(&self, body: Rect) -> impl Iterator<Item = (&'static str, Vec<String>)> {
        let width = body.width.saturating_sub(2 + LABELS);
        let shown = self.details.iter().filter(move |(label, _)| body.height < TALL || *label != COMMAND);
        shown.map(move |(label, text)| {
            let mut lines = wrap(text, width);
            lines.truncate(LONG);
            (*label, lines)
        })
    }

    /// Lays it out in the body of the details.
    pub fn layout(&self, body: Rect) -> OverviewLayout {
        let width = body.width.saturating_sub(2);
        let wrapped = |text: &str, most: usize| wrap(text, width).len().min(most) as u16;
        // Among many findings the first are the worst.
        let findings = (self.findings.len() as u16).min((body.height / 4).max(1)).max(u16::from(self.is_watched));
        let notice = self.notice.as_ref().map_or(0, |(text, _)| wrapped(text, LONG));
        let facts = figure_lines(&self.facts, Rect { width, height: 24, ..body });
        let command = wrapped(self.command, if body.height >= TALL { LONG } else { SHORT });
        // The time axis has a line.
        let room = body.height.saturating_sub(findings + notice + facts + command + 1);
        let count = self.graphs.len() as u16;
        let most = (width / NARROWEST).clamp(1, 6).min(count.max(1));
        // Rows are filled as evenly as can be.
        let columns = count.div_ceil(count.div_ceil(most).max(1)).max(1);
        let needed = count.div_ceil(columns);
        // Low graphs are better than few.
        let lowest = if room.saturating_sub(1) / LOWEST > 1 { LOWEST } else { LOWEST - 1 };
        let (columns, rows, others) = match needed * lowest <= room {
            true => (columns, needed, 0),
            false => (most, (room.saturating_sub(1) / lowest).min(needed), 1),
        };
        let height = room.saturating_sub(others).checked_div(rows).unwrap_or(0).min(HIGHEST);
        let capability_columns = (width / CAPABILITY).clamp(1, 4);
        let details = self.details_in(body).map(|(_, lines)| lines.len() as u16).sum::<u16>();
        let lines = (self.capabilities.len() as u16).div_ceil(capability_columns);
        OverviewLayout {
            findings,
            notice,
            facts,
            command,
            columns,
            rows,
            height,
            others: if rows == 0 { 0 } else { others },
            // A blank line keeps them apart.
            details: if details > 0 { details + 1 } else { 0 },
            capability_columns,
            capabilities: if lines > 0 { lines + 2 } else { 0 },
        }
    }
}

impl State {
    /// The overview of the selected process.
    pub fn overview(&self) -> Option<Overview<'_>> {
        let row = self.selected()?;
        let process = &row.process;
        let watch = self.watches.of(process.key);
        let counters = watch.and_then(|watch| watch.counters.as_deref());
        const WAITING: (&str, Role) = ("Waiting for the first values of its counters …", Role::Dim);
        let notice = match (process.contact.reason(), watch) {
            (Some(reason), _) => Some((reason.to_owned(), Role::Warning)),
            (None, None) if self.is_to_be_watched() => Some((WAITING.0.to_owned(), WAITING.1)),
            (None, Some(_)) if counters.is_none() => Some((WAITING.0.to_owned(), WAITING.1)),
            (None, None) if row.gone_at.is_none() && Action::Watch.status(self) == Status::Ready => {
                Some(("Not watched: w shows heap, GC, exceptions, thread pool and locks.".to_owned(), Role::Dim))
            }
            _ => None,
        };
        let elapsed = self.pause.as_ref().map_or(self.now.unix_ms, |pause| pause.since.unix_ms);
        let uptime = Age(std::time::Duration::from_millis(elapsed.saturating_sub(process.started_unix_ms)));
        Some(Overview {
            row,
            findings: self.findings_of_selected(),
            is_watched: counters.is_some(),
            notice,
            facts: facts(row, uptime),
            command: &process.command_line,
            graphs: self.graphs(process, counters),
            details: details(process),
            capabilities: capabilities(process),
        })
    }

    /// The tab that shows more of the finding in this line of the screen.
    pub(in crate::app) fn finding_at(&self, y: u16) -> Option<Tab> {
        let body = self.layout().detail?.body;
        let overview = self.overview()?;
        let layout = overview.layout(body);
        let skip = self.details.scroll.min(layout.lines().saturating_sub(usize::from(body.height)));
        let line = usize::from(y.checked_sub(body.y)?) + skip;
        let found = overview.findings.get(line).filter(|_| line < usize::from(layout.findings))?;
        Some(found.finding.tab)
    }

    /// The graphs of the selected process with these titles.
    pub(super) fn graphs_of(&self, titles: &[&str]) -> Vec<Graph> {
        let Some(row) = self.selected() else { return Vec::new() };
        let counters = self.watches.of(row.process.key).and_then(|watch| watch.counters.as_deref());
        let all = self.graphs(&row.process, counters);
        all.into_iter().filter(|graph| titles.contains(&graph.title)).collect()
    }

    fn graphs(&self, process: &Process, counters: Option<&CountersSnapshot>) -> Vec<Graph> {
        let usage = &self.usage;
        let cores = match self.options.processors {
            0 => String::new(),
            1 => " of one core".to_owned(),
            cores => format!(" of a core, {} of {cores}", percent(f64::from(process.usage.cpu_percent.unwrap_or(0.0)) / cores as f64)),
        };
        let single = |title, unit: fn(f64) -> String, role, history: &[(i64, f64)], more: String| {
            let values = seconds(history);
            let now = *values.iter().rev().find(|value| value.is_finite())?;
            Some(Graph { title, now: format!("{}{more}", unit(now)), unit, layers: vec![Layer { label: String::new(), role, values }] })
        };
        let figure = |title, unit, role, counter: Option<&CounterSnapshot>| single(title, unit, role, &history(counter?), String::new());
        let of = |name: &str| counters.and_then(|counters| crate::app::health::named(counters, name));
        let either = |one: &str, other: &str| of(one).or_else(|| of(other));
        let hosting = |name: &str| {
            let mut all = counters?.counters.iter();
            all.find(|counter| counter.group == "Microsoft.AspNetCore.Hosting" && counter.name == name)
        };
        let requests = || {
            let newest = |name| hosting(name).and_then(|counter| counter.value).filter(|value| *value > 0.0);
            let label = |name, text| newest(name).map(|value| format!(", {} {text}", Count(value as u64))).unwrap_or_default();
            let more = format!("{}{}", label("current-requests", "in flight"), label("failed-requests", "failed"));
            single("Requests", rate, Role::Events, &history(hosting("requests-per-second")?), more)
        };
        let bytes: fn(f64) -> String = |value| Bytes(value as u64).to_string();
        let count: fn(f64) -> String = |value| Count(value as u64).to_string();
        [
            single("CPU", percent, Role::Events, &usage.cpu(process.key), cores),
            requests(),
            counters.and_then(heap),
            gc_time(of("time-in-gc"), of("gen-0-gc-count")),
            figure(
                "Allocation rate",
                |value| ByteRate(value).to_string(),
                Role::Bytes,
                either("alloc-rate", "dotnet.gc.heap.total_allocated"),
            ),
            figure("Exceptions", rate, Role::Events, either("exception-count", "dotnet.exceptions")),
            figure("Thread pool queue", count, Role::Bytes, either("threadpool-queue-length", "dotnet.thread_pool.queue.length")),
            figure("Lock contention", rate, Role::Events, either("monitor-lock-contention-count", "dotnet.monitor.lock_contentions")),
            collections(&["gen-0-gc-count", "gen-1-gc-count", "gen-2-gc-count"].map(of)),
            figure("Thread pool threads", count, Role::Bytes, either("threadpool-thread-count", "dotnet.thread_pool.thread.count")),
            figure("Completed work items", rate, Role::Events, of("threadpool-completed-items-count")),
            single("Memory (RSS)", bytes, Role::Bytes, &usage.rss(process.key), String::new()),
            single("Threads", count, Role::Bytes, &usage.threads(process.key), String::new()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn rate(value: f64) -> String {
    CountRate(value).to_string()
}

/// Per cent, with a decimal where that matters.
fn percent(value: f64) -> String {
    if value < 9.95 { format!("{value:.1} %") } else { format!("{value:.0} %") }
}

/// Megabytes of EventCounters have a million bytes.
const MEGABYTE: f64 = 1e6;
/// Seconds without a collection after which no time is spent in them.
const QUIET: usize = 10;
const SECOND: i64 = 1_000_000_000;

/// The history of a counter. The first value of one that only grows can be all since the start of the process.
fn history(counter: &CounterSnapshot) -> History {
    use crate::analysis::CounterKind;
    let skipped = usize::from(counter.kind == CounterKind::Counter).min(counter.history.len().saturating_sub(1));
    let scale = if counter.unit == "MB" { MEGABYTE } else { 1.0 };
    counter.history.iter().skip(skipped).map(|(at, value)| (*at, value * scale)).collect()
}

/// A value for each second up to the newest. A value holds for the time since the one before it.
fn seconds(history: &[(i64, f64)]) -> Vec<f64> {
    const MOST: usize = 300;
    let (Some((first, _)), Some((last, _))) = (history.first(), history.last()) else { return Vec::new() };
    let ago = |at: i64| usize::try_from((last.saturating_sub(at) + SECOND / 2) / SECOND).unwrap_or(0);
    let len = (ago(*first) + 1).min(MOST);
    let mut values = vec![f64::NAN; len];
    let mut end = 0;
    for (place, (at, value)) in history.iter().enumerate().rev() {
        let until = place.checked_sub(1).map_or(ago(*at) + 1, |before| ago(history[before].0)).max(ago(*at) + 1).min(len);
        while end < until {
            values[len - 1 - end] = *value;
            end += 1;
        }
    }
    values
}

/// The sizes of the generations after the last collection, and what was allocated since.
fn heap(counters: &CountersSnapshot) -> Option<Graph> {
    const PARTS: [(&str, &str); 5] =
        [("gen 2", "gen-2-size"), ("LOH", "loh-size"), ("POH", "poh-size"), ("gen 1", "gen-1-size"), ("gen 0", "gen-0-size")];
    let of = |name| crate::app::health::named(counters, name);
    let total = of("gc-heap-size").or_else(|| of("dotnet.gc.last_collection.heap.size"))?;
    let whole = seconds(&history(total));
    let now = Bytes(*whole.last()? as u64).to_string();
    let mut rest = whole.clone();
    let mut layers = Vec::new();
    for (place, (name, counter)) in PARTS.into_iter().enumerate() {
        let Some(counter) = of(counter) else { continue };
        let mut values = seconds(&history(counter));
        // As long as the whole, both up to now.
        values.drain(..values.len().saturating_sub(whole.len()));
        let mut part = vec![f64::NAN; whole.len() - values.len()];
        part.append(&mut values);
        if part.iter().any(|value| *value > 0.0) {
            for (rest, value) in rest.iter_mut().zip(&part) {
                *rest = (*rest - value.max(0.0)).max(0.0);
            }
            let label = format!("{name} {}", Bytes(part.last().map_or(0, |value| *value as u64)));
            layers.push(Layer { label, role: Role::Part(place), values: part });
        }
    }
    let unit = |value: f64| Bytes(value as u64).to_string();
    if layers.is_empty() {
        layers.push(Layer { label: String::new(), role: Role::Bytes, values: whole });
    } else {
        let label = format!("since last GC {}", Bytes(rest.last().map_or(0, |value| *value as u64)));
        layers.push(Layer { label, role: Role::Part(PARTS.len()), values: rest });
    }
    Some(Graph { title: "GC heap", now, unit, layers })
}

/// Per cent of the time in collections. The counter keeps its value until the next collection, however long ago the last was.
fn gc_time(share: Option<&CounterSnapshot>, collections: Option<&CounterSnapshot>) -> Option<Graph> {
    let mut values = seconds(&history(share?));
    let collected = collections.map(|counter| seconds(&history(counter))).unwrap_or_default();
    let len = values.len();
    for (ago, value) in values.iter_mut().rev().enumerate().take(len) {
        let end = collected.len().saturating_sub(ago);
        if end >= QUIET && collected[end - QUIET..end].iter().all(|rate| *rate == 0.0) {
            *value = 0.0;
        }
    }
    let now = percent(*values.last()?);
    Some(Graph { title: "Time in GC", now, unit: percent, layers: vec![Layer { label: String::new(), role: Role::Events, values }] })
}

/// Collections a second by generation. Each generation's counter also counts the collections of older ones.
fn collections(counters: &[Option<&CounterSnapshot>; 3]) -> Option<Graph> {
    let [gen0, gen1, gen2] = counters.map(|counter| counter.map(|counter| seconds(&history(counter))));
    let (gen0, gen1, gen2) = (gen0?, gen1?, gen2?);
    let less = |all: &[f64], older: &[f64]| -> Vec<f64> { all.iter().zip(older).map(|(all, older)| (all - older).max(0.0)).collect() };
    if gen0.len() != gen1.len() || gen1.len() != gen2.len() {
        return None;
    }
    let now = rate(*gen0.last()?);
    let parts = [("gen 2", less(&gen2, &vec![0.0; gen2.len()])), ("gen 1", less(&gen1, &gen2)), ("gen 0", less(&gen0, &gen1))];
    let layers = parts.into_iter().zip([0, 3, 4]).map(|((name, values), place)| Layer {
        label: format!("{name} {}", rate(values.last().copied().unwrap_or(0.0))),
        role: Role::Part(place),
        values,
    });
    Some(Graph { title: "Collections", now, unit: rate, layers: layers.collect() })
}

fn facts(row: &Row, uptime: Age) -> Vec<Figure> {
    let process = &row.process;
    let is_well = process.contact.reason().is_none() && row.gone_at.is_none();
    let state = if row.issue().is_some() {
        Role::Bad
    } else if is_well {
        Role::Good
    } else {
        Role::Warning
    };
    let version = match &process.runtime {
        Some(version) if process.native_aot => format!(".NET {version} (NativeAOT)"),
        Some(version) => format!(".NET {version}"),
        None if process.native_aot => ".NET (NativeAOT)".to_owned(),
        None if process.contact == crate::model::Contact::Ok => ".NET 3.x".to_owned(),
        None => "not known".to_owned(),
    };
    let platform = process.rid.as_deref().or(process.arch.as_deref());
    let runtime = [Some(version.as_str()), platform].into_iter().flatten().collect::<Vec<_>>().join(" · ");
    let pid = match process.ns_pid {
        same if same == process.key.pid => process.key.pid.to_string(),
        other => format!("{} · {other} in its container", process.key.pid),
    };
    let user = process.user.as_deref().map_or_else(|| process.uid.to_string(), |user| format!("{user} ({})", process.uid));
    let mut facts = vec![
        Figure::new("State", row.word(), state),
        Figure::new("Runtime", runtime, Role::Text),
        Figure::new("PID", pid, Role::Text),
        Figure::new("Uptime", uptime, Role::Text),
        Figure::new("User", user, Role::Text),
    ];
    if let Some(container) = &process.container {
        facts.push(Figure::new("Container", container, Role::Text));
    }
    facts.push(Figure::new("Memory", format!("{} RSS", Bytes(process.usage.rss_bytes)), Role::Text));
    facts.push(Figure::new("Threads", process.usage.threads, Role::Text));
    let can = capabilities(process);
    if !can.is_empty() {
        let available = can.iter().filter(|capability| capability.available.is_ok()).count();
        facts.push(Figure::new("Capabilities", format!("{available} of {}", can.len()), Role::Text));
    }
    facts
}

fn details(process: &Process) -> Vec<(&'static str, String)> {
    let mut details = Vec::new();
    if is_elsewhere(process) {
        // What it writes is where it sees it, and we get at it on another way.
        let both = |path: &Path| format!("{} · from here {}", path.display(), seen_here(process, path).display());
        details.push(("Dump folder", both(&temporary_folder(process))));
        details.push(("Perf map", both(Path::new(&format!("/tmp/perf-{}.map", process.ns_pid)))));
    }
    // Above, it is cut where there is little room.
    details.push((COMMAND, process.command_line.to_string()));
    if let Some(socket) = &process.socket {
        details.push(("Socket", socket.to_string_lossy().into_owned()));
    }
    if let Some(cookie) = &process.cookie {
        details.push(("Cookie", cookie.to_string()));
    }
    details
}
