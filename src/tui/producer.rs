//! The producer for Perfetto's tracing service, while the dashboard is open.

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::exit_report::message;
use super::signals::Signals;
use super::tasks::boxed;
use crate::app::{JobResult, Msg, Ticket};
use crate::session::{self, ServeOptions};

/// Time that the producer may take to stop before a message is printed.
const MESSAGE_DELAY: Duration = Duration::from_millis(300);

/// The current producer, and how to stop it.
#[derive(Debug, Default)]
pub(super) struct Producer {
    stop: Option<watch::Sender<bool>>,
    tasks: JoinSet<()>,
}

impl Producer {
    /// Starts to serve, and stops the previous producer. Progress is reported to `inbox`.
    pub(super) fn start(&mut self, serve: ServeOptions, ticket: Ticket, inbox: mpsc::Sender<Msg>) {
        self.stop();
        while self.tasks.try_join_next().is_some() {}
        let (stop, stopped) = watch::channel(false);
        self.stop = Some(stop);
        self.tasks.spawn(boxed(async move {
            // The receiver is gone once the dashboard has quit.
            let send = async |msg| drop(inbox.send(msg).await);
            let (reports, mut reported) = mpsc::unbounded_channel();
            let serving = session::serve(serve, stopped, Box::new(move |report| drop(reports.send(report))));
            let reporting = async {
                while let Some(report) = reported.recv().await {
                    send(Msg::Producer { ticket, report }).await;
                }
            };
            let (served, ()) = tokio::join!(serving, reporting);
            send(Msg::job_done(ticket, served.map(|()| JobResult::default()))).await;
        }));
    }

    /// Ends the sessions and the connection.
    pub(super) fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop.send_replace(true);
        }
    }

    /// Stops the producer and waits for its end, unless there is another signal; for use after the dashboard has closed. Stopping has its own
    /// timeout.
    pub(super) async fn finish(&mut self, signals: &mut Signals) {
        self.stop();
        let mut all_ended = std::pin::pin!(async { while self.tasks.join_next().await.is_some() {} });
        if timeout(MESSAGE_DELAY, &mut all_ended).await.is_err() {
            message(format_args!("ending sessions of Perfetto's tracing service; Ctrl-C skips the rest of the data"));
            tokio::select! {
                () = all_ended => {}
                () = signals.end_again() => {}
            }
        }
    }
}
