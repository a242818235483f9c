//! One command at a time for each process: its diagnostic server serves one client at a time, and shows nothing to clients in its queue.

use std::sync::{Mutex as StdMutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, timeout};

use crate::ipc::CommandCode;

/// A command that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy {
    /// The one that is under way.
    pub command: CommandCode,
    /// Since when.
    pub since: Instant,
}

/// Lets one command through at a time. A trace's stream is no command: it flows while others pass.
#[derive(Debug, Default)]
pub(super) struct Gate {
    turn: Mutex<()>,
    busy: StdMutex<Option<Busy>>,
}

impl Gate {
    /// Waits for its turn, for at most `limit`; the error is what was still under way then.
    pub(super) async fn enter(&self, command: CommandCode, limit: Duration) -> Result<Turn<'_>, Busy> {
        let since = Instant::now();
        match timeout(limit, self.turn.lock()).await {
            Ok(turn) => {
                self.note(Some(Busy { command, since: Instant::now() }));
                Ok(Turn { gate: self, _turn: turn })
            }
            Err(_) => Err(self.busy().unwrap_or(Busy { command, since })),
        }
    }

    /// What is under way.
    pub(super) fn busy(&self) -> Option<Busy> {
        *self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, busy: Option<Busy>) {
        *self.busy.lock().unwrap_or_else(PoisonError::into_inner) = busy;
    }
}

/// The right to have one command under way; ends when it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    gate: &'a Gate,
    _turn: MutexGuard<'a, ()>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.gate.note(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_second_command_waits_for_its_turn_and_not_for_ever() {
        let gate = Gate::default();
        let dump = gate.enter(CommandCode::GenerateCoreDump3, Duration::ZERO).await.unwrap();
        let began = Instant::now();
        assert_eq!(gate.busy(), Some(Busy { command: CommandCode::GenerateCoreDump3, since: began }));
        let busy = gate.enter(CommandCode::StopTracing, Duration::from_secs(60)).await.unwrap_err();
        assert_eq!((busy.command, began.elapsed()), (CommandCode::GenerateCoreDump3, Duration::from_secs(60)));
        let (stop, ()) = tokio::join!(gate.enter(CommandCode::StopTracing, Duration::from_secs(60)), async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            drop(dump);
        });
        assert_eq!(gate.busy().unwrap().command, CommandCode::StopTracing);
        drop(stop);
        assert_eq!(gate.busy(), None);
    }
}
