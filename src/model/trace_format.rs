//! The formats of other tools that a recording can be exported to.

use std::path::Path;

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceFormat {
    /// Perfetto's trace format: everything.
    Perfetto,
    /// The JSON of speedscope: samples, a profile for each thread.
    Speedscope,
    /// The JSON of Chrome's tracing: everything.
    Chromium,
    /// Folded stacks: samples, for flame graphs.
    Folded,
    /// The profile of pprof: samples.
    Pprof,
    /// Comma-separated values: a line for each event.
    Csv,
    /// The event stream format, version 6: everything, CPU samples beside a recording with it.
    Nettrace,
}

impl TraceFormat {
    /// Every format.
    pub const ALL: [Self; 7] = [Self::Perfetto, Self::Speedscope, Self::Chromium, Self::Folded, Self::Pprof, Self::Csv, Self::Nettrace];

    /// Its name, as the command line and the form have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Perfetto => "perfetto",
            Self::Speedscope => "speedscope",
            Self::Chromium => "chromium",
            Self::Folded => "folded",
            Self::Pprof => "pprof",
            Self::Csv => "csv",
            Self::Nettrace => "nettrace",
        }
    }

    /// What opens it, and what it holds.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Perfetto => "for ui.perfetto.dev: threads, samples, locks, GC, requests",
            Self::Speedscope => "for speedscope.app: samples, thread by thread",
            Self::Chromium => "for chrome://tracing and others: much the same, as JSON",
            Self::Folded => "for flame graph programs: stacks and how often each was sampled",
            Self::Pprof => "for pprof and continuous profilers: samples",
            Self::Csv => "every event with its fields, a line each",
            Self::Nettrace => "for PerfView and dn-top: all events, and CPU samples, in one file",
        }
    }

    /// Whether a part of a recording can be had in it.
    pub fn has_parts(self) -> bool {
        self != Self::Nettrace
    }

    /// The extension of its files by convention.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Perfetto => "perfetto-trace",
            Self::Speedscope => "speedscope.json",
            Self::Chromium => "chromium.json",
            Self::Folded => "folded",
            Self::Pprof => "pb",
            Self::Csv => "csv",
            // That of the recording itself has no more.
            Self::Nettrace => "joined.nettrace",
        }
    }
}

/// The path of a recording without its extensions: an export of it gets that of its format.
pub fn export_stem(recording: &Path) -> String {
    let name = recording.to_string_lossy();
    let name = name.strip_suffix(".partial").unwrap_or(&name);
    name.strip_suffix(".nettrace").unwrap_or(name).to_owned()
}
