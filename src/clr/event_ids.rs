//! Event ID filters: `PROVIDER/ID,ID` selects only these events, `PROVIDER/^ID,ID` all others.

use crate::ipc::EventFilter;

/// Maximum number of IDs in one filter; more are assumed to be a mistake.
const MAX_IDS: usize = 1000;

/// Parses an event ID filter and the name of its provider.
///
/// # Errors
/// Returns a sentence with the expected syntax.
pub fn parse_event_ids(text: &str) -> Result<(String, EventFilter), String> {
    let wrong = || format!("'{}': expected PROVIDER/ID,ID for only these events, or PROVIDER/^ID,ID for all others", text.escape_debug());
    let (provider, ids) = text.split_once('/').ok_or_else(wrong)?;
    let (except, ids) = ids.strip_prefix('^').map_or((false, ids), |ids| (true, ids));
    let ids = ids.split(',').map(|id| id.trim().parse()).collect::<Result<Vec<u32>, _>>().map_err(|_| wrong())?;
    if provider.trim().is_empty() || ids.len() > MAX_IDS {
        return Err(wrong());
    }
    Ok((provider.trim().to_owned(), if except { EventFilter::except(ids) } else { EventFilter::only(ids) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_id_filters_are_parsed() {
        assert_eq!(parse_event_ids("P/80, 81"), Ok(("P".to_owned(), EventFilter::only(vec![80, 81]))));
        assert_eq!(parse_event_ids("P/^1"), Ok(("P".to_owned(), EventFilter::except(vec![1]))));
        for wrong in ["", "P", "P/", "/1", "P/x", "P/1,", "P/-1", "P/^"] {
            assert!(parse_event_ids(wrong).unwrap_err().contains("expected PROVIDER/ID"), "{wrong}");
        }
    }
}
