//! The processes that the dashboard watches. None is watched any more once it has gone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::app::{Msg, Ticket};
use crate::model::ProcessKey;
use crate::net::client::Client;
use crate::session::{self, Watch};

/// How long all sessions together may take to stop: a runtime that hangs finds its reader gone later.
const LAST_WAIT: Duration = Duration::from_secs(4);

/// What is watched, and how to stop that.
#[derive(Debug, Default)]
pub(super) struct Watches {
    stops: BTreeMap<ProcessKey, watch::Sender<bool>>,
    tasks: JoinSet<()>,
}

impl Watches {
    /// Watches a process; the session before, if there is one, is stopped. What comes of it is reported to `inbox`.
    pub(super) fn start(&mut self, client: Client, watch: Watch, ticket: Ticket, inbox: mpsc::Sender<Msg>) {
        let (stop, stopped) = watch::channel(false);
        if let Some(before) = self.stops.insert(watch.process.key, stop) {
            before.send_replace(true);
        }
        // Those that are over are forgotten.
        while self.tasks.try_join_next().is_some() {}
        self.stops.retain(|_, stop| !stop.is_closed());
        self.tasks.spawn(async move {
            // The receiver is gone once the dashboard has quit.
            let send = async |msg| drop(inbox.send(msg).await);
            let publish = |counters, cpu| send(Msg::Watched { ticket, counters: Arc::new(counters), cpu });
            let trouble = session::watch(&client, &watch, stopped, publish).await.err().map(Into::into);
            send(Msg::WatchEnded { ticket, trouble }).await;
        });
    }

    /// Watches a process no longer.
    pub(super) fn stop(&mut self, key: ProcessKey) {
        if let Some(stop) = self.stops.remove(&key) {
            stop.send_replace(true);
        }
    }

    /// Stops all and waits for that, for when the dashboard has gone.
    pub(super) async fn finish(&mut self) {
        self.stops.values().for_each(|stop| _ = stop.send_replace(true));
        let all_over = async { while self.tasks.join_next().await.is_some() {} };
        let _ = timeout(LAST_WAIT, all_over).await;
    }
}
