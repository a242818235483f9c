//! `trace --user-events`: events go to tracepoints of the kernel, where `perf` and others pick them up, and not to us.

use std::time::Duration;

use serde::Serialize;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

use super::args;
use super::exit::{Exit, Failure};
use super::print;
use super::record::{Interrupts, wanted};
use super::target::{called, connect, refused};
use crate::clr::Selected;
use crate::ipc::{Capabilities, CommandCode, FilteredProvider, Invalid, TracepointProvider, TracepointSet, Tracepoints, UserEvents};
use crate::model::StoppedBy;
use crate::net::user_events::Kernel;

/// What `--json` prints.
#[derive(Serialize)]
struct Document {
    session_id: String,
    tracepoints: Vec<String>,
    duration_ms: u64,
    stopped_by: &'static str,
}

pub(super) async fn run(arguments: args::Trace) -> Result<Exit, Failure> {
    let Selected { config, what, warnings } = wanted(&arguments.record).select().map_err(Failure::usage)?;
    warnings.iter().for_each(print::say);
    let (tracepoints, names) = tracepoints(&arguments.user_events)?;
    let (process, client) = connect(&arguments.target.target).await?;
    let kernel = Kernel::machine();
    let mut missing = kernel.missing();
    if let Some(needs) = Capabilities::of(process.runtime.as_ref()).missing(CommandCode::CollectTracing5) {
        missing.push(format!("the runtime is too old: it {needs}"));
    }
    if !missing.is_empty() {
        return Err(anyhow::anyhow!("{}: it cannot write to user_events: {}", called(&process), missing.join("; ")).into());
    }
    let data = kernel.open().map_err(anyhow::Error::from)?;
    let providers = config.providers.map(|FilteredProvider { provider, filter }| {
        let tracepoints = tracepoints.clone();
        TracepointProvider { provider, filter, tracepoints }
    });
    let mut interrupts = Interrupts::new()?;
    let begun = Instant::now();
    let events = UserEvents { rundown_keyword: config.rundown.keyword(), providers };
    let mut session = client.start_user_events(events, &data).await.map_err(refused)?;
    print::say(format_args!("{} writes {what} to user_events:{}; Ctrl-C stops it", called(&process), names.join(", user_events:")));
    let stopped_by = tokio::select! {
        () = interrupts.next() => StoppedBy::Interrupt,
        () = sleep(arguments.record.duration.unwrap_or(Duration::MAX)) => StoppedBy::Duration,
        () = end(&mut session.stream) => StoppedBy::TargetExit,
    };
    if stopped_by != StoppedBy::TargetExit {
        client.stop_session(session.id).await.map_err(refused)?;
    }
    let took = begun.elapsed();
    if arguments.record.output.json {
        let (session_id, duration_ms) = (session.id.to_string(), took.as_millis() as u64);
        print::json(&Document { session_id, tracepoints: names, duration_ms, stopped_by: stopped_by.word() })?;
    } else {
        print::say(format_args!("stopped after {:.1} s ({})", took.as_secs_f64(), stopped_by.word()));
    }
    Ok(if stopped_by == StoppedBy::Interrupt { Exit::Interrupted } else { Exit::Done })
}

/// `NAME` is for all events, `NAME=ID,ID` for these.
fn tracepoints(texts: &[String]) -> Result<(Tracepoints, Vec<String>), Failure> {
    let (mut default, mut sets, mut names) = (None, Vec::new(), Vec::new());
    for text in texts {
        let wrong = |why: &str| Failure::usage(format!("--user-events '{}': {why}", text.escape_debug()));
        let Some((name, ids)) = text.split_once('=') else {
            if default.replace(text.clone()).is_some() {
                return Err(wrong("there is one tracepoint for all events already; others are for some ids, NAME=ID,ID"));
            }
            names.push(text.clone());
            continue;
        };
        let ids = parse_ids(ids).ok_or_else(|| wrong("event ids are numbers with commas between them"))?;
        sets.push(TracepointSet::new(name, ids).map_err(|invalid: Invalid| wrong(&invalid.to_string()))?);
        names.push(name.to_owned());
    }
    Ok((Tracepoints::new(default, sets).map_err(Failure::usage)?, names))
}

/// `1,2,3`; at least one.
fn parse_ids(text: &str) -> Option<Vec<u32>> {
    text.split(',').map(|id| id.trim().parse().ok()).collect()
}

/// Nothing comes but the end.
async fn end(stream: &mut UnixStream) {
    while stream.read(&mut [0; 64]).await.is_ok_and(|count| count > 0) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracepoints_are_read() {
        let read = |texts: &[&str]| tracepoints(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        let (points, names) = read(&["all", "gc=1,2"]).unwrap();
        let set = TracepointSet::new("gc", vec![1, 2]).unwrap();
        assert_eq!(
            (points, names),
            (Tracepoints::new(Some("all".to_owned()), vec![set]).unwrap(), vec!["all".to_owned(), "gc".to_owned()])
        );
        for wrong in [&["a", "b"][..], &["a="], &["a=x"], &["=1"], &[""], &["a=1", "b=1"]] {
            assert_eq!(read(wrong).unwrap_err().exit, Exit::Usage, "{wrong:?}");
        }
    }
}
