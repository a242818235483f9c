//! Waits for an event, in a session of its own.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use super::ConditionError;
use crate::analysis::EventTrigger;
use crate::clr::{Trigger, select, silent_provider_hint};
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
    provider: String,
    /// Whether the provider has sent any event: a kind is described when it occurs first.
    is_active: bool,
}

impl Sink for Notifier {
    fn trace(&mut self, header: &TraceHeader) {
        self.trigger.trace(header);
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.is_active |= metadata.provider.eq_ignore_ascii_case(&self.provider);
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
        let provider = trigger.provider().to_owned();
        let notifier =
            Notifier { trigger: EventTrigger::new(Some(trigger.clone())), occurred: occurred.clone(), provider, is_active: false };
        Ok(Self { listener: Listener::start(client, &config, notifier, u64::MAX).await?, occurred })
    }

    /// Waits until the event has occurred, and returns its fields. Runtimes send buffered events every tenth of a second. Calls `hint` with a sentence
    /// if its provider has sent no event for the time `silence`, and its name may be wrong.
    ///
    /// # Errors
    /// The process has exited, or closed the session.
    pub(in crate::session) async fn occurrence(mut self, silence: Duration, hint: impl FnOnce(&str)) -> Result<SafeText, ConditionError> {
        if timeout(silence, self.occurred_or_ended()).await.is_err() {
            let silent = self.listener.with_sink(|notifier| (!notifier.is_active).then(|| notifier.provider.clone()));
            if let Some(text) = silent.and_then(|provider| silent_provider_hint(&provider, silence)) {
                hint(&text);
            }
            self.occurred_or_ended().await;
        }
        let found = self.listener.with_sink(|notifier| notifier.trigger.found().map(|fields| SafeText::new(fields.text())));
        // How it ends makes no difference: the event has arrived, or the process has exited.
        let _ = self.listener.stop(StopLimit::NO_RUNDOWN).await;
        found.ok_or(ConditionError::Ended)
    }

    async fn occurred_or_ended(&mut self) {
        tokio::select! {
            () = self.occurred.notified() => {}
            () = self.listener.ended() => {}
        }
    }
}
