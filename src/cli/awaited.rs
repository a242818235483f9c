//! The target `PATH,listen`: the first program that connects to a diagnostic port, which is served at `PATH` while the command runs.
//!
//! The program is usually suspended at startup. It is resumed once the session of the command has started, or first if the command needs a program
//! that runs, and in any case at the end of the command: it would wait forever.

use std::path::Path;

use super::exit::{Exit, Failure};
use super::host::Host;
use super::interrupt::until_signal;
use super::print;
use super::target::{INFO_TIMEOUT, display_name, exchange_error, start_error, target_error};
use crate::ipc::{Command, CommandCode};
use crate::model::{Process, RunState, SafeText};
use crate::net::client::Client;
use crate::net::{Directory, ExchangeError};
use crate::session::{RuntimePort, start_program};

/// The program that has connected, and its port.
pub(super) struct Awaited {
    port: RuntimePort,
    /// `None` once the program was resumed.
    suspended: Option<Client>,
}

/// Returns the path of the port to serve, if the target is one.
pub(super) fn port_path(target: &str) -> Option<&Path> {
    target.strip_suffix(",listen").map(Path::new)
}

impl Host {
    /// Serves a port and waits for the first program that connects to it.
    pub(super) async fn await_program(&self, directory: &mut Directory, path: &Path) -> Result<(Process, Option<Client>), Failure> {
        if !self.access.allows(CommandCode::ResumeRuntime) {
            let why = "--readonly, or readonly in the configuration file, does not allow resuming the program that connects";
            return Err(Failure::new(Exit::Failed, anyhow::anyhow!("{} is not served: {why}", SafeText::from_path(path))));
        }
        // The command may be repeated.
        self.release_program().await;
        let mut port = RuntimePort::serve(path, &self.sources).map_err(anyhow::Error::from)?;
        print::message(format_args!(
            "waiting for a program of .NET 5 or later to start with DOTNET_DiagnosticPorts={} in its environment; Ctrl-C cancels",
            SafeText::from_path(port.name())
        ));
        let connected = until_signal("interrupted: no program has connected", async { Ok(port.first().await) }).await?;
        directory.serve(port.port());
        *self.awaited.borrow_mut() = Some(Awaited { port, suspended: Some(connected.client) });
        let process = until_signal("interrupted before the program has answered", async {
            directory.connected(connected.key, INFO_TIMEOUT).await.map_err(target_error)
        });
        let process = process.await?;
        let client = directory.clients().of(&process);
        Ok((process, client))
    }

    /// Resumes the program that was awaited, once a session has started; does nothing if the target of the command is another.
    pub(super) async fn resume_program(&self) -> Result<(), ExchangeError> {
        let suspended = self.awaited.borrow().as_ref().and_then(|awaited| awaited.suspended.clone());
        let Some(client) = suspended else { return Ok(()) };
        client.run(&Command::ResumeRuntime).await?;
        if let Some(awaited) = &mut *self.awaited.borrow_mut() {
            awaited.suspended = None;
        }
        Ok(())
    }

    /// Resumes the program that was awaited, for a command that needs one that runs; does nothing if the target of the command is another.
    pub(super) async fn start_program(&self, process: &mut Process, client: &Client) -> Result<(), Failure> {
        if self.awaited.borrow().is_none() {
            return Ok(());
        }
        if process.run_state != RunState::Suspended {
            return self.resume_program().await.map_err(exchange_error);
        }
        until_signal("interrupted before the program has started", async {
            start_program(client.clone(), self.resume_program()).await.map_err(start_error)?;
            client.await_start().await.map_err(exchange_error)
        })
        .await?;
        print::message(format_args!("{} was suspended at startup, and was resumed first", display_name(process)));
        process.run_state = RunState::Running;
        Ok(())
    }

    /// Closes the port at the end of the command. The program is resumed if it was not, such as after an error, which is reported instead of one of
    /// the resume.
    pub(super) async fn release_program(&self) {
        drop(self.resume_program().await);
        let awaited = self.awaited.borrow_mut().take();
        if let Some(Awaited { port, .. }) = awaited {
            port.close().await;
        }
    }
}
