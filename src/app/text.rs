//! Text measurement and wrapping, for the view and mouse handling.

use ratatui::style::Style;
use ratatui::text::Span;

/// Returns the width of a text in columns.
pub fn width(text: &str) -> u16 {
    let columns = if text.is_ascii() { text.len() } else { Span::raw(text).width() };
    u16::try_from(columns).unwrap_or(u16::MAX)
}

/// Wraps text at word boundaries into lines of at most `room` columns. A word that is too long is split as well, between the parts of a path or
/// name if it has any. Columns are counted by [`width`], as for drawing and clicks; `textwrap` counts differently.
pub fn wrap(text: &str, room: u16) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut used) = (String::new(), 0);
    if room == 0 {
        return lines;
    }
    for word in text.split_whitespace() {
        let columns = width(word);
        if used > 0 && columns.saturating_add(used).saturating_add(1) > room {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        if columns <= room - used {
            line.push_str(word);
            used += columns;
            continue;
        }
        for grapheme in Span::raw(word).styled_graphemes(Style::new()) {
            let columns = width(grapheme.symbol);
            if columns.saturating_add(used) > room && used > 0 {
                let rest = line.split_off(if grapheme.symbol == "." { line.len() } else { part_end(&line) });
                used = width(&rest);
                lines.push(std::mem::replace(&mut line, rest));
            }
            line.push_str(grapheme.symbol);
            used = used.saturating_add(columns);
        }
    }
    if used > 0 {
        lines.push(line);
    }
    lines
}

/// Returns where to split the start of a long word: between the parts of a path or name, unless that leaves little of it.
fn part_end(text: &str) -> usize {
    let is_end = |at: &usize| text[..*at].ends_with('/') || text[*at..].starts_with('.');
    let ends = (text.len() / 3 + 1..=text.len()).rev();
    ends.filter(|at| text.is_char_boundary(*at)).find(is_end).unwrap_or(text.len())
}

/// Breaks a line wherever it is full, keeping its spaces.
pub(super) fn fold(text: &str, room: u16) -> Vec<String> {
    let mut rows = vec![String::new()];
    let mut used = 0;
    for grapheme in Span::raw(text).styled_graphemes(Style::new()) {
        let columns = width(grapheme.symbol);
        if columns.saturating_add(used) > room && used > 0 {
            rows.push(String::new());
            used = 0;
        }
        if let Some(row) = rows.last_mut() {
            row.push_str(grapheme.symbol);
        }
        used = used.saturating_add(columns);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_between_words() {
        assert_eq!(wrap("the quick brown fox", 9), ["the quick", "brown fox"]);
        assert_eq!(wrap("/a/very/long/path ok", 8), ["/a/very/", "long/", "path ok"]);
        assert_eq!(wrap("Shop.Orders.Invoice", 8), ["Shop", ".Orders", ".Invoice"]);
        assert_eq!(wrap("a.Invoices.B", 10), ["a.Invoices", ".B"]);
        assert_eq!(wrap("日本語", 4), ["日本", "語"]);
        assert_eq!(wrap("", 4), Vec::<String>::new());
        assert_eq!(wrap("a", 0), Vec::<String>::new());
    }

    #[test]
    fn extremely_wide_text_is_wrapped_and_folded() {
        // Wider than a `u16` can express: as many characters, or as a single one (Korean leading consonants).
        for text in ["日".repeat(40_000), "\u{1100}".repeat(40_000)] {
            let text = format!("a {text} b");
            assert!(wrap(&text, 80).len() > 1);
            assert!(fold(&text, 80).len() > 1);
        }
    }

    #[test]
    fn lines_are_folded_at_the_width() {
        assert_eq!(fold("  at A.B()", 4), ["  at", " A.B", "()"]);
        assert_eq!(fold("日本語", 5), ["日本", "語"]);
        assert_eq!(fold("", 4), [""]);
        assert_eq!(fold("ab", 0), ["a", "b"]);
    }
}
