//! `slow FILE|TARGET`: why a process is slow, as shown in the dashboard.

use std::io::Write;

use serde::Serialize;

use super::analyses::{Document, note_range, observe, recording};
use super::exit::{Exit, Failure};
use super::host::Host;
use super::print;
use super::record::no_cpu_time;
use super::target::connect_running;
use super::{args, diff, when};
use crate::clr::{SLOW_PROFILE, select};
use crate::diagnosis::{Evidence, Slowdown, Thresholds, slowdowns};
use crate::ipc::RuntimeVersion;
use crate::model::{CpuConstraints, CpuTimeUnavailable, FileContents, Percent, SafeText};
use crate::session::{Observation, SlowObserved};

#[derive(Serialize)]
pub(super) struct SlowCauses {
    /// The worst cause, if it is above its threshold.
    slow_because_of: Option<&'static str>,
    /// The worst first; causes that were not measured are last.
    causes: Vec<FoundCause>,
}

#[derive(Serialize)]
struct FoundCause {
    cause: &'static str,
    /// Share of the time named in the text; above 1 for several cores.
    share: Option<f64>,
    /// Multiple of the threshold: a problem from 1 on. Null if not measured.
    severity: Option<f64>,
    problem: bool,
    #[serde(skip)]
    may_be_problem: bool,
    text: SafeText,
    #[serde(skip)]
    title: &'static str,
}

impl SlowCauses {
    pub(super) fn of(evidence: &Evidence<'_>) -> Self {
        let found = |slowdown: &Slowdown| FoundCause {
            cause: slowdown.cause.name(),
            share: slowdown.share,
            severity: slowdown.severity,
            problem: slowdown.is_problem(),
            may_be_problem: slowdown.may_be_problem(),
            text: SafeText::new(&slowdown.text),
            title: slowdown.cause.title(),
        };
        let causes: Vec<_> = slowdowns(evidence).iter().map(found).collect();
        Self { slow_because_of: causes.first().filter(|worst| worst.problem).map(|worst| worst.cause), causes }
    }

    /// Evaluates a file: what was recorded, beyond the contents of the file, is unknown.
    pub(super) fn of_file(contents: &FileContents, thresholds: &Thresholds) -> Self {
        let (analysis, elapsed) = (&contents.analysis, contents.duration);
        Self::of(&Evidence {
            analysis,
            threads: &[],
            elapsed,
            recorded: &[],
            runtime: None,
            native_aot: false,
            cpu_constraints: CpuConstraints::default(),
            thresholds,
        })
    }

    /// Writes the verdict, followed by the causes.
    pub(super) fn write_text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        match self.causes.first().filter(|worst| worst.problem) {
            Some(worst) => writeln!(out, "Slow because of: {}", worst.title)?,
            None if self.causes.iter().all(|cause| cause.severity.is_none()) => writeln!(out, "Nothing was measured that shows a cause.")?,
            None if self.causes.first().is_some_and(|first| first.may_be_problem) => {
                writeln!(out, "Possibly slow because of: {}", self.causes[0].title)?;
            }
            None => writeln!(out, "No cause stands out: nothing is above its threshold.")?,
        }
        writeln!(out, "\n{:>8}  {:<15}  FOUND", "SHARE", "CAUSE")?;
        for FoundCause { share, problem, text, title, .. } in &self.causes {
            let share = share.map_or_else(String::new, |share| Percent(share).to_string());
            writeln!(out, "{} {share:>6}  {title:<15}  {text}", if *problem { "!" } else { " " })?;
        }
        Ok(())
    }
}

pub(super) async fn run(host: &Host, arguments: &args::Slow) -> Result<Exit, Failure> {
    let thresholds = &host.settings.thresholds;
    let (document, exit) = match recording(&arguments.source, arguments.range)? {
        Some(path) => {
            when::check_no_process(&arguments.when)?;
            let contents = diff::read(path, arguments.range)?;
            note_range(path, arguments.range, contents.end);
            if let Some(trouble) = &contents.trouble {
                print::message(format_args!("{}: {trouble}", path.display()));
            }
            let verdict = SlowCauses::of_file(&contents, thresholds);
            (Document::new(&contents.analysis.snapshot, contents.complete, verdict), Exit::Done)
        }
        None => {
            let selected = select(&[SLOW_PROFILE], &[] as &[&str], None).map_err(Failure::usage)?;
            let (process, client) = connect_running(host, &arguments.source).await?;
            when::wait(&process, &client, &arguments.when).await?;
            let start = async {
                let (observation, missing) = Observation::start_with_cpu(client, &selected.config).await?;
                missing.iter().for_each(|CpuTimeUnavailable { why, .. }| print::message(no_cpu_time(why)));
                Ok(observation)
            };
            let (observed, exit) = observe(&process, arguments.duration, start).await?;
            let (complete, elapsed, what) = (observed.is_complete(), observed.elapsed, &selected.what);
            let SlowObserved { analysis, threads, cpu_constraints } = observed.into_slow().await;
            let (runtime, native_aot) = (process.runtime.as_ref().map(RuntimeVersion::major), process.native_aot);
            let analysis = &analysis;
            let evidence =
                Evidence { analysis, threads: &threads, elapsed, recorded: what, runtime, native_aot, cpu_constraints, thresholds };
            (Document::new(&analysis.snapshot, complete, SlowCauses::of(&evidence)), exit)
        }
    };
    document.print(&arguments.output, SlowCauses::write_text)?;
    Ok(exit)
}
