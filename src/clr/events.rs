//! Names and fields of the runtime's native events, which are missing from their metadata: those of `assets/events.txt`.
//!
//! Their source: `ClrEtwAll.man` of the runtime, the fields verified byte by byte against the output of runtimes 3.1, 9 and 10. Symbols have no
//! version suffix, as in Microsoft's documentation.

use std::sync::LazyLock;

use super::providers::RUNTIME_PROVIDER;
use crate::wire::{Reader, Utf16};

/// ID and name of an event, and its fields as [`manifest`](super::manifest) reads them; empty if they are unknown.
type Row = (u32, &'static str, &'static str);

static PROVIDERS: LazyLock<Vec<(&str, Vec<Row>)>> =
    LazyLock::new(|| include_str!("../../assets/events.txt").split("\n\n").filter_map(provider_rows).collect());

/// Returns the providers whose events have names here.
pub(super) fn providers() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().map(|(provider, _)| *provider)
}

/// Returns the name of an event of one of the runtime's native providers.
pub fn name(provider: &str, event_id: u32) -> Option<&'static str> {
    Some(row(provider, event_id)?.1)
}

/// Returns the fields of an event as `NAME:TYPE` in payload order, separated by spaces; `None` if they are unknown.
pub(super) fn fields(provider: &str, event_id: u32) -> Option<&'static str> {
    Some(row(provider, event_id)?.2).filter(|fields| !fields.is_empty())
}

/// Returns whether the payload of this event starts with the event's name (`GCDynamicEvent`).
pub fn is_dynamic(provider: &str, event_id: u32) -> bool {
    (provider, event_id) == (RUNTIME_PROVIDER, 39)
}

/// Reads the name from the payload of such an event, e.g. `CommittedUsage`.
pub fn dynamic_name(payload: &[u8]) -> Option<Utf16<'_>> {
    Reader::new(payload).utf16z().ok().filter(|name| !name.is_empty())
}

/// Returns the display name of such an event, e.g. `GC/CommittedUsage`.
pub fn dynamic_title(name: Utf16<'_>) -> String {
    format!("GC/{name}")
}

/// Returns the IDs and names of the events of a native provider, sorted by ID; none for any other provider.
pub fn names(provider: &str) -> impl Iterator<Item = (u32, &'static str)> {
    rows(provider).iter().map(|(id, name, _)| (*id, *name))
}

fn row(provider: &str, event_id: u32) -> Option<&'static Row> {
    let rows = rows(provider);
    Some(&rows[rows.binary_search_by_key(&event_id, |(id, ..)| *id).ok()?])
}

fn rows(provider: &str) -> &'static [Row] {
    PROVIDERS.iter().find(|(name, _)| *name == provider).map_or(&[], |(_, rows)| rows)
}

/// Reads a paragraph of the file: the name of a provider, and a line for each of its events. The first paragraph is a comment.
fn provider_rows(paragraph: &'static str) -> Option<(&'static str, Vec<Row>)> {
    let (provider, events) = paragraph.split_once('\n').filter(|(provider, _)| !provider.starts_with('#'))?;
    let row = |line: &'static str| {
        let (id, event) = line.split_once(' ')?;
        let (name, fields) = event.split_once(' ').unwrap_or((event, ""));
        Some((id.parse().ok()?, name, fields))
    };
    Some((provider, events.lines().filter_map(row).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clr::manifest::value;
    use crate::clr::providers::{EVENT_PIPE_PROVIDER, RUNDOWN_PROVIDER, SAMPLE_PROFILER};

    #[test]
    fn tables_are_sorted_and_their_fields_are_valid() {
        let file = include_str!("../../assets/events.txt");
        let private = "Microsoft-Windows-DotNETRuntimePrivate";
        let mut lines = 0;
        for provider in [RUNTIME_PROVIDER, RUNDOWN_PROVIDER, private, SAMPLE_PROFILER, EVENT_PIPE_PROVIDER] {
            let rows = rows(provider);
            assert!(rows.is_sorted_by(|(a, ..), (b, ..)| a < b) && rows.iter().all(|(_, name, _)| !name.is_empty()), "{provider}");
            lines += rows.len();
            for (id, _, fields) in rows.iter().filter(|(.., fields)| !fields.is_empty()) {
                for field in fields.split(' ') {
                    let (name, kind) = field.split_once(':').unwrap_or_else(|| panic!("{id}: {field}"));
                    let mut reader = Reader::new(&[0; 16]);
                    assert!(!name.is_empty() && value(&mut reader, kind, 8).is_some(), "{id}: {field}");
                }
            }
        }
        assert_eq!(lines, file.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).count(), "every line is read");
    }

    #[test]
    fn event_names_depend_on_the_provider() {
        assert_eq!(name("Microsoft-Windows-DotNETRuntime", 144), Some("MethodUnloadVerbose"));
        assert_eq!(name("Microsoft-Windows-DotNETRuntimeRundown", 144), Some("MethodDCEndVerbose"));
        assert_eq!(name("Microsoft-Windows-DotNETRuntimePrivate", 10), Some("PrvGCMarkCards"));
        assert_eq!(name("Microsoft-Windows-DotNETRuntime", 9999), None);
        assert_eq!(name("Demo", 1), None);
    }
}
