//! Payloads of every type.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::wire::Put;

/// Formats the values of a payload, and whether it was cut.
fn words(kinds: &[FieldType], payload: &[u8], v6: bool) -> (Vec<String>, bool) {
    let fields: Vec<_> = kinds.iter().map(|kind| Field { name: String::new(), kind: kind.clone() }).collect();
    let mut values = Values::new(&fields, payload, v6);
    let words = values.by_ref().map(|(_, value)| word(&value)).collect();
    (words, values.is_truncated())
}

fn word(value: &Value<'_>) -> String {
    match value {
        Value::Object(values) => {
            format!("{{{}}}", values.clone().map(|(field, value)| format!("{}={} ", field.name, word(&value))).collect::<String>())
        }
        Value::Array(elements) => {
            format!("{}[{}]", elements.clone().count(), elements.clone().map(|value| word(&value) + " ").collect::<String>())
        }
        Value::Text(text) => text.to_string(),
        other => format!("{other:?}"),
    }
}

fn named(name: &str, kind: FieldType) -> Field {
    Field { name: name.into(), kind }
}

#[test]
fn every_type_is_read() {
    use FieldType::*;
    let sixteen: Vec<u8> = (0..16).collect();
    let array = format!("{:?}", <[u8; 16]>::try_from(&sixteen[..]).unwrap());
    let cases: [(FieldType, bool, &[u8], &str); 27] = [
        (Boolean, false, &[2, 0, 0, 0], "Bool(true)"),
        (Boolean8, true, &[0], "Bool(false)"),
        (Char, false, &[0x41, 0], "Char(65)"),
        (SByte, false, &[0xff], "Int(-1)"),
        (Byte, false, &[0xff], "UInt(255)"),
        (Utf8CodeUnit, true, &[0x41], "Utf8([65])"),
        (Int16, false, &[0xfe, 0xff], "Int(-2)"),
        (UInt16, false, &[0xfe, 0xff], "UInt(65534)"),
        (Int32, false, &[0xfe, 0xff, 0xff, 0xff], "Int(-2)"),
        (UInt32, false, &[1, 0, 0, 0], "UInt(1)"),
        (Int64, false, &[0xff; 8], "Int(-1)"),
        (UInt64, false, &[1, 0, 0, 0, 0, 0, 0, 0], "UInt(1)"),
        (Single, false, &[0, 0, 0xc0, 0x3f], "Float(1.5)"),
        (Double, false, &[0, 0, 0, 0, 0, 0, 0xf8, 0x3f], "Float(1.5)"),
        (Decimal, false, &sixteen, &format!("Decimal({array})")),
        (Guid, false, &sixteen, &format!("Guid({array})")),
        (DateTime, false, &[7, 0, 0, 0, 0, 0, 0, 0], "FileTime(7)"),
        (DateTime, true, &sixteen, "SystemTime([256, 770, 1284, 1798, 2312, 2826, 3340, 3854])"),
        (String, false, &[0x41, 0, 0x42, 0, 0, 0], "AB"),
        (VarInt, true, &[0x83, 0x01], "Int(-66)"),
        (VarUInt, true, &[0x83, 0x01], "UInt(131)"),
        (Array(Byte.into()), false, &[2, 0, 8, 9], "2[UInt(8) UInt(9) ]"),
        (Array(Char.into()), true, &[2, 0, 0x41, 0, 0x42, 0], "AB"),
        (Array(Utf8CodeUnit.into()), true, &[2, 0, 0x41, 0x42], "Utf8([65, 66])"),
        (FixedLengthArray(2, UInt16.into()), true, &[1, 0, 2, 0], "2[UInt(1) UInt(2) ]"),
        (Array(Object(vec![named("K", String), named("V", Byte)]).into()), false, &[1, 0, 0x41, 0, 0, 0, 5], "1[{K=A V=UInt(5) } ]"),
        (Object(vec![]), false, &[], "{}"),
    ];
    for (kind, v6, payload, expected) in cases {
        // The byte after it shows that exactly the bytes of the value were consumed.
        let payload = [payload, &[9]].concat();
        let kinds = [kind, Byte];
        assert_eq!(words(&kinds, &payload, v6), (vec![expected.into(), "UInt(9)".into()], false), "{kinds:?}");
        let (cut, was_cut) = words(&kinds, &payload[..payload.len() - 1], v6);
        assert_eq!((cut.len(), was_cut), (1, true), "what there was is kept: {kinds:?}");
    }
}

#[test]
fn relocated_fields_are_resolved() {
    use FieldType::*;
    // A byte; two bytes at payload offset 9; four bytes, two after this field; the referenced bytes.
    let payload = [1, 9, 0, 2, 0, 2, 0, 4, 0, 0x41, 0x42, 0x43, 0, 0x44, 0];
    let kinds = [Byte, DataLoc(Utf8CodeUnit.into()), RelLoc(Char.into())];
    assert_eq!(words(&kinds, &payload, true), (vec!["UInt(1)".into(), "Utf8([65, 66])".into(), "CD".into()], false));
    let nested = [Byte, Object(vec![named("far", DataLoc(UInt16.into())), named("near", RelLoc(UInt16.into()))])];
    assert_eq!(words(&nested, &payload, true).0[1], "{far=1[UInt(16961) ] near=2[UInt(67) UInt(68) ] }");
    assert!(words(&kinds, &payload[..14], true).1, "beyond the payload");
}

#[test]
fn malformed_descriptions_have_bounded_cost() {
    use FieldType::*;
    // 2^64 zero-sized elements, and objects with many fields but no content.
    let nothing = (0..4).fold(Object(vec![]), |kind, _| FixedLengthArray(u16::MAX, kind.into()));
    assert_eq!(words(&[nothing, Byte], &[5], true).0.len(), 2);
    let wide = Object((0..5000).map(|_| named("", Object(vec![]))).chain([named("", Byte)]).collect());
    let (_, cut) = words(&[Array(wide.into())], &[[0xff; 2].to_vec(), vec![1; 65535]].concat(), true);
    assert!(cut);
    assert!(words(&[Unknown(99), Byte], &[1, 2], false).1);
}

proptest! {
    #[test]
    fn any_description_and_payload_are_safe(description in vec(any::<u8>(), 0..200), payload in vec(any::<u8>(), 0..200), v6: bool) {
        let forms: [fn(&mut Reader<'_>, &mut Vec<Field>) -> bool; 3] =
            [|r, f| parse_v1(r, f).is_ok(), |r, f| parse_v2(r, f).is_ok(), |r, f| parse_v6(r, f).is_ok()];
        for form in forms {
            let mut fields = Vec::new();
            form(&mut Reader::new(&description), &mut fields);
            Values::new(&fields, &payload, v6).for_each(|(_, value)| drop(word(&value)));
        }
    }

    #[test]
    fn nesting_depth_is_limited(depth in 0..64_u32) {
        let mut description = Vec::new();
        for _ in 0..depth {
            description.put_u32(1);
            description.put_u32(1);
        }
        description.put_u32(0);
        (0..depth).for_each(|_| description.put_utf16z(""));
        let mut fields = Vec::new();
        prop_assert_eq!(parse_v1(&mut Reader::new(&description), &mut fields).is_ok(), depth <= 16);
    }
}
