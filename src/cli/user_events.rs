//! `trace --user-events`: events go to tracepoints of the kernel, for `perf` and other tools, instead of to dn-top.

use std::time::Instant;

use super::args;
use super::exit::{Exit, Failure};
use super::host::Host;
use super::interrupt::{self, interrupted};
use super::print::{self, json};
use super::record::trace_options;
use super::target::{connect, display_name, exchange_error, start_error};
use crate::model::{StoppedBy, TraceOptions};
use crate::net::user_events::Kernel;
use crate::session::{KernelSession, user_events_data};

pub(super) async fn run(host: &Host, arguments: &args::Trace) -> Result<Exit, Failure> {
    let options = TraceOptions { tracepoints: arguments.user_events.clone(), ..trace_options(&arguments.record) };
    let selected = options.select().map_err(Failure::usage)?;
    selected.warnings.iter().for_each(print::message);
    let Some((events, kernel)) = options.user_events().map_err(Failure::usage)? else { return Ok(Exit::Done) };
    let (process, client) = connect(host, &arguments.target.target).await?;
    let data = user_events_data(&Kernel::machine(), process.runtime.as_ref())
        .map_err(|error| Failure::new(Exit::of_error(error.is_denied()), anyhow::anyhow!("{}: {error}", display_name(&process))))?;
    let mut interrupts = interrupt::listen()?;
    let begun = Instant::now();
    let mut session = tokio::select! {
        started = KernelSession::start(client, events, &data) => started.map_err(start_error)?,
        () = interrupts.next() => return Err(interrupted("interrupted before the session was open")),
    };
    host.resume_program().await.map_err(exchange_error)?;
    let session_id = session.id().to_string();
    print::message(format_args!("{} writes {} to {kernel}; Ctrl-C stops it", display_name(&process), selected.what.join(" + ")));
    let stopped_by = session.wait_for_stop(interrupts.next(), options.duration).await;
    tokio::select! {
        ended = session.end() => ended.map_err(|why| anyhow::anyhow!("{}: {why}", display_name(&process)))?,
        // The session ends with its connection.
        () = interrupts.next() => return Ok(Exit::Interrupted),
    }
    let took = begun.elapsed();
    if arguments.record.output.json {
        print::json(json!({
            "session_id": session_id,
            "tracepoints": kernel.tracepoints,
            "duration_ms": took.as_millis() as u64,
            "stopped_by": stopped_by.word(),
        }))?;
    } else {
        print::message(format_args!("stopped after {:.1} s ({})", took.as_secs_f64(), stopped_by.word()));
    }
    Ok(if stopped_by == StoppedBy::Interrupt { Exit::Interrupted } else { Exit::Done })
}
