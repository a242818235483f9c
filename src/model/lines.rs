//! The output of a program as display lines.

use super::SafeText;

/// Maximum number of lines.
const MAX_LINES: usize = 500;
/// Maximum length of a line, in characters.
const MAX_LINE_CHARS: usize = 1000;
/// Distance between tab stops, in columns.
const TAB_WIDTH: usize = 8;

/// Returns the newest lines of a program's output, oldest first: as a terminal would show them, but without colors and safe to display.
pub fn newest_lines(written: &[u8]) -> Vec<SafeText> {
    let text = String::from_utf8_lossy(written);
    let mut lines: Vec<_> = text.lines().rev().take(MAX_LINES).map(shown).collect();
    lines.reverse();
    lines
}

fn shown(line: &str) -> SafeText {
    // Text after a carriage return overwrites the line, as with a progress bar.
    let line = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
    let mut plain = String::new();
    let mut columns = 0;
    let mut chars = line.chars();
    while let Some(c) = chars.next().filter(|_| columns < MAX_LINE_CHARS) {
        match c {
            '\t' => {
                let blanks = TAB_WIDTH - columns % TAB_WIDTH;
                plain.extend(std::iter::repeat_n(' ', blanks));
                columns += blanks;
            }
            // A CSI sequence, such as a color: ESC [ parameters, and a final letter.
            '\u{1b}' if chars.as_str().starts_with('[') => {
                chars.by_ref().skip(1).find(|c| ('@'..='~').contains(c));
            }
            c => {
                plain.push(c);
                columns += 1;
            }
        }
    }
    SafeText::from(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_lines_are_shown_without_control_sequences() {
        for (written, lines) in [
            (&b""[..], &[][..]),
            (b"one\ntwo", &["one", "two"]),
            (b"one\r\n\r\n  two\r\n", &["one", "", "  two"]),
            (b"10%\r20%\r100%\n", &["100%"]),
            (b"\x1b[32minfo\x1b[39m: \x1b[1;31mhot\x1b[0m\n", &["info: hot"]),
            (b"a\tb\n\tc", &["a       b", "        c"]),
            (b"\x1b]0;owned\x07\xff\x1b", &["\u{fffd}]0;owned\u{fffd}\u{fffd}\u{fffd}"]),
            (b"cut \x1b[38;5", &["cut "]),
        ] {
            assert_eq!(newest_lines(written), lines, "{written:?}");
        }
    }

    #[test]
    fn only_the_newest_lines_are_kept_and_long_ones_cut() {
        let many: String = (0..10_000).map(|n| format!("{n}\n")).collect();
        let lines = newest_lines(many.as_bytes());
        assert_eq!((lines.len(), lines[0].as_str(), lines.last().unwrap().as_str()), (MAX_LINES, "9500", "9999"));
        let long = newest_lines("é".repeat(70_000).as_bytes());
        assert_eq!((long.len(), long[0].chars().count()), (1, MAX_LINE_CHARS));
    }
}
