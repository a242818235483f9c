//! Symbols: one set for Unicode terminals, one for others.
//!
//! All are one column wide in every terminal: the record symbol U+23FA is not, hence the fisheye for recordings.

use crate::app::tabs::Sign;

/// A set of symbols.
#[derive(Debug)]
pub(super) struct Glyphs {
    /// Whether only ASCII may be written.
    pub(super) ascii: bool,
    /// Corners of a frame: upper left, upper right, lower left, lower right.
    pub(super) corners: [&'static str; 4],
    pub(super) horizontal: &'static str,
    pub(super) vertical: &'static str,
    /// The thumb of a scroll bar.
    pub(super) thumb: &'static str,
    pub(super) sign: fn(Sign) -> &'static str,
    pub(super) bars: [&'static str; 8],
    /// The filled and the empty part of a meter.
    pub(super) meter: [&'static str; 2],
    /// Sorted in ascending order.
    pub(super) ascending: &'static str,
    /// Sorted in descending order.
    pub(super) descending: &'static str,
    /// Lines of a tree: a continuing branch, a row of it, its last row.
    pub(super) tree: [&'static str; 3],
    /// A collapsed row of a tree, and an expanded one.
    pub(super) fold: [&'static str; 2],
    /// Separator between two facts.
    pub(super) dot: &'static str,
    /// Value unknown.
    pub(super) none: &'static str,
    pub(super) more: &'static str,
    pub(super) mask: &'static str,
    /// The selected line of a pick list.
    pub(super) pointer: &'static str,
}

/// The symbols for Unicode terminals.
impl Default for &Glyphs {
    fn default() -> Self {
        &UNICODE
    }
}

static UNICODE: Glyphs = Glyphs {
    ascii: false,
    corners: ["╭", "╮", "╰", "╯"],
    horizontal: "─",
    vertical: "│",
    thumb: "┃",
    sign: |sign| match sign {
        Sign::Waiting => "◌",
        Sign::Recording => "◉",
        Sign::Stopping => "◐",
        Sign::Yes => "✓",
        Sign::No => "✗",
        Sign::Trouble => "!",
        Sign::Running => "●",
        Sign::Watched => "◎",
        Sign::Gone => "×",
    },
    bars: ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
    meter: ["━", "─"],
    ascending: "▴",
    descending: "▾",
    tree: ["│ ", "├─", "╰─"],
    fold: ["▸ ", "▾ "],
    dot: "·",
    none: "–",
    more: "…",
    mask: "••••••••",
    pointer: "›",
};

pub(super) static ASCII: Glyphs = Glyphs {
    ascii: true,
    corners: ["+", "+", "+", "+"],
    horizontal: "-",
    vertical: "|",
    thumb: "#",
    sign: |sign| match sign {
        Sign::Waiting => "~",
        Sign::Recording => "@",
        Sign::Stopping => "=",
        Sign::Yes => "+",
        Sign::Trouble => "!",
        Sign::Running => "*",
        Sign::Watched => "o",
        Sign::No | Sign::Gone => "x",
    },
    bars: ["_", "_", ".", ".", ":", ":", "|", "|"],
    meter: ["=", "-"],
    ascending: "^",
    descending: "v",
    tree: ["| ", "|-", "`-"],
    fold: ["+ ", "- "],
    dot: "-",
    none: "-",
    more: "~",
    mask: "********",
    pointer: ">",
};

/// Converts dn-top's own texts to ASCII.
pub(super) fn to_ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '…' => plain.push_str("..."),
            '·' | '–' | '—' => plain.push('-'),
            '●' => plain.push_str((ASCII.sign)(Sign::Running)),
            '◎' => plain.push_str((ASCII.sign)(Sign::Watched)),
            '◐' => plain.push_str((ASCII.sign)(Sign::Stopping)),
            '◉' => plain.push_str((ASCII.sign)(Sign::Recording)),
            'µ' => plain.push('u'),
            '’' => plain.push('\''),
            '≈' => plain.push('~'),
            '×' => plain.push('x'),
            '≤' => plain.push_str("<="),
            '→' => plain.push_str("->"),
            c if c.is_ascii() => plain.push(c),
            _ => plain.push('?'),
        }
    }
    plain
}
