//! JIT compilation: compiled methods, tiers, and time spent.

use super::quantity::{nanoseconds, rate};
use super::{Cell, Descriptor, Figure, Fit, Head, Live, Look, Recorded, Role, Shows, Side, TabList, Table, View, at, live};
use crate::analysis::{CountersSnapshot, SlowMethod};
use crate::app::action::Action;
use crate::app::{State, Tab};
use crate::diagnosis::Source;
use crate::model::{Bytes, Count, CountRate, Nanoseconds};

pub(super) const TAB: Descriptor =
    Descriptor::new(["JIT"; 3], Shows::Recording(Recorded { view, sources: &[Source::Compilation], live: Some(LIVE) }));

const LIVE: Live = Live { view: counted, needs_counters: true, graphs: &["Time in JIT"], recording_adds: "methods and tiers" };

/// Shows compilation according to the runtime's counters.
fn counted<'a>(_: &'a State, counters: Option<&'a CountersSnapshot>) -> View<'a> {
    let value = |name| live::value(counters, name);
    let mut figures = Vec::new();
    figures.extend(value("methods-jitted-count").map(|count| Figure::new("JIT-compiled", Count(count as u64), Role::Strong)));
    figures.extend(value("il-bytes-jitted").map(|bytes| Figure::new("IL size", Bytes(bytes as u64), Role::Text)));
    let has_counters = counters.is_none() || !figures.is_empty();
    let empty = if has_counters { "Counters do not list methods." } else { ".NET Core 3.1 has no JIT counters." };
    View { head: vec![Head::Figures(figures)], ..View::without_rows(empty) }
}

pub(super) fn view(look: Look<'_>) -> View<'_> {
    let jit = &look.analysis.snapshot.jit;
    if jit.bodies == 0
        && let Some(counters) = look.counters()
    {
        return live::below(look, &LIVE, Some(counters), look.missing(Source::Compilation));
    }
    let slowest = jit.time.as_ref().map(|time| time.slowest.as_slice()).unwrap_or_default();
    let methods: Vec<&SlowMethod> = slowest.iter().collect();

    let TabList { list, cursor, selected } = Table::new(methods, |method| format!("{} {}", method.name, method.at))
        .column("TIME", 7, Fit::Right, |method| Cell::new(Nanoseconds(method.time_ns), Role::Strong))
        .column("SLOWEST TO COMPILE", 0, Fit::Name, |method| Cell::new(&method.name, Role::Text))
        .column("IL", 7, Fit::Right, |method| Cell::new(Bytes(method.il_size.into()), Role::Text))
        .column("TIER", 8, Fit::Left, |method| Cell::new(method.tier.name(), Role::Dim))
        .column("AT", 7, Fit::Right, |method| Cell::new(at(method.at), Role::Dim))
        .place(look.state, Tab::Jit);
    let tiers = Table::new(jit.by_tier.iter().collect(), |(tier, _)| tier.name().to_owned())
        .column("COUNT", 6, Fit::Right, |(_, compiled)| Cell::new(Count(compiled.bodies), Role::Strong))
        .column("CODE", 7, Fit::Right, |(_, compiled)| Cell::new(Bytes(compiled.code_bytes), Role::Bytes))
        .column("TIER", 0, Fit::Left, |(tier, _)| Cell::new(tier.name(), Role::Text))
        .finish();

    let compiled = look.sum_chart("methods loaded", Role::Events, rate, &jit.over_time);
    let time = jit.time.as_ref().map(|time| look.sum_chart("time spent compiling", Role::Bytes, nanoseconds, &time.over_time));
    let unmatched = match &jit.time {
        None => {
            let key = look.state.key(Action::Profiles);
            format!("Profile {} ({key}) records how long compilation takes.", Source::Compilation.profile())
        }
        Some(_) => "No method matches the filter.".to_owned(),
    };
    View {
        head: vec![Head::Figures(figures(look))],
        charts: if jit.bodies > 0 { [Some(compiled), time].into_iter().flatten().collect() } else { Vec::new() },
        empty: look.empty(jit.bodies == 0, Source::Compilation, &unmatched),
        side: (jit.bodies > 0).then_some(Side::list(tiers)),
        copy: selected.map(|method| ("method", method.name.clone())),
        ..View::new(list, cursor, "")
    }
}

fn figures(look: Look<'_>) -> Vec<Figure> {
    let jit = &look.analysis.snapshot.jit;
    if jit.bodies == 0 {
        return Vec::new();
    }
    let mut all = vec![
        Figure::new("methods loaded", Count(jit.bodies), Role::Strong),
        Figure::new("rate", CountRate(look.rate(jit.bodies, jit.rate)), Role::Strong),
        Figure::new("JIT-compiled", Count(jit.jitted), Role::Text),
    ];
    if let Some(time) = &jit.time {
        all.push(Figure::new("time", Nanoseconds(time.total_ns), Role::Strong));
        all.extend(time.quantiles_ns.into_iter().flat_map(Figure::quantiles));
        all.push(Figure::new("IL size", Bytes(time.il_bytes), Role::Text));
    }
    if let Some((time, pending)) = jit.background {
        all.push(Figure::new("tiering in background", Nanoseconds(time), Role::Text));
        all.push(Figure::new("pending", pending, Role::Text));
    }
    all.extend(Figure::if_any("unloaded", jit.unloaded, Role::Text));
    all
}
