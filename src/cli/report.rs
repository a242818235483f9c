//! `report FILE`: the methods with the most time; also requests by route, and why the process was slow, if the file contains such events.

mod off_cpu;

use std::cmp::Reverse;
use std::io::Write;
use std::time::Duration;

use self::off_cpu::OffCpu;
use super::analyses::{Routes, missing_status};
use super::args::{self, Frames};
use super::cpu::{missing_callers, missing_samples};
use super::diff;
use super::exit::{Exit, Failure};
use super::print::{self, Value, json};
use super::slow::SlowCauses;
use crate::analysis::{
    EventCount, KernelSamples, MethodTime, MethodsSnapshot, Origin, Profile, RecordedCpuTime, SampleCount, SampleFilter, SampledMethods,
};
use crate::clr::payload::SampleLosses;
use crate::clr::{HOSTING_PROVIDER, HTTP_CLIENT_PROVIDER, RUNTIME_PROVIDER};
use crate::diagnosis::Thresholds;
use crate::model::{Count, Counted, FileContents, Percent, SafeText};
use crate::session::{RecordedFile, read_cpu_samples, without_idle_waits};
use crate::sorting::CompactSort;

/// Events that explain slowness beyond the samples: garbage collections, thread pool changes, exceptions and lock contention.
const CAUSE_EVENT_IDS: [u32; 5] = [1, 54, 55, 80, 81];
const REQUEST_PROVIDERS: [&str; 2] = [HOSTING_PROVIDER, HTTP_CLIENT_PROVIDER];

/// What is shown of a file.
struct Report {
    /// `cpu` if the kernel sampled the code: times are CPU time. `threads` if the runtime sampled its threads.
    source: &'static str,
    /// Samples that count, and the requested number of methods.
    found: MethodsSnapshot,
    /// All samples. Those of waiting threads only count if requested.
    all: SampleCount,
    /// Samples whose stack contains code without frame pointers, or was cut off by the kernel: the totals of the callers are too low.
    broken_chains: u64,
    cut_chains: u64,
    dropped_events: u64,
    /// Time of samples whose frames are all hidden; attributed to no method.
    hidden_ns: u64,
    /// If requested and the file contains the data.
    off_cpu: Option<OffCpu>,
    /// If the kernel sampled and the file records it: whether kernel code was sampled too, and how many samples are missing.
    losses: Option<SampleLosses>,
    /// If the file contains requests.
    routes: Option<Routes>,
    /// Why the process was slow, if the file contains more than samples.
    slow: Option<SlowCauses>,
}

pub(super) fn run(arguments: &args::Report, thresholds: &Thresholds) -> Result<Exit, Failure> {
    let mut recorded = RecordedFile::open(&arguments.file).map_err(Failure::failed)?;
    let (sampled, pass) = recorded.read_methods(arguments.range).map_err(Failure::failed)?;

    let cpu = sampled.cpu().or_else(|| read_cpu_samples(&arguments.file, &pass.header, arguments.range));
    let shows_cause = |event: &EventCount| match event.provider.as_str() {
        RUNTIME_PROVIDER => CAUSE_EVENT_IDS.contains(&event.event_id),
        provider => REQUEST_PROVIDERS.contains(&provider),
    };
    // A pipe cannot be read again: opening it would block until there is a writer.
    let is_file = arguments.file.metadata().is_ok_and(|metadata| metadata.is_file());
    let more = is_file && sampled.throughput().counts().iter().any(shows_cause);
    let contents = if more { diff::read(&arguments.file, arguments.range).ok() } else { None };
    let report = Report::new(&sampled, cpu, contents.as_ref(), arguments, thresholds);
    print::result(arguments.output.json, || report.document(), |out| report.write_text(out))?;
    if report.routes.is_some() {
        let activities = contents.as_ref().map(|contents| &contents.analysis.snapshot.activities);
        activities.and_then(missing_status).iter().for_each(print::message);
    }
    let problems = sampled.throughput().problems();
    for words in pass.trouble().into_iter().chain(problems.iter().map(ToString::to_string)) {
        print::message(format_args!("{}: {words}", arguments.file.display()));
    }
    let (samples, time_ns) = (report.found.samples.all(), report.found.samples.all_ns().max(1) as f64);
    if samples + report.all.waiting == 0 {
        let file = match arguments.range {
            Some(_) => format!("the range of {}", arguments.file.display()),
            None => arguments.file.display().to_string(),
        };
        // Other parts of the file may contain samples.
        let advice = if arguments.range.is_some() { "" } else { ": record with --profile cpu" };
        match KernelSamples::from_counts(&sampled.throughput().counts()) {
            _ if report.source == "cpu" => {
                print::message(format_args!("{file} contains no CPU samples: the threads used too little CPU time, or all were lost"))
            }
            Some(kernel) => print::message(format_args!("{file} contains no samples of the runtime, but {kernel}")),
            None => print::message(format_args!("{file} contains no samples{advice}")),
        }
    } else if samples == 0 {
        print::message("all samples are of waiting threads: --waiting includes them");
    } else if report.found.unresolved > 0 {
        let unresolved = Counted(report.found.unresolved, "sample");
        print::message(format_args!("the file does not contain the names of the methods of {unresolved}"));
    }
    if let Some(losses) = &report.losses {
        if !losses.includes_kernel {
            print::message("kernel code was not sampled: it is missing from all times");
        }
        missing_samples(losses).iter().for_each(print::message);
    }
    missing_callers(samples, report.cut_chains, report.broken_chains).iter().for_each(print::message);
    if report.found.cut.all() > 0 && report.source != "cpu" {
        print::message(format_args!(
            "{} of the time is in stacks that the runtime cut off at 100 frames: TOTAL is too low for the methods that called these",
            Percent(report.found.cut.all_ns() as f64 / time_ns)
        ));
    }
    if arguments.off_cpu && report.off_cpu.is_none() {
        let file = arguments.file.display();
        print::message(format_args!("{file} contains no wait data: record with `dn-top cpu -o` or `dn-top trace --profile cpu`"));
    }
    if arguments.waiting && report.source == "cpu" {
        print::message("--waiting has no effect on CPU samples, which are only of running threads: --off-cpu shows what threads wait for");
    }
    let hides = arguments.native == Frames::Hide || arguments.kernel == Frames::Hide;
    if hides && report.source != "cpu" && samples + report.all.waiting > 0 {
        print::message("no native or kernel functions to hide: all samples are of managed code");
    } else if report.hidden_ns > 0 {
        let share = Percent(report.hidden_ns as f64 / time_ns);
        print::message(format_args!("{share} of the time is in hidden functions without a calling method"));
    }
    if report.dropped_events > 0 {
        print::message(format_args!("the runtime dropped {}, possibly including samples", Counted(report.dropped_events, "event")));
    }
    Ok(Exit::Done)
}

fn is_hidden(origin: Origin, arguments: &args::Report) -> bool {
    let option = match origin {
        Origin::Kernel => arguments.kernel,
        Origin::Native | Origin::Gc | Origin::Jit | Origin::Allocation | Origin::Exception => arguments.native,
        Origin::Managed | Origin::Stub | Origin::Unknown => Frames::Show,
    };
    option == Frames::Hide
}

impl Report {
    fn new(
        sampled: &SampledMethods,
        cpu: Option<RecordedCpuTime>,
        contents: Option<&FileContents>,
        arguments: &args::Report,
        thresholds: &Thresholds,
    ) -> Self {
        let source = if cpu.is_some() { "cpu" } else { "threads" };
        let own_of_none = |profile: &Profile| profile.count(SampleFilter::ALL).own_of(0).all_ns();
        let (profile, (waits, idle), threads, hidden_ns, cut_chains, broken_chains, losses) = match cpu {
            Some(RecordedCpuTime { profile, waits, threads, cut, broken, losses }) => {
                let waits = without_idle_waits(waits.as_ref().filter(|_| arguments.off_cpu), &profile);
                let shown = profile.without(|origin| is_hidden(origin, arguments));
                let hidden_ns = own_of_none(&shown).saturating_sub(own_of_none(&profile));
                (shown, waits, threads, hidden_ns, cut, broken, losses)
            }
            None => (sampled.profile(), (None, Duration::ZERO), Vec::new(), 0, 0, 0, None),
        };
        let off_cpu = match (arguments.off_cpu, source) {
            (false, _) => None,
            (true, "cpu") => {
                let waits =
                    waits.map(|waits| waits.without(|origin| is_hidden(origin, arguments)).methods(SampleFilter::ALL, arguments.count));
                OffCpu::of_threads(threads, waits.map(|waits| waits.methods).unwrap_or_default(), idle)
            }
            (true, _) => OffCpu::of_samples(&profile),
        };
        let all = profile.count(SampleFilter::ALL).samples();
        let filter = if arguments.waiting { SampleFilter::ALL } else { SampleFilter::BUSY };
        // The analysis sorts by self time.
        let mut found = profile.methods(filter, if arguments.inclusive { usize::MAX } else { arguments.count });
        if arguments.inclusive {
            found.methods.compact_sort_by_key(|method| Reverse((method.total.all_ns(), method.total.all())));
            found.methods.truncate(arguments.count);
        }
        let routes = contents.map(|contents| Routes::new(&contents.analysis.snapshot.activities, arguments.count));
        Self {
            source,
            found,
            all,
            broken_chains,
            cut_chains,
            dropped_events: sampled.throughput().snapshot().dropped,
            hidden_ns,
            off_cpu,
            losses,
            routes: routes.filter(|routes| !routes.is_empty()),
            slow: contents.map(|contents| SlowCauses::of_file(contents, thresholds)),
        }
    }

    /// Returns the document of the command line contract. `self`, `total`, `waiting` and the other plain numbers are counts of samples; times have
    /// names that end in `_ns`, and shares are of times.
    fn document(&self) -> Value {
        let Self { found, all, .. } = self;
        let method = |method: &MethodTime| {
            json!({
                "name": print::method_name(method),
                "module": SafeText::new(&method.module),
                "self": method.own.all(),
                "total": method.total.all(),
                "self_ns": method.own.all_ns(),
                "total_ns": method.total.all_ns(),
            })
        };
        print::joined([
            json!({
                "source": self.source,
                "samples": found.samples.all(),
                "time_ns": found.samples.all_ns(),
                "waiting": all.waiting,
                "waiting_ns": all.waiting_ns,
                // Nothing proves that they wait, and the file does not contain the CPU times of their threads.
                "may_be_waiting": if self.source == "cpu" { 0 } else { all.running },
                // Average time between two samples of a thread.
                "interval_ns": found.interval_ns,
                "unresolved": found.unresolved,
                // Attributed to no method.
                "without_stack": found.without_stack,
                // Cut off by the runtime at 100 frames: the totals of the outermost callers are too low.
                "cut_stacks": found.cut.all(),
                "cut_stacks_ns": found.cut.all_ns(),
                "broken_chains": self.broken_chains,
                "cut_chains": self.cut_chains,
                "dropped_events": self.dropped_events,
                "hidden_ns": self.hidden_ns,
                "methods": found.methods.iter().map(method).collect::<Vec<_>>(),
            }),
            json!(self.off_cpu.as_ref().map(|off_cpu| json!({ "off_cpu": off_cpu.document() }))),
            json!(self.losses),
            json!(self.routes),
            json!(self.slow.as_ref().map(|slow| json!({ "slow": slow.document() }))),
        ])
    }

    fn write_text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let MethodsSnapshot { samples, interval_ns, methods, .. } = &self.found;
        let share = |samples: SampleCount| samples.all_ns() as f64 * 100.0 / self.found.samples.all_ns().max(1) as f64;
        let interval = interval_ns.map_or(String::new(), |ns| format!(", one per {:.1} ms", ns as f64 / 1e6));
        match self.source {
            "cpu" => writeln!(out, "CPU time: {}{interval}", Counted(samples.all(), "sample"))?,
            _ => {
                let (may_be_waiting, waiting) = (Counted(self.all.running, "sample"), Count(self.all.waiting));
                writeln!(
                    out,
                    "thread time, not CPU time: {may_be_waiting} of threads that may be waiting{interval}; {waiting} of waiting threads"
                )?
            }
        }
        writeln!(out, "\n{:>7} {:>7} {:>10}  METHOD", "SELF", "TOTAL", "SAMPLES")?;
        for method in methods {
            let [own, total] = [method.own, method.total].map(share);
            writeln!(out, "{own:>6.1}% {total:>6.1}% {:>10}  {}", Count(method.own.all()), print::method(method))?;
        }
        self.off_cpu.as_ref().map_or(Ok(()), |off_cpu| off_cpu.write_text(out))?;
        self.routes.as_ref().map_or(Ok(()), |routes| routes.write_text(out))?;
        self.slow.as_ref().map_or(Ok(()), |slow| writeln!(out).and_then(|()| slow.write_text(out)))
    }
}
