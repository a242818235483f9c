//! A terminal whose output is not read.

use std::time::Duration;

use crate::support::screen::ctrl;
use crate::support::{Signal, TIMEOUT, poll};
use crate::{assert_clean_exit, assert_complete_recordings, press, sorted};

#[test]
fn signals_end_the_program_and_finish_recordings() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut screen = sorted(&[]);
        press(&screen, "t", "◉ recording");
        screen.wait_for(" events");
        screen.block_output(&ctrl('l'));
        screen.signal(signal);
        assert_clean_exit(&mut screen);
        assert_complete_recordings(&screen, 1);
    }
}

#[test]
fn screen_is_complete_after_terminal_unblocks() {
    let mut screen = sorted(&[]);
    press(&screen, " ", "PAUSED");
    // Everything except the time since the pause.
    let lines =
        |shown: &str| shown.lines().filter(|line| !line.contains("PAUSED")).map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    let picture = || {
        let shown = lines(&screen.contents());
        std::thread::sleep(Duration::from_millis(300));
        (lines(&screen.contents()) == shown).then_some(shown)
    };
    let before = poll(TIMEOUT, picture).expect("a picture that stands still");
    screen.block_output(&ctrl('l'));
    screen.keys("?");
    screen.resize(140, 40);
    screen.unblock_output();
    screen.wait_for("The selected process");
    screen.resize(120, 40);
    screen.keys("?");
    let same = poll(TIMEOUT, || (lines(&screen.contents()) == before).then_some(()));
    let after = lines(&screen.contents());
    assert!(same.is_some(), "{:#?}", before.iter().zip(&after).filter(|(before, after)| before != after).collect::<Vec<_>>());

    // Quitting works as well.
    screen.block_output(&ctrl('l'));
    screen.keys("q");
    assert_clean_exit(&mut screen);
}

#[test]
fn core_dump_is_not_blocked() {
    let mut screen = sorted(&[]);
    screen.block_output(&ctrl('l'));
    screen.signal(Signal::QUIT);
    assert!(!screen.wait_exit().success());
    screen.assert_restored();
}
