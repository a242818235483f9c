//! `man`: the program's manual page.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_mangen::Man;
use roff::{Roff, bold, roman};

use super::args::Arguments;
use super::exit::{Exit, Failure};
use super::print;
use crate::analysis::Filter;
use crate::app::action::KeyMap;
use crate::app::help::{HelpLine, help};

const EXAMPLES: [(&str, &str); 9] = [
    ("dn-top", "the dashboard of all processes; F finds out why the selected process is slow"),
    ("dn-top slow OrderService", "record 30 s and list the causes, the worst first"),
    ("dn-top cpu 4242 --live", "the methods with the most CPU time, every second"),
    ("dn-top counters 4242 --counters System.Runtime --duration 10s", "counters of the runtime, for 10 s"),
    ("dn-top trace 4242 --profile gc-collect --duration 30s -o gc.nettrace", "a recording of the collections of 30 s"),
    ("dn-top open gc.nettrace", "the dashboard of that recording"),
    ("dn-top export gc.nettrace --format perfetto", "the same for https://ui.perfetto.dev"),
    ("dn-top dump 4242 --type heap", "a core dump with the managed heap"),
    ("dn-top ps --json", "all processes, for a program"),
];

const FILES: [(&str, &str); 3] = [
    (
        "$XDG_CONFIG_HOME/dn-top/config.toml, ~/.config/dn-top/config.toml",
        "Defaults for the options of the command line, keys, thresholds and names; `dn-top config` prints one with every option. \
         It must belong to the user who runs dn-top, or to root, and must not be writable by others.",
    ),
    ("NAME.toml beside config.toml", "A custom theme: styles by role, for --theme NAME."),
    (
        "NAME_PID_date_time.nettrace, .gcdump, .perfetto-trace",
        "Recordings and heap files, in the current folder unless -o or output-folder names another. They are for their owner only (mode 0600), and never \
         replace a file. One that is being written is NAME.partial; `dn-top salvage` repairs a truncated one.",
    ),
];

const ENVIRONMENT: [(&str, &str); 10] = [
    ("TMPDIR", "The folder with the diagnostic sockets of runtimes that were started with it, in addition to /tmp."),
    ("XDG_CONFIG_HOME, HOME", "The folder of the configuration file."),
    ("NO_COLOR", "If not empty, no colors."),
    ("TERM, COLORFGBG", "What the terminal can show, and its background if the terminal does not report it."),
    ("LC_ALL, LC_CTYPE, LANG", "Whether characters other than ASCII are drawn."),
    ("DISPLAY, WAYLAND_DISPLAY, SSH_TTY, SSH_CONNECTION", "Which clipboard texts are copied to."),
    ("USER", "The name in the header."),
    ("DOTNET_DiagnosticPorts", "With `run`, ports that the program connects to in addition to that of dn-top."),
    ("PERFETTO_PRODUCER_SOCK_NAME", "Producer socket of Perfetto's tracing service."),
    ("PERFETTO_CONSUMER_SOCK_NAME", "Consumer socket of Perfetto's tracing service."),
];

const EXIT_CODES: [(&str, &str); 6] = [
    ("0", "done"),
    ("1", "the operation failed"),
    ("2", "usage, or no terminal for the dashboard"),
    ("3", "no such target, or more than one"),
    ("4", "not permitted"),
    ("130", "interrupted; everything received so far is kept, an unfinished export, heap file or repaired file is removed"),
];

/// Prints one page with all commands, so that there is only one page to search.
pub(super) fn page() -> Result<Exit, Failure> {
    let mut page = Vec::new();
    write(&mut page).map_err(anyhow::Error::from)?;
    print::bytes(&page)?;
    Ok(Exit::Done)
}

fn write(mut out: &mut dyn Write) -> io::Result<()> {
    let mut command = Arguments::command();
    command.build();
    let man = Man::new(command.clone());
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    keys(out)?;
    commands(&command, out)?;
    section(out, "EXAMPLES", &EXAMPLES)?;
    section(out, "FILES", &FILES)?;
    section(out, "ENVIRONMENT", &ENVIRONMENT)?;
    section(out, "EXIT STATUS", &EXIT_CODES)
}

fn keys(out: &mut dyn Write) -> io::Result<()> {
    let mut page = Roff::new();
    page.control("SH", ["KEYS OF THE DASHBOARD"]);
    for line in help(&Filter::default(), &KeyMap::default(), None) {
        match line {
            HelpLine::Blank => &mut page,
            HelpLine::Heading(title) => page.control("SS", [title.as_str()]),
            HelpLine::Entry(entry, keys) => {
                let keys: Vec<_> = keys.iter().map(|key| key.name(true)).collect();
                page.control("TP", []).text([bold(keys.join(" "))]).text([roman(entry.help)])
            }
            HelpLine::Note(note) => page.control("PP", []).text([roman(note)]),
        };
    }
    page.to_writer(&mut &mut *out)
}

fn commands(command: &clap::Command, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Roff::new();
    page.control("SH", ["COMMANDS"]);
    subcommands(command, "", &mut page);
    page.to_writer(&mut &mut *out)
}

/// Adds the commands below a command as `help COMMAND` shows them.
fn subcommands(command: &clap::Command, parent: &str, page: &mut Roff) {
    for command in command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help") {
        let name = format!("{parent}{}", command.get_name());
        page.control("SS", [name.as_str()]);
        page.control("nf", []);
        for line in command.clone().render_long_help().to_string().lines() {
            page.text([roman(line)]);
        }
        page.control("fi", []);
        subcommands(command, &format!("{name} "), page);
    }
}

/// Writes a heading and a list of words with their meanings.
fn section(out: &mut dyn Write, heading: &str, rows: &[(&str, &str)]) -> io::Result<()> {
    let mut page = Roff::new();
    page.control("SH", [heading]);
    for (word, meaning) in rows {
        page.control("TP", []).text([bold(*word)]).text([roman(*meaning)]);
    }
    page.to_writer(&mut &mut *out)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn every_example_is_a_command_line() {
        for (line, _) in EXAMPLES {
            assert!(Arguments::try_parse_from(line.split(' ')).is_ok(), "{line}");
        }
    }

    #[test]
    fn page_has_the_commands_below_commands() {
        let (mut command, mut page) = (Arguments::command(), Vec::new());
        command.build();
        commands(&command, &mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        for words in [".SS \"profiler attach\"\n", r"\-\-timeout <TIME>", ".SS \"perfetto serve\"\n", r"dn\-top perfetto serve"] {
            assert!(page.contains(words), "{words}: {page}");
        }
    }
}
