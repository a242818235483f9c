//! A recording in the formats of other tools.
//!
//! Two passes: the first collects the names of methods, which are at the end of a recording, and facts about its process ([`Overview`]); the second
//! writes the output ([`Export`]). Both are [`Sink`]s. Memory use does not depend on the length of the recording.

mod activities;
mod allocation_rates;
mod chromium;
mod csv;
mod folded;
mod html;
mod identity;
mod joined;
mod json;
mod live;
mod open_slices;
mod output;
mod overview;
mod own_events;
mod perfetto;
mod plain;
mod pprof;
mod spans;
mod speedscope;
mod stacks;
#[cfg(test)]
mod tests;
mod walk;
mod writer;

use std::io::{self, Write};

use crate::model::{Counted, TraceFormat};
use crate::nettrace::{Sink, forward_sink};

use chromium::Chromium;
use csv::Csv;
use folded::Folded;
use html::Html;
use joined::Join;
use output::Output;
use own_events::OwnEvents;
use perfetto::Perfetto;
use pprof::Pprof;
use speedscope::Speedscope;
use walk::Walk;
use writer::Writer;

pub use identity::Processes;
pub use joined::{Batch, JoinCounts, SampleStream};
pub use live::{LiveProcess, LiveTrace};
pub use output::{Part, Written};
pub use overview::Overview;
pub use perfetto::notices;
pub use speedscope::Scratch;
pub use writer::LivePackets;

/// Maximum number of events of the program's own providers in a trace that was not requested to have all: it would mainly consist of them.
const MAX_OWN_EVENTS: u64 = 50_000;

/// Options of an export.
#[derive(Debug, Clone)]
pub struct Options {
    /// Output format.
    pub format: TraceFormat,
    /// The part of the recording to export.
    pub part: Part,
    /// Whether samples are also written as nested slices (Perfetto only; the other formats always or never have them).
    pub calls: bool,
    /// Whether tasks are linked from the thread that creates them to the one that runs them (Perfetto only).
    pub tasks: bool,
    /// Whether the events of the program's own providers are written even if there are very many.
    pub all_events: bool,
    /// Index of the recording among those exported into one trace (Perfetto only).
    pub number: u32,
}

impl Options {
    /// Options without anything that only one format has.
    pub fn new(format: TraceFormat, part: Part) -> Self {
        Self { format, part, calls: false, tasks: false, all_events: false, number: 0 }
    }
}

/// The second pass over a recording: feed it the same stream as the [`Overview`].
pub struct Export<'w>(Box<dyn Pass + 'w>);

/// What a complete export has written.
#[derive(Debug, Clone)]
pub enum Finished {
    /// The selected part, in the format of another tool.
    Part(Written),
    /// A stream in nettrace format.
    Joined(JoinCounts),
}

impl Finished {
    /// Returns a sentence about what a reader of the output should know; `None` if there is nothing.
    pub fn note(&self) -> Option<String> {
        match self {
            Self::Joined(counts) => Some(counts.to_string()),
            Self::Part(Written { left_out: 0, .. }) => None,
            Self::Part(Written { left_out, .. }) => Some(format!(
                "{} of the program's own providers are left out: `dn-top export --all-events` shows them",
                Counted(*left_out, "event")
            )),
        }
    }
}

/// A second pass that writes one of the formats, or several.
trait Pass: Sink {
    /// Writes the rest.
    fn finish(self: Box<Self>) -> io::Result<Finished>;
}

impl<'w> Export<'w> {
    /// Starts the output. `scratch` is an empty private file, in which some formats buffer data.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn new(options: Options, overview: Overview, out: Box<dyn Write + 'w>, scratch: Box<dyn Scratch + 'w>) -> io::Result<Self> {
        let Options { format, part, calls, tasks, all_events, number } = options;
        let with_own_events = format.has_timeline() && (all_events || overview.own_events <= MAX_OWN_EVENTS);
        let left_out = if format.has_timeline() && !with_own_events { overview.own_events } else { 0 };
        // Kernel samples make those of the runtime redundant: with both, everything would be counted twice, and calls would be torn apart.
        let has_cpu_samples = overview.has_cpu_samples;
        let (subject, stacks) = overview.into_parts();
        let process = subject.header.process_id;
        let writer: Box<dyn Writer + 'w> = match format {
            TraceFormat::Perfetto => Box::new(Perfetto::new(out, subject, number, calls)?),
            TraceFormat::Speedscope => Box::new(Speedscope::new(out, scratch, subject)),
            TraceFormat::Chromium => Box::new(Chromium::new(out, subject)?),
            TraceFormat::Folded => Box::new(Folded::new(out)),
            TraceFormat::Html => Box::new(Html::new(out, process, has_cpu_samples)?),
            TraceFormat::Pprof => Box::new(Pprof::new(out, subject, (*part.window.start()).max(0), has_cpu_samples)),
            TraceFormat::Nettrace => return Ok(Self(Box::new(Join::new(&subject.header, out, None)))),
            TraceFormat::Csv => return Ok(Self(Box::new(Csv::new(out, part)))),
        };
        let mut output = Output::new(writer, stacks, part, process);
        output.written.left_out = left_out;
        Ok(Self(Box::new(Walk::new(output, tasks, has_cpu_samples, with_own_events.then(OwnEvents::default)))))
    }

    /// Starts merging a recording and CPU samples of the same clock into one stream in nettrace format.
    pub fn joined(overview: &Overview, out: Box<dyn Write + 'w>, samples: Box<dyn SampleStream + 'w>) -> Self {
        Self(Box::new(Join::new(overview.header(), out, Some(samples))))
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// The first error of the output is returned.
    pub fn finish(self) -> io::Result<Finished> {
        self.0.finish()
    }
}

impl Sink for Export<'_> {
    forward_sink!(self => [*self.0]: trace metadata needs_order event ordered_event thread loss ordered_loss sequence_point);
}
