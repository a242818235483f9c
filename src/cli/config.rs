//! The configuration file: defaults for the options of the command line, keys, thresholds.
//!
//! A key is the long name of an option; the options of a command are in a table named after it. So every option of the command line can be
//! configured, is checked by the same parser, and appears in `--help` as the default. Settings that are not options are in [`Settings`].

mod command_line;
mod overrides;
mod settings;
mod themes;

use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::CommandFactory as _;
use clap::builder::{Arg, ArgAction, Command};
use clap::error::ErrorKind;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::args::Arguments;
use super::exit::{Exit, Failure};
use super::print;
use crate::model::SafeText;
use crate::net::{files, user};

use overrides::OptionSet;

pub(super) use command_line::CommandLine;
pub(super) use settings::Settings;
pub(super) use themes::{theme, theme_files, user_themes};

/// Maximum size of a file, in bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// An error in the file and its byte offset.
#[derive(Debug)]
struct ConfigError {
    at: usize,
    what: String,
}

fn folder() -> Option<PathBuf> {
    Some(user::config_folder()?.join("dn-top"))
}

fn path() -> Option<PathBuf> {
    Some(folder()?.join("config.toml"))
}

fn read(path: &Path) -> io::Result<String> {
    let file = files::open_trusted(path)?;
    if file.metadata()?.len() > MAX_FILE_BYTES {
        return Err(io::Error::other("it is larger than 64 KiB"));
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the options that the configuration file sets; none if it is invalid, which is reported when it is applied.
fn options_in(text: &str) -> OptionSet {
    let mut options = OptionSet::default();
    for (key, value) in DeTable::parse(text).map(Spanned::into_inner).unwrap_or_default() {
        match value.get_ref() {
            DeValue::Table(table) => table.keys().for_each(|option| options.add(key.get_ref(), option.get_ref())),
            _ => options.add("", key.get_ref()),
        }
    }
    options
}

/// Returns the command with the defaults of the configuration file, except overridden ones, and the other settings of the file.
fn apply(mut command: Command, text: &str, overrides: &OptionSet) -> Result<(Command, Settings), ConfigError> {
    let mut settings = Settings::default();
    let table = DeTable::parse(text)
        .map_err(|error| ConfigError { at: error.span().map_or(0, |span| span.start), what: one_line(error.message()) })?;
    for (key, value) in table.get_ref() {
        let name = key.get_ref().as_ref();
        match value.get_ref() {
            DeValue::Table(table) if settings.table(name, table)? => {}
            _ if settings.value(name, value)? => {}
            DeValue::Table(options) => {
                let Some(known) = command.find_subcommand(name).filter(|known| !known.is_hide_set()) else {
                    let commands = command.get_subcommands().filter(|known| !known.is_hide_set()).map(Command::get_name);
                    let what = unknown_name_error(name, "table", commands.chain(settings::TABLES).collect());
                    return Err(ConfigError { at: key.span().start, what });
                };
                let mut changed = known.clone();
                for (key, value) in options {
                    let is_overridden = overrides.contains(name, key.get_ref());
                    changed = with_default(changed, key.get_ref(), key.span(), value, is_overridden)?;
                }
                command = command.mut_subcommand(name, |_| changed);
            }
            _ => command = with_default(command, name, key.span(), value, overrides.contains("", name))?,
        }
    }
    Ok((command, settings))
}

/// Replaces the default of one option, or only checks the value if it is overridden.
fn with_default(
    command: Command,
    key: &str,
    span: Range<usize>,
    value: &Spanned<DeValue<'_>>,
    is_overridden: bool,
) -> Result<Command, ConfigError> {
    let mistake = |at: usize, what: String| Err(ConfigError { at, what });
    let Some(option) = options(&command).find(|option| option.get_long() == Some(key)) else {
        let names =
            options(&command).filter_map(Arg::get_long).chain(settings::VALUES.into_iter().filter(|_| command.get_name() == "dn-top"));
        return mistake(span.start, unknown_name_error(key, "option", names.collect()));
    };
    let is_flag = matches!(option.get_action(), ArgAction::SetTrue);
    let values: Vec<String> = match (value.get_ref(), is_flag) {
        (DeValue::Boolean(false), true) => return Ok(command),
        (DeValue::Boolean(true), true) => vec!["true".into()],
        (_, true) => return mistake(value.span().start, format!("{key} must be true or false")),
        // The printed form of an option without a default.
        (DeValue::String(text), false) if text.is_empty() && option.get_default_values().is_empty() => return Ok(command),
        (DeValue::String(text), false) => vec![text.as_ref().to_owned()],
        (DeValue::Integer(number), false) => vec![number.to_string()],
        (DeValue::Array(items), false) if matches!(option.get_action(), ArgAction::Append) => {
            let texts = items.iter().map(|item| item.get_ref().as_str().map(str::to_owned));
            let Some(texts) = texts.collect() else { return mistake(value.span().start, format!("{key} must be a list of strings")) };
            texts
        }
        _ => return mistake(value.span().start, format!("{key} must be a string")),
    };
    if !is_flag {
        // Checked by the parser of the command line; errors about missing other arguments are ignored.
        let words = ["dn-top".to_owned()].into_iter().chain(values.iter().map(|value| format!("--{key}={value}")));
        if let Err(error) = command.clone().try_get_matches_from(words)
            && matches!(
                error.kind(),
                ErrorKind::InvalidValue | ErrorKind::ValueValidation | ErrorKind::NoEquals | ErrorKind::WrongNumberOfValues
            )
        {
            return mistake(value.span().start, one_line(&error.to_string()));
        }
    }
    if is_overridden {
        return Ok(command);
    }
    let id = option.get_id().clone();
    // Defaults do not count as given.
    Ok(command.mut_arg(id, |option| option.default_values(values).required(false)))
}

/// Returns the options that can be configured.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let is_setting =
        |option: &&Arg| !matches!(option.get_action(), ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version);
    command.get_arguments().filter(is_setting).filter(|option| option.get_long().is_some() && !option.is_hide_set())
}

/// Jaro-Winkler similarity above which a name is suggested (1 is equal).
const MIN_SIMILARITY: f64 = 0.8;

/// Formats the message for an unknown name, with the most similar known one.
fn unknown_name_error(word: &str, kind: &str, names: Vec<&str>) -> String {
    let similarity = |known: &&str| strsim::jaro_winkler(known, word);
    let nearest = names.into_iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    match nearest.filter(|nearest| similarity(nearest) > MIN_SIMILARITY) {
        Some(nearest) => format!("unknown {kind} '{word}'; did you mean '{nearest}'?"),
        None => format!("unknown {kind} '{word}'; `dn-top config` lists them"),
    }
}

/// Reduces a parser's message to one line, without the `error:` prefix and the hint about `--help`.
fn one_line(message: &str) -> String {
    let message = message.trim_start_matches("error: ");
    let message = message.split("\n\n").next().unwrap_or_default();
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `config`: prints the configuration file with every default, commented out.
pub(super) fn print() -> Result<Exit, Failure> {
    let place = path().map_or_else(|| SafeText::new("~/.config/dn-top/config.toml"), |path| SafeText::from_path(&path));
    let head = format!(
        "# Defaults for the options of dn-top. It reads this file from {place}.\n\
         # Options on the command line override them: --ascii=false switches a flag off, --filter= an option without a default.\n"
    );
    print::text(|out| write!(out, "{head}{}", defaults(&Arguments::command())))?;
    Ok(Exit::Done)
}

fn defaults(command: &Command) -> String {
    let mut text = describe(command) + &settings::describe_values() + &settings::describe_tables();
    for command in command.get_subcommands().filter(|command| !command.is_hide_set() && options(command).next().is_some()) {
        text += &format!("\n[{}]\n{}", command.get_name(), describe(command));
    }
    text
}

fn describe(command: &Command) -> String {
    options(command)
        .map(|option| {
            let help = option.get_help().map(ToString::to_string).unwrap_or_default();
            let (help, value) = match (option.get_action(), option.get_default_values()) {
                (ArgAction::SetTrue, _) => (help, "false".to_owned()),
                // Help and defaults are dn-top's own texts, which contain nothing that Rust and TOML escape differently.
                (_, [default]) => (help, format!("{:?}", default.to_string_lossy())),
                (action, _) => {
                    let name = option.get_value_names().unwrap_or_default().first().map_or("VALUE", |name| name.as_str());
                    let nothing = if matches!(action, ArgAction::Append) { "[]" } else { "\"\"" };
                    (format!("{help} <{name}>"), nothing.to_owned())
                }
            };
            format!("\n# {help}\n# {} = {value}\n", option.get_long().unwrap_or_default())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::action::KeyMap;
    use crate::model::OutputName;

    fn configured(text: &str) -> Result<Command, String> {
        with_settings(text).map(|(command, _)| command)
    }

    fn with_settings(text: &str) -> Result<(Command, Settings), String> {
        apply(Arguments::command(), text, &OptionSet::default()).map_err(|mistake| format!("{}: {}", mistake.at, mistake.what))
    }

    #[test]
    fn config_overrides_defaults_and_command_line_overrides_config() {
        let text =
            "theme = 'light'\nreadonly = true\nascii = false\n[trace]\nprofile = ['gc-collect', 'cpu']\n[counters]\ninterval = '5s'\n";
        let command = configured(text).unwrap();
        let matches = command.clone().get_matches_from(["dn-top"]);
        assert_eq!(matches.get_one::<String>("theme").unwrap(), "light");
        assert_eq!((matches.get_flag("readonly"), matches.get_flag("ascii")), (true, false));
        let matches = command.clone().get_matches_from(["dn-top", "--theme", "mono", "counters", "7"]);
        assert_eq!(matches.get_one::<String>("theme").unwrap(), "mono");
        let interval = matches.subcommand_matches("counters").unwrap().get_one::<std::time::Duration>("interval");
        assert_eq!(interval, Some(&std::time::Duration::from_secs(5)));
        // A number is passed on as it is written.
        let numbers = configured("[trace]\nrundown = 0x38\nbuffer-mb = 64").unwrap().get_matches_from(["dn-top", "trace", "7"]);
        let trace = numbers.subcommand_matches("trace").unwrap();
        assert_eq!((trace.get_one::<String>("rundown").unwrap().as_str(), trace.get_one("buffer_mb")), ("0x38", Some(&64_u32)));
        assert!(command.clone().render_help().to_string().contains("[default: light]"));
        // A required option need not be given if it is configured.
        let export = configured("[export]\nformat = 'csv'").unwrap().try_get_matches_from(["dn-top", "export", "a.nettrace"]).unwrap();
        assert_eq!(export.subcommand_matches("export").unwrap().get_one("format"), Some(&crate::model::TraceFormat::Csv));
    }

    #[test]
    fn every_config_error_is_one_line() {
        let table = [
            ("refrsh = '1s'", "0: unknown option 'refrsh'; did you mean 'refresh'?"),
            ("[trce]", "1: unknown table 'trce'; did you mean 'trace'?"),
            ("[trace]\nprofil = ['cpu']", "8: unknown option 'profil'; did you mean 'profile'?"),
            ("zzz = 1", "0: unknown option 'zzz'; `dn-top config` lists them"),
            ("help = true", "0: unknown option 'help'; `dn-top config` lists them"),
            ("sim = 'x'", "0: unknown option 'sim'; `dn-top config` lists them"),
            ("ascii = 'yes'", "8: ascii must be true or false"),
            ("theme = 7.5", "8: theme must be a string"),
            ("[trace]\nbuffer-mb = 0x40", "20: invalid value '0x40' for '--buffer-mb <MB>': invalid digit found in string"),
            ("color = 'sometimes'", "8: invalid value 'sometimes' for '--color <WHEN>' [possible values: auto, always, never]"),
            (
                "theme = 'drak'",
                "8: invalid value 'drak' for '--theme <NAME|FILE>': expected auto, dark, light, neutral, high-contrast, mono or a file that ends in .toml",
            ),
            ("[trace]\nprofile = [1]", "18: profile must be a list of strings"),
            (
                "columns = 'pid,nme'",
                "10: invalid value 'pid,nme' for '--columns <NAMES>': unknown column 'nme': expected one of pid,name,runtime,cpu,rss,heap,alloc,gc,\
                 exc,tpq,threads,user,uptime,state,container,command",
            ),
            ("sort = 'cpu:up'", "7: invalid value 'cpu:up' for '--sort <COLUMN[:asc|desc]>': unknown direction 'up': expected asc or desc"),
        ];
        let of_settings = [
            ("[keys]\ntrce = 'x'", "7: unknown action 'trce'; did you mean 'trace'?"),
            ("[kyes]\ntrace = 'x'", "1: unknown table 'kyes'; did you mean 'keys'?"),
            ("keys = 'x'", "7: keys must be a table: [keys]"),
            ("[keys]\ntrace = 'Esc'", "15: Esc cannot be reassigned"),
            ("[keys]\ntrace = 'ctrl-c'", "15: Ctrl-C cannot be reassigned"),
            ("[keys]\ntrace = 'Ctrl-M'", "15: Ctrl-M is Enter in a terminal"),
            ("[keys]\ntrace = '5'", "15: digits cannot be reassigned"),
            ("[keys]\ntrace = 7", "15: trace must be a key, or a list of keys"),
            ("[keys]\ntrace = []", "15: trace has 1 to 4 keys"),
            (
                "[keys]\ntrace = ['x', 'Alt-T']",
                "15: unknown key 'Alt-T': expected a character of one column, Space, Ctrl- with a letter, or F1 to F12",
            ),
            ("[keys]\ntrace = 'w'", "15: w is already the key of watch; give watch another key"),
            ("[keys]\nquit = 'N'\nwatch = 'd'", "26: d is already the key of dump; give dump another key"),
            ("[keys]\ntrace = 'N'\nwatch = 'N'", "15: N is already the key of watch; give watch another key"),
            ("[keys]\nchoose = 'Q'", "16: choose works where text is typed: Ctrl with a letter, or F1 to F12"),
            ("[thresholds]\ngc-tme = 5", "13: unknown threshold 'gc-tme'; did you mean 'gc-time'?"),
            ("[thresholds]\ngc-time = 0", "23: gc-time must be a number from 0.1 to 100"),
            ("[thresholds]\ngc-time = 101", "23: gc-time must be a number from 0.1 to 100"),
            ("[thresholds]\ngc-time = nan", "23: gc-time must be a number from 0.1 to 100"),
            ("[thresholds]\ngc-time = '10 %'", "23: gc-time must be a number from 0.1 to 100"),
            ("[thresholds]\ngc-time = 0x10", "23: gc-time must be a number from 0.1 to 100"),
            ("secret-patterns = 'DSN'", "18: secret-patterns must be a list of strings"),
            ("secret-patterns = ['']", "18: a pattern has 1 to 128 bytes"),
            ("secret-pattern = ['DSN']", "0: unknown option 'secret-pattern'; did you mean 'secret-patterns'?"),
            ("output-name = 7", "14: output-name must be a string"),
            ("output-name = '../{name}'", "14: a name must not begin with '.' or '-'"),
            ("output-name = 'a/{name}'", "14: a name consists of letters, digits, '.', '-', '_' and placeholders such as {name}"),
            ("output-name = '{host}'", "14: there is no {host}: expected {name}, {pid}, {time} or {kind}"),
            ("output-folder = 'traces'", "16: output-folder must be the absolute path of a folder"),
            ("default-profiles = 'cpu'", "19: default-profiles must be a list of strings"),
            ("default-profiles = ['cpu', 'cpuu']", "27: unknown profile 'cpuu'; did you mean 'cpu'?"),
            ("output-name = '{name'", "14: a '{' has no '}'"),
        ];
        for (text, message) in table.into_iter().chain(of_settings) {
            assert_eq!(configured(text).unwrap_err(), message, "{text}");
        }
        for text in ["theme = ", "=", "[", "theme = 'a'\ntheme = 'b'", "\0", "refresh = 'never'", "refresh = ''", "theme.x = 1"] {
            let message = configured(text).unwrap_err();
            assert!(!message.contains('\n') && message.len() > 8, "{message}");
        }
    }

    #[test]
    fn settings_are_parsed() {
        let text = "secret-patterns = ['*_DSN']\noutput-folder = '/var/traces'\noutput-name = '{kind}-{pid}'\ndefault-profiles = ['cpu']\n[keys]\ntrace = ['F9', 'N']\n[thresholds]\ngc-time = 2.5\nexceptions = 7\n";
        let (_, Settings { keys, thresholds, secrets, output_name, profiles }) = with_settings(text).unwrap();
        assert_eq!(keys.name(crate::app::action::Action::Trace), "F9");
        assert!(secrets.matches("SENTRY_DSN") && !secrets.matches("PATH"));
        assert_eq!((output_name.to_string().as_str(), output_name.folder()), ("{kind}-{pid}", Path::new("/var/traces")));
        assert_eq!(profiles, Some(vec!["cpu".to_owned()]));
        let mut wanted = crate::diagnosis::Thresholds::default();
        wanted.set(crate::diagnosis::Threshold::GcTime, 2.5).unwrap();
        wanted.set(crate::diagnosis::Threshold::Exceptions, 7.0).unwrap();
        assert_eq!(thresholds, wanted);
    }

    /// The printed keys and tables of the settings, uncommented, are the defaults.
    #[test]
    fn the_printed_settings_are_the_defaults() {
        let printed = settings::describe_values() + &settings::describe_tables();
        let uncommented: String = printed
            .lines()
            .map(|line| line.strip_prefix("# ").filter(|line| line.contains(" = ")).unwrap_or(line).to_owned() + "\n")
            .collect();
        let (_, settings) = with_settings(&uncommented).unwrap();
        assert_eq!(settings.thresholds, crate::diagnosis::Thresholds::default());
        assert_eq!(settings.output_name, OutputName::default());
        assert_eq!(settings.profiles, Some(crate::clr::DASHBOARD_PROFILES.map(str::to_owned).to_vec()));
        for action in crate::app::action::Action::rebindable() {
            assert_eq!(settings.keys.name(action), KeyMap::default().name(action), "{action:?}");
        }
    }

    #[test]
    fn printed_config_parses_and_equals_the_defaults() {
        let text = defaults(&Arguments::command());
        let command = configured(&text).unwrap();
        assert_eq!(command.clone().render_long_help().to_string(), Arguments::command().render_long_help().to_string());
        // Uncommented, every line is accepted as it is.
        let lines = text.lines().map(|line| line.strip_prefix("# ").filter(|line| line.contains(" = ")).unwrap_or(line));
        assert!(lines.clone().filter(|line| line.contains(" = ") && !line.starts_with('#')).count() > 200, "{text}");
        let command = configured(&lines.collect::<Vec<_>>().join("\n")).unwrap();
        assert_eq!(command.clone().render_long_help().to_string(), Arguments::command().render_long_help().to_string());
        assert!(text.contains("# refresh = \"1s\"\n") && text.contains("\n[trace]\n"), "{text}");
    }
}
