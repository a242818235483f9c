//! The filter of all lists, entered after `/`.
//!
//! Words are separated by whitespace, and all of them must match; `!word` must not match. `column:word` matches only in columns whose titles
//! start with `column`; a word that itself contains a colon is written with a leading colon. Matching ignores case. A word matches as a
//! substring; from [`MIN_SCATTERED_LETTERS`] letters on, it also matches if its letters occur in order, without whitespace between them, within
//! at most twice as many letters: shorter words would match nearly everything. Excluded words match only as substrings.

use std::ops::Range;

use crate::clr::{RUNDOWN_PROVIDER, SAMPLE_PROFILER, THREAD_TIMES, UNIVERSAL_EVENTS, UNIVERSAL_SYSTEM};

/// Minimum number of letters of a word for a scattered match.
const MIN_SCATTERED_LETTERS: usize = 4;

/// A filter, parsed once and matched against many rows without allocating.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    text: String,
    words: Vec<Word>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    /// Lower-case prefix of a column title; empty for any column.
    column: String,
    /// Lower-case letters.
    letters: Vec<char>,
    excluded: bool,
}

/// The text of one column of a row.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    column: &'a str,
    text: &'a str,
    is_number: bool,
}

impl<'a> Field<'a> {
    /// Creates a text field.
    pub const fn text(column: &'a str, text: &'a str) -> Self {
        Self { column, text, is_number: false }
    }

    /// Creates a number field, which matches only words with a column prefix.
    pub const fn number(column: &'a str, text: &'a str) -> Self {
        Self { column, text, is_number: true }
    }
}

impl Filter {
    /// Parses the input.
    pub fn new(text: &str) -> Self {
        let words = text.split_whitespace().map(Word::new).filter(|word| !word.letters.is_empty()).collect();
        Self { text: text.to_owned(), words }
    }

    /// Returns the input that finds this text.
    pub fn literal(text: &str) -> String {
        let quoted = |word: &str| if word.contains(':') || word.starts_with('!') { format!(":{word}") } else { word.to_owned() };
        text.split_whitespace().map(quoted).collect::<Vec<_>>().join(" ")
    }

    /// Returns the input.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether all rows pass.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns whether any word must match.
    pub fn has_required_words(&self) -> bool {
        self.words.iter().any(|word| !word.excluded)
    }

    /// Returns whether a row with these fields passes.
    pub fn passes(&self, fields: &[Field<'_>]) -> bool {
        self.words.iter().all(|word| {
            let is_known = word.column.is_empty() || fields.iter().any(|field| word.names(field.column));
            let is_found = fields.iter().any(|field| word.is_for(field) && word.matches(field.text));
            is_known && is_found != word.excluded
        })
    }

    /// Returns the byte ranges of the matches in a field.
    pub fn marks(&self, field: Field<'_>) -> Vec<Range<usize>> {
        let mut marks = Vec::new();
        for word in self.words.iter().filter(|word| !word.excluded && word.is_for(&field)) {
            word.mark(field.text, |range| marks.push(range));
        }
        marks
    }

    /// Returns an error message if a word names a column that is not among these titles.
    pub fn unknown_column(&self, columns: &[&str]) -> Option<String> {
        let word = self.words.iter().find(|word| !word.column.is_empty() && !columns.iter().any(|title| word.names(title)))?;
        let (letters, columns) = (word.letters.iter().collect::<String>(), columns.join(", "));
        Some(format!(
            "No column \"{0}\" in this list. Columns: {columns}. To search for a colon, start with one: :{0}:{letters}",
            word.column
        ))
    }
}

impl Word {
    fn new(word: &str) -> Self {
        let required = word.trim_start_matches('!');
        let (column, text) = required.split_once(':').unwrap_or(("", required));
        let letters = text.chars().map(lower).collect();
        Self { column: column.to_lowercase(), letters, excluded: required.len() < word.len() }
    }

    fn names(&self, title: &str) -> bool {
        let mut title = title.chars();
        self.column.chars().all(|letter| title.next().is_some_and(|other| lower(other) == letter))
    }

    fn is_for(&self, field: &Field<'_>) -> bool {
        if self.column.is_empty() { !field.is_number } else { self.names(field.column) }
    }

    fn matches(&self, text: &str) -> bool {
        self.find(text).is_some() || self.scattered(text).is_some()
    }

    /// Returns the first occurrence of the word as a substring.
    fn find(&self, text: &str) -> Option<Range<usize>> {
        text.char_indices().find_map(|(at, _)| {
            let mut rest = text[at..].chars();
            self.letters.iter().all(|letter| rest.next().is_some_and(|c| lower(c) == *letter)).then(|| at..text.len() - rest.as_str().len())
        })
    }

    /// Returns the start of the first scattered match.
    fn scattered(&self, text: &str) -> Option<usize> {
        if self.excluded || self.letters.len() < MIN_SCATTERED_LETTERS {
            return None;
        }
        text.char_indices().map(|(at, _)| at).find(|at| self.scatter(&text[*at..], |_| {}))
    }

    /// Returns whether there is a scattered match at the start of a text, and marks its letters.
    fn scatter(&self, text: &str, mut mark: impl FnMut(Range<usize>)) -> bool {
        let mut letters = self.letters.iter().peekable();
        for (at, c) in text.char_indices().take(2 * self.letters.len()).take_while(|(_, c)| !c.is_whitespace()) {
            match letters.next_if(|letter| **letter == lower(c)) {
                Some(_) => mark(at..at + c.len_utf8()),
                None if at == 0 => return false,
                None => {}
            }
        }
        letters.peek().is_none()
    }

    /// Marks all occurrences as a substring, or else the letters of the scattered match.
    fn mark(&self, text: &str, mut mark: impl FnMut(Range<usize>)) {
        let mut from = 0;
        while let Some(found) = self.find(&text[from..]) {
            mark(from + found.start..from + found.end);
            from += found.end;
        }
        if from == 0
            && let Some(at) = self.scattered(text)
        {
            self.scatter(&text[at..], |range| mark(at + range.start..at + range.end));
        }
    }
}

/// Ranks a name by the input: 0 for an exact match, 1 for a prefix, otherwise 2.
pub fn name_rank(typed: &str, name: &str) -> u8 {
    let mut name = name.chars().map(lower);
    if !typed.trim().chars().map(lower).all(|letter| name.next() == Some(letter)) {
        return 2;
    }
    u8::from(name.next().is_some())
}

/// Returns exactly one lower-case letter per letter, so that matches map to byte ranges of the text.
fn lower(c: char) -> char {
    if c.is_ascii() { c.to_ascii_lowercase() } else { c.to_lowercase().next().unwrap_or(c) }
}

/// Filters individual events by provider and event name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveEventFilter(Filter);

/// Providers of frequent events that mean little individually, shown only on request.
const COMMON: [&str; 5] = [SAMPLE_PROFILER, RUNDOWN_PROVIDER, UNIVERSAL_EVENTS, UNIVERSAL_SYSTEM, THREAD_TIMES];

impl LiveEventFilter {
    /// The columns matched by a word.
    pub const COLUMNS: [&str; 2] = ["EVENT", "PROVIDER"];

    /// Parses the input.
    pub fn new(text: &str) -> Self {
        Self(Filter::new(text))
    }

    /// Returns whether any word must match.
    pub fn has_required_words(&self) -> bool {
        self.0.has_required_words()
    }

    /// Returns whether an event passes.
    pub fn passes(&self, provider: &str, name: &str) -> bool {
        let [event, of] = Self::COLUMNS;
        (self.has_required_words() || !COMMON.contains(&provider)) && self.0.passes(&[Field::text(event, name), Field::text(of, provider)])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn exact_names_rank_before_prefixes_and_substrings() {
        for (typed, name, rank) in
            [("gc", "gc", 0), ("GC ", "gc", 0), ("gc", "gc-verbose", 1), ("gc", "no-gc", 2), ("gc-v", "gc", 2), ("", "gc", 1), ("", "", 0)]
        {
            assert_eq!(name_rank(typed, name), rank, "{typed:?} {name:?}");
        }
    }

    const ROW: [Field<'_>; 4] = [
        Field::text("NAME", "OrderService"),
        Field::text("COMMAND", "/usr/bin/dotnet /srv/OrderService.dll --urls http://*:8080"),
        Field::text("RUNTIME", "9.0.7"),
        Field::number("CPU%", "87.4"),
    ];

    #[test]
    fn filter_requires_words_and_rejects_excluded_words() {
        for (text, passes) in [
            ("", true),
            ("  ", true),
            ("order", true),
            ("ORDER", true),
            ("order dotnet", true),
            ("order nothing", false),
            ("!order", false),
            ("!nothing", true),
            ("order !dotnet", false),
            ("!", true),
            ("!!order", false),
            // Letters in order, within at most twice as many, without whitespace between them.
            ("rdsvc", true),
            ("odsc", false),
            ("rdc", false),
            ("!rdsvc", true),
            ("netsrv", false),
            // In a column, whose title may be abbreviated; numbers match only there.
            ("name:order", true),
            ("na:order", true),
            ("NAME:Order", true),
            ("run:9.0", true),
            ("name:9.0", false),
            ("!name:9.0", true),
            ("!run:9.0", false),
            ("name:", true),
            ("87.4", false),
            ("cpu:87.4", true),
            ("cpu%:87", true),
            // With an unknown column nothing passes, excluded or not.
            ("http://*", false),
            ("!nowhere:x", false),
            (":http://*:8080", true),
            ("!:http://", false),
        ] {
            assert_eq!(Filter::new(text).passes(&ROW), passes, "{text:?}");
        }
        assert!(Filter::new("İ").passes(&[Field::text("A", "xİy")]));
    }

    #[test]
    fn matches_are_marked_only_in_their_column() {
        for (text, marked) in [
            ("er", vec!["er", "er"]),
            ("rdsvc", vec!["r", "d", "S", "v", "c"]),
            ("name:order", vec!["Order"]),
            ("command:order", vec![]),
            ("!order", vec![]),
            ("serv ord", vec!["Serv", "Ord"]),
        ] {
            let marks = Filter::new(text).marks(ROW[0]);
            assert_eq!(marks.into_iter().map(|range| &"OrderService"[range]).collect::<Vec<_>>(), marked, "{text}");
        }
    }

    #[test]
    fn unknown_column_error_lists_known_columns() {
        let problem = Filter::new("order nowhere:X").unknown_column(&["NAME", "PID"]).unwrap_or_default();
        assert!(problem.starts_with("No column \"nowhere\" in this list. Columns: NAME, PID."), "{problem}");
        assert_eq!(Filter::new("n:a pi:1 :x:y").unknown_column(&["NAME", "PID"]), None);
    }

    #[test]
    fn literal_filter_matches_its_own_text() {
        for text in ["GCStart", "a:b", "!x", "Two words: one"] {
            assert!(Filter::new(&Filter::literal(text)).passes(&[Field::text("EVENT", text)]), "{text}");
        }
    }

    #[test]
    fn event_filter_hides_common_events_unless_named() {
        let runtime = "Microsoft-Windows-DotNETRuntime";
        for (text, provider, name, passes) in [
            ("", runtime, "GCStart", true),
            ("gc start", runtime, "GCStart", true),
            ("GC stop", runtime, "GCStart", false),
            ("dotnet !gc", runtime, "GCStart", false),
            ("dotnet !gc", runtime, "ExceptionThrown", true),
            ("event:dotnet", runtime, "GCStart", false),
            ("!", runtime, "GCStart", true),
            ("", COMMON[0], "ThreadSample", false),
            ("!gc", COMMON[0], "ThreadSample", false),
            ("sample", COMMON[0], "ThreadSample", true),
            ("rundown", COMMON[1], "MethodDCEndVerbose", true),
            ("", COMMON[2], "cswitch", false),
            ("universal", COMMON[2], "cswitch", true),
        ] {
            assert_eq!(LiveEventFilter::new(text).passes(provider, name), passes, "{text} {provider} {name}");
        }
    }

    proptest! {
        /// A filter never panics, a text matches itself, and there are marks within the text exactly if a required word matches.
        #[test]
        fn filters_never_panic_and_marks_lie_within_the_text(typed in ".{0,24}", text in ".{0,40}", word in "[a-zÀ-ž]{1,8}") {
            let field = [Field::text("NAME", &text)];
            let filter = Filter::new(&typed);
            let _ = (filter.passes(&field), filter.unknown_column(&["NAME"]));
            for range in filter.marks(field[0]) {
                prop_assert!(text.get(range).is_some_and(|piece| !piece.is_empty()));
            }
            prop_assert!(Filter::new(&Filter::literal(&text)).passes(&field));
            let filter = Filter::new(&word);
            prop_assert_eq!(filter.passes(&field), !filter.marks(field[0]).is_empty());
            if !text.contains(['!', ':']) && Filter::new(&format!("!{word}")).passes(&field) && word.chars().count() < MIN_SCATTERED_LETTERS {
                prop_assert!(!filter.passes(&field));
            }
        }
    }
}
