//! Defaults of the configuration file that the command line overrides without giving another value: `--FLAG=false`, `--OPTION=`, and options that
//! conflict with them.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::ArgMatches;
use clap::builder::{Arg, ArgAction, Command};
use clap::parser::ValueSource;

use crate::cli::args;
use crate::model::TraceFormat;

/// Options, each by its command, empty for options before it, and its long name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OptionSet(BTreeSet<(String, String)>);

impl OptionSet {
    pub(super) fn add(&mut self, command: &str, option: &str) {
        self.0.insert((command.to_owned(), option.to_owned()));
    }

    pub(super) fn contains(&self, command: &str, option: &str) -> bool {
        self.0.iter().any(|(of, name)| of == command && name == option)
    }

    /// Adds options. Returns whether any of them is new.
    pub(super) fn extend(&mut self, others: Self) -> bool {
        let before = self.0.len();
        self.0.extend(others.0);
        self.0.len() > before
    }
}

/// Removes the words that switch an option off from a command line: `--FLAG=false`, and an empty value for a configured option without a default
/// of its own. These are the forms in which the configuration file writes such options. An empty value of any other option remains: it is a mistake.
pub(super) fn switched_off(root: &Command, given: Vec<OsString>, configured: &OptionSet) -> (Vec<OsString>, OptionSet) {
    let (mut kept, mut overrides) = (Vec::with_capacity(given.len()), OptionSet::default());
    let (mut command, mut path) = (root, Vec::new());
    let mut words = given.into_iter();
    kept.extend(words.next());
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        let Some(long) = text.strip_prefix("--") else {
            let short = text.strip_prefix('-').and_then(|letters| letters.parse::<char>().ok());
            let takes_value =
                short.is_some_and(|short| command.get_arguments().any(|option| option.get_short() == Some(short) && has_value(option)));
            if let Some(inner) = command.find_subcommand(text) {
                path.push(text.to_owned());
                command = inner;
            }
            kept.push(word);
            kept.extend(takes_value.then(|| words.next()).flatten());
            continue;
        };
        if long.is_empty() {
            // The rest is the command line of another program.
            kept.push(word);
            break;
        }
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        let option = command.get_arguments().find(|option| option.get_long() == Some(name));
        let is_switch = option.is_some_and(|option| matches!(option.get_action(), ArgAction::SetTrue));
        let can_be_empty = option.is_some_and(|option| has_value(option) && option.get_default_values().is_empty())
            && configured.contains(&path.join(" "), name);
        match value {
            Some("true") if is_switch => kept.push(format!("--{name}").into()),
            Some("false") if is_switch => overrides.add(&path.join(" "), name),
            Some("") if can_be_empty => overrides.add(&path.join(" "), name),
            None if option.is_some_and(has_value) => match words.next() {
                Some(value) if value.is_empty() && can_be_empty => overrides.add(&path.join(" "), name),
                value => kept.extend([Some(word), value].into_iter().flatten()),
            },
            _ => kept.push(word),
        }
    }
    kept.extend(words);
    (kept, overrides)
}

fn has_value(option: &Arg) -> bool {
    option.get_action().takes_values()
}

/// Returns the command line level by level: the options before the command, those of the command, and those of the command below it. Each level has
/// its path, as in the configuration file.
fn levels<'a>(root: &'a Command, matches: &'a ArgMatches) -> Vec<(String, &'a Command, &'a ArgMatches)> {
    let mut levels = vec![(String::new(), root, matches)];
    while let Some((path, command, matches)) = levels.last()
        && let Some((name, inner)) = matches.subcommand()
        && let Some(found) = command.find_subcommand(name)
    {
        let path = if path.is_empty() { name.to_owned() } else { format!("{path} {name}") };
        levels.push((path, found, inner));
    }
    levels
}

/// Returns the options whose default conflicts with the command line.
pub(super) fn conflicting(root: &Command, matches: &ArgMatches, parsed: Option<&args::Command>) -> OptionSet {
    let (mut overrides, inapplicable) = (OptionSet::default(), parsed.map(inapplicable).unwrap_or_default());
    for (path, command, matches) in levels(root, matches) {
        let has_source = |option: &&Arg, source| matches.value_source(option.get_id().as_str()) == Some(source);
        let given: Vec<_> = command.get_arguments().filter(|option| has_source(option, ValueSource::CommandLine)).collect();
        for default in command.get_arguments().filter(|option| has_source(option, ValueSource::DefaultValue)) {
            let Some(name) = default.get_long() else { continue };
            let is_refused = given.iter().any(|given| exclude_each_other(command, given, default));
            if is_refused || !path.is_empty() && inapplicable.contains(&name) {
                overrides.add(&path, name);
            }
        }
    }
    overrides
}

fn exclude_each_other(command: &Command, one: &Arg, other: &Arg) -> bool {
    let refuses = |one: &Arg, other: &Arg| command.get_arg_conflicts_with(one).iter().any(|refused| refused.get_id() == other.get_id());
    refuses(one, other) || refuses(other, one)
}

/// Returns what to do about two options of the configuration file that exclude each other, if both apply. The parser does not notice it: for it,
/// defaults are not given.
pub(super) fn contradiction(root: &Command, matches: &ArgMatches) -> Option<String> {
    for (path, command, matches) in levels(root, matches) {
        let is_configured = |option: &&Arg| {
            let id = option.get_id().as_str();
            // The parser adds the default of a switch, when it builds the command.
            let is_default = || match option.get_action() {
                ArgAction::SetTrue => !matches.get_flag(id),
                _ => matches.get_raw(id).into_iter().flatten().eq(option.get_default_values().iter().map(|default| &**default)),
            };
            matches.value_source(id) == Some(ValueSource::DefaultValue) && !is_default()
        };
        let configured: Vec<_> = command.get_arguments().filter(is_configured).collect();
        for (place, one) in configured.iter().enumerate() {
            let Some(other) = configured[place + 1..].iter().find(|other| exclude_each_other(command, one, other)) else { continue };
            let table = if path.is_empty() { String::new() } else { format!("[{path}] ") };
            let [one_name, other_name] = [one, other].map(|option| option.get_long().unwrap_or_default());
            let example = [one, other].into_iter().find_map(|option| off_switch(option)).map(|word| format!(", such as {word}"));
            return Some(format!(
                "{table}{one_name} and {other_name} exclude each other: remove one of them, or override one on the command line{}",
                example.unwrap_or_default()
            ));
        }
    }
    None
}

/// Returns the word that switches an option off, see [`switched_off`].
fn off_switch(option: &Arg) -> Option<String> {
    let name = option.get_long()?;
    match option.get_action() {
        ArgAction::SetTrue => Some(format!("--{name}=false")),
        _ => option.get_default_values().is_empty().then(|| format!("--{name}=")),
    }
}

/// Returns the options of a command that its arguments exclude.
fn inapplicable(command: &args::Command) -> Vec<&'static str> {
    match command {
        args::Command::Heap(heap) if heap.file().is_some() => vec!["gcdump", "output"],
        args::Command::Export(export) => {
            let of_perfetto = ["slices", "flows"].into_iter().filter(|_| export.format != TraceFormat::Perfetto);
            let of_timelines = (!export.format.has_timeline()).then_some("all-events");
            let of_parts = ["from", "to", "thread"].into_iter().filter(|_| !export.format.has_parts());
            let of_files = export.output_path.as_ref().filter(|path| path.as_os_str() == "-").map(|_| "json");
            of_perfetto.chain(of_timelines).chain(of_parts).chain(of_files).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::args::Arguments;
    use crate::cli::config::{CommandLine, options_in};

    fn parse(config: &str, line: &str) -> Result<args::Command, String> {
        let words = line.split(' ').map(|word| OsString::from(word.trim_matches('\''))).collect();
        let line = CommandLine::parse(words, &"config.toml".into(), config).map_err(|failure| failure.error.to_string())?;
        let (arguments, _) = line.parsed.map_err(|error| error.to_string())?;
        arguments.command.ok_or_else(|| "no command".to_owned())
    }

    fn trace(config: &str, line: &str) -> args::Record {
        match parse(config, line) {
            Ok(args::Command::Trace(trace)) => trace.record,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn configured_default_gives_way_to_a_conflicting_option() {
        let config = "[trace]\nflight = '64MB'\nbuffer-mb = 8\nstop-on = 'A/B'\n[heap]\ngcdump = true\n[export]\nformat = 'csv'\nslices = true\njson = true";
        assert!(trace(config, "dn-top trace 7").flight.is_some());
        let sized = trace(config, "dn-top trace 7 --max-size 1MB");
        assert!(sized.flight.is_none() && sized.max_size == Some(1_000_000) && sized.buffer_mb == 8 && sized.stop_on.is_some());
        let kernel = trace(config, "dn-top trace 7 --kernel");
        assert!(kernel.flight.is_none() && kernel.kernel);
        let tracepoint = trace(config, "dn-top trace 7 --user-events a");
        assert!(tracepoint.flight.is_none() && tracepoint.stop_on.is_none() && tracepoint.buffer_mb == 256);
        let heap = |line: &str| match parse(config, line) {
            Ok(args::Command::Heap(heap)) => (heap.gcdump, heap.graph_file.is_some()),
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(heap("dn-top heap 7"), (true, false));
        assert_eq!(heap("dn-top heap 7 -o a.gcdump"), (false, true));
        assert_eq!(heap("dn-top heap a.gcdump"), (false, false));
        // What is given explicitly is refused by the command.
        assert_eq!(heap("dn-top heap a.gcdump --gcdump"), (true, false));
        let export = |line: &str| match parse(config, line) {
            Ok(args::Command::Export(export)) => (export.format, export.slices, export.output.json),
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(export("dn-top export a.nettrace"), (TraceFormat::Csv, false, true));
        assert_eq!(export("dn-top export a.nettrace --format perfetto -o -"), (TraceFormat::Perfetto, true, false));
    }

    #[test]
    fn configured_options_that_exclude_each_other_are_refused() {
        let config =
            "[trace]\nflight = '64MB'\nmax-size = '1MB'\nkernel = false\nbuffer-mb = 256\n[heap]\ngcdump = true\noutput = 'a.gcdump'\n";
        assert_eq!(
            parse(config, "dn-top trace 7").unwrap_err(),
            "config.toml: [trace] flight and max-size exclude each other: remove one of them, or override one on the command line, such as --flight="
        );
        assert!(parse(config, "dn-top heap 7").unwrap_err().ends_with(", such as --output="));
        assert!(parse("[trace]\nkernel = true\nlegacy = true", "dn-top trace 7").unwrap_err().ends_with(", such as --legacy=false"));
        for line in ["dn-top trace 7 --flight=", "dn-top trace 7 --max-size=", "dn-top trace 7 --flight 1m", "dn-top trace 7 --kernel"] {
            trace(config, line);
        }
        // These options do not apply.
        for line in ["dn-top heap a.gcdump", "dn-top ps"] {
            assert!(parse(config, line).is_ok(), "{line}");
        }
        // An option with its default value is not in conflict with another.
        assert!(trace("[trace]\nuser-events = ['a']\nbuffer-mb = 256\nkernel = false", "dn-top trace 7").buffer_mb == 256);
        assert!(parse("[trace]\nuser-events = ['a']\nbuffer-mb = 8", "dn-top trace 7").is_err());
    }

    #[test]
    fn configured_default_can_be_switched_off() {
        let config = "readonly = true\n[trace]\nflight = '64MB'\nkernel = true\nprofile = ['cpu']\n[export]\nformat = 'csv'\n";
        for line in ["dn-top trace 7 --flight= --kernel=false --profile=", "dn-top trace --profile '' --kernel=false --flight '' 7"] {
            let record = trace(config, line);
            assert!(record.flight.is_none() && !record.kernel && record.events.selection.profile.is_empty(), "{line}");
        }
        assert!(trace("", "dn-top trace 7 --kernel=true").kernel);
        // There is no default to switch off: an empty value is refused like any other that is invalid.
        for line in ["dn-top trace 7 --profile=", "dn-top trace 7 --profile ''"] {
            assert_eq!(trace("", line).events.selection.profile, [""], "{line}");
        }
        assert_eq!(trace(config, "dn-top trace 7 --flight= --profile= --profile gc-collect").events.selection.profile, ["gc-collect"]);
        let refused = |line: &str| parse(config, line).unwrap_err();
        assert!(refused("dn-top export a.nettrace --format=").contains("--format"));
        assert!(refused("dn-top trace 7 --kernel=maybe").contains("unexpected value 'maybe'"));
        // Options with a default of their own have no empty value.
        assert!(refused("dn-top trace 7 --buffer-mb=").contains("--buffer-mb"));
    }

    #[test]
    fn words_that_are_no_options_are_kept() {
        for line in [
            "dn-top run --duration 1s -- app --json=false --flight=",
            "dn-top trace --output --json=false 7",
            "dn-top heap -o --json=false 7",
            "dn-top --unknown=false trace 7",
            "dn-top set-env 7 A=",
        ] {
            let given: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let configured = options_in("[trace]\nflight = '1MB'\n[run]\nflight = '1MB'");
            assert_eq!(switched_off(&Arguments::command(), given.clone(), &configured), (given, OptionSet::default()), "{line}");
        }
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let (kept, off) = switched_off(&Arguments::command(), words("dn-top --readonly=false trace --json=false 7"), &OptionSet::default());
        assert_eq!(kept, words("dn-top trace 7"));
        assert!(off.contains("", "readonly") && off.contains("trace", "json") && !off.contains("", "json"));
    }
}
