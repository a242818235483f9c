//! The action table itself.

mod details;
mod dialogs;
mod process;
mod processes;
mod program;

use std::sync::LazyLock;

use crossterm::event::KeyCode;

use super::{Entry, Key};

/// Every action: its keys, its words, where and when it is valid, and what it does. An action may be in it more than once, with other words and
/// another handler in another place.
pub static TABLE: LazyLock<Vec<Entry>> =
    LazyLock::new(|| [process::ENTRIES, processes::ENTRIES, details::ENTRIES, program::ENTRIES, dialogs::ENTRIES].concat());

const ENTER: Key = Key::Plain(KeyCode::Enter);
const BACKSPACE: Key = Key::Plain(KeyCode::Backspace);
const ESC: Key = Key::Plain(KeyCode::Esc);
const TAB: Key = Key::Plain(KeyCode::Tab);
const BACK_TAB: Key = Key::Plain(KeyCode::BackTab);
const F1: Key = Key::Plain(KeyCode::F(1));
const UP: Key = Key::Plain(KeyCode::Up);
const DOWN: Key = Key::Plain(KeyCode::Down);
const LEFT: Key = Key::Plain(KeyCode::Left);
const RIGHT: Key = Key::Plain(KeyCode::Right);
const PAGE_UP: Key = Key::Plain(KeyCode::PageUp);
const PAGE_DOWN: Key = Key::Plain(KeyCode::PageDown);
const HOME: Key = Key::Plain(KeyCode::Home);
const END: Key = Key::Plain(KeyCode::End);

/// The grammar of every filter.
const FILTER: &str = "Filter rows: words, !excluded words, column:word.";
