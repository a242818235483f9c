//! Keys of the action table.

use std::borrow::Cow;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_width::UnicodeWidthChar;

/// A key or set of keys that triggers an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A key without modifiers. A capital letter is a key distinct from its lowercase form.
    Plain(KeyCode),
    Ctrl(char),
    /// Sent as Ctrl-J by terminals that do not distinguish it from Enter.
    CtrlEnter,
    Digit,
}

pub(in crate::app) const fn char(c: char) -> Key {
    Key::Plain(KeyCode::Char(c))
}

pub(in crate::app) const ENTER: Key = Key::Plain(KeyCode::Enter);
pub(in crate::app) const BACKSPACE: Key = Key::Plain(KeyCode::Backspace);
pub(super) const ESC: Key = Key::Plain(KeyCode::Esc);
pub(super) const TAB: Key = Key::Plain(KeyCode::Tab);
pub(super) const BACK_TAB: Key = Key::Plain(KeyCode::BackTab);
pub(super) const F1: Key = Key::Plain(KeyCode::F(1));
pub(super) const UP: Key = Key::Plain(KeyCode::Up);
pub(super) const DOWN: Key = Key::Plain(KeyCode::Down);
pub(super) const LEFT: Key = Key::Plain(KeyCode::Left);
pub(super) const RIGHT: Key = Key::Plain(KeyCode::Right);
pub(super) const PAGE_UP: Key = Key::Plain(KeyCode::PageUp);
pub(super) const PAGE_DOWN: Key = Key::Plain(KeyCode::PageDown);
pub(super) const HOME: Key = Key::Plain(KeyCode::Home);
pub(super) const END: Key = Key::Plain(KeyCode::End);

/// Names of keys that cannot be reassigned.
const NAMED: [(KeyCode, &str); 15] = [
    (KeyCode::Esc, "Esc"),
    (KeyCode::Enter, "Enter"),
    (KeyCode::Tab, "Tab"),
    (KeyCode::BackTab, "Shift-Tab"),
    (KeyCode::Backspace, "Backspace"),
    (KeyCode::Up, "Up"),
    (KeyCode::Down, "Down"),
    (KeyCode::Left, "Left"),
    (KeyCode::Right, "Right"),
    (KeyCode::PageUp, "PgUp"),
    (KeyCode::PageDown, "PgDn"),
    (KeyCode::Home, "Home"),
    (KeyCode::End, "End"),
    (KeyCode::Delete, "Delete"),
    (KeyCode::Insert, "Insert"),
];

/// Returns the only character of `name` if it is printable and one column wide.
fn single(name: &str) -> Option<char> {
    let mut chars = name.chars();
    let first = chars.next().filter(|c| c.width() == Some(1) && !c.is_control() && !c.is_whitespace());
    first.filter(|_| chars.next().is_none())
}

impl Key {
    /// Returns whether `event` is a press of this key.
    pub fn matches(self, event: &KeyEvent) -> bool {
        let held = event.modifiers;
        match (self, event.code) {
            (Self::Ctrl(c), KeyCode::Char(pressed)) => {
                held.contains(KeyModifiers::CONTROL) && !held.contains(KeyModifiers::ALT) && pressed.eq_ignore_ascii_case(&c)
            }
            (Self::CtrlEnter, KeyCode::Enter) => held == KeyModifiers::CONTROL,
            _ if held.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SUPER) => false,
            (Self::Digit, KeyCode::Char(c)) => c.is_ascii_digit(),
            (Self::Plain(code), pressed) => code == pressed,
            _ => false,
        }
    }

    /// Returns whether the key cannot be reassigned: navigation keys, digits and Ctrl-C.
    pub fn is_fixed(self) -> bool {
        match self {
            Self::Digit | Self::CtrlEnter | Self::Ctrl('c') => true,
            Self::Plain(code) => !matches!(code, KeyCode::Char(_) | KeyCode::F(_)),
            Self::Ctrl(_) => false,
        }
    }

    /// Returns whether the key types a character in a text field.
    pub(super) fn is_text(self) -> bool {
        matches!(self, Self::Digit | Self::Plain(KeyCode::Char(_)))
    }

    /// Returns whether a single key press can match both.
    pub(super) fn overlaps(self, other: Self) -> bool {
        let is_digit = |key| matches!(key, Self::Digit) || matches!(key, Self::Plain(KeyCode::Char(c)) if c.is_ascii_digit());
        self == other || is_digit(self) && is_digit(other)
    }

    /// Parses a key that can be assigned to an action from its [name](Self::name).
    ///
    /// # Errors
    /// The reason as text: there is no such key, or it cannot be reassigned.
    pub fn parse(name: &str) -> Result<Self, String> {
        if name.eq_ignore_ascii_case("space") {
            return Ok(char(' '));
        }
        let mut fixed = NAMED.iter().map(|(_, name)| *name).chain(["Ctrl-Enter", "Ctrl-C"]);
        if let Some(fixed) = fixed.find(|fixed| fixed.eq_ignore_ascii_case(name)) {
            return Err(format!("{fixed} cannot be reassigned"));
        }
        let (first, rest) = name.split_at_checked(1).unwrap_or(("", name));
        let number = rest.parse().ok().filter(|number| (1..=12).contains(number) && !rest.starts_with(['0', '+']));
        if let Some(number) = number.filter(|_| first.eq_ignore_ascii_case("f")) {
            return Ok(Self::Plain(KeyCode::F(number)));
        }
        let control = name.split_once('-').filter(|(modifier, _)| modifier.eq_ignore_ascii_case("ctrl")).map(|(_, letter)| letter);
        match (control.unwrap_or(name).as_bytes(), control.is_some()) {
            ([letter], true) if letter.is_ascii_alphabetic() => {
                let letter: char = letter.to_ascii_lowercase().into();
                let sent_as = [('h', "Backspace"), ('i', "Tab"), ('j', "Ctrl-Enter"), ('m', "Enter")];
                match sent_as.iter().find(|(other, _)| *other == letter) {
                    Some((_, key)) => Err(format!("Ctrl-{} is {key} in a terminal", letter.to_ascii_uppercase())),
                    None => Ok(Self::Ctrl(letter)),
                }
            }
            ([b'0'..=b'9'], false) => Err("digits cannot be reassigned".to_owned()),
            _ => match single(name) {
                Some(sign) => Ok(char(sign)),
                None => {
                    let name: String = name.chars().take(20).collect();
                    Err(format!("unknown key '{name}': expected a character of one column, Space, Ctrl- with a letter, or F1 to F12"))
                }
            },
        }
    }

    /// Returns the display name; with `ascii`, without arrow symbols.
    pub fn name(self, ascii: bool) -> Cow<'static, str> {
        let code = match self {
            Self::Ctrl(c) => return Cow::Owned(format!("Ctrl-{}", c.to_ascii_uppercase())),
            Self::CtrlEnter => return Cow::Borrowed("Ctrl-Enter"),
            Self::Digit => return Cow::Borrowed("0-9"),
            Self::Plain(code) => code,
        };
        Cow::Borrowed(match code {
            KeyCode::Char(' ') => "Space",
            KeyCode::Char(c) => return Cow::Owned(c.to_string()),
            KeyCode::F(n) => return Cow::Owned(format!("F{n}")),
            KeyCode::Up if !ascii => "↑",
            KeyCode::Down if !ascii => "↓",
            KeyCode::Left if !ascii => "←",
            KeyCode::Right if !ascii => "→",
            _ => NAMED.iter().find(|(other, _)| *other == code).map_or("?", |(_, name)| name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AltGr is Ctrl and Alt on some systems.
    #[test]
    fn key_with_alt_is_another_one() {
        let matches = |held| Key::Ctrl('r').matches(&KeyEvent::new(KeyCode::Char('r'), held));
        let held = [KeyModifiers::CONTROL, KeyModifiers::CONTROL | KeyModifiers::ALT, KeyModifiers::ALT];
        assert_eq!(held.map(matches), [true, false, false]);
    }

    #[test]
    fn a_digit_overlaps_with_all_digits() {
        let others = [char('7'), Key::Digit, char('t')];
        assert_eq!(others.map(|other| Key::Digit.overlaps(other)), [true, true, false]);
        assert_eq!(others.map(|other| char('7').overlaps(other)), [true, true, false]);
        assert_eq!(others.map(|other| char('t').overlaps(other)), [false, false, true]);
    }

    #[test]
    fn keys_are_parsed_by_their_names() {
        for (name, key) in [
            ("t", char('t')),
            ("T", char('T')),
            ("-", char('-')),
            ("Space", char(' ')),
            ("F5", Key::Plain(KeyCode::F(5))),
            ("F12", Key::Plain(KeyCode::F(12))),
            ("f1", Key::Plain(KeyCode::F(1))),
            ("F", char('F')),
            ("Ctrl-R", Key::Ctrl('r')),
            ("ctrl-r", Key::Ctrl('r')),
            ("é", char('é')),
            ("Ж", char('Ж')),
        ] {
            assert_eq!(Key::parse(name), Ok(key), "{name}");
            assert_eq!(Key::parse(&key.name(true)), Ok(key));
        }
        for (name, why) in [
            ("Esc", "Esc cannot be reassigned"),
            ("ctrl-c", "Ctrl-C cannot be reassigned"),
            ("7", "digits cannot be reassigned"),
            ("Ctrl-I", "Ctrl-I is Tab in a terminal"),
            ("", "unknown key ''"),
            ("F13", "unknown key 'F13'"),
            ("F0", "unknown key 'F0'"),
            ("Ctrl-", "unknown key 'Ctrl-'"),
            ("Ctr-X", "unknown key 'Ctr-X'"),
            ("\u{1b}", "unknown key '\u{1b}'"),
            // Two columns wide, zero-width, two characters, invisible, and whitespace.
            ("漢", "unknown key '漢'"),
            ("\u{301}", "unknown key"),
            ("e\u{301}", "unknown key"),
            ("\u{202e}", "unknown key"),
            ("\u{a0}", "unknown key"),
        ] {
            assert!(Key::parse(name).unwrap_err().starts_with(why), "{name}");
        }
    }
}
