//! `slow FILE|TARGET`: why a process is slow, as shown in the dashboard.

mod other_findings;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use self::other_findings::OtherFindings;
use super::analyses::{check_duration, note_range, observe, print_analysis, recording};
use super::exit::{Exit, Failure};
use super::host::Host;
use super::print::{self, Value, json};
use super::record::no_cpu_time;
use super::target::connect_running;
use super::{args, diff, when};
use crate::clr::{SLOW_PROFILE, select};
use crate::diagnosis::{ALSO, Evidence, Slowdown, Thresholds, slowdowns, verdict};
use crate::ipc::RuntimeVersion;
use crate::model::{CpuConstraints, CpuTimeUnavailable, FileContents, Percent, SafeText};
use crate::session::{Observation, SlowObserved};

/// How long a process is recorded by default.
const DEFAULT_DURATION: Duration = Duration::from_secs(30);

/// The causes, the worst first; those that were not measured are last.
pub(super) struct SlowCauses(Vec<Slowdown>);

impl SlowCauses {
    pub(super) fn document(&self) -> Value {
        let cause = |slowdown: &Slowdown| {
            json!({
                "cause": slowdown.cause.name(),
                // Share of the time named in the text; above 1 for several cores.
                "share": slowdown.share,
                // Multiple of the threshold: a problem from 1 on. Null if not measured.
                "severity": slowdown.severity,
                "problem": slowdown.is_problem(),
                "text": SafeText::new(&slowdown.text),
            })
        };
        let worst = self.0.first().filter(|worst| worst.is_problem());
        json!({ "slow_because_of": worst.map(|worst| worst.cause.name()), "causes": self.0.iter().map(cause).collect::<Vec<_>>() })
    }

    /// Evaluates a file: what was recorded, beyond the contents of the file, is unknown.
    pub(super) fn of_file(contents: &FileContents, thresholds: &Thresholds) -> Self {
        let (analysis, elapsed) = (&contents.analysis, contents.duration);
        Self(slowdowns(&Evidence {
            analysis,
            threads: &[],
            elapsed,
            recorded: &[],
            runtime: None,
            native_aot: false,
            cpu_constraints: CpuConstraints::default(),
            thresholds,
        }))
    }

    /// Writes the verdict, followed by the causes.
    pub(super) fn write_text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let (words, worst) = verdict(&self.0);
        let worst = worst.iter().map(|worst| worst.cause.title()).collect::<Vec<_>>().join(ALSO);
        writeln!(out, "{words}{worst}\n\n{:>8}  {:<15}  FOUND", "SHARE", "CAUSE")?;
        for slowdown in &self.0 {
            let share = slowdown.share.map_or_else(String::new, |share| Percent(share).to_string());
            let (mark, title) = (if slowdown.is_problem() { "!" } else { " " }, slowdown.cause.title());
            writeln!(out, "{mark} {share:>6}  {title:<15}  {}", SafeText::new(&slowdown.text))?;
        }
        Ok(())
    }
}

pub(super) async fn run(host: &Host, arguments: &args::Slow) -> Result<Exit, Failure> {
    let thresholds = &host.settings.thresholds;
    let (causes, found, analysis, complete, exit) = match recording(&arguments.source, arguments.range)? {
        Some(path) => {
            check_duration(arguments.duration, &arguments.source)?;
            let contents = diff::read(path, arguments.range)?;
            note_range(path, arguments.range, contents.end);
            if let Some(trouble) = &contents.trouble {
                print::message(format_args!("{}: {trouble}", path.display()));
            }
            (SlowCauses::of_file(&contents, thresholds), None, contents.analysis, contents.complete, Exit::Done)
        }
        None => {
            let selected = select(&[SLOW_PROFILE], &[] as &[&str], None).map_err(Failure::usage)?;
            let (mut process, client) = connect_running(host, &arguments.source).await?;
            when::wait(host, &mut process, &client, &arguments.when).await?;
            let start = async {
                let (observation, missing) = Observation::start_with_cpu(client.clone(), &selected.config).await?;
                missing.iter().for_each(|CpuTimeUnavailable { why, .. }| print::message(no_cpu_time(why)));
                host.resume_program().await?;
                Ok(observation)
            };
            let observe = observe(&process, arguments.duration.unwrap_or(DEFAULT_DURATION), start);
            let ((observed, exit), found) = OtherFindings::during(&process, &client, thresholds, observe).await?;
            let found = found.map_err(|why| print::message(format_args!("growth, limits and stalled requests are unknown: {why}"))).ok();
            let (complete, elapsed, what) = (observed.is_complete(), observed.elapsed, &selected.what);
            let SlowObserved { analysis, threads, cpu_constraints } = observed.into_slow().await;
            let (runtime, native_aot) = (process.runtime.as_ref().map(RuntimeVersion::major), process.native_aot);
            let evidence = Evidence {
                analysis: &analysis,
                threads: &threads,
                elapsed,
                recorded: what,
                runtime,
                native_aot,
                cpu_constraints,
                thresholds,
            };
            let causes = slowdowns(&evidence);
            let found = found.map(|found| found.besides(&causes));
            (SlowCauses(causes), found, Arc::new(analysis), complete, exit)
        }
    };
    // Unknown for a file.
    let document = || print::joined([causes.document(), json!({ "findings": found.as_ref().map(OtherFindings::document) })]);
    let lines = found.as_ref().map(OtherFindings::lines).unwrap_or_default();
    print_analysis(&arguments.output, &analysis.snapshot, complete, document, |out| {
        causes.write_text(out)?;
        if !lines.is_empty() {
            writeln!(out, "\nOther findings:")?;
        }
        lines.iter().try_for_each(|line| writeln!(out, "{line}"))
    })?;
    Ok(exit)
}
