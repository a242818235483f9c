//! Combines the selected profiles, providers and keywords into one session.

use thiserror::Error;

use super::{
    Profile, RUNTIME_PROVIDER, SpecError, UnknownProfile, format_keywords, format_provider, parse_provider, parse_runtime_keywords, profile,
};
use crate::ipc::{InvalidRequest, Level, Provider, Providers, Rundown, SessionConfig};

/// The profile for finding out why a process is slow.
pub const SLOW_PROFILE: &str = "slow";
/// Default selection, as in dotnet-trace.
pub const DEFAULT_PROFILES: [&str; 2] = ["dotnet-common", "dotnet-sampled-thread-time"];
/// Default selection of the dashboard.
pub const DASHBOARD_PROFILES: [&str; 2] = ["dotnet-common", "cpu"];

/// A session configuration, with warnings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Session configuration with buffer, stacks and rundown from the profiles; the caller can change them.
    pub config: SessionConfig,
    /// Session configuration to use if the kernel cannot sample the process; `None` if kernel samples are not selected.
    pub fallback: Option<SessionConfig>,
    /// Names of the profiles, followed by the explicit providers and keywords.
    pub what: Vec<String>,
    /// Warnings to display: possibly sensitive data in the file, ignored selections.
    pub warnings: Vec<String>,
}

/// Reason why no session can be configured.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SelectError {
    /// Unknown profile.
    #[error(transparent)]
    Profile(#[from] UnknownProfile),
    /// Invalid provider specification.
    #[error("provider {0}")]
    Provider(SpecError),
    /// Invalid runtime keywords.
    #[error("runtime events {0}")]
    RuntimeKeywords(SpecError),
    /// Conflicting arguments for one provider.
    #[error("provider '{}' is given twice with different arguments: '{}' and '{}'", .name.escape_debug(), .first.escape_debug(), .second.escape_debug())]
    Arguments {
        /// Provider name.
        name: String,
        /// First arguments.
        first: String,
        /// Second arguments.
        second: String,
    },
    /// Not a valid set of providers for a session, e.g. too many.
    #[error(transparent)]
    InvalidRequest(#[from] InvalidRequest),
}

/// Combines profiles (by name), provider specifications and runtime keyword names into one session, by the rules of dotnet-trace: duplicate
/// providers are merged, with the keywords of both and the higher level. Merging a specification with a profile adds a warning. Runtime
/// keywords only apply if nothing else enables the runtime's provider. Specified arguments replace those of a profile; two `DiagnosticSource`
/// lists are merged line by line.
///
/// # Errors
/// [`SelectError`] if the selection cannot be parsed or combined.
pub fn select(
    profiles: &[impl AsRef<str>],
    providers: &[impl AsRef<str>],
    runtime_keywords: Option<&str>,
) -> Result<Selection, SelectError> {
    let chosen = profiles.iter().map(|name| profile(name.as_ref())).collect::<Result<_, _>>()?;
    let explicit = providers.iter().map(|spec| parse_provider(spec.as_ref())).collect::<Result<_, _>>().map_err(SelectError::Provider)?;
    combine(chosen, explicit, runtime_keywords)
}

fn combine(mut chosen: Vec<&Profile>, explicit: Vec<Provider>, runtime_keywords: Option<&str>) -> Result<Selection, SelectError> {
    if chosen.is_empty() && explicit.is_empty() && runtime_keywords.is_none() {
        chosen = DEFAULT_PROFILES.into_iter().map(profile).collect::<Result<_, _>>()?;
    }
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
    warnings.extend(specified.0.iter().filter_map(|own| merge_warning(own, merged.get(own.name())?, &chosen)));
    if let Some(provider) = runtime {
        let names = format_keywords(RUNTIME_PROVIDER, provider.keywords());
        if merged.get(RUNTIME_PROVIDER).is_some() {
            warnings.push(format!("runtime events {names} are ignored: a provider or profile already enables {RUNTIME_PROVIDER}"));
        } else {
            merged.add(&provider)?;
            what.push(names);
        }
    }

    chosen.iter().flat_map(|profile| &profile.required).try_for_each(|provider| merged.add(provider))?;

    let needs_rundown = !explicit.is_empty() || runtime_keywords.is_some();
    let rundown = if needs_rundown { Rundown::Default } else { reduced_rundown(&chosen) };
    let session = |merged: Merged| Ok::<_, SelectError>(SessionConfig { rundown, ..SessionConfig::new(Providers::new(merged.0)?) });
    let fallback = chosen.iter().any(|profile| !profile.fallback.is_empty()).then(|| {
        let mut merged = merged.clone();
        chosen.iter().flat_map(|profile| &profile.fallback).try_for_each(|provider| merged.add(provider))?;
        session(merged)
    });
    Ok(Selection { fallback: fallback.transpose()?, config: session(merged)?, what, warnings })
}

/// Returns a warning if profiles extend a specified provider, with the merged result.
fn merge_warning(own: &Provider, all: &Provider, profiles: &[&Profile]) -> Option<String> {
    let same = |provider: &&Provider| provider.name().eq_ignore_ascii_case(own.name());
    let enabling = profiles.iter().filter(|profile| profile.providers.iter().any(|provider| same(&provider)));
    let names: Vec<_> = enabling.map(|profile| profile.name.as_str()).collect();
    let is_overridden = profiles
        .iter()
        .flat_map(|profile| &profile.providers)
        .filter(same)
        .any(|provider| provider.arguments().is_some_and(|arguments| own.arguments().is_some_and(|own| own != arguments)));
    let note = if is_overridden { ", with the specified arguments" } else { "" };
    (own != all || is_overridden).then(|| {
        let plural = if names.len() == 1 { "profile" } else { "profiles" };
        format!("{} and {plural} {} are merged: {}{note}", format_provider(own), names.join(", "), format_provider(all))
    })
}

/// Returns a reduced rundown if all profiles declare one, otherwise the default.
fn reduced_rundown(profiles: &[&Profile]) -> Rundown {
    let keywords: Option<u64> = profiles.iter().try_fold(0, |all, profile| Some(all | profile.rundown?));
    keywords.map_or(Rundown::Default, Rundown::Preferred)
}

/// A list of providers without duplicates.
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
    // In a request, `LogAlways` is the highest level: it enables all events.
    let reach = |level: Level| if level == Level::LogAlways { u32::MAX } else { level.number() };
    let level = [first.level(), second.level()].into_iter().max_by_key(|level| reach(*level)).unwrap_or(first.level());
    Ok(Provider::new(first.name(), first.keywords() | second.keywords(), level)?.with_arguments(arguments)?)
}

/// Merges `DiagnosticSource` filter lists into one without duplicate lines; `None` for any other arguments.
fn join(first: &str, second: &str) -> Option<String> {
    const KEY: &str = "FilterAndPayloadSpecs=";
    // Another key would follow the closing quote, or a semicolon outside quotes.
    fn list(arguments: &str) -> Option<&str> {
        let value = arguments.strip_prefix(KEY)?;
        match value.strip_prefix('"') {
            Some(quoted) => quoted.strip_suffix('"').filter(|list| !list.contains('"')),
            None => Some(value).filter(|list| !list.contains(';')),
        }
    }
    let mut lines: Vec<&str> = list(first)?.split("\r\n").collect();
    for line in list(second)?.split("\r\n") {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    Some(format!("{KEY}\"{}\"", lines.join("\r\n")))
}

#[cfg(test)]
mod tests;
