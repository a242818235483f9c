//! Quitting and suspending the dashboard.

use std::fs;

use crate::support::screen::{ENTER, ESC, RIGHT, ctrl};
use crate::support::{Invocation, PATIENCE, Signal, folder, poll, send};
use crate::{assert_left, assert_only_whole, demo, press, recordings, sorted};

#[test]
fn every_way_out_gives_the_terminal_back() {
    for leave in ["q", "\x03"] {
        let mut screen = sorted(&[]);
        screen.keys(leave);
        assert_left(&mut screen);
        assert_eq!(fs::read_dir(screen.folder()).unwrap().count(), 0, "the demo's folder is left behind");
    }
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut screen = sorted(&[]);
        press(&screen, "t", "◉ recording");
        screen.wait_for(" events");
        screen.signal(signal);
        assert_left(&mut screen);
        assert_only_whole(&screen, 1);
    }
}

#[test]
fn a_signal_that_dumps_core_gives_the_terminal_back_and_then_does_so() {
    for (signal, name) in [(Signal::QUIT, "Quit"), (Signal::ABORT, "Aborted")] {
        let mut screen = sorted(&[]);
        screen.signal(signal);
        assert_eq!(screen.wait_exit().signal(), Some(name), "{}", screen.contents());
        screen.assert_restored();
    }
}

#[test]
fn a_terminal_that_goes_away_is_left_quietly() {
    let without_signal = ["-c", r#"trap '' HUP; "$0" --demo; true"#, env!("CARGO_BIN_EXE_dn-top")];
    for dashboard in [demo(&[]), Invocation::of("sh", without_signal)] {
        let place = folder();
        dashboard.current_dir(place.path()).env("TMPDIR", place.path()).lose_terminal_at("OrderService");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "the demo's folder is left behind");
    }
}

#[test]
fn leaving_while_recording_asks() {
    let mut screen = sorted(&[]);
    press(&screen, "t", "◉ recording");
    press(&screen, "q", "A recording is in progress.");
    screen.keys(ESC);
    screen.wait_gone("A recording is in progress.");
    press(&screen, "q", "A recording is in progress.");
    // Cancel has the focus.
    screen.keys(ENTER);
    screen.wait_gone("A recording is in progress.");
    press(&screen, "q", "Stop and finish");
    screen.keys(&[RIGHT, ENTER].concat());
    assert_left(&mut screen);
    assert_only_whole(&screen, 1);
    assert!(screen.contents().contains(recordings(&screen)[0].to_str().unwrap()), "{}", screen.contents());

    // Pressing Ctrl-C twice does the same, whatever is shown.
    let mut screen = sorted(&[]);
    press(&screen, "t", "◉ recording");
    screen.keys(&ctrl('c'));
    screen.wait_for("Stop and finish");
    screen.keys(&ctrl('c'));
    assert_left(&mut screen);
    assert_only_whole(&screen, 1);
}

#[test]
fn a_recording_can_be_kept_when_the_dashboard_goes() {
    for end in [None, Some(Signal::TERM)] {
        let mut screen = sorted(&[]);
        press(&screen, "t", "◉ recording");
        press(&screen, "q", "Keep recording");
        screen.keys(&[RIGHT, RIGHT, ENTER].concat());
        screen.wait_for("dn-top: 1 recording continues until Ctrl-C");
        screen.assert_restored();
        match end {
            None => screen.keys(&ctrl('c')),
            Some(signal) => screen.signal(signal),
        }
        assert_left(&mut screen);
        assert_only_whole(&screen, 1);
        assert!(screen.contents().contains(" events"), "{}", screen.contents());
    }
}

#[test]
fn the_shell_gets_the_terminal_meanwhile() {
    let shell = Invocation::of("bash", ["--norc", "-i"]).env("PS1", "prompt> ").screen(120, 40);
    shell.wait_for("prompt> ");
    shell.keys(&format!("'{}' --demo\r", env!("CARGO_BIN_EXE_dn-top")));
    shell.wait_for("OrderService");
    shell.keys(&ctrl('z'));
    shell.wait_for("Stopped");
    shell.assert_restored_to_a_shell();
    shell.wait_until("its prompt", |shown| shown.matches("prompt> ").count() == 2);
    press(&shell, "echo $((40 + 2)) times\r", "42 times");
    press(&shell, "fg\r", "OrderService");
    press(&shell, "1", "PID▴");
    shell.keys("q");
    shell.wait_gone("PID▴");
    shell.wait_for("prompt> ");
    shell.assert_restored_to_a_shell();
}

#[test]
fn who_stops_it_gets_the_terminal_and_keys_act_when_it_goes_on() {
    for signal in [Signal::TSTP, Signal::STOP] {
        let shell = Invocation::of("bash", ["--norc", "-i"]).env("PS1", "prompt> ").screen(120, 40);
        shell.wait_for("prompt> ");
        shell.keys(&format!("'{}' --demo\r", env!("CARGO_BIN_EXE_dn-top")));
        shell.wait_for("OrderService");
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", shell.pid())).unwrap();
        send(children.trim().parse().unwrap(), signal);
        shell.wait_for("Stopped");
        if signal == Signal::TSTP {
            shell.assert_restored_to_a_shell();
        }
        press(&shell, "echo $((40 + 2)) times\r", "42 times");
        press(&shell, "fg\r", "Processes 9");
        press(&shell, "1", "PID▴");
        shell.keys("q");
        // Until it exits, the dashboard reads what is typed.
        shell.wait_until("a prompt", |shown| shown.trim_end().ends_with("prompt>"));
        press(&shell, "echo $((40 + 3)) times\r", "43 times");
        shell.assert_restored_to_a_shell();
    }
}

#[test]
fn a_stopped_and_continued_dashboard_draws_itself_again() {
    let screen = sorted(&[]);
    screen.signal(Signal::STOP);
    let stopped = || fs::read_to_string(format!("/proc/{}/stat", screen.pid())).is_ok_and(|stat| stat.contains(") T "));
    poll(PATIENCE, || stopped().then_some(())).unwrap();
    screen.signal(Signal::CONT);
    press(&screen, "?", "The selected process");
}
