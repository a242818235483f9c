//! `trace`: record until the duration, the size, Ctrl-C or the target's end.

use super::args;
use super::exit::{Exit, Failure};
use super::host::Host;
use super::print;
use super::record::{Interrupts, Order};
use super::target::{called, connect, connect_legacy};
use super::user_events;

pub(super) async fn run(host: &Host, arguments: args::Trace) -> Result<Exit, Failure> {
    if !arguments.user_events.is_empty() {
        return user_events::run(host, arguments).await;
    }
    let order = Order::new(arguments.record)?;
    let target = &arguments.target.target;
    let (process, client) = if arguments.legacy { connect_legacy(host, target).await? } else { connect(host, target).await? };
    let mut interrupts = Interrupts::new()?;
    let recorder = order.begin(client, process.key, &process.name, Vec::new()).await?;
    print::say(format_args!("recording {}; Ctrl-C stops it", called(&process)));
    let followed = order.follow(recorder, &mut interrupts).await?;
    Ok(match followed {
        _ if followed.interrupted => Exit::Interrupted,
        _ if followed.failed() => Exit::Failed,
        _ => Exit::Done,
    })
}
