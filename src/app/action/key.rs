//! Keys, as the action table names them.

use std::borrow::Cow;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key, or a set of keys, that an action answers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A key by itself. Capital letters are keys of their own.
    Plain(KeyCode),
    /// A letter with Ctrl.
    Ctrl(char),
    /// Any digit.
    Digit,
}

/// The key with this character.
pub(super) const fn char(c: char) -> Key {
    Key::Plain(KeyCode::Char(c))
}

impl Key {
    /// Whether this is the key that was pressed.
    pub fn matches(self, event: &KeyEvent) -> bool {
        let held = event.modifiers;
        match (self, event.code) {
            (Self::Ctrl(c), KeyCode::Char(pressed)) => {
                held.contains(KeyModifiers::CONTROL) && !held.contains(KeyModifiers::ALT) && pressed.eq_ignore_ascii_case(&c)
            }
            _ if held.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SUPER) => false,
            (Self::Digit, KeyCode::Char(c)) => c.is_ascii_digit(),
            (Self::Plain(code), pressed) => code == pressed,
            _ => false,
        }
    }

    /// How it is written for a person; `ascii` leaves out arrows.
    pub fn name(self, ascii: bool) -> Cow<'static, str> {
        let code = match self {
            Self::Ctrl(c) => return Cow::Owned(format!("Ctrl-{}", c.to_ascii_uppercase())),
            Self::Digit => return Cow::Borrowed("0-9"),
            Self::Plain(code) => code,
        };
        Cow::Borrowed(match code {
            KeyCode::Char(' ') => "Space",
            KeyCode::Char(c) => return Cow::Owned(c.to_string()),
            KeyCode::Up if !ascii => "↑",
            KeyCode::Down if !ascii => "↓",
            KeyCode::Left if !ascii => "←",
            KeyCode::Right if !ascii => "→",
            KeyCode::Up => "Up",
            KeyCode::Down => "Down",
            KeyCode::Left => "Left",
            KeyCode::Right => "Right",
            KeyCode::PageUp => "PgUp",
            KeyCode::PageDown => "PgDn",
            KeyCode::Home => "Home",
            KeyCode::End => "End",
            KeyCode::Enter => "Enter",
            KeyCode::Backspace => "Backspace",
            KeyCode::Esc => "Esc",
            KeyCode::Tab => "Tab",
            KeyCode::BackTab => "Shift-Tab",
            KeyCode::F(n) => return Cow::Owned(format!("F{n}")),
            _ => "?",
        })
    }
}
