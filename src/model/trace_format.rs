//! Export formats for recordings.

use std::path::Path;

/// An export format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceFormat {
    /// Perfetto's trace format: everything.
    Perfetto,
    /// The JSON of speedscope: samples, one profile per thread.
    Speedscope,
    /// The JSON of Chrome's tracing: everything.
    Chromium,
    /// Folded stacks: samples, for flame graphs.
    Folded,
    /// The profile of pprof: samples.
    Pprof,
    /// Comma-separated values: one line per event.
    Csv,
    /// The nettrace format, version 6: everything, including CPU samples beside the recording.
    Nettrace,
}

impl TraceFormat {
    /// All formats.
    pub const ALL: [Self; 7] = [Self::Perfetto, Self::Speedscope, Self::Chromium, Self::Folded, Self::Pprof, Self::Csv, Self::Nettrace];

    /// Returns its name, its conventional file extension, and the tools that open it, with its contents.
    const fn facts(self) -> [&'static str; 3] {
        match self {
            Self::Perfetto => ["perfetto", "perfetto-trace", "for ui.perfetto.dev: threads, samples, locks, GC, requests"],
            Self::Speedscope => ["speedscope", "speedscope.json", "for speedscope.app: samples by thread"],
            Self::Chromium => ["chromium", "chromium.json", "for chrome://tracing and others: similar contents, as JSON"],
            Self::Folded => ["folded", "folded", "for flame graph tools: stacks and sample counts"],
            Self::Pprof => ["pprof", "pb", "for pprof and continuous profilers: samples"],
            Self::Csv => ["csv", "csv", "every event with its fields, one per line"],
            // The extension differs from that of the recording itself.
            Self::Nettrace => ["nettrace", "joined.nettrace", "for PerfView and dn-top: all events, and CPU samples, in one file"],
        }
    }

    /// Returns the name used on the command line and in the form.
    pub const fn name(self) -> &'static str {
        self.facts()[0]
    }

    /// Returns the conventional file extension.
    pub const fn extension(self) -> &'static str {
        self.facts()[1]
    }

    /// Returns the tools that open it, and its contents.
    pub const fn about(self) -> &'static str {
        self.facts()[2]
    }

    /// Whether a part of a recording can be exported in this format.
    pub fn has_parts(self) -> bool {
        self != Self::Nettrace
    }
}

/// Returns the path of a recording without its extensions, to which an export appends its own.
pub fn export_stem(recording: &Path) -> String {
    let name = recording.to_string_lossy();
    let name = name.strip_suffix(".partial").unwrap_or(&name);
    name.strip_suffix(".nettrace").unwrap_or(name).to_owned()
}
