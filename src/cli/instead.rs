//! What to type instead of a command line that cannot be parsed: for options and commands of .NET's tools and of debuggers, and for a process or
//! file without a command.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::Parser as _;
use clap::error::{ContextKind, ErrorKind};

use super::args::{Arguments, recording};
use super::dotnet_tools::{PORT_OPTIONS, port_target};
use super::{command_at, dotnet_tools};
use crate::model::{SafeText, shell_word};

/// Options that precede a process in other tools.
const TARGET_OPTIONS: [&str; 4] = ["-p", "--process-id", "-n", "--name"];

/// Commands of .NET's tools and of the SOS debugger extension, and what answers the same question.
const OTHER_COMMANDS: &[(&[&str], &str)] = &[
    (&["collect"], "trace TARGET"),
    (&["monitor"], "counters TARGET"),
    (&["convert"], "export FILE --format FORMAT"),
    (&["list-profiles"], "profiles"),
    (&["gcdump", "dumpheap", "dumpasync"], "heap TARGET"),
    (&["gcroot"], "heap TARGET --paths TYPE"),
    (&["objsize"], "heap TARGET --retained"),
    (&["stack", "clrstack", "clrthreads", "threads", "parallelstacks", "pstacks"], "stacks TARGET"),
    (&["syncblk"], "contention TARGET"),
    (&["eeheap", "gcheapstat", "gchandles", "finalizequeue"], "gc TARGET"),
    (&["threadpool"], "counters TARGET"),
    (&["printexception", "pe"], "exceptions TARGET"),
    (&["top"], "cpu TARGET --live"),
];

/// Returns a sentence with the command line that may be meant; `None` if the parser's message is sufficient.
pub(super) fn hint(error: &clap::Error, given: &[OsString]) -> Option<String> {
    if let Some(line) = corrected(given) {
        return Some(format!("try `{}`", shown(&line)));
    }
    if error.kind() != ErrorKind::InvalidSubcommand {
        let is_target = TARGET_OPTIONS.contains(&error.get(ContextKind::InvalidArg)?.to_string().as_str());
        return is_target.then(|| "a process is given without an option, such as `dn-top trace 4242` or `dn-top trace MyApp`".to_owned());
    }
    let word = given.get(command_at(given))?;
    if let Some(template) = other_command(word) {
        return Some(format!("try `dn-top {template}`"));
    }
    let is_file = recording(word.to_str()?).is_some() || Path::new(word).extension().is_some_and(|extension| extension == "gcdump");
    let command = if is_file { "open" } else { "info" };
    let is_similar = error.get(ContextKind::SuggestedSubcommand).is_some();
    (is_file || !is_similar).then(|| format!("a command comes first, such as `dn-top {command} {}`", shown_word(word)))
}

/// Returns a command line that can be parsed, made of one that cannot.
fn corrected(original: &[OsString]) -> Option<Vec<OsString>> {
    let at = command_at(original);
    let command = original.get(at)?;
    let (before, rest) = original.split_at(at);
    let renamed = |name: &str| [before, &[name.into()], &rest[1..]].concat();
    let given = if let Some(tool) = command.to_str()?.strip_prefix("dotnet-") {
        let renamed = renamed(tool);
        let translated = dotnet_tools::translate(&renamed).ok().flatten();
        return translated.filter(|translated| is_valid(&translated.arguments)).map(|_| renamed);
    } else if let Some(template) = other_command(command) {
        let (name, arguments) = template.split_once(' ').unwrap_or((template, ""));
        // Such as the address of an object, which is no process.
        if arguments.starts_with("TARGET --") {
            return None;
        }
        renamed(name)
    } else {
        original.to_vec()
    };
    let without_option = || given.iter().filter(|word| !TARGET_OPTIONS.iter().any(|option| word == option)).cloned().collect();
    let candidates = [Some(given.clone()), Some(without_option()), dotnet_tools::with_own_options(&given), with_port(&given)];
    candidates.into_iter().flatten().find(|line| is_valid(line))
}

/// Returns the command line with the diagnostic port as the target instead of an option, as .NET's tools have it; `None` if there is no such option,
/// or the result cannot be parsed.
pub(super) fn with_port_as_target(given: &[OsString]) -> Option<Vec<OsString>> {
    with_port(given).filter(|line| is_valid(line))
}

/// Returns the same, whether or not it can be parsed.
fn with_port(given: &[OsString]) -> Option<Vec<OsString>> {
    let is_option = |word: &str| PORT_OPTIONS.contains(&word.split('=').next().unwrap_or(word));
    let at = given.iter().position(|word| word.to_str().is_some_and(is_option))?;
    let (value, used) = match given[at].to_str()?.split_once('=') {
        Some((_, value)) => (value, 1),
        None => (given.get(at + 1)?.to_str()?, 2),
    };
    Some([&given[..at], &[port_target(value).into()], &given[at + used..]].concat())
}

fn is_valid(line: &[OsString]) -> bool {
    Arguments::try_parse_from(line).is_ok_and(|parsed| parsed.command.is_some())
}

fn other_command(word: &OsStr) -> Option<&'static str> {
    OTHER_COMMANDS.iter().find(|(names, _)| names.iter().any(|name| word.eq_ignore_ascii_case(name))).map(|(_, template)| *template)
}

fn shown(line: &[OsString]) -> String {
    let words = line.iter().skip(1).map(|word| shown_word(word));
    std::iter::once("dn-top".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

fn shown_word(word: &OsStr) -> String {
    SafeText::new(&shell_word(&word.to_string_lossy())).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn command_lines_of_other_tools_are_corrected() {
        for (line, expected) in [
            ("4242", Some("a command comes first, such as `dn-top info 4242`")),
            ("a.nettrace", Some("a command comes first, such as `dn-top open a.nettrace`")),
            ("a.gcdump", Some("a command comes first, such as `dn-top open a.gcdump`")),
            ("-p", Some("a process is given without an option, such as `dn-top trace 4242` or `dn-top trace MyApp`")),
            ("trac 4242", None),
            ("trace 4242 --unknown", None),
            ("trace 4242 --max-size large", None),
            ("trace -p 4242", Some("try `dn-top trace 4242`")),
            ("--readonly info -n 'a", Some("try `dn-top --readonly info ''\\''a'`")),
            ("slow --process-id 4242", Some("try `dn-top slow 4242`")),
            ("slow -p", Some("a process is given without an option, such as `dn-top trace 4242` or `dn-top trace MyApp`")),
            ("trace 4242 --providers A,B --duration 00:00:30", Some("try `dn-top trace --provider A --provider B --duration 30s 4242`")),
            ("trace 4242 --duration 00:01:00", Some("try `dn-top trace --duration 60s 4242`")),
            ("collect --diagnostic-port /run/p --duration 5s", Some("try `dn-top trace --duration 5s /run/p,listen`")),
            ("slow --dport", None),
            ("trace -- app 1", Some("try `dn-top run -- app 1`")),
            ("dotnet-trace collect -p 4242", Some("try `dn-top trace collect -p 4242`")),
            ("dotnet-counters", Some("a command comes first, such as `dn-top info dotnet-counters`")),
            ("collect -p 4242", Some("try `dn-top trace 4242`")),
            ("gcdump 4242", Some("try `dn-top heap 4242`")),
            ("gcdump", Some("try `dn-top heap TARGET`")),
            ("gcroot 00007f", Some("try `dn-top heap TARGET --paths TYPE`")),
            ("clrthreads", Some("try `dn-top stacks TARGET`")),
            ("list-profiles", Some("try `dn-top profiles`")),
            ("counters 4242 System.Runtime", Some("try `dn-top counters --counters System.Runtime 4242`")),
        ] {
            let words: Vec<_> = std::iter::once("dn-top").chain(line.split(' ')).map(OsString::from).collect();
            let error = Arguments::try_parse_from(&words).unwrap_err();
            assert_eq!(hint(&error, &words).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn diagnostic_port_may_be_an_option() {
        for (line, expected) in [
            ("gc --diagnostic-port /run/p --duration 5s", Some("gc /run/p,listen --duration 5s")),
            ("stacks --dport /run/p,connect", Some("stacks /run/p,connect")),
            ("heap --diagnostic-port=/run/p=1 -n 5", Some("heap /run/p=1,listen -n 5")),
            ("counters --dport /run/p,listen", Some("counters /run/p,listen")),
            ("gc 42 --dport /run/p", None),
            ("gc --dport", None),
            ("gc --dports=/run/p", None),
            ("ps --dport /run/p", None),
        ] {
            let words = |line: &str| std::iter::once("dn-top").chain(line.split(' ')).map(OsString::from).collect::<Vec<_>>();
            assert_eq!(with_port_as_target(&words(line)), expected.map(words), "{line}");
        }
    }

    #[test]
    fn each_suggested_command_exists() {
        for (names, template) in OTHER_COMMANDS {
            let words: Vec<_> = std::iter::once("dn-top").chain(template.split(' ')).collect();
            let words: Vec<_> = words.into_iter().map(|word| if word == "FORMAT" { "csv" } else { word }).collect();
            assert!(Arguments::try_parse_from(words).is_ok(), "{template}");
            assert!(names.iter().all(|name| Arguments::command().find_subcommand(name).is_none()), "{names:?}");
        }
    }
}
