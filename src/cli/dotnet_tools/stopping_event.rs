//! The event that stops a recording: dotnet-trace takes its parts in three options, and names it by task and opcode (`GC/Stop`).

use crate::clr::{RUNTIME_PROVIDER, events};

/// Returns the value of `--stop-on` for a provider, an event and a payload filter; `None` if none of them is given.
pub(super) fn stopping_event(given: [Option<String>; 3]) -> Result<Option<String>, String> {
    let [provider, event, filter] = given;
    let event = match (&provider, event) {
        (Some(provider), Some(event)) => Some(own_name(provider, event)?),
        (_, event) => event,
    };
    match (provider, event, filter) {
        (Some(provider), Some(event), Some(filter)) => {
            // dotnet-trace separates names and values by a colon.
            let fields: Option<Vec<_>> =
                filter.split(',').map(|part| part.split_once(':').map(|(name, value)| format!("{name}={value}"))).collect();
            let fields = fields.ok_or("--stopping-event-payload-filter is FIELD:VALUE,FIELD:VALUE")?;
            Ok(Some(format!("{provider}/{event}[{}]", fields.join(","))))
        }
        (Some(provider), event, None) => Ok(Some(format!("{provider}/{}", event.as_deref().unwrap_or("*")))),
        (None, Some(_), None) => Err("--stopping-event-event-name needs --stopping-event-provider-name".to_owned()),
        (_, _, Some(_)) => Err("--stopping-event-payload-filter needs the names of the provider and the event".to_owned()),
        (None, None, None) => Ok(None),
    }
}

/// Converts the name of an event. The runtime's own events have no names in the stream; those of TraceEvent differ from the documented ones.
fn own_name(provider: &str, event: String) -> Result<String, String> {
    let Some((task, opcode)) = event.split_once('/').filter(|_| provider.eq_ignore_ascii_case(RUNTIME_PROVIDER)) else { return Ok(event) };
    let candidates = match (task, opcode) {
        ("Exception", "Start") => vec!["ExceptionThrown".to_owned()],
        ("Exception", "Stop") => vec!["ExceptionThrownStop".to_owned()],
        _ => {
            let begins = opcode.strip_suffix("Start").map(|of| format!("{task}{of}Begin"));
            let ends = opcode.strip_suffix("Stop").map(|of| format!("{task}{of}End"));
            [Some(format!("{task}{opcode}")), begins, ends, Some(opcode.to_owned())].into_iter().flatten().collect()
        }
    };
    let known = |name: &String| events::names(RUNTIME_PROVIDER).any(|(_, known)| known.eq_ignore_ascii_case(name));
    let why = || format!("{RUNTIME_PROVIDER} has no event '{}': give its documented name, such as ExceptionThrown", event.escape_debug());
    candidates.into_iter().find(known).ok_or_else(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_the_runtime_are_named_as_documented() {
        for (event, expected) in [
            ("Method/JittingStarted", "MethodJittingStarted"),
            ("GC/Start", "GCStart"),
            ("GC/Stop", "GCEnd"),
            ("GC/SuspendEEStart", "GCSuspendEEBegin"),
            ("GC/RestartEEStop", "GCRestartEEEnd"),
            ("Exception/Start", "ExceptionThrown"),
            ("Exception/Stop", "ExceptionThrownStop"),
            ("ExceptionCatch/Start", "ExceptionCatchStart"),
            ("Contention/Stop", "ContentionStop"),
            ("ThreadPoolWorkerThread/Wait", "ThreadPoolWorkerThreadWait"),
            ("Loader/ModuleLoad", "ModuleLoad"),
            ("Type/BulkType", "BulkType"),
            ("ExceptionThrown", "ExceptionThrown"),
        ] {
            assert_eq!(own_name(RUNTIME_PROVIDER, event.to_owned()).as_deref(), Ok(expected), "{event}");
        }
        assert!(own_name(RUNTIME_PROVIDER, "GC/Unknown".to_owned()).unwrap_err().contains("has no event 'GC/Unknown'"));
        assert_eq!(own_name("P", "Request/Start".to_owned()).as_deref(), Ok("Request/Start"));
    }
}
