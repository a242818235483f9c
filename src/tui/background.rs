//! The background color of the terminal, from its answer to a query.
//!
//! Source: "XTerm Control Sequences", operating system command 11: the answer is `11;rgb:RRRR/GGGG/BBBB`, each with one to four hexadecimal digits.

/// Queries the background color.
pub(super) const QUERY: &[u8] = b"\x1b]11;?\x1b\\";
/// Start of an answer.
pub(super) const ANSWER: &[u8] = b"11;rgb:";
/// Command number of an answer.
pub(super) const NUMBER: &[u8] = b"11;";
/// Length of the longest answer.
const MAX_ANSWER: usize = ANSWER.len() + 3 * 4 + 2;
/// Maximum length of an answer in another format, such as `rgba:` with four numbers.
const MAX_OTHER_ANSWER: usize = 32;

/// Returns whether a byte can follow these first bytes of an answer. Otherwise, the answer was cut off.
pub(super) fn can_follow(answer: &[u8], byte: u8) -> bool {
    match answer.strip_prefix(ANSWER) {
        Some(_) => answer.len() < MAX_ANSWER && (byte.is_ascii_hexdigit() || byte == b'/'),
        None => answer.len() < MAX_OTHER_ANSWER && byte.is_ascii_graphic(),
    }
}

/// Whether the background is light, by its luma (ITU-R BT.601).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IsLight(pub(super) bool);

impl IsLight {
    /// Parses an answer, without the start and end of the command.
    pub(super) fn parse(answer: &[u8]) -> Option<Self> {
        let colors = std::str::from_utf8(answer.strip_prefix(ANSWER)?).ok()?;
        let share = |digits: &str| {
            let largest = match digits.len() {
                1..=4 => (1_u32 << (4 * digits.len())) - 1,
                _ => return None,
            };
            Some(f64::from(u32::from_str_radix(digits, 16).ok()?) / f64::from(largest))
        };
        let mut shares = colors.split('/').map(share);
        let (red, green, blue) = (shares.next()??, shares.next()??, shares.next()??);
        shares.next().is_none().then_some(Self(0.299 * red + 0.587 * green + 0.114 * blue > 0.5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn light_and_dark_are_distinguished() {
        let table: [(&[u8], Option<bool>); 9] = [
            (b"11;rgb:ffff/ffff/ffff", Some(true)),
            (b"11;rgb:fdfd/f6f6/e3e3", Some(true)),
            (b"11;rgb:0000/2b2b/3636", Some(false)),
            (b"11;rgb:f/f/f", Some(true)),
            (b"11;rgb:1e/1e/1e", Some(false)),
            (b"11;rgb:ffff/ffff", None),
            (b"11;rgb:ffff/ffff/ffff/ffff", None),
            (b"11;rgb:fffff/0/0", None),
            (b"10;rgb:ffff/ffff/ffff", None),
        ];
        for (answer, light) in table {
            assert_eq!(IsLight::parse(answer).map(|found| found.0), light, "{}", String::from_utf8_lossy(answer));
        }
    }
}
