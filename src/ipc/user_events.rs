//! Sessions whose events go into the kernel's user_events (Linux, `CollectTracing5` and later).

use std::collections::HashSet;

use super::field::Field;
use super::filter::once;
use super::invalid::{Invalid, NAME_LENGTH};
use super::{EventFilter, FilteredProvider, Hresult, Provider, Providers, SessionConfig};
use crate::wire::Reader;

/// A session without a stream. Its sender **must** send a file descriptor of `user_events_data` right after it (`SCM_RIGHTS`, with one byte):
/// until that comes or the connection closes, the target's diagnostic server waits and answers no client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserEvents {
    /// Which rundown events come at the end; 0 for none.
    pub rundown_keyword: u64,
    /// What is turned on, and which tracepoints it goes to.
    pub providers: Providers<TracepointProvider>,
}

impl UserEvents {
    /// The providers and filters of a session, all into these tracepoints. What is about a stream does not count; nor does the rundown, which
    /// runtimes write into streams only (seen with 10.0).
    pub fn new(config: SessionConfig, tracepoints: &Tracepoints) -> Self {
        let into = |FilteredProvider { provider, filter }| TracepointProvider { provider, filter, tracepoints: tracepoints.clone() };
        Self { rundown_keyword: 0, providers: config.providers.map(into) }
    }
}

/// A provider, which of its events come, and where they go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracepointProvider {
    /// The provider.
    pub provider: Provider,
    /// Which of its events, after keywords and level.
    pub filter: EventFilter,
    /// Where they go.
    pub tracepoints: Tracepoints,
}

/// Where a provider's events go: a default tracepoint, others for some event ids, or both; never neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracepoints {
    default: Option<String>,
    sets: Vec<TracepointSet>,
}

/// A tracepoint and the events that go to it instead of the default one. It has a name and at least one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracepointSet {
    name: String,
    ids: Vec<u32>,
}

impl TracepointSet {
    /// Takes a name and event ids. One that is there twice counts once: a runtime does not survive the second.
    ///
    /// # Errors
    /// [`Invalid::EmptyTracepoint`] and [`Invalid::TracepointName`].
    pub fn new(name: impl Into<String>, ids: Vec<u32>) -> Result<Self, Invalid> {
        if ids.is_empty() { Err(Invalid::EmptyTracepoint) } else { Ok(Self { name: checked(name.into())?, ids: once(ids) }) }
    }
}

impl Tracepoints {
    /// Takes the default tracepoint's name and the sets.
    ///
    /// # Errors
    /// [`Invalid::NoTracepoint`] with neither, [`Invalid::EmptyTracepoint`] for an empty name, [`Invalid::TracepointName`],
    /// [`Invalid::TracepointOverlap`] for an event in two sets.
    pub fn new(default: Option<String>, sets: Vec<TracepointSet>) -> Result<Self, Invalid> {
        let default = default.map(checked).transpose()?;
        if default.is_none() && sets.is_empty() {
            return Err(Invalid::NoTracepoint);
        }
        for (i, set) in sets.iter().enumerate() {
            let before: HashSet<u32> = sets[..i].iter().flat_map(|set| set.ids.iter().copied()).collect();
            if let Some(id) = set.ids.iter().find(|id| before.contains(id)) {
                return Err(Invalid::TracepointOverlap(*id));
            }
        }
        Ok(Self { default, sets })
    }
}

/// The kernel takes nearly everything, and takes what follows a blank for the format of the event; then there is a tracepoint that its own files
/// cannot name, nor perf: in its names there is no minus, and it cannot read events with a dot in theirs. What is taken here they all can.
fn checked(name: String) -> Result<String, Invalid> {
    if name.is_empty() {
        return Err(Invalid::EmptyTracepoint);
    }
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let rest = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if first && rest && name.len() <= NAME_LENGTH { Ok(name) } else { Err(Invalid::TracepointName(name)) }
}

impl Field for UserEvents {
    fn write(&self, out: &mut Vec<u8>) {
        self.rundown_keyword.write(out);
        self.providers.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        Ok(Self { rundown_keyword: Field::read(reader)?, providers: Field::read(reader)? })
    }
}

impl Field for TracepointProvider {
    fn write(&self, out: &mut Vec<u8>) {
        self.provider.write(out);
        self.filter.write(out);
        self.tracepoints.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        Ok(Self { provider: Field::read(reader)?, filter: Field::read(reader)?, tracepoints: Field::read(reader)? })
    }
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
    /// with the NUL are 13, and likewise sizes; a count by the rule is what runtimes take.
    #[test]
    fn the_specifications_examples() {
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
    fn what_runtimes_refuse() {
        let set = |ids: &[u32]| TracepointSet::new("Set", ids.to_vec());
        assert_eq!(Tracepoints::new(None, vec![]), Err(Invalid::NoTracepoint));
        assert_eq!(Tracepoints::new(Some(String::new()), vec![]), Err(Invalid::EmptyTracepoint));
        assert_eq!(set(&[]), Err(Invalid::EmptyTracepoint));
        assert_eq!(set(&[2, 1, 2]).unwrap().ids, [1, 2]);
        assert_eq!(TracepointSet::new("", vec![1]), Err(Invalid::EmptyTracepoint));
        let overlap = vec![set(&[1, 2]).unwrap(), set(&[3, 2]).unwrap()];
        assert_eq!(Tracepoints::new(None, overlap), Err(Invalid::TracepointOverlap(2)));
    }
    #[test]
    fn names_that_harm_or_hide() {
        let taken = |name: &str| {
            let [default, set] = [Tracepoints::new(Some(name.to_owned()), vec![]).map(drop), TracepointSet::new(name, vec![1]).map(drop)];
            assert_eq!(default, set, "{name:?}");
            set
        };
        let longest = "x".repeat(NAME_LENGTH);
        for name in ["a", "_", "dn_top_Test1", &longest] {
            assert_eq!(taken(name), Ok(()), "{name:?}");
        }
        // Of 437 characters and more a runtime crashes; a slash hides all tracepoints; a blank and a colon are the kernel's.
        let longer = "x".repeat(NAME_LENGTH + 1);
        for name in [&longer, "a/b", "a b", "a:b", "a;b", "..", "x.y", "x-y", "1x", "a,b", "a*", "n\nl", "a\0b", "\u{e9}"] {
            assert_eq!(taken(name), Err(Invalid::TracepointName(name.to_owned())), "{name:?}");
        }
    }
}
