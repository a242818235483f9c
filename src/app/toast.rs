//! Short messages in the corner, and their history.

use std::collections::VecDeque;
use std::time::Duration;

use super::Now;
use crate::model::SafeText;

/// Display time of messages other than errors.
const DISPLAY_TIME: Duration = Duration::from_secs(4);
/// Number of messages kept for the history.
const MAX_MESSAGES: usize = 200;

/// Severity of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Info,
    /// Something succeeded.
    Success,
    /// Something did not go as expected.
    Warning,
    Error,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toast {
    pub level: Level,
    pub text: SafeText,
    /// When the message was first shown.
    pub at: Now,
    /// Whether the message was seen or dismissed.
    seen: bool,
}

/// All messages, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Toasts {
    all: VecDeque<Toast>,
}

impl Toast {
    /// Whether the message is shown: an error until it was seen, anything else for a few seconds.
    pub fn is_shown(&self, now: Duration) -> bool {
        if self.level == Level::Error { !self.seen } else { !self.seen && now < self.at.elapsed + DISPLAY_TIME }
    }
}

impl Toasts {
    pub(super) fn push(&mut self, level: Level, text: SafeText, at: Now) {
        // A message with the same text replaces the previous one.
        if self.all.back().is_some_and(|last| last.text == text) {
            self.all.pop_back();
        }
        if self.all.len() == MAX_MESSAGES {
            self.all.pop_front();
        }
        self.all.push_back(Toast { level, text, at, seen: false });
    }

    /// Returns the messages to show now, newest first.
    pub fn shown(&self, now: Duration) -> impl Iterator<Item = &Toast> {
        self.all.iter().rev().filter(move |toast| toast.is_shown(now))
    }

    /// Returns all messages, newest first.
    pub fn history(&self) -> impl DoubleEndedIterator<Item = &Toast> + ExactSizeIterator {
        self.all.iter().rev()
    }

    /// Dismisses a message that is outdated.
    pub(super) fn dismiss_text(&mut self, text: &str) {
        self.all.iter_mut().filter(|toast| toast.text.as_str() == text).for_each(|toast| toast.seen = true);
    }

    /// Dismisses all shown messages.
    pub(super) fn dismiss(&mut self, now: Duration) {
        self.all.iter_mut().filter(|toast| toast.is_shown(now)).for_each(|toast| toast.seen = true);
    }

    /// Marks messages that were on screen for a while as seen, on a key press.
    pub(super) fn mark_seen(&mut self, now: Duration) {
        for toast in self.all.iter_mut().filter(|toast| now >= toast.at.elapsed + DISPLAY_TIME) {
            toast.seen = true;
        }
    }

    /// Returns when the next message disappears.
    pub(super) fn deadline(&self, now: Duration) -> Option<Duration> {
        self.shown(now).filter(|toast| toast.level != Level::Error).map(|toast| toast.at.elapsed + DISPLAY_TIME).min()
    }
}
