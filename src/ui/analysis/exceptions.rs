//! Exceptions by type, and the latest of the selected one with its stack.

use ratatui::layout::Rect;

use crate::analysis::{ExceptionType, ThrownException};
use crate::app::{Source, Tab};
use crate::model::{Count, CountRate, Stopwatch, sanitise};

use super::super::canvas::Canvas;
use super::grid::{Grid, number, text};
use super::panel::figures;
use super::{Look, below, beside, nothing, split};

pub(super) fn draw(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect) {
    let theme = canvas.theme;
    let exceptions = &look.findings.snapshot.exceptions;
    if exceptions.thrown == 0 {
        nothing(canvas, look, Source::Exceptions, area);
        return;
    }
    let mut top = vec![
        ("thrown", Count(exceptions.thrown).to_string(), theme.strong),
        ("rate", CountRate(look.rate(exceptions.thrown, exceptions.rate)).to_string(), theme.strong),
    ];
    if exceptions.rethrown > 0 {
        top.push(("of these thrown anew", Count(exceptions.rethrown).to_string(), theme.text));
    }
    if exceptions.others > 0 {
        top.push(("of rarer types", Count(exceptions.others).to_string(), theme.text));
    }
    let used = figures(canvas, area, &top);
    let area = below(area, used + u16::from(area.height > 12));
    let types = exceptions.types.len() as u16;
    let (left, right) =
        if area.width >= 100 { beside(area, area.width * 9 / 20) } else { split(area, (types + 1).min(area.height / 2).max(2)) };
    let cursor = look.state.view_cursor(Tab::Exceptions);
    list(canvas, look, &exceptions.types, left);
    if let Some(selected) = exceptions.types.get(cursor.at.min(exceptions.types.len().saturating_sub(1))) {
        latest(canvas, look, &selected.last, &exceptions.recent, right);
    }
}

fn list(canvas: &mut Canvas<'_>, look: &Look<'_>, types: &[ExceptionType], area: Rect) {
    let theme = canvas.theme;
    let grid = Grid::new(canvas, area, &[number("COUNT", 6), number("RATE", 7), text("TYPE", 0), number("LAST", 7)]);
    let cursor = look.state.view_cursor(Tab::Exceptions);
    let lines = grid.lines();
    for (kind, y) in types[grid.window(cursor, types.len())].iter().zip(lines.y..lines.bottom()) {
        grid.value(canvas, "COUNT", y, Count(kind.count), theme.strong);
        let rate = look.rate(kind.count, kind.rate);
        grid.value(canvas, "RATE", y, CountRate(rate), if rate >= 0.1 { theme.events } else { theme.dim });
        if let Some((x, room)) = grid.place("TYPE") {
            super::frame_name::write(canvas, x, y, room, &kind.name, theme.text);
        }
        grid.value(canvas, "LAST", y, at(kind.last.at), theme.dim);
    }
    grid.finish(canvas, look.state, cursor, types.len());
}

/// The latest exception of a type: what it says, where it was thrown.
fn latest(canvas: &mut Canvas<'_>, look: &Look<'_>, thrown: &ThrownException, recent: &[ThrownException], area: Rect) {
    let theme = canvas.theme;
    let ThrownException { at: when, thread, hresult, rethrown, .. } = *thrown;
    let again = if rethrown { "   thrown anew" } else { "" };
    let facts = format!("the latest: at {}   thread {thread}   {hresult:#010x}{again}", at(when));
    canvas.text(area.x, area.y, area.width, &facts, theme.dim);
    let message = if thrown.message.is_empty() { "(no message)".to_owned() } else { sanitise(&thrown.message) };
    let used = canvas.wrapped(Rect { height: below(area, 1).height.min(3), ..below(area, 1) }, &message, theme.warn);
    let stack = below(area, 1 + used);
    if thrown.frames.is_empty() {
        canvas.text(stack.x, stack.y, stack.width, "It came without a stack.", theme.dim);
    }
    let earlier: Vec<_> = recent.iter().filter(|other| other.type_name == thrown.type_name && *other != thrown).collect();
    // What was said before comes behind the stack, in the last third.
    let lines = if earlier.is_empty() { 0 } else { (earlier.len() as u16 + 1).min(stack.height / 3) };
    let (stack, rest) = split(stack, stack.height - lines);
    for (index, y) in (stack.y..stack.bottom()).enumerate() {
        let Some(frame) = thrown.frames.get(index) else { break };
        let left = thrown.frames.len() - index;
        if y + 1 == stack.bottom() && left > 1 {
            canvas.value(stack.x, y, stack.width, format_args!("… and {left} more frames"), theme.dim);
            break;
        }
        frame_line(canvas, look, Rect { y, height: 1, ..stack }, frame);
    }
    if rest.height > 1 {
        canvas.text(rest.x, rest.y, rest.width, "before that", theme.dim);
    }
    for (other, y) in earlier.iter().zip(rest.y + 1..rest.bottom()) {
        let used = canvas.value(rest.x, y, 8, at(other.at), theme.dim);
        canvas.foreign(rest.x + used + 2, y, rest.width.saturating_sub(used + 2), &other.message, theme.text);
    }
}

/// A frame of a stack; where its method is not known yet, that is said.
pub(super) fn frame_line(canvas: &mut Canvas<'_>, look: &Look<'_>, line: Rect, frame: &str) {
    let theme = canvas.theme;
    let known = !frame.starts_with("0x");
    let used = canvas.text(line.x, line.y, line.width, "at ", theme.dim);
    let style = if known { theme.text } else { theme.dim };
    let used = used + canvas.foreign(line.x + used, line.y, line.width.saturating_sub(used), frame, style);
    if !known {
        let note = super::frame_name::unknown(look);
        canvas.text(line.x + used + 1, line.y, line.width.saturating_sub(used + 1), note, theme.dim);
    }
}

fn at(nanoseconds: i64) -> Stopwatch {
    Stopwatch(std::time::Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0)))
}
