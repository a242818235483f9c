//! Recording a process for some time, to be analysed and not kept.

use std::time::Duration;

use anyhow::Context;
use tokio::time::{Instant, sleep, sleep_until};

use crate::analysis::Live;
use crate::cli::exit::{Exit, Failure};
use crate::cli::print;
use crate::cli::target::{called, not_started};
use crate::ipc::SessionConfig;
use crate::model::Process;
use crate::net::client::Client;
use crate::net::interrupts::Interrupts;
use crate::session::{Listener, StopLimit};

/// Time between two looks at the process.
const PACE: Duration = Duration::from_millis(100);

/// What a process did for some time, or until Ctrl-C.
pub(in crate::cli) struct Observed {
    pub(in crate::cli) live: Live,
    /// Whether the stream came to its proper end.
    pub(in crate::cli) complete: bool,
    pub(in crate::cli) exit: Exit,
    /// How long it was recorded, by our clock.
    pub(in crate::cli) elapsed: Duration,
}

/// A look at the process that is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Look {
    /// More follow, in short intervals.
    Periodic,
    /// It is followed by the stop of the session.
    Last,
}

/// Records a process; `look` is called periodically and once at the end.
pub(in crate::cli) async fn record(
    process: &Process,
    client: Client,
    config: &SessionConfig,
    duration: Duration,
    mut look: impl FnMut(&Client, &Listener<Live>, Look),
) -> Result<Observed, Failure> {
    let mut interrupts = Interrupts::new().context("cannot install signal handlers")?;
    let mut listener = Listener::start(client.clone(), config, Live::default(), u64::MAX).await.map_err(not_started)?;
    let name = called(process);
    print::say(format_args!("recording {name} for {}; Ctrl-C stops it", humantime::format_duration(duration)));
    let begun = Instant::now();
    let watch = async {
        while !listener.is_over() {
            look(&client, &listener, Look::Periodic);
            sleep(PACE).await;
        }
    };
    let exit = tokio::select! {
        () = sleep_until(begun + duration) => Exit::Done,
        () = watch => Exit::Done,
        () = interrupts.next() => Exit::Interrupted,
    };
    look(&client, &listener, Look::Last);
    let elapsed = begun.elapsed();
    let stopped = tokio::select! {
        stopped = listener.stop(StopLimit::RUNDOWN) => stopped,
        // The session ends with its connection.
        () = interrupts.next() => return Err(Failure::new(Exit::Interrupted, anyhow::anyhow!("stopped before the rundown was complete"))),
    };
    if let Err(why) = &stopped {
        print::say(format_args!("{name}: {why}"));
    }
    Ok(Observed { live: listener.take(), complete: stopped.is_ok(), exit, elapsed })
}
