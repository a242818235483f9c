//! Sizes with units.

/// Parses `4096`, `64MB` (powers of 1000) or `1GiB` (powers of 1024) as bytes.
///
/// # Errors
/// The text is not a size: a sentence with what was expected.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let factor = match unit.strip_suffix('b').unwrap_or(&unit) {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        _ => return Err(format!("{unit:?} is not a unit of size; use kB, MB, GB, KiB, MiB or GiB")),
    };
    match number.parse::<f64>() {
        Ok(number) if (1.0..u64::MAX as f64).contains(&(number * factor as f64)) => Ok((number * factor as f64) as u64),
        _ => Err("expected a size above zero, such as 64MB or 1GiB".to_owned()),
    }
}

/// Formats a size for [`parse_size`], in the largest unit that leaves no fraction.
pub fn format_size(bytes: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1 << 30, "GiB"), (1_000_000, "MB"), (1 << 20, "MiB"), (1_000, "kB")];
    let fits = units.iter().find(|(factor, _)| bytes > 0 && bytes.is_multiple_of(*factor));
    fits.map_or_else(|| bytes.to_string(), |(factor, unit)| format!("{}{unit}", bytes / factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_and_formatted() {
        let good = [("1", 1), ("3KiB", 3072), ("64MB", 64_000_000), ("1GiB", 1 << 30), ("1.5 kB", 1_500), ("2k", 2_000), ("7mi", 7 << 20)];
        for (text, bytes) in good {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
            assert_eq!(parse_size(&format_size(bytes)), Ok(bytes), "{text}");
        }
        assert_eq!(
            ["64MB", "1GiB", "1500kB", "999"].map(|text| parse_size(text).map(format_size)),
            ["64MB", "1GiB", "1500kB", "999"].map(|text| Ok(text.to_owned()))
        );
        for text in ["", "0", "0.9", "MB", "-1", "1XB", "1e3", "99999999999999999999GB", "1.2.3"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
