//! What dn-top waits for in a process.

use std::fmt;

use super::threshold::Threshold;
use crate::clr::{Trigger, TriggerError};

const OR: &str = " or ";

/// Conditions of which one must be met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conditions(Vec<Condition>);

/// A condition on a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// A figure has reached a value.
    Threshold(Threshold),
    /// An event has occurred.
    Event(Trigger),
}

impl Conditions {
    /// Parses conditions, separated by ` or `. What is not a condition of its own belongs to the text of the event before it.
    ///
    /// # Errors
    /// Returns a sentence with the expected syntax.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut conditions: Vec<Condition> = Vec::new();
        for part in text.split(OR) {
            match (Condition::parse(part.trim()), conditions.last_mut()) {
                (Ok(condition), _) => conditions.push(condition),
                (Err(_), Some(Condition::Event(trigger))) if trigger.has_text() => {
                    *trigger = Trigger::parse(&format!("{trigger}{OR}{part}")).map_err(|error| error.to_string())?;
                }
                (Err(wrong), _) => return Err(wrong),
            }
        }
        Ok(Self(conditions))
    }

    /// Returns the conditions.
    pub fn iter(&self) -> impl Iterator<Item = &Condition> {
        self.0.iter()
    }
}

impl Condition {
    fn parse(text: &str) -> Result<Self, String> {
        let name = text.split([':', '[']).next().unwrap_or_default();
        // A wrong threshold must not be taken for an event that never occurs.
        let may_be_event = !name.contains(['>', '<']);
        Threshold::parse(text).map(Self::Threshold).or_else(|wrong| match Trigger::parse(text) {
            Ok(trigger) if may_be_event => Ok(Self::Event(trigger)),
            Err(error) if may_be_event && error != TriggerError::Syntax => Err(error.to_string()),
            _ => Err(wrong),
        })
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, condition) in self.0.iter().enumerate() {
            f.write_str(if index > 0 { OR } else { "" })?;
            condition.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threshold(threshold) => threshold.fmt(f),
            Self::Event(trigger) => trigger.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_round_trip() {
        for (text, shown) in [
            ("cpu>80", "cpu>80"),
            ("cpu > 80% for 10s", "cpu>80 for 10s"),
            ("memory>2GB for 1m 30s", "memory>2GB for 1m 30s"),
            ("memory<1000", "memory<1000"),
            ("memory<=999B", "memory<=999B"),
            ("threads>=500", "threads>=500"),
            ("open-files>900", "open-files>900"),
            ("gc-heap-size>500MB", "gc-heap-size>500MB"),
            ("System.Runtime/exception-count>0.5", "exception-count>0.5"),
            ("Microsoft.AspNetCore.Hosting/current-requests<1 for 1s", "Microsoft.AspNetCore.Hosting/current-requests<1 for 1s"),
            (
                "dotnet.gc.last_collection.heap.size[gc.heap.generation=loh]>1MB",
                "dotnet.gc.last_collection.heap.size[gc.heap.generation=loh]>1MB",
            ),
            ("P/n[a=x>y, b=2] > 3", "P/n[a=x>y,b=2]>3"),
            ("exception", "exception"),
            ("exception:List<int> > 3", "exception:List<int> > 3"),
            ("Microsoft-Windows-DotNETRuntime/GCStart[Depth=2]", "Microsoft-Windows-DotNETRuntime/GCStart[Depth=2]"),
            ("My-Source/Request/Start", "My-Source/Request/Start"),
            ("My-Source/Request[Path=a>b]", "My-Source/Request[Path=a>b]"),
            ("cpu>80 for 10s or memory>2GB or exception:Timeout", "cpu>80 for 10s or memory>2GB or exception:Timeout"),
            ("exception:refused or reset or cpu>80", "exception:refused or reset or cpu>80"),
            ("exception:Timeout 5 times in 60s or cpu>80", "exception:Timeout 5 times in 1m or cpu>80"),
            ("exception:refused or reset 3 times", "exception:refused or reset 3 times"),
        ] {
            assert_eq!(Conditions::parse(text).as_ref().map(Conditions::to_string).as_deref(), Ok(shown));
            assert_eq!(Conditions::parse(shown), Conditions::parse(text));
        }
        assert_eq!(Conditions::parse("exception:refused or reset or cpu>80").unwrap().iter().count(), 2);
        for wrong in [
            "",
            "cpu",
            "cpu>",
            ">80",
            "cpu>x",
            "cpu>NaN",
            "cpu>inf",
            "cpu>80 for",
            "cpu>80 for ever",
            "cpu=80",
            "cpu>>80",
            "cpu=>80",
            "cpu>2GB",
            "a/>1",
            "P/name>x",
            "P/name[a=1]>x",
            "/a>1",
            "a b>1",
            "a[b]>1",
            "a[b=1>1",
            "a,b>1",
            "a/b*>1",
            "exceptions",
            "exception:",
            "exception for 10s",
            "cpu>80 or",
            "cpu>80 or memory",
            "P/E or memory",
            "or cpu>80",
        ] {
            assert!(Conditions::parse(wrong).is_err(), "{wrong}");
        }
    }
}
