//! Figures above the methods.

use std::time::Duration;

use super::super::cell::nanoseconds;
use super::super::threads::core_share;
use super::super::{Figure, Look, Role};
use super::role;
use crate::analysis::{Counts, Origin};
use crate::app::flame::ROOT;
use crate::model::{Count, CpuTime, Nanoseconds, Percent, SafeText};

/// Returns the figures for waits reported by the kernel.
pub(super) fn of_waits(look: Look<'_>, counts: &Counts<'_>, cpu: &CpuTime) -> Vec<Figure> {
    let samples = counts.samples();
    let mut all = vec![Figure::new("blocked", Nanoseconds(samples.all_ns()), Role::Strong)];
    if !cpu.idle.is_zero() && look.state.shown_thread().is_none() {
        all.push(Figure::new("idle threads hidden", nanoseconds(cpu.idle), Role::Text));
    }
    all.extend(share_if_any("outside managed code", counts.own_of(ROOT).all_ns(), samples.all_ns(), Role::Text));
    all.extend(Figure::if_any("waits unresolved", counts.unresolved(), Role::Warning));
    all.extend(Figure::if_any("stacks lost", cpu.lost_waits, Role::Warning));
    all.extend(Figure::if_any("threads not traced", cpu.unfollowed, Role::Warning));
    all.push(Figure::new("waits", Count(samples.all()), Role::Text));
    all.push(Figure::new("threads", counts.threads().len(), Role::Text));
    all
}

/// Returns the figures for CPU time sampled by the kernel.
pub(super) fn of_cpu(counts: &Counts<'_>, cpu: &CpuTime) -> Vec<Figure> {
    let samples = counts.samples();
    let mut all = vec![Figure::new("CPU", Nanoseconds(samples.all_ns()), Role::Strong)];
    if !cpu.recent.is_zero() {
        all.push(Figure::new("now", format!("{} % of a core", of_core(samples.recent_ns, cpu.recent)), Role::Strong));
    }
    all.extend(Figure::if_any("samples lost", cpu.losses.lost, Role::Warning));
    all.extend(Figure::if_any("threads not sampled", cpu.losses.missed_threads, Role::Warning));
    all.extend(Figure::if_any("short-lived threads not sampled", cpu.losses.short_threads, Role::Warning));
    all.push(Figure::new("average", format!("{} %", of_core(samples.all_ns(), cpu.elapsed)), Role::Text));
    let [in_gc, in_jit] = [cpu.in_gc(counts), counts.within(Origin::Jit, |_| false)];
    for (label, origin, within) in [("GC", Origin::Gc, in_gc), ("JIT", Origin::Jit, in_jit)] {
        all.extend(share_if_any(label, within.all_ns(), samples.all_ns(), role(origin)));
    }
    all.extend(share_if_any("unresolved", counts.unresolved(), samples.all(), Role::Warning));
    if cpu.broken * 20 > samples.all() {
        all.push(Figure::new("broken stacks", share(cpu.broken, samples.all()), Role::Warning));
    }
    all.extend(share_if_any("stacks cut off", cpu.cut, samples.all(), Role::Warning));
    all.push(Figure::new("samples", Count(samples.all()), Role::Text));
    all.push(Figure::new("threads", counts.threads().len(), Role::Text));
    all
}

/// Returns the figures for samples of the runtime.
pub(super) fn of_thread_time(counts: &Counts<'_>) -> Vec<Figure> {
    let (samples, profile) = (counts.samples(), counts.profile());
    let mut all = vec![Figure::new("samples", Count(samples.all()), Role::Strong)];
    if counts.distinguishes_waiting() {
        all.push(Figure::new(
            if profile.has_cpu_times { "running" } else { "may be waiting" },
            share(samples.running_ns, samples.all_ns()),
            Role::Strong,
        ));
        all.push(Figure::new("waiting", share(samples.waiting_ns, samples.all_ns()), Role::Text));
    }
    all.extend(share_if_any("unresolved", counts.unresolved(), samples.all(), Role::Warning));
    if counts.cut().all() > 0 {
        all.push(Figure::new("cut at 100 frames", share(counts.cut().all_ns(), samples.all_ns()), Role::Warning));
    }
    all.push(Figure::new("threads", counts.threads().len(), Role::Text));
    if let Some(interval) = profile.interval_ns {
        all.push(Figure::new("interval", Nanoseconds(interval), Role::Text));
    }
    all
}

/// Formats a share of one core.
fn of_core(ns: u64, time: Duration) -> SafeText {
    core_share(ns, time, Role::Text).into_text()
}

/// Returns a figure for a share, unless it is 0.
fn share_if_any(label: &'static str, part: u64, all: u64, role: Role) -> Option<Figure> {
    (part > 0).then(|| Figure::new(label, share(part, all), role))
}

fn share(part: u64, all: u64) -> Percent {
    Percent(part as f64 / all.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::SampleFilter;
    use crate::ui::tests::analysis::cpu_time;

    /// As in `dn-top cpu`: the code of their work is not always known.
    #[test]
    fn threads_of_the_gc_count_as_gc() {
        let mut cpu = cpu_time();
        let gc = |cpu: &CpuTime| {
            let all = of_cpu(&cpu.profile.count(SampleFilter::ALL), cpu);
            all.into_iter().find(|figure| figure.label == "GC").map(|figure| figure.value)
        };
        assert_eq!(gc(&cpu).as_deref(), Some("11 %"));
        cpu.threads[1].name = ".NET Server GC".into();
        assert_eq!(gc(&cpu).as_deref(), Some("24 %"));
    }
}
