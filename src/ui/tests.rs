//! Snapshots of the main states.

pub(crate) mod analysis;
mod events;
pub(crate) mod scenes;
mod terminals;

use std::sync::Arc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Style};

use super::{Theme, view};
use crate::analysis::{Live, ProblemCount, Profile, RecentSnapshot};
use crate::app::action::{Action, Key, KeyMap};
use crate::app::test_app::{TestApp, add_counter, healthy, process, recording};
use crate::app::{Msg, State};
use crate::ipc::RuntimeVersion;
use crate::model::{MethodNameResolution, Outcome, Phase, Process, Recording, RecordingAnalysis, StoppedBy};
use crate::nettrace::ProblemKind;
use scenes::SCENES;

fn scene(name: &str, width: u16, height: u16) -> TestApp {
    let (_, make) = SCENES.iter().find(|(other, _)| *other == name).unwrap();
    make(width, height)
}

fn picture(app: &TestApp, theme: &Theme, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| _ = view(&app.state, theme, frame)).unwrap();
    terminal.backend().buffer().clone()
}

/// Returns the text on the screen.
pub(crate) fn screen(state: &State) -> String {
    let (width, height) = state.size;
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| _ = view(state, &Theme::dark(), frame)).unwrap();
    text(terminal.backend().buffer())
}

fn text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width);
    let lines = buffer.content().chunks(width).map(|cells| {
        let line: String = cells.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Compares a scene with its snapshot.
fn check(name: &str, width: u16, height: u16) {
    insta::assert_snapshot!(format!("{name}-{width}x{height}"), text(&picture(&scene(name, width, height), &Theme::dark(), width, height)));
}

/// Renders the styles as a map: a letter for each, with a legend.
fn styles(buffer: &Buffer) -> String {
    let mut known: Vec<Style> = Vec::new();
    let width = usize::from(buffer.area.width);
    let mut map = String::new();
    for cells in buffer.content().chunks(width) {
        let mut line = String::new();
        for cell in cells {
            let style = Style { underline_color: None, ..cell.style() };
            let index = known.iter().position(|other| *other == style).unwrap_or_else(|| {
                known.push(style);
                known.len() - 1
            });
            let plain = style.fg == Some(Color::Reset) && style.bg == Some(Color::Reset) && style.add_modifier.is_empty();
            line.push(if plain { ' ' } else { char::from(b'a' + index as u8) });
        }
        map.push_str(line.trim_end());
        map.push('\n');
    }
    for (index, style) in known.iter().enumerate() {
        let letter = char::from(b'a' + index as u8);
        map.push_str(&format!("\n{letter}: {:?} on {:?} {:?}", style.fg.unwrap(), style.bg.unwrap(), style.add_modifier));
    }
    map
}

#[test]
fn every_scene_matches_its_snapshot() {
    for (name, _) in SCENES {
        // Scenes about details need more room.
        let (width, height) = match name {
            "environment" | "operations" | "exporting" | "done" | "trouble" => (120, 40),
            _ => (80, 24),
        };
        check(name, width, height);
    }
}

#[test]
fn digits_of_tabs_look_like_keys_only_where_they_open_them() {
    let mut app = scene("table", 120, 40);
    let styles = |app: &TestApp| {
        let buffer = picture(app, &Theme::dark(), 120, 40);
        let found =
            (0..40).find_map(|y| (1..119).find(|x| buffer[(*x, y)].symbol() == "6" && buffer[(*x + 1, y)].symbol() == "T").map(|x| (x, y)));
        let (x, y) = found.unwrap();
        (buffer[(x, y)].style(), buffer[(x + 1, y)].style())
    };
    // They sort the table.
    let (digit, title) = styles(&app);
    assert_eq!(digit, title);
    app.press("⏎");
    let (digit, title) = styles(&app);
    assert_ne!(digit, title);
}

#[test]
fn scenes_at_various_sizes_match_their_snapshots() {
    for (name, width, height) in [
        ("sick-overview", 120, 40),
        ("web-overview", 120, 40),
        ("live-gc", 120, 40),
        ("live-gc", 40, 10),
        ("live-requests", 120, 40),
        ("live-requests", 80, 24),
        ("unwatched-requests", 80, 24),
        ("live-exceptions", 120, 40),
        ("live-threads", 120, 40),
        ("live-compilation", 120, 40),
        ("live-assemblies", 120, 40),
        ("live-threads", 200, 60),
        ("sick-overview", 200, 60),
        ("sick-overview", 40, 10),
        ("table", 120, 40),
        ("table", 200, 60),
        ("table", 40, 10),
        ("sick-recorded", 40, 10),
        ("table", 20, 5),
        ("recording", 120, 40),
        ("recording", 200, 60),
        ("recording", 40, 10),
        ("dump", 40, 10),
        ("container", 120, 40),
        ("operations", 80, 24),
        ("trace-form", 120, 40),
        ("trace-form", 40, 10),
        ("providers", 120, 40),
        ("wrong-answers", 120, 40),
        ("act", 120, 40),
        ("heap", 40, 10),
        ("heap-paths", 160, 50),
        ("heap-difference", 120, 40),
        ("pick-file", 120, 40),
        ("pick-file", 40, 10),
        ("file-part", 40, 10),
        ("compare", 120, 40),
        ("compare", 40, 10),
        ("compare-methods", 120, 40),
        ("requests", 160, 45),
        ("counters", 160, 45),
    ] {
        check(name, width, height);
    }
}

#[test]
fn recording_views_match_their_snapshots() {
    for name in [
        "overview",
        "gc",
        "exceptions",
        "thrown",
        "threads",
        "quiet-threads",
        "methods",
        "tree",
        "flame",
        "zoomed",
        "sampled-threads",
        "one-thread",
        "events",
        "single-events",
        "open-event",
        "logs",
        "requests",
        "compilation",
        "assemblies",
        "slow",
        "stacks",
        "nothing-more",
        "not-recorded",
        "nothing-yet",
        "analyzed",
        "watching",
        "sick",
        "sick-recorded",
        "file",
        "file-part",
        "files",
        "counters",
        "counters-folded",
        "not-watched",
    ] {
        for (width, height) in [(80, 24), (120, 40)] {
            check(name, width, height);
        }
    }
    for (name, width, height) in [("gc", 200, 60), ("gc", 160, 50), ("methods", 40, 10), ("flame", 160, 45), ("single-events", 170, 45)] {
        check(name, width, height);
    }
}

#[test]
fn issue_of_a_recorded_process_is_shown_in_full() {
    let mut app = TestApp::populated(120, 40);
    app.press("w");
    let mut counters = healthy();
    add_counter(&mut counters, "System.Net.Http", "http11-requests-queue-duration").history = vec![(0, 20_000.0); 12];
    app.publish(&[counters.into()]);
    app.press("t");
    let shown = screen(&app.state);
    assert_eq!(app.state.selected().unwrap().word(), "connections");
    assert!(shown.contains(" ◉!connections "), "{shown}");
}

#[test]
fn recording_notes_are_shown() {
    let mut app = scene("recording", 120, 40);
    let notes = ["events include stacks", "did you mean System.Net.Http?"].map(str::to_owned).to_vec();
    app.report(Recording { notes, ..recording(1, 432, Phase::Recording) });
    let shown = text(&picture(&app, &Theme::dark(), 120, 40));
    assert!(shown.contains("Note: events include stacks."), "{shown}");
    assert!(shown.contains("Note: did you mean System.Net.Http? "), "{shown}");
}

/// The other tabs refer to this one.
#[test]
fn problems_of_a_stream_are_described() {
    let mut snapshot = Live::default().snapshot(0);
    snapshot.problems = vec![ProblemCount { kind: ProblemKind::UnknownBlock, count: 1, first: 42 }];
    let analysis =
        RecordingAnalysis { snapshot, events: Vec::new(), recent: RecentSnapshot::default(), profile: Profile::default(), cpu: None };
    let mut app = scene("recording", 120, 40);
    app.report(Recording { analysis: Some(Arc::new(analysis)), ..recording(1, 432, Phase::Recording) });
    let shown = text(&picture(&app, &Theme::dark(), 120, 40));
    assert!(shown.contains("In the stream: an unknown block, which was skipped, at byte 42."), "{shown}");
}

#[test]
fn facts_of_a_recording_stay_within_the_pane() {
    let shown = |width, height| {
        let mut app = scene("recording", width, height);
        let notes = vec!["this note takes more than one line of a narrow pane".to_owned(); 3];
        let names = MethodNameResolution::Requested;
        let facts = Recording { notes, names, unanalyzed: 1, events: 1, ..recording(1, 432, Phase::Recording) };
        app.report(facts);
        text(&picture(&app, &Theme::dark(), width, height))
    };
    let narrow = shown(40, 10);
    assert!(narrow.lines().nth(8).is_some_and(|border| border.starts_with('╰') && !border.contains('/')), "{narrow}");
    let wide = shown(120, 40);
    assert!(wide.contains("1 event arrived too fast to analyze; see the file.") && wide.contains("    1 event ·"), "{wide}");
}

#[test]
fn long_messages_fit_narrow_terminals_and_name_the_configured_key() {
    let mut app = TestApp::populated(40, 20);
    app.state.options.keys = KeyMap::new(vec![(Action::Messages, vec![Key::parse("F9").unwrap()])]).unwrap();
    app.send(Msg::Failed("letters ".repeat(40).into()));
    let shown = text(&picture(&app, &Theme::dark(), 40, 20));
    let lines: Vec<_> = shown.lines().filter(|line| line.contains("letters")).collect();
    assert!(lines.len() > 2 && lines.iter().all(|line| line.ends_with('│')), "{shown}");
    assert!(lines.last().is_some_and(|last| last.contains(" … F9 ")) && shown.contains(" F9 all "), "{shown}");
}

#[test]
fn keys_that_choose_a_recording_are_the_configured_ones() {
    let mut app = TestApp::populated(120, 40);
    let ended = Outcome { stopped_by: StoppedBy::Interrupt, complete: true, file: None, trouble: None };
    for (id, phase) in [(1, Phase::Done(ended)), (2, Phase::Recording)] {
        app.press("t");
        app.report(recording(id, 42, phase));
    }
    app.press("⏎3");
    let shown = |app: &TestApp| text(&picture(app, &Theme::dark(), 120, 40));
    assert!(shown(&app).contains("1 of 2 (j, k)"), "{}", shown(&app));
    let key = |name| vec![Key::parse(name).unwrap()];
    app.state.options.keys = KeyMap::new(vec![(Action::Down, key("F7")), (Action::Up, key("F8"))]).unwrap();
    assert!(shown(&app).contains("1 of 2 (F7, F8)"), "{}", shown(&app));
}

#[test]
fn native_aot_program_is_marked() {
    let shop = |native_aot| Process { native_aot, runtime: Some(RuntimeVersion::new("8.0.33")), ..process(4242, "OrderService") };
    for (native_aot, version, words) in [(true, "AOT 8.0", ".NET 8.0.33 (NativeAOT)"), (false, "8.0.33", ".NET 8.0.33 ")] {
        let mut app = TestApp::new(120, 40);
        app.send(Msg::Processes(vec![shop(native_aot)]));
        let shown = text(&picture(&app, &Theme::dark(), 120, 40));
        let row = shown.lines().find(|line| line.contains("OrderService")).unwrap();
        assert!(row.contains(version) && shown.contains(words), "{shown}");
    }
    // NativeAOT sends no samples, so recording them is useless.
    let mut app = scene("not-recorded", 120, 40);
    app.send(Msg::Processes(vec![shop(true)]));
    app.press("7");
    let shown = text(&picture(&app, &Theme::dark(), 120, 40));
    assert!(shown.contains("a NativeAOT program sends no samples of its threads; `perf record -g -p 4242`"), "{shown}");
}

#[test]
fn ascii_scenes_match_their_snapshots() {
    for name in ["table", "recording", "dump", "environment", "flame"] {
        insta::assert_snapshot!(format!("{name}-ascii"), text(&picture(&scene(name, 80, 24), &Theme::dark().ascii(), 80, 24)));
    }
}

#[test]
fn theme_styles_match_their_snapshots() {
    for name in Theme::NAMES {
        let theme = Theme::named(name).unwrap();
        insta::assert_snapshot!(format!("styles-{name}"), styles(&picture(&scene("recording", 80, 24), &theme, 80, 24)));
    }
    assert!(Theme::named("unheard of").is_none());
}

/// One screen of every tab, of a pick list and of filter matches, with the styles.
#[test]
fn tab_styles_match_their_snapshots() {
    for (name, keys) in [
        ("first", ""),
        ("environment", ""),
        ("recording", ""),
        ("gc", ""),
        ("exceptions", ""),
        ("exceptions", "/invalid⏎"),
        ("threads", ""),
        ("methods", ""),
        ("tree", "/price⏎"),
        ("flame", ""),
        ("events", ""),
        ("single-events", ""),
        ("counters", ""),
        ("requests", ""),
        ("logs", ""),
        ("compilation", ""),
        ("assemblies", ""),
        ("operations", ""),
        ("filtered", ""),
        ("profiles", "/gc⏎"),
        ("dump", ""),
        ("slow", ""),
        ("stacks", ""),
        ("heap-paths", ""),
        ("heap-difference", ""),
        ("compare", ""),
    ] {
        let mut app = scene(name, 80, 24);
        app.press(keys);
        let buffer = picture(&app, &Theme::dark(), 80, 24);
        let filtered = if keys.is_empty() { "" } else { "-filtered" };
        insta::assert_snapshot!(format!("style-{name}{filtered}"), format!("{}\n\n{}", text(&buffer), styles(&buffer)));
    }
}

#[test]
fn help_text_is_not_truncated() {
    for (width, height) in [(80, 24), (120, 40), (60, 20)] {
        let mut app = TestApp::populated(width, height);
        app.press("?");
        let area = app.state.layout().reader();
        for _ in 0..20 {
            let picture = picture(&app, &Theme::dark(), width, height);
            let cut = area.positions().find(|place| picture[*place].symbol() == "…");
            assert_eq!(cut, None, "{}", text(&picture));
            app.press("⌃f");
        }
        let last = text(&picture(&app, &Theme::dark(), width, height));
        assert!(last.contains("trouble "), "{last}");
    }
}

#[test]
fn secrets_are_masked_on_screen() {
    for (width, height) in [(60, 20), (80, 24), (200, 60)] {
        let mut app = scene("environment", width, height);
        let shown = |app: &TestApp| text(&picture(app, &Theme::dark(), width, height));
        // Everything is masked at first, and search matches reveal nothing.
        assert!(!shown(&app).contains("Server=db") && !shown(&app).contains("sk-live"));
        app.press("/hunter⏎");
        assert!(shown(&app).contains("0 of 8 variables"), "{}", shown(&app));
        // Only the selected one is revealed.
        app.press("/⎋/main⏎v/⎋");
        assert!(shown(&app).contains("Server=db") && !shown(&app).contains("sk-live"));
    }
}

#[test]
fn hostile_text_does_not_inflate_the_output() {
    let bytes = |name: &str| {
        let mut app = TestApp::new(120, 40);
        let process = crate::app::test_app::process(42, name);
        app.send(crate::app::Msg::Processes(vec![crate::model::Process { command_line: format!("dotnet {name}").into(), ..process }]));
        let buffer = picture(&app, &Theme::dark(), 120, 40);
        let is_small = |symbol: &str| symbol.len() <= 64 * ratatui::text::Span::raw(symbol).width();
        assert!(buffer.content().iter().all(|cell| is_small(cell.symbol())), "{:?}", name.chars().take(9).collect::<String>());
        buffer.content().iter().map(|cell| cell.symbol().len()).sum::<usize>()
    };
    let usual = bytes("OrderService.Of.The.Usual.Length");
    for hostile in ["a\u{301}", "\u{301}", "👩\u{200d}", "👩🏻\u{200d}", "\u{1100}", "\u{600}", "क\u{94d}", "日", "x "] {
        for name in [hostile.repeat(10_000), format!("a{}", hostile.repeat(40_000))] {
            let bytes = bytes(&name);
            // Allows for one line of the name in which every cell holds the maximum.
            assert!(bytes < usual + 12_000, "{bytes} bytes for {hostile:?}, {usual} for a usual name");
        }
    }
}
