//! Well-known providers, and the names of their keywords.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;

/// The runtime's own provider.
pub const RUNTIME_PROVIDER: &str = "Microsoft-Windows-DotNETRuntime";
/// The rundown: methods and modules, written when a session stops.
pub const RUNDOWN_PROVIDER: &str = "Microsoft-Windows-DotNETRuntimeRundown";
/// The provider of the runtime's sampling profiler.
pub const SAMPLE_PROFILER: &str = "Microsoft-DotNETCore-SampleProfiler";
/// The provider of EventPipe itself, which describes the process.
pub const EVENT_PIPE_PROVIDER: &str = "Microsoft-DotNETCore-EventPipe";
/// The provider of all meters.
pub const METRICS_PROVIDER: &str = "System.Diagnostics.Metrics";
/// The provider of the runtime's EventCounters, and its meter.
pub const COUNTERS_PROVIDER: &str = "System.Runtime";
/// The provider of the requests that ASP.NET Core serves and of their EventCounters, and its meter.
pub const HOSTING_PROVIDER: &str = "Microsoft.AspNetCore.Hosting";
/// The provider of the requests that `HttpClient` sends and of their EventCounters, and its meter.
pub const HTTP_CLIENT_PROVIDER: &str = "System.Net.Http";
/// The provider of log messages.
pub const LOGGING_PROVIDER: &str = "Microsoft-Extensions-Logging";
/// The provider that forwards the events of `DiagnosticSource`.
pub const DIAGNOSTIC_SOURCE_PROVIDER: &str = "Microsoft-Diagnostics-DiagnosticSource";

/// A provider with description and keywords.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownProvider {
    /// Name, matched case-insensitively.
    pub name: String,
    /// One-line description.
    pub about: String,
    /// Keywords, lowest bit first; empty if none have useful names.
    #[serde(default)]
    pub keywords: Vec<Keyword>,
}

/// A keyword: a group of a provider's events.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keyword {
    /// Name in lower case.
    pub name: String,
    /// Alternative names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Bit mask.
    pub bits: u64,
    /// Description of its events.
    pub about: String,
}

impl KnownProvider {
    /// Returns the keyword with this name or alias, ignoring case.
    pub fn keyword(&self, name: &str) -> Option<&Keyword> {
        self.keywords.iter().find(|keyword| keyword.names().any(|known| known.eq_ignore_ascii_case(name)))
    }
}

impl Keyword {
    fn names(&self) -> impl Iterator<Item = &str> {
        [&self.name].into_iter().chain(&self.aliases).map(String::as_str)
    }
}

/// Returns all well-known providers.
pub fn known_providers() -> &'static [KnownProvider] {
    #[derive(Deserialize)]
    struct File {
        provider: Vec<KnownProvider>,
    }
    static PROVIDERS: LazyLock<Vec<KnownProvider>> = LazyLock::new(|| {
        let file: File = toml::from_str(include_str!("../../assets/providers.toml")).expect("a file of this program, read by its tests");
        file.provider
    });
    &PROVIDERS
}

/// Returns the well-known provider with this name, ignoring case.
pub fn known_provider(name: &str) -> Option<&'static KnownProvider> {
    known_providers().iter().find(|provider| provider.name.eq_ignore_ascii_case(name))
}

/// Maximum number of wrong, missing, additional or swapped letters in a name that is probably misspelled.
const MAX_TYPOS: usize = 2;

/// Returns the well-known provider that is probably meant by a name which is not one: with up to two typos, or with `.` for `-` or vice versa.
fn similar_provider(name: &str) -> Option<&'static KnownProvider> {
    if known_provider(name).is_some() {
        return None;
    }
    let comparable = |name: &str| name.to_ascii_lowercase().replace('.', "-");
    let name = comparable(name);
    let typos = |known: &KnownProvider| strsim::osa_distance(&comparable(&known.name), &name);
    let (nearest, typos) = known_providers().iter().map(|known| (known, typos(known))).min_by_key(|(_, typos)| *typos)?;
    (typos <= MAX_TYPOS).then_some(nearest)
}

/// Returns those of the specified providers that are not among the ones that have sent events.
pub fn without_events<'a>(specified: impl IntoIterator<Item = &'a str>, seen: &BTreeSet<String>) -> impl Iterator<Item = &'a str> {
    specified.into_iter().filter(|name| !seen.iter().any(|provider| provider.eq_ignore_ascii_case(name)))
}

/// Returns a sentence about a provider that has sent no event since the start of a session, this long ago; `None` for a well-known one, whose name
/// is right. A process can create a provider at any time.
pub fn silent_provider_hint(name: &str, silence: Duration) -> Option<String> {
    if known_provider(name).is_some() {
        return None;
    }
    let why = similar_provider(name).map_or_else(
        || ": its name may be wrong, or the process has not created it yet, or writes none with these keywords and level".to_owned(),
        |known| format!("; did you mean {}?", known.name),
    );
    Some(format!("no event of {name} in the first {} s{why}", silence.as_secs()))
}

/// Returns whether a provider is one of the runtime itself.
fn is_in_every_process(name: &str) -> bool {
    [RUNTIME_PROVIDER, RUNDOWN_PROVIDER, SAMPLE_PROFILER, EVENT_PIPE_PROVIDER, COUNTERS_PROVIDER]
        .iter()
        .any(|provider| provider.eq_ignore_ascii_case(name))
}

/// Returns a sentence about a provider of which no event was recorded.
pub fn unrecorded_provider_note(name: &str) -> String {
    let why = match similar_provider(name) {
        Some(known) => format!("; did you mean {}?", known.name),
        None if is_in_every_process(name) => ": the process wrote none with these keywords and level".to_owned(),
        None => ": the process has no such provider, or it wrote none with these keywords and level".to_owned(),
    };
    format!("no event of {name} was recorded{why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_provider_is_recognized() {
        for (name, expected) in [
            ("Microsoft-Windows-DotNETRuntme", Some(RUNTIME_PROVIDER)),
            ("microsoft.windows.dotnetruntime", Some(RUNTIME_PROVIDER)),
            ("Microsoft-AspNetCore-Hosting", Some(HOSTING_PROVIDER)),
            ("Microsoft.Extensions.Loging", Some(LOGGING_PROVIDER)),
            ("System.Net.Htpp", Some(HTTP_CLIENT_PROVIDER)),
            ("System.Net.Ht", Some(HTTP_CLIENT_PROVIDER)),
            ("System.Net.H", None),
            ("Microsoft-Windows-DotNETRuntimeStress", None),
            ("MyCompany-Orders", None),
            ("", None),
        ] {
            assert_eq!(similar_provider(name).map(|known| known.name.as_str()), expected, "{name}");
        }
        let hint = |name| silent_provider_hint(name, Duration::from_secs(5));
        assert_eq!(hint(RUNTIME_PROVIDER), None);
        assert_eq!(hint("System.Net.Htp").as_deref(), Some("no event of System.Net.Htp in the first 5 s; did you mean System.Net.Http?"));
        assert!(hint("MyCompany-Orders").unwrap().starts_with("no event of MyCompany-Orders in the first 5 s: its name may be wrong"));
        assert_eq!(unrecorded_provider_note("System.Net.Htp"), "no event of System.Net.Htp was recorded; did you mean System.Net.Http?");
        for (name, why) in [
            (RUNTIME_PROVIDER, "the process wrote none with these keywords and level"),
            ("microsoft-dotnetcore-sampleprofiler", "the process wrote none with these keywords and level"),
            (HTTP_CLIENT_PROVIDER, "the process has no such provider, or it wrote none with these keywords and level"),
        ] {
            assert_eq!(unrecorded_provider_note(name), format!("no event of {name} was recorded: {why}"));
        }
    }

    #[test]
    fn names_of_providers_ignore_case() {
        let seen = BTreeSet::from(["System.Net.Http".to_owned()]);
        assert_eq!(without_events(["system.net.HTTP", "System.Net"], &seen).collect::<Vec<_>>(), ["System.Net"]);
    }

    /// The names that dotnet-trace accepts for `--clrevents`.
    #[test]
    fn runtime_keywords_match_dotnet_trace() {
        let table = "gc 1 gchandle 2 assemblyloader 4 fusion 4 loader 8 jit 10 ngen 20 startenumeration 40 endenumeration 80 security 400 \
            appdomainresourcemanagement 800 jittracing 1000 interop 2000 contention 4000 exception 8000 threading 10000 \
            jittedmethodiltonativemap 20000 overrideandsuppressngenevents 40000 type 80000 gcheapdump 100000 \
            gcsampledobjectallocationhigh 200000 gcheapsurvivalandmovement 400000 gcheapcollect 800000 managedheapcollect 800000 \
            gcheapandtypenames 1000000 gcsampledobjectallocationlow 2000000 perftrack 20000000 stack 40000000 threadtransfer 80000000 \
            debugger 100000000 monitoring 200000000 codesymbols 400000000 eventsource 800000000 compilation 1000000000 \
            compilationdiagnostic 2000000000 methoddiagnostic 4000000000 typediagnostic 8000000000 jitinstrumentationdata 10000000000 \
            profiler 20000000000 waithandle 40000000000 allocationsampling 80000000000";
        let runtime = known_provider("microsoft-windows-dotnetruntime").unwrap();
        assert_eq!(runtime.name, RUNTIME_PROVIDER);
        let words: Vec<_> = table.split_whitespace().collect();
        for pair in words.chunks(2) {
            let bits = u64::from_str_radix(pair[1], 16).unwrap();
            assert_eq!(runtime.keyword(pair[0]).map(|keyword| keyword.bits), Some(bits), "{}", pair[0]);
            assert_eq!(runtime.keyword(&pair[0].to_uppercase()).map(|keyword| keyword.bits), Some(bits));
        }
        assert_eq!(runtime.keywords.len(), words.len() / 2 - 2, "two of the names are aliases");
    }

    #[test]
    fn keywords_have_one_bit_and_names_that_are_not_numbers() {
        for provider in known_providers() {
            let mut seen = 0;
            for keyword in &provider.keywords {
                assert_eq!(keyword.bits.count_ones(), 1, "{}", keyword.name);
                assert!(keyword.bits > seen, "{} out of order", keyword.name);
                seen = keyword.bits;
                for name in keyword.names() {
                    assert!(u64::from_str_radix(name, 16).is_err() && !name.contains(['+', ':', ' ']), "{name}");
                }
                assert!(!keyword.about.is_empty());
            }
        }
    }
}
