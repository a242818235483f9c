//! The filter of the process table.
//!
//! Words are separated by blanks and must all match; `!word` must not. A word matches fuzzily in the name, and as it
//! stands in every other column: fuzzy letters scattered over a long command line would match nearly everything.

use std::fmt::Write;

use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::Row;

/// Which characters of a row the filter matched, for the view to mark. Counted in graphemes, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// In the name.
    pub name: Vec<u32>,
    /// In the command line.
    pub command: Vec<u32>,
}

/// A filter, ready to be put to many rows.
#[derive(Default)]
pub struct Filter {
    text: String,
    words: Vec<Word>,
    /// Large, and needed only once someone filters.
    matcher: Option<Box<Matcher>>,
    chars: Vec<char>,
    scratch: String,
}

struct Word {
    fuzzy: Atom,
    exact: Atom,
    inverse: bool,
}

impl Filter {
    /// The text as typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it lets everything through.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Takes new text.
    pub(super) fn set(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.words = text
            .split_whitespace()
            .map(|word| (word.trim_start_matches('!'), word.starts_with('!')))
            .filter(|(word, _)| !word.is_empty())
            .map(|(word, inverse)| {
                let atom = |kind| Atom::new(word, CaseMatching::Smart, Normalization::Smart, kind, false);
                Word { fuzzy: atom(AtomKind::Fuzzy), exact: atom(AtomKind::Substring), inverse }
            })
            .collect();
    }

    /// Whether the row matches; if so, its marks are set.
    pub(super) fn matches(&mut self, row: &mut Row) -> bool {
        row.marks.name.clear();
        row.marks.command.clear();
        let Self { words, matcher, chars, scratch, .. } = self;
        if words.is_empty() {
            return true;
        }
        let matcher = matcher.get_or_insert_with(|| Box::new(Matcher::new(Config::DEFAULT)));
        let matches = words.iter().all(|word| word.matches(row, matcher, chars, scratch));
        for marks in [&mut row.marks.name, &mut row.marks.command] {
            marks.sort_unstable();
            marks.dedup();
        }
        matches
    }
}

impl Word {
    fn matches(&self, row: &mut Row, matcher: &mut Matcher, chars: &mut Vec<char>, scratch: &mut String) -> bool {
        let (word, recording) = (row.word(), row.recording);
        let Row { process, marks, .. } = row;
        scratch.clear();
        let _ = write!(scratch, "{}", process.key.pid);
        let others = [
            Some(scratch.as_str()),
            process.user.as_deref(),
            process.container.as_deref(),
            process.runtime.as_ref().map(|version| version.as_str()),
            Some(word),
            // Whatever its state says instead.
            recording.then_some("recording"),
        ];
        if self.inverse {
            let named = [Some(process.name.as_str()), Some(process.command_line.as_str())];
            return !named.into_iter().chain(others).flatten().any(|text| self.exact.score(Utf32Str::new(text, chars), matcher).is_some());
        }
        let name = self.fuzzy.indices(Utf32Str::new(&process.name, chars), matcher, &mut marks.name).is_some();
        let command = self.exact.indices(Utf32Str::new(&process.command_line, chars), matcher, &mut marks.command).is_some();
        name || command || others.into_iter().flatten().any(|text| self.exact.score(Utf32Str::new(text, chars), matcher).is_some())
    }
}
