//! The threads, next to lock contention and the thread pool.

use std::time::Duration;

use foldhash::HashMap;

use super::cell::nanoseconds;
use super::live::{self, listed, state_of};
use super::quantity::rate;
use super::{Cell, Descriptor, Figure, Fit, Head, Live, Look, Recorded, Role, Rows, Shows, Side, Table, View, at};
use crate::analysis::{Adjustment, ContentionSite, ContentionSnapshot, Counts, SampleCount, SampleFilter, ThreadId, ThreadPoolSnapshot};
use crate::app::action::Action;
use crate::app::top_frames::TopFrame;
use crate::app::{Tab, ThreadRow};
use crate::clr::payload::AdjustmentReason;
use crate::diagnosis::Source;
use crate::model::{Count, CountRate, Counted, CpuThread, Nanoseconds, Percent, Stopwatch};

pub(super) const TAB: Descriptor = Descriptor::new(
    ["Threads", "Thr", "Thr"],
    Shows::Recording(Recorded {
        view,
        sources: &[Source::Contention, Source::ThreadPool],
        live: Some(Live {
            view: live::threads,
            needs_counters: true,
            graphs: &["Thread pool queue", "Lock contention", "Thread pool threads", "Completed work items"],
            recording_adds: "locks, thread pool",
        }),
    }),
);

pub(super) fn view(look: Look<'_>) -> View<'_> {
    let (pool, locks) = (&look.analysis.snapshot.thread_pool, &look.analysis.snapshot.contention);
    let is_pool_known = pool.workers.is_some() || !pool.adjustments.is_empty() || pool.throughput.is_some() || pool.threads_created > 0;
    let mut head = vec![
        if is_pool_known { Head::Figures(pool_figures(pool)) } else { missing(look, "thread pool", Source::ThreadPool) },
        if locks.count > 0 { Head::Figures(lock_figures(look, locks)) } else { missing(look, "locks", Source::Contention) },
    ];
    let rows = look.state.thread_rows().into_iter().skip(1).collect::<Vec<_>>();
    let names: HashMap<_, _> = rows.iter().filter_map(|row| Some((row.thread?.in_process()?, row.name))).collect();
    if let Some(site) = locks.sites.first().filter(|site| !site.method.is_empty()) {
        let held = owner(site, &names).map_or_else(String::new, |(owner, waits)| {
            // In a convoy, the runtime named the owner in an eighth of the waits (.NET 9): the lock had just been released.
            format!(", held by {owner} in {:#}; not every owner is known", Counted(waits, "wait"))
        });
        let text = format!("top lock contention: {} in {}{held}", Nanoseconds(site.wait_ns), site.method);
        head.push(Head::text(text, Role::Text));
    }
    if !rows.is_empty() {
        let methods = Tab::Methods.key(look.state.row_kind());
        let key = look.state.key(Action::Threads);
        // The kernel's samples include CPU times, even if the runtime's are shown here.
        let is_unknown = look.analysis.cpu.is_none() && rows.iter().all(|row| row.usage.is_none());
        let unknown = if is_unknown { ".  No thread states or CPU times were recorded" } else { "" };
        head.push(Head::text(format!("{}{unknown}.  {methods} and {key}: methods of one thread", times(look)), Role::Dim));
    }
    let live = look.state.details.threads.rows().filter(|_| rows.is_empty() && !look.has_ended());
    let is_filtered = !look.state.views.filter(Tab::Threads).is_empty();
    let empty = if is_filtered { "Nothing matches the filter." } else { "" };
    let view = match live {
        Some(threads) => listed(look.state, threads).place(look.state, Tab::Threads).view(empty),
        None => threads(look, rows).place(look.state, Tab::Threads).view(empty),
    };
    let beside = [(locks.count > 0).then(|| sites(look, locks, names).finish()), (!pool.recent.is_empty()).then(|| adjustments(pool))];
    let lists: Vec<_> = beside.into_iter().flatten().collect();
    let workers = look.level_chart("pool workers", |value| format!("{value:.0}"), &pool.workers_over_time);
    let waits = look.sum_chart("lock contention", Role::Events, rate, &locks.count_over_time);
    View {
        head,
        // Figures that were not recorded must not be drawn as zero.
        charts: [pool.workers.map(|_| workers), (locks.count > 0).then_some(waits)].into_iter().flatten().collect(),
        side: (!lists.is_empty()).then(|| Side { lists, wide: 110, ..Side::text(Vec::new()) }),
        ..view
    }
}

/// Describes the times shown for threads.
pub(super) fn times(look: Look<'_>) -> String {
    if look.analysis.cpu_time(true).is_some() {
        return "on-CPU and off-CPU time".to_owned();
    }
    if look.analysis.cpu.as_ref().is_some_and(|cpu| !cpu.threads.is_empty()) {
        return "CPU is exact, from the kernel; WAITING is from samples".to_owned();
    }
    let profile = look.analysis.profile(true);
    match profile.has_cpu_times {
        true => "RUNNING is from samples and CPU times".to_owned(),
        false => may_be_waiting(&profile.count(SampleFilter::ALL)),
    }
}

/// Source of the running time of threads.
pub(super) const ESTIMATED: &str = "CPU time, from samples and CPU times of threads";

/// Describes samples of threads whose CPU times are unknown.
pub(super) fn may_be_waiting(counts: &Counts<'_>) -> String {
    format!("{} may be of waiting threads", Counted(counts.samples().running, "sample"))
}

fn missing(look: Look<'_>, what: &str, source: Source) -> Head {
    let (text, role) = look.missing(source);
    Head::text(format!("{what}: {text}"), role)
}

fn pool_figures(pool: &ThreadPoolSnapshot) -> Vec<Figure> {
    let mut all = vec![Figure::new("thread pool", "", Role::Text)];
    if let Some(workers) = pool.workers {
        all.push(Figure::new("workers", workers, Role::Strong));
    }
    if let Some((min, max)) = pool.bounds {
        all.push(Figure::new("min/max", format!("{min}/{max}"), Role::Text));
    }
    if let Some(throughput) = pool.throughput {
        all.push(Figure::new("completed", CountRate(throughput), Role::Strong));
    }
    let is_starved = if pool.starvations > 0 { Role::Warning } else { Role::Text };
    all.push(Figure::new("starvation events", pool.starvations, is_starved));
    if pool.blocked > 0 {
        all.push(Figure::new("blocked on tasks", pool.blocked, Role::Text));
    }
    let changes: u64 = pool.adjustments.iter().map(|(_, count)| count).sum();
    all.push(Figure::new("thread adjustments", Count(changes), Role::Text));
    if pool.work_items.0 > 0 {
        all.push(Figure::new("queued", Count(pool.work_items.0.saturating_sub(pool.work_items.1)), Role::Strong));
    }
    all.extend(Figure::if_any("threads created", pool.threads_created, Role::Text));
    all
}

fn lock_figures(look: Look<'_>, locks: &ContentionSnapshot) -> Vec<Figure> {
    let mut all = vec![
        Figure::new("lock contention", Count(locks.count), Role::Strong),
        Figure::new("rate", CountRate(look.rate(locks.count, locks.rate)), Role::Strong),
    ];
    if !look.has_ended() {
        all.push(Figure::new("waiting now", locks.waiting, if locks.waiting > 1 { Role::Warning } else { Role::Text }));
    } else if locks.waiting > 0 {
        all.push(Figure::new("unfinished", locks.waiting, Role::Warning));
    }
    all.push(Figure::new("max", Nanoseconds(locks.longest_ns), Role::Strong));
    all.extend(locks.quantiles_ns.into_iter().flat_map(Figure::quantiles));
    all.push(Figure::new("total", Nanoseconds(locks.wait_ns), Role::Text));
    all.push(Figure::new("max concurrent", locks.most_waiting, Role::Text));
    all
}

/// Returns the thread for which threads waited longest, as it held the lock (its id, and its name if it has one), and the number of these waits.
fn owner(site: &ContentionSite, names: &HashMap<u64, &str>) -> Option<(String, u64)> {
    let (thread, waits) = site.owners.first()?;
    let name = names.get(thread).filter(|name| !name.is_empty());
    Some((name.map_or_else(|| thread.to_string(), |name| format!("{thread} {name}")), *waits))
}

/// Lists the methods that wait for locks.
fn sites<'a>(look: Look<'a>, locks: &'a ContentionSnapshot, names: HashMap<u64, &'a str>) -> Table<'a, &'a ContentionSite> {
    let has_owners = locks.sites.iter().any(|site| !site.owners.is_empty());
    Table::new(locks.sites.iter().collect(), |site: &&ContentionSite| site.method.clone())
        .column("WAITED", 7, Fit::Right, |site| Cell::new(Nanoseconds(site.wait_ns), Role::Strong))
        .column("WAITS", 6, Fit::Right, |site| Cell::new(Count(site.count), Role::Events))
        .column_if(locks.waiting > 0, "UNFINISHED", 10, Fit::Right, |site| {
            Cell::known((site.unfinished > 0).then_some(Count(site.unfinished)), Role::Warning)
        })
        .column("MAX", 7, Fit::Right, |site| Cell::new(Nanoseconds(site.longest_ns), Role::Text))
        .column_if(has_owners, "A HOLDER", 16, Fit::Left, move |site| Cell::known(owner(site, &names).map(|(owner, _)| owner), Role::Text))
        .column("WAITING METHOD", 0, Fit::Name, move |site| look.method(&site.method))
}

/// Lists the latest adjustments of the number of workers.
fn adjustments(pool: &ThreadPoolSnapshot) -> Rows<'_> {
    Table::new(pool.recent.iter().collect(), |change: &&Adjustment| change.at.to_string())
        .column("AT", 7, Fit::Right, |change| Cell::new(at(change.at), Role::Dim))
        .column("WORKERS", 7, Fit::Right, |change| Cell::new(change.workers, Role::Bytes))
        .column("COMPLETED", 9, Fit::Right, |change| Cell::known(change.throughput.map(CountRate), Role::Text))
        .column("REASON", 0, Fit::Left, |change| {
            let starved = matches!(change.reason, AdjustmentReason::STARVATION | AdjustmentReason::COOPERATIVE_BLOCKING);
            Cell::new(change.reason.name(), if starved { Role::Warning } else { Role::Text })
        })
        .finish()
}

/// Lists the threads, with their on-CPU and off-CPU times if the kernel samples them.
pub(super) fn threads<'a>(look: Look<'a>, rows: Vec<ThreadRow<'a>>) -> Table<'a, ThreadRow<'a>> {
    let Some(cpu) = look.analysis.cpu_time(true) else { return sampled(look, rows) };
    let all = nanoseconds(cpu.threads.iter().map(|thread| thread.cpu).sum()).0;
    // Exact if the kernel reports it.
    let of = move |row: &ThreadRow<'_>| match row.thread {
        None if all > 0 => all,
        _ => row.cpu.map_or(row.samples.all_ns(), |cpu| nanoseconds(cpu.cpu).0),
    };
    let shown = look.state.shown_thread();
    Table::new(rows, ThreadRow::id)
        .column("CPU", 7, Fit::Right, move |row| Cell::new(Nanoseconds(of(row)), Role::Strong))
        .column("THREAD", 8, Fit::Right, move |row| thread_number(row, shown))
        .column("NAME", 15, Fit::Left, thread_name)
        .shrinking_to(10)
        .column_if(!cpu.recent.is_zero(), "NOW%", 6, Fit::Right, move |row| core_share(row.samples.recent_ns, cpu.recent, Role::Events))
        .column("CPU%", 6, Fit::Right, move |row| core_share(of(row), cpu.elapsed, Role::Text))
        .column("OFF CPU", 0, Fit::Parts, |row| {
            let parts = row.cpu.map(CpuThread::off_cpu).unwrap_or_default();
            let words = parts.iter().map(|(wait, share)| format!("{wait} {}", Percent(*share)));
            Cell::new(words.collect::<Vec<_>>().join(", "), Role::Dim)
        })
        .column("TOP FRAME", 40, Fit::Name, top_frame_of)
        .shrinking_to(14)
        .growing_to(64)
        .column("SAMPLED", 9, Fit::Right, move |row| sample_age(row.top, look.has_ended()))
}

/// Returns the top frame of a thread; the row for all threads has none.
fn top_frame_of(row: &ThreadRow<'_>) -> Cell {
    if row.thread.is_some() { top_frame(row.top) } else { Cell::EMPTY }
}

pub(super) fn top_frame(top: Option<TopFrame<'_>>) -> Cell {
    top.map_or(Cell::Unknown, |frame| Cell::new(frame.name, if frame.is_current() { Role::Text } else { Role::Dim }))
}

/// Returns the age of the top frame: at present, or at the end of a recording that has ended.
pub(super) fn sample_age(top: Option<TopFrame<'_>>, has_ended: bool) -> Cell {
    let Some(frame) = top else { return Cell::EMPTY };
    let text = match (frame.is_current(), has_ended) {
        (true, true) => "at end".to_owned(),
        (true, false) => "now".to_owned(),
        (false, true) => format!("-{}", Stopwatch(frame.age)),
        (false, false) => format!("{} ago", Stopwatch(frame.age)),
    };
    Cell::Number(frame.age.as_secs_f64(), text.into(), Role::Dim)
}

/// Returns CPU time as a share of one core, in percent.
pub(super) fn core_share(ns: u64, time: Duration, role: Role) -> Cell {
    let percent = ns as f64 * 100.0 / time.as_nanos().max(1) as f64;
    Cell::Number(percent, format!("{percent:.1}").into(), role)
}

fn thread_number(row: &ThreadRow<'_>, shown: Option<ThreadId>) -> Cell {
    match row.thread {
        Some(ThreadId::OTHERS) | None => Cell::EMPTY,
        thread if thread == shown => Cell::known(thread, Role::Accent),
        thread => Cell::known(thread, Role::Dim),
    }
}

fn thread_name(row: &ThreadRow<'_>) -> Cell {
    match row.thread {
        None => Cell::new("all threads", Role::Accent),
        Some(ThreadId::OTHERS) => Cell::new("threads beyond the limit, together", Role::Dim),
        Some(_) => Cell::new(row.name, Role::Text),
    }
}

/// Lists the threads with their sampled times and CPU usage.
fn sampled<'a>(look: Look<'a>, rows: Vec<ThreadRow<'a>>) -> Table<'a, ThreadRow<'a>> {
    let most = rows.iter().filter(|row| row.thread.is_some()).map(|row| row.samples.all_ns()).max().unwrap_or(1).max(1) as f64;
    let shown = look.state.shown_thread();
    // If there are several processes, thread ids are prefixed with the process id.
    let width = rows.iter().filter_map(|row| row.thread).map(|thread| thread.to_string().len()).max().unwrap_or(0).clamp(8, 18) as u16;
    let running = if look.analysis.profile(true).has_cpu_times { ("RUNNING", 7) } else { ("RUN/WAIT", 8) };
    let time = |samples: u64, ns: u64, role: Role| Cell::known((samples > 0).then_some(Nanoseconds(ns)), role);
    // The kernel's times, if there are any, replace those that are estimated from samples.
    let (is_exact, has_usage) = (rows.iter().any(|row| row.cpu.is_some()), rows.iter().any(|row| row.usage.is_some()));
    let all: Duration = rows.iter().filter_map(|row| row.cpu).map(|cpu| cpu.cpu).sum();
    let exact = move |row: &ThreadRow<'_>| {
        let cpu = if row.thread.is_some() { row.cpu.map(|cpu| cpu.cpu) } else { Some(all) };
        Cell::known(cpu.map(nanoseconds), Role::Strong)
    };
    let used = |row: &ThreadRow<'_>| Cell::known(row.usage.map(|usage| nanoseconds(usage.cpu)), Role::Bytes);
    Table::new(rows, ThreadRow::id)
        .column_if(is_exact, "CPU", 7, Fit::Right, exact)
        .column_if(!is_exact, running.0, running.1, Fit::Right, move |row| time(row.samples.running, row.samples.running_ns, Role::Strong))
        .column("WAITING", 7, Fit::Right, move |row| time(row.samples.waiting, row.samples.waiting_ns, Role::Text))
        .column("THREAD", width, Fit::Right, move |row| thread_number(row, shown))
        .column("NAME", 15, Fit::Left, thread_name)
        .shrinking_to(10)
        .growing_to(32)
        .column("TOP FRAME", 0, Fit::Name, top_frame_of)
        .column_if(has_usage && !is_exact, "CPU", 7, Fit::Right, used)
        .column_if(has_usage && !look.has_ended(), "STATE", 9, Fit::Left, |row| row.usage.map_or(Cell::EMPTY, state_of))
        .column("SAMPLED", 9, Fit::Right, move |row| sample_age(row.top, look.has_ended()))
        .column("", 12, Fit::Left, move |row| match row.thread {
            Some(_) => {
                let SampleCount { running_ns, waiting_ns, .. } = row.samples;
                Cell::Meter(vec![(running_ns as f64 / most, Role::Events), (waiting_ns as f64 / most, Role::Border)])
            }
            None => Cell::EMPTY,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::test_app::{TestApp, recording};
    use crate::model::{CpuTime, Phase, Recording, RecordingAnalysis, ThreadUse};

    #[test]
    fn thread_states_and_cpu_times_are_shown_or_reported_missing() {
        let shown = |threads: Vec<ThreadUse>, cpu| {
            let mut app = TestApp::populated(120, 40);
            app.press("t");
            let analysis = Some(RecordingAnalysis { cpu, ..(*crate::ui::tests::analysis::scripted()).clone() }.into());
            app.report(Recording { analysis, threads: threads.into(), ..recording(1, 5, Phase::Recording) });
            app.press("⏎6");
            let view = app.state.view_of(Tab::Threads).unwrap();
            let texts = view.head.iter().filter_map(|head| if let Head::Text(pieces) = head { Some(pieces[0].0.clone()) } else { None });
            let is_stated = texts.collect::<Vec<_>>().iter().any(|text| text.contains("No thread states or CPU times were recorded"));
            let titles: Vec<_> = view.list.columns().iter().map(|column| column.title).collect();
            (is_stated, ["STATE", "CPU"].map(|title| titles.contains(&title)))
        };
        let thread = ThreadUse { thread: 11, name: "a".into(), cpu: Duration::from_secs(1), runnable: None, state: 'S' };
        assert_eq!(shown(vec![thread], None), (false, [true; 2]));
        assert_eq!(shown(Vec::new(), None), (true, [false; 2]));
        assert!(!shown(Vec::new(), Some(CpuTime::default())).0, "the kernel's samples contain them");
    }

    #[test]
    fn thread_that_held_the_lock_longest_is_named() {
        let mut app = TestApp::populated(160, 50);
        app.press("t");
        let mut analysis = (*crate::ui::tests::analysis::scripted()).clone();
        let site = ContentionSite {
            method: "Shop.Pay".to_owned(),
            count: 9,
            unfinished: 0,
            wait_ns: 5_000_000_000,
            longest_ns: 1_000_000_000,
            owners: vec![(11, 4), (7, 5)],
        };
        (analysis.snapshot.contention.count, analysis.snapshot.contention.sites) = (9, vec![site]);
        app.report(Recording { analysis: Some(analysis.into()), ..recording(1, 5, Phase::Recording) });
        app.press("⏎6");
        let view = app.state.view_of(Tab::Threads).unwrap();
        let texts = view.head.iter().filter_map(|head| if let Head::Text(pieces) = head { Some(pieces[0].0.clone()) } else { None });
        let texts: Vec<_> = texts.collect();
        let is_named = |text: &String| {
            text.starts_with("top lock contention: 5.0 s in Shop.Pay, held by 11") && text.ends_with("in 4 waits; not every owner is known")
        };
        assert!(texts.iter().any(is_named), "{texts:?}");
    }
}
