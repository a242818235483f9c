//! The dashboard in a terminal, with one process of each runtime at the same time.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::runtimes::{self, Runtime};
use crate::support::screen::{ENTER, ESC};
use crate::support::{Invocation, Program, Screen, TIMEOUT, is_recording, poll};
use crate::trace::stats;

/// One of the processes, and its title on the screen.
struct Subject {
    runtime: Runtime,
    program: Program,
}

impl Subject {
    fn start(runtime: Runtime) -> Self {
        let program = runtime.any().env("GREETER_TOKEN", "hush").start();
        Self { runtime, program }
    }

    fn is(&self, major: u32) -> bool {
        self.runtime.major() == major
    }

    /// Title of the details when it is selected.
    fn title(&self) -> String {
        format!("{} {}", self.runtime.name_of("work"), self.program.pid())
    }

    /// Selects the process with the palette, whatever has the focus, and focuses the table.
    fn select(&self, screen: &Screen) {
        screen.keys(&format!(":{}", self.title()));
        screen.wait_for(&format!("({})", self.program.pid()));
        screen.keys(ENTER);
        screen.wait_for(&format!(" {} ─", self.title()));
    }

    /// Returns the recording of this process in the folder.
    fn recording(&self, screen: &Screen) -> Option<PathBuf> {
        let pid = format!("_{}_", self.program.pid());
        let mut files = fs::read_dir(screen.folder()).unwrap().map(|entry| entry.unwrap().path());
        files.find(|file| is_recording(file) && file.to_str().unwrap().contains(&pid))
    }
}

#[test]
fn dashboard_inspects_records_and_dumps_every_runtime() {
    let subjects: Vec<_> = runtimes::all().into_iter().map(Subject::start).collect();
    if subjects.is_empty() {
        return;
    }
    // Programs of other tests are listed as well: none is watched unless requested.
    let mut screen = Invocation::new(["--watch", "never"]).screen(120, 40);
    screen.wait_for("COMMAND");
    for subject in &subjects {
        subject.select(&screen);
        screen.keys(ENTER);
        screen.keys("1");
        screen.wait_for(subject.runtime.version);
        screen.wait_for("Capabilities");
        screen.keys("e");
        let shown = screen.wait_for("GREETER_TOKEN");
        assert!(!shown.contains("hush"), "a secret is shown unasked");
        assert_eq!(shown.contains("values at the start of the process"), subject.is(3), "{shown}");
        // The search text is kept from process to process.
        if !shown.contains("/GREETER") {
            screen.keys("/GREETER");
            screen.wait_for("1 of ");
            screen.keys(ENTER);
        }
        screen.keys("v");
        screen.wait_for("hush");
        back(&screen);
    }
    for (before, subject) in subjects.iter().enumerate() {
        subject.select(&screen);
        screen.keys("t");
        screen.wait_for(&format!("{} recording", before + 1));
        screen.keys(ENTER);
        screen.keys("3");
        // The throughput changes.
        let events = |shown: &str| shown.lines().find(|line| line.contains(" events · ")).map(str::to_owned);
        let before = events(&screen.wait_until("events", |shown| events(shown).is_some()));
        screen.wait_until("more of them", |shown| events(shown).is_some_and(|now| Some(now) != before));
        back(&screen);
    }
    for subject in &subjects {
        subject.select(&screen);
        screen.keys("t");
        let file = poll(TIMEOUT, || subject.recording(&screen));
        let file = file.unwrap_or_else(|| panic!("no whole recording of {}:\n{}", subject.title(), screen.contents()));
        assert_complete(&file);
    }
    for subject in &subjects {
        subject.select(&screen);
        perf_map(subject, &screen);
        dump(subject, &screen);
        assert!(subject.program.answers(), "{} does not answer any more", subject.title());
    }
    screen.quit();
    screen.assert_restored();
    assert!(subjects.iter().all(|subject| subject.program.answers()));
}

/// Focuses the table again, and waits for that: Esc directly followed by another key would be Alt with that key.
fn back(screen: &Screen) {
    screen.keys(ESC);
    screen.wait_for("Enter details");
}

/// Panics unless the recording is complete, including the method names of the rundown.
fn assert_complete(file: &std::path::Path) {
    let stats = stats(file);
    assert_eq!(stats["complete"], true, "{stats}");
    let rundown = |count: &&Value| count["provider"] == "Microsoft-Windows-DotNETRuntimeRundown" && count["name"] == "MethodDCEndVerbose";
    let methods = stats["counts"].as_array().unwrap().iter().find(rundown).map(|count| count["count"].as_u64());
    assert!(methods.flatten() > Some(100), "{stats}");
}

fn perf_map(subject: &Subject, screen: &Screen) {
    screen.keys("p");
    if subject.is(3) {
        screen.wait_for("This needs .NET 8");
        return;
    }
    screen.wait_for("Perf map · ");
    screen.keys(&format!("y{ENTER}"));
    screen.wait_for(&format!("({}): perf map on done", subject.program.pid()));
    let file = PathBuf::from(format!("/tmp/perf-{}.map", subject.program.pid()));
    assert!(poll(TIMEOUT, || fs::metadata(&file).is_ok_and(|file| file.len() > 0).then_some(())).is_some(), "no {}", file.display());
    screen.keys("p");
    screen.wait_for("Perf map · ");
    screen.keys(&format!("y{ENTER}"));
    screen.wait_for(&format!("({}): perf map off done", subject.program.pid()));
    fs::remove_file(file).unwrap();
}

/// Writes a dump of the dialog's default type.
fn dump(subject: &Subject, screen: &Screen) {
    screen.keys("d");
    screen.wait_for("The process is stopped for");
    screen.keys(&format!("y{ENTER}"));
    if subject.runtime.is_single_file() {
        screen.wait_for("Only full dumps are supported by");
        return;
    }
    screen.wait_for(&format!("({}): heap dump done", subject.program.pid()));
}
