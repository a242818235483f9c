//! Panics: one in a task is news for the dashboard, one in the dashboard gives the terminal back first.

use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::thread;

use tokio::sync::mpsc;

use super::terminal;
use crate::app::Msg;

/// From now on a panic on this thread gives the terminal back before it is reported, and one on any other thread becomes a message: it must not
/// write over the picture.
pub(super) fn guard(inbox: mpsc::Sender<Msg>) {
    let dashboard = thread::current().id();
    let report = take_hook();
    set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        if thread::current().id() == dashboard {
            terminal::restore();
            report(info);
        } else {
            // A full inbox loses the message; the task's own result still says that it failed.
            let _ = inbox.try_send(Msg::TaskPanicked(words(info)));
        }
    }));
}

fn words(info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let said = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let place = info.location().map(|place| format!(" at {}:{}", place.file(), place.line())).unwrap_or_default();
    format!("{}{place}", said.unwrap_or("no reason given"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_a_task_is_a_message_and_not_a_word_on_the_screen() {
        let (inbox, mut messages) = mpsc::channel(8);
        guard(inbox);
        let panicked = thread::spawn(|| panic!("the {} broke", "task")).join();
        // The tests beside this one panic as they like.
        drop(take_hook());
        assert!(panicked.is_err());
        let said = std::iter::from_fn(|| messages.try_recv().ok()).find_map(|msg| match msg {
            Msg::TaskPanicked(text) if text.starts_with("the task broke at src/tui/panic.rs:") => Some(text),
            _ => None,
        });
        assert!(said.is_some());
    }
}
