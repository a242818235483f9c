//! A console that does not interpret escape sequences: drawn by API calls, in a separate screen buffer.
//!
//! These are the consoles of Windows before 10, and that of Wine, which treats sequences as text. There are 16 colors and no bell, and a cell
//! contains one character.

use std::io;

use crossterm::Command;
use crossterm::cursor::{Hide, MoveTo};
use crossterm::terminal::{Clear, ClearType};
use crossterm_winapi::{Console as Writer, ConsoleMode, ScreenBuffer};
use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

/// `ENABLE_PROCESSED_OUTPUT` and `ENABLE_VIRTUAL_TERMINAL_PROCESSING` (`SetConsoleMode`).
const INTERPRETED: u32 = 0x1 | 0x4;
/// Characters are shown as they are, and one at the end of a line neither starts a new line nor scrolls (`SetConsoleMode`).
const LITERAL: u32 = 0;
/// The bit for bright colors (`FOREGROUND_INTENSITY`).
const BRIGHT: u16 = 8;

/// Whether this console interprets escape sequences, tested in a screen buffer that is never shown.
pub(super) fn interprets_sequences() -> io::Result<bool> {
    let screen = ScreenBuffer::create()?;
    if ConsoleMode::from(screen.handle().clone()).set_mode(INTERPRETED).is_err() {
        return Ok(false);
    }
    Writer::from(screen.handle().clone()).write_char_buffer(b"\x1b[m")?;
    // If not, the cursor has moved by three characters.
    Ok(screen.info()?.cursor_pos().x == 0)
}

/// Two screen buffers: the original one, and our own.
#[derive(Clone)]
pub(super) struct Console {
    before: ScreenBuffer,
    own: ScreenBuffer,
    /// The default colors of the console.
    plain: u16,
}

impl Console {
    pub(super) fn open() -> io::Result<Self> {
        let (before, own) = (ScreenBuffer::current()?, ScreenBuffer::create()?);
        ConsoleMode::from(own.handle().clone()).set_mode(LITERAL)?;
        let plain = before.info()?.attributes() & 0xff;
        Ok(Self { before, own, plain })
    }

    /// Shows our screen buffer, cleared.
    pub(super) fn show(&self) -> io::Result<()> {
        self.own.show()?;
        Hide.execute_winapi()?;
        self.clear()
    }

    /// Shows the original screen buffer.
    pub(super) fn restore(&self) -> io::Result<()> {
        self.before.show()
    }

    pub(super) fn clear(&self) -> io::Result<()> {
        self.writer().set_text_attribute(self.plain)?;
        Clear(ClearType::All).execute_winapi()
    }

    pub(super) fn draw<'a>(&self, cells: impl Iterator<Item = (u16, u16, &'a Cell)>) -> io::Result<()> {
        let writer = self.writer();
        for run in runs(cells, self.plain) {
            MoveTo(run.column, run.row).execute_winapi()?;
            writer.set_text_attribute(run.attributes)?;
            writer.write_char_buffer(run.text.as_bytes())?;
        }
        Ok(())
    }

    fn writer(&self) -> Writer {
        Writer::from(self.own.handle().clone())
    }
}

/// Adjacent cells in a row with the same attributes.
#[derive(Debug, PartialEq)]
struct Run {
    column: u16,
    row: u16,
    attributes: u16,
    text: String,
}

fn runs<'a>(cells: impl Iterator<Item = (u16, u16, &'a Cell)>, plain: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    // The position that continues the last run.
    let mut next = None;
    for (column, row, cell) in cells {
        let attributes = attributes(cell, plain);
        let character = cell.symbol().chars().next().unwrap_or(' ');
        // Width of the whole symbol: a narrow character may be wide together with what follows.
        let is_narrow = cell.symbol().width() == 1;
        match runs.last_mut() {
            Some(run) if is_narrow && next == Some((column, row)) && run.attributes == attributes => run.text.push(character),
            _ => {
                if !is_narrow {
                    // Some consoles use one cell for it, and would leave the old contents in the other.
                    runs.push(Run { column, row, attributes, text: "  ".to_owned() });
                }
                runs.push(Run { column, row, attributes, text: character.into() });
            }
        }
        next = is_narrow.then_some((column + 1, row));
    }
    runs
}

/// Returns the console attributes of a cell: text color in bits 0 to 3, background in bits 4 to 7.
fn attributes(cell: &Cell, plain: u16) -> u16 {
    let mut text = number(cell.fg).unwrap_or(plain & 0xf);
    let mut ground = number(cell.bg).unwrap_or(plain >> 4);
    // Bright black would be gray.
    if cell.modifier.contains(Modifier::BOLD) && text != 0 {
        text |= BRIGHT;
    }
    if cell.modifier.contains(Modifier::DIM) {
        text = BRIGHT;
    }
    if cell.modifier.contains(Modifier::REVERSED) {
        (text, ground) = (ground, text);
    }
    // Two colors may map to the same one of the 16, and the text would vanish.
    if text == ground && cell.fg != cell.bg {
        text = if is_light(ground) { 0 } else { 15 };
    }
    text | ground << 4
}

/// Whether black is more legible than white on a color: on gray, and on bright colors that contain green.
fn is_light(color: u16) -> bool {
    color == 7 || color & BRIGHT != 0 && color & 2 != 0
}

/// Returns the number of a color, with bits for blue, green, red and bright; `None` for the default color.
fn number(color: Color) -> Option<u16> {
    Some(match color {
        Color::Reset => return None,
        Color::Black => 0,
        Color::Blue => 1,
        Color::Green => 2,
        Color::Cyan => 3,
        Color::Red => 4,
        Color::Magenta => 5,
        Color::Yellow => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightBlue => 9,
        Color::LightGreen => 10,
        Color::LightCyan => 11,
        Color::LightRed => 12,
        Color::LightMagenta => 13,
        Color::LightYellow => 14,
        Color::White => 15,
        // In ANSI numbering, red is 1 and blue is 4.
        Color::Indexed(ansi @ 0..16) => u16::from(ansi & 0b1010 | (ansi & 1) << 2 | ansi >> 2 & 1),
        Color::Indexed(cube @ 16..232) => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let cube = cube - 16;
            nearest([level(cube / 36), level(cube / 6 % 6), level(cube % 6)])
        }
        Color::Indexed(gray) => nearest([8 + 10 * (gray - 232); 3]),
        Color::Rgb(red, green, blue) => nearest([red, green, blue]),
    })
}

/// Returns the nearest of the 16 colors, by the strong components and the brightness of the strongest.
fn nearest(parts: [u8; 3]) -> u16 {
    let strongest = parts.into_iter().max().unwrap_or(0);
    let strong = parts.into_iter().fold(0, |bits, part| bits << 1 | u16::from(u16::from(part) * 4 > u16::from(strongest) * 3));
    match (strong, strongest) {
        (_, 0..48) => 0,
        (0b111, 48..128) => BRIGHT,
        (0b111, 128..224) | (_, 48..170) => strong,
        _ => strong | BRIGHT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gray on black, as in most consoles.
    const PLAIN: u16 = 0x07;

    fn cell(symbol: &'static str, fg: Color) -> Cell {
        let mut cell = Cell::new(symbol);
        cell.fg = fg;
        cell
    }

    fn written(cells: &[(u16, u16, Cell)]) -> Vec<(u16, u16, u16, String)> {
        let cells = cells.iter().map(|(column, row, cell)| (*column, *row, cell));
        runs(cells, PLAIN).into_iter().map(|run| (run.column, run.row, run.attributes, run.text)).collect()
    }

    #[test]
    fn adjacent_cells_with_equal_attributes_are_written_together() {
        let cells = [
            (0, 0, cell("a", Color::Reset)),
            (1, 0, cell("│", Color::Reset)),
            (2, 0, cell("c", Color::Red)),
            (4, 0, cell("d", Color::Red)),
            (5, 1, cell("e", Color::Red)),
        ];
        let expected = [(0, 0, 7, "a│"), (2, 0, 4, "c"), (4, 0, 4, "d"), (5, 1, 4, "e")];
        assert_eq!(written(&cells), expected.map(|(column, row, attributes, text)| (column, row, attributes, text.to_owned())));
        assert!(written(&[]).is_empty());
    }

    #[test]
    fn cells_after_wide_characters_keep_their_column() {
        let cells = [(0, 0, cell("a", Color::Reset)), (1, 0, cell("世", Color::Reset)), (3, 0, cell("b", Color::Reset))];
        let expected = [(0, 0, 7, "a"), (1, 0, 7, "  "), (1, 0, 7, "世"), (3, 0, 7, "b")];
        assert_eq!(written(&cells), expected.map(|(column, row, attributes, text)| (column, row, attributes, text.to_owned())));
        let (with_selector, with_text) = (cell("⚠\u{fe0f}", Color::Reset), cell("b", Color::Reset));
        let expected = [(0, 0, 7, "  "), (0, 0, 7, "⚠"), (2, 0, 7, "b")];
        let found = written(&[(0, 0, with_selector), (2, 0, with_text)]);
        assert_eq!(found, expected.map(|(column, row, attributes, text)| (column, row, attributes, text.to_owned())));
        // A combining character would take a cell of its own.
        assert_eq!(written(&[(0, 0, cell("e\u{301}", Color::Reset))]), [(0, 0, 7, "e".to_owned())]);
    }

    #[test]
    fn colors_map_to_console_attributes() {
        for (color, expected) in [
            (Color::Red, 4),
            (Color::Indexed(1), 4),
            (Color::Indexed(4), 1),
            (Color::Indexed(14), 11),
            (Color::Indexed(17), 1),
            (Color::Indexed(16), 15),
            (Color::Indexed(196), 12),
            (Color::Indexed(231), 15),
            (Color::Indexed(243), 8),
            (Color::Indexed(250), 7),
            (Color::Indexed(60), 1),
            (Color::Rgb(0, 128, 0), 2),
            (Color::Rgb(255, 255, 0), 14),
            (Color::Reset, PLAIN),
        ] {
            assert_eq!(attributes(&cell("x", color), PLAIN), expected, "{color:?}");
        }
        let mut cell = cell("x", Color::Black);
        cell.bg = Color::Cyan;
        cell.modifier = Modifier::BOLD;
        assert_eq!(attributes(&cell, PLAIN), 0x30);
        cell.modifier = Modifier::REVERSED;
        assert_eq!(attributes(&cell, PLAIN), 0x03);
        for (fg, bg, expected) in [
            (Color::Black, Color::Indexed(234), 0x0f),
            (Color::Indexed(231), Color::White, 0xf0),
            (Color::Indexed(196), Color::LightRed, 0xcf),
            (Color::Gray, Color::Rgb(192, 192, 192), 0x70),
            (Color::Red, Color::Red, 0x44),
        ] {
            cell = Cell::new("x");
            (cell.fg, cell.bg) = (fg, bg);
            assert_eq!(attributes(&cell, PLAIN), expected, "{fg:?} on {bg:?}");
        }
    }
}
