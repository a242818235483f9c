//! The dialog that confirms quitting while recordings or jobs are running.

use super::{Form, Purpose};

/// Running activities.
#[derive(Debug)]
pub struct Quit {
    recordings: usize,
    jobs: usize,
}

/// The choice of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::app) enum QuitAnswer {
    Stay,
    /// Stop the recordings, wait for their rundown, then quit.
    Finish,
    /// Quit the dashboard; recordings continue in this terminal.
    Keep,
}

impl Form {
    /// Creates the form for quitting while this many recordings and jobs are running.
    pub(in crate::app) fn quit(recordings: usize, jobs: usize) -> Self {
        Self::new(None, Purpose::Quit(Quit { recordings, jobs }), Vec::new())
    }

    /// Returns the meaning of a button.
    pub(in crate::app) fn quit_answer(&self, button: usize) -> QuitAnswer {
        match (&self.purpose, button) {
            (_, 1) => QuitAnswer::Finish,
            (Purpose::Quit(Quit { recordings: 1.., .. }), 2) => QuitAnswer::Keep,
            _ => QuitAnswer::Stay,
        }
    }
}

impl Quit {
    pub(super) fn buttons(&self) -> &'static [&'static str] {
        if self.recordings > 0 { &["Cancel", "Stop and finish", "Keep recording"] } else { &["Cancel", "Quit"] }
    }

    pub(super) fn effects(&self) -> Vec<String> {
        let mut effects = Vec::new();
        if self.recordings > 0 {
            effects.push(match self.recordings {
                1 => "A recording is in progress.".to_owned(),
                n => format!("{n} recordings are in progress."),
            });
            effects.push("Stop and finish: stop the sessions, read the rundown, then quit.".to_owned());
            effects.push(
                "Keep recording: quit the dashboard; recordings continue in this terminal until Ctrl-C or their process ends.".to_owned(),
            );
        }
        effects.extend(match self.jobs {
            0 => None,
            1 => Some("A command is still running in a process; it finishes without dn-top, and its result is not shown.".to_owned()),
            n => Some(format!("{n} commands are still running in processes; they finish without dn-top, and their results are not shown.")),
        });
        effects
    }
}
