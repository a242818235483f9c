//! JSON strings.

use std::io::{self, Write};

use crate::model::is_unsafe;

use super::plain::is_plain;

/// Writes a quoted string. Unsafe characters are escaped, so that the file can be viewed in a terminal.
pub(super) fn write_string(out: &mut dyn Write, text: &str) -> io::Result<()> {
    out.write_all(b"\"")?;
    // Nearly all texts are plain, which takes less time to find out than the absence of characters to escape.
    if is_plain(text, *b"\"\\") {
        out.write_all(text.as_bytes())?;
        return out.write_all(b"\"");
    }
    let mut rest = text;
    while let Some(at) = rest.find(needs_escape) {
        out.write_all(&rest.as_bytes()[..at])?;
        let mut characters = rest[at..].chars();
        match characters.next() {
            Some(c @ ('"' | '\\')) => write!(out, "\\{c}")?,
            Some(c) => {
                let mut units = [0; 2];
                c.encode_utf16(&mut units).iter().try_for_each(|unit| write!(out, "\\u{unit:04x}"))?;
            }
            None => {}
        }
        rest = characters.as_str();
    }
    out.write_all(rest.as_bytes())?;
    out.write_all(b"\"")
}

fn needs_escape(c: char) -> bool {
    matches!(c, '"' | '\\') || is_unsafe(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_round_trip_without_control_characters() {
        for text in ["", "plain", "\"\\/", "a\u{1b}[2J\n\u{9b}\u{202e}\u{7f}b", "Größe 𝄞 \u{2028}"] {
            let mut bytes = Vec::new();
            write_string(&mut bytes, text).unwrap();
            let written = String::from_utf8(bytes).unwrap();
            assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
            assert!(!written.chars().any(|c| c.is_control() || c == '\u{202e}'), "{written:?}");
        }
    }
}
