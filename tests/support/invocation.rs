//! A run of dn-top, or of another program for comparison: as a plain command, or in a terminal.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use tempfile::TempDir;

use super::{Screen, TIMEOUT, folder, poll, screen, send};

/// A command to start. Its environment contains only PATH, HOME, LANG, TERM, COLORTERM, TMPDIR and the variables added here; HOME, TMPDIR
/// and the working directory are a new empty folder.
#[derive(Debug)]
pub(crate) struct Invocation {
    words: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    current: Option<PathBuf>,
    stdin: Stdio,
    stdout: Option<Stdio>,
}

impl Invocation {
    /// dn-top with these arguments.
    pub(crate) fn new<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Self {
        match option_env!("CARGO_BIN_EXE_dn-top") {
            Some(program) => Self::of(program, args),
            None => panic!("cargo tells tests and benchmarks where dn-top is, and not examples"),
        }
    }

    /// Another program.
    pub(crate) fn of<A: AsRef<OsStr>>(program: impl AsRef<OsStr>, args: impl IntoIterator<Item = A>) -> Self {
        let mut words = vec![program.as_ref().to_owned()];
        words.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        Self { words, env: Vec::new(), current: None, stdin: Stdio::null(), stdout: None }
    }

    pub(crate) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets the working directory, which must outlive the run.
    pub(crate) fn current_dir(mut self, folder: &Path) -> Self {
        self.current = Some(folder.to_owned());
        self
    }

    /// Sets the standard input for runs without a terminal.
    pub(crate) fn stdin(mut self, stdin: impl Into<Stdio>) -> Self {
        self.stdin = stdin.into();
        self
    }

    /// Sets the standard output for runs without a terminal, which then have no output here.
    pub(crate) fn stdout(mut self, stdout: impl Into<Stdio>) -> Self {
        self.stdout = Some(stdout.into());
        self
    }

    /// Runs it to completion without a terminal.
    pub(crate) fn run(self) -> Output {
        self.start().wait()
    }

    /// Starts it without a terminal; its standard input is empty unless set.
    pub(crate) fn start(self) -> Running {
        let folder = folder();
        let environment = self.environment(folder.path());
        let (program, args) = self.words.split_first().unwrap();
        let output = fs::File::create(folder.path().join(".stdout")).unwrap();
        let child = Command::new(program)
            .args(args)
            .env_clear()
            .envs(environment)
            .current_dir(self.current.as_deref().unwrap_or(folder.path()))
            .stdin(self.stdin)
            // Files rather than pipes, as pipes would have to be drained.
            .stdout(self.stdout.unwrap_or(output.into()))
            .stderr(fs::File::create(folder.path().join(".stderr")).unwrap())
            .spawn()
            .unwrap();
        Running { child, folder }
    }

    /// Starts it in a terminal of this size.
    pub(crate) fn screen(self, columns: u16, rows: u16) -> Screen {
        let folder = folder();
        Screen::start(self.command(folder.path()), columns, rows, folder)
    }

    /// Runs it in a terminal that is closed as soon as this text has been written, as on a lost connection.
    pub(crate) fn close_terminal_at(self, words: &str) -> portable_pty::ExitStatus {
        let folder = folder();
        screen::close_terminal_at(words, self.command(folder.path()))
    }

    fn command(&self, folder: &Path) -> portable_pty::CommandBuilder {
        let mut command = portable_pty::CommandBuilder::from_argv(self.words.clone());
        command.env_clear();
        for (name, value) in self.environment(folder) {
            command.env(name, value);
        }
        command.cwd(self.current.as_deref().unwrap_or(folder));
        command
    }

    fn environment(&self, folder: &Path) -> Vec<(OsString, OsString)> {
        let path = std::env::var_os("PATH").unwrap();
        let words = [("LANG", "C.UTF-8"), ("TERM", "xterm-256color"), ("COLORTERM", "truecolor")];
        let mut env: Vec<(OsString, OsString)> = words.map(|(name, value)| (name.into(), value.into())).into();
        env.extend([("PATH".into(), path), ("HOME".into(), folder.into()), ("TMPDIR".into(), folder.into())]);
        env.extend(self.env.iter().cloned());
        env
    }
}

/// Result of a run.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// Exit code; 128 plus the signal number if killed by a signal, as in a shell.
    pub(crate) code: i32,
}

impl Output {
    /// Returns the JSON document on standard output of a successful run.
    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!(self.code, 0, "{}", self.stderr);
        let acts = |c: char| c != '\n' && c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        assert!(!self.stdout.contains(acts), "JSON with a character that a terminal obeys: {:?}", self.stdout);
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// Panics unless the run ended with this code, one plain line on standard error that contains these words, and no other output.
    pub(crate) fn assert_refused(&self, code: i32, words: &str) {
        let Self { stdout, stderr, .. } = self;
        let sentence = stderr.strip_prefix("dn-top: ").and_then(|rest| rest.strip_suffix('\n')).unwrap_or_else(|| panic!("{stderr:?}"));
        assert!(!sentence.chars().any(char::is_control), "more than one plain line: {stderr:?}");
        assert_eq!((self.code, stdout.as_str()), (code, ""), "{stderr}");
        assert!(sentence.contains(words), "{words:?} is not in {sentence:?}");
    }
}

/// A run without a terminal. Killed on drop.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    folder: TempDir,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Returns standard output so far.
    pub(crate) fn stdout(&self) -> String {
        fs::read_to_string(self.folder.path().join(".stdout")).unwrap()
    }

    /// Returns standard error so far.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.folder.path().join(".stderr")).unwrap()
    }

    /// Waits until standard error contains the text.
    #[track_caller]
    pub(crate) fn wait_for_stderr(&self, text: &str) {
        assert!(poll(TIMEOUT, || self.stderr().contains(text).then_some(())).is_some(), "no {text:?}: {}", self.stderr());
    }

    /// Stops dn-top as Ctrl-C does.
    #[track_caller]
    pub(crate) fn interrupt(self) -> Output {
        self.signal(Signal::INT);
        let output = self.wait();
        assert_eq!(output.code, 130, "{}", output.stderr);
        output
    }

    /// Waits for it to exit.
    pub(crate) fn wait(mut self) -> Output {
        let status = poll(TIMEOUT, || self.child.try_wait().unwrap());
        let Some(status) = status else { panic!("{self:?} does not end: {}{}", self.stdout(), self.stderr()) };
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap());
        Output { stdout: self.stdout(), stderr: self.stderr(), code }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
