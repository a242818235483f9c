//! The CPU profile of a process as a document and as text.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use foldhash::HashMap;

use super::{cpu_ms, missing, ms};
use crate::analysis::{MethodTime, MethodsSnapshot, Origin, SampleFilter};
use crate::cli::args;
use crate::cli::print::{self, Value, json};
use crate::model::{Count, Counted, CpuThread, Percent, Process, SafeText};
use crate::session::CpuProfile;
use crate::sorting::CompactSort;

/// Maximum number of threads in the text.
const THREADS: usize = 10;
/// Maximum number of waiting methods in the text.
const WAITS: usize = 5;

/// What is shown of a profile.
pub(super) struct Summary<'a> {
    process: &'a Process,
    profile: &'a CpuProfile,
    /// The requested number of methods, by self time or by total time.
    pub(super) found: MethodsSnapshot,
    /// Methods in which threads with work were blocked; empty if the kernel does not report it.
    waiting: Vec<MethodTime>,
    /// In descending order of CPU time.
    threads: Vec<&'a CpuThread>,
    /// The sampled time in managed, native and kernel code, in stubs and in unknown code, milliseconds.
    parts_ms: [f64; 5],
    /// Total time in the garbage collector and in the JIT compiler, as far as their code is known: part of the above.
    within_ms: [f64; 2],
}

impl<'a> Summary<'a> {
    pub(super) fn new(process: &'a Process, profile: &'a CpuProfile, arguments: &args::Cpu) -> Self {
        let time = &profile.time;
        let mut found = time.profile.methods(SampleFilter::ALL, usize::MAX);
        let of = |origins: &[Origin]| {
            let methods = found.methods.iter().filter(|method| origins.contains(&method.origin));
            ms(methods.map(|method| method.own.all_ns()).sum())
        };
        let native = [Origin::Native, Origin::Gc, Origin::Jit, Origin::Allocation, Origin::Exception];
        // If kernel code was not sampled, its time is what is missing from the CPU time.
        let kernel_ms = match time.losses.includes_kernel {
            true => of(&[Origin::Kernel]),
            false => (cpu_ms(time) - ms(found.samples.all_ns())).max(0.0),
        };
        let parts_ms = [of(&[Origin::Managed]), of(&native), kernel_ms, of(&[Origin::Stub]), of(&[Origin::Unknown])];
        let counts = time.profile.count(SampleFilter::ALL);
        let within_ms = [time.in_gc(&counts), counts.within(Origin::Jit, |_| false)].map(|samples| ms(samples.all_ns()));
        if arguments.inclusive {
            found.methods.compact_sort_by_key(|method| Reverse((method.total.all_ns(), method.own.all_ns())));
        }
        found.methods.truncate(arguments.count);
        let waiting = time.waits.as_ref().map(|waits| waits.methods(SampleFilter::ALL, arguments.count).methods).unwrap_or_default();
        let mut threads: Vec<_> = time.threads.iter().collect();
        threads.compact_sort_by_key(|thread| Reverse(thread.cpu));
        Self { process, profile, found, waiting, threads, parts_ms, within_ms }
    }

    /// Percentage of one core over the whole time.
    fn percent(&self, ms: f64) -> f64 {
        let elapsed = self.profile.time.elapsed.as_secs_f64();
        if elapsed > 0.0 { ms / 10.0 / elapsed } else { 0.0 }
    }

    /// Returns the document of the command line contract.
    pub(super) fn document(&self) -> Value {
        let (time, cpu_ms) = (&self.profile.time, cpu_ms(&self.profile.time));
        let [managed_ms, native_ms, kernel_ms, stub_ms, unknown_ms] = self.parts_ms;
        let [gc_ms, jit_ms] = self.within_ms;
        let method = |method: &MethodTime| {
            let (self_ms, total_ms) = (ms(method.own.all_ns()), ms(method.total.all_ns()));
            json!({
                "name": print::method_name(method),
                "module": SafeText::new(&method.module),
                "kind": method.origin.name(),
                "self_ms": self_ms,
                "total_ms": total_ms,
                "self_percent": self.percent(self_ms),
                "total_percent": self.percent(total_ms),
                "self_samples": method.own.all(),
                "total_samples": method.total.all(),
            })
        };
        let waiting_method = |method: &MethodTime| {
            json!({
                "name": print::method_name(method),
                "module": SafeText::new(&method.module),
                "self_ms": ms(method.own.all_ns()),
                "total_ms": ms(method.total.all_ns()),
                // Waits in the method itself; one that is longer than a second is counted again every second.
                "waits": method.own.all(),
            })
        };
        let samples: HashMap<_, _> = self.found.threads.iter().map(|thread| (thread.thread.thread, thread.samples.all())).collect();
        let thread = |thread: &&CpuThread| {
            let CpuThread { cpu, wall, runnable, waits, .. } = thread;
            let cpu_ms = cpu.as_secs_f64() * 1e3;
            let share = |time: Duration| time.as_secs_f64() * 100.0 / wall.as_secs_f64().max(1e-9);
            json!({
                "id": thread.thread,
                "name": thread.name,
                "cpu_ms": cpu_ms,
                "cpu_percent": self.percent(cpu_ms),
                "samples": samples.get(&thread.thread).unwrap_or(&0),
                // Time during which the thread was sampled. The following percentages are of this time and add up to 100.
                "wall_ms": wall.as_secs_f64() * 1e3,
                "on_cpu_percent": share(*cpu.min(wall)),
                // Runnable, but not on a CPU.
                "runnable_percent": share(*runnable),
                // Blocked, by reason. Runtime events identify waits for a `lock` and for a garbage collection (`gc`). Stacks, where available, also
                // identify `signal`, `sleep`, `idle` (a thread pool thread without work) and `runtime`; without them all of these are `futex`.
                "waits_percent": waits.iter().map(|(wait, time)| (*wait, share(*time))).collect::<BTreeMap<_, _>>(),
            })
        };
        print::joined([
            json!({
                "pid": self.process.key.pid,
                "name": self.process.name,
                "duration_ms": time.elapsed.as_secs_f64() * 1e3,
                // CPU time per sample.
                "period_ns": self.profile.period_ns,
                "samples": self.found.samples.all(),
                // CPU time of all threads, as measured by the kernel.
                "cpu_ms": cpu_ms,
                "cpu_percent": self.percent(cpu_ms),
                "managed_ms": managed_ms,
                "native_ms": native_ms,
                "kernel_ms": kernel_ms,
                "stub_ms": stub_ms,
                "unknown_ms": unknown_ms,
                "gc_ms": gc_ms,
                "jit_ms": jit_ms,
            }),
            missing(time),
            json!({
                // Whether the names of all managed methods were received.
                "complete": self.profile.names_missing.is_none(),
                "methods": self.found.methods.iter().map(method).collect::<Vec<_>>(),
                "threads": self.threads.iter().map(thread).collect::<Vec<_>>(),
                "waiting_methods": self.waiting.iter().map(waiting_method).collect::<Vec<_>>(),
                // Blocked time of idle threads.
                "idle_ms": time.idle.as_secs_f64() * 1e3,
                // Waits whose stacks did not fit into a ring buffer.
                "lost_waits": time.lost_waits,
                // Threads whose waits have no stacks (or no longer), because there were too many.
                "unfollowed_threads": time.unfollowed,
            }),
        ])
    }

    pub(super) fn write_text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let (Process { key, name, .. }, time) = (self.process, &self.profile.time);
        let (samples, cpu_ms) = (self.found.samples.all(), cpu_ms(time));
        writeln!(
            out,
            "{name} ({}): {cpu_ms:.0} ms CPU time in {:.1} s, {:.1} % of one core; {}, one per {:.1} ms",
            key.pid,
            time.elapsed.as_secs_f64(),
            self.percent(cpu_ms),
            Counted(samples, "sample"),
            ms(self.profile.period_ns)
        )?;
        if samples == 0 {
            writeln!(out, "no samples: the threads used too little CPU time, or all were lost")?;
        } else {
            let all: f64 = self.parts_ms.iter().sum();
            let shares = |names: &[&str], times: &[f64]| {
                let shown = names.iter().zip(times).filter(|(_, ms)| **ms > 0.0);
                shown.map(|(name, ms)| format!("{name} {}", Percent(ms / all))).collect::<Vec<_>>().join(", ")
            };
            let within = shares(&["GC", "JIT"], &self.within_ms);
            let within = if within.is_empty() { within } else { format!("; of it {within}") };
            writeln!(out, "{}{within}", shares(&["managed", "native", "kernel", "stubs", "unknown"], &self.parts_ms))?;
            writeln!(out, "\n{:>9} {:>7} {:>9} {:>7}  {:<9}  METHOD", "SELF ms", "SELF%", "TOTAL ms", "TOTAL%", "KIND")?;
        }
        for method in &self.found.methods {
            let [own, total] = [method.own, method.total].map(|samples| ms(samples.all_ns()));
            let (own_percent, total_percent, kind) = (self.percent(own), self.percent(total), method.origin.name());
            writeln!(out, "{own:>9.1} {own_percent:>6.1}% {total:>9.1} {total_percent:>6.1}%  {kind:<9}  {}", print::method(method))?;
        }
        let mut waiting = self.waiting.iter().filter(|method| method.own.all_ns() > 0).take(WAITS).peekable();
        if waiting.peek().is_some() {
            let idle_ms = time.idle.as_secs_f64() * 1e3;
            let idle = if idle_ms < 0.5 { String::new() } else { format!(" (without {idle_ms:.0} ms of idle threads)") };
            writeln!(out, "\n{:>9} {:>7}  WAITING METHOD{idle}", "SELF ms", "WAITS")?;
        }
        for method in waiting {
            let waits = Count(method.own.all()).to_string();
            writeln!(out, "{:>9.1} {waits:>7}  {}", ms(method.own.all_ns()), print::method(method))?;
        }
        writeln!(out, "\n{:>9} {:>7} {:>9}  {:<15}  OFF CPU", "CPU ms", "CPU%", "THREAD", "NAME")?;
        let (ran, idle) = self.threads.split_at(self.threads.partition_point(|thread| thread.cpu >= Duration::from_micros(50)));
        for thread in ran.iter().take(THREADS) {
            let CpuThread { thread: id, name, .. } = thread;
            let cpu_ms = thread.cpu.as_secs_f64() * 1e3;
            let off_cpu = thread.off_cpu().iter().map(|(wait, share)| format!("{wait} {}", Percent(*share))).collect::<Vec<_>>().join(", ");
            writeln!(out, "{cpu_ms:>9.1} {:>6.1}% {id:>9}  {name:<15}  {off_cpu}", self.percent(cpu_ms))?;
        }
        if ran.len() > THREADS {
            writeln!(out, "{:>27}  and {} more", "", ran.len() - THREADS)?;
        }
        writeln!(out, "{:>27}  {:#}", "", Counted(idle.len() as u64, "idle thread"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::cpu::tests::{arguments, process};
    use crate::model::CpuTime;
    use crate::ui::tests::analysis::cpu_time;

    fn profile(time: CpuTime) -> CpuProfile {
        CpuProfile { time, period_ns: 1_001_001, names_missing: None, ended: false, file: None }
    }

    fn text(summary: &Summary<'_>) -> Vec<String> {
        let mut text = Vec::new();
        summary.write_text(&mut text).unwrap();
        String::from_utf8(text).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn summary_lists_methods_waits_and_threads() {
        let (process, profile) = (process(), profile(CpuTime { idle: Duration::from_millis(60), ..cpu_time() }));
        let summary = Summary::new(&process, &profile, &arguments(&["--top", "4"]));
        let expected = [
            "App (7): 8524 ms CPU time in 42.0 s, 20.3 % of one core; 8.5k samples, one per 1.0 ms",
            "managed 61 %, native 35 %, kernel 3.5 %; of it GC 11 %, JIT 7.1 %",
            "",
            "  SELF ms   SELF%  TOTAL ms  TOTAL%  KIND       METHOD",
            "   5205.2   12.4%    7907.9   18.8%  managed    Shop.Pricing.PriceEngine.PriceBasket  [Shop]",
            "   1501.5    3.6%    1501.5    3.6%  native     memmove  [libc.so.6]",
            "    900.9    2.1%     900.9    2.1%  GC         WKS::gc_heap::mark_phase  [libcoreclr.so]",
            "    600.6    1.4%     600.6    1.4%  JIT        [libclrjit.so]",
            "",
            "  SELF ms   WAITS  WAITING METHOD (without 60 ms of idle threads)",
            "  29400.0      42  System.Threading.WaitHandle.WaitOneNoCheck  [Shop]",
            "  21000.0      42  System.Threading.Monitor.Enter_Slowpath  [Shop]",
            "",
            "   CPU ms    CPU%    THREAD  NAME             OFF CPU",
            "   7421.0   17.7%        11  OrderService     lock 48 %, sleep 19 %, runnable 2.4 %",
            "   1103.0    2.6%        13  .NET TP Worker   signal 48 %, sleep 19 %, runnable 2.4 %",
            "                             1 idle thread",
        ];
        assert_eq!(text(&summary), expected);
        let document = summary.document();
        assert_eq!((&document["samples"], &document["lost_samples"], &document["complete"]), (&json!(8500), &json!(12), &json!(true)));
        assert_eq!((&document["methods"][0]["self_samples"], &document["methods"][0]["total_samples"]), (&json!(5200), &json!(7900)));
        assert_eq!((&document["waiting_methods"][0]["waits"], &document["threads"][1]["samples"]), (&json!(42), &json!(1100)));
    }

    #[test]
    fn summary_without_samples_shows_why() {
        let (process, profile) = (process(), profile(CpuTime::default()));
        let text = text(&Summary::new(&process, &profile, &arguments(&[])));
        let [_, none, blank, threads, idle] = &text[..] else { panic!("{text:?}") };
        assert!(
            none.starts_with("no samples: ") && blank.is_empty() && threads.contains("OFF CPU") && idle.ends_with("0 idle threads"),
            "{text:?}"
        );
    }
}
