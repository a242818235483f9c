//! Terminal input, split at arbitrary places.

use std::time::{Duration, Instant};

use crate::support::Screen;
use crate::support::screen::{ENTER, ESC};
use crate::{press, sorted};

const WHEEL_DOWN: &str = "\x1b[<65;10;10M";
const WHEEL_UP: &str = "\x1b[<64;10;10M";

/// Far below the time after which something else wakes the program.
const AT_ONCE: Duration = Duration::from_secs(5);

#[track_caller]
fn shows_at_once(screen: &Screen, what: &str, condition: impl Fn(&str) -> bool) {
    if let Err(shown) = screen.try_wait_until(AT_ONCE, condition) {
        panic!("{what} is not on the screen at once:\n{shown}");
    }
}

#[test]
fn key_after_mouse_burst_acts_immediately() {
    for reports in [300, 5000] {
        let screen = sorted(&[]);
        let burst = format!("{}{}", WHEEL_DOWN.repeat(reports / 2), WHEEL_UP.repeat(reports / 2));
        screen.keys(&format!("{burst}?"));
        shows_at_once(&screen, "the help", |shown| shown.contains("The selected process"));
        // A part of a report mistaken for typed text would be in the filter.
        screen.keys(ESC);
        screen.wait_gone("The selected process");
        screen.keys(&format!("/{burst}pay"));
        shows_at_once(&screen, "the filter", |shown| shown.contains("Processes 1 of 9") && shown.contains("/pay "));
    }
}

#[test]
fn large_paste_is_one_text() {
    let screen = sorted(&[]);
    let text = "price".repeat(5000);
    screen.keys(&format!("/\x1b[200~{text}\x1b[201~"));
    shows_at_once(&screen, "no process", |shown| shown.contains("Processes 0 of 9"));
    press(&screen, ESC, "Processes 9 ─");
    screen.keys("/\x1b[200~price\x1b[201~feed");
    shows_at_once(&screen, "the filter", |shown| shown.contains("Processes 1 of 9") && shown.contains("/pricefeed"));
}

#[test]
fn split_escape_sequence_is_not_typed_text() {
    let screen = sorted(&[]);
    press(&screen, "/", "/");
    for _ in 0..20 {
        for piece in ["\x1b[", "<6", "5", ";10;", "10", "M", "\x1b[2", "00~p\x1b[20", "1~", "\x7f"] {
            screen.keys(piece);
            let written = Instant::now();
            // Read together with the next piece, it would prove nothing.
            while written.elapsed() < Duration::from_millis(2) {
                std::thread::yield_now();
            }
        }
    }
    screen.keys(&format!("pay{ENTER}"));
    shows_at_once(&screen, "the filter", |shown| shown.contains("Processes 1 of 9") && shown.contains("/pay "));
}
