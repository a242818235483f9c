//! Short messages in the corner, and all that were shown before.

use std::collections::VecDeque;
use std::time::Duration;

use super::Now;
use crate::model::SafeText;

/// How long a message is shown that is no error.
const SHOWN: Duration = Duration::from_secs(4);
/// How many are kept for the history.
const KEPT: usize = 200;

/// How a message is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Info,
    /// Something went well.
    Good,
    /// Something did not go as it should have.
    Warning,
    Error,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toast {
    pub level: Level,
    pub text: SafeText,
    /// When it was shown first.
    pub at: Now,
    /// Errors: whether it was seen.
    seen: bool,
}

/// All messages, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Toasts {
    all: VecDeque<Toast>,
}

impl Toast {
    /// An error stays until it was seen; anything else for some seconds.
    pub fn is_shown(&self, now: Duration) -> bool {
        if self.level == Level::Error { !self.seen } else { !self.seen && now < self.at.elapsed + SHOWN }
    }
}

impl Toasts {
    pub(super) fn push(&mut self, level: Level, text: SafeText, at: Now) {
        // The same words again are the same message.
        if self.all.back().is_some_and(|last| last.text == text) {
            self.all.pop_back();
        }
        if self.all.len() == KEPT {
            self.all.pop_front();
        }
        self.all.push_back(Toast { level, text, at, seen: false });
    }

    /// The messages to be shown now, newest first.
    pub fn shown(&self, now: Duration) -> impl Iterator<Item = &Toast> {
        self.all.iter().rev().filter(move |toast| toast.is_shown(now))
    }

    /// All messages, newest first.
    pub fn history(&self) -> impl DoubleEndedIterator<Item = &Toast> + ExactSizeIterator {
        self.all.iter().rev()
    }

    /// Puts away all that is shown.
    pub(super) fn dismiss(&mut self, now: Duration) {
        self.all.iter_mut().filter(|toast| toast.is_shown(now)).for_each(|toast| toast.seen = true);
    }

    /// A key was pressed: errors that were on the screen for a while count as seen.
    pub(super) fn see(&mut self, now: Duration) {
        for toast in self.all.iter_mut().filter(|toast| now >= toast.at.elapsed + SHOWN) {
            toast.seen = true;
        }
    }

    /// When the next message goes by itself.
    pub(super) fn deadline(&self, now: Duration) -> Option<Duration> {
        self.shown(now).filter(|toast| toast.level != Level::Error).map(|toast| toast.at.elapsed + SHOWN).min()
    }
}
