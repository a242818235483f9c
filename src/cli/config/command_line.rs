//! A command line, parsed with the defaults of the configuration file.

use std::ffi::OsString;
use std::io;

use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

use super::overrides::{conflicting, contradiction, switched_off};
use super::{ConfigError, apply, options_in, path, read};
use crate::cli::args::Arguments;
use crate::cli::exit::Failure;
use crate::model::SafeText;

pub(in crate::cli) struct CommandLine {
    /// The words, without those that only switch a default of the file off.
    pub(in crate::cli) words: Vec<OsString>,
    pub(in crate::cli) parsed: clap::error::Result<(Arguments, ArgMatches)>,
}

impl CommandLine {
    /// Parses a command line without a configuration file.
    ///
    /// # Errors
    /// As [`with_file`](Self::with_file).
    pub(in crate::cli) fn without_file(words: Vec<OsString>) -> Result<Self, Failure> {
        Self::parse(words, &SafeText::default(), "")
    }

    /// Parses a command line with the configuration file, if there is one.
    ///
    /// # Errors
    /// The file cannot be read, belongs to another user, is invalid, or has two options that apply and exclude each other: one line that names it.
    pub(in crate::cli) fn with_file(words: Vec<OsString>) -> Result<Self, Failure> {
        let Some(path) = path() else { return Self::without_file(words) };
        let name = SafeText::from_path(&path);
        match read(&path) {
            Ok(text) => Self::parse(words, &name, &text),
            // HOME may be that of another user and not accessible: then there is no configuration.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied) =>
            {
                Self::without_file(words)
            }
            Err(error) => Err(Failure::usage(format!("cannot read {name}: {error}"))),
        }
    }

    /// Parses a command line with the text of a configuration file of this name.
    pub(super) fn parse(words: Vec<OsString>, name: &SafeText, text: &str) -> Result<Self, Failure> {
        let root = Arguments::command();
        let (words, mut overrides) = switched_off(&root, words, &options_in(text));
        loop {
            let (command, settings) = apply(root.clone(), text, &overrides).map_err(|ConfigError { at, what }| {
                let line = text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
                Failure::usage(format!("{name}:{line}: {}", SafeText::new(&what)))
            })?;
            let matches = command.try_get_matches_from(&words).map_err(without_escaping_tip);
            let mut parsed = matches.and_then(|matches| Ok((Arguments::from_arg_matches(&matches)?, matches)));
            if let Ok((arguments, matches)) = &mut parsed {
                if overrides.extend(conflicting(&root, matches, arguments.command.as_ref())) {
                    // Once more without these defaults.
                    continue;
                }
                if let Some(why) = contradiction(&root, matches) {
                    return Err(Failure::usage(format!("{name}: {why}")));
                }
                arguments.dashboard.settings = settings;
            }
            return Ok(Self { words, parsed });
        }
    }
}

/// Removes the tip to write an unknown option after `--`: no target is called like an option, and the program of `run` follows `--` anyway.
fn without_escaping_tip(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !tip.to_string().starts_with("to pass '"));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
    error
}
