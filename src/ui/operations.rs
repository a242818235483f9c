//! What was and is being done, to all processes.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::{Activity, Focus, Job, JobKind, State, Tracked};
use crate::model::{Bytes, Count, Outcome, Phase, Stopwatch, sanitise};

use super::canvas::Canvas;
use super::stage::stage;

/// Columns of what, to which process, when, and how long.
const WHAT: u16 = 14;
const WHO: u16 = 24;
const WHEN: u16 = 9;
const LONG: u16 = 8;

pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, body: Rect) {
    let theme = canvas.theme;
    let activity = state.activity();
    let area = Rect { x: body.x + 1, width: body.width.saturating_sub(2), ..body };
    if activity.is_empty() {
        canvas.text(area.x, area.y, area.width, "Nothing was done yet. Traces, dumps and perf maps of all processes come here.", theme.dim);
        return;
    }
    let wide = area.width >= 90;
    let mut x = area.x + 2;
    let mut column = |width: u16, shown: bool| {
        let at = x;
        x += if shown { width + 1 } else { 0 };
        at
    };
    let (what, who, when, long) = (column(WHAT, true), column(WHO, true), column(WHEN, wide), column(LONG, true));
    let rest = column(0, true);
    let room = area.right().saturating_sub(rest);
    for (x, width, title) in [(what, WHAT, "WHAT"), (who, WHO, "PROCESS"), (rest, room, "OUTCOME")] {
        canvas.text(x, body.y, width, title, theme.dim);
    }
    canvas.right(long, body.y, LONG - 1, "TIME", theme.dim);
    if wide {
        canvas.right(when, body.y, WHEN - 1, "WHEN", theme.dim);
    }
    let listed = Activity::listed(body.height.into()) as u16;
    let lines = Rect { y: body.y + 1, height: listed, ..body };
    let window = state.operation.window(activity.len(), usize::from(lines.height));
    for ((place, activity), y) in activity.iter().enumerate().skip(window.start).zip(lines.y..lines.bottom()) {
        let line = match activity {
            Activity::Recording(tracked) => trace_line(canvas, state, tracked),
            Activity::Job(job) => job_line(canvas, state, job),
        };
        canvas.text(area.x, y, 1, line.sign, line.style);
        canvas.text(what, y, WHAT, line.what, theme.text);
        canvas.text(who, y, WHO, &line.who, theme.strong);
        canvas.number(long, y, LONG - 1, line.long, theme.text);
        if wide {
            canvas.right(when, y, WHEN - 1, &activity.clock(state.now), theme.dim);
        }
        canvas.text(rest, y, room, &line.outcome, line.outcome_style);
        if place == state.operation.at {
            let style = if state.focus == Focus::Detail { theme.selected } else { theme.shadowed };
            canvas.style(Rect { y, height: 1, ..body }, style);
        }
    }
    let told = Rect { y: lines.bottom(), height: body.bottom().saturating_sub(lines.bottom()), ..area };
    if let Some(activity) = activity.get(state.operation.at).filter(|_| told.height >= Activity::TOLD as u16) {
        canvas.wrapped(told, &activity.entry(state.now), theme.dim);
    }
    let track = Rect { x: body.right(), width: 1, ..lines };
    canvas.scroll_mark(track, window.start, usize::from(lines.height), activity.len());
}

struct Line<'t> {
    sign: &'t str,
    style: Style,
    what: &'static str,
    who: String,
    long: Stopwatch,
    outcome: String,
    outcome_style: Style,
}

fn trace_line<'t>(canvas: &Canvas<'t>, state: &State, tracked: &Tracked) -> Line<'t> {
    let theme = canvas.theme;
    let recording = &tracked.value;
    let (sign, word, style) = stage(theme, recording);
    let numbers = format!("{}, {} events", Bytes(recording.bytes), Count(recording.events));
    let (outcome, outcome_style) = match &recording.phase {
        Phase::Done(Outcome { trouble: Some(trouble), file, .. }) => {
            let file = file.as_ref().map(|file| format!(" {}", file.to_string_lossy())).unwrap_or_default();
            (format!("{trouble}{file}"), theme.warn)
        }
        _ if recording.kernel.is_some() => {
            let places = recording.kernel.iter().map(ToString::to_string).collect::<String>();
            (format!("{word}: {places}"), style)
        }
        Phase::Done(Outcome { file: Some(file), .. }) => (format!("{numbers}  {}", file.to_string_lossy()), theme.text),
        _ => (format!("{word}: {numbers}"), style),
    };
    Line {
        sign,
        style,
        what: "trace",
        who: format!("{} ({})", recording.name, recording.key.pid),
        long: Stopwatch(tracked.elapsed(state.recordings.shown_at(state.now.elapsed))),
        outcome: sanitise(&outcome),
        outcome_style,
    }
}

fn job_line<'t>(canvas: &Canvas<'t>, state: &State, job: &Job) -> Line<'t> {
    let theme = canvas.theme;
    let (sign, style, outcome, outcome_style) = match &job.ended {
        None => {
            let words = match (&job.what, job.percent) {
                (JobKind::Export(file), percent) => format!("{} %  {}", percent.unwrap_or(0), sanitise(&file.to_string_lossy())),
                _ => "waiting for the runtime …".to_owned(),
            };
            (theme.glyphs.waiting, theme.accent, words, theme.accent)
        }
        Some((_, Err(reason))) => (theme.glyphs.no, theme.bad, reason.clone(), theme.warn),
        Some((_, Ok(result))) => {
            let size = result.bytes.map(|bytes| format!("{}  ", Bytes(bytes))).unwrap_or_default();
            let note = result.note.as_deref().map(|note| format!("  {note}")).unwrap_or_default();
            (theme.glyphs.yes, theme.good, format!("{size}{}{note}", result.files.join(", ")), theme.text)
        }
    };
    Line {
        sign,
        style,
        what: job.what.title(),
        who: job.subject.to_string(),
        long: Stopwatch(job.elapsed(state.now.elapsed)),
        outcome,
        outcome_style,
    }
}
