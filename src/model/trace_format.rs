//! The formats of other tools that a recording can be exported to.

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
}

impl TraceFormat {
    /// Every format.
    pub const ALL: [Self; 6] = [Self::Perfetto, Self::Speedscope, Self::Chromium, Self::Folded, Self::Pprof, Self::Csv];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Perfetto => "perfetto",
            Self::Speedscope => "speedscope",
            Self::Chromium => "chromium",
            Self::Folded => "folded",
            Self::Pprof => "pprof",
            Self::Csv => "csv",
        }
    }

    /// What its files are called by convention.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Perfetto => "perfetto-trace",
            Self::Speedscope => "speedscope.json",
            Self::Chromium => "chromium.json",
            Self::Folded => "folded",
            Self::Pprof => "pb",
            Self::Csv => "csv",
        }
    }
}
