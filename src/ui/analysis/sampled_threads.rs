//! Threads that were sampled, to choose one: how long each ran and waited, and what it took of the processors.

use ratatui::layout::Rect;

use crate::analysis::{SampleCount, ThreadId};
use crate::app::{Tab, ThreadRow};
use crate::model::Nanoseconds;

use super::super::canvas::Canvas;
use super::Look;
use super::grid::{Grid, number, text, thread_width};
use super::panel::meter;

/// Draws the list of a tab: where one can be chosen, all of them together come first.
pub(super) fn draw(canvas: &mut Canvas<'_>, look: &Look<'_>, tab: Tab, area: Rect) {
    let theme = canvas.theme;
    let all = look.state.thread_rows();
    let rows = if tab == Tab::Methods { &all[..] } else { all.get(1..).unwrap_or_default() };
    let columns = [
        number("RAN", 7),
        number("WAITED", 7),
        text("", 12),
        number("CPU", 7),
        number("THREAD", thread_width(rows.iter().filter_map(|row| row.thread))),
        text("NAME", 0),
    ];
    let grid = Grid::new(canvas, area, &columns);
    let cursor = look.state.view_cursor(tab);
    let lines = grid.lines();
    let time = |samples: u64, ns: u64| if samples == 0 { theme.glyphs.none.to_owned() } else { Nanoseconds(ns).to_string() };
    let most = rows.iter().filter(|row| row.thread.is_some()).map(|row| row.samples.all_ns()).max().unwrap_or(1).max(1) as f64;
    for (ThreadRow { thread, samples, usage }, y) in rows[grid.window(cursor, rows.len())].iter().zip(lines.y..lines.bottom()) {
        let SampleCount { running, waiting, running_ns, waiting_ns } = *samples;
        grid.value(canvas, "RAN", y, time(running, running_ns), if running > 0 { theme.strong } else { theme.dim });
        grid.value(canvas, "WAITED", y, time(waiting, waiting_ns), if waiting > 0 { theme.text } else { theme.dim });
        let Some(thread) = thread else {
            grid.text(canvas, "NAME", y, "all threads", theme.accent);
            continue;
        };
        if let Some((x, width)) = grid.place("") {
            meter(canvas, x, y, width, &[(running_ns as f64 / most, theme.events), (waiting_ns as f64 / most, theme.border)]);
        }
        if look.state.shown_thread() == Some(*thread) {
            canvas.sign(lines.x.saturating_sub(1), y, theme.glyphs.pointer, theme.key);
        }
        match *thread {
            ThreadId::OTHERS => grid.text(canvas, "NAME", y, "all that are not told apart", theme.dim),
            thread => grid.value(canvas, "THREAD", y, thread, theme.dim),
        }
        if let Some(usage) = usage {
            grid.value(canvas, "CPU", y, Nanoseconds(u64::try_from(usage.cpu.as_nanos()).unwrap_or(u64::MAX)), theme.bytes);
            grid.text(canvas, "NAME", y, &usage.name, theme.text);
        }
    }
    grid.finish(canvas, look.state, cursor, rows.len());
}
