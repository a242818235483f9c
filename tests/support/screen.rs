//! A terminal for a program under test: it displays output, sends keys, and can be resized.

use std::collections::BTreeSet;
use std::io::{Read as _, Write};
use std::num::NonZeroU16;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use rustix::event::{PollFd, PollFlags, Timespec, poll as poll_fds};
use rustix::process::Signal;
use tempfile::TempDir;

use super::{FreezeAwareTimeout, TIMEOUT, poll, send};

pub(crate) const ENTER: &str = "\r";
/// Sent by many terminals for Ctrl-Enter, and by all for Ctrl-J.
pub(crate) const CTRL_ENTER: &str = "\n";
pub(crate) const ESC: &str = "\x1b";
pub(crate) const TAB: &str = "\t";
pub(crate) const BACK_TAB: &str = "\x1b[Z";
pub(crate) const BACKSPACE: &str = "\x7f";
pub(crate) const UP: &str = "\x1b[A";
pub(crate) const DOWN: &str = "\x1b[B";
pub(crate) const RIGHT: &str = "\x1b[C";
pub(crate) const LEFT: &str = "\x1b[D";
pub(crate) const HOME: &str = "\x1b[H";
pub(crate) const END: &str = "\x1b[F";
pub(crate) const PAGE_UP: &str = "\x1b[5~";
pub(crate) const PAGE_DOWN: &str = "\x1b[6~";

/// Returns the key with Ctrl held down.
pub(crate) fn ctrl(letter: char) -> String {
    char::from(letter as u8 & 0x1f).to_string()
}

/// A program in a pseudo-terminal. Killed on drop.
pub(crate) struct Screen {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keyboard: Keyboard,
    terminal: Arc<Terminal>,
    /// The terminal's settings before the program changed them.
    settings: String,
    started: Instant,
    folder: TempDir,
}

type Keyboard = Arc<Mutex<Box<dyn Write + Send>>>;

/// State shared between the thread that reads the program's output and the test.
struct Terminal {
    state: Mutex<State>,
    changed: Condvar,
    /// Whether reading of the output is suspended; see [`Screen::block_output`].
    clogged: Mutex<bool>,
    unclogged: Condvar,
}

/// Time allowed for the last output to arrive after exit, if the program has left behind a child that keeps the terminal open.
const FINAL_OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);

/// Mode in which a terminal delays drawing until the mode ends: a program that uses it is never seen with half a frame.
const SYNCHRONIZED_UPDATE: u16 = 2026;

struct State {
    parser: vt100::Parser<Extras>,
    bytes: u64,
    /// Arrival time of the first byte after the last [`Screen::watch`].
    first: Option<Instant>,
    /// Whether the output has ended.
    ended: bool,
}

/// Features left to the user of the terminal emulator: responses to queries, unsupported modes, the clipboard.
#[derive(Default)]
struct Extras {
    answers: Vec<u8>,
    modes: BTreeSet<u16>,
    keyboard_flags: i32,
    clipboard: Vec<String>,
    title: String,
    /// Saved titles (XTWINOPS 22).
    titles: Vec<String>,
    bells: usize,
}

impl vt100::Callbacks for Extras {
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.title = String::from_utf8_lossy(title).into_owned();
    }

    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.bells += 1;
    }

    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], data: &[u8]) {
        self.clipboard.push(String::from_utf8_lossy(data).into_owned());
    }

    fn unhandled_csi(&mut self, screen: &mut vt100::Screen, first: Option<u8>, _: Option<u8>, params: &[&[u16]], command: char) {
        let param = params.first().and_then(|param| param.first()).copied().unwrap_or(0);
        match (first, command) {
            (None, 'n') if param == 6 => {
                let (row, column) = screen.cursor_position();
                self.answers.extend(format!("\x1b[{};{}R", row + 1, column + 1).into_bytes());
            }
            (None, 't') if param == 22 => self.titles.push(self.title.clone()),
            (None, 't') if param == 23 => self.title = self.titles.pop().unwrap_or_default(),
            (None, 'c') => self.answers.extend(b"\x1b[?62;22c"),
            // A sequence may contain several modes; those supported by the emulator are stored there.
            (Some(b'?'), 'h') => self.modes.extend(params.iter().flat_map(|param| param.iter())),
            (Some(b'?'), 'l') => params.iter().flat_map(|param| param.iter()).for_each(|mode| _ = self.modes.remove(mode)),
            (Some(b'>'), 'u') => self.keyboard_flags += 1,
            (Some(b'<'), 'u') => self.keyboard_flags -= 1,
            _ => {}
        }
    }
}

impl Screen {
    pub(super) fn start(command: CommandBuilder, columns: u16, rows: u16, folder: TempDir) -> Self {
        let pair = native_pty_system().openpty(size(columns, rows)).unwrap();
        let mut output = pair.master.try_clone_reader().unwrap();
        let keyboard: Keyboard = Arc::new(Mutex::new(pair.master.take_writer().unwrap()));
        let settings = format!("{:?}", pair.master.get_termios());
        let [columns, rows] = [columns, rows].map(|cells| NonZeroU16::new(cells).unwrap());
        let parser = vt100::Parser::new_with_callbacks(rows, columns, 1000, Extras::default());
        let terminal = Arc::new(Terminal {
            state: Mutex::new(State { parser, bytes: 0, first: None, ended: false }),
            changed: Condvar::new(),
            clogged: Mutex::new(false),
            unclogged: Condvar::new(),
        });
        let started = Instant::now();
        let child = pair.slave.spawn_command(command).unwrap();
        let (reader, answers) = (Arc::clone(&terminal), Arc::clone(&keyboard));
        std::thread::spawn(move || {
            let mut chunk = [0; 65536];
            // The end of a terminal is an error (EIO), not an empty read.
            while let Ok(count @ 1..) = output.read(&mut chunk) {
                reader.feed(&chunk[..count], &answers);
                drop(reader.unclogged.wait_while(reader.clogged.lock().unwrap(), |clogged| *clogged).unwrap());
            }
            reader.state.lock().unwrap().ended = true;
        });
        Self { child, master: pair.master, keyboard, terminal, settings, started, folder }
    }

    /// PID of the program.
    pub(crate) fn pid(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// The folder used as HOME, TMPDIR and, unless set otherwise, working directory.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Types keys: plain text, and the constants of this module.
    pub(crate) fn keys(&self, keys: &str) {
        // A program that has exited reads no keys.
        let _ = self.keyboard.lock().unwrap().write_all(keys.as_bytes());
    }

    /// Waits until the screen shows the text, and returns the whole screen.
    pub(crate) fn wait_for(&self, text: &str) -> String {
        self.wait_until(&format!("the text {text:?}"), |shown| shown.contains(text))
    }

    /// Waits until the text is gone from the screen.
    pub(crate) fn wait_gone(&self, text: &str) -> String {
        self.wait_until(&format!("the end of the text {text:?}"), |shown| !shown.contains(text))
    }

    /// Waits until the screen meets a condition, and returns it.
    pub(crate) fn wait_until(&self, what: &str, condition: impl Fn(&str) -> bool) -> String {
        self.try_wait_until(TIMEOUT, condition).unwrap_or_else(|shown| panic!("timed out waiting for {what}; the screen shows\n{shown}"))
    }

    /// The same with a custom timeout and without panicking: `Err` has the current screen.
    pub(crate) fn try_wait_until(&self, timeout: Duration, condition: impl Fn(&str) -> bool) -> Result<String, String> {
        let mut timeout = FreezeAwareTimeout::new(timeout);
        let mut state = self.state();
        loop {
            let shown = state.parser.screen().contents();
            // A frame is visible once it is complete.
            let whole = !state.parser.callbacks().modes.contains(&SYNCHRONIZED_UPDATE);
            if whole && condition(&shown) {
                return Ok(shown);
            }
            if timeout.is_expired() {
                return Err(shown);
            }
            state = self.terminal.changed.wait_timeout(state, FreezeAwareTimeout::STEP / 5).unwrap().0;
        }
    }

    /// Writes into the top left corner, as another program would that shares the terminal. Only a complete redraw removes it.
    pub(crate) fn overwrite(&self, text: &str) {
        self.state().parser.process(format!("\x1b7\x1b[H{text}\x1b8").as_bytes());
    }

    /// Returns the current screen.
    pub(crate) fn contents(&self) -> String {
        self.state().parser.screen().contents()
    }

    /// Returns the screen with its colors and styles.
    pub(crate) fn styled(&self) -> vt100::Screen {
        self.state().parser.screen().clone()
    }

    /// Returns the data that the program put on the clipboard through the terminal (OSC 52), in base64.
    pub(crate) fn clipboard(&self) -> Vec<String> {
        self.state().parser.callbacks().clipboard.clone()
    }

    pub(crate) fn title(&self) -> String {
        self.state().parser.callbacks().title.clone()
    }

    pub(crate) fn bells(&self) -> usize {
        self.state().parser.callbacks().bells
    }

    /// Number of bytes written by the program.
    pub(crate) fn bytes(&self) -> u64 {
        self.state().bytes
    }

    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Resets [`Screen::first_byte`].
    pub(crate) fn watch(&self) {
        self.state().first = None;
    }

    /// Waits for the first byte since the start, or since [`Screen::watch`], and returns its arrival time; `None` if there is none within
    /// `timeout`.
    pub(crate) fn first_byte(&self, timeout: Duration) -> Option<Instant> {
        let waiting = |state: &mut State| state.first.is_none();
        self.terminal.changed.wait_timeout_while(self.state(), timeout, waiting).unwrap().0.first
    }

    /// Resizes the window.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        // The program may respond before this returns: its output is for the new size.
        let mut state = self.state();
        state.parser.set_size(NonZeroU16::new(rows).unwrap(), NonZeroU16::new(columns).unwrap());
        self.master.resize(size(columns, rows)).unwrap();
    }

    /// Stops reading the program's output, as a hanging terminal would, and sends keys until the terminal's buffer is full.
    pub(crate) fn block_output(&self, keys: &str) {
        *self.terminal.clogged.lock().unwrap() = true;
        let output = std::fs::File::options().write(true).open(format!("/proc/{}/fd/1", self.pid())).unwrap();
        // A buffer that is full once may contain the end of a frame that fits. One that stays full contains a frame that does not.
        let mut full = 0;
        let is_full = || {
            self.keys(keys);
            let ready = poll_fds(&mut [PollFd::new(&output, PollFlags::OUT)], Some(&Timespec::default()));
            full = if ready == Ok(0) { full + 1 } else { 0 };
            (full == 10).then_some(())
        };
        poll(TIMEOUT, is_full).expect("the terminal takes everything though nothing is read");
    }

    /// Resumes reading.
    pub(crate) fn unblock_output(&self) {
        *self.terminal.clogged.lock().unwrap() = false;
        self.terminal.unclogged.notify_all();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Waits for the program to exit, and for the last of its output.
    pub(crate) fn wait_exit(&mut self) -> ExitStatus {
        let status = poll(TIMEOUT, || self.child.try_wait().unwrap());
        let Some(status) = status else { panic!("the program does not end; the screen shows\n{}", self.contents()) };
        self.unblock_output();
        // The last output has arrived at the end of the terminal, which a child left behind may keep open.
        poll(FINAL_OUTPUT_TIMEOUT, || self.state().ended.then_some(()));
        status
    }

    /// Quits the dashboard, which must exit successfully.
    pub(crate) fn quit(&mut self) {
        self.keys("q");
        assert!(self.wait_exit().success(), "{}", self.contents());
    }

    /// Panics if the program has not restored the terminal. To be called after the program has exited.
    pub(crate) fn assert_restored(&self) {
        let state = self.state();
        let (screen, extras) = (state.parser.screen(), state.parser.callbacks());
        assert!(!screen.alternate_screen(), "the alternate screen is still shown");
        assert!(!screen.hide_cursor(), "the cursor is still hidden");
        assert!(!screen.bracketed_paste(), "bracketed paste is still on");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None, "the mouse is still captured");
        assert!(extras.keyboard_flags <= 0, "the keyboard protocol is still changed");
        assert!(extras.title.is_empty() && extras.titles.is_empty(), "the title is changed: {}", extras.title);
        assert!(extras.modes.is_empty(), "modes are still on: {:?}", extras.modes);
        let plain = [screen.fgcolor(), screen.bgcolor()] == [vt100::Color::Default; 2];
        assert!(plain && !screen.bold() && !screen.inverse() && !screen.underline(), "text is still styled");
        assert_eq!(format!("{:?}", self.master.get_termios()), self.settings, "the terminal's settings are changed");
    }

    /// The same while a shell reads its command line, with terminal settings of its own.
    pub(crate) fn assert_restored_to_a_shell(&self) {
        let state = self.state();
        let screen = state.parser.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor(), "the shell has not got its screen");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None, "the mouse is still captured");
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.terminal.state.lock().unwrap()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

impl Terminal {
    fn feed(&self, chunk: &[u8], keyboard: &Keyboard) {
        let now = Instant::now();
        let mut state = self.state.lock().unwrap();
        state.first.get_or_insert(now);
        state.bytes += chunk.len() as u64;
        state.parser.process(chunk);
        let answers = std::mem::take(&mut state.parser.callbacks_mut().answers);
        drop(state);
        self.changed.notify_all();
        if !answers.is_empty() {
            let _ = keyboard.lock().unwrap().write_all(&answers);
        }
    }
}

/// See [`super::Invocation::close_terminal_at`]. Without a reading thread, which would keep the terminal open.
pub(super) fn close_terminal_at(words: &str, command: CommandBuilder) -> ExitStatus {
    let pair = native_pty_system().openpty(size(80, 24)).unwrap();
    let mut child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let mut output = pair.master.try_clone_reader().unwrap();
    let (mut shown, mut chunk) = (String::new(), [0; 4096]);
    // Reading has no timeout: it ends with the program.
    let (pid, (found, is_found)) = (child.process_id().unwrap(), mpsc::channel::<()>());
    std::thread::spawn(move || {
        if is_found.recv_timeout(TIMEOUT) == Err(mpsc::RecvTimeoutError::Timeout) {
            send(pid, Signal::KILL);
        }
    });
    while !shown.contains(words) {
        match output.read(&mut chunk) {
            Ok(count @ 1..) => shown += &String::from_utf8_lossy(&chunk[..count]),
            end => panic!("{end:?}: {words:?} does not come: {shown:?}"),
        }
    }
    drop(found);
    drop((output, pair.master));
    let status = poll(TIMEOUT, || child.try_wait().unwrap());
    status.unwrap_or_else(|| {
        let _ = child.kill();
        panic!("it does not end without its terminal")
    })
}

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}
