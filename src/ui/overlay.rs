//! Lists to choose from: profiles, what to copy, the palette.

use ratatui::layout::Rect;

use crate::app::action::{Status, TABLE, entry};
use crate::app::layout::Layout;
use crate::app::{ActMenu, Chooser, CopyMenu, Cursor, Found, Palette, Picker, State};
use crate::clr::profiles;

use super::canvas::{Canvas, width, wrap};

/// A list's lines, and the selected one marked.
fn list(canvas: &mut Canvas<'_>, inside: Rect, cursor: Cursor, len: usize, mut line: impl FnMut(&mut Canvas<'_>, usize, Rect)) {
    let theme = canvas.theme;
    let height = usize::from(inside.height);
    let window = cursor.window(len, height);
    for (index, y) in window.clone().zip(inside.y..) {
        let row = Rect { y, height: 1, ..inside };
        if index == cursor.at {
            canvas.text(inside.x, y, 1, theme.glyphs.pointer, theme.key);
        }
        line(canvas, index, Rect { x: row.x + 2, width: row.width.saturating_sub(2), ..row });
        if index == cursor.at {
            canvas.style(Rect { x: row.x - 1, width: row.width + 2, ..row }, theme.selected);
        }
    }
    let track = Rect { x: inside.right() + 1, width: 1, ..inside };
    canvas.scroll_mark(track, window.start, height, len);
}

/// The profile picker.
pub(super) fn picker(canvas: &mut Canvas<'_>, picker: &Picker, layout: &Layout) {
    let theme = canvas.theme;
    let profiles = profiles();
    let area = layout.centred(104, profiles.len() as u16 + 7);
    let inside = canvas.dialog(area, &format!("Record {}", picker.subject), theme.focus);
    let body = Rect { y: inside.y + 1, height: inside.height.saturating_sub(5), ..inside };
    let names = profiles.iter().map(|profile| width(&profile.name)).max().unwrap_or(0).min(inside.width / 2);
    list(canvas, body, picker.cursor, profiles.len(), |canvas, index, row| {
        let (Some(profile), chosen) = (profiles.get(index), picker.chosen.get(index).copied().unwrap_or(false)) else { return };
        let (mark, style) = if chosen { (theme.glyphs.yes, theme.good) } else { (" ", theme.dim) };
        canvas.pieces(row.x, row.y, 4, &[("[", theme.dim), (mark, style), ("]", theme.dim)]);
        canvas.text(row.x + 4, row.y, names, &profile.name, if chosen { theme.strong } else { theme.text });
        let x = row.x + 4 + names + 2;
        canvas.text(x, row.y, row.right().saturating_sub(x), &profile.about, theme.dim);
    });
    let Some(profile) = profiles.get(picker.cursor.at) else { return };
    let (x, y, room) = (inside.x + 2, inside.bottom().saturating_sub(3), inside.width.saturating_sub(2));
    canvas.pieces(x, y, room, &[("Cost to the process: ", theme.dim), (&profile.cost, theme.text)]);
    if let Some(warning) = &profile.warning {
        canvas.pieces(x, y + 1, room, &[("Before you hand the file on: ", theme.dim), (warning, theme.warn)]);
    }
}

/// What could be typed into a field of a form.
pub(super) fn choose(canvas: &mut Canvas<'_>, chooser: &Chooser, layout: &Layout) {
    let theme = canvas.theme;
    let area = layout.centred(104, chooser.items.len().saturating_add(2).min(layout.reader().height.into()) as u16);
    let inside = canvas.dialog(area, chooser.title(), theme.focus);
    let shown = |name: &str| if name.is_empty() { "none" } else { name }.to_owned();
    let names = chooser.items.iter().map(|(name, _)| width(name)).max().unwrap_or(0).clamp(4, inside.width / 2);
    list(canvas, inside, chooser.cursor, chooser.items.len(), |canvas, index, mut row| {
        let Some((name, about)) = chooser.items.get(index) else { return };
        let chosen = chooser.chosen.as_ref().map(|chosen| chosen.get(index).copied().unwrap_or(false));
        if let Some(chosen) = chosen {
            let (mark, style) = if chosen { (theme.glyphs.yes, theme.good) } else { (" ", theme.dim) };
            canvas.pieces(row.x, row.y, 4, &[("[", theme.dim), (mark, style), ("]", theme.dim)]);
            row = Rect { x: row.x + 4, width: row.width.saturating_sub(4), ..row };
        }
        canvas.text(row.x, row.y, names, &shown(name), if chosen == Some(false) { theme.text } else { theme.strong });
        let x = row.x + names + 2;
        canvas.text(x, row.y, row.right().saturating_sub(x), about, theme.dim);
    });
}

/// The menu of what can be copied.
pub(super) fn copy(canvas: &mut Canvas<'_>, menu: &CopyMenu, layout: &Layout) {
    let theme = canvas.theme;
    let area = layout.centred(76, menu.items.len() as u16 + 2);
    let inside = canvas.dialog(area, "Copy", theme.focus);
    list(canvas, inside, menu.cursor, menu.items.len(), |canvas, index, row| {
        if let Some(item) = menu.items.get(index) {
            let first = item.text.lines().next().unwrap_or_default();
            canvas.text(row.x, row.y, 21.min(row.width), item.label, theme.text);
            canvas.text(row.x + 22, row.y, row.width.saturating_sub(22), &crate::model::sanitise(first), theme.dim);
        }
    });
}

/// The menu of what can be done with a process; what cannot be says why.
pub(super) fn act(canvas: &mut Canvas<'_>, state: &State, menu: &ActMenu, layout: &Layout) {
    let theme = canvas.theme;
    let area = layout.centred(100, ActMenu::ITEMS.len() as u16 + 2);
    let title = menu.subject.as_ref().map_or_else(|| "Act".to_owned(), |subject| format!("Act on {subject}"));
    let inside = canvas.dialog(area, &title, theme.focus);
    list(canvas, inside, menu.cursor, ActMenu::ITEMS.len(), |canvas, index, row| {
        let Some(entry) = ActMenu::ITEMS.get(index).and_then(|action| entry(*action)) else { return };
        let key = entry.keys.first().map(|key| key.name(theme.glyphs.ascii)).unwrap_or_default();
        canvas.text(row.x, row.y, 2, &key, theme.key);
        let (style, about, about_style) = match entry.status(state) {
            Status::Refused(reason) => (theme.dim, reason, theme.warn),
            Status::Ready | Status::Idle => (theme.strong, entry.help.to_owned(), theme.dim),
        };
        canvas.text(row.x + 3, row.y, 14.min(row.width), entry.label, style);
        canvas.text(row.x + 18, row.y, row.width.saturating_sub(18), &about, about_style);
    });
}

/// The palette. Says where the terminal's cursor belongs.
pub(super) fn palette(canvas: &mut Canvas<'_>, state: &State, palette: &Palette, layout: &Layout) -> (u16, u16) {
    let theme = canvas.theme;
    let area = layout.centred(84, 18);
    let inside = canvas.dialog(area, "Find an action or a process", theme.focus);
    let used = canvas.text(inside.x, inside.y, 2, ": ", theme.key);
    let text = palette.input.value();
    canvas.text(inside.x + used, inside.y, inside.width.saturating_sub(used), text, theme.strong);
    let before = u16::try_from(palette.input.visual_cursor()).unwrap_or(u16::MAX);
    let cursor = (inside.x.saturating_add(used).saturating_add(before).min(inside.right()), inside.y);
    let body = Rect { y: inside.y + 1, height: inside.height.saturating_sub(1), ..inside };
    if palette.found.is_empty() {
        canvas.wrapped(body, palette.complaint.as_deref().unwrap_or("No action or process matches."), theme.dim);
    }
    list(canvas, body, palette.cursor, palette.found.len(), |canvas, index, row| match palette.found.get(index) {
        Some(Found::Action(entry)) => {
            let entry = &TABLE[*entry];
            let key = entry.keys.first().map(|key| key.name(theme.glyphs.ascii)).unwrap_or_default();
            canvas.right(row.right().saturating_sub(7), row.y, 7, &key, theme.key);
            let (style, about, about_style) = match entry.status(state) {
                Status::Refused(reason) => (theme.dim, reason, theme.warn),
                Status::Ready | Status::Idle => (theme.strong, entry.help.to_owned(), theme.dim),
            };
            canvas.text(row.x, row.y, 14.min(row.width), entry.label, style);
            canvas.text(row.x + 15, row.y, row.width.saturating_sub(23), &about, about_style);
        }
        Some(Found::Process(subject)) => {
            canvas.text(row.x, row.y, 14.min(row.width), "process", theme.dim);
            canvas.value(row.x + 15, row.y, row.width.saturating_sub(15), subject, theme.strong);
        }
        None => {}
    });
    cursor
}

/// The end, while recordings are being finished.
pub(super) fn finishing(canvas: &mut Canvas<'_>, state: &State, layout: &Layout) {
    let theme = canvas.theme;
    let Some(ending) = state.ending else { return };
    let active: Vec<_> = state.recordings.all().iter().filter(|tracked| tracked.is_active()).collect();
    let left = ending.limit.saturating_sub(state.now.elapsed).as_secs();
    let (head, foot) = if ending.abandoned {
        ("Closing the files".to_owned(), format!("Leaving in {left} s at the latest."))
    } else {
        let plural = if active.len() == 1 { "" } else { "s" };
        (format!("Finishing {} recording{plural}", active.len()), format!("x leaves now; the files stay readable. At most {left} s more."))
    };
    let area = layout.centred(72, active.len() as u16 + 4);
    let inside = canvas.dialog(area, &head, theme.focus);
    for (tracked, y) in active.iter().zip(inside.y..inside.bottom().saturating_sub(1)) {
        let (sign, _, style) = super::stage::stage(theme, &tracked.value);
        let numbers = match tracked.value.phase {
            crate::model::Phase::Stopping { bytes, .. } if tracked.value.kernel.is_none() => {
                format!("  {} of rundown", crate::model::Bytes(bytes))
            }
            _ => String::new(),
        };
        let name = format!("{} ({})", tracked.value.name, tracked.value.key.pid);
        canvas.pieces(inside.x, y, inside.width, &[(sign, style), (" ", style), (&name, theme.strong), (&numbers, theme.dim)]);
    }
    let lines = wrap(&foot, inside.width);
    for (line, y) in lines.iter().zip(inside.bottom().saturating_sub(lines.len() as u16)..) {
        canvas.text(inside.x, y, inside.width, line, theme.dim);
    }
}
