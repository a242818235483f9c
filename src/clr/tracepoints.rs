//! Kernel tracepoints as event destinations: `NAME` for all events, `NAME=ID,ID` for specific ones.

use crate::ipc::{TracepointSet, Tracepoints};

/// Parses tracepoint specifications; also returns the tracepoint names.
///
/// # Errors
/// Returns a sentence that names the invalid specification and the reason.
pub fn parse_tracepoints(texts: &[String]) -> Result<(Tracepoints, Vec<String>), String> {
    let (mut default, mut sets, mut names) = (None, Vec::new(), Vec::new());
    for text in texts {
        let wrong = |why: &str| format!("tracepoint '{}': {why}", text.escape_debug());
        let Some((name, ids)) = text.split_once('=') else {
            if default.replace(text.clone()).is_some() {
                return Err(wrong("only one tracepoint can be the default; others need event ids, NAME=ID,ID"));
            }
            names.push(text.clone());
            continue;
        };
        let ids: Option<Vec<u32>> = ids.split(',').map(|id| id.trim().parse().ok()).collect();
        let ids = ids.ok_or_else(|| wrong("event ids are numbers separated by commas"))?;
        sets.push(TracepointSet::new(name, ids).map_err(|invalid| wrong(&invalid.to_string()))?);
        names.push(name.to_owned());
    }
    Ok((Tracepoints::new(default, sets).map_err(|invalid| invalid.to_string())?, names))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Result<(Tracepoints, Vec<String>), String> {
        parse_tracepoints(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn tracepoints_are_read() {
        let (points, names) = read(&["all", "gc=1, 2"]).unwrap();
        let set = TracepointSet::new("gc", vec![1, 2]).unwrap();
        assert_eq!(
            (points, names),
            (Tracepoints::new(Some("all".to_owned()), vec![set]).unwrap(), vec!["all".to_owned(), "gc".to_owned()])
        );
    }

    #[test]
    fn errors_name_the_invalid_tracepoint() {
        for (wrong, expected) in [
            (&["a", "b"][..], "tracepoint 'b': only one tracepoint can be the default"),
            (&["a="], "tracepoint 'a=': event ids are numbers"),
            (&["a=x\u{1b}"], "tracepoint 'a=x\\u{1b}': event ids are numbers"),
            (&["=1"], "tracepoint '=1': "),
            (&[""], "tracepoint"),
            (&["a=1", "b=1"], "1"),
            (&[], "tracepoint"),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains(expected), "{wrong:?}: {error}");
        }
    }
}
