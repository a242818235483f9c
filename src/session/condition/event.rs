//! Waits for an event, in a session of its own.

use std::sync::Arc;

use tokio::sync::Notify;

use super::ConditionError;
use crate::analysis::EventTrigger;
use crate::clr::{Trigger, select};
use crate::ipc::Rundown;
use crate::model::SafeText;
use crate::net::client::Client;
use crate::nettrace::{Event, Metadata, Sink, TraceHeader};
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

/// A wait for an event, whose session is open: the event counts even if it occurs before [`occurrence`](Self::occurrence) is called.
pub(in crate::session) struct EventWait {
    listener: Listener<Notifier>,
    occurred: Arc<Notify>,
}

impl EventWait {
    /// Opens the session.
    ///
    /// # Errors
    /// The provider cannot be enabled, or the runtime does not open the session.
    pub(in crate::session) async fn start(client: Client, trigger: &Trigger) -> Result<Self, ConditionError> {
        let mut config = select(&[""; 0], &[trigger.provider_spec()], None)?.config;
        (config.stacks, config.rundown) = (false, Rundown::None);
        let occurred = Arc::new(Notify::new());
        let notifier = Notifier { trigger: EventTrigger::new(Some(trigger.clone())), occurred: occurred.clone() };
        Ok(Self { listener: Listener::start(client, &config, notifier, u64::MAX).await?, occurred })
    }

    /// Waits until the event has occurred, and returns its fields. Runtimes send buffered events every tenth of a second.
    ///
    /// # Errors
    /// The process has exited, or closed the session.
    pub(in crate::session) async fn occurrence(mut self) -> Result<SafeText, ConditionError> {
        tokio::select! {
            () = self.occurred.notified() => {}
            () = self.listener.ended() => {}
        }
        let found = self.listener.with_sink(|notifier| notifier.trigger.found().map(|fields| SafeText::new(fields.text())));
        // How it ends makes no difference: the event has arrived, or the process has exited.
        let _ = self.listener.stop(StopLimit::NO_RUNDOWN).await;
        found.ok_or(ConditionError::Ended)
    }
}
