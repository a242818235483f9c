//! Numbers in text form.

use crate::wire::Utf16;

/// Maximum length of a number, in characters.
const MAX_LENGTH: usize = 64;

/// Parses a number; `None` if the text is empty, not a number, or not finite.
pub(super) fn number(text: Utf16<'_>) -> Option<f64> {
    parse(text.chars())
}

/// Parses a number without allocating. Some versions of the library write a decimal comma if the application's culture uses one.
fn parse(chars: impl Iterator<Item = char>) -> Option<f64> {
    let mut digits = [0_u8; MAX_LENGTH];
    let mut length = 0;
    for c in chars {
        let digit = digits.get_mut(length)?;
        *digit = u8::try_from(if c == ',' { '.' } else { c }).ok()?;
        length += 1;
    }
    let value: f64 = std::str::from_utf8(&digits[..length]).ok()?.parse().ok()?;
    value.is_finite().then_some(value)
}

/// Parses pairs of numbers such as `0.5=19;0.95=94` into `into`, replacing its contents; reads at most 16.
pub(super) fn pairs(text: Utf16<'_>, into: &mut Vec<(f64, f64)>) {
    into.clear();
    let mut chars = text.chars().peekable();
    while chars.peek().is_some() && into.len() < 16 {
        // `take_while` also consumes the separator.
        let share = parse(chars.by_ref().take_while(|c| *c != '='));
        let value = parse(chars.by_ref().take_while(|c| *c != ';'));
        into.extend(share.zip(value));
    }
}

/// Parses a time such as `00:01:00` into seconds; `None` if it is invalid.
pub(super) fn seconds(text: Utf16<'_>) -> Option<f64> {
    let mut parts = [0.0; 3];
    let mut chars = text.chars();
    for part in &mut parts {
        *part = parse(chars.by_ref().take_while(|c| *c != ':'))?;
    }
    let [hours, minutes, seconds] = parts;
    Some(hours * 3600.0 + minutes * 60.0 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Put;

    fn with<T>(text: &str, read: impl FnOnce(Utf16<'_>) -> T) -> T {
        let mut bytes = Vec::new();
        bytes.put_utf16z(text);
        read(Utf16::new(&bytes[..bytes.len() - 2]))
    }

    #[test]
    fn number_parsing() {
        for (text, value) in [
            ("1", Some(1.0)),
            ("-2.5E-05", Some(-2.5e-5)),
            ("1,5", Some(1.5)),
            ("", None),
            ("NaN", None),
            ("Infinity", None),
            ("1é", None),
            ("one", None),
        ] {
            assert_eq!(with(text, number), value, "{text}");
        }
        assert_eq!(with(&"1".repeat(65), number), None);
    }

    #[test]
    fn quantile_parsing() {
        let mut found = vec![(0.0, 0.0)];
        for (text, expected) in [
            ("0.5=19;0.95=94.5", vec![(0.5, 19.0), (0.95, 94.5)]),
            ("0,5=1,5;0,99=2", vec![(0.5, 1.5), (0.99, 2.0)]),
            ("", vec![]),
            ("0.5", vec![]),
            ("a=1;0.5=2;=", vec![(0.5, 2.0)]),
        ] {
            with(text, |text| pairs(text, &mut found));
            assert_eq!(found, expected, "{text}");
        }
        with(&"1=1;".repeat(1000), |text| pairs(text, &mut found));
        assert_eq!(found.len(), 16);
    }

    #[test]
    fn time_span_parsing() {
        for (text, value) in [("00:00:01", Some(1.0)), ("00:01:00", Some(60.0)), ("01:02:03.5", Some(3723.5)), ("", None), ("1", None)] {
            assert_eq!(with(text, seconds), value, "{text}");
        }
    }
}
