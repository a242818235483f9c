//! Well-known providers, and the names of their keywords.

use std::sync::LazyLock;

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

#[cfg(test)]
mod tests {
    use super::*;

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
