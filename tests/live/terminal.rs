//! The test terminal itself: it displays output, types, resizes, and detects what a program leaves behind.

use std::time::Duration;

use crate::support::{Invocation, Screen, Signal, picture, screen};

fn shell(script: &str) -> Screen {
    Invocation::of("sh", ["-c", script]).screen(40, 10)
}

#[test]
fn screen_shows_output_and_sends_keys() {
    let mut terminal = shell(r#"printf 'name? '; read name; printf '\033[3;5Hgood evening, %s' "$name"; read end; exit 7"#);
    terminal.wait_for("name?");
    terminal.keys("Ada");
    terminal.keys(screen::ENTER);
    terminal.wait_for("\n    good evening, Ada");
    terminal.keys(screen::ENTER);
    assert_eq!(terminal.wait_exit().exit_code(), 7);
    terminal.assert_restored();
    assert!(terminal.bytes() > 20);
}

#[test]
fn terminal_reports_size_and_cursor_position() {
    let terminal = shell("trap 'stty size' WINCH; stty size; while :; do sleep 0.02; done");
    terminal.wait_for("10 40");
    terminal.resize(60, 20);
    terminal.wait_for("20 60");
    let terminal = shell(r"stty raw -echo; printf '\033[4;9H\033[6n'; dd bs=1 count=6 2>/dev/null | od -c");
    terminal.wait_for("[   4   ;   9   R");
}

#[test]
fn termination_by_signal_differs_from_exit() {
    let mut terminal = shell("echo up; sleep 60");
    terminal.wait_for("up");
    terminal.signal(Signal::TERM);
    assert!(terminal.wait_exit().signal().is_some());
}

#[test]
fn waiting_for_missing_text_times_out() {
    let terminal = shell("echo here; sleep 60");
    terminal.wait_for("here");
    let shown = terminal.try_wait_until(Duration::from_millis(50), |shown| shown.contains("elsewhere"));
    assert_eq!(shown.unwrap_err().trim_end(), "here");
}

#[test]
fn unrestored_terminal_is_detected() {
    for left in [
        r"printf '\033[?1049h'",
        r"printf '\033[?25l'",
        r"printf '\033[?1004h'",
        r"printf '\033[?1000h'",
        r"printf '\033[>1u'",
        r"printf '\033[7m'",
        "stty raw",
    ] {
        let mut terminal = shell(left);
        assert!(terminal.wait_exit().success());
        let noticed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| terminal.assert_restored()));
        assert!(noticed.is_err(), "{left}");
    }
    let mut terminal =
        shell(r"printf '\033[?1049;1004;2026h\033[?25l\033[>1u\033[31m'; printf '\033[0m\033[<u\033[?25h\033[?1049;1004;2026l'");
    assert!(terminal.wait_exit().success());
    terminal.assert_restored();
}

#[test]
fn the_clipboard_is_read() {
    let terminal = shell(r"printf '\033]52;c;aGVsbG8=\007'; echo put; sleep 60");
    terminal.wait_for("put");
    assert_eq!(terminal.clipboard(), ["aGVsbG8="]);
}

#[test]
fn run_without_terminal_captures_streams_and_exit_code() {
    let output = Invocation::of("sh", ["-c", "echo \"$GREETING\"; echo oops >&2; test -t 1 || exit 3"]).env("GREETING", "hi").run();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str(), output.code), ("hi\n", "oops\n", 3));
    let mut running = Invocation::of("sleep", ["60"]).start();
    assert!(running.is_alive());
    // Not SIGINT: children of tests that run in the background ignore it.
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code, 143);
}

#[test]
fn svg_has_letters_colors_and_lines() {
    let terminal = shell(r"printf '\033[1;31mred <\033[0m \033[44m \033[0m─⣿'; sleep 60");
    terminal.wait_for("⣿");
    let svg = picture::svg(&terminal.styled());
    let drawn = ["font-weight=\"bold\">red &lt;</text>", "fill=\"#cd3131\"", "fill=\"#3b8eea\"", "<path", "</svg>"];
    drawn.iter().for_each(|part| assert!(svg.contains(part), "{part} is not in {svg}"));
    let dots = svg.lines().find(|line| line.contains("class=\"d\"")).unwrap();
    assert_eq!(dots.matches("h0").count(), 8, "{dots}");
}
