//! Observing a live process for some time, with messages on stderr.

use std::time::Duration;

use super::Analysis;
use crate::cli::exit::{Exit, Failure};
use crate::cli::target::{display_name, start_error};
use crate::cli::{interrupt, print};
use crate::diagnosis::Source;
use crate::ipc::RuntimeVersion;
use crate::model::Process;
use crate::session::{Observation, Observed, StartError, Unfinished};

/// Observes the process for `duration`, or until Ctrl-C. `start` is polled only after the signal handlers are installed, so no signal ends the
/// program while a session is open.
pub(in crate::cli) async fn observe(
    process: &Process,
    duration: Duration,
    start: impl Future<Output = Result<Observation, StartError>>,
) -> Result<(Observed, Exit), Failure> {
    let mut interrupts = interrupt::listen()?;
    let observation = start.await.map_err(start_error)?;
    let name = display_name(process);
    let duration_text = humantime::format_duration(duration);
    print::message(format_args!("recording {name} for {duration_text}; Ctrl-C stops it, and a second Ctrl-C exits at once"));
    let Some(observed) = observation.finish(duration, &mut interrupts).await else {
        return Err(Failure::new(Exit::Interrupted, anyhow::anyhow!("stopped before the rundown was complete")));
    };
    if let Some(why) = &observed.unfinished {
        print::message(format_args!("{name}: {why}"));
    }
    let exit = exit(observed.interrupted, observed.unfinished.as_ref());
    Ok((observed, exit))
}

impl Analysis {
    /// Returns why a process has no events for it, if it is a NativeAOT program that does not send them.
    pub(super) fn native_aot_gap(self, process: &Process) -> Option<&'static str> {
        let source = match self {
            Self::Allocations => Source::Allocations,
            Self::Contention => Source::Contention,
            Self::Jit => Source::Compilation,
            _ => return None,
        };
        source.native_aot_gap(process.runtime.as_ref().map(RuntimeVersion::major)).filter(|_| process.native_aot)
    }
}

fn exit(interrupted: bool, unfinished: Option<&Unfinished>) -> Exit {
    match unfinished {
        _ if interrupted => Exit::Interrupted,
        // A target that exits is not a failure.
        None | Some(Unfinished::Closed) => Exit::Done,
        Some(Unfinished::Cut(_) | Unfinished::NotStopped(_)) => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Cut;

    #[test]
    fn session_that_does_not_end_is_a_failure() {
        let cut = Unfinished::Cut(Cut::Time(Duration::from_secs(60)));
        assert_eq!([exit(false, None), exit(false, Some(&Unfinished::Closed))], [Exit::Done; 2]);
        assert_eq!([exit(false, Some(&cut)), exit(true, Some(&cut))], [Exit::Failed, Exit::Interrupted]);
    }
}
