//! Completions for form fields: profiles, providers, their keywords and events, with descriptions.

use tui_input::Input;

use crate::analysis::name_rank;
use crate::clr::{events, known_provider, known_providers, parse_level, profiles};
use crate::ipc::Level;
use crate::sorting::CompactSort;

use super::{Form, Purpose, launch, trace};

/// Completions for the word being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Suggestions {
    pub(super) kind: Kind,
    /// Byte offset of the word in the text.
    pub(super) start: usize,
    /// The words, each with a description.
    pub(super) items: Vec<(String, String)>,
}

/// The kind of text expected next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Profiles,
    Provider,
    Keywords,
    Level,
    /// A complete provider specification.
    Complete,
    Event,
    Ids,
}

/// Returns the byte offset after the last separator, or 0 if there is none.
fn after_last(text: &str, separates: impl Fn(char) -> bool) -> usize {
    text.char_indices().rev().find(|(_, c)| separates(*c)).map_or(0, |(at, c)| at + c.len_utf8())
}

impl Form {
    /// Returns the completions for the field of a question, and the kind of text expected at the cursor; `None` for a field without completions.
    pub(super) fn suggestions(&self, at: usize) -> Option<Suggestions> {
        let before = before_cursor(self.text(at)?);
        match (&self.purpose, at) {
            (Purpose::Trace(_), trace::PROFILES) | (Purpose::Launch, launch::PROFILES) => {
                let start = after_last(before, |c| c.is_whitespace() || c == ',');
                let items = profiles().iter().map(|profile| (profile.name.as_str(), profile.about.as_str()));
                Some(pick(Kind::Profiles, start, &before[start..], items))
            }
            (Purpose::Trace(_), trace::PROVIDERS) => Some(provider(before)),
            (Purpose::Trace(_), trace::EVENT_IDS) => Some(event(before, Kind::Ids)),
            (Purpose::Trace(_), trace::STOP_ON) => Some(event(before, Kind::Event)),
            _ => None,
        }
    }

    /// Inserts the first completion if the cursor is at the end of the text. Returns whether the text changed.
    pub(in crate::app) fn complete(&mut self) -> bool {
        let super::Field::Question(at) = self.focus else { return false };
        let Some(Suggestions { start, items, .. }) = self.suggestions(at) else { return false };
        let Some((word, _)) = items.into_iter().next() else { return false };
        let Some(input) = self.input() else { return false };
        if input.cursor() < input.value().chars().count() || input.value()[start..] == word {
            return false;
        }
        *input = Input::new(format!("{}{word}", &input.value()[..start]));
        self.reset_confirmation();
        true
    }
}

fn before_cursor(input: &Input) -> &str {
    let value = input.value();
    value.char_indices().nth(input.cursor()).map_or(value, |(at, _)| &value[..at])
}

/// Picks the matching items: exact matches first, then prefix matches, then substring matches.
fn pick<'a>(kind: Kind, start: usize, word: &str, items: impl Iterator<Item = (&'a str, &'a str)>) -> Suggestions {
    let letters = word.to_lowercase();
    let mut found: Vec<_> = items.filter(|(name, _)| name.to_lowercase().contains(&letters)).collect();
    found.compact_sort_by_key(|(name, _)| name_rank(word, name));
    Suggestions { kind, start, items: found.into_iter().map(|(name, about)| (name.to_owned(), about.to_owned())).collect() }
}

fn providers(start: usize, word: &str) -> Suggestions {
    pick(Kind::Provider, start, word, known_providers().iter().map(|known| (known.name.as_str(), known.about.as_str())))
}

/// Completes within `NAME:KEYWORD+KEYWORD:LEVEL`.
fn provider(before: &str) -> Suggestions {
    let start = after_last(before, char::is_whitespace);
    let spec = &before[start..];
    let mut parts = spec.split(':');
    let name = parts.next().unwrap_or_default();
    match (parts.next(), parts.next(), parts.next()) {
        (None, ..) => providers(start, name),
        (Some(keywords), None, _) => {
            let word = keywords.rsplit('+').next().unwrap_or_default();
            let known = known_provider(name).map(|known| known.keywords.as_slice()).unwrap_or_default();
            pick(
                Kind::Keywords,
                before.len() - word.len(),
                word,
                known.iter().map(|keyword| (keyword.name.as_str(), keyword.about.as_str())),
            )
        }
        (_, Some(level), None) if parse_level(level).is_none() => {
            pick(Kind::Level, before.len() - level.len(), level, Level::ALL.iter().rev().map(|level| (level.name(), about(*level))))
        }
        // The arguments that follow a level have no completions; the field's help gives their syntax.
        _ => Suggestions { kind: Kind::Complete, start, items: Vec::new() },
    }
}

fn about(level: Level) -> &'static str {
    match level {
        Level::LogAlways => "everything, whatever its level",
        Level::Critical => "the process is about to end",
        Level::Error => "failures",
        Level::Warning => "and warnings",
        Level::Informational => "and informational events",
        Level::Verbose => "and the details",
    }
}

/// Completes within `PROVIDER/EVENT` or `PROVIDER/ID,ID`, depending on the kind.
fn event(before: &str, kind: Kind) -> Suggestions {
    let start = after_last(before, char::is_whitespace);
    let Some((name, event)) = before[start..].split_once('/') else { return providers(start, &before[start..]) };
    if event.contains(':') {
        return Suggestions { kind, start, items: Vec::new() };
    }
    let word = if kind == Kind::Ids { event.rsplit(['^', ',']).next().unwrap_or_default() } else { event };
    let start = before.len() - word.len();
    let known = events::names(known_provider(name).map_or(name, |known| known.name.as_str()));
    if kind == Kind::Event {
        let ids: Vec<_> = known.map(|(id, name)| (name, format!("event {id}"))).collect();
        return pick(kind, start, word, ids.iter().map(|(name, id)| (*name, id.as_str())));
    }
    let word = word.to_lowercase();
    let found = known.filter(|(id, name)| id.to_string().starts_with(&word) || name.to_lowercase().contains(&word));
    Suggestions { kind, start, items: found.map(|(id, name)| (id.to_string(), name.to_owned())).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_word_starts_after_any_unicode_whitespace() {
        for (text, word) in [("a\u{2004}bc", "bc"), ("a bc", "bc"), ("bc", "bc"), ("a\u{3000}", "")] {
            assert_eq!(&text[after_last(text, char::is_whitespace)..], word, "{text:?}");
        }
    }

    #[test]
    fn partial_input_gets_completion_suggestions() {
        let first = |found: Suggestions| found.items.into_iter().next().map(|(name, _)| name);
        let table = [
            ("Microsoft-Windows-DotNETRun", Some("Microsoft-Windows-DotNETRuntime")),
            ("tpl", Some("System.Threading.Tasks.TplEventSource")),
            ("a:1 Microsoft-Windows-DotNETRuntime:gc+exc", Some("exception")),
            ("Microsoft-Windows-DotNETRuntime:gc:verb", Some("verbose")),
            ("Unheard-Of:gc", None),
            ("P:1:4:key=", None),
        ];
        for (text, expected) in table {
            assert_eq!(first(provider(text)).as_deref(), expected, "{text}");
        }
        assert_eq!(first(event("Microsoft-Windows-DotNETRuntime/exceptionth", Kind::Event)).as_deref(), Some("ExceptionThrown"));
        assert_eq!(first(event("Microsoft-Windows-DotNETRuntime/^1,exceptionthrown", Kind::Ids)).as_deref(), Some("80"));
        assert_eq!(first(event("Microsoft-Windows-DotNETRuntime/80:t", Kind::Event)), None);
    }
}
