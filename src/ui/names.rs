//! Names without their start, if they are too long.

use super::canvas::width;

/// Returns the part of a method's full name that fits: without the first namespaces, without all of them, or without its type. If nothing fits, the
/// bare method name.
pub(super) fn short_name(name: &str, room: u16) -> &str {
    if width(name) <= room {
        return name;
    }
    // Measuring every part would take quadratic time for a name of a thousand parts.
    let shorter: Vec<&str> = std::iter::successors(after_first_dot(name), |rest| after_first_dot(rest)).collect();
    let fitting = shorter.partition_point(|rest| width(rest) > room);
    shorter.get(fitting).or(shorter.last()).copied().unwrap_or(name)
}

/// Returns where to cut off the start of a name with dots that is too wide: at a dot, unless that leaves less than half of the room.
pub(super) fn suffix_start(name: &str, room: u16) -> usize {
    if width(name) <= room || !name.contains('.') {
        return 0;
    }
    let room = room.saturating_sub(1);
    let short = short_name(name, room);
    if (room / 2..=room).contains(&width(short)) {
        return name.len() - short.len();
    }
    end_start(name, room + 1)
}

/// Returns where to cut off the start of a text that is too wide, with room for the ellipsis.
pub(super) fn end_start(text: &str, room: u16) -> usize {
    if width(text) <= room {
        return 0;
    }
    let mut left = room.saturating_sub(1);
    let fits = |(at, c): (usize, char)| {
        left = left.checked_sub(width(c.encode_utf8(&mut [0; 4])))?;
        Some(at)
    };
    text.char_indices().rev().map_while(fits).last().unwrap_or(text.len())
}

/// Suffixes that compilers add to the names of function clones: `.cold`, `.isra.0`.
const ADDED: [&str; 5] = ["isra", "constprop", "part", "cold", "llvm"];

fn is_added(part: &str) -> bool {
    let mut words = part.split('.');
    words.next().is_some_and(|first| ADDED.contains(&first))
        && words.next().is_none_or(|next| next.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns what follows the first dot that separates parts of the name: not one within the arguments of a generic type, not that of `.ctor`, and
/// not one before a compiler suffix.
fn after_first_dot(name: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (at, c) in name.char_indices() {
        match c {
            '[' | '<' | '(' => depth += 1,
            ']' | '>' | ')' => depth = depth.saturating_sub(1),
            '.' if depth == 0 && at > 0 && !name[at + 1..].is_empty() => {
                let rest = &name[at + 1..];
                return Some(rest).filter(|rest| !is_added(rest));
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_shortened_from_the_start() {
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
        for whole in ["finish_task_switch.isra.0", "do_sys_poll.part.0.constprop.1", "schedule.cold", "foo.llvm.1234567"] {
            assert_eq!(short_name(whole, 8), whole);
        }
        for (name, short) in [("Freezer.coldStart", "coldStart"), ("shop.part.Price", "part.Price")] {
            assert_eq!(short_name(name, 10), short);
        }
        for odd in ["", ".", "..", "a.", ".a", "[", "]..", "日本.語", "語.日本"] {
            assert!(odd.ends_with(short_name(odd, 0)), "{odd}");
            assert!((0..9).all(|room| odd.is_char_boundary(suffix_start(odd, room))), "{odd}");
        }
    }

    #[test]
    fn long_names_of_programs_keep_their_ends() {
        for (name, room, shown) in [
            ("Contoso.Orders.Api", 18, "Contoso.Orders.Api"),
            ("Contoso.Orders.Api", 17, "Orders.Api"),
            ("Contoso.OrderFulfilmentService.Api", 16, "mentService.Api"),
            ("OrderFulfilmentService", 16, "OrderFulfilmentService"),
            ("注文.サービス", 10, "サービス"),
        ] {
            let start = suffix_start(name, room);
            assert_eq!(&name[start..], shown, "{name} {room}");
            assert!(start == 0 || width(shown) < room, "{name} {room}");
        }
    }
}
