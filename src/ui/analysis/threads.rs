//! Waits for locks, and the thread pool.

use ratatui::layout::Rect;

use crate::analysis::{ContentionSnapshot, ThreadPoolSnapshot};
use crate::app::{Source, Tab};
use crate::clr::payload::AdjustmentReason;
use crate::model::{Count, CountRate, Nanoseconds, Stopwatch};

use super::super::canvas::Canvas;
use super::gc::chart_height;
use super::grid::{Grid, number, text};
use super::panel::{Figure, History, figures, histories};
use super::{Look, below, beside, nothing, sampled_threads, split};

pub(super) fn draw(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect) {
    let theme = canvas.theme;
    let (pool, locks) = (&look.findings.snapshot.thread_pool, &look.findings.snapshot.contention);
    let used = label(canvas, area, "thread pool");
    let head = indented(area, used);
    let lines =
        if has_pool(pool) { figures(canvas, head, &pool_figures(canvas, pool)) } else { nothing(canvas, look, Source::ThreadPool, head) };
    let area = below(area, lines.max(1));
    let used = label(canvas, area, "locks");
    let head = indented(area, used);
    let lines = if locks.count > 0 {
        figures(canvas, head, &lock_figures(canvas, look, locks))
    } else {
        nothing(canvas, look, Source::Contention, head)
    };
    let area = below(area, lines.max(1));
    if locks.count == 0 && pool.recent.is_empty() {
        return sampled(canvas, look, area);
    }
    let (charts, lists) = split(area, chart_height(area.height));
    let workers = History {
        title: "pool workers",
        style: theme.bytes,
        unit: |value| format!("{value:.0}"),
        line: &pool.workers_over_time,
        stays: true,
    };
    let waits = History {
        title: "waits for locks",
        style: theme.events,
        unit: |value| CountRate(value).to_string(),
        line: &locks.count_over_time,
        stays: false,
    };
    // What nobody told is not drawn as nothing.
    let curves: Vec<_> = [pool.workers.map(|_| workers), (locks.count > 0).then_some(waits)].into_iter().flatten().collect();
    let (charts, lists) = if curves.is_empty() { split(area, 0) } else { (charts, lists) };
    histories(canvas, look, charts, &curves);
    match (locks.count > 0, pool.recent.is_empty(), lists.width) {
        (true, false, 90..) => {
            let (left, right) = beside(lists, lists.width * 3 / 5);
            sites(canvas, look, locks, left);
            adjustments(canvas, pool, right);
        }
        (true, ..) => sites(canvas, look, locks, lists),
        _ => adjustments(canvas, pool, lists),
    }
}

/// What each thread does, where nothing else fills the room.
fn sampled(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect) {
    if look.findings.profile.is_empty() {
        return;
    }
    let used = label(canvas, area, "threads");
    let head = indented(area, used);
    // Of a file's threads /proc knows nothing any more.
    let cpu = if look.state.shows_files() { "" } else { "; CPU from /proc" };
    let methods = Tab::Methods.key(look.state.shows_files());
    canvas.text(head.x, head.y, head.width, &format!("thread time{cpu}.  {methods} and s: the methods of one"), canvas.theme.dim);
    sampled_threads::draw(canvas, look, Tab::Threads, below(area, 1));
}

/// What a line of figures is about. Says how wide it is.
fn label(canvas: &mut Canvas<'_>, area: Rect, text: &str) -> u16 {
    canvas.text(area.x, area.y, area.width.min(13), text, canvas.theme.accent);
    13
}

fn indented(area: Rect, columns: u16) -> Rect {
    let columns = columns.min(area.width);
    Rect { x: area.x + columns, width: area.width - columns, ..area }
}

fn has_pool(pool: &ThreadPoolSnapshot) -> bool {
    pool.workers.is_some() || !pool.adjustments.is_empty() || pool.throughput.is_some() || pool.threads_created > 0
}

fn pool_figures(canvas: &Canvas<'_>, pool: &ThreadPoolSnapshot) -> Vec<Figure> {
    let theme = canvas.theme;
    let mut all = Vec::new();
    if let Some(workers) = pool.workers {
        all.push(("workers", workers.to_string(), theme.strong));
    }
    if let Some((fewest, most)) = pool.bounds {
        all.push(("bounds", format!("{fewest} to {most}"), theme.text));
    }
    if let Some(throughput) = pool.throughput {
        all.push(("done", CountRate(throughput).to_string(), theme.strong));
    }
    let starved = if pool.starvations > 0 { theme.warn } else { theme.text };
    all.push(("starved", format!("{} times", pool.starvations), starved));
    if pool.blocked > 0 {
        all.push(("waited for tasks", format!("{} at a time", pool.blocked), theme.text));
    }
    let changes: u64 = pool.adjustments.iter().map(|(_, count)| count).sum();
    all.push(("adjusted", format!("{} times", Count(changes)), theme.text));
    if pool.work_items.0 > 0 {
        all.push(("queued", Count(pool.work_items.0.saturating_sub(pool.work_items.1)).to_string(), theme.strong));
    }
    if pool.threads_created > 0 {
        all.push(("threads created", Count(pool.threads_created).to_string(), theme.text));
    }
    all
}

fn lock_figures(canvas: &Canvas<'_>, look: &Look<'_>, locks: &ContentionSnapshot) -> Vec<Figure> {
    let theme = canvas.theme;
    let mut all = vec![
        ("waits", Count(locks.count).to_string(), theme.strong),
        ("rate", CountRate(look.rate(locks.count, locks.rate)).to_string(), theme.strong),
    ];
    if !look.over() {
        all.push(("waiting now", locks.waiting.to_string(), if locks.waiting > 1 { theme.warn } else { theme.text }));
    } else if locks.waiting > 0 {
        all.push(("unfinished", locks.waiting.to_string(), theme.warn));
    }
    all.push(("max", Nanoseconds(locks.longest_ns).to_string(), theme.strong));
    if let Some([half, most, _]) = locks.quantiles_ns {
        all.extend([("p95", Nanoseconds(most).to_string(), theme.text), ("p50", Nanoseconds(half).to_string(), theme.text)]);
    }
    all.push(("waited", Nanoseconds(locks.wait_ns).to_string(), theme.text));
    all.push(("most at a time", locks.most_waiting.to_string(), theme.text));
    all
}

/// Where threads wait for locks.
fn sites(canvas: &mut Canvas<'_>, look: &Look<'_>, locks: &ContentionSnapshot, area: Rect) {
    let theme = canvas.theme;
    let unfinished = locks.waiting > 0;
    let columns = [
        Some(number("WAITED", 7)),
        Some(number("WAITS", 6)),
        unfinished.then_some(number("UNFINISHED", 10)),
        Some(number("MAX", 7)),
        Some(text("METHOD THAT TAKES THE LOCK", 0)),
    ];
    let columns: Vec<_> = columns.into_iter().flatten().collect();
    let grid = Grid::new(canvas, area, &columns);
    let cursor = look.state.view_cursor(Tab::Threads);
    let lines = grid.lines();
    for (site, y) in locks.sites[grid.window(cursor, locks.sites.len())].iter().zip(lines.y..lines.bottom()) {
        grid.value(canvas, "WAITED", y, Nanoseconds(site.wait_ns), theme.strong);
        grid.value(canvas, "WAITS", y, Count(site.count), theme.events);
        if site.unfinished > 0 {
            grid.value(canvas, "UNFINISHED", y, Count(site.unfinished), theme.warn);
        }
        grid.value(canvas, "MAX", y, Nanoseconds(site.longest_ns), theme.text);
        let Some((x, room)) = grid.place("METHOD THAT TAKES THE LOCK") else { continue };
        match site.method.as_str() {
            "" => canvas.text(x, y, room, "(came without a stack)", theme.dim),
            name if name.starts_with("0x") => {
                canvas.foreign(x, y, room, &format!("{name} {}", super::frame_name::unknown(look)), theme.dim)
            }
            name => super::frame_name::write(canvas, x, y, room, name, theme.text),
        };
    }
    grid.finish(canvas, look.state, cursor, locks.sites.len());
}

/// How the pool changed its size lately.
fn adjustments(canvas: &mut Canvas<'_>, pool: &ThreadPoolSnapshot, area: Rect) {
    let theme = canvas.theme;
    let grid = Grid::new(canvas, area, &[number("AT", 7), number("WORKERS", 7), number("DONE", 7), text("WHY", 0)]);
    let lines = grid.lines();
    for (change, y) in pool.recent.iter().zip(lines.y..lines.bottom()) {
        let at = Stopwatch(std::time::Duration::from_nanos(u64::try_from(change.at).unwrap_or(0)));
        grid.value(canvas, "AT", y, at, theme.dim);
        grid.value(canvas, "WORKERS", y, change.workers, theme.bytes);
        match change.throughput {
            Some(throughput) => grid.value(canvas, "DONE", y, CountRate(throughput), theme.text),
            None => grid.value(canvas, "DONE", y, theme.glyphs.none, theme.dim),
        }
        let starved = matches!(change.reason, AdjustmentReason::STARVATION | AdjustmentReason::COOPERATIVE_BLOCKING);
        grid.text(canvas, "WHY", y, change.reason.name(), if starved { theme.warn } else { theme.text });
    }
}
