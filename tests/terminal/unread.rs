//! A terminal whose output is not read.

use std::time::Duration;

use crate::support::screen::ctrl;
use crate::support::{PATIENCE, Signal, poll};
use crate::{assert_left, assert_only_whole, press, sorted};

#[test]
fn signals_end_the_program_and_finish_recordings() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut screen = sorted(&[]);
        press(&screen, "t", "◉ recording");
        screen.wait_for(" events");
        screen.clog(&ctrl('l'));
        screen.signal(signal);
        assert_left(&mut screen);
        assert_only_whole(&screen, 1);
    }
}

#[test]
fn keys_act_and_the_picture_is_whole_once_it_is_read_again() {
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
    let before = poll(PATIENCE, picture).expect("a picture that stands still");
    screen.clog(&ctrl('l'));
    screen.keys("?");
    screen.resize(140, 40);
    screen.unclog();
    screen.wait_for("The selected process");
    screen.resize(120, 40);
    screen.keys("?");
    let same = poll(PATIENCE, || (lines(&screen.contents()) == before).then_some(()));
    let after = lines(&screen.contents());
    assert!(same.is_some(), "{:#?}", before.iter().zip(&after).filter(|(before, after)| before != after).collect::<Vec<_>>());

    // Quitting works as well.
    screen.clog(&ctrl('l'));
    screen.keys("q");
    assert_left(&mut screen);
}

#[test]
fn a_core_dump_is_not_held_back() {
    let mut screen = sorted(&[]);
    screen.clog(&ctrl('l'));
    screen.signal(Signal::QUIT);
    assert!(!screen.wait_exit().success());
    screen.assert_restored();
}
