//! Waits for an event, in a session of its own.

use std::sync::Arc;

use tokio::sync::Notify;

use super::ConditionError;
use crate::analysis::EventTrigger;
use crate::clr::{Trigger, select};
use crate::ipc::Rundown;
use crate::model::SafeText;
use crate::net::ExchangeError;
use crate::net::client::Client;
use crate::nettrace::{Event, Metadata, Sink, TraceHeader};
use crate::session::StartError;
use crate::session::listener::Listener;
use crate::session::trace_session::StopLimit;

/// Notifies a task when the event occurs.
struct Notifier {
    trigger: EventTrigger,
    occurred: Arc<Notify>,
}

impl Sink for Notifier {
    fn trace(&mut self, header: &TraceHeader) {
        self.trigger.trace(header);
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.trigger.metadata(metadata);
    }

    fn event(&mut self, event: &Event<'_>) {
        let before = self.trigger.is_triggered();
        self.trigger.event(event);
        if !before && self.trigger.is_triggered() {
            self.occurred.notify_one();
        }
    }
}

/// Waits until the event occurs, once `begun` is done with the session open, and returns its fields. Runtimes send buffered events every tenth of a
/// second.
pub(in crate::session) async fn occurrence(
    client: Client,
    trigger: &Trigger,
    begun: impl Future<Output = Result<(), ExchangeError>>,
) -> Result<SafeText, ConditionError> {
    let mut config = select(&[""; 0], &[trigger.provider_spec()], None)?.config;
    (config.stacks, config.rundown) = (false, Rundown::None);
    let occurred = Arc::new(Notify::new());
    let notifier = Notifier { trigger: EventTrigger::new(Some(trigger.clone())), occurred: occurred.clone() };
    let mut listener = Listener::start(client, &config, notifier, u64::MAX).await?;
    begun.await.map_err(StartError::from)?;
    tokio::select! {
        () = occurred.notified() => {}
        () = listener.ended() => {}
    }
    let found = listener.with_sink(|notifier| notifier.trigger.found().map(|fields| SafeText::new(fields.text())));
    // How it ends makes no difference: the event has arrived, or the process has exited.
    let _ = listener.stop(StopLimit::NO_RUNDOWN).await;
    found.ok_or(ConditionError::Ended)
}
