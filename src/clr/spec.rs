//! Provider specifications: `NAME[:KEYWORDS[:LEVEL[:ARGUMENTS]]]`, the syntax of dotnet-trace.

use super::{RUNTIME_PROVIDER, SpecError, SpecErrorKind, arguments, known_provider, parse_level};
use crate::ipc::{Level, Provider};

/// Default level, as in dotnet-trace.
const DEFAULT_LEVEL: Level = Level::Informational;

/// Runtime keywords of dotnet-trace's profile `dotnet-common`.
const DOTNET_COMMON_KEYWORDS: u64 = 0x10_0003_801d;

/// Returns the name in a specification of a provider, `NAME[:..]`.
pub fn provider_name(spec: &str) -> &str {
    spec.split(':').next().unwrap_or(spec).trim()
}

/// Parses a provider specification.
///
/// Keywords are hexadecimal, with or without `0x`, or names of the provider's keywords, joined with `+`; the default is all keywords without
/// harmful side effects. The level is a name or a number; the default is informational. Arguments have the form `key=value;key="value with
/// ;"`.
///
/// # Errors
/// [`SpecError`] with the position and what was expected.
pub fn parse_provider(spec: &str) -> Result<Provider, SpecError> {
    let fail = |at: usize, problem: SpecErrorKind| SpecError { spec: spec.to_owned(), at, problem };
    let mut parts = spec.splitn(4, ':');
    let mut at = 0;
    let mut next = || {
        let part = parts.next()?;
        let start = at;
        at += part.chars().count() + 1;
        Some((start, part))
    };
    let (name_at, name) = next().unwrap_or((0, ""));
    let (keywords_at, keywords) = next().unwrap_or((0, ""));
    let (level_at, level) = next().unwrap_or((0, ""));
    let (arguments_at, arguments) = next().unwrap_or((0, ""));

    for (start, part) in [(name_at, name), (keywords_at, keywords), (level_at, level)] {
        if let Some(comma) = part.chars().position(|c| c == ',') {
            return Err(fail(start + comma, SpecErrorKind::Comma));
        }
    }
    if name.trim().is_empty() {
        return Err(fail(name_at, SpecErrorKind::NoName));
    }
    let keywords = match keywords.trim() {
        "" => default_keywords(name),
        _ => parse_keywords(name, keywords).map_err(|offset| fail(keywords_at + offset, SpecErrorKind::Keywords(name.to_owned())))?,
    };
    let level = match level.trim() {
        "" => DEFAULT_LEVEL,
        text => parse_level(text).ok_or_else(|| fail(level_at, SpecErrorKind::Level))?,
    };
    let arguments = match arguments.trim() {
        "" => String::new(),
        _ => arguments::normalize(arguments).map_err(|(offset, problem)| fail(arguments_at + offset, problem))?,
    };
    let provider = Provider::new(name.trim(), keywords, level).map_err(|invalid| fail(name_at, invalid.into()))?;
    provider.with_arguments(arguments).map_err(|invalid| fail(arguments_at, invalid.into()))
}

/// Parses runtime keyword names joined with `+`, with an optional level (default: informational), such as `gc+jit:verbose`, as one provider.
///
/// # Errors
/// [`SpecError`] with the position and what was expected.
pub fn parse_runtime_keywords(names: &str) -> Result<Provider, SpecError> {
    let fail = |at: usize, problem: SpecErrorKind| SpecError { spec: names.to_owned(), at, problem };
    let (keywords, level) = names.split_once(':').map_or((names, None), |(keywords, level)| (keywords, Some(level)));
    let level = match level {
        Some(text) => parse_level(text.trim()).ok_or_else(|| fail(keywords.chars().count() + 1, SpecErrorKind::Level))?,
        None => DEFAULT_LEVEL,
    };
    let keywords =
        parse_keywords(RUNTIME_PROVIDER, keywords).map_err(|at| fail(at, SpecErrorKind::Keywords(RUNTIME_PROVIDER.to_owned())))?;
    Provider::new(RUNTIME_PROVIDER, keywords, level).map_err(|invalid| fail(0, invalid.into()))
}

/// Default keywords of a provider. All EventSource events have keywords (bits 44 to 47), so 0 would enable none of them. For the runtime's
/// provider, all keywords would trigger collections and dump the heap; its default is that of the `dotnet-common` profile.
fn default_keywords(provider: &str) -> u64 {
    if provider.trim().eq_ignore_ascii_case(RUNTIME_PROVIDER) { DOTNET_COMMON_KEYWORDS } else { u64::MAX }
}

/// Parses numbers and names joined with `+`; the error is the character offset of the first part that is neither.
fn parse_keywords(provider: &str, text: &str) -> Result<u64, usize> {
    let known = known_provider(provider.trim());
    let mut at = 0;
    let mut keywords = 0;
    for part in text.split('+') {
        let word = part.trim();
        let named = known.and_then(|known| known.keyword(word)).map(|keyword| keyword.bits);
        keywords |= named.or_else(|| parse_hex(word)).ok_or(at)?;
        at += part.chars().count() + 1;
    }
    Ok(keywords)
}

/// Parses hexadecimal digits, with or without `0x`.
fn parse_hex(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    u64::from_str_radix(digits, 16).ok()
}

/// Formats keywords as in a specification: known names, and the remaining bits as a number, joined with `+`.
pub fn format_keywords(provider: &str, keywords: u64) -> String {
    let known = known_provider(provider).map_or(&[][..], |known| &known.keywords);
    let (named, rest) = known.iter().fold((Vec::new(), keywords), |(mut named, rest), keyword| {
        if rest & keyword.bits == 0 {
            return (named, rest);
        }
        named.push(keyword.name.clone());
        (named, rest & !keyword.bits)
    });
    // All bits set: the number is clearer than a list of all names.
    if keywords == u64::MAX || named.is_empty() {
        return format!("{keywords:#x}");
    }
    let rest = (rest != 0).then(|| format!("{rest:#x}"));
    named.into_iter().chain(rest).collect::<Vec<_>>().join("+")
}

/// Formats a provider as a specification that [`parse_provider`] accepts.
pub fn format_provider(provider: &Provider) -> String {
    let (name, level) = (provider.name(), provider.level().name());
    let arguments = provider.arguments().map(|arguments| format!(":{}", arguments::escape(arguments))).unwrap_or_default();
    format!("{name}:{}:{level}{arguments}", format_keywords(name, provider.keywords()))
}

#[cfg(test)]
mod tests;
