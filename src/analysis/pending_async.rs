//! Async methods that have not completed, found in a heap walk: each has an object, even if no thread runs it.

use foldhash::HashMap;

use super::heap::HeapType;
use crate::clr::method_name;
use crate::sorting::CompactSort;

/// The type of these objects, with the result and the state machine as type arguments (.NET Core 3.0 and later).
const BOX: &str = "AsyncStateMachineBox<";
/// The type of callers that wait in `SemaphoreSlim.WaitAsync`, and its module.
const SEMAPHORE_WAITER: (&str, &str) = ("TaskNode", "System.Private.CoreLib");

/// Number of methods in a description.
const SHOWN: usize = 3;

/// Async methods that have not completed. Those that no other code refers to may be missing, and those that have completed but are still
/// referenced are included.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PendingAsync {
    /// Methods with the number of their calls, descending. Not sanitized.
    pub methods: Vec<(String, u64)>,
    /// Number of waits for a `SemaphoreSlim`.
    pub semaphore_waits: u64,
}

impl PendingAsync {
    /// Finds the methods by the names of types.
    pub fn of(types: &[HeapType]) -> Self {
        let (mut methods, mut semaphore_waits) = (HashMap::<String, u64>::default(), 0);
        for named in types {
            if let Some(state_machine) = state_machine(&named.name) {
                *methods.entry(method_name(state_machine, "MoveNext")).or_default() += named.objects;
            } else if (named.name.as_str(), named.module.as_str()) == SEMAPHORE_WAITER {
                semaphore_waits += named.objects;
            }
        }
        let mut methods: Vec<_> = methods.into_iter().collect();
        methods.compact_sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        Self { methods, semaphore_waits }
    }

    /// Returns a phrase with the most frequent methods; `None` if there are none. Not sanitized.
    pub fn describe(&self) -> Option<String> {
        let (shown, more) = self.methods.split_at(SHOWN.min(self.methods.len()));
        let mut text: Vec<_> = shown.iter().map(|(method, calls)| format!("{calls} {method}")).collect();
        text.extend((!more.is_empty()).then(|| format!("{} others", more.iter().map(|(_, calls)| calls).sum::<u64>())));
        let waits = if self.semaphore_waits > 0 { format!("; {} waits for a SemaphoreSlim", self.semaphore_waits) } else { String::new() };
        (!text.is_empty()).then(|| format!("pending async methods: {}{waits}", text.join(", ")))
    }
}

/// Returns the state machine in the name of a box: the second of two type arguments.
fn state_machine(name: &str) -> Option<&str> {
    let (_, arguments) = name.split_once(BOX)?;
    let mut depth = 0_usize;
    for (at, character) in arguments.char_indices() {
        match character {
            '<' => depth += 1,
            '>' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => return arguments[at + 1..].strip_suffix('>').map(str::trim),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::HeapType;

    #[test]
    fn async_methods_are_counted_by_their_state_machines() {
        let boxed = |arguments: &str| format!("AsyncStateMachineBox<{arguments}>");
        let types = [
            (boxed("System.Threading.Tasks.VoidTaskResult,Shop.Orders+<SaveAsync>d__4"), "System.Private.CoreLib", 3),
            (boxed("Dictionary<System.String,System.Int32>,Shop.Orders+<LoadAsync>d__5"), "System.Private.CoreLib", 40),
            // The same method with another result.
            (boxed("System.Int32,Shop.Orders+<SaveAsync>d__4"), "System.Private.CoreLib", 2),
            (boxed("System.Int32"), "System.Private.CoreLib", 7),
            (boxed("System.Int32>,Shop.Orders+<SaveAsync>d__4"), "System.Private.CoreLib", 7),
            ("TaskNode".to_owned(), "System.Private.CoreLib", 39),
            ("TaskNode".to_owned(), "Shop", 8),
            ("System.String".to_owned(), "System.Private.CoreLib", 900),
        ];
        let named = |(name, module, objects): &(String, &str, u64)| HeapType {
            name: name.clone(),
            module: (*module).to_owned(),
            objects: *objects,
            bytes: 0,
        };
        let found = PendingAsync::of(&types.iter().map(named).collect::<Vec<_>>());
        let methods: Vec<_> = found.methods.iter().map(|(name, calls)| (name.as_str(), *calls)).collect();
        assert_eq!(methods, [("Shop.Orders.LoadAsync", 40), ("Shop.Orders.SaveAsync", 5)]);
        assert_eq!(found.semaphore_waits, 39);
        let text = "pending async methods: 40 Shop.Orders.LoadAsync, 5 Shop.Orders.SaveAsync; 39 waits for a SemaphoreSlim";
        assert_eq!(found.describe().as_deref(), Some(text));
        let many = PendingAsync { methods: (0..5).map(|number| (format!("A.M{number}"), 2)).collect(), semaphore_waits: 0 };
        assert_eq!(many.describe().as_deref(), Some("pending async methods: 2 A.M0, 2 A.M1, 2 A.M2, 4 others"));
        assert_eq!(PendingAsync::default().describe(), None);
    }
}
