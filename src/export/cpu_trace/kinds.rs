//! The kinds of events in a file of kernel samples, and their fields.

use crate::clr::{SAMPLE_LOSSES, THREAD_TIMES, UNIVERSAL_EVENTS, UNIVERSAL_SYSTEM};
use crate::nettrace::{CollectorEncoder, Field, FieldType, Metadata};

/// Field types: a variable-length integer, and text, which these providers describe as a single UTF-8 code unit.
const NUMBER: FieldType = FieldType::VarUInt;
const TEXT: FieldType = FieldType::Utf8CodeUnit;

/// The ids of the metadata of each kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventKinds {
    pub(super) sample: u32,
    pub(super) switch: u32,
    pub(super) process: u32,
    pub(super) mapping: u32,
    pub(super) mapping_metadata: u32,
    pub(super) symbol: u32,
    pub(super) thread_time: u32,
    pub(super) losses: u32,
}

impl EventKinds {
    /// Writes the metadata.
    pub(super) fn define(encoder: &mut CollectorEncoder) -> Self {
        let mut define =
            |provider, event_id, name, fields: &[(&str, FieldType)]| encoder.metadata(&kind(provider, event_id, name, fields), true);
        Self {
            sample: define(UNIVERSAL_EVENTS, 1, "cpu", &[("Value", NUMBER)]),
            switch: define(UNIVERSAL_EVENTS, 3, "cswitch", &[("Value", NUMBER)]),
            process: define(UNIVERSAL_SYSTEM, 0, "ExistingProcess", &[("NamespaceId", NUMBER), ("Name", TEXT), ("NamespaceName", TEXT)]),
            mapping: define(
                UNIVERSAL_SYSTEM,
                3,
                "ProcessMapping",
                &[
                    ("Id", NUMBER),
                    ("StartAddress", NUMBER),
                    ("EndAddress", NUMBER),
                    ("FileOffset", NUMBER),
                    ("FileName", TEXT),
                    ("MetadataId", NUMBER),
                ],
            ),
            mapping_metadata: define(
                UNIVERSAL_SYSTEM,
                5,
                "ProcessMappingMetadata",
                &[("Id", NUMBER), ("SymbolMetadata", TEXT), ("VersionMetadata", TEXT)],
            ),
            symbol: define(
                UNIVERSAL_SYSTEM,
                4,
                "ProcessSymbol",
                &[("Id", NUMBER), ("MappingId", NUMBER), ("StartAddress", NUMBER), ("EndAddress", NUMBER), ("Name", TEXT)],
            ),
            thread_time: define(THREAD_TIMES, 1, "ThreadTime", &[("Name", TEXT), ("State", TEXT), ("DurationNs", NUMBER)]),
            losses: define(
                SAMPLE_LOSSES,
                1,
                "SampleLosses",
                &["KernelVisible", "Lost", "Unreadable", "Throttled", "MissedThreads", "ShortThreads"].map(|name| (name, NUMBER)),
            ),
        }
    }
}

/// Builds the metadata of a kind of event.
fn kind(provider: &str, event_id: u32, name: &str, fields: &[(&str, FieldType)]) -> Metadata {
    let field = |(name, kind): &(&str, FieldType)| Field { name: (*name).to_owned(), kind: kind.clone() };
    let fields = fields.iter().map(field).collect();
    Metadata { provider: provider.to_owned(), event_id, name: name.to_owned(), fields, ..Metadata::default() }
}
