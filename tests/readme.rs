//! What the README says of the program, held against the program.

#![allow(clippy::unwrap_used, reason = "a missing part of the README is what these tests are to find")]

use std::process::Command;

use dn_top::app::action::Group;
use dn_top::app::help::{HelpLine, help};

const README: &str = include_str!("../README.md");

/// The headings of the help that the README repeats; how to move in lists and dialogs is left to the help itself.
const SHOWN: [Group; 5] = [Group::Process, Group::Table, Group::Details, Group::Files, Group::Program];

#[test]
fn the_keys_are_those_of_the_action_table() {
    let mut keys = String::new();
    let mut shown = false;
    for line in help("") {
        match line {
            HelpLine::Heading(title) => {
                shown = SHOWN.iter().any(|group| group.title() == title);
                if shown {
                    keys += &format!("{}{title}\n", if keys.is_empty() { "" } else { "\n" });
                }
            }
            HelpLine::Entry(entry) if shown => {
                let names: Vec<_> = entry.keys.iter().map(|key| key.name(true)).collect();
                keys += &format!("  {:<16}{}\n", names.join(" "), entry.help);
            }
            _ => {}
        }
    }
    let section = README.split("## Keys").nth(1).unwrap();
    let block = section.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(block, keys, "the README's list of keys should be:\n{keys}");
}

/// What dn-top prints when it is called like this.
fn printed(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_dn-top")).args(arguments).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn commands() -> Vec<String> {
    let help = printed(&["--help"]);
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    // A description that does not fit its line goes on in further ones, which are indented more.
    let lines = commands.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let names: Vec<_> = lines.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help").map(str::to_owned).collect();
    assert!(names.len() > 5, "{help}");
    names
}

#[test]
fn every_command_is_listed_and_none_that_is_not_there() {
    let listed: Vec<_> =
        README.lines().filter_map(|line| line.strip_prefix("| `dn-top ")).filter_map(|line| line.split([' ', '`']).next()).collect();
    assert_eq!(listed, commands());
}

#[test]
fn the_manual_page_and_the_completions_have_every_command() {
    let page = printed(&["man"]);
    let entries = help("").into_iter().filter(|line| matches!(line, HelpLine::Entry(_))).count();
    // Exit codes are written the same way.
    assert!(page.matches(".TP").count() > entries);
    for name in commands() {
        assert!(page.contains(&format!(".SS {name}\n")), "no section for {name}");
        for shell in ["bash", "fish", "zsh"] {
            assert!(printed(&["completions", shell]).contains(&name), "{shell} does not complete {name}");
        }
    }
    // A line that begins with a dot is a request to the formatter.
    let requests = [".SH", ".SS", ".TP", ".TH", ".PP", ".nf", ".fi", ".br", ".RS", ".RE", ".IP", ".ie", ".el", ".ds", ".if"];
    let stray = page.lines().find(|line| line.starts_with('.') && !requests.iter().any(|request| line.starts_with(request)));
    assert_eq!(stray, None);
}
