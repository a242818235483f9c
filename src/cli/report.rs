//! `report FILE`: the methods with the most time; also requests by route, and why the process was slow, if the file contains such events.

mod off_cpu;

use std::cmp::Reverse;
use std::io::Write;
use std::time::Duration;

use serde::Serialize;

use self::off_cpu::OffCpu;
use super::analyses::{Routes, missing_status};
use super::args::{self, Frames};
use super::cpu::{missing_callers, missing_samples};
use super::exit::{Exit, Failure};
use super::slow::SlowCauses;
use super::{diff, print};
use crate::analysis::{EventCount, KernelSamples, MethodTime, Origin, Profile, RecordedCpuTime, SampleFilter, SampledMethods};
use crate::clr::payload::SampleLosses;
use crate::clr::{HOSTING_PROVIDER, HTTP_CLIENT_PROVIDER, RUNTIME_PROVIDER};
use crate::diagnosis::Thresholds;
use crate::model::{Count, Counted, FileContents, Percent, SafeText};
use crate::session::{RecordedFile, read_cpu_samples, without_idle_waits};
use crate::sorting::CompactSort;

/// Events that explain slowness beyond the samples: garbage collections, thread pool changes, exceptions and lock contention.
const CAUSE_EVENT_IDS: [u32; 5] = [1, 54, 55, 80, 81];
const REQUEST_PROVIDERS: [&str; 2] = [HOSTING_PROVIDER, HTTP_CLIENT_PROVIDER];

/// The document of the command line contract. `self`, `total`, `waiting` and the other plain numbers are counts of samples; times have names that
/// end in `_ns`, and shares are of times.
#[derive(Serialize)]
struct Report {
    /// `cpu` if the kernel sampled the code: times are CPU time. `threads` if the runtime sampled its threads.
    source: &'static str,
    /// Samples that count.
    samples: u64,
    /// Thread time of these samples, nanoseconds.
    time_ns: u64,
    /// Samples of waiting threads; they only count if requested.
    waiting: u64,
    waiting_ns: u64,
    /// Samples of threads that may be waiting: nothing proves it, and the file does not contain their CPU times.
    may_be_waiting: u64,
    /// Average time between two samples of a thread, nanoseconds.
    interval_ns: Option<u64>,
    /// Samples whose method is unknown.
    unresolved: u64,
    /// Samples without a stack; attributed to no method.
    without_stack: u64,
    /// Samples whose stack was cut off, by the runtime at 100 frames or by the kernel: the totals of the outermost callers are too low.
    cut_stacks: u64,
    cut_stacks_ns: u64,
    /// Samples whose stack contains code without frame pointers, or was cut off by the kernel: the totals of the callers are too low.
    broken_chains: u64,
    cut_chains: u64,
    dropped_events: u64,
    /// Time of samples whose frames are all hidden; attributed to no method.
    hidden_ns: u64,
    methods: Vec<Method>,
    /// Present if requested and the file contains the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    off_cpu: Option<OffCpu>,
    /// Present if the kernel sampled and the file records it: whether kernel code was sampled too, and how many samples are missing.
    #[serde(flatten)]
    losses: Option<SampleLosses>,
    /// Present if the file contains requests.
    #[serde(flatten)]
    routes: Option<Routes>,
    /// Why the process was slow; present if the file contains more than samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    slow: Option<SlowCauses>,
}

#[derive(Serialize)]
struct Method {
    name: SafeText,
    module: SafeText,
    #[serde(rename = "self")]
    own: u64,
    total: u64,
    self_ns: u64,
    total_ns: u64,
}

pub(super) fn run(arguments: &args::Report, thresholds: &Thresholds) -> Result<Exit, Failure> {
    let mut recorded = RecordedFile::open(&arguments.file).map_err(Failure::failed)?;
    let (sampled, pass) = recorded.read_methods(arguments.range).map_err(Failure::failed)?;

    let cpu = sampled.cpu().or_else(|| read_cpu_samples(&arguments.file, &pass.header, arguments.range));
    let losses = cpu.as_ref().and_then(|cpu| cpu.losses);
    let shows_cause = |event: &EventCount| match event.provider.as_str() {
        RUNTIME_PROVIDER => CAUSE_EVENT_IDS.contains(&event.event_id),
        provider => REQUEST_PROVIDERS.contains(&provider),
    };
    // A pipe cannot be read again: opening it would block until there is a writer.
    let is_file = arguments.file.metadata().is_ok_and(|metadata| metadata.is_file());
    let more = is_file && sampled.throughput().counts().iter().any(shows_cause);
    let contents = if more { diff::read(&arguments.file, arguments.range).ok() } else { None };
    let report = Report {
        slow: contents.as_ref().map(|contents| SlowCauses::of_file(contents, thresholds)),
        routes: contents
            .as_ref()
            .map(|FileContents { analysis, .. }| Routes::new(&analysis.snapshot.activities, arguments.count))
            .filter(|routes| !routes.is_empty()),
        losses,
        ..report(&sampled, cpu, arguments)
    };
    print::document(arguments.output.json, &report, write_text)?;
    if report.routes.is_some() {
        let activities = contents.as_ref().map(|contents| &contents.analysis.snapshot.activities);
        activities.and_then(missing_status).iter().for_each(print::message);
    }
    let problems = sampled.throughput().problems();
    for words in pass.trouble().into_iter().chain(problems.iter().map(ToString::to_string)) {
        print::message(format_args!("{}: {words}", arguments.file.display()));
    }
    if report.samples + report.waiting == 0 {
        let file = match arguments.range {
            Some(_) => format!("the range of {}", arguments.file.display()),
            None => arguments.file.display().to_string(),
        };
        match KernelSamples::from_counts(&sampled.throughput().counts()) {
            _ if report.source == "cpu" => {
                print::message(format_args!("{file} contains no CPU samples: the threads used too little CPU time, or all were lost"))
            }
            Some(kernel) => print::message(format_args!("{file} contains no samples of the runtime, but {kernel}")),
            None => print::message(format_args!("{file} contains no samples: record with --profile cpu")),
        }
    } else if report.samples == 0 {
        print::message("all samples are of waiting threads: --waiting includes them");
    } else if report.unresolved > 0 {
        let samples = Counted(report.unresolved, "sample");
        print::message(format_args!("the file does not contain the names of the methods of {samples}"));
    }
    if let Some(losses) = &losses {
        if !losses.includes_kernel {
            print::message("kernel code was not sampled: it is missing from all times");
        }
        missing_samples(losses).iter().for_each(print::message);
    }
    missing_callers(report.samples, report.cut_chains, report.broken_chains).iter().for_each(print::message);
    if report.cut_stacks > 0 && report.source != "cpu" {
        print::message(format_args!(
            "{} of the time is in stacks that the runtime cut off at 100 frames: TOTAL is too low for the methods that called these",
            Percent(report.cut_stacks_ns as f64 / report.time_ns.max(1) as f64)
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
    if hides && report.source != "cpu" && report.samples + report.waiting > 0 {
        print::message("no native or kernel functions to hide: all samples are of managed code");
    } else if report.hidden_ns > 0 {
        let share = Percent(report.hidden_ns as f64 / report.time_ns.max(1) as f64);
        print::message(format_args!("{share} of the time is in hidden functions without a calling method"));
    }
    if report.dropped_events > 0 {
        print::message(format_args!("the runtime dropped {}, possibly including samples", Counted(report.dropped_events, "event")));
    }
    Ok(Exit::Done)
}

fn report(sampled: &SampledMethods, cpu: Option<RecordedCpuTime>, arguments: &args::Report) -> Report {
    let source = if cpu.is_some() { "cpu" } else { "threads" };
    let own_of_none = |profile: &Profile| profile.count(SampleFilter::ALL).own_of(0).all_ns();
    let (profile, (waits, idle), threads, hidden_ns, cut_chains, broken_chains) = match cpu {
        Some(RecordedCpuTime { profile, waits, threads, cut, broken, .. }) => {
            let waits = without_idle_waits(waits.as_ref().filter(|_| arguments.off_cpu), &profile);
            let shown = profile.without(|origin| is_hidden(origin, arguments));
            let hidden_ns = own_of_none(&shown).saturating_sub(own_of_none(&profile));
            (shown, waits, threads, hidden_ns, cut, broken)
        }
        None => (sampled.profile(), (None, Duration::ZERO), Vec::new(), 0, 0, 0),
    };
    let off_cpu = match (arguments.off_cpu, source) {
        (false, _) => None,
        (true, "cpu") => OffCpu::of_threads(&threads).map(|off_cpu| match waits {
            Some(busy) => {
                let idle_ns = u64::try_from(idle.as_nanos()).unwrap_or(u64::MAX);
                off_cpu.with_waits(&busy.without(|origin| is_hidden(origin, arguments)), idle_ns, arguments.count)
            }
            None => off_cpu,
        }),
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
    let method = |method: &MethodTime| Method {
        name: print::method_name(method),
        module: SafeText::new(&method.module),
        own: method.own.all(),
        total: method.total.all(),
        self_ns: method.own.all_ns(),
        total_ns: method.total.all_ns(),
    };
    Report {
        source,
        samples: found.samples.all(),
        time_ns: found.samples.all_ns(),
        waiting: all.waiting,
        waiting_ns: all.waiting_ns,
        may_be_waiting: if source == "cpu" { 0 } else { all.running },
        interval_ns: profile.interval_ns,
        unresolved: found.unresolved,
        without_stack: found.without_stack,
        cut_stacks: found.cut.all(),
        cut_stacks_ns: found.cut.all_ns(),
        broken_chains,
        cut_chains,
        dropped_events: sampled.throughput().snapshot().dropped,
        hidden_ns,
        off_cpu,
        losses: None,
        methods: found.methods.iter().map(method).collect(),
        routes: None,
        slow: None,
    }
}

fn is_hidden(origin: Origin, arguments: &args::Report) -> bool {
    let option = match origin {
        Origin::Kernel => arguments.kernel,
        Origin::Native | Origin::Gc | Origin::Jit | Origin::Allocation | Origin::Exception => arguments.native,
        Origin::Managed | Origin::Stub | Origin::Unknown => Frames::Show,
    };
    option == Frames::Hide
}

fn write_text(out: &mut dyn Write, report: &Report) -> std::io::Result<()> {
    let Report { samples, waiting, methods, .. } = report;
    let share = |ns: u64| if report.time_ns == 0 { 0.0 } else { ns as f64 * 100.0 / report.time_ns as f64 };
    let interval = report.interval_ns.map_or(String::new(), |ns| format!(", one per {:.1} ms", ns as f64 / 1e6));
    match report.source {
        "cpu" => writeln!(out, "CPU time: {}{interval}", Counted(*samples, "sample"))?,
        _ => {
            let (may_be_waiting, waiting) = (Counted(report.may_be_waiting, "sample"), Count(*waiting));
            writeln!(
                out,
                "thread time, not CPU time: {may_be_waiting} of threads that may be waiting{interval}; {waiting} of waiting threads"
            )?
        }
    }
    writeln!(out, "\n{:>7} {:>7} {:>10}  METHOD", "SELF", "TOTAL", "SAMPLES")?;
    for Method { name, module, own, self_ns, total_ns, .. } in methods {
        let module = print::module_suffix(name, module);
        writeln!(out, "{:>6.1}% {:>6.1}% {:>10}  {name}{module}", share(*self_ns), share(*total_ns), Count(*own))?;
    }
    report.off_cpu.as_ref().map_or(Ok(()), |off_cpu| off_cpu.write_text(out))?;
    report.routes.as_ref().map_or(Ok(()), |routes| routes.write_text(out))?;
    report.slow.as_ref().map_or(Ok(()), |slow| writeln!(out).and_then(|()| slow.write_text(out)))
}
