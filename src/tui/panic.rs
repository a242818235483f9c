//! Panics: one in a task is reported in the dashboard, one in the dashboard restores the terminal first. Both leave a report file.

use std::backtrace::Backtrace;
use std::io::{self, Write};
use std::panic::{PanicHookInfo, set_hook};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use tokio::sync::mpsc;

use super::exit_report::message;
use super::terminal::Device;
use crate::app::Msg;

/// Installs the panic hook: a panic on this thread restores the terminal before it is reported; one on any other thread becomes a message, because
/// it must not write over the screen.
pub(super) fn guard(inbox: mpsc::Sender<Msg>, device: Arc<Device>) {
    let dashboard = thread::current().id();
    set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        let is_dashboard = thread::current().id() == dashboard;
        if is_dashboard {
            device.restore();
        }
        let words = words(info);
        let more = match report(&words) {
            Ok(path) => format!("please report it, with {}", path.display()),
            Err(error) => format!("please report it (no report file could be written: {error})"),
        };
        if is_dashboard {
            message(format_args!("the dashboard crashed: {words}"));
            message(format_args!("recordings are finished; {more}"));
        } else {
            // A full channel loses the message; the task's own result still shows that it failed.
            let _ = inbox.try_send(Msg::TaskPanicked(format!("{words}; {more}").into()));
        }
    }));
}

fn words(info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let said = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let place = info.location().map(|place| format!(" at {}:{}", place.file(), place.line())).unwrap_or_default();
    format!("{}{place}", said.unwrap_or("no reason given"))
}

/// Writes the panic to a new file, and returns its path. The file contains no data of any process.
fn report(words: &str) -> io::Result<PathBuf> {
    let mut file = tempfile::Builder::new().prefix("dn-top-panic-").suffix(".txt").tempfile()?;
    let (name, version, thread) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"), thread::current());
    writeln!(file, "{name} {version}, thread {}: {words}\n", thread.name().unwrap_or("without a name"))?;
    writeln!(file, "{}", Backtrace::force_capture())?;
    Ok(file.keep()?.1)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::io::Read;
    use std::panic::{catch_unwind, take_hook};

    use portable_pty::{CommandBuilder, PtySize, native_pty_system};

    use super::*;
    use crate::tui::terminal::{Terminal, TerminalOptions};

    /// Set in the child process in which the dashboard panics.
    const BREAK: &str = "DN_TOP_TEST_BREAK";

    #[test]
    fn dashboard_panic_restores_terminal_and_writes_report() {
        if std::env::var_os(BREAK).is_some() {
            let device = Arc::new(Device::open().unwrap());
            guard(mpsc::channel(8).0, Arc::clone(&device));
            let terminal = Terminal::enter(device, TerminalOptions { mouse: true, title: true }, false).unwrap();
            drop(catch_unwind(|| panic!("the picture broke")));
            // Only the hook has restored the terminal: nothing was dropped.
            std::mem::forget(terminal);
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut this = CommandBuilder::new(std::env::current_exe().unwrap());
        this.args(["--exact", "--nocapture", "tui::panic::tests::dashboard_panic_restores_terminal_and_writes_report"]);
        this.env(BREAK, "1");
        this.env("TMPDIR", folder.path());
        let pair = native_pty_system().openpty(PtySize { rows: 24, cols: 200, ..PtySize::default() }).unwrap();
        let settings = format!("{:?}", pair.master.get_termios());
        let mut child = pair.slave.spawn_command(this).unwrap();
        let mut output = pair.master.try_clone_reader().unwrap();
        let (mut screen, mut chunk, mut said) = (vt100::Parser::default(), [0; 4096], String::new());
        drop(pair.slave);
        // The end of a terminal is reported as an error.
        while let Ok(count @ 1..) = output.read(&mut chunk) {
            screen.process(&chunk[..count]);
            said += &String::from_utf8_lossy(&chunk[..count]);
        }
        assert!(child.wait().unwrap().success(), "{said}");
        assert!(said.contains("\u{1b}[?1049h"), "the terminal was never taken over: {said}");
        let screen = screen.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste(), "{said}");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        assert_eq!(format!("{:?}", pair.master.get_termios()), settings);
        let report = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let expected = format!("recordings are finished; please report it, with {}", report.display());
        assert!(said.contains("dn-top: the dashboard crashed: the picture broke at src/tui/panic.rs:"), "{said}");
        assert!(said.contains(&expected), "{said}");
        let report = std::fs::read_to_string(report).unwrap();
        assert!(
            report.contains("the picture broke at src/tui/panic.rs:") && report.contains("dashboard_panic_restores_terminal"),
            "{report}"
        );
    }

    #[test]
    fn task_panic_is_reported_as_a_message() {
        let (inbox, mut messages) = mpsc::channel(8);
        guard(inbox, Arc::new(Device::open().unwrap()));
        let panicked = thread::spawn(|| panic!("the {} broke", "task")).join();
        // Other tests may panic with the default hook.
        drop(take_hook());
        assert!(panicked.is_err());
        let said = std::iter::from_fn(|| messages.try_recv().ok()).find_map(|msg| match msg {
            Msg::TaskPanicked(text) if text.starts_with("the task broke at src/tui/panic.rs:") => Some(text),
            _ => None,
        });
        let (_, report) = said.as_deref().and_then(|said| said.split_once("; please report it, with ")).unwrap();
        std::fs::remove_file(report).unwrap();
    }
}
