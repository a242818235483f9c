//! Filters by event id: `PROVIDER/ID,ID` for those alone, `PROVIDER/^ID,ID` for all but those.

use crate::ipc::EventFilter;

/// More than this in one filter is a mistake.
const MOST: usize = 1000;

/// Reads a filter and the provider that it is for.
///
/// # Errors
/// A sentence with what was expected.
pub fn parse_event_ids(text: &str) -> Result<(String, EventFilter), String> {
    let wrong =
        || format!("'{}': expected PROVIDER/ID,ID for these events alone, or PROVIDER/^ID,ID for all but these", text.escape_debug());
    let (provider, ids) = text.split_once('/').ok_or_else(wrong)?;
    let (except, ids) = ids.strip_prefix('^').map_or((false, ids), |ids| (true, ids));
    let ids = ids.split(',').map(|id| id.trim().parse()).collect::<Result<Vec<u32>, _>>().map_err(|_| wrong())?;
    if provider.trim().is_empty() || ids.len() > MOST {
        return Err(wrong());
    }
    Ok((provider.trim().to_owned(), if except { EventFilter::except(ids) } else { EventFilter::only(ids) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read() {
        assert_eq!(parse_event_ids("P/80, 81"), Ok(("P".to_owned(), EventFilter::only(vec![80, 81]))));
        assert_eq!(parse_event_ids("P/^1"), Ok(("P".to_owned(), EventFilter::except(vec![1]))));
        for wrong in ["", "P", "P/", "/1", "P/x", "P/1,", "P/-1", "P/^"] {
            assert!(parse_event_ids(wrong).unwrap_err().contains("expected PROVIDER/ID"), "{wrong}");
        }
    }
}
