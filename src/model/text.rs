//! Text from outside, made safe to show.

/// Replaces what a terminal, a path or a clipboard must never get: control and escape characters, and those that reorder or hide text.
///
/// White space of every kind becomes one space, so that the result is one line; the rest becomes U+FFFD, so that a reader sees that something was there.
pub fn sanitise(text: &str) -> String {
    text.chars().map(safe).collect()
}

/// [`sanitise`] for bytes that should be UTF-8 and may not be.
pub fn sanitise_bytes(bytes: &[u8]) -> String {
    sanitise(&String::from_utf8_lossy(bytes))
}

fn safe(c: char) -> char {
    match c {
        '\t' | '\n' | '\r' | '\u{2028}' | '\u{2029}' => ' ',
        _ if c.is_control() || is_invisible(c) => char::REPLACEMENT_CHARACTER,
        _ => c,
    }
}

/// Marks that change the direction of the text around them, characters without a width that can make two names look alike, and tags.
/// The joiners U+200C and U+200D stay: scripts and emoji need them.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_terminal_obeys_is_replaced() {
        for (raw, safe) in [
            ("plain", "plain"),
            ("Größe 🦀 日本", "Größe 🦀 日本"),
            ("a\tb\r\nc", "a b  c"),
            ("\x1b[2J\x1b]0;owned\x07", "\u{fffd}[2J\u{fffd}]0;owned\u{fffd}"),
            ("\u{9b}31m\u{7f}\0", "\u{fffd}31m\u{fffd}\u{fffd}"),
            ("exe\u{202e}fdp.txt", "exe\u{fffd}fdp.txt"),
            ("a\u{200b}b\u{2067}c\u{e0041}", "a\u{fffd}b\u{fffd}c\u{fffd}"),
            ("👩\u{200d}🚀", "👩\u{200d}🚀"),
        ] {
            assert_eq!(sanitise(raw), safe, "{raw:?}");
        }
        assert_eq!(sanitise_bytes(b"caf\xe9\x1b"), "caf\u{fffd}\u{fffd}");
    }

    proptest! {
        #[test]
        fn nothing_that_controls_is_left(text: String) {
            let safe = sanitise(&text);
            prop_assert!(!safe.chars().any(|c| c.is_control() || is_invisible(c)));
            prop_assert_eq!(sanitise(&safe), safe.clone());
            prop_assert_eq!(safe.chars().count(), text.chars().count());
        }
    }
}
