//! Actions: recordings, watching, dialogs, programs that are run.

use std::fs;

use crate::support::screen::{BACKSPACE, CTRL_ENTER, DOWN, END, ENTER, ESC, HOME, RIGHT, TAB, ctrl};
use crate::support::{Signal, TIMEOUT, poll};
use crate::{BACK_TAB, assert_clean_exit, assert_complete_recordings, press, recordings, sorted};

#[test]
fn recording_is_started_and_stopped_with_keys() {
    let mut screen = sorted(&[]);
    press(&screen, ENTER, "Esc back");
    press(&screen, "t", "◉ recording");
    let figures = |shown: &str| shown.lines().find(|line| line.contains(" events · ")).map(str::to_owned);
    let before = figures(&screen.wait_until("events", |shown| figures(shown).is_some()));
    screen.wait_until("more of them", |shown| figures(shown).is_some_and(|now| Some(now) != before));
    screen.wait_for("events/s  peak ");
    press(&screen, "t", "✓ done");
    assert_complete_recordings(&screen, 1);
    let file = recordings(&screen).remove(0);
    screen.wait_for(file.to_str().unwrap());
    screen.keys("qq");
    assert_clean_exit(&mut screen);
    // The file name stays visible after the dashboard has exited.
    screen.wait_for(&format!("dn-top: {}", file.display()));
}

/// `timeout` sends two, and a terminal that is closed causes several.
#[test]
fn signals_at_the_same_time_do_not_abandon_recording() {
    let mut screen = sorted(&[]);
    press(&screen, ENTER, "Esc back");
    press(&screen, "t", "◉ recording");
    screen.wait_until("events", |shown| shown.lines().any(|line| line.contains(" events · ")));
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        screen.signal(signal);
    }
    screen.wait_exit();
    assert_complete_recordings(&screen, 1);
}

#[test]
fn recording_is_exported_while_running_and_when_finished() {
    let mut screen = sorted(&[]);
    press(&screen, "E", "No recording to export");
    press(&screen, ENTER, "Esc back");
    press(&screen, "t", "◉ recording");
    let figures = |shown: &str| shown.lines().find(|line| line.contains(" events · ")).map(str::to_owned);
    screen.wait_until("events", |shown| figures(shown).is_some());
    press(&screen, "E", "recorded so far");
    press(&screen, CTRL_ENTER, "export done");
    press(&screen, "t", "✓ done");
    press(&screen, "E", "All of the recording");
    // The second format.
    screen.keys(RIGHT);
    screen.wait_for(".speedscope.json");
    press(&screen, CTRL_ENTER, ".speedscope.json, ");
    let exports = |ending: &str| {
        let files = fs::read_dir(screen.folder()).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|file| file.to_string_lossy().ends_with(ending)).collect::<Vec<_>>()
    };
    let [live] = &exports(".perfetto-trace")[..] else { panic!("{:?}", exports("")) };
    // A trace is a sequence of packets, in field 1.
    assert_eq!(fs::read(live).unwrap().first(), Some(&0x0a));
    let [whole] = &exports(".speedscope.json")[..] else { panic!("{:?}", exports("")) };
    let json: serde_json::Value = serde_json::from_slice(&fs::read(whole).unwrap()).unwrap();
    assert!(!json["profiles"].as_array().unwrap().is_empty());
    assert_eq!(exports(".partial"), [] as [std::path::PathBuf; 0]);
    screen.keys("qq");
    assert_clean_exit(&mut screen);
}

#[test]
fn dialogs_explain_and_do_nothing_by_default() {
    let screen = sorted(&[]);
    for (keys, shows) in [
        ("T", "Record OrderService (1200)"),
        ("d", "Dump · OrderService (1200)"),
        ("p", "Perf map · OrderService (1200)"),
        ("M", "Walk the heap · OrderService (1200)"),
        ("y", "─ Copy "),
    ] {
        press(&screen, keys, shows);
        screen.keys(ESC);
        screen.wait_gone(shows);
    }
    // Enter in a dialog that has just opened means No.
    press(&screen, "d", "The process is stopped for");
    screen.keys(ENTER);
    screen.wait_gone("The process is stopped for");
    press(&screen, "4", "▾");
    assert!(recordings(&screen).is_empty());
    press(&screen, "1", "PID▴");
    press(&screen, "d", "The process is stopped for");
    // A letter alone does not affect a process; with Enter it does, and the file is reported.
    screen.keys("yy");
    screen.wait_for("The process is stopped for");
    let shown = press(&screen, ENTER, "✓ OrderService (1200): heap dump done");
    assert!(shown.contains("OrderService_1200_"), "{shown}");
    press(&screen, "p", "Perf map ·");
    press(&screen, &format!("y{ENTER}"), "✓ OrderService (1200): perf map on done");
    // Messages can be read again, and so can finished jobs.
    press(&screen, "!", "─ Messages ");
    screen.keys(ESC);
    screen.wait_gone("─ Messages ");
    press(&screen, "\r0", "WHAT");
    screen.wait_until("both", |shown| ["✓  heap dump", "✓  perf map on"].iter().all(|what| shown.contains(what)));
}

#[test]
fn profiles_are_picked_and_several_processes_recorded_at_once() {
    let mut screen = sorted(&[]);
    // Only collections: without the two preselected profiles.
    press(&screen, "T", "[✓]  What is happening overall?");
    press(&screen, " ", "[ ]  What is happening overall?");
    press(&screen, "jj ", "[ ]  What uses the CPU?");
    press(&screen, "j ", "[✓]  How long does GC pause it?");
    press(&screen, ENTER, "1 recording");
    press(&screen, "jt", "2 recording");
    screen.wait_until("both to have begun", |shown| shown.matches("◉ recording").count() >= 2);
    // The selection is kept from then on.
    press(&screen, ENTER, "Esc back");
    screen.wait_for("gc-collect");
    press(&screen, ESC, "Enter details");
    press(&screen, "t", "1 recording");
    screen.keys("kt");
    screen.wait_gone("1 recording");
    assert_complete_recordings(&screen, 2);
    screen.keys("q");
    assert_clean_exit(&mut screen);
}

#[test]
fn recording_is_shown_in_every_tab() {
    let mut screen = sorted(&[]);
    press(&screen, ENTER, "Esc back");
    press(&screen, "t", "◉ recording");
    // Methods are resolved during the recording.
    press(&screen, "z7", "Demo.Pricing.");
    press(&screen, "f", "CALL TREE");
    press(&screen, "f", "arrows: move");
    screen.keys(DOWN);
    press(&screen, DOWN, "self ");
    screen.keys(ENTER);
    screen.wait_for("Backspace: zoom out");
    press(&screen, BACKSPACE, "all threads");
    press(&screen, "s", "RUN");
    screen.keys("j");
    screen.keys(ENTER);
    screen.wait_for("Backspace: all");
    screen.keys(BACKSPACE);
    screen.wait_gone("Backspace: all");
    // Single events, those of one kind, and the contents of one. The sampler's events are hidden.
    press(&screen, "8", "of the sampler hidden (/sample, /suspend)");
    assert!(!screen.contents().contains("ThreadSample"));
    press(&screen, "f", "the latest");
    press(&screen, "/exception", "/exception");
    screen.keys(ENTER);
    screen.wait_until("only exceptions", |shown| shown.contains("ExceptionThrown") && !shown.contains("GCStart"));
    press(&screen, ENTER, "ExceptionHRESULT  0x80131509");
    screen.keys(ESC);
    screen.wait_gone("ExceptionHRESULT  0x80131509");
    press(&screen, "9\t\t\t", "methods loaded");
    press(&screen, "3t", "✓ done");
    screen.keys("qq");
    assert_clean_exit(&mut screen);
}

#[test]
fn watching_marks_process_with_health_issue() {
    let mut screen = sorted(&["--watch", "never"]);
    assert!(!screen.contents().contains("ALLOC/S"));
    press(&screen, "w", "1 watched");
    screen.wait_until("the figures of the first", |shown| {
        shown.lines().any(|line| line.contains(" 1200 OrderService") && line.contains("◎ watched") && !line.contains('–'))
    });
    // All processes: the one that spends the most time in GC is marked.
    press(&screen, "W", "! GC time");
    let marked = |shown: &str| shown.lines().filter(|line| line.contains("! GC time")).map(str::to_owned).collect::<Vec<_>>();
    let shown = screen.wait_until("the mark", |shown| !marked(shown).is_empty());
    assert!(marked(&shown).iter().all(|line| line.contains("ReportBuilder")), "{shown}");
    press(&screen, ":reportb", "ReportBuilder");
    press(&screen, ENTER, "of the time in GC");
    screen.wait_for("4: why; T, gc-verbose");
    // Its other counters, and their rates.
    press(&screen, "\r9", "- System.Runtime (10)");
    press(&screen, "/alloc\r", "- System.Runtime (1)");
    screen.wait_until("its rate", |shown| shown.lines().any(|line| line.contains("alloc-rate") && line.contains(" MB/s")));
    press(&screen, "\r", "+ System.Runtime (1)");
    press(&screen, ESC, "Enter details");
    press(&screen, "w", "● running");
    screen.wait_gone("! GC time");
    screen.keys("q");
    assert_clean_exit(&mut screen);
    assert!(recordings(&screen).is_empty());
}

/// The form's command line is copied, and the recording matches it.
#[test]
fn the_trace_form_records_and_copies_its_command_line() {
    let mut screen = sorted(&[]);
    press(&screen, "O", "Record · OrderService (1200)");
    screen.keys(&format!("{}gc-verb", ctrl('u')));
    screen.wait_for("dn-top trace 1200 --profile gc-verb");
    screen.wait_for("there is no profile 'gc-verb'");
    // Accepting the suggestion types it.
    press(&screen, RIGHT, "--profile gc-verbose");
    press(&screen, &ctrl('y'), "terminal's clipboard");
    // base64 of "dn-top trace 1200 --profile gc-verbose"
    assert_eq!(screen.clipboard(), ["ZG4tdG9wIHRyYWNlIDEyMDAgLS1wcm9maWxlIGdjLXZlcmJvc2U="]);
    press(&screen, CTRL_ENTER, "1 recording");
    press(&screen, &format!("{ENTER}3"), "◉ recording");
    screen.wait_for("gc-verbose");
    press(&screen, "t", "✓ done");
    assert_complete_recordings(&screen, 1);
    screen.keys("qq");
    assert_clean_exit(&mut screen);
}

#[test]
fn stop_event_and_flight_recorder_work_in_form() {
    let mut screen = sorted(&[]);
    press(&screen, ENTER, "Esc back");
    // From the profiles, backwards over the buttons, tracepoints, scheduling and file to the flight recorder.
    press(&screen, "O", "Record · OrderService (1200)");
    screen.keys(&BACK_TAB.repeat(5));
    press(&screen, "64MB", "--flight 64MB");
    screen.keys(BACK_TAB);
    press(&screen, BACK_TAB, "PROVIDER/EVENT");
    press(&screen, "Microsoft-Windows-DotNETRuntime/ExceptionThrown", "--stop-on");
    screen.keys(CTRL_ENTER);
    screen.wait_for("Stop event received.");
    screen.wait_for("✓ done");
    assert_complete_recordings(&screen, 1);
    // The form has kept it; without the event, the recording continues until it is stopped.
    press(&screen, "O", "--flight 64MB");
    screen.keys(&BACK_TAB.repeat(7));
    screen.keys(&ctrl('u'));
    screen.wait_gone("--stop-on");
    // Enter moves through the fields to the button.
    screen.keys(&ENTER.repeat(7));
    screen.wait_for("Flight recorder: last");
    // It is saved, and another recording continues.
    press(&screen, "S", "saving the flight recording");
    let whole = || recordings(&screen).iter().filter(|file| file.extension().is_some_and(|extension| extension == "nettrace")).count();
    assert!(poll(TIMEOUT, || (whole() == 2).then_some(())).is_some(), "{}", screen.contents());
    screen.wait_for("Flight recorder: last");
    press(&screen, "t", "✓ done");
    assert_complete_recordings(&screen, 3);
    screen.keys("qq");
    assert_clean_exit(&mut screen);
}

#[test]
fn menu_actions_are_run_and_logged() {
    let mut screen = sorted(&[]);
    press(&screen, "a", "Actions on OrderService (1200)");
    screen.keys(&DOWN.repeat(4));
    press(&screen, ENTER, "Set a variable · OrderService");
    screen.keys(&format!("GREETING{TAB}hello{TAB}y{ENTER}"));
    screen.wait_for("set variable done");
    press(&screen, "e", "GREETING");
    // The dialog's button responds to the mouse.
    press(&screen, "d", "The process is stopped for");
    // The free space moves the button.
    let shown = screen.wait_for(" free ");
    let (line, text) = shown.lines().zip(1..).map(|(text, line)| (line, text)).find(|(_, text)| text.contains("Yes, dump")).unwrap();
    let column = text[..text.find("No").unwrap()].chars().count() + 1;
    screen.keys(&format!("\x1b[<0;{column};{line}M"));
    screen.wait_gone("The process is stopped for");
    press(&screen, "0", "set variable GREETING: done");
    screen.keys("y");
    screen.wait_for("full log");
    screen.keys(ESC);
    screen.wait_gone("full log");
    screen.keys("qq");
    assert_clean_exit(&mut screen);
}

#[test]
fn output_and_exit_code_of_program_are_shown() {
    let screen = sorted(&[]);
    press(&screen, "a", "record it from its start");
    screen.keys(END);
    press(&screen, ENTER, "Run a program");
    // It ends once a file exists.
    let script = "printf 'first\\033[2J word\\n'; echo sorry >&2; until [ -e go ]; do sleep 0.1; done; seq 1000; exit 7";
    screen.keys(&format!("sh -c \"{script}\"{TAB}{TAB}out.txt"));
    screen.wait_for("out.txt");
    press(&screen, &format!("{TAB}y"), "Full output: out.txt");
    screen.wait_for("sorry");
    // Only its plain text reaches the terminal.
    screen.wait_for("│ first word ");
    screen.wait_for("Running for");
    fs::write(screen.folder().join("go"), "").unwrap();
    screen.wait_for("It exited with 7");
    screen.wait_for("│ 1000 ");
    screen.keys(ESC);
    screen.wait_gone("Output of sh");
    // The job log leads back to it.
    press(&screen, ENTER, "Esc back");
    press(&screen, "0", "OUTCOME");
    press(&screen, ENTER, "Output of sh");
    // The newest lines are kept.
    press(&screen, HOME, "│ 501 ");
    press(&screen, "/99", "│ 899 ");
    let written = fs::read_to_string(screen.folder().join("out.txt")).unwrap();
    assert!(written.starts_with("first\u{1b}[2J word\nsorry\n1\n") && written.ends_with("1000\n"), "{written}");
}

/// A recording is viewed without leaving the dashboard, and the processes are still there afterwards.
#[test]
fn a_recording_is_opened_from_the_list_of_files() {
    let mut screen = sorted(&[]);
    press(&screen, "L", "No .nettrace or .gcdump files");
    press(&screen, ENTER, "Esc back");
    press(&screen, "t", "◉ recording");
    let events = |shown: &str| shown.lines().any(|line| line.contains(" events · "));
    screen.wait_until("events", events);
    press(&screen, "t", "✓ done");
    let file = recordings(&screen).remove(0);
    let name = file.file_name().unwrap().to_str().unwrap();
    // Only regular files are opened: reading these would never end.
    std::os::unix::fs::symlink("/dev/zero", file.with_file_name("link.nettrace")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, file.with_file_name("pipe.nettrace"), rustix::fs::Mode::RUSR).unwrap();
    let shown = press(&screen, "L", "Open a recorded file");
    assert!(shown.contains(name) && !shown.contains("link.nettrace") && !shown.contains("pipe.nettrace"), "{shown}");
    screen.keys(ENTER);
    screen.wait_for("Files 1");
    // Displayed as by `dn-top open`.
    press(&screen, "5", "System.");
    press(&screen, ESC, "Esc processes");
    screen.keys(ESC);
    screen.wait_for("Processes 9");
    // Unchanged.
    screen.wait_for("✓ done");
    screen.wait_for(file.to_str().unwrap());
    screen.keys("qq");
    assert_clean_exit(&mut screen);
}

/// Two recordings are compared with each other, and two ranges of one recording.
#[test]
fn two_recordings_and_two_ranges_are_compared() {
    let mut screen = sorted(&[]);
    press(&screen, ENTER, "Esc back");
    for count in 1..=2 {
        press(&screen, "t", "◉ recording");
        press(&screen, "7", "Demo.Pricing.");
        press(&screen, "3", "◉ recording");
        screen.keys("t");
        screen.wait_gone("◉ recording");
        assert_complete_recordings(&screen, count);
    }
    press(&screen, "L", "Open a recorded file");
    screen.keys(ENTER);
    screen.wait_for("whole file, ");
    // The first entry is a range of the same file, the second the open file, the third the other file.
    press(&screen, "=", "another range of this file");
    screen.keys(&DOWN.repeat(2));
    press(&screen, ENTER, "CHANGE %");
    let name = |shown: &str, label: &str| -> String {
        let words = shown.lines().find_map(|line| line.split_once(&format!("│ {label} "))).unwrap_or_else(|| panic!("{shown}"));
        words.1.split_whitespace().next().unwrap().to_owned()
    };
    let shown = screen.contents();
    let (before, after) = (name(&shown, "before"), name(&shown, "after"));
    assert!(before != after && before.contains(".nettrace") && after.contains(".nettrace"), "{shown}");
    press(&screen, "X", &format!("before  {after}"));
    press(&screen, "f", "next subject");
    screen.wait_gone("SUBJECT");
    // The current range, then another one.
    press(&screen, "=", "another range of this file");
    press(&screen, ENTER, "This range is \"before\"");
    press(&screen, "[", "CHANGE");
    let shown = screen.contents();
    assert!(
        shown.contains(&format!("before  {after}   whole file")) && shown.contains(&format!("after   {after}   0:00.0 to ")),
        "{shown}"
    );
    screen.keys("qq");
    assert_clean_exit(&mut screen);
}
