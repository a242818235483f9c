//! Event filters (`CollectTracing5` and later): select events of a provider by ID.

use super::Hresult;
use super::field::Field;
use crate::wire::Reader;

/// The enabled events of a provider, applied after keywords and level. IDs are unique: on a duplicate .NET 10 drops the whole provider, and
/// crashes if the session writes to user_events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFilter {
    enable: bool,
    ids: Vec<u32>,
}

impl EventFilter {
    /// All events.
    pub const ALL: Self = Self { enable: false, ids: Vec::new() };

    /// Only these events; none at all if `ids` is empty.
    pub fn only(ids: Vec<u32>) -> Self {
        Self { enable: true, ids: sorted_unique(ids) }
    }

    /// All events except these.
    pub fn except(ids: Vec<u32>) -> Self {
        Self { enable: false, ids: sorted_unique(ids) }
    }

    /// Returns whether all events pass, so that a runtime without filters behaves the same.
    pub fn is_all(&self) -> bool {
        *self == Self::ALL
    }

    /// Returns whether an event passes the filter.
    pub fn allows(&self, id: u32) -> bool {
        self.ids.contains(&id) == self.enable
    }
}

/// Sorts event IDs and removes duplicates.
pub(super) fn sorted_unique(mut ids: Vec<u32>) -> Vec<u32> {
    ids.sort_unstable();
    ids.dedup();
    ids
}

impl Field for EventFilter {
    fn write(&self, out: &mut Vec<u8>) {
        self.enable.write(out);
        self.ids.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        Ok(Self { enable: bool::read(reader)?, ids: sorted_unique(Vec::read(reader)?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The four examples of the specification ("event_filter serialization").
    #[test]
    fn specification_examples_round_trip() {
        let table: [(EventFilter, &[u8]); 4] = [
            (EventFilter::ALL, &[0, 0, 0, 0, 0]),
            (EventFilter::except(vec![4, 5]), &[0, 2, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0]),
            (EventFilter::only(vec![]), &[1, 0, 0, 0, 0]),
            (EventFilter::only(vec![3, 1, 2, 1]), &[1, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]),
        ];
        for (filter, bytes) in table {
            let mut out = Vec::new();
            filter.write(&mut out);
            assert_eq!(out, bytes);
            assert_eq!(EventFilter::read(&mut Reader::new(bytes)), Ok(filter.clone()));
            assert_eq!(filter.is_all(), bytes == [0; 5]);
        }
    }

    #[test]
    fn filter_allows_selected_events() {
        let table = [
            (EventFilter::ALL, true, true),
            (EventFilter::only(vec![]), false, false),
            (EventFilter::only(vec![4]), true, false),
            (EventFilter::except(vec![4]), false, true),
        ];
        for (filter, four, five) in table {
            assert_eq!((filter.allows(4), filter.allows(5)), (four, five), "{filter:?}");
        }
    }
}
