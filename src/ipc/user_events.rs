//! Sessions that write to the kernel's user_events (Linux, `CollectTracing5` and later).

use std::collections::HashSet;

use super::field::{Field, structure};
use super::filter::sorted_unique;
use super::invalid::{InvalidRequest, MAX_TRACEPOINT_NAME};
use super::{EventFilter, FilteredProvider, Hresult, Provider, Providers, SessionConfig};
use crate::wire::Reader;

/// A session without a stream. The sender **must** send a file descriptor of `user_events_data` immediately afterwards (`SCM_RIGHTS`, with one
/// byte): until it arrives or the connection is closed, the target's diagnostic server is blocked and serves no client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserEvents {
    /// Keywords of the rundown events at the end; 0 for none.
    pub rundown_keyword: u64,
    /// Providers to enable, with their tracepoints.
    pub providers: Providers<TracepointProvider>,
}

impl UserEvents {
    /// Creates a session with the providers and filters of `config`, all writing to these tracepoints. The stream settings are ignored, and so
    /// is the rundown, which runtimes write to streams only (seen with 10.0).
    pub fn new(config: SessionConfig, tracepoints: &Tracepoints) -> Self {
        let into = |FilteredProvider { provider, filter }| TracepointProvider { provider, filter, tracepoints: tracepoints.clone() };
        Self { rundown_keyword: 0, providers: config.providers.map(into) }
    }
}

/// A provider with its event filter and tracepoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracepointProvider {
    /// The provider.
    pub provider: Provider,
    /// Filter applied after keywords and level.
    pub filter: EventFilter,
    /// Destination of the events.
    pub tracepoints: Tracepoints,
}

/// Tracepoints of a provider: a default one, specific ones for some event IDs, or both; never neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracepoints {
    default: Option<String>,
    sets: Vec<TracepointSet>,
}

/// A tracepoint for specific events, instead of the default one. Has a name and at least one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracepointSet {
    name: String,
    ids: Vec<u32>,
}

impl TracepointSet {
    /// Creates a set from a name and event IDs. Duplicates are removed: a runtime crashes on them.
    ///
    /// # Errors
    /// [`InvalidRequest::EmptyTracepoint`] or [`InvalidRequest::TracepointName`].
    pub fn new(name: impl Into<String>, ids: Vec<u32>) -> Result<Self, InvalidRequest> {
        if ids.is_empty() {
            Err(InvalidRequest::EmptyTracepoint)
        } else {
            Ok(Self { name: valid_name(name.into())?, ids: sorted_unique(ids) })
        }
    }
}

impl Tracepoints {
    /// Creates tracepoints from the default tracepoint's name and the sets.
    ///
    /// # Errors
    /// [`InvalidRequest::NoTracepoint`] if there are neither, [`InvalidRequest::EmptyTracepoint`] for an empty name,
    /// [`InvalidRequest::TracepointName`], or [`InvalidRequest::TracepointOverlap`] for an event in two sets.
    pub fn new(default: Option<String>, sets: Vec<TracepointSet>) -> Result<Self, InvalidRequest> {
        let default = default.map(valid_name).transpose()?;
        if default.is_none() && sets.is_empty() {
            return Err(InvalidRequest::NoTracepoint);
        }
        let mut seen = HashSet::new();
        if let Some(id) = sets.iter().flat_map(|set| &set.ids).find(|id| !seen.insert(**id)) {
            return Err(InvalidRequest::TracepointOverlap(*id));
        }
        Ok(Self { default, sets })
    }
}

/// The kernel accepts nearly any name and parses the text after a space as the event's format. The result can be a tracepoint that neither
/// tracefs nor perf can address: perf does not support a minus in names, and cannot read events with a dot in theirs. Names accepted here work
/// everywhere.
fn valid_name(name: String) -> Result<String, InvalidRequest> {
    if name.is_empty() {
        return Err(InvalidRequest::EmptyTracepoint);
    }
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let rest = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if first && rest && name.len() <= MAX_TRACEPOINT_NAME { Ok(name) } else { Err(InvalidRequest::TracepointName(name)) }
}

structure! {
    UserEvents { rundown_keyword, providers }
    TracepointProvider { provider, filter, tracepoints }
}

impl Field for Tracepoints {
    fn write(&self, out: &mut Vec<u8>) {
        self.default.write(out);
        self.sets.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        let (default, sets) = Field::read(reader)?;
        Ok(Self::new(default, sets)?)
    }
}

impl Field for TracepointSet {
    fn write(&self, out: &mut Vec<u8>) {
        Some(self.name.clone()).write(out);
        self.ids.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        let (name, ids): (Option<String>, _) = Field::read(reader)?;
        Ok(Self::new(name.unwrap_or_default(), ids)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(tracepoints: &Tracepoints) -> Vec<u8> {
        let mut out = Vec::new();
        tracepoints.write(&mut out);
        assert_eq!(Tracepoints::read(&mut Reader::new(&out)).as_ref(), Ok(tracepoints));
        out
    }

    /// The examples of the specification ("tracepoint_config serialization"). It counts 14 units for the 12 letters of "MyTracepoint", which
    /// are 13 with the NUL, and sizes likewise; runtimes expect the correct count.
    #[test]
    fn specification_examples_have_the_expected_layout() {
        let default = || Some("MyTracepoint".to_owned());
        let low = || TracepointSet::new("LowEvents", (1..=9).collect()).unwrap();

        let bytes = wire(&Tracepoints::new(default(), vec![]).unwrap());
        assert_eq!((bytes[0], bytes.len()), (13, 4 + 26 + 4));
        assert_eq!(bytes[30..], [0; 4]);

        let bytes = wire(&Tracepoints::new(default(), vec![low()]).unwrap());
        assert_eq!((bytes[30], bytes[34], bytes[58], bytes.len()), (1, 10, 9, 4 + 26 + 4 + 4 + 20 + 4 + 36));

        let bytes = wire(&Tracepoints::new(None, vec![low()]).unwrap());
        assert_eq!((&bytes[..4], bytes[4], bytes[8], bytes.len()), (&[0; 4][..], 1, 10, 72));
    }

    #[test]
    fn invalid_tracepoints_are_rejected() {
        let set = |ids: &[u32]| TracepointSet::new("Set", ids.to_vec());
        assert_eq!(Tracepoints::new(None, vec![]), Err(InvalidRequest::NoTracepoint));
        assert_eq!(Tracepoints::new(Some(String::new()), vec![]), Err(InvalidRequest::EmptyTracepoint));
        assert_eq!(set(&[]), Err(InvalidRequest::EmptyTracepoint));
        assert_eq!(set(&[2, 1, 2]).unwrap().ids, [1, 2]);
        assert_eq!(TracepointSet::new("", vec![1]), Err(InvalidRequest::EmptyTracepoint));
        let overlap = vec![set(&[1, 2]).unwrap(), set(&[3, 2]).unwrap()];
        assert_eq!(Tracepoints::new(None, overlap), Err(InvalidRequest::TracepointOverlap(2)));
    }

    #[test]
    fn unsafe_tracepoint_names_are_rejected() {
        let check_name = |name: &str| {
            let [default, set] = [Tracepoints::new(Some(name.to_owned()), vec![]).map(drop), TracepointSet::new(name, vec![1]).map(drop)];
            assert_eq!(default, set, "{name:?}");
            set
        };
        let longest = "x".repeat(MAX_TRACEPOINT_NAME);
        for name in ["a", "_", "dn_top_Test1", &longest] {
            assert_eq!(check_name(name), Ok(()), "{name:?}");
        }
        // From 437 characters on, a runtime crashes; a slash hides all tracepoints; the kernel gives a space and a colon a special meaning.
        let longer = "x".repeat(MAX_TRACEPOINT_NAME + 1);
        for name in [&longer, "a/b", "a b", "a:b", "a;b", "..", "x.y", "x-y", "1x", "a,b", "a*", "n\nl", "a\0b", "\u{e9}"] {
            assert_eq!(check_name(name), Err(InvalidRequest::TracepointName(name.to_owned())), "{name:?}");
        }
    }
}
