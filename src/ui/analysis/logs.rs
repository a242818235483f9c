//! What the program logs: the latest messages, and all of the selected one.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::analysis::{LEVELS, LogMessage};
use crate::app::Tab;
use crate::model::{Count, CountRate, Stopwatch, sanitise};

use super::super::canvas::{Canvas, width};
use super::frame_name::short_name;
use super::grid::{Grid, number, text};
use super::panel::{Figure, figures};
use super::{Look, below, split};

pub(super) fn draw(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect) {
    let theme = canvas.theme;
    let logs = &look.findings.snapshot.logs;
    let count = logs.by_level.iter().sum();
    let mut top: Vec<Figure> = vec![("rate", CountRate(look.rate(count, logs.rate)).to_string(), theme.strong)];
    for (level, count) in logs.by_level.iter().enumerate().rev().filter(|(_, count)| **count > 0) {
        top.push((LEVELS[level], Count(*count).to_string(), style(canvas, level)));
    }
    let used = figures(canvas, area, &top);
    let area = below(area, used);
    let messages = look.state.log_messages();
    if messages.is_empty() {
        canvas.text(area.x, area.y, area.width, "No message that was kept matches the filter.", theme.dim);
        return;
    }
    let (list, words) = split(area, area.height - (area.height / 3).min(8));
    let longest = messages.iter().map(|message| width(&message.logger)).max().unwrap_or(0).clamp(6, list.width.max(30) / 5);
    let grid = Grid::new(canvas, list, &[number("AT", 7), text("LEVEL", 8), text("MESSAGE", 0), text("LOGGER", longest)]);
    let cursor = look.state.view_cursor(Tab::More);
    let lines = grid.lines();
    for (message, y) in messages[grid.window(cursor, messages.len())].iter().zip(lines.y..lines.bottom()) {
        let LogMessage { at: when, level, logger, text, .. } = *message;
        let style = style(canvas, *level);
        grid.value(canvas, "AT", y, at(*when), theme.dim);
        grid.text(canvas, "LEVEL", y, LEVELS.get(*level).copied().unwrap_or_default(), style);
        grid.text(canvas, "MESSAGE", y, text, if *level > 2 { style } else { theme.text });
        grid.text(canvas, "LOGGER", y, short_name(logger, longest), theme.dim);
    }
    grid.finish(canvas, look.state, cursor, messages.len());
    let Some(message) = messages.get(cursor.at.min(messages.len() - 1)).filter(|_| words.height > 1) else { return };
    for x in words.x..words.right() {
        canvas.sign(x, words.y, theme.glyphs.horizontal, theme.border);
    }
    let words = below(words, 1);
    let facts = format!("   thread {}   event {}", message.thread, message.event_id);
    let used = canvas.foreign(words.x, words.y, words.width, &message.logger, theme.accent);
    canvas.text(words.x + used, words.y, words.width - used, &facts, theme.dim);
    let words = below(words, 1);
    let used = canvas.wrapped(words, &sanitise(&message.text), theme.text);
    if !message.exception.is_empty() && message.exception != "{}" {
        canvas.wrapped(below(words, used), &sanitise(&message.exception), theme.warn);
    }
}

fn style(canvas: &Canvas<'_>, level: usize) -> Style {
    let theme = canvas.theme;
    match level {
        0 | 1 => theme.dim,
        2 => theme.good,
        3 => theme.warn,
        _ => theme.bad,
    }
}

/// A moment since the session began.
pub(super) fn at(nanoseconds: i64) -> Stopwatch {
    Stopwatch(std::time::Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0)))
}
