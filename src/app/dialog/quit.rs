//! The dialog that confirms quitting while recordings or jobs are running.

use super::{Form, Purpose};

impl Form {
    /// Creates the form for quitting while this many recordings and jobs are running.
    pub(in crate::app) fn quit(recordings: usize, jobs: usize) -> Self {
        let mut effects = Vec::new();
        if recordings > 0 {
            effects.push(match recordings {
                1 => "A recording is in progress.".to_owned(),
                n => format!("{n} recordings are in progress."),
            });
            effects.push("Stop and finish: stop the sessions, read the rundown, then quit.".to_owned());
            effects.push(
                "Keep recording: quit the dashboard; recordings continue in this terminal until Ctrl-C or their process ends.".to_owned(),
            );
        }
        effects.extend(match jobs {
            0 => None,
            1 => Some("A command is still running in a process; it finishes without dn-top, and its result is not shown.".to_owned()),
            n => Some(format!("{n} commands are still running in processes; they finish without dn-top, and their results are not shown.")),
        });
        let buttons: &[&str] = if recordings > 0 { &["Cancel", "Stop and finish", "Keep recording"] } else { &["Cancel", "Quit"] };
        Self::new(Purpose::Quit, None, "Quit", buttons, effects, Vec::new())
    }
}
