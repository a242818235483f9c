//! What the README says of the program, held against the program.

#![allow(clippy::unwrap_used, reason = "a missing part of the README is what these tests are to find")]

use std::process::Command;

use dn_top::app::action::Group;
use dn_top::app::help::{HelpLine, help};

const README: &str = include_str!("../README.md");

/// The headings of the help that the README repeats; how to move in lists and dialogs is left to the help itself.
const SHOWN: [Group; 4] = [Group::Process, Group::Table, Group::Details, Group::Program];

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

#[test]
fn every_command_is_listed_and_none_that_is_not_there() {
    let help = Command::new(env!("CARGO_BIN_EXE_dn-top")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    // A description that does not fit its line goes on in further ones, which are indented more.
    let lines = commands.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let names: Vec<_> = lines.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help").collect();
    assert!(names.len() > 5, "{help}");
    let listed: Vec<_> =
        README.lines().filter_map(|line| line.strip_prefix("| `dn-top ")).filter_map(|line| line.split([' ', '`']).next()).collect();
    assert_eq!(listed, names);
}
