//! The tabs of a recording: GC, exceptions, threads, methods, events.
//!
//! Each tab has a line with the recording and its state, some figures, charts if there is room, and one list with a cursor. If a recording cannot
//! contain the data of a tab, that is stated, with the profile that records it.

mod flame;
mod tab;

use ratatui::layout::Rect;

use crate::app::action::{Action, Status, entry};
use crate::app::layout::padded;
use crate::app::tabs::{Sign, phase_badge};
use crate::app::{Answer, Finding, LinePurpose, Row, State, Tab, TrackedRecording};
use crate::model::{Count, Counted, Phase, Stopwatch};

use super::canvas::{Canvas, below, plural, width};

pub(super) use tab::{figures, text};

/// Shown for a recording before its first event.
pub(super) const SUSPENDED: &str = "The runtime is suspended at startup: no events before it is resumed.";

/// Draws the open tab. Returns the position of the terminal's cursor while a filter is being typed.
pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, body: Rect) -> Option<(u16, u16)> {
    if let Some((view, geometry)) = state.tab_view() {
        let mut area = geometry.heading;
        match (&view.heading, state.shown_recording()) {
            (Some(lines), _) => {
                // A heading that would need more lines than it has is cut off: findings matter more.
                let findings = (view.findings.len() as u16).min(area.height.saturating_sub(1));
                area = below(area, tab::text(canvas, lines, Rect { height: area.height - findings, ..area }));
            }
            (None, Some(tracked)) => {
                heading(canvas, state, tracked, area);
                area = below(area, 1);
            }
            (None, None) => {}
        }
        warnings(canvas, state, &view.findings, area);
        return tab::draw(canvas, state, &view, &geometry);
    }
    let area = padded(body);
    if state.tab == Tab::Counters {
        not_watched(canvas, state, area);
        return None;
    }
    let Some(tracked) = state.shown_recording() else {
        no_recording(canvas, state, area);
        return None;
    };
    heading(canvas, state, tracked, area);
    let rest = below(area, 1);
    let text = match &tracked.value.phase {
        _ if tracked.value.kernel.is_some() => "The events of this recording go to the kernel, not to dn-top.",
        Phase::Done(_) => match &tracked.reading {
            Answer::Requested(_) => "Reading its file …",
            Answer::Failed(trouble) => trouble,
            Answer::NotRequested | Answer::Received(()) => "No events were recorded.",
        },
        Phase::Starting if state.selected().is_some_and(Row::is_suspended) => SUSPENDED,
        _ => "Waiting for the first events …",
    };
    canvas.text(rest.x, rest.y, rest.width, text, canvas.theme.dim);
    None
}

/// Draws the keys that start a recording if there is none, or the reason why none is possible.
pub(in crate::ui) fn no_recording(canvas: &mut Canvas<'_>, state: &State, area: Rect) {
    let theme = canvas.theme;
    if let Status::Refused(reason) = entry(Action::Trace).status(state) {
        canvas.wrapped(area, &reason, theme.warn);
        return;
    }
    let profiles = format!("record {}", state.last_profiles.join(" + "));
    canvas.text(area.x, area.y, area.width, "No recording of this process.", theme.text);
    let of_tab = state.profiles_of_tab(state.tab);
    let record_tab = format!("record {}", of_tab.join(" + "));
    let enter = (!of_tab.is_empty()).then_some(("Enter".to_owned(), record_tab.as_str()));
    let others = [
        (Action::WhySlow, "find out why it is slow: record 30 s and list the causes"),
        (Action::Trace, profiles.as_str()),
        (Action::Profiles, "choose what to record"),
        (Action::TraceForm, "choose filters, limits, stop conditions, flight recorder"),
    ];
    keys(canvas, below(area, 2), enter.into_iter().chain(others.map(|(action, what)| (state.key(action), what))));
}

/// Draws the keys that start a watch, if there are no counters.
fn not_watched(canvas: &mut Canvas<'_>, state: &State, area: Rect) {
    let text = if state.shown_recording().is_some() { "No counters are in this recording." } else { "This process is not watched." };
    canvas.text(area.x, area.y, area.width, text, canvas.theme.text);
    if state.shows_files() {
        return;
    }
    let all = [
        (Action::Watch, "watch it: the runtime's own counters, every second"),
        (Action::Meters, "and the meters of its libraries (.NET 9)"),
    ];
    keys(canvas, below(area, 2), all.map(|(action, what)| (state.key(action), what)));
}

/// Draws keys, each with what it does, one per line.
fn keys<'a>(canvas: &mut Canvas<'_>, area: Rect, keys: impl IntoIterator<Item = (String, &'a str)>) {
    let theme = canvas.theme;
    for ((key, what), y) in keys.into_iter().zip(area.y..area.bottom()) {
        canvas.pieces(area.x, y, area.width, &[(&key, theme.key), ("  ", theme.text), (what, theme.dim)]);
    }
}

fn heading(canvas: &mut Canvas<'_>, state: &State, tracked: &TrackedRecording, area: Rect) {
    let theme = canvas.theme;
    let recording = &tracked.value;
    let (sign, role, word) = phase_badge(recording);
    let (sign, style) = (theme.sign(sign), theme.role(role));
    let clock = Stopwatch(tracked.elapsed(state.recordings.shown_at(state.now.elapsed))).to_string();
    let (events, dropped) = (Count(recording.events).to_string(), Count(recording.dropped).to_string());
    let loss = if recording.dropped > 0 { theme.bad } else { theme.dim };
    let skipped = match recording.unanalyzed {
        0 => String::new(),
        events => format!("   {} not analyzed", Count(events)),
    };
    let problems = match recording.analysis.as_ref().map_or(0, |analysis| analysis.snapshot.totals.problems) {
        0 => String::new(),
        problems => format!("   {} in the stream: tab {}", Counted(problems, "problem"), Tab::Trace.titles()[0]),
    };
    let pieces = [
        (sign, style),
        (" ", style),
        (word, style),
        ("  ", style),
        (clock.as_str(), theme.strong),
        ("   ", theme.dim),
        (events.as_str(), theme.text),
        (plural(recording.events, [" event   ", " events   "]), theme.dim),
        (dropped.as_str(), loss),
        (" dropped", loss),
        (skipped.as_str(), theme.warn),
        (problems.as_str(), theme.warn),
    ];
    let used = canvas.pieces(area.x, area.y, area.width, &pieces);
    canvas.right(area.x + used + 2, area.y, area.width.saturating_sub(used + 2), &recording.what.join(" + "), theme.dim);
}

/// Draws findings, one per line, as many as fit. Returns the number of lines.
pub(super) fn warnings(canvas: &mut Canvas<'_>, state: &State, found: &[Finding], area: Rect) -> u16 {
    for (finding, y) in found.iter().zip(area.y..area.bottom()) {
        draw_finding(canvas, state, finding, "", Rect { y, ..area });
    }
    (found.len() as u16).min(area.height)
}

/// Draws a finding on one line, with its age if known: as much as fits, but always what was found and the first key.
pub(super) fn draw_finding(canvas: &mut Canvas<'_>, state: &State, finding: &Finding, age: &str, area: Rect) {
    let theme = canvas.theme;
    // Twice the threshold is bad.
    let style = if finding.severity >= 2.0 { theme.bad } else { theme.warn };
    let mut advice = state.advice(finding);
    // The key matters more than the duration.
    let key = advice.first().map_or(0, |step| width(step.split(": ").next().unwrap_or_default()) + width(".  "));
    let has_room = width(theme.sign(Sign::Trouble)) + 1 + width(&finding.text) + width(age) + key <= area.width;
    let age = if has_room { age } else { "" };
    let start = [(theme.sign(Sign::Trouble), style), (" ", style), (finding.text.as_str(), style), (age, theme.dim)];
    let room = area.width.saturating_sub(start.iter().map(|(text, _)| width(text)).sum::<u16>() + width(".  "));
    let why = [(": ", theme.dim), (finding.why, theme.text)];
    let needed = |steps: &[String]| steps.iter().map(|step| width(step)).sum::<u16>() + 2 * (steps.len().saturating_sub(1)) as u16;
    let fits_with_why = |steps: &[String]| width(finding.why) + width(": ") + needed(steps) <= room;
    if !fits_with_why(&advice) && fits_with_why(&advice[..advice.len().min(1)]) {
        advice.truncate(1);
    }
    // The first key matters more than the reason.
    let has_why = advice.is_empty() || fits_with_why(&advice);
    while !has_why && advice.len() > 1 && needed(&advice) > room {
        advice.pop();
    }
    // In a narrow terminal, without what they show.
    if !has_why
        && needed(&advice) > room
        && let Some((keys, _)) = advice.first().and_then(|step| step.split_once(": "))
    {
        advice = vec![keys.to_owned()];
    }
    let briefly = [(": ", theme.dim), (finding.briefly, theme.text)];
    let has_briefly = !finding.briefly.is_empty() && width(": ") + width(finding.briefly) + needed(&advice) <= room;
    let advice = advice.join("; ");
    let why = match (has_why, has_briefly) {
        (true, _) => &why[..],
        (false, true) => &briefly,
        (false, false) => &[],
    };
    let end = if advice.is_empty() { "" } else { ".  " };
    canvas.pieces(area.x, area.y, area.width, &[&start[..], why, &[(end, theme.dim), (advice.as_str(), theme.accent)]].concat());
}

/// Maximum width of a filter, in columns.
const FILTER: u16 = 32;

/// Draws the filter of a list at the right end of its line of figures. Returns the remaining area for the figures, and the position of the cursor
/// while the filter is being typed.
fn filter(canvas: &mut Canvas<'_>, state: &State, area: Rect) -> (Rect, Option<(u16, u16)>) {
    let (filter, typed) = (state.views.filter(state.tab), state.typed(LinePurpose::Tab));
    let room = width(filter.as_str()).saturating_add(3).min(FILTER).min(area.width);
    let (used, cursor) = canvas.filter(area.right() - room, area.y, room, filter, typed);
    let taken = if used > 0 { used + 2 } else { 0 };
    (Rect { width: area.width.saturating_sub(taken), ..area }, cursor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::test_app::{TestApp, published};
    use crate::app::{ResourceHistory, health_issues};
    use crate::diagnosis::Thresholds;
    use crate::ui::Theme;
    use ratatui::buffer::Buffer;

    #[test]
    fn finding_is_shortened_to_its_first_key() {
        let app = TestApp::populated(120, 40);
        let counters = published(61.0, 4e6, 2.0, 300.0, 0.0);
        let (_, finding) = health_issues(&counters, None, &ResourceHistory::default(), &Thresholds::default()).remove(0);
        let whole = format!("! 300/s exceptions: {}.  t, then Enter, 5: types and stacks", finding.why);
        let all = width(&whole);
        for (room, age, expected) in [
            (all, "", whole.as_str()),
            (all - 1, "", "! 300/s exceptions.  t, then Enter, 5: types and stacks"),
            (55, "", "! 300/s exceptions.  t, then Enter, 5: types and stacks"),
            (54, "", "! 300/s exceptions.  t, then Enter, 5"),
            (45, " for 12s", "! 300/s exceptions for 12s.  t, then Enter, 5"),
            (44, " for 12s", "! 300/s exceptions.  t, then Enter, 5"),
        ] {
            let area = Rect::new(0, 0, room, 1);
            let mut buffer = Buffer::empty(area);
            draw_finding(&mut Canvas::new(&mut buffer, &Theme::dark()), &app.state, &finding, age, area);
            let line: String = buffer.content().iter().map(ratatui::buffer::Cell::symbol).collect();
            assert_eq!(line.trim_end(), expected);
        }
    }
}
