//! The signs: one set for Unicode terminals, one for the others.
//!
//! All are one column wide in every terminal: the record sign U+23FA is not, hence the fisheye for recordings.

/// A set of signs.
#[derive(Debug)]
pub(super) struct Glyphs {
    /// Whether nothing but ASCII may be written.
    pub(super) ascii: bool,
    /// Corners of a frame: upper left, upper right, lower left, lower right.
    pub(super) corners: [&'static str; 4],
    pub(super) horizontal: &'static str,
    pub(super) vertical: &'static str,
    /// Where a list is scrolled to.
    pub(super) thumb: &'static str,
    pub(super) running: &'static str,
    pub(super) watched: &'static str,
    /// A process waits at startup.
    pub(super) suspended: &'static str,
    pub(super) recording: &'static str,
    pub(super) trouble: &'static str,
    pub(super) gone: &'static str,
    /// Something is under way.
    pub(super) waiting: &'static str,
    pub(super) yes: &'static str,
    pub(super) no: &'static str,
    pub(super) bars: [&'static str; 8],
    /// A part of a whole, and what is left of it.
    pub(super) meter: [&'static str; 2],
    /// Sorted upwards.
    pub(super) ascending: &'static str,
    /// Sorted downwards.
    pub(super) descending: &'static str,
    /// Lines of a tree: a branch goes on, a row of it, its last row.
    pub(super) tree: [&'static str; 3],
    /// A row of a tree that is collapsed, and one that is expanded.
    pub(super) fold: [&'static str; 2],
    /// Between two facts.
    pub(super) dot: &'static str,
    /// Nothing known.
    pub(super) none: &'static str,
    pub(super) more: &'static str,
    pub(super) mask: &'static str,
    /// The selected line of a list to choose from.
    pub(super) pointer: &'static str,
}

pub(super) static UNICODE: Glyphs = Glyphs {
    ascii: false,
    corners: ["╭", "╮", "╰", "╯"],
    horizontal: "─",
    vertical: "│",
    thumb: "┃",
    running: "●",
    watched: "◎",
    suspended: "◐",
    recording: "◉",
    trouble: "!",
    gone: "×",
    waiting: "◌",
    yes: "✓",
    no: "✗",
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
    running: "*",
    watched: "o",
    suspended: "=",
    recording: "@",
    trouble: "!",
    gone: "x",
    waiting: "~",
    yes: "+",
    no: "x",
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

/// Our own words in ASCII.
pub(super) fn to_ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '…' => plain.push_str("..."),
            '·' | '–' | '—' => plain.push('-'),
            '●' => plain.push_str(ASCII.running),
            '◎' => plain.push_str(ASCII.watched),
            '◐' => plain.push_str(ASCII.suspended),
            '◉' => plain.push_str(ASCII.recording),
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
