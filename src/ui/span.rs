//! Which part of a recorded file is looked at, in a line above what is in it.

use std::time::Duration;

use ratatui::layout::Rect;

use crate::app::OpenFile;
use crate::model::{Percent, Stopwatch};

use super::canvas::Canvas;

/// Draws the line, and hands out the room below it.
pub(super) fn draw(canvas: &mut Canvas<'_>, file: &OpenFile, body: Rect) -> Rect {
    let theme = canvas.theme;
    let line = Rect { x: body.x + 1, width: body.width.saturating_sub(2), height: body.height.min(1), ..body };
    let rest = Rect { y: body.y + line.height, height: body.height - line.height, ..body };
    let text = words(file);
    let used = canvas.text(line.x, line.y, line.width, &text, if file.span().is_some() { theme.accent } else { theme.dim });
    let room = line.width.saturating_sub(used + 2);
    let (Some(end), 10..) = (file.end, room) else { return rest };
    let (from, to) = file.span().unwrap_or((0, end));
    let place = |at: i64| (at.clamp(0, end) as f64 / end.max(1) as f64 * f64::from(room - 1)).round() as u16;
    let [full, empty] = theme.glyphs.meter;
    for column in 0..room {
        let inside = (place(from)..=place(to)).contains(&column);
        let (sign, style) = if inside { (full, theme.accent) } else { (empty, theme.border) };
        canvas.sign(line.x + used + 2 + column, line.y, sign, style);
    }
    rest
}

fn words(file: &OpenFile) -> String {
    let clock = |at: i64| {
        let at = Duration::from_nanos(u64::try_from(at).unwrap_or(0));
        format!("{}.{}", Stopwatch(at), at.subsec_millis() / 100)
    };
    let what = match (file.span(), file.end) {
        (None, Some(end)) => format!("whole file, {}", clock(end)),
        (Some((from, to)), Some(end)) => format!("{} to {} of {}", clock(from), clock(to), clock(end)),
        (_, None) => String::new(),
    };
    let reading = file.progress.map(|bytes| format!("reading {}", Percent(bytes as f64 / file.facts.bytes.max(1) as f64)));
    [Some(what).filter(|what| !what.is_empty()), reading].into_iter().flatten().collect::<Vec<_>>().join("   ")
}
