//! `perfetto`: .NET processes as a data source of Perfetto's tracing service.

use std::time::Duration;

use tokio::sync::watch;

use super::args::perfetto::{Perfetto, PerfettoCommand, ServePerfetto};
use super::exit::{Exit, Failure};
use super::host::Host;
use super::print;
use super::record::Interrupts;
use crate::model::Count;
use crate::session::{Report, Serve, Settings, serve};

pub(super) async fn run(host: &Host, arguments: Perfetto) -> Result<Exit, Failure> {
    match arguments.command {
        PerfettoCommand::Serve(arguments) => run_serve(host, arguments).await,
    }
}

async fn run_serve(host: &Host, arguments: ServePerfetto) -> Result<Exit, Failure> {
    let ServePerfetto { targets, profile, provider, clr_events, duration } = arguments;
    let settings = Settings { targets, profiles: profile, providers: provider, clr_events };
    let selected = settings.select().map_err(Failure::usage)?;
    selected.warnings.iter().for_each(print::say);
    let mut interrupts = Interrupts::new()?;
    let stop = watch::Sender::new(false);
    let serving =
        serve(Serve { address: None, settings, directory: host.directory()? }, stop.subscribe(), |report| print::say(words(report)));
    tokio::pin!(serving);
    let exit = tokio::select! {
        served = &mut serving => return Ok(served.map(|()| Exit::Done).map_err(anyhow::Error::from)?),
        () = interrupts.next() => Exit::Interrupted,
        () = tokio::time::sleep(duration.unwrap_or(Duration::MAX)) => Exit::Done,
    };
    stop.send_replace(true);
    tokio::select! {
        served = &mut serving => served.map_err(anyhow::Error::from)?,
        () = interrupts.next() => {}
    }
    Ok(exit)
}

fn words(report: Report) -> String {
    match report {
        Report::Connected(address) => {
            format!("connected to the tracing service at {address}; recordings of the data source `dotnet` are served until Ctrl-C")
        }
        Report::Waiting(why) => format!("{why}; trying again"),
        Report::Started { instance, processes, troubles } => {
            let troubles = troubles.iter().map(|trouble| format!("\n  {trouble}"));
            let names = if processes.is_empty() { "nothing".to_owned() } else { processes.join(", ") };
            format!("recording {instance} began: {names}{}", troubles.collect::<String>())
        }
        Report::Ended { instance, packets, lost } => {
            let lost = if lost > 0 { format!("; {} more LOST: the service did not take them in time", Count(lost)) } else { String::new() };
            format!("recording {instance} ended: {} packets{lost}", Count(packets))
        }
        Report::Trouble(trouble) => trouble,
    }
}
