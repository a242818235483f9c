//! Collections as marks on a time axis: when, how long the pause was, and which generation.

use std::collections::VecDeque;

use crate::clr::EventKind;
use crate::clr::payload::{GcEnd, GcStart, GcType};
use crate::nettrace::ThreadId;

use super::super::known::Known;
use super::suspensions::Suspensions;

/// Marks that are kept.
const MARKS: usize = 4096;
/// The generation that a background collection collects.
const BACKGROUND_GENERATION: u32 = 2;

/// A pause for a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcMark {
    /// When it began, nanoseconds since the start of the session.
    pub at: i64,
    /// How long all managed threads were paused.
    pub pause_ns: u64,
    /// The oldest generation that was collected.
    pub generation: u32,
    /// Whether the program called `GC.Collect`.
    pub is_induced: bool,
}

/// Marks the pauses of a session that has nothing of the collector but its informational events.
#[derive(Debug, Default)]
pub(in crate::analysis) struct GcMarks {
    suspensions: Suspensions,
    /// What began since the latest suspension.
    started: Option<(u32, bool)>,
    /// The background collection that is in progress: it has more pauses than the one that it begins in.
    background: Option<u32>,
    marks: VecDeque<GcMark>,
}

impl GcMarks {
    /// Takes an event. `None` where the payload is malformed.
    pub(in crate::analysis) fn feed(&mut self, known: &Known<'_>) -> Option<()> {
        let thread = known.event.capture_thread();
        match known.kind {
            EventKind::SuspendBegin => {
                let is_for_gc = self.suspensions.begin(known.at, thread, known.payload()?);
                if is_for_gc {
                    self.started = None;
                }
            }
            EventKind::GcStart => {
                let start: GcStart = known.payload()?;
                self.started = Some((start.generation, start.reason.is_induced()));
                if start.kind == GcType::BACKGROUND {
                    self.background = Some(start.number);
                }
            }
            EventKind::GcEnd => {
                let end: GcEnd = known.payload()?;
                self.background = self.background.filter(|number| *number != end.number);
            }
            EventKind::RestartEnd => self.restarted(known.at, thread),
            _ => {}
        }
        Some(())
    }

    fn restarted(&mut self, at: i64, thread: ThreadId) {
        let Some(pause) = self.suspensions.end(at, thread) else { return };
        // A pause in which no collection begins belongs to the one in the background; else its begin was lost.
        let background = self.background.map(|_| (BACKGROUND_GENERATION, false));
        let Some((generation, is_induced)) = self.started.take().or(background) else { return };
        if self.marks.len() >= MARKS {
            self.marks.pop_front();
        }
        self.marks.push_back(GcMark { at: pause.begin, pause_ns: pause.nanoseconds(), generation, is_induced });
    }

    /// Another stream begins: what is in progress then is not known. The marks stay.
    pub(in crate::analysis) fn restart(&mut self) {
        *self = Self { marks: std::mem::take(&mut self.marks), ..Self::default() };
    }

    /// The latest, oldest first.
    pub(in crate::analysis) fn marks(&self) -> Vec<GcMark> {
        self.marks.iter().copied().collect()
    }
}
