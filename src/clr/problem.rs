//! Errors in provider specifications, with their messages.

use thiserror::Error;

use super::providers::known_provider;
use crate::ipc::InvalidRequest;

/// An invalid specification: position, and what was expected there.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{}', character {}: {problem}", .spec.escape_debug(), .at + 1)]
pub struct SpecError {
    /// The whole specification.
    pub spec: String,
    /// Character offset of the error, counted from 0.
    pub at: usize,
    /// The error.
    pub problem: SpecErrorKind,
}

/// An error in a specification.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SpecErrorKind {
    /// The provider name is missing.
    #[error("expected a provider name, as in NAME:KEYWORDS:LEVEL:ARGUMENTS")]
    NoName,
    /// A comma before the arguments.
    #[error("expected one provider: repeat --provider instead of separating with commas")]
    Comma,
    /// Neither a number nor the name of one of the provider's keywords.
    #[error("expected keywords: {}", expected_keywords(.0))]
    Keywords(String),
    /// Not a level.
    #[error("expected a level: critical, error, warning, informational, verbose, logalways, or 0 to 5")]
    Level,
    /// An argument without `=`.
    #[error("expected an argument of the form key=value")]
    NoValue,
    /// An argument without a key.
    #[error("expected a key before the '='")]
    NoKey,
    /// An unterminated quote.
    #[error("unclosed quote")]
    OpenQuote,
    /// Special characters in an unquoted value, or text after the closing quote.
    #[error("expected ';' or the end: a value that contains '=', ';' or quotes must be quoted as a whole")]
    NeedsQuotes,
    /// A duplicate key.
    #[error("duplicate argument '{}'", .0.escape_debug())]
    DuplicateKey(String),
    /// An unknown escape sequence.
    #[error(r#"expected one of \\ \" \r \n \t"#)]
    Escape,
    /// A value that no runtime accepts.
    #[error(transparent)]
    InvalidRequest(#[from] InvalidRequest),
}

/// Describes the valid keywords of a provider.
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
