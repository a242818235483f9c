//! String interning.

use std::hash::BuildHasher;

use foldhash::HashMap;
use foldhash::fast::RandomState;

use crate::wire::Utf16;

/// Maximum total length of the texts of a table, in bytes.
const LIMIT: usize = 12 << 20;
/// Maximum length of a name in UTF-16 code units or bytes; anything longer is not a real name.
const MAX_LENGTH: usize = 1024;

/// Interned texts. Equal texts have the same ID; a text that does not fit has the ID of the empty text.
#[derive(Debug, Clone)]
pub(super) struct Names {
    text: String,
    /// End of each text in `text`; it starts at the end of the previous one.
    ends: Vec<u32>,
    hasher: RandomState,
    /// ID by hash. Texts with colliding hashes are stored, but not found again.
    by_hash: HashMap<u64, u32>,
    /// Maximum total length, in bytes; the number of texts is limited accordingly.
    limit: usize,
}

impl Default for Names {
    fn default() -> Self {
        Self { text: String::new(), ends: vec![0], hasher: RandomState::default(), by_hash: HashMap::default(), limit: LIMIT }
    }
}

/// ID of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(super) struct NameId(u32);

impl NameId {
    pub(super) fn number(self) -> u32 {
        self.0
    }
}

impl Names {
    /// Returns the ID of a text. Allocates only if it is new.
    pub(super) fn add(&mut self, name: Utf16<'_>) -> NameId {
        let start = self.text.len();
        let bytes = name.as_bytes();
        Utf16::new(&bytes[..bytes.len().min(2 * MAX_LENGTH)]).push_to(&mut self.text);
        self.added(start)
    }

    pub(super) fn add_str(&mut self, name: &str) -> NameId {
        let start = self.text.len();
        let end = (0..=name.len().min(MAX_LENGTH)).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        self.text.push_str(&name[..end]);
        self.added(start)
    }

    /// Returns the ID of the text from `start` on, removing it again if it already exists.
    fn added(&mut self, start: usize) -> NameId {
        let added = &self.text[start..];
        if added.is_empty() {
            return NameId::default();
        }
        let hash = self.hasher.hash_one(added);
        let found = self.by_hash.get(&hash).copied();
        if let Some(id) = found
            && self.span(id) == added
        {
            self.text.truncate(start);
            return NameId(id);
        }
        if self.text.len() > self.limit || self.ends.len() > self.limit / 32 {
            self.text.truncate(start);
            return NameId::default();
        }
        let id = self.ends.len() as u32;
        self.ends.push(self.text.len() as u32);
        if found.is_none() {
            self.by_hash.insert(hash, id);
        }
        NameId(id)
    }

    pub(super) fn get(&self, id: NameId) -> &str {
        self.span(id.0)
    }

    fn span(&self, id: u32) -> &str {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        &self.text[start..self.ends[id] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Put;

    fn add(names: &mut Names, text: &str) -> NameId {
        let mut bytes = Vec::new();
        bytes.put_utf16z(text);
        names.add(Utf16::new(&bytes[..bytes.len() - 2]))
    }

    #[test]
    fn equal_names_share_an_id() {
        let mut names = Names { limit: 256, ..Names::default() };
        let ids: Vec<_> = ["a.B", "", "Größe", "a.B"].into_iter().map(|text| add(&mut names, text)).collect();
        assert_eq!((ids[0], ids[1]), (ids[3], NameId::default()));
        assert_eq!((names.get(ids[0]), names.get(ids[1]), names.get(ids[2])), ("a.B", "", "Größe"));
        assert_eq!(add(&mut names, &"x".repeat(260)), NameId::default());
        assert_eq!(add(&mut names, "a.B"), ids[0], "what is there is still found");
        let short = add(&mut names, "c");
        assert_eq!(names.get(short), "c", "and what fits still fits");
    }
}
