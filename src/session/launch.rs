//! Starts a program to record: it is suspended at startup, on a diagnostic port of its own, until its session has begun.
//!
//! The program gets `DOTNET_DiagnosticPorts`, which its child processes inherit: those are resumed at once, and the children of a .NET
//! program are not even suspended (seen on 9: a variable set while the runtime is suspended is inherited). The program runs in its own
//! process group, so that the Ctrl-C that stops a recording does not end it before its last events are read.

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

pub(super) use others::{Recorded, resume_others};
use others::{VARIABLE, ports};

use super::{no_port, orphans};
use crate::ipc;
use crate::model::{ProcessKey, SafeText};
use crate::net::ExchangeError;
use crate::net::child;
use crate::net::client::Client;
use crate::net::discovery::Sources;
use crate::net::port::{Port, PortError};
use crate::net::stream::{address_in, port_parent};

/// If no runtime has connected after this time, the program probably has none.
pub const RUNTIME_START_TIMEOUT: Duration = Duration::from_secs(10);
/// Time allowed for a program to exit after SIGTERM before it is killed.
const TERMINATION_TIMEOUT: Duration = Duration::from_secs(5);
/// Name of the port's socket in its folder.
pub(super) const PORT: &str = "port";

/// Destination of a program's output.
#[derive(Debug)]
pub enum ChildOutput {
    /// Discarded.
    Discarded,
    /// Inherited from this process.
    Inherited,
    /// All output goes to our standard error, because standard output is reserved for a document.
    Stderr,
    /// All output goes to a file.
    File(File),
}

/// Handling of runtimes suspended on the port if this process is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orphans {
    /// A second process of this program, which must be dn-top, resumes them.
    Resume,
    /// They stay suspended.
    Leave,
}

/// Why a program could not be started.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The folder for its port could not be created.
    #[error("cannot create a directory for the program's diagnostic port in {}: {reason}", .folder.display())]
    Folder {
        /// Parent folder.
        folder: PathBuf,
        /// The operating system's error.
        reason: io::Error,
    },
    /// The process that resumes it if we are killed could not be started.
    #[error("the process that resumes the program if dn-top is killed cannot be started: {0}")]
    Orphans(io::Error),
    /// Its port could not be opened.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The program could not be started.
    #[error("{} cannot be started: {reason}", SafeText::from_path(.program.as_ref()))]
    Program {
        /// Name or path of the program.
        program: OsString,
        /// The operating system's error.
        reason: io::Error,
    },
}

/// The runtime of a started program.
#[derive(Debug)]
pub struct Launched {
    /// Client of its diagnostic port or socket.
    pub client: Client,
    /// The process it runs in.
    pub key: ProcessKey,
    /// Assembly name according to /proc, for runtimes too old to report it.
    pub assembly: Option<SafeText>,
    /// How long after the start it was found, if it is not suspended.
    pub missed: Option<Duration>,
}

impl Launched {
    /// Resumes the runtime if it is suspended.
    ///
    /// # Errors
    /// [`ExchangeError`].
    pub async fn resume(&self) -> Result<(), ExchangeError> {
        if self.missed.is_some() { Ok(()) } else { self.client.run(&ipc::Command::ResumeRuntime).await }
    }

    /// Returns the name of its entry assembly, or of the program if there is none.
    ///
    /// # Errors
    /// [`ExchangeError`].
    pub async fn name(&self, program: &Path) -> Result<SafeText, ExchangeError> {
        let info = self.client.process_info().await?;
        let reported = info.and_then(|info| info.entry_assembly).map(SafeText::from);
        let name = reported.or_else(|| self.assembly.clone()).filter(|name| !name.is_empty());
        Ok(name.unwrap_or_else(|| SafeText::new(&program.file_stem().unwrap_or_default().to_string_lossy())))
    }

    /// A message about what the recording misses, if anything.
    pub fn note(&self) -> Option<String> {
        let missed = self.missed?.as_millis();
        Some(format!("the first {missed} ms are not recorded: .NET Core 3 has no diagnostic ports and cannot be suspended at startup"))
    }
}

/// Event of a started program.
#[derive(Debug)]
pub enum LaunchEvent {
    /// No runtime has connected within [`RUNTIME_START_TIMEOUT`]: the program probably has none.
    NoRuntime,
    /// The runtime is available.
    Connected(Launched),
    /// The program exited with this exit code.
    Exited(u8),
}

/// A started program. Dropping it kills the program as long as it may be suspended at startup; later the program keeps running.
#[derive(Debug)]
pub struct Launch {
    child: Child,
    pid: u32,
    others: Arc<AtomicUsize>,
    /// Receives the runtime; `None` once it was received.
    runtime: Option<oneshot::Receiver<Launched>>,
    /// When to report that no runtime has connected; `None` once reported.
    late: Option<Instant>,
    /// Whether the program may be suspended at startup.
    is_suspended: bool,
    connecting: JoinHandle<()>,
    /// Dropped last, as it contains the port's socket. If `None`, it is removed by the process that resumes orphans.
    _folder: Option<TempDir>,
}

impl Launch {
    /// Starts a program.
    ///
    /// # Errors
    /// [`LaunchError`].
    pub fn start(words: &[OsString], output: ChildOutput, orphans: Orphans) -> Result<Self, LaunchError> {
        let parent = port_parent();
        let folder = tempfile::Builder::new().prefix("dn-top-").tempdir_in(&parent);
        let folder = folder.map_err(|reason| LaunchError::Folder { folder: parent, reason })?;
        // The resumer takes over after the port is closed, so it must be dropped after the port.
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
            // A program in another process group would be stopped when it reads from the terminal.
            .stdin(if io::stdin().is_terminal() { Stdio::null() } else { Stdio::inherit() })
            .stdout(output)
            .stderr(errors)
            .spawn();
        let child = child.map_err(|reason| LaunchError::Program { program: program.to_owned(), reason })?;
        let pid = child.id().unwrap_or_default();
        let others = Arc::new(AtomicUsize::new(0));
        let (connected, runtime) = oneshot::channel();
        let without_port = no_port::find(Sources::machine(), pid, begun);
        let serving = resume_others(Arc::new(port), Recorded::Process(pid), without_port, connected, Arc::clone(&others));
        let connecting = tokio::spawn(async move {
            // Dropped after the port, which the other process then serves.
            let _resumer = resumer;
            serving.await;
        });
        let (runtime, late) = (Some(runtime), Some(begun + RUNTIME_START_TIMEOUT));
        Ok(Self { child, pid, others, runtime, late, is_suspended: true, connecting, _folder: folder })
    }

    /// Waits for the next event. The runtime is reported when it has connected and is suspended, or, if it connects to no port, when its
    /// socket exists. Cancel safe: no event is lost if the future is dropped.
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

    /// Marks the program as no longer suspended, so that it keeps running when this is dropped.
    pub fn release(&mut self) {
        self.is_suspended = false;
    }

    /// Pid of the program that was started.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Number of other .NET processes that connected and were resumed.
    pub fn others(&self) -> usize {
        self.others.load(Ordering::Relaxed)
    }

    /// Waits for the program to exit and returns its exit code: 128 plus the signal number if a signal ended it, as in a shell.
    pub async fn wait(&mut self) -> u8 {
        exited(&mut self.child).await
    }

    /// Ends the program and its child processes: by SIGTERM, and after five seconds by SIGKILL. Returns its exit code.
    pub async fn end(&mut self) -> u8 {
        child::terminate(&mut self.child);
        if let Ok(code) = timeout(TERMINATION_TIMEOUT, self.wait()).await {
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
