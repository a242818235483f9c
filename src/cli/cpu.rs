//! `cpu TARGET`: the methods and functions with the most CPU time.

mod live;
mod summary;

use std::time::Duration;

use self::live::LiveView;
use self::summary::Summary;
use super::args;
use super::exit::{Exit, Failure};
use super::host::Host;
use super::print::{self, Value, json};
use super::target::{connect_running, display_name};
use super::{interrupt, when};
use crate::clr::payload::SampleLosses;
use crate::model::{Counted, CpuTime, Percent, Process, RunState, check_file_name};
use crate::session::{CpuError, CpuProfile, CpuRequest, profile_cpu};

/// Sampling time if neither a duration nor `--live` is given.
const DEFAULT_DURATION: Duration = Duration::from_secs(5);
/// Time between two updates of the live view.
const LIVE_INTERVAL: Duration = Duration::from_secs(1);

pub(super) async fn run(host: &Host, arguments: &args::Cpu) -> Result<Exit, Failure> {
    if let Some(file) = &arguments.file {
        check_file_name(file, "nettrace").map_err(Failure::usage)?;
    }
    let (mut process, client) = connect_running(host, &arguments.target.target).await?;
    when::wait(host, &mut process, &client, &arguments.when).await?;
    let mut interrupts = interrupt::listen()?;
    let request = CpuRequest {
        frequency: arguments.frequency,
        duration: arguments.duration.or((!arguments.live).then_some(DEFAULT_DURATION)),
        has_method_names: !process.native_aot,
        is_suspended: process.run_state == RunState::Suspended,
        file: arguments.file.clone(),
        name: process.name.to_string(),
        interval: arguments.live.then_some(LIVE_INTERVAL),
    };
    let mut live = LiveView::new(&process, arguments)?;
    let mut interrupted = false;
    let stop = async || {
        interrupts.next().await;
        if !std::mem::replace(&mut interrupted, true) {
            print::message("stopping: waiting for method names; press Ctrl-C again to skip them");
        }
    };
    let profile = profile_cpu(client, request, host.resume_program(), stop, |time| live.show(time)).await.map_err(cpu_error)?;
    let printed = live.finish(&mut interrupts, interrupted).await;
    let summary = Summary::new(&process, &profile, arguments);
    if !matches!(printed, Ok(true)) {
        // The output is closed, not read, or failed: print nothing more.
    } else if arguments.output.json && arguments.live {
        let document = print::joined([json!({ "type": "summary" }), summary.document()]);
        print::bytes(print::json_line(&print::versioned(document))?.as_bytes())?;
    } else {
        print::result(arguments.output.json, || summary.document(), |out| summary.write_text(out))?;
    }
    remarks(&process, &profile, summary.found.samples.all()).iter().for_each(print::message);
    let is_written = match &profile.file {
        None => true,
        Some(Ok(path)) => {
            print::message(format_args!("samples written to {}", path.display()));
            true
        }
        Some(Err(why)) => {
            print::message(format_args!("no file was written: {why}"));
            false
        }
    };
    // Only after the message about the file with the samples.
    printed?;
    Ok(match (interrupted, profile.names_missing.is_none()) {
        _ if !is_written => Exit::Failed,
        (true, _) => Exit::Interrupted,
        // A target that exits is not a failure.
        (false, true) => Exit::Done,
        (false, false) if profile.ended => Exit::Done,
        (false, false) => Exit::Failed,
    })
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// CPU time of all threads since sampling began, as measured by the kernel.
fn cpu_ms(time: &CpuTime) -> f64 {
    time.threads.iter().map(|thread| thread.cpu.as_secs_f64() * 1e3).sum()
}

/// What is missing from the samples.
fn missing(time: &CpuTime) -> Value {
    // Samples without callers, because code in between does not maintain the frame pointer, or because the stack is deeper than the kernel records.
    print::joined([json!(time.losses), json!({ "broken_chains": time.broken, "cut_chains": time.cut })])
}

fn cpu_error(error: CpuError) -> Failure {
    let exit = match &error {
        CpuError::Perf(error) if error.is_ended() => Exit::NoTarget,
        error => Exit::of_error(error.is_denied()),
    };
    Failure::new(exit, error)
}

/// Returns remarks on the accuracy of the figures.
fn remarks(process: &Process, profile: &CpuProfile, samples: u64) -> Vec<String> {
    let mut remarks = Vec::new();
    if profile.ended {
        remarks.push(format!("{} ended after {:.1} s", display_name(process), profile.time.elapsed.as_secs_f64()));
    }
    if !profile.time.losses.includes_kernel {
        remarks.push(
            "kernel code is not sampled, only its time is known: kernel functions need root, CAP_PERFMON or kernel.perf_event_paranoid below 2"
                .to_owned(),
        );
    }
    if let Some(why) = &profile.names_missing {
        remarks.push(format!("method names may be missing: {why}"));
    }
    remarks.extend(missing_samples(&profile.time.losses));
    remarks.extend(missing_waits(&profile.time));
    remarks.extend(missing_callers(samples, profile.time.cut, profile.time.broken));
    remarks
}

/// Returns remarks on missing samples.
pub(super) fn missing_samples(losses: &SampleLosses) -> Vec<String> {
    let SampleLosses { lost, unreadable, throttled, missed_threads, short_threads, .. } = *losses;
    let remark = |count, noun, words: &str| (count > 0).then(|| format!("{:#} {words}", Counted(count, noun)));
    let remarks = [
        remark(lost, "sample", "lost: the buffer was full"),
        remark(unreadable, "sample", "could not be decoded"),
        (throttled > 0).then(|| format!("the kernel paused sampling {:#}: the rate was too high", Counted(throttled, "time"))),
        remark(missed_threads, "new thread", "could not be sampled: the limit of open files or of locked memory is reached"),
        remark(short_threads, "new thread", "ended before sampling could begin"),
    ];
    remarks.into_iter().flatten().collect()
}

/// Returns remarks on waits without stacks.
fn missing_waits(time: &CpuTime) -> Vec<String> {
    let (lost, threads) = (Counted(time.lost_waits, "stack"), Counted(time.unfollowed, "thread"));
    let remarks = [
        (time.lost_waits > 0).then(|| format!("{lost:#} of waits lost: the buffer was full, or a busy thread blocked only briefly")),
        (time.unfollowed > 0)
            .then(|| format!("no stacks of some waits of {threads:#}: too many context switches, or too little locked memory")),
    ];
    remarks.into_iter().flatten().collect()
}

/// Returns remarks on totals that are too low because stacks were cut off or are broken.
pub(super) fn missing_callers(samples: u64, cut: u64, broken: u64) -> Vec<String> {
    let share = |part: u64| Percent(part as f64 / samples.max(1) as f64);
    let mut remarks = Vec::new();
    if broken * 20 > samples {
        remarks.push(format!(
            "{} of the samples have broken call chains (code without frame pointers): TOTAL is too low for the callers",
            share(broken)
        ));
    }
    if cut > 0 {
        remarks.push(format!(
            "{} of the samples have call chains cut off by the kernel (kernel.perf_event_max_stack): TOTAL is too low for the outermost callers",
            share(cut)
        ));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::model::ProcessKey;

    pub(super) fn process() -> Process {
        Process { name: "App".into(), ..Process::new(ProcessKey { pid: 7, started: 1 }) }
    }

    pub(super) fn arguments(options: &[&str]) -> args::Cpu {
        let line = [&["dn-top", "cpu", "7"], options].concat();
        match args::Arguments::parse_from(line).command {
            Some(args::Command::Cpu(arguments)) => arguments,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn missing_data_is_counted() {
        assert!(missing_samples(&SampleLosses::default()).is_empty() && missing_waits(&CpuTime::default()).is_empty());
        let losses = SampleLosses { lost: 1, unreadable: 2, throttled: 1, missed_threads: 1, short_threads: 2, ..SampleLosses::default() };
        let expected = [
            "1 sample lost: the buffer was full",
            "2 samples could not be decoded",
            "the kernel paused sampling 1 time: the rate was too high",
            "1 new thread could not be sampled: the limit of open files or of locked memory is reached",
            "2 new threads ended before sampling could begin",
        ];
        assert_eq!(missing_samples(&losses), expected);
        let waits = CpuTime { lost_waits: 12_345, unfollowed: 1, ..CpuTime::default() };
        let expected = [
            "12345 stacks of waits lost: the buffer was full, or a busy thread blocked only briefly",
            "no stacks of some waits of 1 thread: too many context switches, or too little locked memory",
        ];
        assert_eq!(missing_waits(&waits), expected);
    }
}
