//! Parses the bytes from a terminal into keys, mouse reports and pasted text.
//!
//! The terminal library's own reader is not used: it polls edge-triggered and reads at most 1,024 bytes per edge, so the rest of a burst stays
//! unread until something else is typed; and it takes an ESC at the end of a read for the Esc key, and the rest of the sequence for typed text.
//!
//! Sequences: ECMA-48 section 5.4 (CSI) and "XTerm Control Sequences" (keys, SGR and normal mouse tracking, bracketed paste).

use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyModifiers};

use super::background::{self, IsLight};
use super::control_sequence::{control_sequence, cursor_key, key, modified, mouse};

/// Timeout for the rest of a sequence after ESC. After that, it was the Esc key.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(50);
/// How long the answer to the background query may pause before it counts as cut off: its start must not swallow keys.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a paste may pause before it counts as complete: a lost end marker must not swallow all further keys.
const PASTE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of parameter bytes; no sequence known here has more than 20.
const MAX_PARAMETERS: usize = 32;
/// Maximum number of bytes of a paste, which goes into a single line of text.
const MAX_PASTE: usize = 64 * 1024;
const PASTE_END: &[u8] = b"\x1b[201~";

const ESC: u8 = 0x1b;

/// Parser for the bytes from a terminal, in chunks of any size.
#[derive(Debug, Default)]
pub struct InputParser {
    state: State,
    background: Option<IsLight>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Ground,
    /// Within a UTF-8 character.
    Character { bytes: Vec<u8>, modifiers: KeyModifiers },
    /// After ESC.
    Escape,
    /// After ESC O.
    Ss3,
    /// After ESC [, with the parameters so far.
    Csi(Vec<u8>),
    /// After ESC [ [: a function key of the Linux console.
    Console,
    /// After ESC [ M: three bytes follow.
    NormalMouse(Vec<u8>),
    /// After ESC [ 200 ~.
    Paste(Vec<u8>),
    /// After ESC ], as long as it may be an answer to the background query.
    Answer(Vec<u8>),
    /// The same after another ESC: a backslash ends the answer.
    AnswerEnd(Vec<u8>),
    /// A complete answer.
    Answered(Vec<u8>),
}

impl InputParser {
    /// Parses more bytes, and emits all complete events.
    pub fn feed(&mut self, bytes: &[u8], mut emit: impl FnMut(Event)) {
        for byte in bytes {
            self.state = match std::mem::take(&mut self.state).next(*byte, &mut emit) {
                State::Answered(answer) => {
                    self.answered(&answer);
                    State::Ground
                }
                state => state,
            };
        }
    }

    fn answered(&mut self, answer: &[u8]) -> Option<IsLight> {
        let found = IsLight::parse(answer);
        self.background = found.or(self.background);
        found
    }

    /// Returns the terminal's answer to the background query since the last call.
    pub(super) fn take_background(&mut self) -> Option<IsLight> {
        self.background.take()
    }

    /// Returns how long to wait for more bytes before calling [`Self::time_out`]; `None` if nothing pending would be completed by it.
    pub fn timeout(&self) -> Option<Duration> {
        match self.state {
            State::Escape => Some(ESCAPE_TIMEOUT),
            State::Answer(ref bytes) | State::AnswerEnd(ref bytes) if !is_answer(bytes) => Some(ESCAPE_TIMEOUT),
            State::Answer(_) | State::AnswerEnd(_) => Some(ANSWER_TIMEOUT),
            State::Paste(_) => Some(PASTE_TIMEOUT),
            _ => None,
        }
    }

    /// Must be called if no byte has followed within [`Self::timeout`].
    pub fn time_out(&mut self, mut emit: impl FnMut(Event)) {
        match std::mem::take(&mut self.state) {
            State::Escape => emit(key(KeyCode::Esc)),
            State::Paste(bytes) => emit(paste(&bytes)),
            State::Answer(bytes) | State::AnswerEnd(bytes) if !is_answer(&bytes) => typed(&bytes, &mut emit),
            State::Answer(_) => {}
            // Either the end of the answer was lost, or it was cut off earlier and this is the Esc key.
            State::AnswerEnd(bytes) => {
                if self.answered(&bytes).is_none() {
                    emit(key(KeyCode::Esc));
                }
            }
            // The rest of a sequence is never typed text, however late it arrives.
            other => self.state = other,
        }
    }
}

impl State {
    fn next(self, byte: u8, emit: &mut impl FnMut(Event)) -> Self {
        match self {
            Self::Ground => Self::plain(byte, KeyModifiers::NONE, emit),
            Self::Character { mut bytes, modifiers } => {
                if !(0x80..0xc0).contains(&byte) {
                    return Self::plain(byte, KeyModifiers::NONE, emit);
                }
                bytes.push(byte);
                match std::str::from_utf8(&bytes) {
                    Ok(text) => text.chars().for_each(|c| emit(modified(KeyCode::Char(c), modifiers))),
                    Err(error) if error.error_len().is_none() => return Self::Character { bytes, modifiers },
                    Err(_) => {}
                }
                Self::Ground
            }
            Self::Escape => match byte {
                b'[' => Self::Csi(Vec::new()),
                b'O' => Self::Ss3,
                b']' => Self::Answer(Vec::new()),
                ESC => {
                    emit(key(KeyCode::Esc));
                    Self::Escape
                }
                _ => Self::plain(byte, KeyModifiers::ALT, emit),
            },
            Self::Ss3 => {
                let code = match byte {
                    b'P'..=b'S' => Some(KeyCode::F(byte - b'P' + 1)),
                    // Not a final byte: something else was typed.
                    0..=0x1f | 0x7f.. => return Self::plain(byte, KeyModifiers::NONE, emit),
                    _ => cursor_key(byte),
                };
                code.into_iter().for_each(|code| emit(key(code)));
                Self::Ground
            }
            Self::Csi(mut parameters) => match byte {
                b'[' if parameters.is_empty() => Self::Console,
                b'M' if parameters.is_empty() => Self::NormalMouse(Vec::new()),
                b'~' if parameters == b"200" => Self::Paste(Vec::new()),
                0x40..=0x7e => {
                    control_sequence(&parameters, byte).into_iter().for_each(emit);
                    Self::Ground
                }
                0x20..=0x3f => {
                    if parameters.len() < MAX_PARAMETERS {
                        parameters.push(byte);
                    }
                    Self::Csi(parameters)
                }
                // Not part of a sequence: it was cut off.
                _ => Self::plain(byte, KeyModifiers::NONE, emit),
            },
            Self::Console => match byte {
                b'A'..=b'E' => {
                    emit(key(KeyCode::F(byte - b'A' + 1)));
                    Self::Ground
                }
                _ => Self::plain(byte, KeyModifiers::NONE, emit),
            },
            Self::NormalMouse(mut bytes) => {
                bytes.push(byte);
                let [button, column, row] = bytes[..] else { return Self::NormalMouse(bytes) };
                let [button, column, row] = [button, column, row].map(|byte| u16::from(byte.saturating_sub(32)));
                mouse(button, column, row, button & 0b11 == 3).into_iter().for_each(emit);
                Self::Ground
            }
            Self::Answer(bytes) if byte == ESC => Self::AnswerEnd(bytes),
            // BEL is also a terminator.
            Self::Answer(bytes) if byte == 0x07 => Self::Answered(bytes),
            Self::Answer(mut bytes) => {
                let is_answer = is_answer(&bytes);
                let is_next =
                    if is_answer { background::can_follow(&bytes, byte) } else { background::NUMBER.get(bytes.len()) == Some(&byte) };
                if !is_next {
                    if !is_answer {
                        typed(&bytes, emit);
                    }
                    return Self::plain(byte, KeyModifiers::NONE, emit);
                }
                bytes.push(byte);
                Self::Answer(bytes)
            }
            Self::AnswerEnd(bytes) if byte == b'\\' => Self::Answered(bytes),
            Self::AnswerEnd(bytes) => {
                // If it was an answer, it was cut off.
                if !is_answer(&bytes) {
                    typed(&bytes, emit);
                }
                Self::Escape.next(byte, emit)
            }
            Self::Answered(_) => Self::plain(byte, KeyModifiers::NONE, emit),
            Self::Paste(mut bytes) => {
                bytes.push(byte);
                if bytes.ends_with(PASTE_END) {
                    emit(paste(&bytes));
                    return Self::Ground;
                }
                if bytes.len() > MAX_PASTE + PASTE_END.len() {
                    // Keep the end, which may become the end marker.
                    bytes.remove(MAX_PASTE);
                }
                Self::Paste(bytes)
            }
        }
    }

    /// Parses a byte outside of any sequence.
    fn plain(byte: u8, held: KeyModifiers, emit: &mut impl FnMut(Event)) -> Self {
        let (code, modifiers) = match byte {
            ESC => return Self::Escape,
            b'\r' => (KeyCode::Enter, held),
            b'\n' => (KeyCode::Enter, held | KeyModifiers::CONTROL),
            b'\t' => (KeyCode::Tab, held),
            0x7f => (KeyCode::Backspace, held),
            0 => (KeyCode::Char(' '), held | KeyModifiers::CONTROL),
            1..=0x1a => (KeyCode::Char(char::from(byte - 1 + b'a')), held | KeyModifiers::CONTROL),
            // Ctrl-4 to Ctrl-7, as sent by terminals.
            0x1c..=0x1f => (KeyCode::Char(char::from(byte - 0x1c + b'4')), held | KeyModifiers::CONTROL),
            0x20..=0x7e => (KeyCode::Char(char::from(byte)), held),
            0xc2..=0xf4 => return Self::Character { bytes: vec![byte], modifiers: held },
            // Not the start of a character.
            _ => return Self::Ground,
        };
        emit(modified(code, modifiers));
        Self::Ground
    }
}

/// Whether the bytes cannot have been typed: typed text after Alt-] does not start like an answer.
fn is_answer(bytes: &[u8]) -> bool {
    bytes.starts_with(background::NUMBER)
}

/// Emits bytes that began like an answer but are none, as typed: Alt with a bracket, and the keys after it.
fn typed(bytes: &[u8], emit: &mut impl FnMut(Event)) {
    emit(modified(KeyCode::Char(']'), KeyModifiers::ALT));
    bytes.iter().for_each(|byte| emit(key(KeyCode::Char(char::from(*byte)))));
}

fn paste(bytes: &[u8]) -> Event {
    let text = bytes.strip_suffix(PASTE_END).unwrap_or(bytes);
    Event::Paste(String::from_utf8_lossy(&text[..text.len().min(MAX_PASTE)]).into_owned())
}

#[cfg(test)]
mod tests;
