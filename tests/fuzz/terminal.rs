//! Terminal input and output.

use std::time::Duration;

use crossterm::event::Event;
use dn_top::app::{Effect, Msg, Now, Options, State, update};
use dn_top::ipc::RuntimeVersion;
use dn_top::model::{Contact, Process, ProcessKey, RunState, SafeText, Usage, newest_lines, sanitize};
use dn_top::tui::InputParser;
use dn_top::ui::{Theme, view};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

/// The bytes are external text. The displayed text has no control characters, sanitizing it again changes nothing, and no cell holds much of it.
pub(crate) fn text(bytes: &[u8]) {
    let safe = SafeText::from_bytes(bytes);
    assert!(!safe.contains(char::is_control), "{safe:?}");
    assert_eq!(sanitize(&safe), safe.as_str(), "safe text is left alone");
    for line in newest_lines(bytes) {
        assert!(!line.contains(char::is_control), "{line:?}");
    }
    let mut buffer = Buffer::empty(Rect::new(0, 0, 500, 1));
    // As drawn: only the start of an endless text is used.
    buffer.set_string(0, 0, safe.chars().take(8000).collect::<String>(), Style::new());
    for symbol in buffer.content().iter().map(|cell| cell.symbol()) {
        assert!(symbol.len() <= 64 * Span::raw(symbol).width(), "{symbol:?} in one place");
    }
}

/// The bytes are terminal input to a dashboard in read-only mode (`--readonly`). Parsing is independent of chunking; whatever is typed, a
/// frame is drawn, and no process is changed. Bytes that occur in no text stand for other messages.
pub(crate) fn keys(bytes: &[u8]) {
    let options = Options { readonly: true, searched: vec!["/tmp".to_owned()], ..Options::default() };
    let mut now = Now::default();
    let mut state = State::new(options, (120, 40), now);
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
    let (mut parser, mut byte_by_byte) = (InputParser::default(), InputParser::default());
    update(&mut state, Msg::Processes((1..=9).map(process).collect()), now);
    for piece in bytes.split_inclusive(|byte| *byte >= 0xf8) {
        let (mut typed, mut same) = (Vec::new(), Vec::new());
        parser.feed(piece, |event| typed.push(event));
        piece.chunks(1).for_each(|byte| byte_by_byte.feed(byte, |event| same.push(event)));
        assert_eq!(typed, same, "cut in pieces");
        assert_eq!(parser.timeout(), byte_by_byte.timeout());
        if piece.ends_with(&[0xff]) {
            parser.time_out(|event| typed.push(event));
            byte_by_byte.time_out(drop);
        }
        let typed = typed.into_iter().filter_map(|event| match event {
            Event::Key(key) => Some(Msg::Key(key)),
            Event::Mouse(mouse) => Some(Msg::Mouse(mouse)),
            Event::Paste(text) => Some(Msg::Paste(text)),
            _ => None,
        });
        let happens = match piece.last() {
            Some(0xfe) => Some(Msg::Processes((1..=u32::from(piece[0] % 12)).map(process).collect())),
            Some(0xfd) => Some(Msg::Resize(u16::from(piece[0]), u16::from(piece.len() as u8))),
            Some(0xfc) => Some(Msg::Failed(SafeText::from_bytes(piece))),
            Some(0xfb) => Some(Msg::Terminate),
            _ => Some(Msg::Tick),
        };
        for msg in typed.chain(happens) {
            for effect in update(&mut state, msg, now) {
                let looks = matches!(
                    effect,
                    Effect::Refresh
                        | Effect::ReadEnvironment { .. }
                        | Effect::CheckTracepoints { .. }
                        | Effect::FilterEvents { .. }
                        | Effect::ListThreads { .. }
                        | Effect::FindFiles { .. }
                        | Effect::FindFreeName { .. }
                        | Effect::FindFreeSpace { .. }
                        | Effect::ReadLog
                        | Effect::Unwatch { .. }
                        | Effect::Copy { .. }
                        | Effect::Redraw
                        | Effect::Suspend
                        | Effect::Quit { .. }
                );
                assert!(looks, "{effect:?}");
            }
            now.elapsed += Duration::from_millis(700);
            now.unix_ms += 700;
        }
    }
    terminal.draw(|frame| _ = view(&state, &Theme::dark(), frame)).unwrap();
}

fn process(pid: u32) -> Process {
    Process {
        name: format!("Service{pid}").into(),
        runtime: Some(RuntimeVersion::new(["9.0.7", "8.0.17", "3.1.23"][pid as usize % 3])),
        command_line: "dotnet service.dll".into(),
        socket: Some("/tmp/socket".into()),
        on_port: pid == 2,
        usage: Usage { cpu_percent: Some(pid.into()), rss_bytes: 1 << pid, threads: pid, ..Usage::default() },
        run_state: if pid == 3 { RunState::Suspended } else { RunState::Running },
        contact: Contact::Ok,
        ..Process::new(ProcessKey { pid, started: 1 })
    }
}
