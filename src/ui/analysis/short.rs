//! Names of methods where there is little room: what tells them apart stands at their end.

use super::super::canvas::width;

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
