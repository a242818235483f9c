//! Requests that crash the process that receives them.
//!
//! A simulated runtime crashes on the same requests as a real one, so a test in which it survives is evidence about the client. The list is
//! based on real runtimes 3.1, 8, 9 and 10; versions in between behave like the next higher tested one.

use crate::ipc::{CommandCode, Message};

/// Whether a runtime of this major version crashes on this message.
pub(super) fn is_fatal(message: &Message<'_>, major: u32, suspended: bool) -> bool {
    use CommandCode as Code;
    let Some(code) = CommandCode::of(message.set, message.id).filter(|code| code.since() <= major) else { return false };
    let empty = message.payload.is_empty();
    match code {
        Code::GenerateCoreDump | Code::GenerateCoreDump2 | Code::GenerateCoreDump3 => {
            (empty && major >= 5) || message.payload.get(..4) == Some(&[0; 4])
        }
        Code::CollectTracing | Code::CollectTracing2 | Code::CollectTracing3 | Code::CollectTracing4 => {
            let word = |at: usize| message.payload.get(at..at + 4).map_or(1, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
            let switches = match code {
                Code::CollectTracing => 0,
                Code::CollectTracing2 => 1,
                Code::CollectTracing3 => 2,
                _ => 9,
            };
            (empty && major >= 5) || ((5..10).contains(&major) && (word(0) == 0 || word(4) > 1 || word(8 + switches) > 1000))
        }
        Code::AttachProfiler | Code::StartupProfiler | Code::SetEnvironmentVariable => major >= 5 && lacks_a_number(code, message.payload),
        Code::CollectTracing5 | Code::CollectTracing6 | Code::ApplyStartupHook => empty,
        Code::EnablePerfMap => empty || (suspended && major < 10),
        _ => false,
    }
}

/// Whether a payload ends where a number or a class id should be, including the length of a string. A truncated string is harmless, and so is
/// truncated profiler data.
fn lacks_a_number(code: CommandCode, payload: &[u8]) -> bool {
    match code {
        CommandCode::AttachProfiler => payload.len() < 4 + 16 + 4,
        CommandCode::StartupProfiler => payload.len() < 16 + 4,
        _ => {
            let units = payload.first_chunk().map(|count| u32::from_le_bytes(*count) as usize);
            units.is_none_or(|units| payload.len().checked_sub(4 + 2 * units).is_some_and(|rest| rest < 4))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::{Command, PerfMapKind};

    fn is_fatal_request(code: CommandCode, payload: &[u8], major: u32) -> bool {
        is_fatal(&Message { set: code.set(), id: code.id(), payload }, major, false)
    }

    #[test]
    fn observed_fatal_requests_are_recognized() {
        assert!(is_fatal_request(CommandCode::CollectTracing2, &[], 9) && !is_fatal_request(CommandCode::CollectTracing2, &[], 3));
        assert!(is_fatal_request(CommandCode::CollectTracing2, &[0, 0, 0, 0, 1, 0, 0, 0], 9));
        assert!(!is_fatal_request(CommandCode::CollectTracing2, &[0, 0, 0, 0, 1, 0, 0, 0], 10));
        assert!(is_fatal_request(CommandCode::GenerateCoreDump, &[0; 12], 3));
        assert!(!is_fatal_request(CommandCode::ProcessInfo, &[], 9));
        // Unknown to the runtime, so the payload is not read.
        assert!(!is_fatal_request(CommandCode::EnablePerfMap, &[], 6));
    }

    #[test]
    fn perf_map_request_is_fatal_only_while_suspended() {
        let bytes = Command::EnablePerfMap { kind: PerfMapKind::PerfMap }.encode().unwrap();
        let (message, _) = Message::decode(&bytes).unwrap().unwrap();
        for (major, dies) in [(8, true), (9, true), (10, false)] {
            assert!(!is_fatal(&message, major, false) && is_fatal(&message, major, true) == dies, "{major}");
        }
    }
}
