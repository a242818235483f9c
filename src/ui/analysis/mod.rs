//! What is in a recording: collections, exceptions, threads, methods, events.
//!
//! Each view has a line that says which recording and how it goes, some figures, curves where there is room, and one list that can be moved
//! in. What a recording cannot hold is said, with the profile that would.

mod counters;
mod events;
mod flame;
mod frame_name;
mod grid;
mod methods;
mod panel;
mod single_events;
mod tab;

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::tabs::Look;
use crate::app::{Answer, Lint, Source, State, Tab, Tracked, Typing, lints};
use crate::model::{Count, Phase, Stopwatch};

use super::canvas::{Canvas, width};
use super::invite::invite;
use super::stage::stage;

pub(super) use counters::draw as counters;
pub(super) use events::name as event_name;
pub(super) use methods::are_told_apart;
pub(super) use panel::{Figure, figures};

/// Draws the open tab. Says where the terminal's cursor belongs, while a filter is being typed.
pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, body: Rect) -> Option<(u16, u16)> {
    let area = Rect { x: body.x + 1, width: body.width.saturating_sub(2), ..body };
    let Some(tracked) = state.shown_recording() else {
        invite(canvas, state, area);
        return None;
    };
    let used = heading(canvas, state, tracked, area);
    let rest = below(area, used);
    let Some(findings) = tracked.value.findings.as_deref() else {
        let text = match &tracked.value.phase {
            _ if tracked.value.kernel.is_some() => "The events of this one go to the kernel; none come here.",
            Phase::Done(_) => match &tracked.reading {
                Answer::Asked(_) => "Reading its file …",
                Answer::Failed(trouble) => trouble,
                Answer::Unasked | Answer::Here(()) => "Nothing came of this recording.",
            },
            _ => "Waiting for the first events …",
        };
        canvas.text(rest.x, rest.y, rest.width, text, canvas.theme.dim);
        return None;
    };
    let look = Look { state, tracked, findings };
    match state.tab {
        Tab::Methods => return methods::draw(canvas, &look, rest),
        Tab::Events => return events::draw(canvas, &look, rest),
        Tab::Gc | Tab::Exceptions | Tab::Threads | Tab::Http | Tab::Logs | Tab::Jit | Tab::Assemblies => {
            let (view, geometry) = state.tab_view()?;
            return tab::draw(canvas, &look, &view, &geometry);
        }
        Tab::Info | Tab::Environment | Tab::Trace | Tab::Counters | Tab::Operations => {}
    }
    None
}

/// Which recording this is, how it goes, and what in it asks for a look here. Says how many lines it took.
fn heading(canvas: &mut Canvas<'_>, state: &State, tracked: &Tracked, area: Rect) -> u16 {
    let theme = canvas.theme;
    let recording = &tracked.value;
    let (sign, word, style) = stage(theme, recording);
    let clock = Stopwatch(tracked.elapsed(state.recordings.shown_at(state.now.elapsed))).to_string();
    let (events, dropped) = (Count(recording.events).to_string(), Count(recording.dropped).to_string());
    let loss = if recording.dropped > 0 { theme.bad } else { theme.dim };
    let skipped = match recording.unanalysed {
        0 => String::new(),
        events => format!("   {} not analysed", Count(events)),
    };
    let problems = match recording.findings.as_ref().map_or(0, |findings| findings.snapshot.totals.problems) {
        0 => String::new(),
        1 => "   1 problem in the stream".to_owned(),
        problems => format!("   {} problems in the stream", Count(problems)),
    };
    let pieces = [
        (sign, style),
        (" ", style),
        (word, style),
        ("  ", style),
        (clock.as_str(), theme.strong),
        ("   ", theme.dim),
        (events.as_str(), theme.text),
        (" events   ", theme.dim),
        (dropped.as_str(), loss),
        (" dropped", loss),
        (skipped.as_str(), theme.warn),
        (problems.as_str(), theme.warn),
    ];
    let used = canvas.pieces(area.x, area.y, area.width, &pieces);
    canvas.right(area.x + used + 2, area.y, area.width.saturating_sub(used + 2), &recording.what, theme.dim);
    let Some(findings) = recording.findings.as_deref() else { return 1 };
    let found = lints(&findings.snapshot, !tracked.is_active());
    let here: Vec<&Lint> = found.iter().filter(|lint| lint.tab == state.tab).collect();
    1 + warnings(canvas, state, &here, below(area, 1), area.height / 4)
}

/// Writes what asks for a look, a line each, no more than `most`. Says how many lines it took.
pub(super) fn warnings(canvas: &mut Canvas<'_>, state: &State, found: &[&Lint], area: Rect, most: u16) -> u16 {
    let theme = canvas.theme;
    let mut lines = 0;
    for (lint, y) in found.iter().zip(area.y..area.bottom().min(area.y.saturating_add(most))) {
        let start = [(theme.glyphs.trouble, theme.warn), (" ", theme.warn), (lint.finding.as_str(), theme.warn), (": ", theme.dim)];
        let advice = state.advice(lint);
        let why = [(lint.why, theme.text), (if advice.is_empty() { "" } else { ".  " }, theme.dim)];
        let advice = [(advice.as_str(), theme.accent)];
        // What to press matters more than why.
        let columns = |pieces: &[(&str, Style)]| pieces.iter().map(|(text, _)| width(text)).sum::<u16>();
        if advice[0].0.is_empty() || columns(&start) + columns(&why) + columns(&advice) <= area.width {
            canvas.pieces(area.x, y, area.width, &[&start[..], &why, &advice].concat());
        } else {
            canvas.pieces(area.x, y, area.width, &[&start[..], &advice].concat());
        }
        lines += 1;
    }
    lines
}

/// Says that there are no events of a source, and why. Returns how many lines it took.
fn nothing(canvas: &mut Canvas<'_>, look: &Look<'_>, source: Source, area: Rect) -> u16 {
    let (text, role) = look.missing(source);
    canvas.wrapped(area, &text, canvas.theme.role(role))
}

/// What is left of an area below some lines.
fn below(area: Rect, lines: u16) -> Rect {
    let lines = lines.min(area.height);
    Rect { y: area.y + lines, height: area.height - lines, ..area }
}

/// The upper lines of an area, and the rest.
fn split(area: Rect, lines: u16) -> (Rect, Rect) {
    (Rect { height: lines.min(area.height), ..area }, below(area, lines))
}

/// The left part of an area and the right one, with a gap between.
fn beside(area: Rect, left: u16) -> (Rect, Rect) {
    const GAP: u16 = 3;
    let left = left.min(area.width);
    let right = area.width.saturating_sub(left + GAP);
    (Rect { width: left, ..area }, Rect { x: area.right() - right, width: right, ..area })
}

/// The most columns of a filter.
const FILTER: u16 = 32;

/// Draws the filter of a list at the right end of the line of its figures, and hands out the room that is left for those. Says where the cursor
/// belongs while it is typed.
fn filter(canvas: &mut Canvas<'_>, state: &State, area: Rect) -> (Rect, Option<(u16, u16)>) {
    let line = state.line.as_ref().filter(|line| line.purpose == Typing::Analysis);
    let text = state.views.filter(state.tab).value();
    if text.is_empty() && line.is_none() {
        return (area, None);
    }
    let room = width(text).saturating_add(3).min(FILTER).min(area.width);
    let x = area.right() - room;
    let chip = canvas.theme.chip;
    canvas.value(x, area.y, room, format_args!(" /{text} "), chip);
    let before = line.map(|line| u16::try_from(line.input.visual_cursor()).unwrap_or(u16::MAX));
    let cursor = before.map(|before| ((x + 2).saturating_add(before).min(area.right().saturating_sub(1)), area.y));
    (Rect { width: area.width.saturating_sub(room + 2), ..area }, cursor)
}
