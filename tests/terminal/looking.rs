//! Viewing: the table, the details, help, sizes, colors.

use crate::support::screen::{BACKSPACE, DOWN, END, ENTER, ESC, HOME, LEFT, PAGE_DOWN, PAGE_UP, RIGHT, TAB, UP, ctrl};
use crate::support::{Screen, TIMEOUT, poll};
use crate::{BACK_TAB, FIRST, SECOND, assert_clean_exit, demo, press, recordings, sorted};

const F5: &str = "\x1b[15~";
const F12: &str = "\x1b[24~";
/// The process with the highest PID.
const LAST: &str = "PriceFeed 1496";

#[test]
fn frame_times_are_shown_on_request() {
    let mut screen = demo(&[]).screen(120, 40);
    assert!(!screen.wait_for("Processes 9").contains("slowest"));
    press(&screen, F12, "slowest 0 µs");
    // The first frame with the figures is the first one that is measured.
    screen.keys(DOWN);
    let cost = |shown: &str| shown.lines().next().is_some_and(|line| line.contains(" µs, slowest ") && !line.contains("slowest 0 µs"));
    let shown = screen.wait_until("the time of a frame", cost);
    assert!(shown.lines().next().unwrap().contains("B, queue 0"), "{shown}");
    screen.keys(F12);
    screen.wait_until("nothing of it", |shown| !shown.contains("slowest"));
    screen.keys("q");
    assert_clean_exit(&mut screen);
}

#[test]
fn table_is_navigated_sorted_and_filtered() {
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
        // The selection follows its process.
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
    assert_clean_exit(&mut screen);

    let screen = demo(&["--filter", "night"]).screen(80, 24);
    let shown = screen.wait_for("Processes 1 of 9");
    assert!(shown.contains("NightlyBatch") && !shown.contains("OrderService"), "{shown}");
}

#[test]
fn the_details_have_their_keys() {
    let screen = sorted(&[]);
    press(&screen, ENTER, "Capabilities");
    for (keys, shows) in [
        (TAB, "ConnectionStrings__Orders"),
        (RIGHT, "No recording of this process"),
        ("9", "This process is not watched"),
        ("0", "No jobs yet"),
        (LEFT, "M: walk the heap."),
        (LEFT, "D: sample the stacks"),
        ("3", "No recording of this process"),
        (BACK_TAB, "ConnectionStrings__Orders"),
        ("1", "Capabilities"),
        ("2", "••••••••"),
        // A single secret is shown, and hidden again.
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
    // In the table, digits sort: by the same column again, the other way around.
    press(&screen, "1", "PID▾");
    // From the table as well.
    press(&screen, "e", "Esc back");
    press(&screen, "q", "Enter details");
    press(&screen, "z", "Processes 9");
    screen.wait_gone("Jobs");
    press(&screen, "z", "Jobs");
}

#[test]
fn help_palette_pause_and_copy() {
    let mut screen = sorted(&[]);
    press(&screen, "?", "The selected process");
    press(&screen, "G", "Notes");
    press(&screen, "g", "The selected process");
    press(&screen, "/shell", "fg in the shell resumes it");
    screen.wait_gone("The selected process");
    screen.keys("\r");
    screen.keys(ESC);
    screen.wait_gone("fg in the shell resumes it");

    press(&screen, ":", "Find by name");
    press(&screen, "paym", "PaymentGateway");
    press(&screen, ENTER, SECOND);
    press(&screen, ":zoom", "Maximize or restore");
    screen.keys(ESC);
    screen.wait_gone("Maximize or restore");

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
    assert_clean_exit(&mut screen);
}

#[test]
fn every_terminal_size_is_drawn() {
    let screen = sorted(&[]);
    for (columns, rows, shows) in
        [(20, 5, "20x5 is too small"), (80, 24, SECOND.split(' ').next().unwrap()), (40, 10, "Processes"), (1, 1, ""), (200, 60, "COMMAND")]
    {
        screen.resize(columns, rows);
        screen.wait_for(shows);
    }
    let screen = demo(&[]).screen(20, 5);
    screen.wait_for("dn-top needs 40x10");
    // Nothing is started without being visible. The redraw means that the previous key was handled. Only it removes the mark, while any other
    // output, such as a new title, may come before the keys are read.
    screen.overwrite("mark");
    screen.keys("t");
    screen.keys(&ctrl('l'));
    screen.wait_gone("mark");
    screen.resize(80, 24);
    let shown = screen.wait_for(" attachable");
    assert!(!shown.contains("recording"), "{shown}");
}

#[test]
fn theme_is_detected_or_configured() {
    let name_is = |screen: &Screen, color: u8| {
        let styled = screen.styled();
        let (rows, columns) = styled.size();
        let cells = (0..rows.get()).flat_map(|row| (0..columns.get()).map(move |column| (row, column)));
        cells.filter_map(|(row, column)| styled.cell(row, column)).any(|cell| cell.fgcolor() == vt100::Color::Idx(color))
    };
    let screen = demo(&[]).env("TERM", "xterm-256color").screen(80, 24);
    screen.wait_for("OrderService");
    assert!(name_is(&screen, 98) && !name_is(&screen, 147) && !name_is(&screen, 55), "nothing was answered");
    screen.keys("\x1b]11;rgb:ffff/ffff/ffff\x1b\\");
    assert!(poll(TIMEOUT, || (name_is(&screen, 55) && !name_is(&screen, 147)).then_some(())).is_some());
    let screen = demo(&[]).env("TERM", "xterm-256color").screen(80, 24);
    screen.wait_for("OrderService");
    screen.keys("\x1b]11;rgb:0000/0000/0000\x1b\\");
    assert!(poll(TIMEOUT, || (name_is(&screen, 147) && !name_is(&screen, 98)).then_some(())).is_some());
    // An explicit theme has priority, and so does the environment.
    let dark = demo(&["--theme", "dark"]).env("TERM", "xterm-256color").screen(80, 24);
    dark.wait_for("OrderService");
    dark.keys("\x1b]11;rgb:ffff/ffff/ffff\x1b\\/zzz");
    dark.wait_for("zzz");
    assert!(!name_is(&dark, 55));
    let light = demo(&[]).env("COLORFGBG", "0;15").screen(80, 24);
    assert!(poll(TIMEOUT, || name_is(&light, 55).then_some(())).is_some());
    // A custom theme file.
    let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    std::fs::write(&file, "base = 'light'\naccent = '201'").unwrap();
    let own = demo(&["--theme", &file.path().to_string_lossy()]).screen(80, 24);
    assert!(poll(TIMEOUT, || name_is(&own, 201).then_some(())).is_some());
    // Themes in the folder of the configuration file are chosen by name; an invalid one reports an error and changes nothing.
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("dn-top")).unwrap();
    std::fs::write(home.path().join("dn-top/mine.toml"), "base = 'light'\naccent = '201'").unwrap();
    std::fs::write(home.path().join("dn-top/wrong.toml"), "acent = '201'").unwrap();
    // Of many files, the first 32 by name are offered.
    for number in 0..40 {
        std::fs::write(home.path().join(format!("dn-top/x{number:02}.toml")), "base = 'light'").unwrap();
    }
    let chosen = demo(&["--theme", "dark"]).env("XDG_CONFIG_HOME", home.path()).screen(120, 40);
    chosen.wait_for("OrderService");
    for (name, lines) in [("x29.toml", 2), ("x30.toml", 1)] {
        // The typed text, and the entry it matches.
        chosen.keys(&format!(":{name}"));
        chosen.wait_until("the name and what it finds", |shown| shown.matches(name).count() == lines);
        chosen.keys("\x1b");
        chosen.wait_gone(name);
    }
    chosen.keys(":wrong.toml\r");
    chosen.wait_for("wrong.toml: ");
    assert!(!name_is(&chosen, 201));
    chosen.keys(":mine.toml\r");
    assert!(poll(TIMEOUT, || name_is(&chosen, 201).then_some(())).is_some());
}

#[test]
fn colors_and_ascii_are_configurable() {
    let colors = |screen: &Screen| {
        let styled = screen.styled();
        let (rows, columns) = styled.size();
        let cells = (0..rows.get()).flat_map(|row| (0..columns.get()).map(move |column| (row, column)));
        cells
            .filter_map(|(row, column)| styled.cell(row, column))
            .any(|cell| cell.fgcolor() != vt100::Color::Default || cell.bgcolor() != vt100::Color::Default)
    };
    assert!(colors(&sorted(&[])));
    for screen in [demo(&[]).env("NO_COLOR", "1").screen(80, 24), demo(&["--color", "never"]).screen(80, 24)] {
        screen.wait_for("OrderService");
        assert!(!colors(&screen));
        // The selection is still visible.
        let styled = screen.styled();
        assert!((0..24).any(|row| styled.cell(row, 10).is_some_and(|cell| cell.inverse() || cell.bold())));
    }
    let required = demo(&["--color", "always"]).env("NO_COLOR", "1").screen(80, 24);
    required.wait_for("OrderService");
    assert!(colors(&required));
    let on = |term: &str| demo(&[]).env("TERM", term).screen(80, 24);
    let colored = |term: &str| demo(&["--color", "always"]).env("TERM", term).screen(80, 24);
    let consoles = [(on("vt100"), false), (on("dumb"), false), (on("linux"), true), (colored("vt100"), true), (colored("dumb"), true)];
    for (screen, has_colors) in &consoles {
        screen.wait_for("OrderService");
        assert_eq!(colors(screen), *has_colors);
        let styled = screen.styled();
        let numbers = |color| if let vt100::Color::Idx(number) = color { number } else { 0 };
        assert!((0..80).all(|column| (0..24).filter_map(|row| styled.cell(row, column)).all(|cell| numbers(cell.fgcolor()) < 16)));
    }
    let consoles = consoles.map(|(screen, _)| screen);
    for screen in [demo(&["--ascii"]).screen(80, 24), demo(&[]).env("LANG", "C").screen(80, 24)].into_iter().chain(consoles) {
        screen.wait_for("OrderService");
        press(&screen, "t", "recording");
        let shown = screen.wait_for("events/s");
        assert!(shown.is_ascii(), "{shown}");
    }
}

#[test]
fn readonly_changes_nothing() {
    let screen = sorted(&["--readonly"]);
    for key in ["t", "T", "d", "p", "w", "W"] {
        press(&screen, key, "was started with --readonly");
    }
    assert!(screen.contents().to_lowercase().contains("readonly"));
    press(&screen, "e", "2 secrets");
    assert!(recordings(&screen).is_empty());
}

#[test]
fn unavailable_actions_are_explained() {
    let screen = sorted(&[]);
    press(&screen, ":night", "NightlyBatch");
    press(&screen, ENTER, "NightlyBatch 1385");
    press(&screen, "e", "needs .NET 5");
    press(&screen, "p", "This needs .NET 8");
    press(&screen, ":checkout", "Checkout");
    press(&screen, ENTER, "Checkout 1459");
    press(&screen, "p", "is suspended at startup: a perf map now would crash it");
    // It never responds: the rest of the screen does not wait for it.
    press(&screen, ":pricefeed", "PriceFeed");
    press(&screen, ENTER, LAST);
    screen.wait_for("! timeout");
    press(&screen, "t", "no answer within");
}

#[test]
fn unknown_theme_is_reported() {
    let mut screen = demo(&["--theme", "plaid"]).screen(80, 24);
    assert_eq!(screen.wait_exit().exit_code(), 2);
    screen.wait_for("invalid value 'plaid' for '--theme");
    screen.assert_restored();
}

#[test]
fn title_and_bell_are_optional() {
    for (arguments, titled, bells) in [(&["--bell"][..], true, 1), (&["--no-title"], false, 0)] {
        let mut screen = sorted(arguments);
        let is_titled = || poll(TIMEOUT, || screen.title().ends_with(") - dn-top").then_some(()));
        assert_eq!(titled && is_titled().is_some(), titled, "{:?}", screen.title());
        press(&screen, "t", "◉ recording");
        screen.wait_for(" events");
        assert_eq!(screen.bells(), 0);
        press(&screen, "t", "✓ done");
        assert!(poll(TIMEOUT, || (screen.bells() == bells).then_some(())).is_some(), "{}", screen.bells());
        assert_eq!(screen.title().is_empty(), !titled);
        screen.keys("q");
        assert_clean_exit(&mut screen);
    }
}

#[test]
fn demo_heap_shows_retention_path() {
    let mut screen = sorted(&[]);
    press(&screen, ENTER, "Esc back");
    press(&screen, "M", "Walk the heap");
    press(&screen, &format!("y{ENTER}"), "RETAINED");
    press(&screen, "/type:Demo.Order[]", "type:Demo.Order[]");
    screen.keys(ENTER);
    press(&screen, ENTER, "static variable s_recent");
    // Close the paths and the details, then quit.
    screen.keys("qqq");
    assert_clean_exit(&mut screen);
}
