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

const EXIT_CODES: [(&str, &str); 6] = [
    ("0", "done"),
    ("1", "the operation failed"),
    ("2", "usage, or no terminal for the dashboard"),
    ("3", "no such target, or more than one"),
    ("4", "not permitted"),
    ("130", "interrupted; everything received so far is kept"),
];

/// One page with all commands: someone in trouble searches one page, and not nineteen.
pub(super) fn page() -> Result<Exit, Failure> {
    print::more(|mut out| {
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
        files(out)?;
        exit_codes(out)
    })?;
    Ok(Exit::Done)
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

/// As `help COMMAND` shows them.
fn commands(command: &clap::Command, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Roff::new();
    page.control("SH", ["COMMANDS"]);
    for command in command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help") {
        page.control("SS", [command.get_name()]);
        page.control("nf", []);
        for line in command.clone().render_long_help().to_string().lines() {
            page.text([roman(line)]);
        }
        page.control("fi", []);
    }
    page.to_writer(&mut &mut *out)
}

fn files(out: &mut dyn Write) -> io::Result<()> {
    let mut page = Roff::new();
    page.control("SH", ["FILES"]);
    page.control("TP", []).text([bold("$XDG_CONFIG_HOME/dn-top/config.toml, ~/.config/dn-top/config.toml")]).text([roman(
        "Defaults for the options of the command line; `dn-top config` prints one with every option. It must belong to the user who runs dn-top, or to root.",
    )]);
    page.to_writer(&mut &mut *out)
}

fn exit_codes(out: &mut dyn Write) -> io::Result<()> {
    let mut page = Roff::new();
    page.control("SH", ["EXIT CODES"]);
    for (code, meaning) in EXIT_CODES {
        page.control("TP", []).text([bold(code)]).text([roman(meaning)]);
    }
    page.to_writer(&mut &mut *out)
}
