//! Export formats for recordings.

use std::path::{Path, PathBuf};

use super::SafeText;

listed! {
/// An export format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceFormat {
    /// Perfetto's trace format: everything.
    Perfetto => ["perfetto", "perfetto-trace", "for ui.perfetto.dev: samples, locks, GC, requests, own events"],
    /// The JSON of speedscope: samples, one profile per thread.
    Speedscope => ["speedscope", "speedscope.json", "for speedscope.app: samples by thread"],
    /// The JSON of Chrome's tracing: everything.
    Chromium => ["chromium", "chromium.json", "for chrome://tracing and others: similar contents, as JSON"],
    /// Folded stacks: samples, for flame graphs.
    Folded => ["folded", "folded", "for flame graph tools: stacks and sample counts"],
    /// A page with a flame graph: samples.
    Html => ["html", "html", "for any browser: a flame graph of the samples"],
    /// The profile of pprof: samples.
    Pprof => ["pprof", "pb", "for pprof and continuous profilers: samples"],
    /// Comma-separated values: one line per event.
    Csv => ["csv", "csv", "every event with its fields, one per line"],
    /// The nettrace format, version 6: everything, including CPU samples beside the recording.
    // The extension differs from that of the recording itself.
    Nettrace => ["nettrace", "joined.nettrace", "for PerfView and dn-top: all events, and CPU samples, in one file"],
}
/// Returns its name, its conventional file extension, and the tools that open it, with its contents.
fn facts(self) -> [&'static str; 3];
}

impl TraceFormat {
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

    /// Whether it contains other events than samples.
    pub fn has_events(self) -> bool {
        !matches!(self, Self::Speedscope | Self::Folded | Self::Html | Self::Pprof)
    }

    /// Whether events are placed on a timeline.
    pub fn has_timeline(self) -> bool {
        matches!(self, Self::Perfetto | Self::Chromium)
    }

    /// Whether a part of a recording can be exported in this format.
    pub fn has_parts(self) -> bool {
        self != Self::Nettrace
    }
}

/// Extensions that identify the contents of a file, each with the extensions of the formats whose files may have it.
const EXTENSIONS: [(&str, &[&str]); 13] = [
    ("nettrace", &["nettrace", "joined.nettrace"]),
    ("perfetto-trace", &["perfetto-trace"]),
    ("pftrace", &["perfetto-trace"]),
    ("speedscope.json", &["speedscope.json"]),
    ("chromium.json", &["chromium.json"]),
    ("json", &["speedscope.json", "chromium.json", "json"]),
    ("folded", &["folded"]),
    ("html", &["html"]),
    ("pb", &["pb", "perfetto-trace"]),
    ("csv", &["csv"]),
    ("gcdump", &["gcdump"]),
    ("etl", &[]),
    ("dmp", &["dmp"]),
];

/// Checks that an output file is not named like one of another format, since programs refuse it then, nor like standard output. `extension` is that
/// of the format written.
///
/// # Errors
/// A sentence, with the extension to use.
pub fn check_file_name(file: &Path, extension: &str) -> Result<(), String> {
    check_not_stdout(file)?;
    check_extension(file, extension)
}

/// Checks that an output file is not named like standard output.
///
/// # Errors
/// A sentence.
pub fn check_not_stdout(file: &Path) -> Result<(), String> {
    if file.as_os_str() == "-" { Err("- does not mean standard output here: a file name is required".to_owned()) } else { Ok(()) }
}

/// Checks that an output file is not named like one of another format.
///
/// # Errors
/// A sentence, with the extension to use.
pub fn check_extension(file: &Path, extension: &str) -> Result<(), String> {
    match known_extension(file) {
        Some((suffix, formats)) if !formats.contains(&extension) => {
            let file = SafeText::from_path(file);
            Err(format!("{file}: the format written is not that of .{suffix} files; use the extension .{extension}"))
        }
        _ => Ok(()),
    }
}

/// Returns the row of [`EXTENSIONS`] that a file name ends with.
fn known_extension(file: &Path) -> Option<(&'static str, &'static [&'static str])> {
    let name = file.file_name()?.to_string_lossy().to_ascii_lowercase();
    let has = |suffix: &str| name.strip_suffix(suffix).is_some_and(|stem| stem.ends_with('.'));
    EXTENSIONS.into_iter().find(|(suffix, _)| has(suffix))
}

/// Checks the name of a heap file, like [`check_file_name`].
///
/// # Errors
/// A sentence with the extension to use.
pub fn check_heap_file(file: &Path) -> Result<(), String> {
    if is_perfetto_file(file) { Ok(()) } else { check_file_name(file, "gcdump") }
}

/// Whether a file has an extension that only Perfetto traces have.
pub fn is_perfetto_file(file: &Path) -> bool {
    known_extension(file).is_some_and(|(_, formats)| formats == [TraceFormat::Perfetto.extension()])
}

/// Returns the path that a file has while it is written.
pub fn partial_path(file: &Path) -> PathBuf {
    let mut partial = file.to_owned().into_os_string();
    partial.push(".partial");
    partial.into()
}

/// Whether a file is named like one that is being written, or was not finished.
pub fn is_partial_file(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "partial")
}

/// Returns the path that a file has once it is finished.
pub fn finished_path(file: &Path) -> PathBuf {
    if is_partial_file(file) { file.with_extension("") } else { file.to_owned() }
}

/// Returns the path of a recording without its extensions, to which an export appends its own.
pub fn export_stem(recording: &Path) -> String {
    let name = finished_path(recording).to_string_lossy().into_owned();
    name.strip_suffix(".nettrace").map(str::to_owned).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_files_are_recognized_by_name() {
        let file = Path::new("/a/b.nettrace");
        assert_eq!(partial_path(file), Path::new("/a/b.nettrace.partial"));
        assert_eq!([&partial_path(file), file].map(finished_path), [file, file]);
        assert!(is_partial_file(&partial_path(file)) && !is_partial_file(file) && !is_partial_file(Path::new("/a/partial")));
    }

    #[test]
    fn files_are_not_named_like_other_formats() {
        for (name, extension, is_allowed) in [
            ("a.nettrace", "nettrace", true),
            ("a.b.nettrace", "joined.nettrace", true),
            ("a.NETTRACE", "perfetto-trace", false),
            ("a.nettrace", "perfetto-trace", false),
            ("a.pftrace", "perfetto-trace", true),
            ("a.pftrace", "nettrace", false),
            ("a.speedscope.json", "chromium.json", false),
            ("a.json", "chromium.json", true),
            ("a.json", "nettrace", false),
            ("a.gcdump", "dmp", false),
            ("-", "nettrace", false),
            ("./-", "nettrace", true),
            ("a.gcdump", "gcdump", true),
            ("a.perfetto-trace", "gcdump", false),
            // Names that say nothing.
            ("nettrace", "perfetto-trace", true),
            ("core", "dmp", true),
            ("a.nettrace.old", "dmp", true),
            ("a.pb.gz", "nettrace", true),
            (".nettrace/a", "folded", true),
        ] {
            assert_eq!(check_file_name(Path::new(name), extension).is_ok(), is_allowed, "{name} {extension}");
        }
        let words = check_file_name(Path::new("x/a.nettrace"), "perfetto-trace").unwrap_err();
        assert_eq!(words, "x/a.nettrace: the format written is not that of .nettrace files; use the extension .perfetto-trace");
    }

    #[test]
    fn default_names_of_all_formats_are_allowed() {
        for format in TraceFormat::ALL {
            let file = format!("a.{}", format.extension());
            assert_eq!(check_file_name(Path::new(&file), format.extension()), Ok(()));
        }
    }
}
