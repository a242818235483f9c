//! Checks the README against the program.

#![allow(clippy::unwrap_used, reason = "a missing part of the README is what these tests are to find")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use dn_top::analysis::Filter;
use dn_top::app::action::{Group, KeyMap};
use dn_top::app::help::{HelpLine, help};

/// Headings of the help that the README repeats; keys of single tabs, lists or dialogs are only in the help itself.
const README_GROUPS: [Group; 4] = [Group::Process, Group::Table, Group::Files, Group::Program];

#[test]
fn readme_keys_match_action_table() {
    let mut keys = vec![["Key".to_owned(), "What it does".to_owned()]];
    let mut shown = false;
    for line in help(&Filter::default(), &KeyMap::default(), None) {
        match line {
            HelpLine::Heading(title) => {
                shown = README_GROUPS.iter().any(|group| group.title() == title);
                if shown {
                    keys.push([format!("**{title}**"), String::new()]);
                }
            }
            HelpLine::Entry(entry, keys_of) if shown => {
                let names: Vec<_> = keys_of.iter().map(|key| format!("`{}`", key.name(true))).collect();
                keys.push([names.join(" "), entry.help.to_owned()]);
            }
            _ => {}
        }
    }
    assert_table("## Keys", &keys);
}

/// Panics unless the first table below a heading is this one. With `DN_TOP_UPDATE_README` in the environment, the table is replaced instead.
fn assert_table(heading: &str, rows: &[[String; 2]]) {
    let row = |[left, right]: &[String; 2]| format!("| {left} | {right}{}|\n", if right.is_empty() { "" } else { " " });
    let wanted = row(&rows[0]) + "|---|---|\n" + &rows[1..].iter().map(row).collect::<String>();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let below = readme.find(&format!("\n{heading}\n")).unwrap();
    let start = below + readme[below..].find("\n| ").unwrap() + 1;
    let end = start + readme[start..].find("\n\n").unwrap() + 1;
    if env::var_os("DN_TOP_UPDATE_README").is_some() {
        fs::write(&path, readme[..start].to_owned() + &wanted + &readme[end..]).unwrap();
    } else {
        let hint = "DN_TOP_UPDATE_README=1 cargo test --test readme -- --test-threads 1";
        assert_eq!(&readme[start..end], wanted, "the table below {heading} is not that of the program, which `{hint}` writes");
    }
}

/// Returns the output of dn-top with these arguments.
fn printed(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_dn-top")).args(arguments).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns every command with its description in the help.
fn commands() -> Vec<[String; 2]> {
    let help = printed(&["--help"]);
    let mut commands: Vec<[String; 2]> = Vec::new();
    for line in help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap().lines() {
        // Continuation lines of a description are indented further.
        match (line.strip_prefix("  ").and_then(|line| line.split_once(' ')), commands.last_mut()) {
            (Some((name, what)), _) if !name.is_empty() => commands.push([name.to_owned(), what.trim().to_owned()]),
            (_, Some([_, what])) => *what += &format!(" {}", line.trim()),
            _ => panic!("{help}"),
        }
    }
    commands.retain(|[name, _]| name != "help");
    assert!(commands.len() > 5, "{help}");
    commands
}

#[test]
fn readme_commands_match_help() {
    let rows = commands().into_iter().map(|[name, what]| [format!("`dn-top {name}`"), what]);
    let head = [["Command".to_owned(), "What it does".to_owned()]];
    assert_table("## Commands", &head.into_iter().chain(rows).collect::<Vec<_>>());
}

#[test]
fn the_manual_page_has_every_command() {
    let page = printed(&["man"]);
    let entries = help(&Filter::default(), &KeyMap::default(), None).into_iter().filter(|line| matches!(line, HelpLine::Entry(..))).count();
    // Exit codes are formatted the same way.
    assert!(page.matches(".TP").count() > entries);
    for [name, _] in commands() {
        assert!(page.contains(&format!(".SS {name}\n")), "no section for {name}");
    }
    for heading in ["EXAMPLES", "FILES", "ENVIRONMENT", "EXIT STATUS"] {
        assert!(page.contains(&format!(".SH {heading}\n")) || page.contains(&format!(".SH \"{heading}\"\n")), "no section {heading}");
    }
    let variables = variables(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(variables.len() >= 10, "{variables:?}");
    for name in variables {
        assert!(page.contains(&name), "the manual page does not have the variable {name}");
    }
    // A line that begins with a dot is a request to the formatter.
    let requests = [".SH", ".SS", ".TP", ".TH", ".PP", ".nf", ".fi", ".br", ".RS", ".RE", ".IP", ".ie", ".el", ".ds", ".if"];
    let stray = page.lines().find(|line| line.starts_with('.') && !requests.iter().any(|request| line.starts_with(request)));
    assert_eq!(stray, None);
}

/// Returns the environment variables that the program reads, except those for Windows and shell completions.
fn variables(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() && !entry.ends_with("windows") {
            found.append(&mut variables(&entry));
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&entry).unwrap();
            for call in ["var(\"", "var_os(\"", "variable(\""] {
                let names = text.split(call).skip(1).filter_map(|rest| rest.split('"').next());
                found.extend(names.filter(|name| !name.is_empty() && !name.starts_with('_')).map(str::to_owned));
            }
        }
    }
    found
}
