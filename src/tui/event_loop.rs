//! The event loop: handles messages and draws frames.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use crossterm::clipboard::CopyToClipboard;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;

use super::background::IsLight;
use super::clipboard::{MAX_OSC52, uses_desktop};
use super::input::{self, Input};
use super::runner::Runner;
use super::sessions::{END_OF_PRODUCER, END_OF_WATCHES};
use super::signal_request::SignalRequest;
use super::signals::{self, Signals};
use super::tasks::spawn;
use super::terminal::{Device, Terminal};
use super::ticks::Ticks;
use super::{TerminalOptions, message, panic, watcher};
use crate::app::{AutoWatch, Clipboard, Effect, Msg, Now, Options, State, update};
use crate::model::{Counted, SafeText, SecretPatterns};
use crate::net::discovery::Sources;
use crate::net::port::Port;
use crate::net::{Access, Directory};
use crate::ui::{Theme, view};

/// Minimum time between frames for data; keys are answered at once.
const FRAME_INTERVAL: Duration = Duration::from_millis(33);

/// Capacity of the message channel. Tasks wait if it is full.
const INBOX_CAPACITY: usize = 256;

/// Maximum number of messages of a kind that are handled before the next frame, and before signals are checked again.
const MAX_MESSAGES: usize = 256;

const OUTPUT_CLOSED: &str = "the terminal no longer accepts output";

/// Everything needed to open the dashboard.
#[derive(Debug)]
pub struct Dashboard {
    /// Initial options of the app.
    pub options: Options,
    pub look: Look,
    /// Source of processes; `None` if recorded files are shown.
    pub machine: Option<Machine>,
    /// Time between two refreshes.
    pub refresh: Duration,
    /// Additional patterns of secret environment variables.
    pub secrets: SecretPatterns,
    pub terminal: TerminalOptions,
}

/// Appearance of the dashboard.
#[derive(Debug)]
pub struct Look {
    pub theme: Theme,
    /// Theme files, by name; for one that is unusable, the error.
    pub own: Vec<(SafeText, Result<Theme, SafeText>)>,
    /// Themes for a terminal with a dark background and a light one; `None` if the background is not queried.
    pub by_background: Option<[Theme; 2]>,
    /// Whether to draw with ASCII characters only.
    pub ascii: bool,
}

/// The source of processes.
#[derive(Debug)]
pub struct Machine {
    pub sources: Sources,
    /// A diagnostic port to serve as well.
    pub port: Option<Port>,
}

/// Runs the dashboard until the user quits, then finishes the recordings, or continues them if requested.
///
/// Must be called inside a tokio runtime.
///
/// # Errors
/// The terminal cannot be set up, or the processes cannot be listed.
pub async fn run(dashboard: Dashboard) -> anyhow::Result<()> {
    let Dashboard { options, look, machine, refresh, secrets, terminal } = dashboard;
    let access = match (options.readonly, options.watch) {
        (false, _) => Access::Full,
        (true, AutoWatch::Never) => Access::ReadOnly,
        (true, AutoWatch::Selected | AutoWatch::All) => Access::Watch,
    };
    let directory = machine.map(|machine| directory(machine, access)).transpose()?;
    let (inbox, messages) = mpsc::channel(INBOX_CAPACITY);
    let wake = Arc::new(Notify::new());
    let clients = directory.as_ref().map(Directory::clients);
    let mut runner = Runner::new(clients, refresh, options.output_name.clone(), secrets, wake.clone(), inbox.clone());
    let clock = Clock { begun: Instant::now(), zone: TimeZone::system() };
    // Before the window is measured, so that no later change is missed.
    let mut signals = Signals::new().context("cannot install signal handlers")?;
    let state = State::new(options, size()?, clock.now());
    let device = Arc::new(Device::open().context("the terminal cannot be opened")?);
    panic::guard(inbox.clone(), Arc::clone(&device));
    signals::restore_before_core_dump(Arc::clone(&device)).context("cannot install signal handlers")?;
    let terminal = Terminal::enter(device, terminal, look.by_background.is_some()).context("cannot set up the terminal")?;
    let input = input::listen().context("cannot read the keyboard")?;
    let watcher = match directory {
        Some(directory) => {
            let ticks = Ticks::new(refresh).context("cannot start the refresh timer")?;
            spawn(watcher::watch(directory, ticks, wake, inbox))
        }
        // The first message starts the initial effects.
        None => spawn(async move { drop(inbox.send(Msg::Tick).await) }),
    };

    let mut screen = Screen { state, look, terminal, runner: &mut runner, clock, drawn: None, dirty: true };
    // Recordings are finished even if drawing fails or panics.
    let left = catch(screen.run(input, messages, &mut signals)).await;
    drop(screen);
    watcher.abort();
    runner.watches.finish(END_OF_WATCHES, &mut signals).await;
    runner.producer.stop(&());
    runner.recordings.print_outcomes();
    match left {
        Ok(Ok(Exit { keep_recording: true })) => keep_recording(&mut runner, &mut signals).await,
        _ => finish(&mut runner, &mut signals).await,
    }
    runner.producer.finish(END_OF_PRODUCER, &mut signals).await;
    left.unwrap_or_else(|panicked| resume_unwind(panicked)).map(drop)
}

fn directory(machine: Machine, access: Access) -> anyhow::Result<Directory> {
    let mut directory = Directory::new(machine.sources).context("the processes of this machine cannot be listed")?.with_access(access);
    if let Some(port) = machine.port {
        directory.serve(port);
    }
    Ok(directory)
}

/// The way in which the user quit.
struct Exit {
    keep_recording: bool,
}

/// Runs a future, and returns a panic in it as an error.
async fn catch<T>(future: impl Future<Output = T>) -> std::thread::Result<T> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| match std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(poll) => poll.map(Ok),
        Err(panicked) => std::task::Poll::Ready(Err(panicked)),
    })
    .await
}

/// Waits for recordings that continue without the dashboard, until they end or a signal stops them.
async fn keep_recording(runner: &mut Runner, signals: &mut Signals) {
    let active = runner.recordings.active();
    if active == 0 {
        return;
    }
    message(format_args!("{} {} until Ctrl-C", Counted(active as u64, "recording"), if active == 1 { "continues" } else { "continue" }));
    tokio::select! {
        () = runner.recordings.wait_for_all() => return,
        () = signals.end() => {}
    }
    finish(runner, signals).await;
}

/// Finishes the active recordings, with messages on stderr.
async fn finish(runner: &mut Runner, signals: &mut Signals) {
    let active = runner.recordings.active();
    if active > 0 {
        message(format_args!("finishing {}; Ctrl-C skips the rest of the data", Counted(active as u64, "recording")));
    }
    runner.recordings.finish(signals).await;
}

struct Screen<'a> {
    state: State,
    look: Look,
    terminal: Terminal,
    runner: &'a mut Runner,
    clock: Clock,
    /// When the last frame was drawn.
    drawn: Option<Instant>,
    /// Whether the state has changed since the last frame.
    dirty: bool,
}

impl Screen<'_> {
    async fn run(
        &mut self,
        mut input: mpsc::Receiver<Input>,
        mut messages: mpsc::Receiver<Msg>,
        signals: &mut Signals,
    ) -> anyhow::Result<Exit> {
        self.draw(0)?;
        // The empty frame must not delay the first list.
        self.drawn = None;
        let mut is_open = true;
        // Whether a key or a signal has not led to a frame yet.
        let mut urgent = false;
        loop {
            let deadline = self.state.next_deadline(self.clock.now());
            let frame =
                if self.terminal.has_unwritten_output() { Some(FRAME_INTERVAL) } else { self.dirty.then(|| self.until_next_frame()) };
            // Signals come first: neither a flood of keys nor a blocked terminal delays them. Then keys, then everything else, then one frame.
            let first = tokio::select! {
                biased;
                request = signals.next() => {
                    urgent = true;
                    Some(Input::Msg(match request {
                        SignalRequest::End => Msg::Terminate,
                        SignalRequest::Suspend => {
                            self.suspend()?;
                            continue;
                        }
                        SignalRequest::Resume => {
                            self.terminal.resume()?;
                            self.dirty = true;
                            resized()?
                        }
                        SignalRequest::Resize => resized()?,
                    }))
                }
                key = input.recv(), if is_open => {
                    urgent = true;
                    // If the channel is closed, the terminal is gone.
                    is_open = key.is_some();
                    Some(key.unwrap_or(Input::Msg(Msg::Terminate)))
                }
                Some(msg) = messages.recv() => Some(Input::Msg(msg)),
                () = pause(frame) => None,
                () = pause(deadline) => Some(Input::Msg(Msg::Tick)),
            };
            let keys = std::iter::from_fn(|| input.try_recv().ok()).take(MAX_MESSAGES).inspect(|_| urgent = true);
            let others = std::iter::from_fn(|| messages.try_recv().ok()).take(MAX_MESSAGES).map(Input::Msg);
            for input in first.into_iter().chain(keys).chain(others) {
                match input {
                    Input::Msg(msg) => {
                        if let ControlFlow::Break(exit) = self.handle(msg)? {
                            return Ok(exit);
                        }
                    }
                    Input::Background(background) => self.apply_background(background),
                }
            }
            self.dirty |= self.state.take_dirty();
            self.terminal.write_rest().context(OUTPUT_CLOSED)?;
            if self.dirty && !self.terminal.has_unwritten_output() && (urgent || self.until_next_frame().is_zero()) {
                self.draw(input.len() + messages.len())?;
            }
            urgent &= self.dirty;
        }
    }

    /// Switches to the theme for the background of the terminal.
    fn apply_background(&mut self, IsLight(is_light): IsLight) {
        if let Some([dark, light]) = self.look.by_background.take() {
            self.look.theme = if is_light { light } else { dark };
            self.dirty = true;
        }
    }

    /// Updates the state, and runs the resulting effects.
    fn handle(&mut self, msg: Msg) -> anyhow::Result<ControlFlow<Exit>> {
        self.runner.store_processes(&msg);
        for effect in update(&mut self.state, msg, self.clock.now()) {
            match effect {
                Effect::Copy { text, label } if !uses_desktop() => {
                    let answer = self.copy(text, &label)?;
                    update(&mut self.state, answer, self.clock.now());
                }
                Effect::SetTheme(name) => {
                    if let Err(reason) = self.use_theme(&name) {
                        update(&mut self.state, Msg::Failed(reason), self.clock.now());
                    }
                }
                Effect::Redraw => self.terminal.clear()?,
                Effect::Suspend => self.suspend()?,
                Effect::Quit { keep_recording } => return Ok(ControlFlow::Break(Exit { keep_recording })),
                effect => self.runner.run(effect),
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Copies a text to the terminal's clipboard.
    fn copy(&mut self, text: String, label: &str) -> anyhow::Result<Msg> {
        let len = text.len();
        let failed = if len > MAX_OSC52 {
            format!("the {label} is too long for a terminal's clipboard ({len} bytes)")
        } else if self.terminal.command(CopyToClipboard::to_clipboard_from(text)).context(OUTPUT_CLOSED)? {
            return Ok(Msg::Copied { label: label.into(), to: Clipboard::Terminal });
        } else if self.terminal.interprets_sequences() {
            format!("the {label} was not copied: the terminal is not accepting output")
        } else {
            format!("the {label} was not copied: this console does not interpret escape sequences")
        };
        Ok(Msg::Failed(failed.into()))
    }

    /// Applies a theme chosen by the user, regardless of the background.
    fn use_theme(&mut self, name: &str) -> Result<(), SafeText> {
        let own = || self.look.own.iter().find(|(other, _)| other.as_str() == name).map(|(_, theme)| theme.clone());
        let Some(theme) = Theme::named(name).map(Ok).or_else(own).transpose()? else { return Ok(()) };
        self.look.theme = if self.look.ascii { theme.ascii() } else { theme };
        self.look.by_background = None;
        self.dirty = true;
        Ok(())
    }

    /// Suspends until a shell continues this program.
    fn suspend(&mut self) -> anyhow::Result<()> {
        signals::suspend(|| self.terminal.restore());
        self.terminal.resume()?;
        self.dirty = true;
        Ok(())
    }

    fn until_next_frame(&self) -> Duration {
        self.drawn.map_or(Duration::ZERO, |drawn| FRAME_INTERVAL.saturating_sub(drawn.elapsed()))
    }

    fn draw(&mut self, waiting: usize) -> anyhow::Result<()> {
        let begun = Instant::now();
        let (state, theme) = (&self.state, &self.look.theme);
        let bytes = self.terminal.draw(|frame| view(state, theme, frame)).context(OUTPUT_CLOSED)?;
        if let Some(stats) = &mut self.state.frame_stats {
            stats.add(begun.elapsed(), bytes, waiting);
        }
        self.terminal.set_title(&self.state.title()).context(OUTPUT_CLOSED)?;
        if self.state.take_bell() {
            self.terminal.ring_bell().context(OUTPUT_CLOSED)?;
        }
        self.drawn = Some(Instant::now());
        self.dirty = false;
        Ok(())
    }
}

/// Returns the number of columns and rows of the window.
fn size() -> anyhow::Result<(u16, u16)> {
    crossterm::terminal::size().context("the size of the terminal cannot be determined")
}

fn resized() -> anyhow::Result<Msg> {
    size().map(|(columns, rows)| Msg::Resize(columns, rows))
}

/// Sleeps for the given time; forever if there is none.
async fn pause(time: Option<Duration>) {
    match time {
        Some(time) => sleep(time).await,
        None => std::future::pending().await,
    }
}

/// Supplies the time to the pure modules.
struct Clock {
    begun: Instant,
    zone: TimeZone,
}

impl Clock {
    fn now(&self) -> Now {
        let wall = Timestamp::now();
        let unix_ms = u64::try_from(wall.as_millisecond()).unwrap_or(0);
        Now { elapsed: self.begun.elapsed(), unix_ms, utc_offset: self.zone.to_offset(wall).seconds() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn panic_while_drawing_is_returned_as_an_error() {
        let panicked = catch(async {
            tokio::task::yield_now().await;
            panic!("no picture");
        });
        let panicked: std::thread::Result<()> = panicked.await;
        assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"no picture"));
        assert_eq!(catch(async { 7 }).await.unwrap(), 7);
    }
}
