//! What can be wrong with a provider specification, in words.

use thiserror::Error;

use super::known::known_provider;
use crate::ipc::Invalid;

/// A specification that cannot be read: where, and what was expected there.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{}', character {}: {problem}", .spec.escape_debug(), .at + 1)]
pub struct SpecError {
    /// The whole text.
    pub spec: String,
    /// The character that it fails at, counted from 0.
    pub at: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a specification.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// Nothing where a name belongs.
    #[error("expected a provider's name, as in NAME:KEYWORDS:LEVEL:ARGUMENTS")]
    NoName,
    /// A comma before the arguments.
    #[error("expected one provider: give --provider once for each instead of a list with commas")]
    Comma,
    /// Neither a number nor a name that the provider has.
    #[error("expected keywords: {}", expected_keywords(.0))]
    Keywords(String),
    /// No level.
    #[error("expected a level: critical, error, warning, informational, verbose, logalways, or 0 to 5")]
    Level,
    /// An argument without `=`.
    #[error("expected an argument of the form key=value")]
    NoValue,
    /// An argument without a key.
    #[error("expected a key before the '='")]
    NoKey,
    /// A quote that does not end.
    #[error("this quote is not closed")]
    OpenQuote,
    /// Special characters in a value without quotes, or something behind the quotes.
    #[error("expected ';' or the end here: a value with '=', ';' or quotes in it needs quotes around all of it")]
    NeedsQuotes,
    /// A key twice.
    #[error("the argument '{}' is there twice", .0.escape_debug())]
    KeyTwice(String),
    /// A backslash that means nothing.
    #[error(r#"expected one of \\ \" \r \n \t"#)]
    Escape,
    /// What no runtime takes.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

/// What would have been keywords of that provider.
fn expected_keywords(provider: &str) -> String {
    const HEX: &str = "hexadecimal digits such as 1f or 0x1f";
    match known_provider(provider.trim()).map(|known| &known.keywords).filter(|keywords| !keywords.is_empty()) {
        None => HEX.to_owned(),
        Some(keywords) => {
            let names: Vec<_> = keywords.iter().map(|keyword| keyword.name.as_str()).collect();
            format!("{HEX}, or names joined with '+': {}", names.join(", "))
        }
    }
}
