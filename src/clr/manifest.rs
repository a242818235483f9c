//! Reads the fields of native runtime events, which are missing from their metadata.
//!
//! Used to display single events; analyses use the typed views in [`payload`](super::payload). Later versions of an event only add fields at
//! the end, so one list covers all versions: fields beyond the end of the payload are absent.

use super::events;
use super::payload::{AdjustmentReason, GcReason, GcType};
use crate::nettrace::Value;
use crate::wire::Reader;

/// A field and its value.
#[derive(Debug, Clone)]
pub struct NativeField<'a> {
    /// Name in the manifest.
    pub name: &'static str,
    /// Decoded value.
    pub value: Value<'a>,
    /// Whether the value is an address, identifier or set of flags, usually displayed in hexadecimal.
    pub is_hex: bool,
    /// Symbolic name of the value.
    pub symbol: Option<&'static str>,
}

/// Calls `each` for every known field of an event, in payload order, up to the end of the payload. Returns whether the fields are known.
pub fn read<'a>(provider: &str, event_id: u32, payload: &'a [u8], pointer_size: u8, mut each: impl FnMut(NativeField<'a>)) -> bool {
    let Some(fields) = events::fields(provider, event_id) else { return false };
    let mut reader = Reader::new(payload);
    for (name, kind) in fields.split(' ').filter_map(|field| field.split_once(':')) {
        let Some((value, is_hex)) = value(&mut reader, kind, pointer_size) else { break };
        let number = if let Value::UInt(number) = value { u32::try_from(number).ok() } else { None };
        let word = number.and_then(|number| match kind {
            "gcreason" => Some(GcReason(number).name()),
            "gctype" => Some(GcType(number).name()),
            "adjustment" => Some(AdjustmentReason(number).name()),
            "suspend" => SUSPEND_REASONS.get(number as usize).copied(),
            _ => None,
        });
        // A process has exactly one runtime, with instance ID 0.
        if kind != "clr" {
            each(NativeField { name, value, is_hex, symbol: word });
        }
    }
    true
}

/// Reasons for suspending the threads.
const SUSPEND_REASONS: [&str; 8] =
    ["other", "GC", "AppDomain shutdown", "code pitching", "shutdown", "debugger", "GC preparation", "debugger sweep"];

pub(super) fn value<'a>(reader: &mut Reader<'a>, kind: &str, pointer_size: u8) -> Option<(Value<'a>, bool)> {
    let value = match kind {
        "1" => Value::UInt(reader.u8().ok()?.into()),
        "2" | "clr" => Value::UInt(reader.u16().ok()?.into()),
        "4" | "x4" | "gcreason" | "gctype" | "adjustment" | "suspend" => Value::UInt(reader.u32().ok()?.into()),
        "p" if pointer_size == 4 => Value::UInt(reader.u32().ok()?.into()),
        "8" | "x8" | "p" => Value::UInt(reader.u64().ok()?),
        "f" => Value::Float(reader.f64().ok()?),
        "z" => Value::Text(reader.utf16z().ok()?),
        "g" => Value::Guid(reader.array().ok()?),
        _ => return None,
    };
    Some((value, matches!(kind, "x4" | "x8" | "p")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Put;

    fn fields(event_id: u32, payload: &[u8], pointer_size: u8) -> Vec<String> {
        let mut all = Vec::new();
        read("Microsoft-Windows-DotNETRuntime", event_id, payload, pointer_size, |field| {
            let value = match field.value {
                Value::UInt(number) if field.is_hex => format!("{number:#x}"),
                Value::UInt(number) => number.to_string(),
                Value::Float(number) => number.to_string(),
                Value::Text(text) => text.to_string(),
                other => format!("{other:?}"),
            };
            all.push(format!("{}={value}{}", field.name, field.symbol.map(|word| format!(" ({word})")).unwrap_or_default()));
        });
        all
    }

    #[test]
    fn only_native_events_are_described() {
        for (provider, id, expected) in [
            ("Microsoft-Windows-DotNETRuntime", 80, true),
            ("Microsoft-DotNETCore-SampleProfiler", 0, true),
            ("Microsoft-DotNETCore-EventPipe", 1, false),
            ("Demo", 80, false),
            ("Microsoft-Windows-DotNETRuntime", 9999, false),
        ] {
            assert_eq!(read(provider, id, &[], 8, |_| ()), expected, "{provider} {id}");
        }
    }

    /// Sizes seen in streams of 9 and 10, with empty texts.
    #[test]
    fn layouts_cover_whole_payloads() {
        let [runtime, rundown] = ["Microsoft-Windows-DotNETRuntime", "Microsoft-Windows-DotNETRuntimeRundown"];
        for (provider, id, bytes) in [
            (runtime, 4, 110),
            (runtime, 58, 18),
            (runtime, 146, 46),
            (runtime, 291, 24),
            (rundown, 10, 50),
            (rundown, 280, 6),
            (rundown, 300, 12),
        ] {
            let payload = vec![0; bytes + 1];
            let mut reader = Reader::new(&payload);
            for field in events::fields(provider, id).unwrap().split(' ') {
                value(&mut reader, field.split_once(':').unwrap().1, 8).unwrap();
            }
            assert_eq!(reader.at(), bytes, "{id}");
        }
    }

    #[test]
    fn truncated_payload_yields_its_complete_fields() {
        let mut payload = Vec::new();
        for word in [7_u32, 2, 1, 0] {
            payload.put_u32(word);
        }
        let first = ["Count=7", "Depth=2", &format!("Reason=1 ({})", GcReason(1).name()), &format!("Type=0 ({})", GcType(0).name())];
        assert_eq!(fields(1, &payload, 8), first);
        assert_eq!(fields(1, &payload[..9], 8), ["Count=7", "Depth=2"]);
        payload.put_u16(0);
        payload.put_u64(99);
        assert_eq!(fields(1, &payload, 8).last().map(String::as_str), Some("ClientSequenceNumber=99"));
        assert_eq!(fields(1, &[], 8), [""; 0]);
    }

    #[test]
    fn pointer_size_follows_the_process() {
        let mut payload = Vec::new();
        payload.put_utf16z("Boom");
        payload.put_utf16z("it was");
        payload.put_u32(0x1234);
        payload.put_u32(0x8013_1509);
        payload.put_u16(0x10);
        payload.put_u16(0);
        let expected =
            ["ExceptionType=Boom", "ExceptionMessage=it was", "ExceptionEIP=0x1234", "ExceptionHRESULT=0x80131509", "ExceptionFlags=16"];
        assert_eq!(fields(80, &payload, 4), expected);
    }
}
