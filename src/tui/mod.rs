//! The input and output of the dashboard: event loop, effect runner, terminal guard, clipboard.
//!
//! The loop converts keys, answers and deadlines to messages, passes them to [`app`](crate::app), draws when something has changed, and passes
//! effects to the single runner, whose tasks answer with messages. The loop never waits for network or disk. Only the loop's own thread draws on
//! the terminal, which is never waited for, and every exit path restores the terminal, finishes the recordings and stops the watches.

mod background;
mod clipboard;
mod control_sequence;
mod event_loop;
mod exit_report;
mod exports;
mod files;
mod heaps;
#[cfg_attr(windows, allow(dead_code, reason = "a console is not asked for its background"))]
mod input;
#[cfg_attr(windows, allow(dead_code, reason = "a console sends keys as records"))]
mod input_parser;
mod kernel;
#[cfg_attr(windows, path = "windows/keyboard.rs")]
mod keyboard;
mod launch;
mod panic;
mod recordings;
mod runner;
mod sessions;
#[cfg_attr(windows, allow(dead_code, reason = "a console asks for the end alone"))]
mod signal_request;
#[cfg_attr(windows, path = "windows/signals.rs")]
mod signals;
mod tail;
mod tasks;
mod terminal;
#[cfg_attr(not(target_os = "linux"), path = "portable/ticks.rs")]
mod ticks;
#[cfg_attr(windows, path = "windows/tty.rs")]
mod tty;
mod watcher;
mod work;

pub use clipboard::clipboard_destination;
pub use event_loop::{Dashboard, Look, Machine, run};
pub use exit_report::message;
pub use input_parser::InputParser;
pub use terminal::TerminalOptions;
pub use tty::{interprets_sequences, write_stderr};
