//! Serializes commands per process: its diagnostic server serves one client at a time, and clients in its queue cannot see what it is doing.

use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::{Instant, timeout};

use crate::ipc::CommandCode;

/// A command in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy {
    /// The command.
    pub command: CommandCode,
    /// When it began.
    pub since: Instant,
}

/// Lets one command through at a time. A trace's event stream does not count: it flows while commands pass.
#[derive(Debug, Default)]
pub(super) struct CommandLock {
    turn: Arc<Mutex<()>>,
    busy: StdMutex<Option<Busy>>,
}

impl CommandLock {
    /// Waits at most `limit` for the turn; the error is the command still in progress then.
    pub(super) async fn acquire(self: &Arc<Self>, command: CommandCode, limit: Duration) -> Result<CommandGuard, Busy> {
        let since = Instant::now();
        match timeout(limit, Arc::clone(&self.turn).lock_owned()).await {
            Ok(turn) => {
                self.note(Some(Busy { command, since: Instant::now() }));
                Ok(CommandGuard { command_lock: Arc::clone(self), _turn: turn })
            }
            Err(_) => Err(self.busy().unwrap_or(Busy { command, since })),
        }
    }

    pub(super) fn busy(&self) -> Option<Busy> {
        *self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, busy: Option<Busy>) {
        *self.busy.lock().unwrap_or_else(PoisonError::into_inner) = busy;
    }
}

/// Permission to have one command in progress; ends when dropped.
#[derive(Debug)]
pub(super) struct CommandGuard {
    command_lock: Arc<CommandLock>,
    _turn: OwnedMutexGuard<()>,
}

impl Drop for CommandGuard {
    fn drop(&mut self) {
        self.command_lock.note(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn second_command_waits_up_to_its_timeout() {
        let command_lock = Arc::new(CommandLock::default());
        let dump = command_lock.acquire(CommandCode::GenerateCoreDump3, Duration::ZERO).await.unwrap();
        let began = Instant::now();
        assert_eq!(command_lock.busy(), Some(Busy { command: CommandCode::GenerateCoreDump3, since: began }));
        let busy = command_lock.acquire(CommandCode::StopTracing, Duration::from_secs(60)).await.unwrap_err();
        assert_eq!((busy.command, began.elapsed()), (CommandCode::GenerateCoreDump3, Duration::from_secs(60)));
        let (stop, ()) = tokio::join!(command_lock.acquire(CommandCode::StopTracing, Duration::from_secs(60)), async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            drop(dump);
        });
        assert_eq!(command_lock.busy().unwrap().command, CommandCode::StopTracing);
        drop(stop);
        assert_eq!(command_lock.busy(), None);
    }
}
