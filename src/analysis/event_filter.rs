//! Which single events somebody wants to see.

/// Words that all have to be in the provider's or the event's name; `!word` must be in neither.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    words: Vec<(bool, String)>,
}

/// Events of which there are so many, and which say so little one by one, that they are shown only where they are asked for.
const COMMON: [&str; 2] = ["Microsoft-DotNETCore-SampleProfiler", "Microsoft-Windows-DotNETRuntimeRundown"];

impl EventFilter {
    /// The filter that a person typed.
    pub fn new(text: &str) -> Self {
        let word = |word: &str| match word.strip_prefix('!') {
            Some(rest) => (false, rest.to_lowercase()),
            None => (true, word.to_lowercase()),
        };
        Self { words: text.split_whitespace().map(word).filter(|(_, word)| !word.is_empty()).collect() }
    }

    /// Whether an event of that name passes.
    pub fn passes(&self, provider: &str, name: &str) -> bool {
        if !self.words.iter().any(|(wanted, _)| *wanted) && COMMON.contains(&provider) {
            return false;
        }
        let (provider, name) = (provider.to_lowercase(), name.to_lowercase());
        self.words.iter().all(|(wanted, word)| *wanted == (provider.contains(word) || name.contains(word)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_words_count_and_the_commonest_events_are_left_out_unless_asked_for() {
        let runtime = "Microsoft-Windows-DotNETRuntime";
        for (text, provider, name, passes) in [
            ("", runtime, "GCStart", true),
            ("gc start", runtime, "GCStart", true),
            ("GC stop", runtime, "GCStart", false),
            ("dotnet !gc", runtime, "GCStart", false),
            ("dotnet !gc", runtime, "ExceptionThrown", true),
            ("!", runtime, "GCStart", true),
            ("", COMMON[0], "ThreadSample", false),
            ("!gc", COMMON[0], "ThreadSample", false),
            ("sample", COMMON[0], "ThreadSample", true),
            ("rundown", COMMON[1], "MethodDCEndVerbose", true),
        ] {
            assert_eq!(EventFilter::new(text).passes(provider, name), passes, "{text} {provider} {name}");
        }
    }
}
