//! Names of methods: as much of one as there is room for, and what to say where there is none.

use std::ops::Range;

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::super::canvas::{Canvas, width};

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
pub(super) fn write(canvas: &mut Canvas<'_>, x: u16, y: u16, room: u16, name: &str, style: Style, marks: &[Range<usize>]) {
    if short_name(name, room).len() == name.len() {
        canvas.filtered(x, y, room, name, style, marks);
        return;
    }
    let short = short_name(name, room.saturating_sub(1));
    let skipped = name.len() - short.len();
    let used = canvas.text(x, y, room, canvas.theme.glyphs.more, canvas.theme.dim);
    if marks.iter().any(|range| range.start < skipped) {
        canvas.style(Rect::new(x, y, used, 1), canvas.theme.matched);
    }
    let left = marks.iter().filter(|range| range.end > skipped);
    let left: Vec<_> = left.map(|range| range.start.saturating_sub(skipped)..range.end - skipped).collect();
    canvas.filtered(x + used, y, room.saturating_sub(used), short, style, &left);
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
