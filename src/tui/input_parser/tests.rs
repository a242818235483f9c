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

fn key_with(code: KeyCode, modifiers: KeyModifiers) -> Event {
    Event::Key(KeyEvent::new(code, modifiers))
}

fn at(kind: MouseEventKind, column: u16, row: u16) -> Event {
    Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
}

#[test]
fn keys_mouse_and_paste_are_parsed() {
    const NONE: KeyModifiers = KeyModifiers::NONE;
    const SHIFT: KeyModifiers = KeyModifiers::SHIFT;
    const ALT: KeyModifiers = KeyModifiers::ALT;
    const CTRL: KeyModifiers = KeyModifiers::CONTROL;
    let down = |button| MouseEventKind::Down(button);
    let cases: &[(&[u8], &[Event])] = &[
        (b"", &[]),
        (b"q", &[key_with(KeyCode::Char('q'), NONE)]),
        (b"Q", &[key_with(KeyCode::Char('Q'), SHIFT)]),
        ("ü日".as_bytes(), &[key_with(KeyCode::Char('ü'), NONE), key_with(KeyCode::Char('日'), NONE)]),
        (b"\r\t\x7f", &[key(KeyCode::Enter), key(KeyCode::Tab), key(KeyCode::Backspace)]),
        (
            b"\n\x1b[13;5u\x1b[27;5;13~\x1b[27;5;14~\x1b[14;5u",
            &[key_with(KeyCode::Enter, CTRL), key_with(KeyCode::Enter, CTRL), key_with(KeyCode::Enter, CTRL)],
        ),
        (b"\x03\0\x1c", &[key_with(KeyCode::Char('c'), CTRL), key_with(KeyCode::Char(' '), CTRL), key_with(KeyCode::Char('4'), CTRL)]),
        (b"\x1b", &[key(KeyCode::Esc)]),
        (b"\x1b\x1b", &[key(KeyCode::Esc), key(KeyCode::Esc)]),
        (b"\x1b\x1b[A", &[key(KeyCode::Esc), key(KeyCode::Up)]),
        (b"\x1bt\x1b\xc3\xbc", &[key_with(KeyCode::Char('t'), ALT), key_with(KeyCode::Char('ü'), ALT)]),
        (
            b"\x1b[A\x1bOB\x1b[1;5C\x1b[1;2D",
            &[key(KeyCode::Up), key(KeyCode::Down), key_with(KeyCode::Right, CTRL), key_with(KeyCode::Left, SHIFT)],
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
            &[key(KeyCode::Insert), key(KeyCode::Delete), key(KeyCode::PageUp), key(KeyCode::PageDown), key_with(KeyCode::Delete, CTRL)],
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
        (b"\x1b[Z", &[key_with(KeyCode::BackTab, SHIFT)]),
        (
            b"\x1b[<0;1;1M\x1b[<0;1;1m\x1b[<64;120;40M\x1b[<65;7;3M",
            &[
                at(down(MouseButton::Left), 0, 0),
                at(MouseEventKind::Up(MouseButton::Left), 0, 0),
                at(MouseEventKind::ScrollUp, 119, 39),
                at(MouseEventKind::ScrollDown, 6, 2),
            ],
        ),
        (b"\x1b[<0;1;1x", &[]),
        (
            b"\x1b[<32;5;6M\x1b[<34;5;6M",
            &[at(MouseEventKind::Drag(MouseButton::Left), 4, 5), at(MouseEventKind::Drag(MouseButton::Right), 4, 5)],
        ),
        // Motion without a button, horizontal scrolling, invalid coordinates.
        (b"\x1b[<35;5;5M\x1b[<66;5;5M\x1b[<0;0;1M\x1b[<0;99999;1M\x1b[<0;1M", &[]),
        (
            b"\x1b[M !!\x1b[M#!!\x1b[Ma!\"",
            &[at(down(MouseButton::Left), 0, 0), at(MouseEventKind::Up(MouseButton::Left), 0, 0), at(MouseEventKind::ScrollDown, 0, 1)],
        ),
        (b"\x1b[200~two\rlines\x1b[A\x1b[201~x", &[Event::Paste("two\rlines\x1b[A".to_owned()), key_with(KeyCode::Char('x'), NONE)]),
        (b"\x1b[200~without an end", &[Event::Paste("without an end".to_owned())]),
        // Answers to queries of other programs, and unknown keys, are not typed text.
        (b"\x1b[?62;22c\x1b[12;40R\x1b[?1u\x1b[99~\x1b[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17X", &[]),
        // The answer to our query, with either terminator; a truncated one; and Alt with a bracket.
        (
            b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\q\x1b]11;rgb:0/0/0\x07q",
            &[key_with(KeyCode::Char('q'), NONE), key_with(KeyCode::Char('q'), NONE)],
        ),
        (b"\x1b]11;nonsense\x07\x1b]11;rgb:ff\x1b[A", &[key(KeyCode::Up)]),
        (b"\x1b]", &[key_with(KeyCode::Char(']'), ALT)]),
        (b"\x1b]1q", &[key_with(KeyCode::Char(']'), ALT), key_with(KeyCode::Char('1'), NONE), key_with(KeyCode::Char('q'), NONE)]),
        (b"\x1b]\x1b[A", &[key_with(KeyCode::Char(']'), ALT), key(KeyCode::Up)]),
        // A truncated sequence, followed by a key.
        (b"\x1b[<65;1\x03", &[key_with(KeyCode::Char('c'), CTRL)]),
        (b"\x1b[\r\x1bO\r\x1b[[q", &[key(KeyCode::Enter), key(KeyCode::Enter), key_with(KeyCode::Char('q'), NONE)]),
        (b"\x1b[<65;1\x1b[B", &[key(KeyCode::Down)]),
        (b"\xff\xc3q\x80", &[key_with(KeyCode::Char('q'), NONE)]),
    ];
    for (bytes, events) in cases {
        assert_eq!(parse(&[bytes]), *events, "{:?}", String::from_utf8_lossy(bytes));
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(parse(&single), *events, "{:?} byte by byte", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn only_ambiguous_esc_and_paste_have_a_timeout() {
    for (bytes, timeout) in [
        (&b""[..], None),
        (b"\x1b", Some(ESCAPE_TIMEOUT)),
        (b"\x1b[", None),
        (b"\x1b[<65;10", None),
        (b"\x1b]", Some(ESCAPE_TIMEOUT)),
        (b"\x1b]1", Some(ESCAPE_TIMEOUT)),
        (b"\x1b]11;rg", Some(ANSWER_TIMEOUT)),
        (b"\x1b]11;rgb:0/0/0\x1b", Some(ANSWER_TIMEOUT)),
        (b"\x1bO", None),
        (b"\xc3", None),
        (b"\x1b[200~text", Some(PASTE_TIMEOUT)),
        (b"\x1b[200~text\x1b[201~", None),
    ] {
        let mut parser = InputParser::default();
        parser.feed(bytes, drop);
        assert_eq!(parser.timeout(), timeout, "{bytes:?}");
    }
    // The rest of a mouse report arrives late, but is not typed text.
    let (mut parser, mut events) = (InputParser::default(), Vec::new());
    parser.feed(b"\x1b[<65;10", |event| events.push(event));
    parser.time_out(|event| events.push(event));
    parser.feed(b";10M", |event| events.push(event));
    assert_eq!(events, [at(MouseEventKind::ScrollDown, 9, 9)]);
}

#[test]
fn background_color_reply_is_returned_once() {
    let mut parser = InputParser::default();
    parser.feed(b"q\x1b]11;rgb:ffff/ffff/f", drop);
    assert_eq!(parser.take_background(), None);
    parser.feed(b"fff\x1b\\q", drop);
    assert_eq!(parser.take_background(), Some(IsLight(true)));
    assert_eq!(parser.take_background(), None);
}

/// The rest was lost: the keys after it work.
#[test]
fn background_color_reply_that_is_cut_off_swallows_no_keys() {
    let q = key(KeyCode::Char('q'));
    for (bytes, expected) in [
        (&b"\x1b]11;rgb:ffff/ffq"[..], &[q.clone()][..]),
        (b"\x1b]11;rgb:ffff/\r", &[key(KeyCode::Enter)]),
        (b"\x1b]11;\x03", &[key_with(KeyCode::Char('c'), KeyModifiers::CONTROL)]),
        (b"\x1b]11;rgb:0000/0000/0000b", &[key(KeyCode::Char('b'))]),
    ] {
        assert_eq!(parse(&[bytes]), expected, "{:?}", String::from_utf8_lossy(bytes));
    }
    // What could be part of it is a key after a pause.
    for (bytes, after_pause) in [(&b"\x1b]11;"[..], None), (b"\x1b]11;rgb:ff", None), (b"\x1b]11;rgb:ff\x1b", Some(key(KeyCode::Esc)))] {
        let (mut parser, mut events) = (InputParser::default(), Vec::new());
        parser.feed(bytes, |event| events.push(event));
        parser.time_out(|event| events.push(event));
        parser.feed(b"q", |event| events.push(event));
        assert_eq!(events, after_pause.into_iter().chain([q.clone()]).collect::<Vec<_>>(), "{:?}", String::from_utf8_lossy(bytes));
    }
    // Only the terminator was lost.
    let mut parser = InputParser::default();
    parser.feed(b"\x1b]11;rgb:f/f/f\x1b", |_| unreachable!());
    parser.time_out(|_| unreachable!());
    assert_eq!(parser.take_background(), Some(IsLight(true)));
}

#[test]
fn parser_buffers_are_bounded() {
    let long = [b"\x1b[".to_vec(), b"1;".repeat(100_000), b"Aq".to_vec()].concat();
    assert_eq!(parse(&[&long]), [key(KeyCode::Up), key(KeyCode::Char('q'))]);
    let text = "x".repeat(MAX_PASTE + 1000);
    let bytes = [b"\x1b[200~", text.as_bytes(), PASTE_END, b"q"].concat();
    assert_eq!(parse(&[&bytes]), [Event::Paste(text[..MAX_PASTE].to_owned()), key(KeyCode::Char('q'))]);
}

proptest! {
    #[test]
    fn split_input_parses_like_whole_input(bytes: Vec<u8>, cuts in prop::collection::vec(1_usize..20, 1..20)) {
        // Many bytes that start or end sequences.
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

#[test]
fn memory_is_limited() {
    let mut parser = InputParser::default();
    parser.feed(b"\x1b[", |_| ());
    parser.feed(&[b'1'; 1000], |_| ());
    assert!(matches!(&parser.state, State::Csi(parameters) if parameters.len() == MAX_PARAMETERS));
    parser.feed(b"A\x1b[200~", |_| ());
    parser.feed(&[b'a'; MAX_PASTE + 100], |_| ());
    assert!(matches!(&parser.state, State::Paste(bytes) if bytes.len() <= MAX_PASTE + PASTE_END.len()));
}

#[test]
fn answer_that_is_no_colour_leaves_the_background() {
    let mut parser = InputParser::default();
    parser.feed(b"\x1b]11;rgb:ffff/ffff/ffff\x07\x1b]11;rgba:ffff\x07", |_| ());
    assert_eq!(parser.take_background(), Some(IsLight(true)));
}
