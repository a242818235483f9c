//! Screenshots of a terminal as SVG: text in the repository, and sharp at every size.
//!
//! Letters use the reader's monospace font, stretched to their cells. Characters that join from cell to cell (lines, blocks, braille) are
//! drawn, since fonts do not agree on them.

use std::fmt::Write as _;

use vt100::{Cell, Color};

/// Width and height of a cell, and the margin around the screen, in pixels.
const WIDTH: f32 = 9.0;
const HEIGHT: f32 = 19.0;
const MARGIN: f32 = 14.0;
/// Distance of the baseline from the top of the cell.
const BASELINE: f32 = 14.5;

const FOREGROUND: [u8; 3] = [0xcc, 0xcc, 0xcc];
const BACKGROUND: [u8; 3] = [0x0c, 0x0c, 0x0c];
/// The sixteen configurable terminal colors.
const PALETTE: [[u8; 3]; 16] = [
    [0x0c, 0x0c, 0x0c],
    [0xcd, 0x31, 0x31],
    [0x0d, 0xbc, 0x79],
    [0xd7, 0xba, 0x3d],
    [0x3b, 0x8e, 0xea],
    [0xbc, 0x3f, 0xbc],
    [0x11, 0xa8, 0xcd],
    [0xcc, 0xcc, 0xcc],
    [0x76, 0x76, 0x76],
    [0xf1, 0x4c, 0x4c],
    [0x23, 0xd1, 0x8b],
    [0xf5, 0xd9, 0x67],
    [0x6c, 0xb0, 0xf5],
    [0xd6, 0x70, 0xd6],
    [0x29, 0xb8, 0xdb],
    [0xf2, 0xf2, 0xf2],
];

/// Returns the screen as an SVG document.
pub(crate) fn svg(screen: &vt100::Screen) -> String {
    let (rows, columns) = screen.size();
    let (width, height) = (f32::from(columns.get()) * WIDTH + 2.0 * MARGIN, f32::from(rows.get()) * HEIGHT + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"15\">\n\
         <style>.d{{stroke-width:3;stroke-linecap:round}}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{}\"/>\n",
        hex(BACKGROUND)
    );
    for row in 0..rows.get() {
        let mut column = 0;
        while column < columns.get() {
            column += run(&mut svg, screen, row, column);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Style of a cell.
#[derive(PartialEq)]
struct Style {
    ink: [u8; 3],
    paper: [u8; 3],
    attributes: String,
}

impl Style {
    fn of(cell: &Cell) -> Self {
        let (mut ink, mut paper) = (rgb(cell.fgcolor(), FOREGROUND), rgb(cell.bgcolor(), BACKGROUND));
        if cell.inverse() {
            (ink, paper) = (paper, ink);
        }
        if cell.dim() {
            ink = std::array::from_fn(|part| ((u16::from(ink[part]) * 3 + u16::from(paper[part]) * 2) / 5) as u8);
        }
        let mut attributes = String::new();
        let styles = [
            (cell.bold(), " font-weight=\"bold\""),
            (cell.italic(), " font-style=\"italic\""),
            (cell.underline(), " text-decoration=\"underline\""),
        ];
        styles.iter().filter(|(on, _)| *on).for_each(|(_, attribute)| attributes.push_str(attribute));
        Self { ink, paper, attributes }
    }
}

/// Draws the run of cells in the same style that starts here, and returns its length.
fn run(svg: &mut String, screen: &vt100::Screen, row: u16, start: u16) -> u16 {
    let cell = |column: u16| screen.cell(row, column);
    let Some(first) = cell(start) else { return 1 };
    let style = Style::of(first);
    let alike = (start..).map_while(cell).take_while(|next| Style::of(next) == style);
    let texts: Vec<&str> =
        alike.map(|cell| if cell.has_contents() || cell.is_wide_continuation() { cell.contents() } else { " " }).collect();
    let (x, y) = (MARGIN + f32::from(start) * WIDTH, MARGIN + f32::from(row) * HEIGHT);
    if style.paper != BACKGROUND {
        rectangle(svg, [x, y, texts.len() as f32 * WIDTH, HEIGHT], style.paper, 1.0);
    }
    let mut x = x;
    let plain = |text: &str| !text.is_empty() && text.is_ascii();
    for group in texts.chunk_by(|one, next| plain(one) && plain(next)) {
        letters(svg, group, x, y, &style);
        x += group.len() as f32 * WIDTH;
    }
    texts.len() as u16
}

/// Writes ASCII letters stretched over their cells, or one other character centered in its cell: a symbol may be from another font, with
/// another width.
fn letters(svg: &mut String, group: &[&str], x: f32, y: f32, style: &Style) {
    let text = group.concat();
    let shown = text.trim_end();
    let Some(first) = shown.chars().next() else { return };
    let place = if shown.is_ascii() {
        let indent = shown.len() - shown.trim_start().len();
        let (x, width) = (x + indent as f32 * WIDTH, (shown.len() - indent) as f32 * WIDTH);
        format!("x=\"{x}\" textLength=\"{width}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\"")
    } else if draw(svg, first, x, y, style.ink) {
        return;
    } else {
        format!("x=\"{}\" text-anchor=\"middle\"", x + WIDTH / 2.0)
    };
    let escaped = shown.trim_start().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let (y, ink) = (y + BASELINE, hex(style.ink));
    let _ = writeln!(svg, "<text {place} y=\"{y}\" fill=\"{ink}\"{}>{escaped}</text>", style.attributes);
}

/// Draws a character that joins its neighbors, or returns `false` for a letter.
fn draw(svg: &mut String, c: char, x: f32, y: f32, ink: [u8; 3]) -> bool {
    let code = u32::from(c);
    let part = |count: u32| count as f32 / 8.0;
    match c {
        '\u{2801}'..='\u{28ff}' => braille(svg, code - 0x2800, x, y, ink),
        '▀' => rectangle(svg, [x, y, WIDTH, HEIGHT / 2.0], ink, 1.0),
        '▁'..='█' => {
            let height = HEIGHT * part(code - 0x2580);
            rectangle(svg, [x, y + HEIGHT - height, WIDTH, height], ink, 1.0);
        }
        '▉'..='▏' => rectangle(svg, [x, y, WIDTH * part(0x2590 - code), HEIGHT], ink, 1.0),
        '▐' => rectangle(svg, [x + WIDTH / 2.0, y, WIDTH / 2.0, HEIGHT], ink, 1.0),
        '░' | '▒' | '▓' => rectangle(svg, [x, y, WIDTH, HEIGHT], ink, 0.25 * (code - 0x2590) as f32),
        _ => return line(svg, c, x, y, ink),
    }
    true
}

/// Draws eight dots in two columns; the bits go down the left column, down the right one, and then along the bottom row.
fn braille(svg: &mut String, bits: u32, x: f32, y: f32, ink: [u8; 3]) {
    const PLACES: [(u8, u8); 8] = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)];
    // One path of round dots: a chart has thousands of them.
    let mut dots = String::new();
    for (bit, (column, row)) in PLACES.iter().enumerate() {
        if bits >> bit & 1 == 1 {
            let (x, y) = (x + WIDTH * (0.25 + 0.5 * f32::from(*column)), y + HEIGHT * (0.125 + 0.25 * f32::from(*row)));
            let _ = write!(dots, "M{x:.1} {y:.1}h0");
        }
    }
    let _ = writeln!(svg, "<path d=\"{dots}\" stroke=\"{}\" class=\"d\"/>", hex(ink));
}

/// Draws lines from the center of the cell to its sides: left, up, right and down, each with a weight.
fn line(svg: &mut String, c: char, x: f32, y: f32, ink: [u8; 3]) -> bool {
    let sides: [u8; 4] = match c {
        '─' | '╌' | '┄' | '┈' => [1, 0, 1, 0],
        '│' | '╎' | '┆' | '┊' => [0, 1, 0, 1],
        '━' => [2, 0, 2, 0],
        '┃' => [0, 2, 0, 2],
        '┌' | '╭' => [0, 0, 1, 1],
        '┐' | '╮' => [1, 0, 0, 1],
        '└' | '╰' => [0, 1, 1, 0],
        '┘' | '╯' => [1, 1, 0, 0],
        '├' => [0, 1, 1, 1],
        '┤' => [1, 1, 0, 1],
        '┬' => [1, 0, 1, 1],
        '┴' => [1, 1, 1, 0],
        '┼' => [1, 1, 1, 1],
        '┏' => [0, 0, 2, 2],
        '┓' => [2, 0, 0, 2],
        '┗' => [0, 2, 2, 0],
        '┛' => [2, 2, 0, 0],
        '╴' => [1, 0, 0, 0],
        '╵' => [0, 1, 0, 0],
        '╶' => [0, 0, 1, 0],
        '╷' => [0, 0, 0, 1],
        _ => return false,
    };
    let (middle_x, middle_y) = (x + WIDTH / 2.0, y + HEIGHT / 2.0);
    let ends = [(x, middle_y), (middle_x, y), (x + WIDTH, middle_y), (middle_x, y + HEIGHT)];
    let mut path = String::new();
    if "╭╮╰╯".contains(c) {
        let joined: Vec<&(f32, f32)> = ends.iter().zip(sides).filter(|(_, side)| *side > 0).map(|(end, _)| end).collect();
        let _ = write!(path, "M{} {}Q{middle_x} {middle_y} {} {}", joined[0].0, joined[0].1, joined[1].0, joined[1].1);
    } else {
        for (end, _) in ends.iter().zip(sides).filter(|(_, side)| *side > 0) {
            let _ = write!(path, "M{middle_x} {middle_y}L{} {}", end.0, end.1);
        }
    }
    let weight = if sides.contains(&2) { 2.4 } else { 1.2 };
    let _ = writeln!(svg, "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{weight}\" stroke-linecap=\"square\"/>", hex(ink));
    true
}

fn rectangle(svg: &mut String, [x, y, width, height]: [f32; 4], ink: [u8; 3], opacity: f32) {
    let opacity = if opacity < 1.0 { format!(" opacity=\"{opacity}\"") } else { String::new() };
    // Neighbors overlap slightly, to avoid seams where pixels are not aligned to cells.
    let _ = writeln!(svg, "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{height}\" fill=\"{}\"{opacity}/>", width + 0.2, hex(ink));
}

fn rgb(color: Color, default: [u8; 3]) -> [u8; 3] {
    match color {
        Color::Default => default,
        Color::Rgb(red, green, blue) => [red, green, blue],
        Color::Idx(index @ 0..16) => PALETTE[usize::from(index)],
        Color::Idx(index @ 16..232) => {
            let cube = index - 16;
            [cube / 36, cube / 6 % 6, cube % 6].map(|level| if level == 0 { 0 } else { 55 + 40 * level })
        }
        Color::Idx(index) => [8 + 10 * (index - 232); 3],
    }
}

fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}
