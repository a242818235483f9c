//! Sanitizing of untrusted text.

use std::borrow::Cow;
use std::fmt::Write;

use unicode_width::UnicodeWidthChar;

/// Maximum number of characters that share a cell with the preceding one: combining marks, variation selectors, joiners, skin tones. Emoji have at
/// most six (three joiners, a variation selector and two skin tones in "kiss"), pointed Hebrew and Arabic four. Thousands would be drawn over
/// adjacent lines.
const MAX_MARKS: usize = 6;
const ZERO_WIDTH_JOINER: char = '\u{200d}';

/// Replaces characters that are unsafe for a terminal, a path or the clipboard: control and escape characters, and those that reorder or hide text.
///
/// Whitespace of any kind becomes one space, so that the result is one line; other unsafe characters become U+FFFD, so that they remain noticeable.
/// Marks on a character after the sixth are removed.
pub fn sanitize(text: &str) -> String {
    safe(text).into_owned()
}

/// Like [`sanitize`], but borrows the text if there is nothing to replace.
pub fn safe(text: &str) -> Cow<'_, str> {
    let is_safe = |c: char| matches!(c, ' '..='~') || !is_unsafe(c) && !is_mark(c);
    if text.chars().all(is_safe) { Cow::Borrowed(text) } else { Cow::Owned(safe_chars(text).collect()) }
}

/// Returns the characters of a text after sanitizing.
pub(super) fn safe_chars(text: &str) -> impl Iterator<Item = char> {
    let (mut marks, mut joined) = (0, false);
    let fits = move |c: &char| {
        if is_mark(*c) {
            marks += 1;
            let fits = marks <= MAX_MARKS;
            if fits {
                joined = *c == ZERO_WIDTH_JOINER;
            }
            return fits;
        }
        // A joined emoji shares the cell as well.
        if !std::mem::take(&mut joined) {
            marks = 0;
        }
        true
    };
    text.chars().map(safe_char).filter(fits)
}

/// Whether a character shares the cell of the preceding one. The skin tone of an emoji does, although it has a width of its own.
fn is_mark(c: char) -> bool {
    c.width() == Some(0) || matches!(c, '\u{1f3fb}'..='\u{1f3ff}')
}

/// Whether a terminal, a browser or an editor may interpret a character, or show nothing of it.
pub fn is_unsafe(c: char) -> bool {
    !matches!(c, ' '..='~') && safe_char(c) != c
}

fn safe_char(c: char) -> char {
    match c {
        '\t' | '\n' | '\r' | '\u{2028}' | '\u{2029}' => ' ',
        _ if c.is_control() || is_invisible(c) => char::REPLACEMENT_CHARACTER,
        _ => c,
    }
}

/// Converts text to a field of comma-separated values: sanitized, and quoted if necessary. A field that a spreadsheet would evaluate begins with an
/// apostrophe.
pub fn csv_field(text: &str) -> String {
    let text = safe(text);
    let mark = if is_formula(&text) { "'" } else { "" };
    if text.contains([',', '"']) { format!("\"{mark}{}\"", text.replace('"', "\"\"")) } else { format!("{mark}{text}") }
}

/// Whether a spreadsheet evaluates a field of comma-separated values.
pub fn is_formula(field: &str) -> bool {
    field.trim_start().starts_with(['=', '+', '-', '@'])
}

/// Escapes the characters of a JSON document that a terminal, a browser or an editor may interpret, although JSON permits them unescaped. All of
/// them are within strings, since the rest of a document is ASCII.
pub fn escape_json(document: &str) -> Cow<'_, str> {
    let needs_escape = |c: char| c != '\n' && is_unsafe(c);
    if !document.contains(needs_escape) {
        return Cow::Borrowed(document);
    }
    let mut escaped = String::with_capacity(document.len() + 64);
    for c in document.chars() {
        if needs_escape(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Whether a character is a mark that changes the direction of the surrounding text, a zero-width or blank letter that can make two names look alike,
/// or a tag. The joiners U+200C and U+200D are allowed: scripts and emoji need them.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn control_characters_are_replaced() {
        for (raw, safe) in [
            ("plain", "plain"),
            ("Größe 🦀 日本", "Größe 🦀 日本"),
            ("a\tb\r\nc", "a b  c"),
            ("\x1b[2J\x1b]0;owned\x07", "\u{fffd}[2J\u{fffd}]0;owned\u{fffd}"),
            ("\u{9b}31m\u{7f}\0", "\u{fffd}31m\u{fffd}\u{fffd}"),
            ("exe\u{202e}fdp.txt", "exe\u{fffd}fdp.txt"),
            ("a\u{200b}b\u{2067}c\u{e0041}", "a\u{fffd}b\u{fffd}c\u{fffd}"),
            // Letters that are blank.
            ("Shop\u{3164}\u{115f}\u{ffa0}\u{34f}", "Shop\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            ("👩\u{200d}🚀", "👩\u{200d}🚀"),
        ] {
            assert_eq!(sanitize(raw), safe, "{raw:?}");
        }
    }

    #[test]
    fn fields_of_comma_separated_values_are_no_formulas() {
        for (raw, field) in [
            ("a b", "a b"),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("a=b\x1b[m\n", "a=b\u{fffd}[m "),
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("\t=HYPERLINK(\"a\",1)", "\"' =HYPERLINK(\"\"a\"\",1)\""),
            ("+1", "'+1"),
            ("@SUM(1)", "'@SUM(1)"),
            ("-", "'-"),
        ] {
            assert_eq!(csv_field(raw), field);
        }
    }

    #[test]
    fn combining_marks_per_character_are_limited() {
        let stacked = |marks: usize| format!("a{}b", "\u{301}".repeat(marks));
        let family = |members: usize| vec!["👩"; members].join("\u{200d}");
        for (raw, safe) in [
            // Real scripts are unchanged: Vietnamese, pointed Hebrew, Thai, Hindi, Korean, the longest emoji.
            ("Việt e\u{302}\u{323}".to_owned(), "Việt e\u{302}\u{323}".to_owned()),
            ("ש\u{5c1}\u{5bc}\u{5b8}\u{596}".to_owned(), "ש\u{5c1}\u{5bc}\u{5b8}\u{596}".to_owned()),
            ("ที่นี่ क्षत्रिय".to_owned(), "ที่นี่ क्षत्रिय".to_owned()),
            ("\u{1112}\u{1161}\u{11ab}".to_owned(), "\u{1112}\u{1161}\u{11ab}".to_owned()),
            ("👩🏻\u{200d}❤\u{fe0f}\u{200d}💋\u{200d}👩🏾".to_owned(), "👩🏻\u{200d}❤\u{fe0f}\u{200d}💋\u{200d}👩🏾".to_owned()),
            (stacked(6), stacked(6)),
            (stacked(7), stacked(6)),
            (stacked(10_000), stacked(6)),
            (stacked(10_000).repeat(2), stacked(6).repeat(2)),
            ("\u{301}".repeat(10_000), "\u{301}".repeat(6)),
            ("👩🏻🏻🏻🏻🏻🏻🏻".to_owned(), "👩🏻🏻🏻🏻🏻🏻".to_owned()),
            // Families are limited, too, with or without skin tones.
            (family(4), family(4)),
            (family(10_500), family(7).repeat(1500)),
        ] {
            assert_eq!(sanitize(&raw), safe, "{:?}", raw.chars().take(40).collect::<String>());
        }
    }

    #[test]
    fn bytes_per_cell_are_bounded() {
        for piece in [
            "\u{301}",
            "\u{200d}",
            "👩\u{200d}",
            "👩🏻\u{200d}",
            "👩\u{200d}\u{200d}\u{200d}\u{200d}\u{200d}",
            "\u{fe0f}\u{20e3}",
            "\u{e0101}",
            "\u{1161}",
            "🏻",
        ] {
            for first in ["", "a", "👩", "\u{1112}"] {
                let safe = sanitize(&format!("{first}{}", piece.repeat(10_000)));
                let mut buffer = Buffer::empty(Rect::new(0, 0, 40, 1));
                buffer.set_string(0, 0, &safe, Style::new());
                let largest = buffer.content.iter().map(|cell| cell.symbol().len()).max();
                assert!(largest <= Some(64), "{largest:?} bytes in a cell for {first:?} and many {piece:?}");
            }
        }
    }

    #[test]
    fn escaped_json_has_the_same_text_without_control_characters() {
        let hostile: String = (0..=0x10_ffff).filter_map(char::from_u32).filter(|c| c.is_control() || is_invisible(*c)).collect();
        let text = format!("Größe 🦀 👩\u{200d}🚀 \" \\ \u{2028}\u{2029}{hostile}");
        for document in [serde_json::to_string(&[&text]).unwrap(), serde_json::to_string_pretty(&[&text]).unwrap()] {
            let escaped = escape_json(&document);
            assert_eq!(serde_json::from_str::<[String; 1]>(&escaped).unwrap()[0], text);
            assert!(escaped.chars().all(|c| c == '\n' || safe_char(c) == c), "{escaped}");
            assert!(
                escaped.contains("Größe 🦀 👩\u{200d}🚀")
                    && escaped.contains("\\u009b")
                    && escaped.contains("\\u202e")
                    && escaped.contains("\\udb40\\udc41")
            );
        }
    }

    proptest! {
        #[test]
        fn sanitized_text_has_no_control_characters(text: String) {
            let safe = sanitize(&text);
            prop_assert!(!safe.chars().any(|c| c.is_control() || is_invisible(c)));
            prop_assert_eq!(sanitize(&safe), safe.clone());
            prop_assert!(safe.chars().count() <= text.chars().count());
        }

        #[test]
        fn marks_and_joiners_in_any_order_are_bounded(pieces in prop::collection::vec(0_usize..8, 0..300)) {
            let pieces = pieces.into_iter().map(|at| ["a", "\u{301}", "\u{200d}", "👩", "🏻", "\u{fe0f}", "\u{200c}", "\u{1161}"][at]);
            let safe = sanitize(&pieces.collect::<String>());
            prop_assert_eq!(sanitize(&safe), safe.clone());
            let mut buffer = Buffer::empty(Rect::new(0, 0, 1000, 1));
            buffer.set_string(0, 0, &safe, Style::new());
            prop_assert!(buffer.content.iter().all(|cell| cell.symbol().len() <= 64));
        }
    }
}
