//! Provider arguments: `key=value;key="value with ; or ="`.

use super::problem::SpecErrorKind;

/// Validates arguments and normalizes them for the runtime: values are quoted only where necessary, without a trailing `;`.
///
/// The escapes `\"`, `\\`, `\r`, `\n` and `\t` are resolved first, as in dotnet-trace. An escaped quote is equivalent to a plain one.
///
/// # Errors
/// Returns the problem and its character offset in `text`, counted from 0.
pub(super) fn normalize(text: &str) -> Result<String, (usize, SpecErrorKind)> {
    let characters = unescape(text)?;
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut rest = characters.as_slice();
    let end = text.chars().count();
    while let Some((at, _)) = rest.first() {
        let (key, value);
        (key, rest) = read_key(rest, end)?;
        if pairs.iter().any(|(known, _)| *known == key) {
            return Err((*at, SpecErrorKind::DuplicateKey(key)));
        }
        (value, rest) = read_value(rest)?;
        pairs.push((key, value));
    }
    let quoted = |text: &str| if text.contains([';', '=']) { format!("\"{text}\"") } else { text.to_owned() };
    let pairs: Vec<_> = pairs.iter().map(|(key, value)| format!("{key}={}", quoted(value))).collect();
    Ok(pairs.join(";"))
}

/// Escapes arguments so that they can be typed in a shell or terminal.
pub(super) fn escape(arguments: &str) -> String {
    let mut out = String::with_capacity(arguments.len());
    for c in arguments.chars() {
        match ESCAPES.iter().find(|(_, plain)| *plain == c && c != '"') {
            Some((letter, _)) => out.extend(['\\', *letter]),
            None => out.push(c),
        }
    }
    out
}

/// A character with its offset in the text.
type At = (usize, char);

const ESCAPES: [(char, char); 5] = [('\\', '\\'), ('"', '"'), ('r', '\r'), ('n', '\n'), ('t', '\t')];

fn unescape(text: &str) -> Result<Vec<At>, (usize, SpecErrorKind)> {
    let mut out = Vec::new();
    let mut characters = text.chars().enumerate();
    while let Some((at, c)) = characters.next() {
        if c == '\\' {
            let letter = characters.next().map(|(_, letter)| letter);
            let escape = ESCAPES.iter().find(|(known, _)| Some(*known) == letter).ok_or((at, SpecErrorKind::Escape))?;
            out.push((at, escape.1));
        } else {
            out.push((at, c));
        }
    }
    Ok(out)
}

/// Reads up to and including the `=`.
fn read_key(rest: &[At], end: usize) -> Result<(String, &[At]), (usize, SpecErrorKind)> {
    let start = rest.first().map_or(end, |(at, _)| *at);
    let length = rest.iter().position(|(_, c)| matches!(c, '=' | ';' | '"')).ok_or((end, SpecErrorKind::NoValue))?;
    match rest[length] {
        (_, '=') if length > 0 => Ok((collect(&rest[..length]), &rest[length + 1..])),
        (_, '=') => Err((start, SpecErrorKind::NoKey)),
        (at, _) => Err((at, SpecErrorKind::NoValue)),
    }
}

/// Reads up to and including the next `;` outside quotes.
fn read_value(rest: &[At]) -> Result<(String, &[At]), (usize, SpecErrorKind)> {
    let (value, behind) = match rest.first() {
        Some((at, '"')) => {
            let length = rest[1..].iter().position(|(_, c)| *c == '"').ok_or((*at, SpecErrorKind::OpenQuote))?;
            (&rest[1..=length], &rest[length + 2..])
        }
        _ => rest.split_at(rest.iter().position(|(_, c)| matches!(c, ';' | '=' | '"')).unwrap_or(rest.len())),
    };
    match behind.first() {
        None => Ok((collect(value), behind)),
        Some((_, ';')) => Ok((collect(value), &behind[1..])),
        Some((at, _)) => Err((*at, SpecErrorKind::NeedsQuotes)),
    }
}

fn collect(characters: &[At]) -> String {
    characters.iter().map(|(_, c)| *c).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn arguments_are_normalized() {
        let table = [
            ("", ""),
            ("k=v", "k=v"),
            ("k=v;", "k=v"),
            ("k=", "k="),
            ("k=;j=2", "k=;j=2"),
            ("EventCounterIntervalSec=1;k2=v2", "EventCounterIntervalSec=1;k2=v2"),
            (r#"k="v""#, "k=v"),
            (r#"k="v;x=1";j=2"#, r#"k="v;x=1";j=2"#),
            (r#"FilterSpecs=\"A:5;B:4\""#, r#"FilterSpecs="A:5;B:4""#),
            (r"k=a\\b\r\n\t", "k=a\\b\r\n\t"),
            ("k=[AS]*", "k=[AS]*"),
        ];
        for (typed, read) in table {
            assert_eq!(normalize(typed).as_deref(), Ok(read), "{typed}");
        }
    }

    #[test]
    fn errors_have_kind_and_position() {
        let table = [
            ("k", 1, SpecErrorKind::NoValue),
            ("k;j=1", 1, SpecErrorKind::NoValue),
            ("a=1;k", 5, SpecErrorKind::NoValue),
            ("=v", 0, SpecErrorKind::NoKey),
            ("a=1;=v", 4, SpecErrorKind::NoKey),
            (";", 0, SpecErrorKind::NoValue),
            ("k=\"v", 2, SpecErrorKind::OpenQuote),
            ("k=\"v\"x", 5, SpecErrorKind::NeedsQuotes),
            ("k=a=b", 3, SpecErrorKind::NeedsQuotes),
            ("k=a\"b\"", 3, SpecErrorKind::NeedsQuotes),
            ("k=1;k=2", 4, SpecErrorKind::DuplicateKey("k".to_owned())),
            (r"k=\q", 2, SpecErrorKind::Escape),
            (r"k=\", 2, SpecErrorKind::Escape),
        ];
        for (typed, at, problem) in table {
            assert_eq!(normalize(typed), Err((at, problem)), "{typed}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_safe_and_normalizing_is_idempotent(text in r#"[a-c=;"\\rnt \r\n]{0,24}|.*"#) {
            match normalize(&text) {
                Ok(read) => prop_assert_eq!(normalize(&escape(&read)), Ok(read)),
                Err((at, _)) => prop_assert!(at <= text.chars().count()),
            }
        }
    }
}
