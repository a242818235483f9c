use super::*;
use proptest::prelude::*;

#[test]
fn failed_read_does_not_move_the_cursor() {
    let mut reader = Reader::new(&[1, 2, 3]);
    assert_eq!(reader.u32(), Err(WireError::Short { at: 0, needed: 4, left: 3 }));
    assert_eq!(reader.u16(), Ok(0x0201));
    assert_eq!(reader.take(usize::MAX), Err(WireError::Short { at: 2, needed: usize::MAX, left: 1 }));
    assert_eq!(reader.u8(), Ok(3));
    assert!(reader.is_empty());
}

#[test]
fn varint_length_is_limited() {
    assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x0f]).varu32(), Ok(u32::MAX));
    assert_eq!(Reader::new(&[0x80; 5]).varu32(), Err(WireError::Varint { at: 0 }));
    assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2, 3]).varu32(), Ok(u32::MAX));
    assert_eq!(Reader::new(&[0x80, 0x80, 0x80, 0x80, 0x80, 0, 0, 0]).varu32(), Err(WireError::Varint { at: 0 }));
    assert_eq!(Reader::new(&[0x80; 4]).varu32(), Err(WireError::Short { at: 0, needed: 5, left: 4 }));
    assert_eq!(Reader::new(&[0x80; 10]).varu64(), Err(WireError::Varint { at: 0 }));
}

#[test]
fn prefix_of_a_text_is_limited_in_characters() {
    let bytes: Vec<u8> = "abc🦀d".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let prefix = |most| {
        let mut text = "before".to_owned();
        Utf16::new(&bytes).copy_prefix(&mut text, most);
        text
    };
    assert_eq!([2, 3, 4, 5, 6].map(prefix), ["ab", "abc", "abc🦀", "abc🦀d", "abc🦀d"]);
}

#[test]
fn strings_must_be_nul_terminated() {
    let mut bytes = Vec::new();
    bytes.put_utf16z("Café 🦀");
    let mut reader = Reader::new(&bytes);
    let text = reader.utf16z().unwrap();
    assert_eq!(text.to_string(), "Café 🦀");
    assert!(text == *"Café 🦀" && reader.is_empty());
    for end in 0..bytes.len() {
        assert_eq!(Reader::new(&bytes[..end]).utf16z(), Err(WireError::Unterminated { at: 0 }));
    }
    assert_eq!(Utf16::new(&[0x00, 0xd8, 0x41, 0x00, 0x42]).to_string(), "\u{fffd}A");
}

proptest! {
    #[test]
    fn varints_round_trip(value: u64, shift in 0..64_u32) {
        let value = value >> shift;
        let mut bytes = Vec::new();
        bytes.put_varint(value);
        prop_assert_eq!(Reader::new(&bytes).varu64(), Ok(value));
        // Of every length, at the end of the bytes and followed by more bytes.
        bytes.extend([0xff; 8]);
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(reader.varu64(), Ok(value));
        prop_assert_eq!(reader.remaining(), 8);
    }

    #[test]
    fn strings_round_trip_with_all_read_methods(text in "[a-z]{0,150}(.{0,20}[ -~]{0,20}){0,3}") {
        prop_assume!(!text.contains('\0'));
        let mut bytes = Vec::new();
        bytes.put_utf16z(&text);
        bytes.put_utf16z("more");
        let mut reader = Reader::new(&bytes);
        let read = reader.utf16z().unwrap();
        let mut out = "before".to_owned();
        read.push_to(&mut out);
        prop_assert_eq!(out, format!("before{text}"));
        prop_assert!(read == *text && reader.utf16z().unwrap() == *"more");
    }

    #[test]
    fn pushed_text_equals_its_string_form(bytes: Vec<u8>) {
        let mut out = String::new();
        Utf16::new(&bytes).push_to(&mut out);
        prop_assert_eq!(out, Utf16::new(&bytes).to_string());
    }

    #[test]
    fn any_bytes_are_safe(bytes: Vec<u8>) {
        let mut reader = Reader::new(&bytes);
        while reader.varu64().is_ok() || reader.utf16z().is_ok() {}
        let mut reader = Reader::new(&bytes);
        while reader.varu32().is_ok() || reader.u64().is_ok() || reader.u8().is_ok() {}
        prop_assert!(reader.is_empty());
    }
}
