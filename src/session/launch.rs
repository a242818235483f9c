//! A program that is started to be recorded: it waits at startup, on a port of its own, until its session has begun.
//!
//! It gets `DOTNET_DiagnosticPorts`, and so do the programs that it starts: those are let go on at once, and what a .NET program starts does not even
//! wait (seen on 9: a variable that is set while the runtime is suspended is its children's). It runs in a process group of its own, so
//! that the Ctrl-C that stops a recording reaches the program only after its last events were taken in.

mod others;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use thiserror::Error;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

pub(super) use others::resume_others;
use others::{VARIABLE, ports};

use super::{no_port, orphans};
use crate::ipc;
use crate::model::{ProcessKey, SafeText};
use crate::net::ExchangeError;
use crate::net::child;
use crate::net::client::Client;
use crate::net::discovery::Sources;
use crate::net::port::{ConnectedRuntime, Port, PortError};
use crate::net::stream::address_in;

/// After this time without a runtime that connects there is probably none in the program.
pub const USUAL_START: Duration = Duration::from_secs(10);
/// How long a program may take to end when it is asked to, before it is made to.
const GRACE: Duration = Duration::from_secs(5);
/// A folder whose path is longer may leave no room for a socket's name.
const LONGEST_FOLDER: usize = 60;
/// The port's socket in its folder.
pub(super) const PORT: &str = "port";

/// Where a program's output goes.
#[derive(Debug)]
pub enum ChildOutput {
    /// Nowhere.
    Discarded,
    /// Where ours goes.
    Inherited,
    /// All of it to our standard error: standard output is for a document.
    Stderr,
    /// All of it into a file.
    File(File),
}

/// What becomes of what is suspended on the port when we are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orphans {
    /// A second process of this program, which must be dn-top, resumes it.
    Resume,
    /// It waits for ever.
    Leave,
}

/// Why a program could not be started.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The folder for its port.
    #[error("no folder for the program's diagnostic port can be made in {}: {reason}", .folder.display())]
    Folder {
        /// Where.
        folder: PathBuf,
        /// The reason.
        reason: io::Error,
    },
    /// The process that resumes it if we are killed.
    #[error("the process that resumes the program if dn-top is killed cannot be started: {0}")]
    Orphans(io::Error),
    /// Its port.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The program.
    #[error("{} cannot be started: {reason}", SafeText::from_path(.program.as_ref()))]
    Program {
        /// Which.
        program: OsString,
        /// The reason.
        reason: io::Error,
    },
}

/// The runtime of a program that was started.
#[derive(Debug)]
pub struct Launched {
    /// The way to it.
    pub client: Client,
    /// Which process it is.
    pub key: ProcessKey,
    /// What it runs according to /proc, where the runtime is too old for the question.
    pub assembly: Option<SafeText>,
    /// How long after its start it was found, where it does not wait to be resumed.
    pub missed: Option<Duration>,
}

impl Launched {
    fn waiting(runtime: ConnectedRuntime) -> Self {
        Self { key: runtime.key(), client: runtime.client, assembly: None, missed: None }
    }

    /// Lets it run, if it waits for that.
    ///
    /// # Errors
    /// [`ExchangeError`].
    pub async fn resume(&self) -> Result<(), ExchangeError> {
        if self.missed.is_some() { Ok(()) } else { self.client.run(&ipc::Command::ResumeRuntime).await }
    }

    /// The name of its entry assembly; of the program where there is none.
    ///
    /// # Errors
    /// [`ExchangeError`].
    pub async fn name(&self, program: &Path) -> Result<SafeText, ExchangeError> {
        let info = self.client.process_info().await?;
        let said = info.and_then(|info| info.entry_assembly).map(SafeText::from);
        let name = said.or_else(|| self.assembly.clone()).filter(|name| !name.is_empty());
        Ok(name.unwrap_or_else(|| SafeText::new(&program.file_stem().unwrap_or_default().to_string_lossy())))
    }

    /// What is not in its recording, as a sentence.
    pub fn note(&self) -> Option<String> {
        let missed = self.missed?.as_millis();
        Some(format!(
            "the first {missed} ms are not recorded: .NET Core 3 has no diagnostic ports, and does not wait at startup to be attached to"
        ))
    }
}

/// What happens to a program that was started.
#[derive(Debug)]
pub enum LaunchEvent {
    /// No runtime has connected in the [usual time](USUAL_START): there is probably none in the program.
    NoRuntime,
    /// Its runtime is there.
    Connected(Launched),
    /// It ended, with this exit code.
    Exited(u8),
}

/// A program that was started. Dropping it ends it for as long as it may be suspended at startup; later it goes on.
#[derive(Debug)]
pub struct Launch {
    child: Child,
    pid: u32,
    others: Arc<AtomicUsize>,
    /// Gets its runtime; `None` once that has come.
    runtime: Option<oneshot::Receiver<Launched>>,
    /// When its runtime is late; `None` once that was reported.
    late: Option<Instant>,
    /// Whether it may be suspended at startup.
    is_suspended: bool,
    connecting: JoinHandle<()>,
    /// Goes last: the port's socket is in it. Without one it is removed by the process that resumes orphans.
    _folder: Option<TempDir>,
}

impl Launch {
    /// Starts a program.
    ///
    /// # Errors
    /// [`LaunchError`].
    pub fn start(words: &[OsString], output: ChildOutput, orphans: Orphans) -> Result<Self, LaunchError> {
        let parent = short_folder();
        let folder = tempfile::Builder::new().prefix("dn-top-").tempdir_in(&parent);
        let folder = folder.map_err(|reason| LaunchError::Folder { folder: parent, reason })?;
        // It must take over after the port is gone, and so goes after it.
        let (resumer, folder, path) = match orphans {
            Orphans::Resume => {
                let resumer = orphans::start(folder.path()).map_err(LaunchError::Orphans)?;
                (Some(resumer), None, address_in(&folder.keep(), PORT))
            }
            Orphans::Leave => {
                let path = address_in(folder.path(), PORT);
                (None, Some(folder), path)
            }
        };
        let port = Port::serve(&path, &Sources::machine())?;
        let (program, arguments) = words.split_first().map_or((OsStr::new(""), words), |(program, rest)| (program, rest));
        let (output, errors) = streams(output);
        let begun = Instant::now();
        let child = child::in_own_group(&mut Command::new(program))
            .args(arguments)
            .env(VARIABLE, ports(port.path(), "suspend"))
            // A program in another group would be stopped when it reads the terminal.
            .stdin(if io::stdin().is_terminal() { Stdio::null() } else { Stdio::inherit() })
            .stdout(output)
            .stderr(errors)
            .spawn();
        let child = child.map_err(|reason| LaunchError::Program { program: program.to_owned(), reason })?;
        let pid = child.id().unwrap_or_default();
        let others = Arc::new(AtomicUsize::new(0));
        let (connected, runtime) = oneshot::channel();
        let without_port = no_port::find(Sources::machine(), pid, begun);
        let serving = resume_others(port, Some(pid), without_port, connected, Arc::clone(&others));
        let connecting = tokio::spawn(async move {
            // Goes after the port, which the other process then serves.
            let _resumer = resumer;
            serving.await;
        });
        let (runtime, late) = (Some(runtime), Some(begun + USUAL_START));
        Ok(Self { child, pid, others, runtime, late, is_suspended: true, connecting, _folder: folder })
    }

    /// Waits for the next event. The runtime comes when it has connected, and waits to be resumed, or when one that connects to no port has made its
    /// socket. Nothing is lost where the wait is given up and begun again.
    pub async fn next(&mut self) -> LaunchEvent {
        let Self { child, runtime, late, is_suspended, .. } = self;
        let connected = async {
            match runtime {
                Some(runtime) => runtime.await.ok(),
                None => None,
            }
        };
        tokio::select! {
            Some(launched) = connected => {
                (self.runtime, self.late) = (None, None);
                LaunchEvent::Connected(launched)
            }
            code = exited(child) => LaunchEvent::Exited(code),
            () = sleep_until(late.unwrap_or(Instant::now())), if late.is_some() => {
                // A program without a runtime is not suspended.
                (*late, *is_suspended) = (None, false);
                LaunchEvent::NoRuntime
            }
        }
    }

    /// From now on the program is not suspended at startup, and goes on when this is dropped.
    pub fn release(&mut self) {
        self.is_suspended = false;
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// How many other .NET programs connected and were let go on.
    pub fn others(&self) -> usize {
        self.others.load(Ordering::Relaxed)
    }

    /// Waits for its end and gives its exit code: 128 and the signal's number where a signal ended it, as a shell reports it.
    pub async fn wait(&mut self) -> u8 {
        exited(&mut self.child).await
    }

    /// Ends it and what it started: by SIGTERM, and after five seconds by SIGKILL. Gives its exit code.
    pub async fn end(&mut self) -> u8 {
        child::terminate(&mut self.child);
        if let Ok(code) = timeout(GRACE, self.wait()).await {
            return code;
        }
        child::kill(&mut self.child);
        self.wait().await
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        if self.is_suspended {
            child::kill(&mut self.child);
        }
        self.connecting.abort();
    }
}

fn short_folder() -> PathBuf {
    let usual = std::env::temp_dir();
    let bytes = usual.as_os_str().as_encoded_bytes();
    if bytes.len() > LONGEST_FOLDER || bytes.iter().any(|byte| b",;".contains(byte)) { "/tmp".into() } else { usual }
}

fn streams(output: ChildOutput) -> (Stdio, Stdio) {
    match output {
        ChildOutput::Discarded => (Stdio::null(), Stdio::null()),
        ChildOutput::File(file) => (file.try_clone().map_or_else(|_| Stdio::null(), Stdio::from), Stdio::from(file)),
        ChildOutput::Inherited => (Stdio::inherit(), Stdio::inherit()),
        ChildOutput::Stderr => (child::our_stderr().unwrap_or_else(|_| Stdio::null()), Stdio::inherit()),
    }
}

async fn exited(child: &mut Child) -> u8 {
    child.wait().await.map_or(1, child::exit_code)
}
