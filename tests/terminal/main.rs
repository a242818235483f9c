//! The dashboard in a terminal, on the simulated runtimes of `--demo`.

#![allow(clippy::unwrap_used, reason = "clippy knows tests by their attribute, and not what they call")]

#[path = "../support/mod.rs"]
mod support;

mod input;
mod leaving;
mod looking;
mod recording;
mod unread;

use std::fs;
use std::path::PathBuf;

use support::screen::BACK_TAB;
use support::{Invocation, Screen};

/// The demo's process with the lowest PID, which is first when the table is sorted by PID.
const FIRST: &str = "OrderService 1200";
const SECOND: &str = "PaymentGateway 1237";

fn demo(arguments: &[&str]) -> Invocation {
    Invocation::new([&["--demo"], arguments].concat())
}

/// Opens the demo with the table sorted by PID, and the first process selected.
fn sorted(arguments: &[&str]) -> Screen {
    let screen = demo(arguments).screen(120, 40);
    // Features that depend on the version are not offered until a runtime has reported it.
    screen.wait_until("all versions", |shown| ["9.0.7", "8.0.17", "10.0.0", "6.0.36"].iter().all(|version| shown.contains(version)));
    screen.keys("1");
    screen.wait_for("PID▴");
    screen.keys("g");
    screen.wait_for(FIRST);
    screen
}

/// Types keys and waits for this text.
fn press(screen: &Screen, keys: &str, shows: &str) -> String {
    screen.keys(keys);
    screen.wait_for(shows)
}

/// Returns the recordings in the dashboard's working directory.
fn recordings(screen: &Screen) -> Vec<PathBuf> {
    let files = fs::read_dir(screen.folder()).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.to_str().unwrap().contains(".nettrace")).collect()
}

#[track_caller]
fn assert_complete_recordings(screen: &Screen, count: usize) {
    let files = recordings(screen);
    assert_eq!(files.len(), count, "{files:?}");
    for file in files {
        let stats = Invocation::new(["stats".as_ref(), file.as_os_str(), "--json".as_ref()]).run().json();
        assert_eq!((&stats["complete"], stats["events"].as_u64() > Some(0)), (&true.into(), true), "{}", file.display());
    }
}

/// Waits for the exit, after which the terminal must be restored.
#[track_caller]
fn assert_clean_exit(screen: &mut Screen) {
    let status = screen.wait_exit();
    assert!(status.success(), "{status:?}\n{}", screen.contents());
    screen.assert_restored();
}
