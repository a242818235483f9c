//! Names of methods: as much of one as there is room for, and what to say where there is none.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::Tab;

use super::super::canvas::{Canvas, width};
use super::Look;

/// The part of a method's full name that fits: without the first namespaces, without all of them, without its type. Where nothing fits, its own name.
pub(super) fn short_name(name: &str, room: u16) -> &str {
    let mut rest = name;
    while width(rest) > room {
        match after_first_dot(rest) {
            Some(shorter) => rest = shorter,
            None => break,
        }
    }
    rest
}

/// What comes behind the first dot that parts names: not one in the arguments of a generic type, and not that of `.ctor`.
fn after_first_dot(name: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (at, c) in name.char_indices() {
        match c {
            '[' | '<' | '(' => depth += 1,
            ']' | '>' | ')' => depth = depth.saturating_sub(1),
            '.' if depth == 0 && at > 0 && !name[at + 1..].is_empty() => return Some(&name[at + 1..]),
            _ => {}
        }
    }
    None
}

/// Writes a method's name, without its beginning where there is no room for it.
pub(super) fn write(canvas: &mut Canvas<'_>, x: u16, y: u16, room: u16, name: &str, style: Style) -> u16 {
    let short = short_name(name, room);
    if short.len() == name.len() {
        return canvas.foreign(x, y, room, name, style);
    }
    let short = short_name(name, room.saturating_sub(1));
    let used = canvas.text(x, y, room, canvas.theme.glyphs.more, canvas.theme.dim);
    used + canvas.foreign(x + used, y, room.saturating_sub(used), short, style)
}

/// A frame of a stack; where its method is not known yet, that is said.
pub(super) fn frame_line(canvas: &mut Canvas<'_>, look: &Look<'_>, line: Rect, frame: &str) {
    let theme = canvas.theme;
    let known = !frame.starts_with("0x");
    let used = canvas.text(line.x, line.y, line.width, "at ", theme.dim);
    let style = if known { theme.text } else { theme.dim };
    let used = used + canvas.foreign(line.x + used, line.y, line.width.saturating_sub(used), frame, style);
    if !known {
        let note = look.unresolved();
        canvas.text(line.x + used + 1, line.y, line.width.saturating_sub(used + 1), note, theme.dim);
    }
}

/// Says why there is no method to be seen.
pub(super) fn none(canvas: &mut Canvas<'_>, look: &Look<'_>, area: Rect) {
    let text =
        match (look.state.views.filter(Tab::Methods).value().is_empty(), look.state.samples().map_or(0, |counts| counts.samples().all())) {
            (false, _) => "No method matches the filter.",
            (true, 0) => "This thread has no sample here. Backspace: all threads.",
            (true, _) => "All threads wait: w shows where.",
        };
    canvas.text(area.x, area.y, area.width, text, canvas.theme.dim);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_beginnings() {
        let name = "Shop.Pricing.PriceEngine.PriceBasket";
        for (room, shown) in [
            (40, name),
            (36, name),
            (35, "Pricing.PriceEngine.PriceBasket"),
            (30, "PriceEngine.PriceBasket"),
            (22, "PriceBasket"),
            (3, "PriceBasket"),
        ] {
            assert_eq!(short_name(name, room), shown, "{room}");
        }
        assert_eq!(short_name("A.Box`1[B.C,D.E].Get", 18), "Box`1[B.C,D.E].Get");
        assert_eq!(short_name("A.Box`1[B.C,D.E].Get", 4), "Get");
        assert_eq!(short_name("A.Box..ctor", 6), ".ctor");
        assert_eq!(short_name("A.<Main>b__0.x", 2), "x");
        for odd in ["", ".", "..", "a.", ".a", "[", "]..", "日本.語"] {
            assert!(odd.ends_with(short_name(odd, 0)), "{odd}");
        }
    }
}
