//! The recordings of the selected process: one of them at a time, live.

use ratatui::layout::Rect;

use crate::analysis::{MethodCount, SampleCount, SampleFilter};
use crate::app::action::Action;
use crate::app::layout::padded;
use crate::app::tabs::{Figure, Look, Role, phase_badge};
use crate::app::{Row, State, TrackedRecording, findings};
use crate::clr::EventKind;
use crate::model::{
    ByteRate, Bytes, Count, CountRate, Counted, EventRate, FlightBufferUsage, KernelTrace, MethodNameResolution, Nanoseconds, Outcome,
    Percent, Phase, Rate, Scheduling, StoppedBy, Stopwatch,
};

use super::analysis::{SUSPENDED, figures, no_recording, warnings};
use super::canvas::{Canvas, below, plural};
use super::chart::{Curve, Span, curve, curve_with_axis};
use super::names::short_name;

/// Below this width, the numbers take two lines.
const NARROW: u16 = 60;
/// Maximum number of methods listed here; the tab Methods lists all.
const MAX_METHODS: usize = 8;

pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, body: Rect) {
    let area = padded(body);
    let Some(tracked) = state.shown_recording() else { return no_recording(canvas, state, area) };
    let used = facts(canvas, state, tracked, area);
    let rest = below(area, used);
    let look = Look::new(state);
    let used = look.map_or(0, |look| summary(canvas, look, rest));
    let rest = below(rest, used);
    match look {
        Some(look) if state.shows_files() && rest.height >= 2 => most_frequent(canvas, look, rest),
        Some(look) if rest.width >= 100 && rest.height >= 5 => {
            let left = rest.width * 3 / 5;
            charts(canvas, tracked, Rect { width: left, ..rest });
            let gap = left + 3;
            let right = Rect { x: rest.x + gap, width: rest.width - gap, ..rest };
            let used = hottest(canvas, look, Rect { height: right.height / 2, ..right });
            most_frequent(canvas, look, below(right, used));
        }
        Some(look) => {
            let used = hottest(canvas, look, Rect { height: rest.height / 2, ..rest });
            charts(canvas, tracked, below(rest, used));
        }
        None if tracked.value.kernel.is_some() => {}
        None => charts(canvas, tracked, rest),
    }
}

/// Draws the findings and the key figures. Returns the number of lines.
fn summary(canvas: &mut Canvas<'_>, look: Look<'_>, area: Rect) -> u16 {
    // Both leave room for a curve.
    let lines = area.height.saturating_sub(4).div_ceil(6).min(2);
    let used = figures(canvas, Rect { height: lines, ..area }, &figures_of(look));
    let found = findings(&look.analysis.snapshot, look.has_ended(), &look.state.options.thresholds);
    let rest = below(area, used);
    used + warnings(canvas, look.state, &found, Rect { height: rest.height.saturating_sub(4).min(4), ..rest })
}

/// Draws the methods and functions with the most self CPU time: of the last seconds while recording, otherwise in total. Returns the number of
/// lines.
fn hottest(canvas: &mut Canvas<'_>, look: Look<'_>, area: Rect) -> u16 {
    let theme = canvas.theme;
    let Some(cpu) = &look.analysis.cpu else { return 0 };
    let is_live = !look.has_ended() && !cpu.recent.is_zero();
    let (title, time) = if is_live { ("hottest now, of a core", cpu.recent) } else { ("hottest, of a core", cpu.elapsed) };
    let weight = |samples: SampleCount| if is_live { samples.recent_ns } else { samples.all_ns() };
    let methods = cpu.profile.count(SampleFilter::ALL).hottest(usize::from(area.height.saturating_sub(2)).min(MAX_METHODS), weight);
    if methods.is_empty() {
        return 0;
    }
    canvas.text(area.x, area.y, area.width, title, theme.dim);
    for (y, MethodCount { frame, own, .. }) in (area.y + 1..).zip(&methods) {
        let Some(frame) = cpu.profile.frame_at(*frame) else { continue };
        canvas.right(area.x, y, 7, &Percent(weight(*own) as f64 / time.as_nanos().max(1) as f64).to_string(), theme.strong);
        let (name, room) = (frame.origin.label(&frame.name), area.width.saturating_sub(9));
        canvas.text(area.x + 9, y, room, short_name(&name, room), theme.text);
    }
    methods.len() as u16 + 2
}

/// Draws the events with the highest rates, which are recent ones while recording.
fn most_frequent(canvas: &mut Canvas<'_>, look: Look<'_>, area: Rect) {
    let theme = canvas.theme;
    canvas.text(area.x, area.y, area.width, "top events", theme.dim);
    let lines = below(area, 1);
    let recorded: Vec<_> = look.analysis.events.iter().filter(|rate| !EventKind::only_describes(&rate.event.provider)).collect();
    let is_sampled = recorded.iter().any(|rate| rate.event.is_sample());
    let (samplers, mut others): (Vec<_>, Vec<_>) = recorded.into_iter().partition(|rate| is_sampled && rate.event.is_sampling_event());
    let rate_of = |EventRate { event, rate }: &EventRate| look.rate(event.count, *rate);
    // Those of the same rate remain sorted by count.
    others.sort_by(|a, b| rate_of(b).total_cmp(&rate_of(a)));
    let highest = others.first().map_or(0.0, |rate| rate_of(rate));
    for (all, y) in others.iter().zip(lines.y..lines.bottom()) {
        let (event, rate) = (&all.event, rate_of(all));
        canvas.right(area.x, y, 7, &CountRate(rate).to_string(), if rate > 0.0 { theme.events } else { theme.dim });
        let bar = if highest > 0.0 { (rate / highest * 8.0).ceil() as usize } else { 0 };
        for column in 0..bar.min(8) as u16 {
            canvas.sign(area.x + 9 + column, y, theme.glyphs.meter[0], theme.events);
        }
        canvas.text(area.x + 18, y, area.width.saturating_sub(18), &event.title(), theme.text);
    }
    if others.len() < usize::from(lines.height) && !samplers.is_empty() {
        let y = lines.y + others.len() as u16;
        let rate: f64 = samplers.into_iter().map(rate_of).sum();
        canvas.right(area.x, y, 7, &CountRate(rate).to_string(), theme.dim);
        canvas.text(area.x + 18, y, area.width.saturating_sub(18), "samples: see tab Events", theme.dim);
    }
}

/// Draws three to five lines of texts and numbers. Returns the number of lines.
fn facts(canvas: &mut Canvas<'_>, state: &State, tracked: &TrackedRecording, area: Rect) -> u16 {
    let theme = canvas.theme;
    let recording = &tracked.value;
    let now = state.recordings.shown_at(state.now.elapsed);
    let (sign, role, word) = phase_badge(recording);
    let (sign, style) = (theme.sign(sign), theme.role(role));
    let several = state.recordings.of(recording.key).count();
    let place = state.recordings.of(recording.key).position(|other| other.value.id == recording.id).unwrap_or(0);
    let which = if several > 1 {
        format!("   {} of {several} ({}, {})", place + 1, state.key(Action::Down), state.key(Action::Up))
    } else {
        String::new()
    };
    let clock = Stopwatch(tracked.elapsed(now)).to_string();
    let mut y = area.y;

    let used = canvas.pieces(
        area.x,
        y,
        area.width,
        &[(sign, style), (" ", style), (word, style), ("  ", style), (&clock, theme.strong), (&which, theme.dim)],
    );
    canvas.right(area.x + used + 2, y, area.width.saturating_sub(used + 2), &recording.what.join(" + "), theme.dim);
    y += 1;

    y += match &recording.kernel {
        Some(kernel) => destination(canvas, kernel, Rect { y, ..area }),
        None => numbers(canvas, tracked, Rect { y, ..area }),
    };

    // A recording that has ended no longer waits.
    if let Some(scheduling) = recording.scheduling.as_ref().filter(|scheduling| tracked.is_active() || **scheduling != Scheduling::Waiting)
    {
        let style = if matches!(scheduling, Scheduling::Missing(_) | Scheduling::Ended { .. }) { theme.warn } else { theme.dim };
        y += canvas.wrapped(Rect { y, height: area.bottom().saturating_sub(y).min(3), ..area }, &format!("{scheduling}."), style);
    }
    for note in &recording.notes {
        let room = Rect { y, height: area.bottom().saturating_sub(y).min(2), ..area };
        let end = if note.ends_with('?') { "" } else { "." };
        y += canvas.wrapped(room, &format!("Note: {note}{end}"), theme.warn);
    }
    // The result of a file contains them.
    let is_told = matches!(&recording.phase, Phase::Done(Outcome { trouble: Some(_), .. }));
    for problem in recording.analysis.iter().filter(|_| !is_told).flat_map(|analysis| &analysis.snapshot.problems) {
        let room = Rect { y, height: area.bottom().saturating_sub(y).min(2), ..area };
        y += canvas.wrapped(room, &format!("In the stream: {problem}."), theme.warn);
    }
    let file = match &recording.phase {
        Phase::Done(Outcome { file, .. }) => file.as_ref(),
        _ => Some(&recording.file).filter(|file| !file.as_os_str().is_empty()),
    };
    let names = names(&recording.names).filter(|_| tracked.is_active());
    let unanalyzed = Some(Counted(recording.unanalyzed, "event")).filter(|events| events.0 > 0);
    let single_lines = [
        file.map(|file| (file.to_string_lossy().into_owned(), theme.dim)),
        names.map(|(text, bad)| (text, if bad { theme.warn } else { theme.dim })),
        unanalyzed.map(|events| (format!("{events} arrived too fast to analyze; see the file."), theme.warn)),
    ];
    for ((text, style), line) in single_lines.into_iter().flatten().zip(y..area.bottom()) {
        canvas.text(area.x, line, area.width, &text, style);
        y = line + 1;
    }
    if let Some((text, bad)) = note(state, tracked, now) {
        let style = if bad { theme.warn } else { theme.accent };
        y += canvas.wrapped(Rect { y, height: area.bottom().saturating_sub(y).min(3), ..area }, &text, style);
    }
    y - area.y
}

/// Draws the tracepoints that receive the events, and how to read them. Returns the number of lines.
fn destination(canvas: &mut Canvas<'_>, kernel: &KernelTrace, area: Rect) -> u16 {
    let theme = canvas.theme;
    let places = kernel.to_string();
    let session = kernel.session.as_ref().map(|session| format!("   session {session}")).unwrap_or_default();
    canvas.pieces(area.x, area.y, area.width, &[(&places, theme.strong), (&session, theme.dim)]);
    canvas.wrapped(
        Rect { y: area.y + 1, height: area.height.saturating_sub(1).min(3), ..area },
        &format!("dn-top receives no events and writes no file: read them with `perf record -a -e {places}`."),
        theme.dim,
    ) + 1
}

/// Draws the received amounts, and how much was lost. Returns the number of lines.
fn numbers(canvas: &mut Canvas<'_>, tracked: &TrackedRecording, area: Rect) -> u16 {
    let (theme, y) = (canvas.theme, area.y);
    let (dot, recording) = (theme.glyphs.dot, &tracked.value);
    let rate = recording.history.last().copied().filter(|_| tracked.is_stoppable());
    let (bytes, events, dropped) =
        (Bytes(recording.bytes).to_string(), Count(recording.events).to_string(), Count(recording.dropped).to_string());
    let rates = rate.map(|Rate { bytes, events, .. }| (format!(" {dot} {}", ByteRate(bytes)), format!(" {dot} {}", CountRate(events))));
    let (byte_rate, event_rate) = rates.unwrap_or_default();
    let loss = if recording.dropped > 0 { theme.bad } else { theme.dim };
    let totals = [(bytes.as_str(), theme.strong), (&byte_rate, theme.bytes)];
    let noun = plural(recording.events, [" event", " events"]);
    let counts = [(events.as_str(), theme.strong), (noun, theme.dim), (&event_rate, theme.events)];
    let lost = [("    ", theme.text), (&dropped, loss), (" dropped", loss)];
    // Losses are always visible.
    if area.width < NARROW {
        canvas.pieces(area.x, y, area.width, &[&totals[..], &lost].concat());
        canvas.pieces(area.x, y + 1, area.width, &counts);
        2
    } else {
        canvas.pieces(area.x, y, area.width, &[&totals[..], &[("    ", theme.text)], &counts, &lost].concat());
        1
    }
}

/// Returns the progress of resolving method names during the recording.
fn names(search: &MethodNameResolution) -> Option<(String, bool)> {
    match search {
        MethodNameResolution::NotStarted => None,
        MethodNameResolution::Requested => Some(("Resolving method names in a short rundown session …".to_owned(), false)),
        MethodNameResolution::Found { methods, at, took } => {
            let (methods, at, took) =
                (Counted(*methods as u64, "method name"), Stopwatch(*at), Nanoseconds(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)));
            Some((format!("{methods} resolved at {at} (rundown session, {took})."), false))
        }
        MethodNameResolution::Failed(reason) => {
            Some((format!("Method names are resolved at stop: the rundown session failed, {reason}"), true))
        }
    }
}

/// Returns a sentence about the state, if the numbers do not show it.
fn note(state: &State, tracked: &TrackedRecording, now: std::time::Duration) -> Option<(String, bool)> {
    match &tracked.value.phase {
        Phase::Starting if state.selected().is_some_and(Row::is_suspended) => Some((SUSPENDED.to_owned(), false)),
        Phase::Starting if tracked.value.kernel.is_some() => Some(("Waiting for the runtime …".to_owned(), false)),
        Phase::Starting => Some(("Waiting for the first bytes …".to_owned(), false)),
        Phase::Recording => {
            let FlightBufferUsage { bytes, span, trouble } = tracked.value.kept.as_ref()?;
            let span = humantime::format_duration(std::time::Duration::from_secs(span.as_secs()));
            let [save, stop] = [Action::Save, Action::Trace].map(|action| state.key(action));
            let trouble = trouble.as_ref().map(|trouble| format!(", less than requested: {trouble}")).unwrap_or_default();
            let text = format!(
                "Flight recorder: last {span}, {} kept{trouble}.  {save} saves it and continues, {stop} saves it and stops.",
                Bytes(*bytes)
            );
            Some((text, !trouble.is_empty()))
        }
        Phase::Stopping { since, bytes } => {
            let key = state.key(Action::Abandon);
            let since = *since + now.saturating_sub(tracked.updated);
            // A runtime may send nothing at first: a stop waits until meters are collected.
            if tracked.value.kernel.is_some() || *bytes == 0 {
                return Some((format!("Stopping: {} …  {key} stops without waiting.", Stopwatch(since)), false));
            }
            Some((format!("Rundown: {} in {} …  {key} abandons; the file stays readable.", Bytes(*bytes), Stopwatch(since)), false))
        }
        Phase::Joining { percent } => {
            let key = state.key(Action::Abandon);
            Some((format!("Recorded. Writing the CPU samples into the file: {percent} % …  {key} keeps two files."), false))
        }
        Phase::Done(Outcome { trouble: Some(trouble), .. }) => Some((trouble.to_string(), true)),
        Phase::Done(Outcome { stopped_by: StoppedBy::TargetExit, .. }) => Some(("The process ended.".to_owned(), true)),
        Phase::Done(Outcome { stopped_by: StoppedBy::Event, .. }) => Some(("Stop event received.".to_owned(), false)),
        Phase::Done(Outcome { stopped_by: StoppedBy::Condition, .. }) => Some(("Stop condition met.".to_owned(), false)),
        Phase::Done(_) => None,
    }
}

/// Draws two curves over time: one above the other if they keep some height, otherwise side by side, otherwise one.
fn charts(canvas: &mut Canvas<'_>, tracked: &TrackedRecording, area: Rect) {
    // A reopened file has no history of rates.
    if tracked.value.history.is_empty() && !tracked.is_active() {
        return;
    }
    let theme = canvas.theme;
    let history = &tracked.value.history;
    let end = if tracked.is_active() { "now" } else { "end" };
    let span = Span::of(history.len());
    let (bytes, events): (Vec<_>, Vec<_>) = history.iter().map(|rate| (rate.bytes, rate.events)).unzip();
    let lost: Vec<_> = history.iter().map(|rate| rate.dropped).collect();
    let bytes = Curve { title: "bytes/s", style: theme.bytes, unit: |value| ByteRate(value).to_string(), values: &bytes, lost: &lost };
    let events = Curve { title: "events/s", style: theme.events, unit: |value| CountRate(value).to_string(), values: &events, lost: &lost };
    match (area.height, area.width) {
        (0..=3, _) => {}
        (4..=8, 80..) => {
            let half = (area.width - 2) / 2;
            let right = Rect { x: area.right() - half, width: half, ..area };
            curve_with_axis(canvas, Rect { width: half, ..area }, &bytes, span, end);
            curve_with_axis(canvas, right, &events, span, end);
        }
        (4..=6, _) => curve_with_axis(canvas, area, &bytes, span, end),
        (height, _) => {
            let upper = (height - 1) / 2;
            curve(canvas, Rect { height: upper, ..area }, &bytes, span);
            curve_with_axis(canvas, below(area, upper), &events, span, end);
        }
    }
}

/// Returns the key figures of a recording.
fn figures_of(look: Look<'_>) -> Vec<Figure> {
    let (analysis, snapshot) = (look.analysis, &look.analysis.snapshot);
    let rate = |count, recent| CountRate(look.rate(count, recent));
    let mut all = Vec::new();
    let gc = &snapshot.gc;
    if gc.pauses.count > 0 {
        all.push(look.gc_time());
    }
    all.extend(gc.heap.as_ref().map(|heap| Figure::new("heap", Bytes(heap.size()), Role::Strong)));
    if let Some(allocations) = &gc.allocations {
        all.push(Figure::new("allocated", ByteRate(look.rate(allocations.bytes, allocations.rate)), Role::Strong));
    }
    if snapshot.exceptions.thrown > 0 {
        all.push(Figure::new("exceptions", rate(snapshot.exceptions.thrown, snapshot.exceptions.rate), Role::Strong));
    }
    if snapshot.contention.count > 0 {
        all.push(Figure::new("lock waits", rate(snapshot.contention.count, snapshot.contention.rate), Role::Strong));
    }
    all.extend(snapshot.thread_pool.workers.map(|workers| Figure::new("workers", workers, Role::Strong)));
    if snapshot.jit.bodies > 0 {
        all.push(Figure::new("new methods", rate(snapshot.jit.bodies, snapshot.jit.rate), Role::Strong));
    }
    let samples = analysis.profile.count(SampleFilter::ALL).samples();
    if samples.all() > 0 && analysis.profile.has_cpu_times {
        all.push(Figure::new("threads run", Percent(samples.running_ns as f64 / samples.all_ns().max(1) as f64), Role::Strong));
    }
    all
}
