//! Sources of data, and what is needed to record them: explains why data is missing.

use crate::clr::{HTTP_CLIENT_PROVIDER, LOGGING_PROVIDER, RUNTIME_PROVIDER, SAMPLE_PROFILER, profile};

listed! {
/// A source of data in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Garbage collections and pauses.
    Collections => ("collections", "dotnet-common", (RUNTIME_PROVIDER, 0x1, 4)),
    /// Object allocations.
    Allocations => ("allocations", "gc-verbose", (RUNTIME_PROVIDER, 0x1, 5)),
    /// Exceptions.
    Exceptions => ("exceptions", "exceptions", (RUNTIME_PROVIDER, 0x8000, 2)),
    /// Lock contention.
    Contention => ("lock contention", "contention", (RUNTIME_PROVIDER, 0x4000, 4)),
    /// The thread pool.
    ThreadPool => ("thread pool events", "threadpool", (RUNTIME_PROVIDER, 0x1_0000, 4)),
    /// Samples of thread stacks.
    Samples => ("samples", "cpu", (SAMPLE_PROFILER, 0, 4)),
    /// `ILogger` messages.
    // Messages as text, or with their fields.
    Logs => ("log messages", "logs", (LOGGING_PROVIDER, 0xc, 4)),
    /// Requests and other activities.
    Activities => ("requests", "http", (HTTP_CLIENT_PROVIDER, 0, 4)),
    /// JIT-compiled methods, and compilation time.
    // EventPipe writes method events only at level verbose, regardless of the manifest (seen on 3.1, 8, 9 and 10).
    Compilation => ("compiled methods", "startup", (RUNTIME_PROVIDER, 0x10, 5)),
    /// Assembly loads.
    Assemblies => ("assembly loads", "dotnet-common", (RUNTIME_PROVIDER, 0x8, 4)),
}
/// Returns the name of the events, the profile intended for them, and provider, keyword and level that they need (reference: .NET runtime
/// provider, keywords).
fn row(self) -> (&'static str, &'static str, (&'static str, u64, u32));
}

impl Source {
    /// Returns why NativeAOT programs do not provide this source, as a sentence without a period; `None` if they do. `runtime`: the major version,
    /// if known.
    pub fn native_aot_gap(self, runtime: Option<u32>) -> Option<&'static str> {
        let is_old = runtime.is_some_and(|major| major < 9);
        match self {
            Self::Samples => Some("a NativeAOT program sends no samples of its threads"),
            Self::Compilation | Self::Assemblies => Some("a NativeAOT program compiles no methods and loads no assemblies"),
            // Seen on .NET 8.
            Self::Contention if is_old => {
                Some("NativeAOT before .NET 9 only counts lock contention: counter monitor-lock-contention-count")
            }
            // dotnet/runtime issue 103198.
            Self::Allocations if is_old => Some("NativeAOT before .NET 9 does not report allocated types"),
            _ => None,
        }
    }

    /// Returns the name of the events.
    pub fn events(self) -> &'static str {
        self.row().0
    }

    /// Returns the profile intended for this source.
    pub fn profile(self) -> &'static str {
        self.row().1
    }

    /// Returns whether a recording with these profiles, as in [`Recording::what`](crate::model::Recording::what), can contain this source;
    /// `None` if it includes anything but profiles.
    pub fn is_in(self, what: &[String]) -> Option<bool> {
        // The profiles of a file are unknown.
        if what.is_empty() {
            return None;
        }
        let (_, _, (name, keyword, level)) = self.row();
        let mut found = false;
        for word in what {
            let enables = |provider: &crate::ipc::Provider| {
                let all = keyword == 0 || provider.keywords() & keyword != 0;
                provider.name() == name && all && provider.level().number() >= level
            };
            let profile = profile(word).ok()?;
            // The fallback of a profile is samples of the runtime, in place of those of the kernel.
            found |= profile.providers.iter().chain(&profile.required).chain(&profile.fallback).any(enables);
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clr::profiles;

    #[test]
    fn every_source_names_a_profile_that_records_it() {
        for source in Source::ALL {
            assert_eq!(source.is_in(&[source.profile().to_owned()]), Some(true), "{source:?}");
        }
    }

    #[test]
    fn sources_missing_from_a_recording_are_detected() {
        let usual = ["dotnet-common", "dotnet-sampled-thread-time"].map(str::to_owned);
        let held = Source::ALL.map(|source| source.is_in(&usual).unwrap());
        assert_eq!(held, [true, false, true, true, true, true, false, false, false, true]);
        let cpu = ["cpu".to_owned()];
        assert_eq!(
            [Source::Samples, Source::Contention, Source::Logs].map(|source| source.is_in(&cpu)),
            [Some(true), Some(true), Some(false)]
        );
        assert!(profiles().iter().flat_map(|profile| &profile.fallback).all(|provider| provider.name() == SAMPLE_PROFILER));
        assert_eq!(Source::Collections.is_in(&["dotnet-common", "My-Own:1:5"].map(str::to_owned)), None);
        assert_eq!(Source::Collections.is_in(&[]), None);
    }
}
