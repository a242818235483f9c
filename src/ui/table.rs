//! The process table.

use std::borrow::Cow;
use std::time::Duration;

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::analysis::Field;
use crate::app::layout::{ListLayout, Slot};
use crate::app::{Column, Focus, HealthIssue, Row, State, Trend, Typing};
use crate::model::{Age, Bytes, Contact, Count, Process, RunState};

use super::canvas::{Canvas, width, wrap};
use super::theme::Theme;

/// Draws the table. Says where the terminal's cursor belongs, while a filter is being typed.
pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, layout: &ListLayout) -> Option<(u16, u16)> {
    let theme = canvas.theme;
    let focused = state.focus == Focus::List;
    canvas.frame(layout.frame, if focused { theme.focus } else { theme.border });
    let cursor = title(canvas, state, layout);
    if state.list.is_empty() {
        empty(canvas, state, layout);
        return cursor;
    }
    head(canvas, state, layout);
    let height = usize::from(layout.rows.height);
    for ((row, selected), y) in state.list.window(height).zip(layout.rows.y..) {
        for slot in &layout.columns {
            cell(canvas, state, row, *slot, y);
        }
        if selected {
            let line = Rect { y, height: 1, ..layout.rows };
            canvas.style(line, if focused { theme.selected } else { theme.shadowed });
        }
    }
    let track = Rect { x: layout.frame.right() - 1, width: 1, ..layout.rows };
    canvas.scroll_mark(track, state.list.offset(), height, state.list.len());
    let reason = state.selected().and_then(|row| row.process.contact.reason());
    if let Some(reason) = reason.filter(|_| !layout.columns.iter().any(|slot| slot.column == Column::Command)) {
        // Where no column has room for it.
        let (x, room) = (layout.frame.x + 2, layout.frame.width.saturating_sub(4));
        canvas.pieces(x, layout.frame.bottom() - 1, room, &[(" ", theme.warn), (reason, theme.warn), (" ", theme.warn)]);
    }
    cursor
}

/// The table's name, how many rows the filter lets through, and the filter.
fn title(canvas: &mut Canvas<'_>, state: &State, layout: &ListLayout) -> Option<(u16, u16)> {
    let theme = canvas.theme;
    let list = &state.list;
    let typing = state.line.as_ref().filter(|line| line.purpose == Typing::Filter);
    let (x, y) = (layout.frame.x + 2, layout.frame.y);
    let room = layout.frame.width.saturating_sub(4);
    let style = if state.focus == Focus::List { theme.strong } else { theme.text };
    let count = if list.filter().is_empty() { format!("{} ", list.len()) } else { format!("{} of {} ", list.len(), list.rows().len()) };
    let stale = match state.stale_sockets.count {
        0 => String::new(),
        1 => format!("+ 1 stale socket {} C: clean up ", canvas.theme.glyphs.dot),
        count => format!("+ {count} stale sockets {} C: clean up ", canvas.theme.glyphs.dot),
    };
    let heading = if state.shows_files() { " Files " } else { " Processes " };
    let used = canvas.pieces(x, y, room, &[(heading, style), (&count, theme.dim), (&stale, theme.dim)]);
    let text = typing.map_or(list.filter().as_str(), |line| line.input.value());
    if text.is_empty() && typing.is_none() {
        return None;
    }
    let start = x + used + 1;
    let end = canvas.value(start, y, room.saturating_sub(used + 1), format_args!(" /{text} "), theme.chip) + start;
    let line = typing?;
    let before = u16::try_from(line.input.visual_cursor()).unwrap_or(u16::MAX);
    Some((start.saturating_add(2).saturating_add(before).min(end.saturating_sub(1)), y))
}

fn head(canvas: &mut Canvas<'_>, state: &State, layout: &ListLayout) {
    let theme = canvas.theme;
    let sort = state.list.sort();
    for Slot { column, x, width: room } in layout.columns.iter().copied() {
        let title = if column == Column::Memory && state.shows_files() { "SIZE" } else { column.title() };
        if column != sort.column {
            if column.is_right_aligned() {
                canvas.right(x, layout.head.y, room, title, theme.dim);
            } else {
                canvas.text(x, layout.head.y, room, title, theme.dim);
            }
            continue;
        }
        let arrow = if sort.descending { theme.glyphs.descending } else { theme.glyphs.ascending };
        let used = width(title) + 1;
        let start = if column.is_right_aligned() { x + room.saturating_sub(used) } else { x };
        canvas.pieces(start, layout.head.y, room, &[(title, theme.key), (arrow, theme.accent)]);
    }
}

/// What the colour of a row says before its cells say it in words.
fn row_style(theme: &Theme, row: &Row) -> Style {
    if row.gone_at.is_some() || !row.process.contact.is_attachable() {
        theme.dim
    } else if row.new_until.is_some() {
        theme.key
    } else {
        theme.text
    }
}

fn cell(canvas: &mut Canvas<'_>, state: &State, row: &Row, slot: Slot, y: u16) {
    let theme = canvas.theme;
    let process = &row.process;
    let style = row_style(theme, row);
    let Slot { column, x, width: room } = slot;
    match column {
        Column::Pid => {
            let pid = process.key.pid.to_string();
            let blank = room.saturating_sub(width(&pid));
            written(canvas, state, Slot { x: x + blank, width: room - blank, ..slot }, y, &pid, style);
        }
        Column::Name => {
            let style = if style == theme.text { theme.strong } else { style };
            written(canvas, state, slot, y, &process.name, style);
        }
        Column::Runtime => {
            let text = runtime(process).unwrap_or(theme.glyphs.none.into());
            written(canvas, state, slot, y, &text, if process.runtime.is_some() { style } else { theme.dim });
        }
        Column::Cpu => match process.usage.cpu_percent {
            Some(percent) => {
                if room > Trend::WIDTH + 6 {
                    trend(canvas, row, x, y);
                }
                let quiet = percent < 0.05;
                canvas.number(x, y, room, format_args!("{percent:.1}"), if quiet { theme.dim } else { style });
            }
            None => canvas.right(x, y, room, theme.glyphs.none, theme.dim),
        },
        Column::Memory if process.usage.rss_bytes == 0 => canvas.right(x, y, room, theme.glyphs.none, theme.dim),
        Column::Memory => canvas.number(x, y, room, Bytes(process.usage.rss_bytes), style),
        Column::Heap | Column::Allocation | Column::GcTime | Column::Exceptions | Column::Queue => figure(canvas, row, slot, y, style),
        Column::Threads if process.usage.threads == 0 => canvas.right(x, y, room, theme.glyphs.none, theme.dim),
        Column::Threads => canvas.number(x, y, room, process.usage.threads, style),
        Column::User => {
            match &process.user {
                Some(user) => written(canvas, state, slot, y, user, style),
                None => canvas.value(x, y, room, process.uid, style),
            };
        }
        Column::Uptime => canvas.number(x, y, room, Age(age(state, process)), style),
        Column::State => {
            let [sign, second, word] = file_condition(theme, state, row).unwrap_or_else(|| condition(theme, row));
            let word = if room < 8 { ("", word.1) } else { word };
            let used = canvas.pieces(x, y, room, &[sign, second, (" ", word.1)]);
            written(canvas, state, Slot { x: x + used, width: room - used, ..slot }, y, word.0, word.1);
        }
        Column::Container => {
            written(canvas, state, slot, y, process.container.as_deref().unwrap_or_default(), style);
        }
        Column::Command => match process.contact.reason() {
            // What is the matter stands where it can be seen, not only in a log.
            Some(reason) => {
                canvas.text(x, y, room, reason, theme.warn);
            }
            None => {
                written(canvas, state, slot, y, &process.command_line, theme.dim);
            }
        },
    }
}

/// Writes a text of a column, and marks what the filter matched in it.
fn written(canvas: &mut Canvas<'_>, state: &State, slot: Slot, y: u16, text: &str, style: Style) -> u16 {
    let marks = state.list.filter().marks(Field::text(slot.column.title(), text));
    canvas.filtered(slot.x, y, slot.width, text, style, &marks)
}

/// A figure of a watched process; in the colour of a warning where it is what is wrong with it.
fn figure(canvas: &mut Canvas<'_>, row: &Row, slot: Slot, y: u16, style: Style) {
    let theme = canvas.theme;
    let Slot { column, x, width: room } = slot;
    let Some((watch, value)) = row.watch.and_then(|watch| Some((watch, column.figure(&watch.stats)?))) else {
        canvas.right(x, y, room, theme.glyphs.none, theme.dim);
        return;
    };
    let is_ill = match watch.issue {
        Some(HealthIssue::GcTime) => column == Column::GcTime,
        Some(HealthIssue::Exceptions) => column == Column::Exceptions,
        Some(HealthIssue::Queue) => column == Column::Queue,
        Some(HealthIssue::Contention | HealthIssue::FullCollections | HealthIssue::HeapGrowth) | None => false,
    };
    let style = match value {
        _ if row.gone_at.is_some() => style,
        _ if is_ill => theme.bad,
        ..0.05 => theme.dim,
        _ => style,
    };
    let whole = value.max(0.0) as u64;
    match column {
        Column::Heap | Column::Allocation => canvas.number(x, y, room, Bytes(whole), style),
        Column::GcTime => canvas.number(x, y, room, format_args!("{value:.*}", usize::from(value < 9.95)), style),
        _ => canvas.number(x, y, room, Count(whole), style),
    }
}

/// The runtime's version; those that cannot say theirs are older than 5.
pub(super) fn runtime(process: &Process) -> Option<Cow<'_, str>> {
    match &process.runtime {
        // The whole version has no room beside it.
        Some(version) if process.native_aot => Some(format!("AOT {}.{}", version.major(), version.minor()).into()),
        Some(version) => Some(version.as_str().into()),
        None if process.native_aot => Some("AOT".into()),
        None if process.contact == Contact::Ok => Some("3.x".into()),
        None => None,
    }
}

pub(super) fn age(state: &State, process: &Process) -> Duration {
    let now = state.pause.as_ref().map_or(state.now.unix_ms, |pause| pause.since.unix_ms);
    Duration::from_millis(now.saturating_sub(process.started_unix_ms))
}

/// How a process is: a sign, one more where there are two things to say, and a word, each in its colour.
pub(super) fn condition<'t>(theme: &'t Theme, row: &Row) -> [(&'t str, Style); 3] {
    let glyphs = theme.glyphs;
    let recording = (glyphs.recording, theme.recording);
    let sign = match (&row.process.contact, row.process.run_state) {
        _ if row.gone_at.is_some() => (glyphs.gone, theme.dim),
        _ if row.issue().is_some() => {
            let ill = (glyphs.trouble, theme.bad);
            let signs = if row.recording { [recording, ill] } else { [ill, ("", theme.bad)] };
            return [signs[0], signs[1], (row.word(), theme.bad)];
        }
        _ if row.recording => recording,
        (Contact::Trouble { .. }, _) => (glyphs.trouble, theme.warn),
        (_, RunState::Suspended) => (glyphs.suspended, theme.accent),
        (Contact::Unknown, _) => (glyphs.waiting, theme.dim),
        (Contact::Ok, RunState::Running) if row.watch.is_some_and(|watch| !watch.automatic) => (glyphs.watched, theme.good),
        (Contact::Ok, RunState::Running) => (glyphs.running, theme.good),
    };
    [sign, ("", sign.1), (row.word(), sign.1)]
}

/// The same for a recorded file.
fn file_condition<'t>(theme: &'t Theme, state: &State, row: &Row) -> Option<[(&'t str, Style); 3]> {
    let file = state.files.iter().find(|file| file.key == row.process.key)?;
    let (sign, style) = match (file.progress, file.complete) {
        (Some(_), _) => (theme.glyphs.waiting, theme.accent),
        (None, Some(true)) => (theme.glyphs.yes, theme.good),
        (None, _) => (theme.glyphs.trouble, theme.warn),
    };
    Some([(sign, style), ("", style), (file.word(), style)])
}

/// The last looks at the processor time, as bars.
fn trend(canvas: &mut Canvas<'_>, row: &Row, x: u16, y: u16) {
    let theme = canvas.theme;
    for (level, x) in row.trend.levels().into_iter().zip(x..) {
        if let Some(bar) = usize::from(level).checked_sub(1).and_then(|level| theme.glyphs.bars.get(level)) {
            canvas.sign(x, y, bar, if level == 1 || row.gone_at.is_some() { theme.border } else { theme.accent });
        }
    }
}

/// What to say when there is nothing to show.
fn empty(canvas: &mut Canvas<'_>, state: &State, layout: &ListLayout) {
    let theme = canvas.theme;
    let mut lines: Vec<(String, Style)> = Vec::new();
    if !state.list.is_loaded() {
        lines.push(("Looking for .NET processes …".to_owned(), theme.dim));
    } else if !state.list.filter().is_empty() {
        let columns = Column::FILTERED.map(Column::title);
        let complaint = state.list.filter().unknown_column(&columns);
        lines.push(complaint.map_or_else(
            || (format!("No process matches \"{}\".", state.list.filter().as_str()), theme.text),
            |complaint| (complaint, theme.warn),
        ));
        lines.push(("Esc clears the filter.".to_owned(), theme.dim));
    } else {
        let user = if state.options.user.is_empty() { "you".to_owned() } else { state.options.user.clone() };
        lines.push((format!("No .NET processes visible to {user}."), theme.strong));
        lines.push((String::new(), theme.text));
        if !state.options.searched.is_empty() {
            lines.push((format!("Looked for diagnostic sockets in {}.", state.options.searched.join(", ")), theme.text));
        }
        if state.options.user != "root" {
            lines.push(("Other users' processes: try sudo dn-top.".to_owned(), theme.dim));
        }
        lines.push(("A program with another TMPDIR: start dn-top with the same one.".to_owned(), theme.dim));
        lines.push(("A program in a container: run dn-top as root on its host.".to_owned(), theme.dim));
        lines.push(("To try dn-top without one: dn-top --demo.".to_owned(), theme.dim));
    }
    let inner = Rect { y: layout.head.y, height: layout.head.height + layout.rows.height, ..layout.rows };
    let room = inner.width.saturating_sub(4);
    let wrapped: Vec<(String, Style)> = lines
        .into_iter()
        .flat_map(|(text, style)| match text.is_empty() {
            true => vec![(text, style)],
            false => wrap(&text, room).into_iter().map(|line| (line, style)).collect(),
        })
        .collect();
    let top = inner.y + inner.height.saturating_sub(wrapped.len() as u16) / 3;
    for ((text, style), y) in wrapped.iter().zip(top..inner.bottom()) {
        let indent = inner.width.saturating_sub(width(text)) / 2;
        canvas.text(inner.x + indent, y, inner.width - indent, text, *style);
    }
}
