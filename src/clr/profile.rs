//! Trace profiles: the providers to enable for a given question.

use std::sync::LazyLock;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use thiserror::Error;

use super::spec::parse_provider;
use crate::ipc::Provider;

/// A trace profile.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name, matched case-insensitively.
    pub name: String,
    /// The question that the profile answers, in a few words.
    pub question: String,
    /// One-sentence description of the resulting data.
    pub about: String,
    /// Overhead in the target process.
    pub cost: String,
    /// Warning to be read before sharing the file.
    pub warning: Option<String>,
    /// Providers to enable.
    #[serde(deserialize_with = "parse_providers")]
    pub providers: Vec<Provider>,
    /// Providers to enable instead of kernel sampling, where that is unavailable; empty for profiles without kernel samples.
    #[serde(default, deserialize_with = "parse_providers")]
    pub fallback: Vec<Provider>,
    /// Providers needed to interpret the data correctly. Explicit runtime keywords are not ignored because of them.
    #[serde(default, rename = "besides", deserialize_with = "parse_providers")]
    pub required: Vec<Provider>,
    /// Sufficient rundown keywords, if fewer than the default.
    pub rundown: Option<u64>,
}

/// There is no profile with this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no profile '{}': {}", .0.escape_debug(), suggestion(.0))]
pub struct UnknownProfile(pub String);

/// Suggests the most similar profile name, or else lists all names.
fn suggestion(name: &str) -> String {
    let names: Vec<_> = profiles().iter().map(|profile| profile.name.as_str()).collect();
    let similarity = |known: &&str| strsim::jaro_winkler(known, &name.to_ascii_lowercase());
    let nearest = names.iter().copied().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    match nearest.filter(|nearest| similarity(nearest) > SIMILAR) {
        Some(nearest) => format!("did you mean '{nearest}'?"),
        None => format!("expected one of {}", names.join(", ")),
    }
}

/// Minimum similarity for a suggestion (1 is equal).
const SIMILAR: f64 = 0.85;

impl Profile {
    /// Returns the overhead without the explanation, e.g. `moderate`.
    pub fn overhead(&self) -> &str {
        self.cost.split([':', ',']).next().unwrap_or_default()
    }
}

fn parse_providers<'de, D: Deserializer<'de>>(specs: D) -> Result<Vec<Provider>, D::Error> {
    Vec::<String>::deserialize(specs)?.iter().map(|spec| parse_provider(spec).map_err(D::Error::custom)).collect()
}

/// Returns all profiles, in display order.
pub fn profiles() -> &'static [Profile] {
    #[derive(Deserialize)]
    struct File {
        profile: Vec<Profile>,
    }
    static PROFILES: LazyLock<Vec<Profile>> = LazyLock::new(|| {
        let file: File = toml::from_str(include_str!("../../assets/profiles.toml")).expect("a file of this program, read by its tests");
        file.profile
    });
    &PROFILES
}

/// Returns the profile with this name, ignoring case.
///
/// # Errors
/// [`UnknownProfile`] with a suggestion or the list of names.
pub fn profile(name: &str) -> Result<&'static Profile, UnknownProfile> {
    profiles().iter().find(|profile| profile.name.eq_ignore_ascii_case(name)).ok_or_else(|| UnknownProfile(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Providers, keywords and levels of the official tools' profiles.
    #[test]
    fn official_profiles_match_dotnet_trace() {
        let table = [
            ("dotnet-common", &["Microsoft-Windows-DotNETRuntime 0x100003801d 4"][..]),
            ("dotnet-sampled-thread-time", &["Microsoft-DotNETCore-SampleProfiler 0xf00000000000 4"]),
            ("gc-verbose", &["Microsoft-Windows-DotNETRuntime 0x8003 5"]),
            ("gc-collect", &["Microsoft-Windows-DotNETRuntime 0x1 4", "Microsoft-Windows-DotNETRuntimePrivate 0x1 4"]),
            ("database", &["System.Threading.Tasks.TplEventSource 0x80 4", "Microsoft-Diagnostics-DiagnosticSource 0x3 5"]),
            ("cpu-sampling", &["Microsoft-DotNETCore-SampleProfiler 0xf00000000000 4", "Microsoft-Windows-DotNETRuntime 0x14c14fccbd 4"]),
        ];
        for (name, expected) in table {
            let words = |provider: &Provider| format!("{} {:#x} {}", provider.name(), provider.keywords(), provider.level().number());
            let providers: Vec<_> = profile(name).unwrap().providers.iter().map(words).collect();
            assert_eq!(providers, expected, "{name}");
        }
        assert_eq!(profile("gc-collect").unwrap().rundown, Some(1));
    }

    #[test]
    fn every_profile_has_description_and_overhead() {
        let mut names = Vec::new();
        for profile in profiles() {
            assert!(profile.about.ends_with('.') && !profile.cost.is_empty(), "{}", profile.name);
            assert!(["moderate", "low to high", "low", "very low"].contains(&profile.overhead()), "{}", profile.cost);
            assert!((8..=30).contains(&profile.question.len()), "{}", profile.question);
            assert!(!names.contains(&&profile.name), "{} twice", profile.name);
            names.push(&profile.name);
        }
    }

    #[test]
    fn profiles_warn_about_secrets_or_do_not_collect_them() {
        let database = profile("Database").unwrap();
        let arguments = |profile: &Profile| profile.providers[1].arguments().unwrap().to_owned();
        assert!(arguments(database).starts_with("FilterAndPayloadSpecs=\"SqlClientDiagnosticListener/"));
        assert_eq!(arguments(database).matches("\r\n").count(), 5);
        assert!(arguments(database).contains("CommandText") && database.warning.is_some());
        let timing = arguments(profile("database-timing").unwrap());
        assert!(!timing.contains("CommandText") && !timing.contains("ConnectionString"));
    }

    #[test]
    fn unknown_profile_error_lists_the_profiles() {
        let error = profile("gc\x1b").unwrap_err().to_string();
        assert!(error.starts_with(r"there is no profile 'gc\u{1b}': expected one of slow, dotnet-common, "), "{error}");
    }
}
