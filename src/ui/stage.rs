//! Where in its life a recording is.

use ratatui::style::Style;

use crate::model::{Outcome, Phase, Recording, StoppedBy};

use super::theme::Theme;

/// A sign, a word and a colour for where in its life a recording is.
pub(super) fn stage<'t>(theme: &'t Theme, recording: &Recording) -> (&'t str, &'static str, Style) {
    let glyphs = theme.glyphs;
    match &recording.phase {
        Phase::Starting => (glyphs.waiting, "starting", theme.accent),
        Phase::Recording if recording.kernel.is_some() => (glyphs.recording, "into the kernel", theme.recording),
        Phase::Recording => (glyphs.recording, "recording", theme.recording),
        Phase::Stopping { .. } => (glyphs.suspended, "stopping", theme.accent),
        Phase::Done(Outcome { file: None, .. }) if recording.kernel.is_none() => (glyphs.no, "failed", theme.bad),
        Phase::Done(Outcome { stopped_by: StoppedBy::Error, .. }) => (glyphs.no, "broke off", theme.bad),
        Phase::Done(Outcome { complete: true, .. }) => (glyphs.yes, "done", theme.good),
        Phase::Done(_) => (glyphs.trouble, "incomplete", theme.warn),
    }
}
