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
use crate::diagnosis::{Evidence, Slowdown, Thresholds, slowdowns, verdict};
use crate::ipc::RuntimeVersion;
use crate::model::{CpuConstraints, CpuTimeUnavailable, FileContents, Percent, SafeText};
use crate::session::{Observation, SlowObserved};

#[derive(Serialize)]
pub(super) struct SlowCauses {
    #[serde(skip)]
    verdict: String,
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
            text: SafeText::new(&slowdown.text),
            title: slowdown.cause.title(),
        };
        let all = slowdowns(evidence);
        let (words, worst) = verdict(&all);
        let causes: Vec<_> = all.iter().map(found).collect();
        Self {
            verdict: words.to_owned() + &worst.iter().map(|worst| worst.cause.title()).collect::<Vec<_>>().join(" and "),
            slow_because_of: causes.first().filter(|worst| worst.problem).map(|worst| worst.cause),
            causes,
        }
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
        writeln!(out, "{}\n\n{:>8}  {:<15}  FOUND", self.verdict, "SHARE", "CAUSE")?;
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
            let (mut process, client) = connect_running(host, &arguments.source).await?;
            when::wait(host, &mut process, &client, &arguments.when).await?;
            let start = async {
                let (observation, missing) = Observation::start_with_cpu(client, &selected.config).await?;
                missing.iter().for_each(|CpuTimeUnavailable { why, .. }| print::message(no_cpu_time(why)));
                host.resume_program().await?;
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
