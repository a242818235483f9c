//! Themes: a style per role, not per place.

use ratatui::style::{Color, Modifier, Style};

use super::glyphs::{ASCII, Glyphs, UNICODE};

/// The styles and symbols of the dashboard.
#[derive(Debug, Clone)]
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
#[derive(Debug, Clone)]
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

const PLAIN: Style = Style::new();

const fn fg(color: u8) -> Style {
    Style::new().fg(Color::Indexed(color))
}

const fn on(ground: u8) -> Style {
    Style::new().bg(Color::Indexed(ground))
}

const fn ansi(color: Color) -> Style {
    Style::new().fg(color)
}

const fn bold(style: Style) -> Style {
    style.add_modifier(Modifier::BOLD)
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
        Self {
            text: PLAIN,
            dim: fg(246),
            strong: bold(fg(255)),
            accent: fg(147),
            key: bold(fg(147)),
            border: fg(239),
            focus: fg(104),
            selected: on(237),
            selected_unfocused: on(235),
            matched: bold(fg(222)),
            chip: bold(fg(255)).bg(Color::Indexed(60)),
            alert: bold(fg(16)).bg(Color::Indexed(215)),
            good: fg(114),
            warn: fg(215),
            bad: fg(210),
            recording: fg(204),
            bytes: fg(110),
            events: fg(150),
            parts: [fg(110), fg(179), fg(140), fg(150), fg(180), fg(245)],
            flames: Flames {
                own: [fg(255).bg(Color::Indexed(61)), fg(255).bg(Color::Indexed(60))],
                library: [fg(252).bg(Color::Indexed(239)), fg(252).bg(Color::Indexed(238))],
                native: fg(255).bg(Color::Indexed(24)),
                gc: fg(255).bg(Color::Indexed(90)),
                jit: fg(255).bg(Color::Indexed(22)),
                kernel: fg(255).bg(Color::Indexed(94)),
                waits: fg(247).bg(Color::Indexed(235)),
                found: fg(16).bg(Color::Indexed(179)),
                chosen: bold(fg(16)).bg(Color::Indexed(147)),
            },
            glyphs: &UNICODE,
        }
    }

    /// For terminals with a light background, which is unchanged.
    pub fn light() -> Self {
        Self {
            text: PLAIN,
            dim: fg(241),
            strong: bold(fg(16)),
            accent: fg(55),
            key: bold(fg(55)),
            border: fg(250),
            focus: fg(98),
            selected: on(254),
            selected_unfocused: on(255),
            matched: bold(fg(130)),
            chip: bold(fg(231)).bg(Color::Indexed(61)),
            alert: bold(fg(231)).bg(Color::Indexed(130)),
            good: fg(28),
            warn: fg(130),
            bad: fg(124),
            recording: fg(161),
            bytes: fg(25),
            events: fg(28),
            parts: [fg(25), fg(130), fg(91), fg(28), fg(166), fg(243)],
            flames: Flames {
                own: [fg(16).bg(Color::Indexed(147)), fg(16).bg(Color::Indexed(146))],
                library: [fg(16).bg(Color::Indexed(252)), fg(16).bg(Color::Indexed(253))],
                native: fg(16).bg(Color::Indexed(153)),
                gc: fg(16).bg(Color::Indexed(219)),
                jit: fg(16).bg(Color::Indexed(157)),
                kernel: fg(16).bg(Color::Indexed(223)),
                waits: fg(243).bg(Color::Indexed(255)),
                found: fg(16).bg(Color::Indexed(222)),
                chosen: bold(fg(231)).bg(Color::Indexed(55)),
            },
            glyphs: &UNICODE,
        }
    }

    /// For terminals with an unknown background: legible on dark and light ones.
    pub fn neutral() -> Self {
        Self {
            text: PLAIN,
            dim: fg(243),
            strong: bold(PLAIN),
            accent: fg(98),
            key: bold(fg(98)),
            border: fg(243),
            focus: fg(98),
            selected: bold(fg(231)).bg(Color::Indexed(61)),
            selected_unfocused: fg(231).bg(Color::Indexed(243)),
            matched: bold(fg(130)),
            chip: bold(fg(231)).bg(Color::Indexed(98)),
            alert: bold(fg(231)).bg(Color::Indexed(130)),
            good: fg(28),
            warn: fg(130),
            bad: fg(196),
            recording: fg(161),
            bytes: fg(31),
            events: fg(28),
            parts: [fg(31), fg(130), fg(133), fg(28), fg(66), fg(243)],
            ..Self::dark()
        }
    }

    /// The 16 colors of every terminal, on its own background, nothing dimmed.
    pub fn high_contrast() -> Self {
        Self {
            text: PLAIN,
            dim: PLAIN,
            strong: bold(PLAIN),
            accent: bold(ansi(Color::Cyan)),
            key: bold(ansi(Color::Cyan)),
            border: PLAIN,
            focus: bold(ansi(Color::Cyan)),
            selected: bold(ansi(Color::Black)).bg(Color::White),
            selected_unfocused: PLAIN.add_modifier(Modifier::UNDERLINED),
            matched: bold(PLAIN).add_modifier(Modifier::UNDERLINED),
            chip: bold(ansi(Color::Black)).bg(Color::Cyan),
            alert: bold(ansi(Color::Black)).bg(Color::Yellow),
            good: bold(ansi(Color::Green)),
            warn: bold(ansi(Color::Yellow)),
            bad: bold(ansi(Color::Red)),
            recording: bold(ansi(Color::Magenta)),
            bytes: bold(ansi(Color::Cyan)),
            events: bold(ansi(Color::Green)),
            parts: [Color::Cyan, Color::Yellow, Color::Magenta, Color::Green, Color::Red, Color::White].map(ansi),
            flames: Flames {
                own: [ansi(Color::Black).bg(Color::Green); 2],
                library: [ansi(Color::White).bg(Color::Blue); 2],
                native: ansi(Color::Black).bg(Color::Cyan),
                gc: ansi(Color::White).bg(Color::Magenta),
                jit: ansi(Color::Black).bg(Color::Gray),
                kernel: ansi(Color::White).bg(Color::Red),
                waits: PLAIN.add_modifier(Modifier::UNDERLINED),
                found: ansi(Color::Black).bg(Color::Yellow),
                chosen: bold(ansi(Color::Black)).bg(Color::White),
            },
            glyphs: &UNICODE,
        }
    }

    /// No colors: bold, dim and reverse video.
    pub fn mono() -> Self {
        const DIM: Style = Style::new().add_modifier(Modifier::DIM);
        const BOLD: Style = bold(PLAIN);
        const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);
        Self {
            text: PLAIN,
            dim: DIM,
            strong: BOLD,
            accent: BOLD,
            key: BOLD,
            border: DIM,
            focus: BOLD,
            selected: REVERSED,
            selected_unfocused: PLAIN.add_modifier(Modifier::UNDERLINED),
            matched: BOLD.add_modifier(Modifier::UNDERLINED),
            chip: REVERSED,
            alert: bold(REVERSED),
            good: PLAIN,
            warn: BOLD,
            bad: BOLD,
            recording: BOLD,
            bytes: PLAIN,
            events: PLAIN,
            parts: [PLAIN, BOLD, DIM, PLAIN, BOLD, DIM],
            flames: Flames {
                own: [REVERSED; 2],
                library: [REVERSED.add_modifier(Modifier::DIM); 2],
                native: REVERSED.add_modifier(Modifier::DIM),
                gc: REVERSED.add_modifier(Modifier::DIM),
                jit: REVERSED.add_modifier(Modifier::DIM),
                kernel: REVERSED.add_modifier(Modifier::DIM),
                waits: DIM.add_modifier(Modifier::UNDERLINED),
                found: REVERSED.add_modifier(Modifier::UNDERLINED),
                chosen: bold(REVERSED).add_modifier(Modifier::UNDERLINED),
            },
            glyphs: &UNICODE,
        }
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
