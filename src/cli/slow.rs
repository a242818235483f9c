//! `slow FILE|TARGET`: why a process is slow, as the dashboard shows it.

use std::io::Write;
use std::sync::Arc;

use serde::Serialize;

use super::analyses::{Document, Look, record};
use super::args;
use super::exit::{Exit, Failure};
use super::host::Host;
use super::print;
use super::record::no_cpu_time;
use super::target::connect_running;
use crate::analysis::{Live, RecentSnapshot};
use crate::clr::{SLOW, select};
use crate::diagnosis::{Evidence, Slowdown, Thresholds, slowdowns};
use crate::ipc::RuntimeVersion;
use crate::model::{CpuSupply, FileContents, NoCpuTime, Percent, RecordingAnalysis, SafeText};
use crate::net::client::Client;
use crate::session::{CpuSampling, Listener, Threads, read_trace};

/// The possible causes.
#[derive(Serialize)]
pub(super) struct Verdict {
    /// The worst cause, where it is above its threshold.
    slow_because_of: Option<&'static str>,
    /// The worst first; those that were not measured last.
    causes: Vec<FoundCause>,
}

#[derive(Serialize)]
struct FoundCause {
    cause: &'static str,
    /// Share of the time that the sentence names; more than 1 for several cores.
    share: Option<f64>,
    /// How many times its threshold: from 1 on it is a problem. Null where it was not measured.
    severity: Option<f64>,
    problem: bool,
    text: SafeText,
    #[serde(skip)]
    title: &'static str,
}

impl Verdict {
    pub(super) fn of(evidence: &Evidence<'_>) -> Self {
        let found = |slowdown: &Slowdown| FoundCause {
            cause: slowdown.cause.name(),
            share: slowdown.share,
            severity: slowdown.severity,
            problem: slowdown.is_problem(),
            text: SafeText::new(&slowdown.text),
            title: slowdown.cause.title(),
        };
        let causes: Vec<_> = slowdowns(evidence).iter().map(found).collect();
        Self { slow_because_of: causes.first().filter(|worst| worst.problem).map(|worst| worst.cause), causes }
    }

    /// Of a file: what was recorded, besides what is in it, is not known.
    pub(super) fn of_file(contents: &FileContents, thresholds: &Thresholds) -> Self {
        let (analysis, elapsed) = (&contents.analysis, contents.duration);
        Self::of(&Evidence { analysis, threads: &[], elapsed, what: &[], runtime: None, cpu_supply: CpuSupply::default(), thresholds })
    }

    /// Writes the verdict, and then the causes.
    pub(super) fn write_text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        match self.causes.first().filter(|worst| worst.problem) {
            Some(worst) => writeln!(out, "Slow because of: {}", worst.title)?,
            None => writeln!(out, "No cause stands out: nothing is above its threshold.")?,
        }
        writeln!(out, "\n{:>7}  {:<15}  FOUND", "SHARE", "CAUSE")?;
        for FoundCause { share, problem, text, title, .. } in &self.causes {
            let share = share.map_or_else(String::new, |share| Percent(share).to_string());
            writeln!(out, "{} {share:>5}  {title:<15}  {text}", if *problem { "!" } else { " " })?;
        }
        Ok(())
    }
}

pub(super) async fn run(host: &Host, arguments: &args::Slow) -> Result<Exit, Failure> {
    let thresholds = &host.settings.thresholds;
    let (document, exit) = match arguments.file() {
        Some(path) => {
            let contents = read_trace(path, None, |_| true).map_err(|error| Failure::failed(anyhow::anyhow!(error)))?;
            let Some(contents) = contents else { return Ok(Exit::Interrupted) };
            if let Some(trouble) = &contents.trouble {
                print::say(format_args!("{}: {trouble}", path.display()));
            }
            let verdict = Verdict::of_file(&contents, thresholds);
            (Document::new(&contents.analysis.snapshot, contents.complete, verdict), Exit::Done)
        }
        None => {
            let selected = select(&[SLOW], &[] as &[&str], None).map_err(Failure::usage)?;
            let (process, client) = connect_running(host, &arguments.source).await?;
            let cpu = CpuSampling::start(&client).await.inspect_err(|NoCpuTime { why, .. }| print::say(no_cpu_time(why))).ok();
            let (mut threads, mut used) = (Threads::default(), Arc::default());
            let look = |client: &Client, listener: &Listener<Live>, look| {
                if look == Look::Last {
                    threads.hurry();
                    cpu.iter().for_each(CpuSampling::stop);
                }
                if let Some(found) = threads.look(client) {
                    let (at, times) = threads.cpu_times();
                    listener.look(|live| live.weigh_samples(at, times));
                    used = found;
                }
            };
            let mut observed = record(&process, client, &selected.config, arguments.duration, look).await?;
            observed.live.weigh_all_samples();
            let live = &observed.live;
            let (events, recent) = (Vec::new(), RecentSnapshot::default());
            let (snapshot, profile) = (live.snapshot(live.end()), live.profile());
            let cpu = match cpu {
                Some(cpu) => cpu.finish(live.symbols().clone(), observed.complete).await,
                None => None,
            };
            let analysis = RecordingAnalysis { snapshot, events, recent, profile, cpu };
            let runtime = process.runtime.as_ref().map(RuntimeVersion::major);
            let (analysis, elapsed, what) = (&analysis, observed.elapsed, &selected.what);
            let evidence = Evidence { analysis, threads: &used, elapsed, what, runtime, cpu_supply: threads.cpu_supply(), thresholds };
            (Document::new(&analysis.snapshot, observed.complete, Verdict::of(&evidence)), observed.exit)
        }
    };
    document.print(&arguments.output, Verdict::write_text)?;
    Ok(exit)
}
