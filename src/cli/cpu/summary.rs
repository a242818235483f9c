//! The CPU profile of a process as a document and as text.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use foldhash::HashMap;
use serde::Serialize;

use super::Missing;
use crate::analysis::{MethodTime, Origin, SampleFilter};
use crate::cli::{args, print};
use crate::model::{Count, Counted, CpuThread, Percent, Process, SafeText};
use crate::session::CpuProfile;
use crate::sorting::CompactSort;

/// Maximum number of threads in the text.
const THREADS: usize = 10;
/// Maximum number of waiting methods in the text.
const WAITS: usize = 5;

/// The document of the command line contract. Percentages are of one core over the whole time.
#[derive(Default, Serialize)]
pub(super) struct Document {
    pid: u32,
    name: SafeText,
    duration_ms: f64,
    /// CPU time per sample.
    period_ns: u64,
    pub(super) samples: u64,
    /// CPU time of all threads, as measured by the kernel.
    cpu_ms: f64,
    cpu_percent: f64,
    /// The sampled time, by kind of code.
    managed_ms: f64,
    native_ms: f64,
    kernel_ms: f64,
    stub_ms: f64,
    unknown_ms: f64,
    /// Total time in the garbage collector and in the JIT compiler, as far as their code is known: part of the above.
    gc_ms: f64,
    jit_ms: f64,
    /// If kernel code was not sampled, `kernel_ms` is what is missing from `cpu_ms`.
    #[serde(flatten)]
    pub(super) missing: Missing,
    /// Whether the names of all managed methods were received.
    pub(super) complete: bool,
    methods: Vec<Method>,
    threads: Vec<Thread>,
    /// Methods in which threads with work were blocked; empty if the kernel does not report it.
    waiting_methods: Vec<WaitingMethod>,
    /// Blocked time of idle threads.
    idle_ms: f64,
    /// Waits whose stacks did not fit into a ring buffer.
    lost_waits: u64,
    /// Threads whose waits have no stacks (or no longer), because there were too many.
    unfollowed_threads: u64,
}

#[derive(Serialize)]
struct WaitingMethod {
    name: SafeText,
    module: SafeText,
    self_ms: f64,
    total_ms: f64,
    /// Waits in the method itself; one that is longer than a second is counted again every second.
    waits: u64,
}

#[derive(Serialize)]
struct Method {
    name: SafeText,
    module: SafeText,
    kind: &'static str,
    self_ms: f64,
    total_ms: f64,
    self_percent: f64,
    total_percent: f64,
    self_samples: u64,
    total_samples: u64,
}

#[derive(Serialize)]
struct Thread {
    id: u64,
    name: SafeText,
    cpu_ms: f64,
    cpu_percent: f64,
    samples: u64,
    /// Time during which the thread was sampled. The following percentages are of this time and add up to 100.
    wall_ms: f64,
    on_cpu_percent: f64,
    /// Runnable, but not on a CPU.
    runnable_percent: f64,
    /// Blocked, by reason. Runtime events identify waits for a `lock` and for a garbage collection (`gc`). Stacks, where available, also identify
    /// `signal`, `sleep`, `idle` (a thread pool thread without work) and `runtime`; without them all of these are `futex`.
    waits_percent: BTreeMap<&'static str, f64>,
    /// Where it spent its time off CPU, for the text.
    #[serde(skip)]
    off_cpu: Vec<(&'static str, f64)>,
}

pub(super) fn document(process: &Process, profile: &CpuProfile, arguments: &args::Cpu) -> Document {
    let time = &profile.time;
    let elapsed_ms = time.elapsed.as_secs_f64() * 1e3;
    let ms = |ns: u64| ns as f64 / 1e6;
    let percent = |ms: f64| if elapsed_ms > 0.0 { ms * 100.0 / elapsed_ms } else { 0.0 };
    let mut found = time.profile.methods(SampleFilter::ALL, usize::MAX);
    let of = |origin| ms(found.methods.iter().filter(|method| method.origin == origin).map(|method| method.own.all_ns()).sum());
    let [managed_ms, kernel_ms, stub_ms, unknown_ms] = [Origin::Managed, Origin::Kernel, Origin::Stub, Origin::Unknown].map(of);
    let native_ms = [Origin::Native, Origin::Gc, Origin::Jit, Origin::Allocation, Origin::Exception].map(of).iter().sum();
    let counts = time.profile.count(SampleFilter::ALL);
    let [gc_ms, jit_ms] = [time.in_gc(&counts), counts.within(Origin::Jit, |_| false)].map(|samples| ms(samples.all_ns()));
    let cpu_ms = time.threads.iter().map(|thread| thread.cpu.as_secs_f64() * 1e3).sum();
    if arguments.inclusive {
        found.methods.compact_sort_by_key(|method| Reverse((method.total.all_ns(), method.own.all_ns())));
    }
    found.methods.truncate(arguments.count);
    let method = |method: &MethodTime| {
        let (own, total) = (ms(method.own.all_ns()), ms(method.total.all_ns()));
        Method {
            name: print::method_name(method),
            module: SafeText::new(&method.module),
            kind: method.origin.name(),
            self_ms: own,
            total_ms: total,
            self_percent: percent(own),
            total_percent: percent(total),
            self_samples: method.own.all(),
            total_samples: method.total.all(),
        }
    };
    let waiting_method = |method: &MethodTime| WaitingMethod {
        name: print::method_name(method),
        module: SafeText::new(&method.module),
        self_ms: ms(method.own.all_ns()),
        total_ms: ms(method.total.all_ns()),
        waits: method.own.all(),
    };
    let waits = time.waits.as_ref().map(|waits| waits.methods(SampleFilter::ALL, arguments.count).methods).unwrap_or_default();
    let samples: HashMap<_, _> = found.threads.iter().map(|thread| (thread.thread.thread, thread.samples.all())).collect();
    let thread = |thread: &CpuThread| {
        let cpu_ms = thread.cpu.as_secs_f64() * 1e3;
        let samples = samples.get(&thread.thread).copied().unwrap_or(0);
        let (CpuThread { wall, runnable, waits, .. }, off_cpu) = (thread, thread.off_cpu());
        let share = |time: Duration| time.as_secs_f64() * 100.0 / wall.as_secs_f64().max(1e-9);
        Thread {
            id: thread.thread,
            name: thread.name.clone(),
            cpu_ms,
            cpu_percent: percent(cpu_ms),
            samples,
            wall_ms: wall.as_secs_f64() * 1e3,
            on_cpu_percent: share(thread.cpu.min(*wall)),
            runnable_percent: share(*runnable),
            waits_percent: waits.iter().map(|(wait, time)| (*wait, share(*time))).collect(),
            off_cpu,
        }
    };
    let mut threads: Vec<_> = time.threads.iter().map(thread).collect();
    threads.compact_sort_by(|a, b| b.cpu_ms.total_cmp(&a.cpu_ms));
    Document {
        pid: process.key.pid,
        name: process.name.clone(),
        duration_ms: elapsed_ms,
        period_ns: profile.period_ns,
        samples: found.samples.all(),
        cpu_ms,
        cpu_percent: percent(cpu_ms),
        managed_ms,
        native_ms,
        kernel_ms: if time.losses.includes_kernel { kernel_ms } else { (cpu_ms - ms(found.samples.all_ns())).max(0.0) },
        stub_ms,
        unknown_ms,
        gc_ms,
        jit_ms,
        missing: Missing::of(time),
        complete: profile.names_missing.is_none(),
        methods: found.methods.iter().map(method).collect(),
        threads,
        waiting_methods: waits.iter().map(waiting_method).collect(),
        idle_ms: time.idle.as_secs_f64() * 1e3,
        lost_waits: time.lost_waits,
        unfollowed_threads: time.unfollowed,
    }
}

pub(super) fn write_text(out: &mut dyn Write, document: &Document) -> std::io::Result<()> {
    let Document { pid, name, samples, methods, threads, .. } = document;
    writeln!(
        out,
        "{name} ({pid}): {:.0} ms CPU time in {:.1} s, {:.1} % of one core; {}, one per {:.1} ms",
        document.cpu_ms,
        document.duration_ms / 1e3,
        document.cpu_percent,
        Counted(*samples, "sample"),
        document.period_ns as f64 / 1e6
    )?;
    let parts = [
        ("managed", document.managed_ms),
        ("native", document.native_ms),
        ("kernel", document.kernel_ms),
        ("stubs", document.stub_ms),
        ("unknown", document.unknown_ms),
    ];
    if *samples == 0 {
        writeln!(out, "no samples: the threads used too little CPU time, or all were lost")?;
    }
    let all: f64 = parts.iter().map(|(_, ms)| ms).sum();
    let parts = parts.iter().filter(|(_, ms)| *ms > 0.0).map(|(part, ms)| format!("{part} {}", Percent(ms / all)));
    let within = [("GC", document.gc_ms), ("JIT", document.jit_ms)];
    let within = within.iter().filter(|(_, ms)| *ms > 0.0).map(|(part, ms)| format!("{part} {}", Percent(ms / all)));
    let within = within.collect::<Vec<_>>().join(", ");
    let within = if within.is_empty() { within } else { format!("; of it {within}") };
    if *samples > 0 {
        writeln!(out, "{}{within}", parts.collect::<Vec<_>>().join(", "))?;
        writeln!(out, "\n{:>9} {:>7} {:>9} {:>7}  {:<9}  METHOD", "SELF ms", "SELF%", "TOTAL ms", "TOTAL%", "KIND")?;
    }
    for Method { name, module, kind, self_ms, total_ms, self_percent, total_percent, .. } in methods {
        let module = print::module_suffix(name, module);
        writeln!(out, "{self_ms:>9.1} {self_percent:>6.1}% {total_ms:>9.1} {total_percent:>6.1}%  {kind:<9}  {name}{module}")?;
    }
    let mut waits = document.waiting_methods.iter().filter(|method| method.self_ms > 0.0).take(WAITS).peekable();
    if waits.peek().is_some() {
        let idle = if document.idle_ms < 0.5 { String::new() } else { format!(" (without {:.0} ms of idle threads)", document.idle_ms) };
        writeln!(out, "\n{:>9} {:>7}  WAITING METHOD{idle}", "SELF ms", "WAITS")?;
    }
    for WaitingMethod { name, module, self_ms, waits, .. } in waits {
        let module = print::module_suffix(name, module);
        writeln!(out, "{self_ms:>9.1} {:>7}  {name}{module}", Count(*waits).to_string())?;
    }
    writeln!(out, "\n{:>9} {:>7} {:>9}  {:<15}  OFF CPU", "CPU ms", "CPU%", "THREAD", "NAME")?;
    let ran = |thread: &&Thread| thread.cpu_ms >= 0.05;
    for thread in threads.iter().filter(ran).take(THREADS) {
        let Thread { id, name, cpu_ms, cpu_percent, off_cpu, .. } = thread;
        let parts = off_cpu.iter().map(|(wait, share)| format!("{wait} {}", Percent(*share))).collect::<Vec<_>>().join(", ");
        writeln!(out, "{cpu_ms:>9.1} {cpu_percent:>6.1}% {id:>9}  {name:<15}  {parts}")?;
    }
    let idle = threads.iter().filter(|thread| !ran(thread)).count();
    let rest = threads.len() - idle;
    if rest > THREADS {
        writeln!(out, "{:>27}  and {} more", "", rest - THREADS)?;
    }
    writeln!(out, "{:>27}  {:#}", "", Counted(idle as u64, "idle thread"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting() -> Thread {
        Thread {
            id: 0,
            name: SafeText::default(),
            cpu_ms: 0.0,
            cpu_percent: 0.0,
            samples: 0,
            wall_ms: 2000.0,
            on_cpu_percent: 50.0,
            runnable_percent: 10.2,
            waits_percent: BTreeMap::from([("futex", 39.5), ("io", 0.3)]),
            off_cpu: vec![("futex", 0.395), ("runnable", 0.102)],
        }
    }

    #[test]
    fn summary_text_lists_methods_waits_and_threads() {
        let method = |name: &str, kind, own: f64, total: f64| Method {
            name: name.into(),
            module: "App".into(),
            kind,
            self_ms: own,
            total_ms: total,
            self_percent: own / 20.0,
            total_percent: total / 20.0,
            self_samples: own as u64,
            total_samples: total as u64,
        };
        let thread = |id, cpu_ms| Thread { id, name: "worker".into(), cpu_ms, cpu_percent: cpu_ms / 20.0, samples: 5, ..waiting() };
        let document = Document {
            pid: 7,
            name: "App".into(),
            duration_ms: 2000.0,
            period_ns: 1_001_001,
            samples: 990,
            cpu_ms: 1000.0,
            cpu_percent: 50.0,
            managed_ms: 600.0,
            native_ms: 300.0,
            kernel_ms: 100.0,
            gc_ms: 100.0,
            methods: vec![method("App.Work()", "managed", 600.0, 900.0), method("[libcoreclr.so]", "native", 300.0, 300.0)],
            threads: vec![thread(8, 1000.0), thread(9, 0.0)],
            waiting_methods: [("App.Wait()", 790.0), ("App.Main()", 0.0)]
                .map(|(name, self_ms)| WaitingMethod { name: name.into(), module: "App".into(), self_ms, total_ms: 790.0, waits: 12 })
                .into(),
            idle_ms: 60.0,
            ..Document::default()
        };
        let mut text = Vec::new();
        write_text(&mut text, &document).unwrap();
        let expected = [
            "App (7): 1000 ms CPU time in 2.0 s, 50.0 % of one core; 990 samples, one per 1.0 ms",
            "managed 60 %, native 30 %, kernel 10 %; of it GC 10 %",
            "",
            "  SELF ms   SELF%  TOTAL ms  TOTAL%  KIND       METHOD",
            "    600.0   30.0%     900.0   45.0%  managed    App.Work()  [App]",
            "    300.0   15.0%     300.0   15.0%  native     [libcoreclr.so]",
            "",
            "  SELF ms   WAITS  WAITING METHOD (without 60 ms of idle threads)",
            "    790.0      12  App.Wait()  [App]",
            "",
            "   CPU ms    CPU%    THREAD  NAME             OFF CPU",
            "   1000.0   50.0%         8  worker           futex 40 %, runnable 10 %",
            "                             1 idle thread",
        ];
        assert_eq!(String::from_utf8(text).unwrap().lines().collect::<Vec<_>>(), expected);
        let mut text = Vec::new();
        write_text(&mut text, &Document { name: "App".into(), pid: 7, period_ns: 1_001_001, ..Document::default() }).unwrap();
        let text = String::from_utf8(text).unwrap();
        let [_, none, "", threads, idle] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
        assert!(none.starts_with("no samples: ") && threads.contains("OFF CPU") && idle.ends_with("0 idle threads"), "{text}");
    }
}
