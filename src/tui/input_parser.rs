//! Bytes that a terminal sends, parsed into keys, mouse reports and pasted text.
//!
//! The terminal library's own reader is not used: it polls edge-triggered and reads at most 1,024 bytes per edge, so the rest of a burst stays unread
//! until something else is typed; it takes an ESC at the end of a read for the Esc key, and then the rest of the sequence for typed text.
//!
//! Sequences: ECMA-48 section 5.4 (CSI) and "XTerm Control Sequences" (keys, SGR and normal mouse tracking, bracketed paste).

use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyModifiers};

use super::background::{self, IsLight};
use super::control_sequence::{control_sequence, cursor_key, key, modified, mouse};

/// How long the rest of a sequence may take to follow its ESC. After that it was the Esc key.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(50);
/// How long a paste may pause before it counts as complete: a lost end marker must not swallow all further keys.
const PASTE_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of parameters that are kept; no sequence known here has more than 20.
const LONGEST_PARAMETERS: usize = 32;
/// Bytes of a paste that are kept: it goes into a line of text.
const LONGEST_PASTE: usize = 64 * 1024;
const PASTE_END: &[u8] = b"\x1b[201~";

const ESC: u8 = 0x1b;

/// Parses the bytes of a terminal, in pieces of any size.
#[derive(Debug, Default)]
pub struct InputParser {
    state: State,
    background: Option<IsLight>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Ground,
    /// Some bytes of a character in UTF-8.
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
    /// After ESC ], as far as it is an answer to the query for the background.
    Answer(Vec<u8>),
    /// The same after an ESC, which ends it with a backslash.
    AnswerEnd(Vec<u8>),
    /// Such an answer.
    Answered(Vec<u8>),
}

impl InputParser {
    /// Parses more bytes and hands over all that is complete.
    pub fn feed(&mut self, bytes: &[u8], mut emit: impl FnMut(Event)) {
        for byte in bytes {
            self.state = match std::mem::take(&mut self.state).next(*byte, &mut emit) {
                State::Answered(answer) => {
                    self.background = IsLight::parse(&answer).or(self.background);
                    State::Ground
                }
                state => state,
            };
        }
    }

    /// What the terminal answered to the query for its background since the last call.
    pub(super) fn take_background(&mut self) -> Option<IsLight> {
        self.background.take()
    }

    /// How long to wait for more bytes before [`Self::time_out`] is to be called; `None` where nothing is pending that time completes.
    pub fn timeout(&self) -> Option<Duration> {
        match self.state {
            State::Escape => Some(ESCAPE_TIMEOUT),
            State::Answer(ref bytes) | State::AnswerEnd(ref bytes) if !is_answer(bytes) => Some(ESCAPE_TIMEOUT),
            State::Paste(_) => Some(PASTE_TIMEOUT),
            _ => None,
        }
    }

    /// No byte has followed within [`Self::timeout`].
    pub fn time_out(&mut self, mut emit: impl FnMut(Event)) {
        match std::mem::take(&mut self.state) {
            State::Escape => emit(key(KeyCode::Esc)),
            State::Paste(bytes) => emit(paste(&bytes)),
            State::Answer(bytes) | State::AnswerEnd(bytes) if !is_answer(&bytes) => typed(&bytes, &mut emit),
            // The rest of a sequence whose start is known is never typed text, however late it is.
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
                    // Without a final byte: something else was typed since.
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
                    if parameters.len() < LONGEST_PARAMETERS {
                        parameters.push(byte);
                    }
                    Self::Csi(parameters)
                }
                // Nothing of a sequence: it was cut off.
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
            // BEL ends it, too.
            Self::Answer(bytes) if byte == 0x07 => Self::Answered(bytes),
            Self::Answer(mut bytes) => {
                if !is_answer(&bytes) && background::ANSWER.get(bytes.len()) != Some(&byte) {
                    typed(&bytes, emit);
                    return Self::plain(byte, KeyModifiers::NONE, emit);
                }
                if bytes.len() < background::LONGEST {
                    bytes.push(byte);
                }
                Self::Answer(bytes)
            }
            Self::AnswerEnd(bytes) if byte == b'\\' => Self::Answered(bytes),
            Self::AnswerEnd(bytes) => {
                // Cut off, where it was one.
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
                if bytes.len() > LONGEST_PASTE + PASTE_END.len() {
                    // What may become the end marker stays.
                    bytes.remove(LONGEST_PASTE);
                }
                Self::Paste(bytes)
            }
        }
    }

    /// A byte outside of any sequence.
    fn plain(byte: u8, held: KeyModifiers, emit: &mut impl FnMut(Event)) -> Self {
        let (code, modifiers) = match byte {
            ESC => return Self::Escape,
            b'\r' => (KeyCode::Enter, held),
            b'\t' => (KeyCode::Tab, held),
            0x7f => (KeyCode::Backspace, held),
            0 => (KeyCode::Char(' '), held | KeyModifiers::CONTROL),
            1..=0x1a => (KeyCode::Char(char::from(byte - 1 + b'a')), held | KeyModifiers::CONTROL),
            // Ctrl-4 to Ctrl-7, as terminals send them.
            0x1c..=0x1f => (KeyCode::Char(char::from(byte - 0x1c + b'4')), held | KeyModifiers::CONTROL),
            0x20..=0x7e => (KeyCode::Char(char::from(byte)), held),
            0xc2..=0xf4 => return Self::Character { bytes: vec![byte], modifiers: held },
            // Begins no character.
            _ => return Self::Ground,
        };
        emit(modified(code, modifiers));
        Self::Ground
    }
}

/// Whether it cannot have been typed: what follows Alt with a bracket begins like no answer.
fn is_answer(bytes: &[u8]) -> bool {
    bytes.starts_with(background::NUMBER)
}

/// What began like an answer and is none: Alt with a bracket, and what was typed behind it.
fn typed(bytes: &[u8], emit: &mut impl FnMut(Event)) {
    emit(modified(KeyCode::Char(']'), KeyModifiers::ALT));
    bytes.iter().for_each(|byte| emit(key(KeyCode::Char(char::from(*byte)))));
}

fn paste(bytes: &[u8]) -> Event {
    let text = bytes.strip_suffix(PASTE_END).unwrap_or(bytes);
    Event::Paste(String::from_utf8_lossy(&text[..text.len().min(LONGEST_PASTE)]).into_owned())
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
    use proptest::prelude::*;

    use super::*;

    fn parse(pieces: &[&[u8]]) -> Vec<Event> {
        let (mut parser, mut events) = (InputParser::default(), Vec::new());
        pieces.iter().for_each(|piece| parser.feed(piece, |event| events.push(event)));
        while parser.timeout().is_some() {
            parser.time_out(|event| events.push(event));
        }
        events
    }

    fn held(code: KeyCode, modifiers: KeyModifiers) -> Event {
        Event::Key(KeyEvent::new(code, modifiers))
    }

    fn at(kind: MouseEventKind, column: u16, row: u16) -> Event {
        Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
    }

    #[test]
    fn keys_mouse_and_paste() {
        const NONE: KeyModifiers = KeyModifiers::NONE;
        const SHIFT: KeyModifiers = KeyModifiers::SHIFT;
        const ALT: KeyModifiers = KeyModifiers::ALT;
        const CTRL: KeyModifiers = KeyModifiers::CONTROL;
        let down = |button| MouseEventKind::Down(button);
        let cases: &[(&[u8], &[Event])] = &[
            (b"", &[]),
            (b"q", &[held(KeyCode::Char('q'), NONE)]),
            (b"Q", &[held(KeyCode::Char('Q'), SHIFT)]),
            ("ü日".as_bytes(), &[held(KeyCode::Char('ü'), NONE), held(KeyCode::Char('日'), NONE)]),
            (b"\r\t\x7f", &[key(KeyCode::Enter), key(KeyCode::Tab), key(KeyCode::Backspace)]),
            (b"\x03\0\x1c", &[held(KeyCode::Char('c'), CTRL), held(KeyCode::Char(' '), CTRL), held(KeyCode::Char('4'), CTRL)]),
            (b"\x1b", &[key(KeyCode::Esc)]),
            (b"\x1b\x1b", &[key(KeyCode::Esc), key(KeyCode::Esc)]),
            (b"\x1b\x1b[A", &[key(KeyCode::Esc), key(KeyCode::Up)]),
            (b"\x1bt\x1b\xc3\xbc", &[held(KeyCode::Char('t'), ALT), held(KeyCode::Char('ü'), ALT)]),
            (
                b"\x1b[A\x1bOB\x1b[1;5C\x1b[1;2D",
                &[key(KeyCode::Up), key(KeyCode::Down), held(KeyCode::Right, CTRL), held(KeyCode::Left, SHIFT)],
            ),
            (
                b"\x1b[H\x1b[F\x1bOH\x1b[1~\x1b[4~\x1b[7~\x1b[8~",
                &[
                    key(KeyCode::Home),
                    key(KeyCode::End),
                    key(KeyCode::Home),
                    key(KeyCode::Home),
                    key(KeyCode::End),
                    key(KeyCode::Home),
                    key(KeyCode::End),
                ],
            ),
            (
                b"\x1b[2~\x1b[3~\x1b[5~\x1b[6~\x1b[3;5~",
                &[key(KeyCode::Insert), key(KeyCode::Delete), key(KeyCode::PageUp), key(KeyCode::PageDown), held(KeyCode::Delete, CTRL)],
            ),
            (
                b"\x1bOP\x1b[S\x1b[[C\x1b[15~\x1b[17~\x1b[21~\x1b[24~",
                &[
                    key(KeyCode::F(1)),
                    key(KeyCode::F(4)),
                    key(KeyCode::F(3)),
                    key(KeyCode::F(5)),
                    key(KeyCode::F(6)),
                    key(KeyCode::F(10)),
                    key(KeyCode::F(12)),
                ],
            ),
            (b"\x1b[Z", &[held(KeyCode::BackTab, SHIFT)]),
            (
                b"\x1b[<0;1;1M\x1b[<0;1;1m\x1b[<64;120;40M\x1b[<65;7;3M",
                &[at(down(MouseButton::Left), 0, 0), at(MouseEventKind::ScrollUp, 119, 39), at(MouseEventKind::ScrollDown, 6, 2)],
            ),
            // Motion, the wheel sideways, coordinates that there are not.
            (b"\x1b[<35;5;5M\x1b[<32;5;5M\x1b[<66;5;5M\x1b[<0;0;1M\x1b[<0;99999;1M\x1b[<0;1M", &[]),
            (b"\x1b[M !!\x1b[M#!!\x1b[Ma!\"", &[at(down(MouseButton::Left), 0, 0), at(MouseEventKind::ScrollDown, 0, 1)]),
            (b"\x1b[200~two\rlines\x1b[A\x1b[201~x", &[Event::Paste("two\rlines\x1b[A".to_owned()), held(KeyCode::Char('x'), NONE)]),
            (b"\x1b[200~without an end", &[Event::Paste("without an end".to_owned())]),
            // Answers to the questions of others, and unknown keys, are no typed text.
            (b"\x1b[?62;22c\x1b[12;40R\x1b[?1u\x1b[99~\x1b[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17X", &[]),
            // The answer to our own, with either end; one that was cut off; and Alt with a bracket.
            (b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\q\x1b]11;rgb:0/0/0\x07q", &[held(KeyCode::Char('q'), NONE), held(KeyCode::Char('q'), NONE)]),
            (b"\x1b]11;nonsense\x07\x1b]11;rgb:ff\x1b[A", &[key(KeyCode::Up)]),
            (b"\x1b]", &[held(KeyCode::Char(']'), ALT)]),
            (b"\x1b]1q", &[held(KeyCode::Char(']'), ALT), held(KeyCode::Char('1'), NONE), held(KeyCode::Char('q'), NONE)]),
            (b"\x1b]\x1b[A", &[held(KeyCode::Char(']'), ALT), key(KeyCode::Up)]),
            // What was cut off, and then a key.
            (b"\x1b[<65;1\x03", &[held(KeyCode::Char('c'), CTRL)]),
            (b"\x1b[\r\x1bO\r\x1b[[q", &[key(KeyCode::Enter), key(KeyCode::Enter), held(KeyCode::Char('q'), NONE)]),
            (b"\x1b[<65;1\x1b[B", &[key(KeyCode::Down)]),
            (b"\xff\xc3q\x80", &[held(KeyCode::Char('q'), NONE)]),
        ];
        for (bytes, events) in cases {
            assert_eq!(parse(&[bytes]), *events, "{:?}", String::from_utf8_lossy(bytes));
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(parse(&single), *events, "{:?} byte by byte", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn only_a_lone_esc_and_a_paste_are_completed_by_time() {
        for (bytes, timeout) in [
            (&b""[..], None),
            (b"\x1b", Some(ESCAPE_TIMEOUT)),
            (b"\x1b[", None),
            (b"\x1b[<65;10", None),
            (b"\x1b]", Some(ESCAPE_TIMEOUT)),
            (b"\x1b]1", Some(ESCAPE_TIMEOUT)),
            (b"\x1b]11;rg", None),
            (b"\x1bO", None),
            (b"\xc3", None),
            (b"\x1b[200~text", Some(PASTE_TIMEOUT)),
            (b"\x1b[200~text\x1b[201~", None),
        ] {
            let mut parser = InputParser::default();
            parser.feed(bytes, drop);
            assert_eq!(parser.timeout(), timeout, "{bytes:?}");
        }
        // The rest of a mouse report comes late: nothing of it is typed.
        let (mut parser, mut events) = (InputParser::default(), Vec::new());
        parser.feed(b"\x1b[<65;10", |event| events.push(event));
        parser.time_out(|event| events.push(event));
        parser.feed(b";10M", |event| events.push(event));
        assert_eq!(events, [at(MouseEventKind::ScrollDown, 9, 9)]);
    }

    #[test]
    fn the_answer_for_the_background_is_kept() {
        let mut parser = InputParser::default();
        parser.feed(b"q\x1b]11;rgb:ffff/ffff/f", drop);
        assert_eq!(parser.take_background(), None);
        parser.feed(b"fff\x1b\\q", drop);
        assert_eq!(parser.take_background(), Some(IsLight(true)));
        assert_eq!(parser.take_background(), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let long = [b"\x1b[".to_vec(), b"1;".repeat(100_000), b"Aq".to_vec()].concat();
        assert_eq!(parse(&[&long]), [key(KeyCode::Up), key(KeyCode::Char('q'))]);
        let text = "x".repeat(LONGEST_PASTE + 1000);
        let bytes = [b"\x1b[200~", text.as_bytes(), PASTE_END, b"q"].concat();
        assert_eq!(parse(&[&bytes]), [Event::Paste(text[..LONGEST_PASTE].to_owned()), key(KeyCode::Char('q'))]);
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_give_the_same(bytes: Vec<u8>, cuts in prop::collection::vec(1_usize..20, 1..20)) {
            // Many bytes that begin or end something.
            let bytes: Vec<u8> = bytes.iter().map(|byte| if *byte < 0x80 { b"\x1b[O<0;1~MmAq"[usize::from(byte % 12)] } else { *byte }).collect();
            let (mut pieces, mut rest) = (Vec::new(), &bytes[..]);
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, more) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = more;
            }
            prop_assert_eq!(parse(&pieces), parse(&[&bytes]));
        }
    }
}
