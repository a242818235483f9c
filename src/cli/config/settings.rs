//! Settings of the configuration file that are not options: keys, thresholds, secret patterns, output names, default profiles.

use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{ConfigError, unknown_name_error};
use crate::app::action::{self, Action, Key, KeyConflict, KeyMap};
use crate::clr;
use crate::diagnosis::{Threshold, Thresholds};
use crate::model::{OutputName, SecretPatterns};
use crate::sorting::CompactSort;

/// Names of the tables and keys.
const KEYS: &str = "keys";
const THRESHOLDS: &str = "thresholds";
const SECRETS: &str = "secret-patterns";
const OUTPUT: &str = "output-name";
const FOLDER: &str = "output-folder";
const PROFILES: &str = "default-profiles";
pub(super) const VALUES: [&str; 4] = [SECRETS, OUTPUT, FOLDER, PROFILES];
pub(super) const TABLES: [&str; 2] = [KEYS, THRESHOLDS];

/// Settings of the configuration file that are not options.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct Settings {
    pub(in crate::cli) keys: KeyMap,
    pub(in crate::cli) thresholds: Thresholds,
    pub(in crate::cli) secrets: SecretPatterns,
    pub(in crate::cli) output_name: OutputName,
    /// Default profiles of recordings in the dashboard.
    pub(in crate::cli) profiles: Option<Vec<String>>,
}

impl Settings {
    /// Applies a table of the file. Returns whether it is one of these settings.
    pub(super) fn table(&mut self, name: &str, table: &DeTable<'_>) -> Result<bool, ConfigError> {
        match name {
            KEYS => self.keys = keys(table)?,
            THRESHOLDS => {
                for (key, value) in table {
                    let all = Threshold::ALL.into_iter().map(|threshold| (threshold, threshold.name()));
                    let threshold = find(all, key, "threshold")?;
                    self.thresholds.set(threshold, number(value)).map_err(|what| ConfigError { at: value.span().start, what })?;
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Applies a value of the file. Returns whether it is one of these settings.
    pub(super) fn value(&mut self, name: &str, value: &Spanned<DeValue<'_>>) -> Result<bool, ConfigError> {
        let mistake = |what: String| ConfigError { at: value.span().start, what };
        match name {
            SECRETS => {
                let patterns = texts(value).ok_or_else(|| mistake(format!("{SECRETS} must be a list of strings")))?;
                self.secrets = SecretPatterns::new(patterns).map_err(mistake)?;
            }
            OUTPUT => {
                let pattern = value.get_ref().as_str().ok_or_else(|| mistake(format!("{OUTPUT} must be a string")))?;
                let name = OutputName::parse(pattern).map_err(mistake)?;
                self.output_name = name.in_folder(self.output_name.folder().to_owned());
            }
            // The printed form of the default.
            FOLDER if value.get_ref().as_str() == Some("") => {}
            FOLDER => {
                let folder = value.get_ref().as_str().map(PathBuf::from).filter(|folder| folder.is_absolute());
                let folder = folder.ok_or_else(|| mistake(format!("{FOLDER} must be the absolute path of a folder")))?;
                self.output_name = std::mem::take(&mut self.output_name).in_folder(folder);
            }
            PROFILES => {
                let DeValue::Array(items) = value.get_ref() else { return Err(mistake(format!("{PROFILES} must be a list of strings"))) };
                let known = || clr::profiles().iter().map(|profile| (profile.name.clone(), profile.name.as_str()));
                let named = |item: &Spanned<DeValue<'_>>| {
                    let at = item.span().start;
                    let what = format!("{PROFILES} must be a list of strings");
                    let name = item.get_ref().as_str().ok_or(ConfigError { at, what })?;
                    find(known(), &Spanned::new(item.span(), name), "profile")
                };
                let profiles = items.iter().map(named).collect::<Result<Vec<_>, _>>()?;
                self.profiles = Some(profiles).filter(|profiles| !profiles.is_empty());
            }
            _ if TABLES.contains(&name) => return Err(mistake(format!("{name} must be a table: [{name}]"))),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn keys(table: &DeTable<'_>) -> Result<KeyMap, ConfigError> {
    let all: Vec<(Action, String)> = Action::rebindable().into_iter().map(|action| (action, action.name())).collect();
    // In the order of the file, so that a conflict is reported at the later key.
    let mut written: Vec<_> = table.iter().collect();
    written.compact_sort_by_key(|(key, _)| key.span().start);
    let (mut changed, mut places) = (Vec::new(), Vec::new());
    for (name, value) in written {
        let at = value.span().start;
        let action = find(all.iter().map(|(action, name)| (*action, name.as_str())), name, "action")?;
        let names = match value.get_ref() {
            DeValue::String(text) => vec![text.as_ref()],
            _ => texts(value).ok_or_else(|| ConfigError { at, what: format!("{} must be a key, or a list of keys", action.name()) })?,
        };
        let parsed = names.into_iter().map(Key::parse).collect::<Result<_, _>>();
        changed.push((action, parsed.map_err(|what| ConfigError { at, what })?));
        places.push(at);
    }
    KeyMap::new(changed).map_err(|KeyConflict { at, why }| ConfigError { at: places.get(at).copied().unwrap_or_default(), what: why })
}

/// Returns the item with this name, or an error that suggests a similar one.
fn find<'a, T>(all: impl Iterator<Item = (T, &'a str)> + Clone, name: &Spanned<impl AsRef<str>>, kind: &str) -> Result<T, ConfigError> {
    let (word, Range { start, .. }) = (name.get_ref().as_ref(), name.span());
    let names: Vec<&str> = all.clone().map(|(_, name)| name).collect();
    let found = all.into_iter().find(|(_, name)| *name == word);
    found.map(|(found, _)| found).ok_or_else(|| ConfigError { at: start, what: unknown_name_error(word, kind, names) })
}

/// Returns the strings of a list.
fn texts<'a>(value: &'a Spanned<DeValue<'_>>) -> Option<Vec<&'a str>> {
    let DeValue::Array(items) = value.get_ref() else { return None };
    items.iter().map(|item| item.get_ref().as_str()).collect()
}

/// Parses a number. Anything else is NaN, which is in no range.
fn number(value: &Spanned<DeValue<'_>>) -> f64 {
    let text = match value.get_ref() {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        _ => return f64::NAN,
    };
    text.parse().unwrap_or(f64::NAN)
}

/// Describes every key that is not in a table, with its default, commented out.
pub(super) fn describe_values() -> String {
    format!(
        "\n# Names of environment variables to mask, besides those that look like secrets: part of the name, or with * and ? the whole name\n\
         # {SECRETS} = []\n\
         \n# Names of recordings, heap files and core dumps: {{name}}, {{pid}}, {{time}}, {{kind}} (trace, heap or dump)\n\
         # {OUTPUT} = \"{}\"\n\
         \n# The folder of recordings and heap files, as an absolute path; by default the current one\n\
         # {FOLDER} = \"\"\n\
         \n# Profiles that the dashboard records by default (`dn-top profiles` lists them)\n\
         # {PROFILES} = {:?}\n",
        OutputName::default(),
        clr::DASHBOARD_PROFILES
    )
}

/// Describes every table that does not belong to a command, with its defaults, commented out.
pub(super) fn describe_tables() -> String {
    let keys: String = Action::rebindable()
        .into_iter()
        .map(|action| {
            let help = action::entry(action).help;
            let names: Vec<_> = action.default_keys().iter().map(|key| format!("{:?}", key.name(true))).collect();
            let value = if let [name] = &names[..] { name.clone() } else { format!("[{}]", names.join(", ")) };
            format!("\n# {help}\n# {} = {value}\n", action.name())
        })
        .collect();
    let thresholds: String = Threshold::ALL
        .into_iter()
        .map(|threshold| format!("\n# {}\n# {} = {}\n", threshold.description(), threshold.name(), threshold.default_value()))
        .collect();
    format!(
        "\n# Other keys for actions: a character, Space, Ctrl- with a letter, or F1 to F12; or a list of them.\n\
         # Cursor keys, Enter, Esc, Tab, Backspace, digits and Ctrl-C keep their meaning.\n[{KEYS}]\n{keys}\
         \n# Values from which a figure is reported as a finding.\n[{THRESHOLDS}]\n{thresholds}"
    )
}
