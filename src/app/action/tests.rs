use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;
use crate::app::Tab;
use crate::app::test_app::{TestApp, sample_processes};
use crate::model::{Process, RunState};

#[test]
fn no_key_is_bound_twice_in_one_context() {
    for context in Context::ALL {
        let mut taken: Vec<(Key, Action)> = Vec::new();
        for entry in TABLE.iter().filter(|entry| entry.places.contains(context)) {
            for key in entry.keys {
                let other = taken.iter().find(|(other, _)| other == key);
                assert!(other.is_none(), "{context:?}: {key:?} is {:?} and {other:?}", entry.action);
                taken.push((*key, entry.action));
            }
        }
    }
}

#[test]
fn letters_are_not_bound_in_text_contexts() {
    for context in Context::ALL.into_iter().filter(|context| context.is_text()) {
        for c in ' '..='~' {
            assert_eq!(KeyMap::default().lookup(context, &KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)), None, "{context:?} {c:?}");
        }
    }
}

#[test]
fn ctrl_c_and_esc_work_in_every_context() {
    for context in Context::ALL {
        assert_eq!(
            KeyMap::default().lookup(context, &KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)),
            Some(Action::Interrupt),
            "{context:?}"
        );
        if context != Context::Ending {
            let escape = KeyMap::default().lookup(context, &KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE));
            assert!(matches!(escape, Some(Action::Back | Action::Cancel)), "{context:?}: {escape:?}");
        }
    }
}

#[test]
fn keys_match_as_terminals_send_them() {
    let event = |code, modifiers| KeyEvent::new(code, modifiers);
    for (key, code, modifiers, matches) in [
        (Key::Plain(KeyCode::Char('T')), KeyCode::Char('T'), KeyModifiers::SHIFT, true),
        (Key::Plain(KeyCode::Char('T')), KeyCode::Char('T'), KeyModifiers::NONE, true),
        (Key::Plain(KeyCode::Char('t')), KeyCode::Char('T'), KeyModifiers::SHIFT, false),
        (Key::Plain(KeyCode::Char('t')), KeyCode::Char('t'), KeyModifiers::ALT, false),
        (Key::Plain(KeyCode::Char('t')), KeyCode::Char('t'), KeyModifiers::CONTROL, false),
        (Key::Plain(KeyCode::BackTab), KeyCode::BackTab, KeyModifiers::SHIFT, true),
        (Key::Ctrl('c'), KeyCode::Char('c'), KeyModifiers::CONTROL, true),
        (Key::Ctrl('c'), KeyCode::Char('C'), KeyModifiers::CONTROL.union(KeyModifiers::SHIFT), true),
        (Key::Ctrl('c'), KeyCode::Char('c'), KeyModifiers::NONE, false),
        (Key::Digit, KeyCode::Char('7'), KeyModifiers::NONE, true),
        (Key::Digit, KeyCode::Char('x'), KeyModifiers::NONE, false),
    ] {
        assert_eq!(key.matches(&event(code, modifiers)), matches, "{key:?} {code:?} {modifiers:?}");
    }
}

#[test]
fn every_action_table_entry_is_well_formed() {
    for entry in &TABLE {
        assert!(entry.help.ends_with('.') && entry.help.chars().next().is_some_and(char::is_uppercase), "{}", entry.help);
        assert!(entry.label.len() <= 14, "{}", entry.label);
        // An action without a key is in the actions menu and the palette.
        assert!(!entry.keys.is_empty() || crate::app::Pick::ACTIONS.contains(&entry.action), "{}", entry.label);
        assert!(entry.hint == 0 || !entry.keys.is_empty(), "{}", entry.label);
        // The mouse hit test and the view measure hints alike because no hint contains an arrow.
        assert!(entry.hint == 0 || entry.keys[0].name(false) == entry.keys[0].name(true), "{}", entry.label);
    }
}

#[test]
fn key_hints_fit_the_width_and_end_with_help() {
    for width in [0, 1, 10, 40, 80, 200] {
        let app = TestApp::populated(width.max(40), 24);
        let hints = app.state.hints(width);
        assert!(hints.iter().all(|hint| hint.x + hint.width < width.max(1)), "{hints:?}");
        assert!(hints.windows(2).all(|pair| pair[0].x + pair[0].width < pair[1].x));
        if width >= 40 {
            assert_eq!(hints.last().map(|hint| hint.action), Some(Action::Help));
        }
    }
}

/// The hints alone lead to the process in trouble and into its details, even at the usual terminal size.
#[test]
fn key_hints_at_80_columns_cover_the_main_actions() {
    let mut app = TestApp::populated(80, 24);
    let hints =
        |app: &TestApp, width| -> Vec<_> { app.state.hints(width).iter().map(|hint| format!("{} {}", hint.key, hint.label)).collect() };
    let lacks = |app: &TestApp, wanted: &[&str]| {
        let hints = hints(app, 80);
        wanted.iter().filter(|wanted| !hints.iter().any(|hint| hint == **wanted)).map(|lacking| (*lacking).to_owned()).collect::<Vec<_>>()
    };
    let nothing = Vec::<String>::new();
    assert_eq!(lacks(&app, &["t trace", "Enter details", "Tab tabs", "w watch", "/ filter"]), nothing);
    for (keys, what) in [("⏎", "t trace"), ("7", "t trace"), ("t", "t stop")] {
        app.press(keys);
        assert_eq!(lacks(&app, &[what, "Esc back", "Tab tabs"]), nothing, "after {keys}");
    }
    // Without their key, these tabs are empty.
    for (tab, key) in [(Tab::Slowdown, "F why slow"), (Tab::Stacks, "D stacks"), (Tab::Heap, "M heap")] {
        app.state.tab = tab;
        assert_eq!(lacks(&app, &[key, "Esc back", "Tab tabs"]), nothing, "{tab:?}");
    }
    app.press("T");
    assert_eq!(lacks(&app, &["Enter record", "Space pick", "Esc cancel"]), nothing);
    // On a wider terminal.
    app.press("⎋⎋");
    assert!(hints(&app, 120).contains(&"W watch all".to_owned()));
    app.press("W");
    assert!(hints(&app, 120).contains(&"W watch none".to_owned()));
}

#[test]
fn readonly_refuses_changes_with_a_reason() {
    let mut app = TestApp::with(crate::app::Options { readonly: true, ..crate::app::test_app::options() }, 120, 40);
    app.send(crate::app::Msg::Processes(sample_processes()));
    for entry in TABLE.iter().filter(|entry| entry.changes) {
        assert!(matches!(entry.status(&app.state), Status::Refused(reason) if reason.contains("--readonly")), "{}", entry.label);
    }
    app.press("t d p T w W");
    assert_eq!(app.take_effects(), []);
    assert!(app.state.overlay.is_none());
    // No view advises a key that is refused.
    let notice = |app: &TestApp| app.state.overview().unwrap().notice.map(|(text, _)| text);
    assert_eq!(notice(&app).as_deref(), Some("Not watched: dn-top was started with --readonly. --watch selected allows it."));
    let first = app.state.list.selected().unwrap();
    let is_suspended = |process: &Process| process.run_state == RunState::Suspended;
    app.state.list.select(sample_processes().iter().find(|process| is_suspended(process)).unwrap().key);
    assert_eq!(notice(&app).as_deref(), Some("Suspended at startup."));
    app.state.list.select(first);
    app.press("⏎6");
    let view = app.state.view_of(crate::app::Tab::Threads).unwrap();
    assert_eq!(view.heading.unwrap().into_iter().flatten().map(|(text, _)| text).collect::<String>(), "not watched (--readonly)");
    assert_eq!(view.head.len(), 1, "no key to sample threads");
}
