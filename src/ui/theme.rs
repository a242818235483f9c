//! Themes: a style per role, not per place.

use ratatui::style::Style;

use super::glyphs::{ASCII, Glyphs};

/// The styles and symbols of the dashboard.
#[derive(Debug, Clone, Default)]
pub struct Theme {
    pub(super) text: Style,
    pub(super) dim: Style,
    pub(super) strong: Style,
    /// The only accent: names, the focus, what can be pressed.
    pub(super) accent: Style,
    /// Keys, and the sort column: a stronger accent.
    pub(super) key: Style,
    pub(super) border: Style,
    /// The border of the focused pane.
    pub(super) focus: Style,
    /// The selected line of the focused pane.
    pub(super) selected: Style,
    /// The selected line of the other pane.
    pub(super) selected_unfocused: Style,
    pub(super) matched: Style,
    /// A small label with its own background.
    pub(super) chip: Style,
    /// A label that must not be overlooked.
    pub(super) alert: Style,
    pub(super) good: Style,
    pub(super) warn: Style,
    pub(super) bad: Style,
    pub(super) recording: Style,
    /// The first curve.
    pub(super) bytes: Style,
    pub(super) events: Style,
    /// Parts of a whole, such as the generations of a heap.
    pub(super) parts: [Style; 6],
    pub(super) flames: Flames,
    pub(super) glyphs: &'static Glyphs,
}

/// Backgrounds of the frames of a flame graph, with a legible foreground.
#[derive(Debug, Clone, Default)]
pub(super) struct Flames {
    /// Code of the program, on even and odd lines.
    pub(super) own: [Style; 2],
    /// Code of the framework, on even and odd lines.
    pub(super) library: [Style; 2],
    /// Native code, the garbage collector, the JIT compiler, the kernel.
    pub(super) native: Style,
    pub(super) gc: Style,
    pub(super) jit: Style,
    pub(super) kernel: Style,
    /// Code that is mostly waiting.
    pub(super) waits: Style,
    pub(super) found: Style,
    pub(super) chosen: Style,
}

impl Theme {
    /// The names for [`Self::named`]; the first is the default.
    pub const NAMES: [&'static str; 5] = ["dark", "light", "neutral", "high-contrast", "mono"];

    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "dark" => Self::dark(),
            "light" => Self::light(),
            "neutral" => Self::neutral(),
            "high-contrast" => Self::high_contrast(),
            "mono" => Self::mono(),
            _ => return None,
        })
    }

    /// For terminals with a dark background, which is unchanged.
    pub fn dark() -> Self {
        Self::built_in(include_str!("../../assets/themes/dark.toml"))
    }

    /// For terminals with a light background, which is unchanged.
    pub fn light() -> Self {
        Self::built_in(include_str!("../../assets/themes/light.toml"))
    }

    /// For terminals with an unknown background: legible on dark and light ones.
    pub fn neutral() -> Self {
        Self::built_in(include_str!("../../assets/themes/neutral.toml"))
    }

    /// The 16 colors of every terminal, on its own background, nothing dimmed.
    pub fn high_contrast() -> Self {
        Self::built_in(include_str!("../../assets/themes/high-contrast.toml"))
    }

    /// No colors: bold, dim and reverse video.
    pub fn mono() -> Self {
        Self::built_in(include_str!("../../assets/themes/mono.toml"))
    }

    fn built_in(text: &str) -> Self {
        Self::parse(text, Self::default).expect("a file of this program, read by its tests")
    }

    /// The same theme with ASCII symbols.
    #[must_use]
    pub fn ascii(mut self) -> Self {
        self.glyphs = &ASCII;
        self
    }
}

#[cfg(test)]
mod tests {
    use ratatui::style::Color;

    use super::*;

    /// Relative luminance (WCAG 2.1, "relative luminance") of one of the 240 colors that are the same in every terminal.
    fn luminance(color: Color) -> f64 {
        let Color::Indexed(index @ 16..) = color else { panic!("{color:?} differs between terminals") };
        let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
        let [red, green, blue] = match index {
            232.. => [8 + 10 * (index - 232); 3],
            _ => [(index - 16) / 36, (index - 16) / 6 % 6, (index - 16) % 6].map(level),
        };
        let linear = |value: u8| {
            let share = f64::from(value) / 255.0;
            if share <= 0.03928 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }

    fn contrast(one: f64, other: f64) -> f64 {
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn theme_styles_have_readable_contrast() {
        const MIN_CONTRAST: f64 = 3.5;
        let (black, white) = (0.0, 1.0);
        for (name, theme, grounds) in
            [("dark", Theme::dark(), &[black][..]), ("light", Theme::light(), &[white]), ("neutral", Theme::neutral(), &[black, white])]
        {
            let Theme { dim, strong, accent, key, matched, good, warn, bad, recording, bytes, events, parts, .. } = theme;
            for style in [dim, strong, accent, key, matched, good, warn, bad, recording, bytes, events].into_iter().chain(parts) {
                for ground in style.fg.map_or(&[][..], |_| grounds) {
                    let found = contrast(luminance(style.fg.unwrap()), *ground);
                    assert!(found >= MIN_CONTRAST, "{name}: {style:?} has {found:.1} on {ground}");
                }
            }
            // Descriptions in the selected row are dim, too.
            for ground in [theme.selected, theme.selected_unfocused].into_iter().filter(|ground| ground.fg.is_none()) {
                let found = contrast(luminance(dim.fg.unwrap()), luminance(ground.bg.unwrap()));
                assert!(found >= MIN_CONTRAST, "{name}: dim text has {found:.1} in the selected row");
            }
            let Flames { own, library, native, gc, jit, kernel, found, chosen, .. } = theme.flames;
            let on_own_ground = [theme.chip, theme.alert, native, gc, jit, kernel, found, chosen];
            for style in on_own_ground.into_iter().chain(own).chain(library) {
                let found = contrast(luminance(style.fg.unwrap()), luminance(style.bg.unwrap()));
                assert!(found >= MIN_CONTRAST, "{name}: {style:?} has {found:.1}");
            }
        }
        let Theme { selected, selected_unfocused, .. } = Theme::neutral();
        assert!(
            [selected, selected_unfocused].iter().all(|style| style.fg.is_some()),
            "the terminal's own text may be of the same color as a ground"
        );
    }
}
