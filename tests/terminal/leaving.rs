//! Quitting and suspending the dashboard.

use std::fs;

use crate::support::screen::{ENTER, ESC, RIGHT, ctrl};
use crate::support::{Invocation, Signal, TIMEOUT, folder, poll, send};
use crate::{assert_clean_exit, assert_complete_recordings, demo, press, recordings, sorted};

#[test]
fn every_exit_restores_terminal() {
    for leave in ["q", "\x03"] {
        let mut screen = sorted(&[]);
        screen.keys(leave);
        assert_clean_exit(&mut screen);
        assert_eq!(fs::read_dir(screen.folder()).unwrap().count(), 0, "the demo's folder is left behind");
    }
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut screen = sorted(&[]);
        press(&screen, "t", "◉ recording");
        screen.wait_for(" events");
        screen.signal(signal);
        assert_clean_exit(&mut screen);
        assert_complete_recordings(&screen, 1);
    }
}

#[test]
fn core_dumping_signal_restores_terminal_first() {
    for (signal, name) in [(Signal::QUIT, "Quit"), (Signal::ABORT, "Aborted")] {
        let mut screen = sorted(&[]);
        screen.signal(signal);
        assert_eq!(screen.wait_exit().signal(), Some(name), "{}", screen.contents());
        screen.assert_restored();
    }
}

#[test]
fn terminal_hangup_exits_cleanly() {
    let without_signal = ["-c", r#"trap '' HUP; "$0" --demo; true"#, env!("CARGO_BIN_EXE_dn-top")];
    for dashboard in [demo(&[]), Invocation::of("sh", without_signal)] {
        let place = folder();
        dashboard.current_dir(place.path()).env("TMPDIR", place.path()).close_terminal_at("OrderService");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "the demo's folder is left behind");
    }
}

#[test]
fn quitting_while_recording_asks() {
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
    assert_clean_exit(&mut screen);
    assert_complete_recordings(&screen, 1);
    assert!(screen.contents().contains(recordings(&screen)[0].to_str().unwrap()), "{}", screen.contents());

    // Pressing Ctrl-C twice does the same, whatever is shown.
    let mut screen = sorted(&[]);
    press(&screen, "t", "◉ recording");
    screen.keys(&ctrl('c'));
    screen.wait_for("Stop and finish");
    screen.keys(&ctrl('c'));
    assert_clean_exit(&mut screen);
    assert_complete_recordings(&screen, 1);
}

#[test]
fn recording_can_continue_after_dashboard_exits() {
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
        assert_clean_exit(&mut screen);
        assert_complete_recordings(&screen, 1);
        assert!(screen.contents().contains(" events"), "{}", screen.contents());
    }
}

#[test]
fn ctrl_z_suspends_dashboard_and_restores_terminal() {
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
fn stop_signal_restores_terminal_and_fg_resumes() {
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
fn continued_dashboard_redraws() {
    let screen = sorted(&[]);
    screen.signal(Signal::STOP);
    let stopped = || fs::read_to_string(format!("/proc/{}/stat", screen.pid())).is_ok_and(|stat| stat.contains(") T "));
    poll(TIMEOUT, || stopped().then_some(())).unwrap();
    screen.signal(Signal::CONT);
    press(&screen, "?", "The selected process");
}
