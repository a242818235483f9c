//! What the threads of a recorded file wait for.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use crate::analysis::{MethodTime, Profile, SampleFilter, ThreadTimes};
use crate::cli::print;
use crate::model::{Count, Nanoseconds, SafeText};
use crate::sorting::CompactSort;

/// Maximum number of threads in the text.
const THREADS: usize = 10;

/// Shares of the wall time of all threads.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct OffCpu {
    /// `states` if the kernel measured what threads waited for. `methods` if the runtime sampled its threads: then the reasons are methods that
    /// only wait, and time is thread time of managed threads.
    source: &'static str,
    wall_ns: u64,
    /// The largest first; includes `cpu` and `runnable` if the kernel measured.
    reasons: Vec<Reason>,
    /// The threads with the most CPU time first; empty if the runtime sampled.
    threads: Vec<Thread>,
    /// The methods in which threads with work were blocked, from the stacks that the kernel recorded; the most time first.
    methods: Vec<Method>,
    /// Blocked time of idle threads.
    idle_ns: u64,
}

#[derive(Debug, PartialEq, Serialize)]
struct Method {
    name: SafeText,
    module: SafeText,
    self_ns: u64,
    total_ns: u64,
    /// Number of waits; one that is longer than a second is counted again every second.
    waits: u64,
}

#[derive(Debug, PartialEq, Serialize)]
struct Reason {
    reason: SafeText,
    ns: u64,
    percent: f64,
}

#[derive(Debug, PartialEq, Serialize)]
struct Thread {
    id: u64,
    name: SafeText,
    wall_ns: u64,
    cpu_ns: u64,
    /// By reason, the largest first.
    off_cpu: Vec<Reason>,
}

impl OffCpu {
    /// Returns `None` if no times are known.
    pub(super) fn of_threads(threads: &[ThreadTimes]) -> Option<Self> {
        let mut sums = BTreeMap::<&str, u64>::new();
        for thread in threads {
            let off = thread.off_cpu_ns.iter().map(|(reason, ns)| (reason.as_str(), *ns));
            for (reason, ns) in off.chain([("cpu", thread.cpu_ns)]) {
                let sum = sums.entry(reason).or_default();
                *sum = sum.saturating_add(ns);
            }
        }
        let of_thread = |times: &ThreadTimes| Thread {
            id: times.thread,
            name: SafeText::new(&times.name),
            wall_ns: times.wall_ns(),
            cpu_ns: times.cpu_ns,
            off_cpu: reasons(times.off_cpu_ns.iter().map(|(reason, ns)| (reason.as_str(), *ns)), times.wall_ns()),
        };
        let mut of_threads: Vec<_> = threads.iter().map(of_thread).collect();
        of_threads.compact_sort_by_key(|thread| (Reverse(thread.cpu_ns), thread.id));
        let wall_ns = sums.values().fold(0_u64, |sum, ns| sum.saturating_add(*ns));
        (!threads.is_empty()).then(|| Self {
            source: "states",
            wall_ns,
            reasons: reasons(sums, wall_ns),
            threads: of_threads,
            methods: Vec::new(),
            idle_ns: 0,
        })
    }

    /// Adds the methods in which threads were blocked.
    pub(super) fn with_waits(mut self, waits: &Profile, idle_ns: u64, count: usize) -> Self {
        self.idle_ns = idle_ns;
        let method = |method: MethodTime| Method {
            name: print::method_name(&method),
            module: SafeText::new(&method.module),
            self_ns: method.own.all_ns(),
            total_ns: method.total.all_ns(),
            waits: method.own.all(),
        };
        self.methods = waits.methods(SampleFilter::ALL, count).methods.into_iter().map(method).collect();
        self
    }

    /// Returns `None` if there are no samples.
    pub(super) fn of_samples(profile: &Profile) -> Option<Self> {
        let wall_ns = profile.count(SampleFilter::ALL).samples().all_ns();
        let found = profile.methods(SampleFilter { running: false, ..SampleFilter::ALL }, usize::MAX);
        let waits = found.methods.iter().filter(|method| method.own.all() > 0);
        let reasons = reasons(waits.map(|method| (method.name.as_str(), method.own.all_ns())), wall_ns);
        (!profile.is_empty()).then_some(Self { source: "methods", wall_ns, reasons, threads: Vec::new(), methods: Vec::new(), idle_ns: 0 })
    }

    pub(super) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let all = Nanoseconds(self.wall_ns);
        let title = match self.source {
            "states" => format!("THREAD STATE (of {all} wall time of all threads)"),
            _ => format!("WAITING METHOD (of {all} thread time of managed threads)"),
        };
        writeln!(out, "\n{:>7} {:>9}  {title}", "SHARE", "TIME")?;
        for Reason { reason, ns, percent } in &self.reasons {
            writeln!(out, "{percent:>6.1}% {:>9}  {reason}", Nanoseconds(*ns).to_string())?;
        }
        if !self.methods.is_empty() {
            let idle = if self.idle_ns == 0 { String::new() } else { format!(" (without {} of idle threads)", Nanoseconds(self.idle_ns)) };
            writeln!(out, "\n{:>9} {:>9} {:>9}  WAITING METHOD{idle}", "SELF", "TOTAL", "WAITS")?;
        }
        for Method { name, module, self_ns, total_ns, waits } in &self.methods {
            let module = print::module_suffix(name, module);
            let [own, total] = [*self_ns, *total_ns].map(|ns| Nanoseconds(ns).to_string());
            writeln!(out, "{own:>9} {total:>9} {:>9}  {name}{module}", Count(*waits).to_string())?;
        }
        if self.threads.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{:>9} {:>9}  {:<15}  OFF CPU", "CPU", "THREAD", "NAME")?;
        for Thread { id, name, cpu_ns, off_cpu, .. } in self.threads.iter().take(THREADS) {
            let off = off_cpu.iter().filter(|reason| reason.percent >= 0.5);
            let off = off.map(|Reason { reason, percent, .. }| format!("{reason} {percent:.0} %")).collect::<Vec<_>>().join(", ");
            writeln!(out, "{:>9} {id:>9}  {name:<15}  {off}", Nanoseconds(*cpu_ns).to_string())?;
        }
        match self.threads.len().saturating_sub(THREADS) {
            0 => Ok(()),
            more => writeln!(out, "{:>21}  and {more} more", ""),
        }
    }
}

fn reasons<'a>(times: impl IntoIterator<Item = (&'a str, u64)>, wall_ns: u64) -> Vec<Reason> {
    let percent = |ns: u64| ns as f64 * 100.0 / wall_ns.max(1) as f64;
    let times = times.into_iter().filter(|(_, ns)| *ns > 0);
    let mut reasons: Vec<_> = times.map(|(reason, ns)| Reason { reason: SafeText::new(reason), ns, percent: percent(ns) }).collect();
    reasons.compact_sort_by_key(|reason| Reverse(reason.ns));
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtime_samples_yield_waiting_methods() {
        assert_eq!(OffCpu::of_samples(&Profile::default()), None);
        let scripted = crate::ui::tests::analysis::scripted();
        let off_cpu = OffCpu::of_samples(&scripted.profile).unwrap();
        let all = scripted.profile.count(SampleFilter::ALL).samples();
        assert_eq!((off_cpu.source, off_cpu.wall_ns, off_cpu.threads.len()), ("methods", all.all_ns(), 0));
        // Only waiting methods, each with its self time.
        let [Reason { reason, ns, percent }] = &off_cpu.reasons[..] else { panic!("{off_cpu:?}") };
        assert_eq!((reason.as_str(), *ns), ("System.Threading.WaitHandle.WaitOneNoCheck", all.waiting_ns));
        assert!((percent - 100.0 * all.waiting_ns as f64 / all.all_ns() as f64).abs() < 1e-9);
        let mut text = Vec::new();
        off_cpu.write_text(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("WAITING METHOD (of ") && text.ends_with("WaitOneNoCheck\n"), "{text}");
    }

    #[test]
    fn thread_times_are_shares_of_total_wall_time() {
        let times = |thread, name: &str, cpu_ns, off: &[(&str, u64)]| ThreadTimes {
            thread,
            name: name.to_owned(),
            cpu_ns,
            off_cpu_ns: off.iter().map(|(reason, ns)| ((*reason).to_owned(), *ns)).collect(),
        };
        let ms = 1_000_000;
        let threads =
            [times(7, "main", 0, &[("io", 1000 * ms)]), times(9, "w\x1b", 250 * ms, &[("futex", 700 * ms), ("runnable", 50 * ms)])];
        assert_eq!(OffCpu::of_threads(&[]), None);
        let off_cpu = OffCpu::of_threads(&threads).unwrap();
        let mut text = Vec::new();
        off_cpu.write_text(&mut text).unwrap();
        let expected = [
            "",
            "  SHARE      TIME  THREAD STATE (of 2.0 s wall time of all threads)",
            "  50.0%     1.0 s  io",
            "  35.0%    700 ms  futex",
            "  12.5%    250 ms  cpu",
            "   2.5%     50 ms  runnable",
            "",
            "      CPU    THREAD  NAME             OFF CPU",
            "   250 ms         9  w\u{fffd}               futex 70 %, runnable 5 %",
            "     0 ns         7  main             io 100 %",
        ];
        assert_eq!(String::from_utf8(text).unwrap().lines().collect::<Vec<_>>(), expected);
    }
}
