//! Events by type, or single events with their fields.

use super::{Cell, Descriptor, Figure, Fit, Head, Line, Look, Recorded, Role, Shows, Side, TabList, Table, View, at};
use crate::analysis::{Field, Filter, LiveEventFilter, SingleEvent};
use crate::app::action::Run::Do;
use crate::app::action::{Action, Context, ENTER, Entry, char, details, places, recorded};
use crate::app::text::width;
use crate::app::{Effect, State, Tab};
use crate::clr::{SAMPLE_PROFILER, UNIVERSAL_EVENTS};
use crate::model::{Bytes, Count, CountRate, Counted, EventRate, Percent, RecordingId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The state of the events tab.
#[derive(Debug, Default)]
pub struct EventsView {
    /// Whether single events are shown, instead of event types.
    pub single: bool,
    /// Whether the fields of the selected event are shown.
    pub open: bool,
    /// The filter last sent to each recorder.
    published: BTreeMap<RecordingId, String>,
}

type EventWithStack = (Arc<SingleEvent>, Arc<[String]>);

pub(super) const TAB: Descriptor = Descriptor {
    context: |_| Context::Events,
    actions: ACTIONS,
    ..Descriptor::new(["Events", "Events", "Evt"], Shows::Recording(Recorded { view, sources: &[], live: None }))
};

const ACTIONS: &[Entry] = &[
    details(
        Action::Shape,
        &[char('f')],
        "single events",
        "Switch between event types and single events.",
        places::EVENTS,
        Do(|state| state.show_single_events(!state.views.events.single)),
    )
    .hint(83)
    .when(recorded)
    .label_now(|state| if state.views.events.single { "by type" } else { "single events" }),
    details(Action::Open, &[ENTER], "open", "Show the event's fields, or the events of the type.", places::EVENTS, Do(State::enter_event))
        .hint(84)
        .when(recorded),
];

pub(super) fn view(look: Look<'_>) -> View<'_> {
    let view = if look.state.views.events.single { single(look) } else { kinds(look) };
    let mut head = vec![Head::Figures(figures(look))];
    head.extend(view.head);
    View { head, filtered: LiveEventFilter::COLUMNS.to_vec(), ..view }
}

fn figures(look: Look<'_>) -> Vec<Figure> {
    let (analysis, totals) = (look.analysis, look.analysis.snapshot.totals);
    let rates = &analysis.snapshot.rates;
    let mut all = vec![
        Figure::new("events", Count(totals.events), Role::Strong),
        Figure::new("rate", CountRate(look.rate(totals.events, rates.rate)), Role::Events),
        Figure::new("payload", Bytes(totals.payload_bytes), Role::Text),
        Figure::new("lost", Count(rates.total_lost), if rates.total_lost > 0 { Role::Bad } else { Role::Text }),
    ];
    if let Some(gap) = rates.gaps.first() {
        all.push(Figure::new("last loss", at(gap.at), Role::Bad));
    }
    all.push(Figure::new("event types", analysis.events.len(), Role::Text));
    all.push(Figure::new("threads", Count(totals.threads), Role::Text));
    all.extend(Figure::if_any("undecodable", analysis.snapshot.unreadable, Role::Warning));
    all
}

/// Lists the event types, the most frequent first.
fn kinds(look: Look<'_>) -> View<'_> {
    let TabList { list, cursor, selected } = kind_table(look);
    let left_out = look.analysis.events.iter().filter(|rate| rate.event.is_sampling_event()).map(|rate| rate.event.count).sum();
    let is_left_out = look.state.views.filter(Tab::Events).is_empty() && is_sampled(&look.analysis.events);
    let words = format!("{} of the sampler hidden (/sample, /suspend)", Counted(left_out, "event"));
    View {
        head: if is_left_out { vec![Head::text(words, Role::Dim)] } else { Vec::new() },
        copy: selected.map(|rate| ("event", format!("{}/{}", rate.event.provider, rate.event.name))),
        ..View::new(list, cursor, "No event matches the filter.")
    }
}

fn kind_table(look: Look<'_>) -> TabList<'_, &EventRate> {
    let all = look.analysis.snapshot.totals.events.max(1) as f64;
    Table::new(look.state.events(), |rate: &&EventRate| format!("{} {} {}", rate.event.provider, rate.event.event_id, rate.event.name))
        .column("COUNT", 6, Fit::Right, |rate| Cell::new(Count(rate.event.count), Role::Strong))
        .column("RATE", 8, Fit::Right, move |rate| {
            let rate = look.rate(rate.event.count, rate.rate);
            Cell::new(CountRate(rate), if rate > 0.0 { Role::Events } else { Role::Dim })
        })
        .column("EVENT", 0, Fit::Left, |rate| Cell::new(rate.event.title(), Role::Text))
        .column("PROVIDER", 36, Fit::Left, |rate| Cell::new(&rate.event.provider, Role::Dim))
        .column("SHARE", 6, Fit::Right, move |rate| Cell::new(Percent(rate.event.count as f64 / all), Role::Text))
        .column("PAYLOAD", 7, Fit::Right, |rate| Cell::new(Bytes(rate.event.bytes), Role::Bytes))
        .sorted(look.state, Tab::Events)
}

/// Lists the latest events individually.
fn single(look: Look<'_>) -> View<'_> {
    let recent = &look.analysis.recent;
    let events = look.state.single_events();
    let is_filtered = !look.state.views.filter(Tab::Events).is_empty();
    let TabList { list, cursor, selected } = rows(&events).sorted(look.state, Tab::Events);
    let empty = match (is_filtered, look.has_ended()) {
        (true, false) => "No event passes the filter so far; it applies to events from now on.",
        (true, true) => "No kept event passes the filter.",
        (false, false) if look.analysis.snapshot.totals.events == 0 => "No events so far.",
        (false, true) if look.analysis.snapshot.totals.events == 0 => "No events in this recording.",
        (false, _) => "Only thread samples or rundown events so far: type /sample or /rundown to show them.",
    };
    let mut words: Line = vec![(format!("the latest {}", Count(events.len() as u64)), Role::Text)];
    if !is_filtered {
        words.extend(hidden(&look.analysis.events).map(|hidden| (format!(", {hidden}"), Role::Dim)));
    }
    if recent.skipped > 0 {
        words.push((format!("   {} skipped: too many to show", Count(recent.skipped)), Role::Dim));
    }
    View {
        head: if events.is_empty() { Vec::new() } else { vec![Head::Text(words)] },
        side: selected.map(|event| Side { below: look.state.views.events.open, thirds: 2, ..Side::text(event_lines(look, event)) }),
        copy: selected.map(|event| ("event with its fields", to_text(event))),
        ..View::new(list, cursor, empty)
    }
}

fn rows<'a>(events: &[&'a EventWithStack]) -> Table<'a, &'a EventWithStack> {
    let longest = events.iter().map(|(event, _)| width(&event.title())).max().unwrap_or(0).clamp(12, 28);
    let thread = events.iter().map(|(event, _)| event.thread.to_string().len()).max().unwrap_or(0).clamp(8, 18) as u16;
    Table::new(events.to_vec(), |(event, _)| event.number.to_string())
        .column("AT", 9, Fit::Right, |(event, _)| Cell::Number(event.at as f64, moment(event.at).into(), Role::Dim))
        .column("EVENT", longest, Fit::Left, |(event, _)| {
            Cell::new(event.title(), if event.kind.name.contains("Exception") { Role::Warning } else { Role::Text })
        })
        .column("FIELDS", 0, Fit::Left, |(event, _)| {
            // No screen has room for more.
            let fields = event.payload.fields().take(40);
            Cell::Pieces(
                fields
                    .flat_map(|(name, value)| [(format!("{name}=").into(), Role::Dim), (format!("{value}  ").into(), Role::Text)])
                    .collect(),
            )
        })
        .column("THREAD", thread, Fit::Right, |(event, _)| Cell::new(event.thread, Role::Dim))
}

fn event_lines(look: Look<'_>, (event, stack): &EventWithStack) -> Vec<Line> {
    let dim = |text: String| (text, Role::Dim);
    let mut lines: Vec<Line> = vec![vec![
        (event.title(), Role::Accent),
        dim(format!("  id {}   at {}   thread {}   {}   ", event.kind.event_id, moment(event.at), event.thread, Bytes(event.bytes as u64))),
        dim(event.kind.provider.clone()),
    ]];
    let column = event.payload.fields().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(30);
    for (name, value) in event.payload.fields() {
        let value = if value.is_empty() { "(empty)" } else { value };
        lines.push(vec![dim(format!("{name:column$}  ")), (value.to_owned(), Role::Text)]);
    }
    if event.payload.fields().len() == 0 {
        lines.push(vec![dim("This event has no fields.".to_owned())]);
    }
    if let Some(activity) = event.activity {
        let hex: String = activity.iter().map(|byte| format!("{byte:02x}")).collect();
        lines.push(vec![dim(format!("activity {hex}"))]);
    }
    if event.payload.is_cut {
        lines.push(vec![dim("Only the start of its payload is kept.".to_owned())]);
    }
    lines.extend(stack.iter().map(|frame| look.frame(frame)));
    lines
}

/// Formats an event as plain text.
fn to_text((event, stack): &EventWithStack) -> String {
    let fields = event.payload.fields().map(|(name, value)| format!("{name}: {value}"));
    let frames = stack.iter().map(|frame| format!("   at {frame}"));
    [format!("{}/{}", event.kind.provider, event.kind.name)].into_iter().chain(fields).chain(frames).collect::<Vec<_>>().join("\n")
}

/// Formats nanoseconds since the session started as minutes, seconds and milliseconds.
fn moment(at: i64) -> String {
    let ms = u64::try_from(at).unwrap_or(0) / 1_000_000;
    format!("{}:{:02}.{:03}", ms / 60_000, ms / 1000 % 60, ms % 1000)
}

/// Returns whether the sample profiler was enabled, which suspends threads to sample them.
fn is_sampled(events: &[EventRate]) -> bool {
    events.iter().any(|rate| rate.event.provider == SAMPLE_PROFILER)
}

/// Returns which of the recorded events a list of single events leaves out without a filter, and the filters that show them.
fn hidden(events: &[EventRate]) -> Option<String> {
    let has = |provider: &str| events.iter().any(|rate| rate.event.provider == provider);
    let filters = [(SAMPLE_PROFILER, "/sample, /suspend"), (UNIVERSAL_EVENTS, "/universal")];
    let filters: Vec<_> = filters.into_iter().filter(|(provider, _)| has(provider)).map(|(_, filter)| filter).collect();
    (!filters.is_empty()).then(|| format!("events of samplers hidden ({})", filters.join(", ")))
}

impl State {
    /// Returns the event types that pass the filter, the most frequent first. Without a filter, events caused by sampling are left out.
    pub fn events(&self) -> Vec<&EventRate> {
        let all = self.analysis().map(|analysis| analysis.events.as_slice()).unwrap_or_default();
        let [event, provider] = LiveEventFilter::COLUMNS;
        let filter = self.views.filter(Tab::Events);
        let leaves_out = filter.is_empty() && is_sampled(all);
        let passes = |EventRate { event: kind, .. }: &&EventRate| {
            !(leaves_out && kind.is_sampling_event())
                && filter.passes(&[Field::text(event, &kind.name), Field::text(provider, &kind.provider)])
        };
        all.iter().filter(passes).collect()
    }

    /// Returns the single events that pass the filter, with their stacks, the latest first.
    pub fn single_events(&self) -> Vec<&EventWithStack> {
        let all = self.analysis().map(|analysis| analysis.recent.events.as_slice()).unwrap_or_default();
        let filter = LiveEventFilter::new(self.views.filter(Tab::Events).as_str());
        all.iter().filter(|(event, _)| filter.passes(&event.kind.provider, &event.kind.name)).collect()
    }

    /// Shows or hides the fields of the selected event; for an event type, shows its single events.
    pub(in crate::app) fn enter_event(&mut self) {
        if self.views.events.single {
            self.views.events.open = !self.views.events.open && !self.single_events().is_empty();
            if self.views.events.open {
                // The opened event stays selected when new events arrive.
                self.pin_selection(Tab::Events);
            }
            return;
        }
        // An event without a name is found by its provider.
        let name = Look::new(self)
            .and_then(|look| kind_table(look).selected)
            .map(|rate| if rate.event.name.is_empty() { rate.event.provider.clone() } else { rate.event.name.clone() });
        if let Some(name) = name {
            self.views.of_mut(Tab::Events).filter = Filter::new(&Filter::literal(&name));
            self.show_single_events(true);
        }
    }

    fn show_single_events(&mut self, single: bool) {
        (self.views.events.single, self.views.events.open) = (single, false);
        self.views.select_first(Tab::Events);
    }

    /// Sends the filter of single events to the recorder, if it changed.
    pub(in crate::app) fn publish_filter(&mut self) -> Option<Effect> {
        let tracked = self.shown_recording().filter(|tracked| self.tab == Tab::Events && tracked.is_active())?;
        let (id, filter) = (tracked.value.id, self.views.filter(Tab::Events).as_str());
        if self.views.events.published.get(&id).map_or("", String::as_str) == filter {
            return None;
        }
        let filter = filter.to_owned();
        self.views.events.published.insert(id, filter.clone());
        Some(Effect::FilterEvents { id, filter })
    }
}
