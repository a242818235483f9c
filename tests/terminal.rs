//! The dashboard in a terminal, on the simulated runtimes of `--demo`.

#![allow(clippy::unwrap_used, reason = "clippy knows tests by their attribute, and not what they call")]

#[path = "support/mod.rs"]
mod support;

use std::fs;
use std::path::PathBuf;

use support::screen::{BACKSPACE, DOWN, END, ENTER, ESC, HOME, LEFT, PAGE_DOWN, PAGE_UP, RIGHT, TAB, UP, ctrl};
use support::{Invocation, PATIENCE, Screen, Signal, poll};

const BACK_TAB: &str = "\x1b[Z";
const F5: &str = "\x1b[15~";

/// The demo's process with the lowest pid, which is the first when the table is sorted by pid.
const FIRST: &str = "OrderService 1200";
const SECOND: &str = "PaymentGateway 1237";
const LAST: &str = "PriceFeed 1496";

fn demo(arguments: &[&str]) -> Invocation {
    Invocation::new([&["--demo"], arguments].concat())
}

/// Opens the demo with the table sorted by pid, and the first process selected.
fn sorted(arguments: &[&str]) -> Screen {
    let screen = demo(arguments).screen(120, 40);
    // Until a runtime has said its version, what needs one is not offered.
    screen.wait_until("all versions", |shown| ["9.0.7", "8.0.17", "10.0.0", "6.0.36"].iter().all(|version| shown.contains(version)));
    screen.keys("1");
    screen.wait_for("PID▴");
    screen.keys("g");
    screen.wait_for(FIRST);
    screen
}

/// Types keys and waits for what they should bring.
fn press(screen: &Screen, keys: &str, shows: &str) -> String {
    screen.keys(keys);
    screen.wait_for(shows)
}

/// Recordings in the folder that the dashboard works in.
fn recordings(screen: &Screen) -> Vec<PathBuf> {
    let files = fs::read_dir(screen.folder()).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.to_str().unwrap().contains(".nettrace")).collect()
}

#[track_caller]
fn assert_only_whole(screen: &Screen, count: usize) {
    let files = recordings(screen);
    assert_eq!(files.len(), count, "{files:?}");
    for file in files {
        let stats = Invocation::new(["stats".as_ref(), file.as_os_str(), "--json".as_ref()]).run().json();
        assert_eq!((&stats["complete"], stats["events"].as_u64() > Some(0)), (&true.into(), true), "{}", file.display());
    }
}

/// Waits for the end, which must have given the terminal back.
#[track_caller]
fn assert_left(screen: &mut Screen) {
    let status = screen.wait_exit();
    assert!(status.success(), "{status:?}\n{}", screen.contents());
    screen.assert_restored();
}

#[test]
fn a_newcomer_records() {
    let mut screen = sorted(&[]);
    press(&screen, ENTER, "Esc back");
    press(&screen, "t", "◉ recording");
    let figures = |shown: &str| shown.lines().find(|line| line.contains(" events · ")).map(str::to_owned);
    let before = figures(&screen.wait_until("events", |shown| figures(shown).is_some()));
    screen.wait_until("more of them", |shown| figures(shown).is_some_and(|now| Some(now) != before));
    screen.wait_for("events/s  peak ");
    press(&screen, "t", "✓ done");
    assert_only_whole(&screen, 1);
    let file = recordings(&screen).remove(0);
    screen.wait_for(file.to_str().unwrap());
    screen.keys("qq");
    assert_left(&mut screen);
    // What was recorded can still be read when the dashboard has gone.
    screen.wait_for(&format!("dn-top: {}", file.display()));
}

#[test]
fn the_table_is_moved_in_sorted_and_filtered() {
    let mut screen = sorted(&[]);
    for (keys, shows) in [
        (DOWN, SECOND),
        ("k", FIRST),
        ("j", SECOND),
        (UP, FIRST),
        (END, LAST),
        (HOME, FIRST),
        ("G", LAST),
        ("g", FIRST),
        (PAGE_DOWN, LAST),
        (PAGE_UP, FIRST),
        (&ctrl('f'), LAST),
        (&ctrl('b'), FIRST),
        (">", "NAME▴"),
        ("<", "PID▴"),
        ("r", "PID▾"),
        ("2", "NAME▴"),
        ("2", "NAME▾"),
        ("1", "PID▴"),
        // The selection stays with its process, wherever that goes.
        ("jr", SECOND),
        ("rg", FIRST),
    ] {
        press(&screen, keys, shows);
    }
    let only = |name: &str| {
        let shown = screen.wait_for("Processes 1 of 9");
        assert!(shown.contains(name), "{shown}");
    };
    screen.keys("/orderserv");
    only("OrderService");
    press(&screen, &BACKSPACE.repeat(9), "Processes 9");
    screen.keys("mlqueue");
    only("MailQueue");
    press(&screen, ENTER, "/mlqueue");
    press(&screen, ESC, "Processes 9");
    screen.keys("/!a");
    screen.wait_until("fewer of them", |shown| shown.contains(" of 9 ") && !shown.contains("PaymentGateway"));
    press(&screen, ESC, "Processes 9");
    screen.keys(F5);
    screen.keys(&ctrl('r'));
    screen.keys("q");
    assert_left(&mut screen);

    let screen = demo(&["--filter", "night"]).screen(80, 24);
    let shown = screen.wait_for("Processes 1 of 9");
    assert!(shown.contains("NightlyBatch") && !shown.contains("OrderService"), "{shown}");
}

#[test]
fn the_details_have_their_keys() {
    let screen = sorted(&[]);
    press(&screen, ENTER, "What can be done");
    for (keys, shows) in [
        (TAB, "ConnectionStrings__Orders"),
        (RIGHT, "Nothing was recorded"),
        ("9", "This process is not watched"),
        ("0", "Nothing was done yet"),
        (LEFT, "Nothing was recorded"),
        ("3", "Nothing was recorded"),
        (BACK_TAB, "ConnectionStrings__Orders"),
        ("1", "What can be done"),
        ("2", "••••••••"),
        // A secret is shown one by one, and hidden again.
        ("/ORDERS_API", "1 of "),
        (ENTER, "ORDERS_API_KEY"),
        ("v", "sk-demo-0123456789"),
    ] {
        press(&screen, keys, shows);
    }
    assert!(!screen.contents().contains("correct-horse"));
    screen.keys("v");
    screen.wait_gone("sk-demo-0123456789");
    press(&screen, ESC, "Enter details");
    // From the table as well.
    press(&screen, "1", "PID▴");
    press(&screen, "e", "Esc back");
    press(&screen, "q", "Enter details");
    press(&screen, "z", "Processes 9");
    screen.wait_gone("Operations");
    press(&screen, "z", "Operations");
}

#[test]
fn dialogs_say_what_will_happen_and_do_nothing_by_default() {
    let screen = sorted(&[]);
    for (keys, shows) in [
        ("T", "Record OrderService (1200)"),
        ("d", "Dump · OrderService (1200)"),
        ("p", "Perf map · OrderService (1200)"),
        ("y", "─ Copy "),
    ] {
        press(&screen, keys, shows);
        screen.keys(ESC);
        screen.wait_gone(shows);
    }
    // Enter on a question that was only just asked is No.
    press(&screen, "d", "The process stops for");
    screen.keys(ENTER);
    screen.wait_gone("The process stops for");
    press(&screen, "4", "▾");
    assert!(recordings(&screen).is_empty());
    // Yes does it, and says where the file is.
    press(&screen, "1", "PID▴");
    press(&screen, "d", "The process stops for");
    let shown = press(&screen, "y", "✓ OrderService (1200): heap dump done");
    assert!(shown.contains("OrderService_1200_"), "{shown}");
    press(&screen, "p", "Perf map ·");
    press(&screen, "y", "✓ OrderService (1200): perf map on done");
    // What was said can be read again, and what was done too.
    press(&screen, "!", "─ Messages ");
    screen.keys(ESC);
    screen.wait_gone("─ Messages ");
    press(&screen, "\r0", "WHAT");
    screen.wait_until("both", |shown| ["✓ heap dump", "✓ perf map on"].iter().all(|what| shown.contains(what)));
}

#[test]
fn profiles_are_picked_and_several_processes_recorded_at_once() {
    let mut screen = sorted(&[]);
    // Only collections: the two that are picked already, and then the third.
    press(&screen, "T", "[✓] dotnet-common");
    press(&screen, " ", "[ ] dotnet-common");
    press(&screen, "j ", "[ ] dotnet-sampled-thread-time");
    press(&screen, "j ", "[✓] gc-collect");
    press(&screen, ENTER, "1 recording");
    press(&screen, "jt", "2 recording");
    screen.wait_until("both to have begun", |shown| shown.matches("◉ recording").count() >= 2);
    // What was picked is what is taken from then on.
    press(&screen, ENTER, "Esc back");
    screen.wait_for("gc-collect");
    press(&screen, ESC, "Enter details");
    press(&screen, "t", "1 recording");
    screen.keys("kt");
    screen.wait_gone("1 recording");
    assert_only_whole(&screen, 2);
    screen.keys("q");
    assert_left(&mut screen);
}

#[test]
fn what_is_recorded_is_looked_at_from_every_side() {
    let mut screen = sorted(&[]);
    press(&screen, ENTER, "Esc back");
    press(&screen, "t", "◉ recording");
    // Methods have names while it goes on.
    press(&screen, "z7", "Demo.Pricing.");
    press(&screen, "f", "CALL TREE");
    press(&screen, "f", "arrows move");
    screen.keys(DOWN);
    press(&screen, DOWN, "itself ");
    screen.keys(ENTER);
    screen.wait_for("Backspace out");
    press(&screen, BACKSPACE, "all threads");
    press(&screen, "s", "RAN");
    screen.keys("j");
    screen.keys(ENTER);
    screen.wait_for("Backspace: all");
    screen.keys(BACKSPACE);
    screen.wait_gone("Backspace: all");
    // Single events, those of one kind, and what is in one.
    press(&screen, "8", "ThreadSample");
    press(&screen, "f", "the latest");
    press(&screen, "/exception", "/exception");
    screen.keys(ENTER);
    screen.wait_until("only exceptions", |shown| shown.contains("ExceptionThrown") && !shown.contains("GCStart"));
    press(&screen, ENTER, "ExceptionHRESULT  0x80131509");
    screen.keys(ESC);
    screen.wait_gone("ExceptionHRESULT  0x80131509");
    press(&screen, &format!("0{BACK_TAB}"), "methods compiled");
    press(&screen, "3t", "✓ done");
    screen.keys("qq");
    assert_left(&mut screen);
}

#[test]
fn watching_shows_which_process_is_in_trouble() {
    let mut screen = sorted(&[]);
    assert!(!screen.contents().contains("ALLOC/S"));
    press(&screen, "w", "1 watched");
    screen.wait_until("the figures of the first", |shown| {
        shown.lines().any(|line| line.contains(" 1200 OrderService") && line.contains("◎ watched") && !line.contains('–'))
    });
    // All of them: the one that collects most of the time is the one that is marked.
    press(&screen, "W", "! GC time");
    let marked = |shown: &str| shown.lines().filter(|line| line.contains("! GC time")).map(str::to_owned).collect::<Vec<_>>();
    let shown = screen.wait_until("the mark", |shown| !marked(shown).is_empty());
    assert!(marked(&shown).iter().all(|line| line.contains("ReportBuilder")), "{shown}");
    press(&screen, ":reportb", "ReportBuilder");
    press(&screen, ENTER, "of the time in GC");
    screen.wait_for("4: why; T, gc-verbose");
    // What else it publishes, and how much that changes.
    press(&screen, "\r9", "- System.Runtime (9)");
    press(&screen, "/alloc\r", "- System.Runtime (1)");
    screen.wait_until("its rate", |shown| shown.lines().any(|line| line.contains("alloc-rate") && line.contains(" MB/s")));
    press(&screen, "\r", "+ System.Runtime (1)");
    press(&screen, ESC, "Enter details");
    press(&screen, "w", "● running");
    screen.wait_gone("! GC time");
    screen.keys("q");
    assert_left(&mut screen);
    assert!(recordings(&screen).is_empty());
}

#[test]
fn help_palette_pause_and_copy() {
    let mut screen = sorted(&[]);
    press(&screen, "?", "The selected process");
    press(&screen, "G", "Good to know");
    press(&screen, "g", "The selected process");
    press(&screen, "/shell's", "the shell's fg brings it back");
    screen.wait_gone("The selected process");
    screen.keys("\r");
    screen.keys(ESC);
    screen.wait_gone("the shell's fg brings it back");

    press(&screen, ":", "Find an action or a process");
    press(&screen, "paym", "PaymentGateway");
    press(&screen, ENTER, SECOND);
    press(&screen, ":zoom", "whole screen");
    screen.keys(ESC);
    screen.wait_gone("whole screen");

    press(&screen, " ", "PAUSED");
    screen.keys(" ");
    screen.wait_gone("PAUSED");

    press(&screen, "y", "─ Copy ");
    press(&screen, ENTER, "terminal's clipboard");
    // base64 of "1237"
    assert_eq!(screen.clipboard(), ["MTIzNw=="]);

    screen.keys(&ctrl('l'));
    screen.wait_for(SECOND);
    screen.keys("q");
    assert_left(&mut screen);
}

#[test]
fn every_size_has_its_picture() {
    let screen = sorted(&[]);
    for (columns, rows, shows) in
        [(20, 5, "20x5 is too small"), (80, 24, SECOND.split(' ').next().unwrap()), (40, 10, "Processes"), (1, 1, ""), (200, 60, "COMMAND")]
    {
        screen.resize(columns, rows);
        screen.wait_for(shows);
    }
    let screen = demo(&[]).screen(20, 5);
    screen.wait_for("dn-top needs 40x10");
    // Nothing is begun that nobody can see. The picture that is drawn anew says that the key before was taken.
    screen.watch();
    screen.keys("t");
    screen.keys(&ctrl('l'));
    assert!(screen.first_byte(PATIENCE).is_some());
    screen.resize(80, 24);
    let shown = screen.wait_for(" attachable");
    assert!(!shown.contains("recording"), "{shown}");
}

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
fn a_terminal_that_goes_away_is_left_quietly() {
    let place = support::folder();
    let began = demo(&[]).current_dir(place.path()).env("TMPDIR", place.path());
    began.lose_terminal_at("OrderService");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "the demo's folder is left behind");
}

#[test]
fn leaving_while_recording_asks() {
    let mut screen = sorted(&[]);
    press(&screen, "t", "◉ recording");
    press(&screen, "q", "A recording is under way.");
    screen.keys(ESC);
    screen.wait_gone("A recording is under way.");
    press(&screen, "q", "A recording is under way.");
    // Cancel is what the keys are on.
    screen.keys(ENTER);
    screen.wait_gone("A recording is under way.");
    press(&screen, "q", "Stop and finish");
    screen.keys(&[RIGHT, ENTER].concat());
    assert_left(&mut screen);
    assert_only_whole(&screen, 1);
    assert!(screen.contents().contains(recordings(&screen)[0].to_str().unwrap()), "{}", screen.contents());

    // Twice Ctrl-C is the same, without reading.
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
        screen.wait_for("dn-top: 1 recording goes on until Ctrl-C");
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
fn a_stopped_and_continued_dashboard_draws_itself_again() {
    let screen = sorted(&[]);
    screen.signal(Signal::STOP);
    let stopped = || fs::read_to_string(format!("/proc/{}/stat", screen.pid())).is_ok_and(|stat| stat.contains(") T "));
    poll(PATIENCE, || stopped().then_some(())).unwrap();
    screen.signal(Signal::CONT);
    press(&screen, "?", "The selected process");
}

#[test]
fn colours_and_letters_are_a_matter_of_choice() {
    let colours = |screen: &Screen| {
        let styled = screen.styled();
        let (rows, columns) = styled.size();
        let cells = (0..rows.get()).flat_map(|row| (0..columns.get()).map(move |column| (row, column)));
        cells
            .filter_map(|(row, column)| styled.cell(row, column))
            .any(|cell| cell.fgcolor() != vt100::Color::Default || cell.bgcolor() != vt100::Color::Default)
    };
    assert!(colours(&sorted(&[])));
    for screen in [demo(&[]).env("NO_COLOR", "1").screen(80, 24), demo(&["--color", "never"]).screen(80, 24)] {
        screen.wait_for("OrderService");
        assert!(!colours(&screen));
        // The selection is still to be seen.
        let styled = screen.styled();
        assert!((0..24).any(|row| styled.cell(row, 10).is_some_and(|cell| cell.inverse() || cell.bold())));
    }
    for screen in [demo(&["--ascii"]).screen(80, 24), demo(&[]).env("LANG", "C").screen(80, 24)] {
        screen.wait_for("OrderService");
        press(&screen, "t", "recording");
        let shown = screen.wait_for("events/s");
        assert!(shown.is_ascii(), "{shown}");
    }
}

#[test]
fn readonly_looks_and_changes_nothing() {
    let screen = sorted(&["--readonly"]);
    for key in ["t", "T", "d", "p", "w", "W"] {
        press(&screen, key, "was started with --readonly");
    }
    assert!(screen.contents().to_lowercase().contains("readonly"));
    press(&screen, "e", "2 with a secret's name");
    assert!(recordings(&screen).is_empty());
}

#[test]
fn what_cannot_be_done_says_why() {
    let screen = sorted(&[]);
    press(&screen, ":night", "NightlyBatch");
    press(&screen, ENTER, "NightlyBatch 1385");
    press(&screen, "e", "This needs .NET 5");
    press(&screen, "p", "This needs .NET 8");
    press(&screen, ":checkout", "Checkout");
    press(&screen, ENTER, "Checkout 1459");
    press(&screen, "p", "waits at start-up: a perf map now would crash it");
    // One that never answers: the rest of the screen does not wait for it.
    press(&screen, ":pricefeed", "PriceFeed");
    press(&screen, ENTER, LAST);
    screen.wait_for("! timeout");
    press(&screen, "t", "no answer within");
}

#[test]
fn a_theme_that_is_not_there_is_named() {
    let mut screen = demo(&["--theme", "plaid"]).screen(80, 24);
    assert_eq!(screen.wait_exit().exit_code(), 2);
    screen.wait_for("there is no theme 'plaid': take one of ");
    screen.assert_restored();
}

/// The form's command line is copied, and what it says is recorded.
#[test]
fn the_trace_form_records_and_copies_its_command_line() {
    let mut screen = sorted(&[]);
    press(&screen, "O", "Record · OrderService (1200)");
    screen.keys(&format!("{}gc-verb", ctrl('u')));
    screen.wait_for("dn-top trace 1200 --profile gc-verb");
    screen.wait_for("there is no profile 'gc-verb'");
    // What is offered is typed.
    press(&screen, RIGHT, "--profile gc-verbose");
    press(&screen, &ctrl('y'), "terminal's clipboard");
    // base64 of "dn-top trace 1200 --profile gc-verbose"
    assert_eq!(screen.clipboard(), ["ZG4tdG9wIHRyYWNlIDEyMDAgLS1wcm9maWxlIGdjLXZlcmJvc2U="]);
    press(&screen, ENTER, "1 recording");
    press(&screen, &format!("{ENTER}3"), "◉ recording");
    screen.wait_for("gc-verbose");
    press(&screen, "t", "✓ done");
    assert_only_whole(&screen, 1);
    screen.keys("qq");
    assert_left(&mut screen);
}

#[test]
fn an_event_ends_a_recording_and_a_flight_recorder_keeps_the_end() {
    let mut screen = sorted(&[]);
    press(&screen, ENTER, "Esc back");
    // From the profiles back over the buttons, the file and what is kept.
    press(&screen, "O", "Record · OrderService (1200)");
    screen.keys(&BACK_TAB.repeat(3));
    press(&screen, "64MB", "--flight 64MB");
    press(&screen, BACK_TAB, "PROVIDER/EVENT");
    press(&screen, "Microsoft-Windows-DotNETRuntime/ExceptionThrown", "--stop-on");
    screen.keys(ENTER);
    screen.wait_for("The event came that was waited for.");
    screen.wait_for("✓ done");
    assert_only_whole(&screen, 1);
    // The form has it still; without the event it goes on until it is stopped.
    press(&screen, "O", "--flight 64MB");
    screen.keys(&BACK_TAB.repeat(4));
    screen.keys(&ctrl('u'));
    screen.wait_gone("--stop-on");
    screen.keys(ENTER);
    screen.wait_for("Flight recorder: last");
    // It is saved, and another goes on.
    press(&screen, "S", "saving what was kept");
    let whole = || recordings(&screen).iter().filter(|file| file.extension().is_some_and(|extension| extension == "nettrace")).count();
    assert!(poll(PATIENCE, || (whole() == 2).then_some(())).is_some(), "{}", screen.contents());
    screen.wait_for("Flight recorder: last");
    press(&screen, "t", "✓ done");
    assert_only_whole(&screen, 3);
    screen.keys("qq");
    assert_left(&mut screen);
}

#[test]
fn a_process_is_acted_on_from_the_menu_and_the_log_tells() {
    let mut screen = sorted(&[]);
    press(&screen, "a", "Act on OrderService (1200)");
    screen.keys(&DOWN.repeat(4));
    press(&screen, ENTER, "Set a variable · OrderService");
    screen.keys(&format!("{TAB}GREETING{TAB}hello{TAB}y"));
    screen.wait_for("set variable done");
    press(&screen, "e", "GREETING");
    // The dialog's button answers to the mouse.
    press(&screen, "d", "The process stops for");
    let shown = screen.contents();
    let (line, text) = shown.lines().zip(1..).map(|(text, line)| (line, text)).find(|(_, text)| text.contains("Yes, dump")).unwrap();
    let column = text[..text.find("No").unwrap()].chars().count() + 1;
    screen.keys(&format!("\x1b[<0;{column};{line}M"));
    screen.wait_gone("The process stops for");
    press(&screen, "0", "set variable GREETING: done");
    screen.keys("y");
    screen.wait_for("whole log");
    screen.keys(ESC);
    screen.wait_gone("whole log");
    screen.keys("qq");
    assert_left(&mut screen);
}

#[test]
fn what_a_program_writes_is_shown_while_it_runs_and_how_it_ends() {
    let screen = sorted(&[]);
    press(&screen, "a", "record it from its start");
    screen.keys(END);
    press(&screen, ENTER, "Run a program");
    // It ends when it is told to, by a file.
    let script = "printf 'first\\033[2J word\\n'; echo sorry >&2; until [ -e go ]; do sleep 0.1; done; seq 1000; exit 7";
    screen.keys(&format!("sh -c \"{script}\"{TAB}{TAB}out.txt"));
    screen.wait_for("out.txt");
    press(&screen, &format!("{TAB}y"), "All of it: out.txt");
    screen.wait_for("sorry");
    // Nothing of it reaches the terminal but its text.
    screen.wait_for("│ first word ");
    screen.wait_for("It has run for");
    fs::write(screen.folder().join("go"), "").unwrap();
    screen.wait_for("It ended with 7");
    screen.wait_for("│ 1000 ");
    screen.keys(ESC);
    screen.wait_gone("Output of sh");
    // The log leads back to it.
    press(&screen, ENTER, "Esc back");
    press(&screen, "0", "OUTCOME");
    press(&screen, ENTER, "Output of sh");
    // The newest are kept.
    press(&screen, HOME, "│ 501 ");
    press(&screen, "/99", "│ 899 ");
    let written = fs::read_to_string(screen.folder().join("out.txt")).unwrap();
    assert!(written.starts_with("first\u{1b}[2J word\nsorry\n1\n") && written.ends_with("1000\n"), "{written}");
}
