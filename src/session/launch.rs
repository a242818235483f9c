//! A program that is started to be recorded: it waits at startup, on a port of its own, until its session has begun.
//!
//! It gets `DOTNET_DiagnosticPorts`, and so do the programs that it starts: those are let go on at once, and what a .NET program starts does not even
//! wait (seen on 9: a variable that is set while the runtime is suspended is its children's). It runs in a process group of its own, so
//! that the Ctrl-C that stops a recording reaches the program only after its last events were taken in.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use foldhash::HashSet;
use tempfile::TempDir;
use thiserror::Error;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::{no_port, orphans};
use crate::ipc::{self, EnvironmentName, EnvironmentValue};
use crate::model::{ProcessKey, SafeText, sanitise};
use crate::net::ExchangeError;
use crate::net::child;
use crate::net::client::Client;
use crate::net::discovery::Sources;
use crate::net::port::{ConnectedRuntime, Port, PortError};
use crate::net::stream::{address_in, port_name};

/// After this time without a runtime that connects there is probably none in the program.
pub const USUAL_START: Duration = Duration::from_secs(10);
/// How long a program may take to end when it is asked to, before it is made to.
const GRACE: Duration = Duration::from_secs(5);
/// A folder whose path is longer may leave no room for a socket's name.
const LONGEST_FOLDER: usize = 60;
/// The variable that names ports to connect to.
const VARIABLE: &str = "DOTNET_DiagnosticPorts";
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
    #[error("{} cannot be started: {reason}", sanitise(&.program.to_string_lossy()))]
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
    /// When its runtime is late; `None` once that was said.
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

    /// Waits for its end and gives its exit code: 128 and the signal's number where a signal ended it, as a shell says it.
    pub async fn wait(&mut self) -> u8 {
        exited(&mut self.child).await
    }

    /// Ends it and what it started: asks, and after five seconds does not ask. Gives its exit code.
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

/// Shows the first runtime of the program itself to whoever waits for it, and lets all others go on: all where there is no such program.
pub(super) async fn resume_others(
    port: Port,
    pid: Option<u32>,
    without_port: impl Future<Output = Option<Launched>>,
    connected: oneshot::Sender<Launched>,
    others: Arc<AtomicUsize>,
) {
    let (mut connected, mut seen, mut changes) = (Some(connected), HashSet::default(), port.changes());
    let mut without_port = Some(Box::pin(without_port));
    let free = free_children(&ports(port.path(), "nosuspend"));
    loop {
        for runtime in port.runtimes() {
            if !seen.insert((runtime.key(), runtime.cookie)) {
                continue;
            }
            let (free, own) = (free.clone(), if Some(runtime.key().pid) == pid { connected.take() } else { None });
            if own.is_some() {
                // It may have a connection to the same runtime, which answers no other client until that is closed.
                without_port = None;
            }
            if own.is_none() {
                others.fetch_add(1, Ordering::Relaxed);
            }
            tokio::spawn(async move {
                // .NET 5 cannot do this: what it starts is let go on here. One that has ended needs neither this nor a resume.
                if let Some(free) = free {
                    let _ = runtime.client.run(&free).await;
                }
                match own {
                    // A caller that has gone is about to end the program.
                    Some(connected) => drop(connected.send(Launched::waiting(runtime))),
                    None => drop(runtime.client.run(&ipc::Command::ResumeRuntime).await),
                }
            });
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() {
                return;
            },
            Some(found) = async { Some(without_port.as_mut()?.await) } => {
                without_port = None;
                if let Some(launched) = found
                    && let Some(connected) = connected.take()
                {
                    drop(connected.send(launched));
                }
            }
        }
    }
}

/// Has a runtime start others that connect to `ports` and do not wait: no process need be there to resume them.
fn free_children(ports: &OsStr) -> Option<ipc::Command> {
    let (name, value) = (EnvironmentName::new(VARIABLE).ok()?, EnvironmentValue::new(ports.to_str()?).ok()?);
    Some(ipc::Command::SetEnvironmentVariable { name, value: Some(value) })
}

/// Our port, and behind it those that were asked for already.
fn ports(ours: &Path, tag: &str) -> OsString {
    let mut value = port_name(ours).as_os_str().to_owned();
    value.push(format!(",{tag},connect"));
    if let Some(others) = std::env::var_os(VARIABLE).filter(|others| !others.is_empty()) {
        value.push(";");
        value.push(others);
    }
    value
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Launch {
        Launch::start(&["sh".into(), "-c".into(), script.into()], ChildOutput::Discarded, Orphans::Leave).unwrap()
    }

    #[tokio::test]
    async fn exit_codes_are_those_of_a_shell() {
        for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)] {
            let mut launch = shell(script);
            assert!(matches!(launch.next().await, LaunchEvent::Exited(exited) if exited == code), "{script}");
            assert_eq!(launch.others(), 0, "there is no runtime in it");
            assert_eq!(launch.end().await, code, "a program that has ended is not ended again");
        }
        let error = Launch::start(&["/no/such\u{1b}".into()], ChildOutput::Discarded, Orphans::Leave).unwrap_err().to_string();
        assert!(error.starts_with("/no/such\u{fffd} cannot be started: No such file"), "{error}");
    }

    #[tokio::test]
    async fn a_program_and_what_it_started_are_asked_to_end_and_then_made_to() {
        let folder = tempfile::tempdir().unwrap();
        let pids = |file: &str| std::fs::read_to_string(folder.path().join(file)).is_ok_and(|text| text.ends_with('\n'));
        let ready = async |file: &str| {
            while !pids(file) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let mut meek = shell(&format!("sleep 100 & echo $! > {}/meek; wait", folder.path().display()));
        ready("meek").await;
        assert_eq!(meek.end().await, 143);
        let began = Instant::now();
        let mut deaf = shell(&format!("trap '' TERM; echo > {}/deaf; while :; do sleep 1; done", folder.path().display()));
        ready("deaf").await;
        assert_eq!(deaf.end().await, 137);
        assert!(began.elapsed() >= GRACE);
    }

    #[test]
    fn ports_that_were_asked_for_stay() {
        // Tests share one environment, so that this one only looks at what is put before it.
        let value = ports(Path::new("/tmp/p"), "suspend");
        assert!(value.to_str().unwrap().starts_with("/tmp/p,suspend,connect"), "{value:?}");
        assert!(short_folder().as_os_str().len() <= LONGEST_FOLDER);
    }
}
