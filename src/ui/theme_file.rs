//! Theme files: TOML with a style for each role that differs from the base, which is a built-in theme. The built-in themes are such files, too.
//!
//! ```toml
//! base = "light"
//! accent = "#005f87"
//! selected = "on #ffffd7"
//! bad = "bold red"
//! ```

use ratatui::style::{Color, Modifier, Style};

use super::theme::Theme;

type Role = fn(&mut Theme) -> &mut Style;

/// All roles, by name in a file.
const ROLES: &[(&str, Role)] = &[
    ("text", |theme| &mut theme.text),
    ("dim", |theme| &mut theme.dim),
    ("strong", |theme| &mut theme.strong),
    ("accent", |theme| &mut theme.accent),
    ("key", |theme| &mut theme.key),
    ("border", |theme| &mut theme.border),
    ("focus", |theme| &mut theme.focus),
    ("selected", |theme| &mut theme.selected),
    ("selected-unfocused", |theme| &mut theme.selected_unfocused),
    ("match", |theme| &mut theme.matched),
    ("label", |theme| &mut theme.chip),
    ("alert", |theme| &mut theme.alert),
    ("good", |theme| &mut theme.good),
    ("warning", |theme| &mut theme.warn),
    ("bad", |theme| &mut theme.bad),
    ("recording", |theme| &mut theme.recording),
    ("graph-1", |theme| &mut theme.bytes),
    ("graph-2", |theme| &mut theme.events),
    ("part-1", |theme| &mut theme.parts[0]),
    ("part-2", |theme| &mut theme.parts[1]),
    ("part-3", |theme| &mut theme.parts[2]),
    ("part-4", |theme| &mut theme.parts[3]),
    ("part-5", |theme| &mut theme.parts[4]),
    ("part-6", |theme| &mut theme.parts[5]),
    ("flame", |theme| &mut theme.flames.own[0]),
    ("flame-odd", |theme| &mut theme.flames.own[1]),
    ("flame-library", |theme| &mut theme.flames.library[0]),
    ("flame-library-odd", |theme| &mut theme.flames.library[1]),
    ("flame-native", |theme| &mut theme.flames.native),
    ("flame-gc", |theme| &mut theme.flames.gc),
    ("flame-jit", |theme| &mut theme.flames.jit),
    ("flame-kernel", |theme| &mut theme.flames.kernel),
    ("flame-waiting", |theme| &mut theme.flames.waits),
    ("flame-match", |theme| &mut theme.flames.found),
    ("flame-selected", |theme| &mut theme.flames.chosen),
];

/// Modifiers before a color.
const MODIFIERS: &[(&str, Modifier)] = &[
    ("bold", Modifier::BOLD),
    ("dim", Modifier::DIM),
    ("italic", Modifier::ITALIC),
    ("underlined", Modifier::UNDERLINED),
    ("reversed", Modifier::REVERSED),
];

impl Theme {
    /// Parses a theme file: `base` names a built-in theme, and every other key is a role.
    ///
    /// # Errors
    /// A key is not a role, or a value is not a style: one line about it.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        Self::parse(text, Self::dark)
    }

    /// Parses a theme file that is based on `default` unless it names another base.
    pub(super) fn parse(text: &str, default: fn() -> Self) -> Result<Self, String> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count()) + 1;
            format!("line {line}: {}", error.message().lines().next().unwrap_or_default())
        })?;
        let mut theme = match table.get("base") {
            None => default(),
            Some(base) => base.as_str().and_then(Self::named).ok_or_else(|| format!("base must be one of {}", Self::NAMES.join(", ")))?,
        };
        for (key, value) in table.iter().filter(|(key, _)| *key != "base") {
            let Some((_, role)) = ROLES.iter().find(|(name, _)| name == key) else {
                let names: Vec<_> = ROLES.iter().map(|(name, _)| *name).collect();
                return Err(format!("unknown role '{key}': expected one of {}", names.join(", ")));
            };
            *role(&mut theme) = value
                .as_str()
                .and_then(style)
                .ok_or_else(|| format!("{key}: not a style, such as \"bold\", \"#5f87af\", \"110\" or \"underlined white on blue\""))?;
        }
        Ok(theme)
    }
}

/// Parses modifiers, a color, and `on` with the background color: each is optional.
fn style(text: &str) -> Option<Style> {
    let mut style = Style::new();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        style = match MODIFIERS.iter().find(|(name, _)| *name == word) {
            Some((_, modifier)) => style.add_modifier(*modifier),
            None if word == "on" => style.bg(words.next()?.parse().ok()?),
            None => style.fg(word.parse::<Color>().ok()?),
        };
    }
    Some(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn theme_file_overrides_the_named_roles() {
        let theme =
            Theme::from_toml("base = \"light\"\naccent = \"#005f87\"\nselected = 'bold underlined 16 on #ffffd7'\nborder = ''").unwrap();
        assert_eq!(theme.accent, Style::new().fg(Color::Rgb(0, 0x5f, 0x87)));
        let selected = Style::new().fg(Color::Indexed(16)).bg(Color::Rgb(255, 255, 0xd7));
        assert_eq!(theme.selected, selected.add_modifier(Modifier::BOLD | Modifier::UNDERLINED));
        assert_eq!((theme.border, theme.bad), (Style::new(), Theme::light().bad));
    }

    #[test]
    fn every_theme_error_is_one_line() {
        let table = [
            ("base = 'drak'", "base must be one of dark"),
            ("base = 1", "base must be one of dark"),
            ("acent = 'red'", "unknown role 'acent': expected one of text, dim"),
            ("accent = 'redd'", "accent: not a style"),
            ("accent = 'red on'", "accent: not a style"),
            ("accent = 7", "accent: not a style"),
            ("text = 'red'\naccent = ", "line 2: "),
            ("a = 1\na = 2", "line 2: "),
        ];
        for (text, expected) in table {
            let error = Theme::from_toml(text).unwrap_err();
            assert!(error.starts_with(expected) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
