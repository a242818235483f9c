//! Capabilities of the terminal, from the environment.

use crate::tui::interprets_sequences;

/// Capabilities of a terminal, by its name in TERM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TerminalKind {
    /// ASCII without colors: a terminal of the 1970s, or one without capabilities. It interprets color codes as other commands, such as blinking.
    Plain,
    /// ASCII and 16 colors: console fonts lack braille. Includes a Windows console that does not interpret escape sequences.
    Console,
    /// Unicode and 256 colors.
    Modern,
}

impl TerminalKind {
    /// Returns the kind for a name. Modern terminals have many names, so an unknown one is modern; Windows has no names.
    pub(super) fn of(term: Option<&str>) -> Self {
        match term {
            Some("" | "dumb") => Self::Plain,
            Some(term) if term.strip_prefix("vt").is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit())) => Self::Plain,
            Some("linux" | "ansi" | "cygwin") => Self::Console,
            Some(term) if term.ends_with("-16color") => Self::Console,
            _ => Self::Modern,
        }
    }

    /// The kind to use if colors are forced: nearly every emulator of an old terminal supports 16 colors.
    pub(super) fn with_colors(self) -> Self {
        self.max(Self::Console)
    }

    /// The kind of the terminal of this process.
    pub(super) fn of_environment() -> Self {
        let named = Self::of(term().as_deref());
        if interprets_sequences() { named } else { named.min(Self::Console) }
    }

    /// A description for a list of findings.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Plain => "no colors, ASCII",
            Self::Console => "16 colors, ASCII",
            Self::Modern => "256 colors",
        }
    }
}

fn term() -> Option<String> {
    std::env::var("TERM").ok()
}

/// Whether the terminal ignores an unsupported query instead of showing it as text.
pub(super) fn accepts_queries() -> bool {
    term().is_some_and(|term| TerminalKind::of(Some(&term)) == TerminalKind::Modern)
}

/// Whether the background is light according to COLORFGBG: two or three of the 16 colors, the background last.
pub(super) fn has_light_background() -> Option<bool> {
    let colors = std::env::var("COLORFGBG").ok()?;
    let background: u8 = colors.rsplit(';').next()?.parse().ok()?;
    Some(background == 7 || (9..16).contains(&background))
}

/// Whether the locale uses UTF-8. Without a locale the terminal is assumed to be modern.
pub(super) fn is_utf8_locale() -> bool {
    let set = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set);
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn term_variable_determines_the_terminal_kind() {
        let table = [
            (TerminalKind::Plain, &["", "dumb", "vt52", "vt100", "vt220"][..]),
            (TerminalKind::Console, &["linux", "ansi", "cygwin", "rxvt-16color"]),
            (TerminalKind::Modern, &["xterm", "xterm-256color", "screen", "tmux-256color", "foot", "linux-256color", "vte-256color"]),
        ];
        for (kind, names) in table {
            for name in names {
                assert_eq!(TerminalKind::of(Some(name)), kind, "{name}");
            }
        }
        assert_eq!(TerminalKind::of(None), TerminalKind::Modern);
        for (kind, with_colors) in [
            (TerminalKind::Plain, TerminalKind::Console),
            (TerminalKind::Console, TerminalKind::Console),
            (TerminalKind::Modern, TerminalKind::Modern),
        ] {
            assert_eq!(kind.with_colors(), with_colors);
        }
    }
}
