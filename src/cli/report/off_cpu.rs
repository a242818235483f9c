//! What the threads of a recorded file wait for.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use crate::analysis::{MethodTime, Profile, SampleFilter, ThreadTimes};
use crate::cli::print::{self, Value, json};
use crate::model::{Count, Nanoseconds, SafeText};
use crate::sorting::CompactSort;

/// Maximum number of threads in the text.
const THREADS: usize = 10;

/// Shares of the wall time of all threads.
#[derive(Debug, PartialEq)]
pub(super) struct OffCpu {
    /// `states` if the kernel measured what threads waited for. `methods` if the runtime sampled its threads: then the reasons are methods that
    /// only wait, and time is thread time of managed threads.
    source: &'static str,
    wall_ns: u64,
    /// Nanoseconds by reason, the largest first; includes `cpu` and `runnable` if the kernel measured.
    reasons: Vec<(SafeText, u64)>,
    /// The threads with the most CPU time first; empty if the runtime sampled.
    threads: Vec<ThreadTimes>,
    /// The methods in which threads with work were blocked, from the stacks that the kernel recorded; the most time first.
    methods: Vec<MethodTime>,
    /// Blocked time of idle threads.
    idle_ns: u64,
}

impl OffCpu {
    /// Returns `None` if no times are known.
    pub(super) fn of_threads(mut threads: Vec<ThreadTimes>, methods: Vec<MethodTime>, idle: Duration) -> Option<Self> {
        let mut sums = BTreeMap::<&str, u64>::new();
        for thread in &threads {
            let off = thread.off_cpu_ns.iter().map(|(reason, ns)| (reason.as_str(), *ns));
            for (reason, ns) in off.chain([("cpu", thread.cpu_ns)]) {
                let sum = sums.entry(reason).or_default();
                *sum = sum.saturating_add(ns);
            }
        }
        let (wall_ns, reasons) = (sums.values().fold(0_u64, |sum, ns| sum.saturating_add(*ns)), sorted(sums));
        threads.compact_sort_by_key(|thread| (Reverse(thread.cpu_ns), thread.thread));
        let idle_ns = u64::try_from(idle.as_nanos()).unwrap_or(u64::MAX);
        (!threads.is_empty()).then_some(Self { source: "states", wall_ns, reasons, threads, methods, idle_ns })
    }

    /// Returns `None` if there are no samples.
    pub(super) fn of_samples(profile: &Profile) -> Option<Self> {
        let wall_ns = profile.count(SampleFilter::ALL).samples().all_ns();
        let found = profile.methods(SampleFilter { running: false, ..SampleFilter::ALL }, usize::MAX);
        let waits = found.methods.iter().filter(|method| method.own.all() > 0);
        let reasons = sorted(waits.map(|method| (method.name.as_str(), method.own.all_ns())));
        (!profile.is_empty()).then_some(Self { source: "methods", wall_ns, reasons, threads: Vec::new(), methods: Vec::new(), idle_ns: 0 })
    }

    pub(super) fn document(&self) -> Value {
        let reason = |(reason, ns): &(SafeText, u64), wall_ns| json!({ "reason": reason, "ns": ns, "percent": percent(*ns, wall_ns) });
        let reasons = |reasons: &[(SafeText, u64)], wall_ns| reasons.iter().map(|each| reason(each, wall_ns)).collect::<Vec<_>>();
        let thread = |thread: &ThreadTimes| {
            json!({
                "id": thread.thread,
                "name": SafeText::new(&thread.name),
                "wall_ns": thread.wall_ns(),
                "cpu_ns": thread.cpu_ns,
                "off_cpu": reasons(&off_cpu(thread), thread.wall_ns()),
            })
        };
        let method = |method: &MethodTime| {
            json!({
                "name": print::method_name(method),
                "module": SafeText::new(&method.module),
                "self_ns": method.own.all_ns(),
                "total_ns": method.total.all_ns(),
                // One that is longer than a second is counted again every second.
                "waits": method.own.all(),
            })
        };
        json!({
            "source": self.source,
            "wall_ns": self.wall_ns,
            "reasons": reasons(&self.reasons, self.wall_ns),
            "threads": self.threads.iter().map(thread).collect::<Vec<_>>(),
            "methods": self.methods.iter().map(method).collect::<Vec<_>>(),
            "idle_ns": self.idle_ns,
        })
    }

    pub(super) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let all = Nanoseconds(self.wall_ns);
        let title = match self.source {
            "states" => format!("THREAD STATE (of {all} wall time of all threads)"),
            _ => format!("WAITING METHOD (of {all} thread time of managed threads)"),
        };
        writeln!(out, "\n{:>7} {:>9}  {title}", "SHARE", "TIME")?;
        for (reason, ns) in &self.reasons {
            writeln!(out, "{:>6.1}% {:>9}  {reason}", percent(*ns, self.wall_ns), Nanoseconds(*ns).to_string())?;
        }
        if !self.methods.is_empty() {
            let idle = if self.idle_ns == 0 { String::new() } else { format!(" (without {} of idle threads)", Nanoseconds(self.idle_ns)) };
            writeln!(out, "\n{:>9} {:>9} {:>9}  WAITING METHOD{idle}", "SELF", "TOTAL", "WAITS")?;
        }
        for method in &self.methods {
            let [own, total] = [method.own, method.total].map(|samples| Nanoseconds(samples.all_ns()).to_string());
            writeln!(out, "{own:>9} {total:>9} {:>9}  {}", Count(method.own.all()).to_string(), print::method(method))?;
        }
        if self.threads.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{:>9} {:>9}  {:<15}  OFF CPU", "CPU", "THREAD", "NAME")?;
        for thread in self.threads.iter().take(THREADS) {
            let ThreadTimes { thread: id, name, cpu_ns, .. } = thread;
            let off = off_cpu(thread).into_iter().map(|(reason, ns)| (reason, percent(ns, thread.wall_ns())));
            let off = off.filter(|(_, percent)| *percent >= 0.5);
            let off = off.map(|(reason, percent)| format!("{reason} {percent:.0} %")).collect::<Vec<_>>().join(", ");
            writeln!(out, "{:>9} {id:>9}  {:<15}  {off}", Nanoseconds(*cpu_ns).to_string(), SafeText::new(name))?;
        }
        match self.threads.len().saturating_sub(THREADS) {
            0 => Ok(()),
            more => writeln!(out, "{:>21}  and {more} more", ""),
        }
    }
}

fn percent(ns: u64, wall_ns: u64) -> f64 {
    ns as f64 * 100.0 / wall_ns.max(1) as f64
}

/// Returns the time of a thread off CPU by reason, the largest first.
fn off_cpu(thread: &ThreadTimes) -> Vec<(SafeText, u64)> {
    sorted(thread.off_cpu_ns.iter().map(|(reason, ns)| (reason.as_str(), *ns)))
}

fn sorted<'a>(times: impl IntoIterator<Item = (&'a str, u64)>) -> Vec<(SafeText, u64)> {
    let times = times.into_iter().filter(|(_, ns)| *ns > 0);
    let mut reasons: Vec<_> = times.map(|(reason, ns)| (SafeText::new(reason), ns)).collect();
    reasons.compact_sort_by_key(|(_, ns)| Reverse(*ns));
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
        let document = off_cpu.document();
        let [reason] = &document["reasons"].as_array().unwrap()[..] else { panic!("{document:#}") };
        let expected = ("System.Threading.WaitHandle.WaitOneNoCheck", all.waiting_ns);
        assert_eq!((reason["reason"].as_str().unwrap(), reason["ns"].as_u64().unwrap()), expected);
        let percent = reason["percent"].as_f64().unwrap();
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
            vec![times(7, "main", 0, &[("io", 1000 * ms)]), times(9, "w\x1b", 250 * ms, &[("futex", 700 * ms), ("runnable", 50 * ms)])];
        assert_eq!(OffCpu::of_threads(Vec::new(), Vec::new(), Duration::ZERO), None);
        let off_cpu = OffCpu::of_threads(threads, Vec::new(), Duration::ZERO).unwrap();
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
