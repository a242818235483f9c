//! Text without special characters, which text formats contain as it is.

/// Whether a text consists of printable ASCII characters other than these two. Decides on eight bytes at a time.
pub(super) fn is_plain(text: &str, [one, other]: [u8; 2]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const TOPS: u64 = ONES << 7;
    // The top bit of a byte is set if the byte is less than another below 0x80; exact for the first of them, and so for whether there is one.
    let has_less = |bytes: u64, than: u8| bytes.wrapping_sub(ONES * u64::from(than)) & !bytes & TOPS;
    let has = |bytes: u64, byte: u8| has_less(bytes ^ (ONES * u64::from(byte)), 1);
    let (eights, rest) = text.as_bytes().as_chunks();
    let last: [u8; 8] = std::array::from_fn(|index| rest.get(index).copied().unwrap_or(b' '));
    let is_plain = |eight: &[u8; 8]| {
        let bytes = u64::from_ne_bytes(*eight);
        bytes & TOPS | has_less(bytes, b' ') | has(bytes, b'\x7f') | has(bytes, one) | has(bytes, other) == 0
    };
    eights.iter().all(is_plain) && is_plain(&last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_recognized_at_every_place() {
        for byte in 0..0x80 {
            for before in 0..20 {
                let text = " ".repeat(before) + &char::from(byte).to_string() + &"~".repeat(20 - before);
                let is_printable = matches!(byte, b' '..=b'~');
                assert_eq!(is_plain(&text, *b",\""), is_printable && byte != b',' && byte != b'"', "{text:?}");
                assert_eq!(is_plain(&text, *b"\"\\"), is_printable && byte != b'"' && byte != b'\\', "{text:?}");
            }
        }
        assert!(is_plain("", *b",\"") && !is_plain("äöü", *b",\"") && !is_plain("1234567\u{9b}", *b",\""));
    }
}
