//! The process table.

use std::borrow::Cow;

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::action::Action;
use crate::app::layout::ListLayout;
use crate::app::{Column, Focus, LinePurpose, Row, State};
use crate::model::Counted;

use super::canvas::{Canvas, width, wrap};
use super::list::{self, Listing};

/// Draws the table. Returns the position of the terminal's cursor while a filter is being typed.
pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, layout: &ListLayout) -> Option<(u16, u16)> {
    let theme = canvas.theme;
    let focused = state.focus == Focus::List;
    canvas.frame(layout.frame, if focused { theme.focus } else { theme.border });
    let cursor = title(canvas, state, layout);
    if state.list.is_empty() {
        empty(canvas, state, layout);
        return cursor;
    }
    let listing = Listing {
        list: &state.process_table(layout),
        cursor: state.list.view_cursor(),
        focused,
        titled: true,
        filter: state.list.filter(),
    };
    let inner = Rect { y: layout.head.y, height: layout.head.height + layout.rows.height, ..layout.lines() };
    list::draw(canvas, inner, &listing);
    let trouble = state.selected().and_then(Row::trouble);
    if let Some(trouble) = trouble.filter(|_| !layout.columns.iter().any(|slot| slot.column == Column::Command)) {
        // No column shows it.
        let (x, room) = (layout.frame.x + 2, layout.frame.width.saturating_sub(4));
        canvas.pieces(x, layout.frame.bottom() - 1, room, &[(" ", theme.warn), (&*trouble, theme.warn), (" ", theme.warn)]);
    }
    cursor
}

/// Draws the title of the table, the number of rows that pass the filter, and the filter.
fn title(canvas: &mut Canvas<'_>, state: &State, layout: &ListLayout) -> Option<(u16, u16)> {
    let theme = canvas.theme;
    let list = &state.list;
    let (x, y) = (layout.frame.x + 2, layout.frame.y);
    let room = layout.frame.width.saturating_sub(4);
    let style = if state.focus == Focus::List { theme.strong } else { theme.text };
    let count = if list.filter().is_empty() { format!("{} ", list.len()) } else { format!("{} of {} ", list.len(), list.rows().len()) };
    let key = state.key(Action::CleanUp);
    let stale = match state.stale_sockets.count {
        0 => String::new(),
        _ if state.shows_files() => String::new(),
        count => format!("+ {} {} {key}: clean up ", Counted(count as u64, "stale socket"), theme.glyphs.dot),
    };
    let tagged = match list.tagged().len() {
        0 => String::new(),
        count => format!("{} {count} tagged ", theme.glyphs.dot),
    };
    let heading = if state.shows_files() { " Files " } else { " Processes " };
    let used = canvas.pieces(x, y, room, &[(heading, style), (&count, theme.dim), (&tagged, theme.accent), (&stale, theme.dim)]);
    canvas.filter(x + used + 1, y, room.saturating_sub(used + 1), list.filter(), state.typed(LinePurpose::Filter)).1
}

/// Returns the start of a text that may be very long, such as one that was pasted.
fn start(text: &str) -> Cow<'_, str> {
    const CHARS: usize = 80;
    match text.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{} …", &text[..end]).into(),
        None => text.into(),
    }
}

/// Draws the text for an empty list.
fn empty(canvas: &mut Canvas<'_>, state: &State, layout: &ListLayout) {
    let theme = canvas.theme;
    let mut lines: Vec<(String, Style)> = Vec::new();
    if !state.list.is_loaded() {
        lines.push(("Looking for .NET processes …".to_owned(), theme.dim));
    } else if !state.list.filter().is_empty() {
        let files = state.shows_files();
        let columns = Column::FILTERED.map(|column| if files { column.title_for_files() } else { column.title() });
        let noun = if files { "file" } else { "process" };
        let problem = state.list.filter().unknown_column(&columns);
        lines.push(problem.map_or_else(
            || (format!("No {noun} matches \"{}\".", start(state.list.filter().as_str())), theme.text),
            |problem| (problem, theme.warn),
        ));
        lines.push(("Esc clears the filter.".to_owned(), theme.dim));
    } else {
        let user = if state.options.user.is_empty() { "you".to_owned() } else { state.options.user.clone() };
        lines.push((format!("No .NET processes visible to {user}."), theme.strong));
        lines.push((String::new(), theme.text));
        if !state.options.searched.is_empty() {
            lines.push((format!("Looked for diagnostic sockets in {}.", state.options.searched.join(", ")), theme.text));
        }
        if let Some(elevate) = state.options.elevate {
            lines.push((format!("Other users' processes: run dn-top {elevate}."), theme.dim));
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

#[cfg(test)]
mod tests {
    use crate::app::Msg;
    use crate::app::test_app::{TestApp, process};
    use crate::ui::tests::screen;

    #[test]
    fn programs_with_the_same_prefix_are_distinguishable() {
        let mut app = TestApp::new(80, 24);
        let names = ["Contoso.Fulfilment.Orders.Api", "Contoso.Fulfilment.Orders.Background.Processing.Service.Of.The.Warehouse"];
        app.send(Msg::Processes(vec![process(41, names[0]), process(42, names[1])]));
        let shown = screen(&app.state);
        assert!(shown.contains(" 41 …Orders.Api ") && shown.contains(" 42 …The.Warehouse "), "{shown}");
        // A match in the part that is cut off marks the place of that part.
        app.press("/contoso⏎");
        assert!(screen(&app.state).contains(" 41 …Orders.Api "), "{shown}");
        // A tagged row has less room.
        app.press("⎋/name:warehouse⏎s");
        let shown = screen(&app.state);
        assert!(shown.contains(" 42 ✓…The.Warehouse "), "{shown}");
        app.press("d");
        let shown = screen(&app.state);
        assert!(shown.contains(" Dump · Contoso.Fulfilment.Orders.Background.Processing.Service.Of.… (42) "), "{shown}");
    }
}
