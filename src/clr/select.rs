//! From what a person selects to one session.

use thiserror::Error;

use super::known::RUNTIME;
use super::problem::SpecError;
use super::profile::{Profile, UnknownProfile, profile};
use super::spec::{format_keywords, format_provider, parse_provider, parse_runtime_keywords};
use crate::ipc::{Invalid, Level, Provider, Providers, Rundown, SessionConfig};

/// The profile that shows why a process is slow.
pub const SLOW: &str = "slow";
/// The default where nothing is selected, as in dotnet-trace.
pub const DEFAULT_PROFILES: [&str; 2] = ["dotnet-common", "dotnet-sampled-thread-time"];
/// What the dashboard records when nothing else was chosen.
pub const DASHBOARD_PROFILES: [&str; 2] = ["dotnet-common", "cpu"];

/// A session, and the warnings about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// The session: buffer, stacks and rundown as the profiles have them, for the caller to change.
    pub config: SessionConfig,
    /// The session instead where the kernel does not sample the process; `None` where samples of the kernel are not selected.
    pub fallback: Option<SessionConfig>,
    /// The names of the profiles, then the providers and keywords that were given by themselves.
    pub what: Vec<String>,
    /// Sentences for a person: what the file may hold, what was left out.
    pub warnings: Vec<String>,
}

/// Why no session can be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SelectError {
    /// No such profile.
    #[error(transparent)]
    Profile(#[from] UnknownProfile),
    /// A provider that cannot be read.
    #[error("provider {0}")]
    Provider(SpecError),
    /// Runtime keywords that cannot be read.
    #[error("runtime events {0}")]
    RuntimeKeywords(SpecError),
    /// A provider has two different arguments.
    #[error("provider '{}' is given twice with different arguments: '{}' and '{}'", .name.escape_debug(), .first.escape_debug(), .second.escape_debug())]
    Arguments {
        /// Which provider.
        name: String,
        /// Its arguments the first time.
        first: String,
        /// Its arguments the second time.
        second: String,
    },
    /// More providers than a session takes.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

/// Makes one session of profiles (by name), provider specifications and names of runtime keywords, by dotnet-trace's rules: the same provider twice is one
/// with the keywords of both and the higher level, also where a profile has it and a specification, with a warning; runtime keywords count
/// only where nothing else turns the runtime's provider on. Arguments that are specified count, and not those of a profile; of two lists of
/// `DiagnosticSource`, the lines of both count.
///
/// # Errors
/// [`SelectError`], for what cannot be parsed or combined.
pub fn select(
    profiles: &[impl AsRef<str>],
    providers: &[impl AsRef<str>],
    runtime_keywords: Option<&str>,
) -> Result<Selected, SelectError> {
    let mut chosen = profiles.iter().map(|name| profile(name.as_ref())).collect::<Result<Vec<_>, _>>()?;
    if profiles.is_empty() && providers.is_empty() && runtime_keywords.is_none() {
        chosen = DEFAULT_PROFILES.into_iter().map(profile).collect::<Result<_, _>>()?;
    }
    let explicit =
        providers.iter().map(|spec| parse_provider(spec.as_ref())).collect::<Result<Vec<_>, _>>().map_err(SelectError::Provider)?;
    let runtime = runtime_keywords.map(parse_runtime_keywords).transpose().map_err(SelectError::RuntimeKeywords)?;

    let mut what: Vec<String> = chosen.iter().map(|profile| profile.name.clone()).chain(explicit.iter().map(format_provider)).collect();
    let mut warnings: Vec<String> =
        chosen.iter().filter_map(|profile| profile.warning.as_ref().map(|warning| format!("{}: {warning}", profile.name))).collect();

    let mut merged = Merged::default();
    for provider in &explicit {
        merged.add(provider)?;
    }
    let specified = merged.clone();
    for provider in chosen.iter().flat_map(|profile| &profile.providers) {
        match specified.get(provider.name()) {
            Some(own) if own.arguments().is_some() => {
                merged.add(&Provider::new(provider.name(), provider.keywords(), provider.level())?)?
            }
            _ => merged.add(provider)?,
        }
    }
    warnings.extend(specified.0.iter().filter_map(|own| joined(own, merged.get(own.name())?, &chosen)));
    if let Some(provider) = runtime {
        let names = format_keywords(RUNTIME, provider.keywords());
        if merged.get(RUNTIME).is_some() {
            warnings.push(format!("the runtime events {names} are left out: a provider or profile turns {RUNTIME} on already"));
        } else {
            merged.add(&provider)?;
            what.push(names);
        }
    }

    chosen.iter().flat_map(|profile| &profile.besides).try_for_each(|provider| merged.add(provider))?;

    let needs_rundown = !explicit.is_empty() || runtime_keywords.is_some();
    let rundown = if needs_rundown { Rundown::Default } else { enough_rundown(&chosen) };
    let session = |merged: Merged| Ok::<_, SelectError>(SessionConfig { rundown, ..SessionConfig::new(Providers::new(merged.0)?) });
    let fallback = chosen.iter().any(|profile| !profile.fallback.is_empty()).then(|| {
        let mut merged = merged.clone();
        chosen.iter().flat_map(|profile| &profile.fallback).try_for_each(|provider| merged.add(provider))?;
        session(merged)
    });
    Ok(Selected { fallback: fallback.transpose()?, config: session(merged)?, what, warnings })
}

/// Warns that profiles ask for more of a provider than was specified, and what comes of both.
fn joined(own: &Provider, all: &Provider, profiles: &[&Profile]) -> Option<String> {
    let same = |provider: &&Provider| provider.name().eq_ignore_ascii_case(own.name());
    let names: Vec<_> = profiles.iter().filter(|profile| profile.providers.iter().any(|provider| same(&provider))).collect();
    let names: Vec<_> = names.iter().map(|profile| profile.name.as_str()).collect();
    let left_out = profiles
        .iter()
        .flat_map(|profile| &profile.providers)
        .filter(same)
        .any(|provider| provider.arguments().is_some_and(|arguments| own.arguments().is_some_and(|own| own != arguments)));
    let note = if left_out { ", with the arguments that were specified" } else { "" };
    (own != all || left_out).then(|| {
        let plural = if names.len() == 1 { "profile" } else { "profiles" };
        format!("{} and {plural} {} are merged: {}{note}", format_provider(own), names.join(", "), format_provider(all))
    })
}

/// Less than the default only where that is enough for every profile.
fn enough_rundown(profiles: &[&Profile]) -> Rundown {
    let keywords: Option<u64> = profiles.iter().try_fold(0, |all, profile| Some(all | profile.rundown?));
    keywords.map_or(Rundown::Default, Rundown::Preferred)
}

/// Providers, each once.
#[derive(Debug, Clone, Default)]
struct Merged(Vec<Provider>);

impl Merged {
    fn get(&self, name: &str) -> Option<&Provider> {
        self.0.iter().find(|known| known.name().eq_ignore_ascii_case(name))
    }

    fn add(&mut self, provider: &Provider) -> Result<(), SelectError> {
        match self.0.iter_mut().find(|known| known.name().eq_ignore_ascii_case(provider.name())) {
            Some(known) => *known = merge(known, provider)?,
            None => self.0.push(provider.clone()),
        }
        Ok(())
    }
}

fn merge(first: &Provider, second: &Provider) -> Result<Provider, SelectError> {
    let arguments = match (first.arguments(), second.arguments()) {
        (Some(a), Some(b)) if a != b => {
            join(a, b).ok_or_else(|| SelectError::Arguments { name: first.name().to_owned(), first: a.to_owned(), second: b.to_owned() })?
        }
        (a, b) => a.or(b).unwrap_or_default().to_owned(),
    };
    // As a request, "log always" delivers every level: it is the highest.
    let reach = |level: Level| if level == Level::LogAlways { u32::MAX } else { level.number() };
    let level = [first.level(), second.level()].into_iter().max_by_key(|level| reach(*level)).unwrap_or(first.level());
    Ok(Provider::new(first.name(), first.keywords() | second.keywords(), level)?.with_arguments(arguments)?)
}

/// Arguments of which each is a list of lines: what `DiagnosticSource` hands on. One list of the lines of both.
fn join(first: &str, second: &str) -> Option<String> {
    const KEY: &str = "FilterAndPayloadSpecs=";
    let [first, second] = [first, second].map(|arguments| Some(arguments.strip_prefix(KEY)?.trim_matches('"').split("\r\n")));
    let mut lines: Vec<&str> = first?.collect();
    for line in second? {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    Some(format!("{KEY}\"{}\"", lines.join("\r\n")))
}

#[cfg(test)]
mod tests;
