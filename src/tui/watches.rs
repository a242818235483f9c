//! The processes watched by the dashboard. All watches end when it closes.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::exit_report::message;
use super::signals::Signals;
use super::tasks::boxed;
use crate::app::{Msg, Ticket};
use crate::model::ProcessKey;
use crate::net::client::Client;
use crate::session::{self, WatchOptions};

/// Time that all sessions together may take to stop when the dashboard closes: a hanging runtime finds its connection closed later. Others need
/// milliseconds, or a second if meters are being collected.
const FINISH_TIMEOUT: Duration = Duration::from_secs(4);
/// Delay after which the wait is reported, and can be ended. Closing the connection while a runtime collects its meters for the first time could
/// harm it.
const MESSAGE_DELAY: Duration = Duration::from_millis(1500);

/// The active watches, and how to stop them.
#[derive(Debug, Default)]
pub(super) struct Watches {
    stops: BTreeMap<ProcessKey, watch::Sender<bool>>,
    tasks: JoinSet<()>,
}

impl Watches {
    /// Starts to watch a process; an earlier session for it is stopped. Results are reported to `inbox`.
    pub(super) fn start(&mut self, client: Client, watch: WatchOptions, ticket: Ticket, inbox: mpsc::Sender<Msg>) {
        let (stop, stopped) = watch::channel(false);
        if let Some(before) = self.stops.insert(watch.process.key, stop) {
            before.send_replace(true);
        }
        // Forget those that have ended.
        while self.tasks.try_join_next().is_some() {}
        self.stops.retain(|_, stop| !stop.is_closed());
        self.tasks.spawn(boxed(async move {
            // The receiver is gone once the dashboard has quit.
            let send = async |msg| drop(inbox.send(msg).await);
            let publish = |counters, usage| send(Msg::WatchReport { ticket, counters: Arc::new(counters), usage: Box::new(usage) });
            let trouble = session::watch(&client, &watch, stopped, publish).await.err().map(Into::into);
            send(Msg::WatchEnded { ticket, trouble }).await;
        }));
    }

    /// Stops watching a process.
    pub(super) fn stop(&mut self, key: ProcessKey) {
        if let Some(stop) = self.stops.remove(&key) {
            stop.send_replace(true);
        }
    }

    /// Stops all and waits for their end, at most until there is another signal; for use after the dashboard has closed.
    pub(super) async fn finish(&mut self, signals: &mut Signals) {
        self.stops.values().for_each(|stop| _ = stop.send_replace(true));
        let mut all_ended = pin!(async { while self.tasks.join_next().await.is_some() {} });
        if timeout(MESSAGE_DELAY, &mut all_ended).await.is_err() {
            message(format_args!("ending the watches of processes; Ctrl-C exits at once"));
            tokio::select! {
                _ = timeout(FINISH_TIMEOUT - MESSAGE_DELAY, all_ended) => {}
                () = signals.end_again() => {}
            }
        }
    }
}
