//! Sessions beside the dashboard, which end when it closes: the watches of processes, and the producer for Perfetto's tracing service.

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
use crate::app::{JobResult, Msg, Ticket};
use crate::net::client::Client;
use crate::session::{self, ServeOptions, WatchOptions};

/// How the end of all sessions is awaited after the dashboard has closed.
pub(super) struct Ending {
    /// Delay after which the wait is reported, and can be ended.
    message_delay: Duration,
    message: &'static str,
    limit: Duration,
}

/// A hanging runtime finds its connection closed later. Others need milliseconds, or a second if meters are being collected: closing the connection
/// while a runtime collects its meters for the first time could harm it.
pub(super) const END_OF_WATCHES: Ending = Ending {
    message_delay: Duration::from_millis(1500),
    message: "ending the watches of processes; Ctrl-C exits at once",
    limit: Duration::from_secs(4),
};
/// Stopping has its own timeout.
pub(super) const END_OF_PRODUCER: Ending = Ending {
    message_delay: Duration::from_millis(300),
    message: "ending sessions of Perfetto's tracing service; Ctrl-C skips the rest of the data",
    limit: Duration::MAX,
};

/// The active sessions, and how to stop them.
#[derive(Debug, Default)]
pub(super) struct Sessions<K> {
    stops: BTreeMap<K, watch::Sender<bool>>,
    tasks: JoinSet<()>,
}

impl<K: Ord> Sessions<K> {
    /// Starts a session that ends when it receives `true`; an earlier one with this key is stopped.
    pub(super) fn start<F: Future<Output = ()> + Send + 'static>(&mut self, key: K, run: impl FnOnce(watch::Receiver<bool>) -> F) {
        let (stop, stopped) = watch::channel(false);
        if let Some(before) = self.stops.insert(key, stop) {
            before.send_replace(true);
        }
        // Forget those that have ended.
        while self.tasks.try_join_next().is_some() {}
        self.stops.retain(|_, stop| !stop.is_closed());
        self.tasks.spawn(boxed(run(stopped)));
    }

    /// Stops the session with this key.
    pub(super) fn stop(&mut self, key: &K) {
        if let Some(stop) = self.stops.remove(key) {
            stop.send_replace(true);
        }
    }

    /// Stops all and waits for their end, at most until there is another signal; for use after the dashboard has closed.
    pub(super) async fn finish(&mut self, Ending { message_delay, message: text, limit }: Ending, signals: &mut Signals) {
        self.stops.values().for_each(|stop| _ = stop.send_replace(true));
        let mut all_ended = pin!(async { while self.tasks.join_next().await.is_some() {} });
        if timeout(message_delay, &mut all_ended).await.is_err() {
            message(text);
            tokio::select! {
                _ = timeout(limit - message_delay, all_ended) => {}
                () = signals.end_again() => {}
            }
        }
    }
}

/// Watches a process until its session ends. Results are reported to `inbox`, which is closed once the dashboard has quit.
pub(super) async fn watch(client: Client, options: WatchOptions, stopped: watch::Receiver<bool>, ticket: Ticket, inbox: mpsc::Sender<Msg>) {
    let send = async |msg| drop(inbox.send(msg).await);
    let publish = |counters, usage| send(Msg::WatchReport { ticket, counters: Arc::new(counters), usage: Box::new(usage) });
    let trouble = session::watch(&client, &options, stopped, publish).await.err().map(Into::into);
    send(Msg::WatchEnded { ticket, trouble }).await;
}

/// Serves Perfetto's tracing service. Progress is reported to `inbox`, which is closed once the dashboard has quit.
pub(super) async fn serve(options: ServeOptions, stopped: watch::Receiver<bool>, ticket: Ticket, inbox: mpsc::Sender<Msg>) {
    let send = async |msg| drop(inbox.send(msg).await);
    let (reports, mut reported) = mpsc::unbounded_channel();
    let serving = session::serve(options, stopped, Box::new(move |report| drop(reports.send(report))));
    let reporting = async {
        while let Some(report) = reported.recv().await {
            send(Msg::Producer { ticket, report }).await;
        }
    };
    let (served, ()) = tokio::join!(serving, reporting);
    send(Msg::job_done(ticket, served.map(|()| JobResult::default()))).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn session_is_stopped_by_another_with_its_key_and_forgotten_once_it_has_ended() {
        let (ended, mut ends) = mpsc::unbounded_channel();
        let mut sessions = Sessions::default();
        let start = |sessions: &mut Sessions<u8>, key, name| {
            let ended = ended.clone();
            sessions.start(key, move |mut stopped| async move {
                // Without a request to stop it, it goes on.
                if stopped.wait_for(|stop| *stop).await.is_err() {
                    std::future::pending().await
                }
                ended.send(name).unwrap();
            });
        };
        start(&mut sessions, 1, "first");
        start(&mut sessions, 1, "second");
        assert_eq!(ends.recv().await, Some("first"));
        sessions.stop(&1);
        assert_eq!(ends.recv().await, Some("second"));
        sessions.start(4, async |_| {});
        while !sessions.stops[&4].is_closed() {
            tokio::task::yield_now().await;
        }
        start(&mut sessions, 2, "third");
        start(&mut sessions, 3, "fourth");
        assert_eq!((sessions.stops.len(), sessions.tasks.len()), (2, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn end_of_sessions_is_awaited_for_a_limited_time() {
        let ending = || Ending { message_delay: Duration::from_secs(1), message: "waiting", limit: Duration::from_secs(5) };
        let mut signals = Signals::new().unwrap();
        for (stops, seconds) in [(true, 0), (false, 5)] {
            let mut sessions = Sessions::default();
            sessions.start(1, move |mut stopped| async move {
                let is_stopped = stopped.wait_for(|stop| *stop).await.is_ok();
                if !(stops && is_stopped) {
                    std::future::pending().await
                }
            });
            let began = tokio::time::Instant::now();
            sessions.finish(ending(), &mut signals).await;
            assert_eq!(began.elapsed().as_secs(), seconds, "{stops}");
        }
    }
}
