//! Editing of a line of text.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tui_input::{Input, InputRequest};

use crate::model::sanitize;

/// Maximum length in bytes; further input is ignored. No path or filter is that long.
const MAX_LENGTH: usize = 4096;

/// Applies a key press to the line. Returns whether the text changed.
pub(super) fn key(input: &mut Input, event: &KeyEvent) -> bool {
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    let request = match (event.code, control) {
        (KeyCode::Char('a'), true) | (KeyCode::Home, _) => InputRequest::GoToStart,
        (KeyCode::Char('e'), true) | (KeyCode::End, _) => InputRequest::GoToEnd,
        (KeyCode::Char('w') | KeyCode::Backspace, true) => InputRequest::DeletePrevWord,
        (KeyCode::Char('u'), true) => InputRequest::DeleteLine,
        (KeyCode::Char('k'), true) => InputRequest::DeleteTillEnd,
        (KeyCode::Left, true) => InputRequest::GoToPrevWord,
        (KeyCode::Right, true) => InputRequest::GoToNextWord,
        (KeyCode::Left, false) => InputRequest::GoToPrevChar,
        (KeyCode::Right, false) => InputRequest::GoToNextChar,
        (KeyCode::Backspace, false) => InputRequest::DeletePrevChar,
        (KeyCode::Delete, _) => InputRequest::DeleteNextChar,
        (KeyCode::Char(c), false) if sanitize(c.encode_utf8(&mut [0; 4])) == c.to_string() && input.value().len() < MAX_LENGTH => {
            InputRequest::InsertChar(c)
        }
        _ => return false,
    };
    input.handle(request).is_some_and(|change| change.value)
}

/// Inserts pasted text as a single line.
pub(super) fn paste(input: &mut Input, text: &str) {
    for c in sanitize(text.trim_matches(['\r', '\n'])).chars() {
        if input.value().len() >= MAX_LENGTH {
            break;
        }
        input.handle(InputRequest::InsertChar(if c == char::REPLACEMENT_CHARACTER { ' ' } else { c }));
    }
}
