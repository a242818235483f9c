//! The effective key map: the keys of the action table with the configured replacements.

use crossterm::event::KeyEvent;

use super::{Action, Context, Entry, Key, TABLE};

const MAX_KEYS: usize = 4;

/// The effective keys. Construction fails if a key has two meanings in one context, or an action is left without a working key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyMap {
    changed: Vec<(Action, Vec<Key>)>,
}

/// Why an action cannot have the given keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyConflict {
    /// Index into the list of changes passed to [`KeyMap::new`].
    pub at: usize,
    pub why: String,
}

impl Action {
    /// Returns the name used in the configuration file: `watch-all`.
    pub fn name(self) -> String {
        let mut name = String::new();
        for c in format!("{self:?}").chars() {
            if c.is_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(c.to_ascii_lowercase());
        }
        name
    }

    /// Returns all actions whose keys can be changed, in table order.
    pub fn rebindable() -> Vec<Self> {
        distinct(TABLE.iter().filter(|entry| !entry.keys.contains(&Key::Digit)).map(|entry| entry.action))
    }

    /// Returns the default keys that can be replaced.
    pub fn default_keys(self) -> Vec<Key> {
        let keys = TABLE.iter().filter(|entry| entry.action == self).flat_map(|entry| entry.keys);
        distinct(keys.copied().filter(|key| !key.is_fixed()))
    }
}

/// Collects items in order, without repetitions.
fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.fold(Vec::new(), |mut all, item| {
        if !all.contains(&item) {
            all.push(item);
        }
        all
    })
}

impl KeyMap {
    /// Replaces keys of actions. Cursor keys, Enter, Esc, Tab, digits and Ctrl-C keep their meaning.
    ///
    /// # Errors
    /// A key would have two meanings in one context, or would work in none.
    pub fn new(changed: Vec<(Action, Vec<Key>)>) -> Result<Self, KeyConflict> {
        let map = Self { changed };
        for (at, (action, keys)) in map.changed.iter().enumerate() {
            let conflict = |why: String| Err(KeyConflict { at, why });
            let least = usize::from(!action.default_keys().is_empty());
            if !(least..=MAX_KEYS).contains(&keys.len()) {
                return conflict(format!("{} has 1 to {MAX_KEYS} keys", action.name()));
            }
            if let Some(key) = keys.iter().find(|key| key.is_fixed()) {
                return conflict(format!("{} cannot be reassigned", key.name(true)));
            }
            for entry in TABLE.iter().filter(|entry| entry.action == *action) {
                let here = || Context::ALL.into_iter().filter(|context| entry.places.contains(*context));
                if !keys.is_empty() && here().all(|context| map.of_in(entry, context).is_empty()) {
                    return conflict(format!("{} works where text is typed: Ctrl with a letter, or F1 to F12", action.name()));
                }
                for context in here() {
                    let mine = map.of_in(entry, context);
                    let edits = |key: &&Key| matches!(key, Key::Ctrl('a' | 'e' | 'k' | 'u' | 'w'));
                    if let Some(key) = mine.iter().find(edits).filter(|_| context.is_text()) {
                        return conflict(format!("{} is used for text editing where {} works", key.name(true), action.name()));
                    }
                    let others = TABLE.iter().filter(|other| !std::ptr::eq(*other, entry) && other.places.contains(context));
                    for other in others {
                        let theirs = map.of_in(other, context);
                        if let Some(key) = mine.iter().find(|key| theirs.iter().any(|other| key.overlaps(*other))) {
                            let (key, other) = (key.name(true), other.action.name());
                            return conflict(format!("{key} is already the key of {other}; give {other} another key"));
                        }
                    }
                }
            }
        }
        Ok(map)
    }

    /// Returns the keys of a table entry, the one to display first.
    pub fn of(&self, entry: &Entry) -> Vec<Key> {
        let is_changeable = |entry: &Entry| entry.keys.is_empty() || !entry.keys.iter().all(|key| key.is_fixed());
        match self.changed.iter().find(|(action, _)| *action == entry.action) {
            // An entry with fixed keys only keeps them if the action has another entry whose keys can change.
            Some(_) if !is_changeable(entry) && TABLE.iter().any(|other| other.action == entry.action && is_changeable(other)) => {
                entry.keys.to_vec()
            }
            Some((_, keys)) => entry.keys.iter().filter(|key| key.is_fixed()).chain(keys).copied().collect(),
            None => entry.keys.to_vec(),
        }
    }

    /// Returns the keys of a table entry that work in `context`: where text is typed, printable keys are input.
    pub fn of_in(&self, entry: &Entry, context: Context) -> Vec<Key> {
        let mut keys = self.of(entry);
        keys.retain(|key| !context.is_text() || !key.is_text());
        keys
    }

    /// Returns the name of the first reassignable key of an action, for use in messages; empty if it has none.
    pub fn name(&self, action: Action) -> String {
        let entries = TABLE.iter().filter(|entry| entry.action == action);
        let key = entries.map(|entry| self.of(entry)).find_map(|keys| keys.into_iter().find(|key| !key.is_fixed()));
        key.map(|key| key.name(true).into_owned()).unwrap_or_default()
    }

    pub fn lookup(&self, context: Context, event: &KeyEvent) -> Option<Action> {
        let mut here = TABLE.iter().filter(|entry| entry.places.contains(context));
        here.find(|entry| self.of_in(entry, context).iter().any(|key| key.matches(event))).map(|entry| entry.action)
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyModifiers};

    use super::*;

    fn map(changes: &[(Action, &[&str])]) -> Result<KeyMap, String> {
        let keys = |keys: &[&str]| keys.iter().map(|key| Key::parse(key).unwrap()).collect();
        KeyMap::new(changes.iter().map(|(action, all)| (*action, keys(all))).collect()).map_err(|conflict| conflict.why)
    }

    fn press(map: &KeyMap, context: Context, code: KeyCode) -> Option<Action> {
        map.lookup(context, &KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn rebinding_replaces_the_default_key_and_keeps_fixed_keys() {
        let map = map(&[(Action::Trace, &["x"]), (Action::Abandon, &["t"]), (Action::Up, &["i"]), (Action::Help, &["F2", "?"])]).unwrap();
        let letter = |c| press(&map, Context::List, KeyCode::Char(c));
        assert_eq!(
            (letter('x'), letter('t'), letter('i'), letter('k')),
            (Some(Action::Trace), Some(Action::Abandon), Some(Action::Up), None)
        );
        assert_eq!(press(&map, Context::List, KeyCode::Up), Some(Action::Up));
        assert_eq!((letter('?'), press(&map, Context::List, KeyCode::F(2))), (Some(Action::Help), Some(Action::Help)));
        assert_eq!((map.name(Action::Trace), map.name(Action::Watch), map.name(Action::Launch)), ("x".into(), "w".into(), String::new()));
        // An action without a default key can be given one; letters are input where text is typed.
        let map = super::tests::map(&[(Action::Launch, &["N"])]).unwrap();
        assert_eq!(press(&map, Context::Heap, KeyCode::Char('N')), Some(Action::Launch));
        let map = super::tests::map(&[(Action::PageDown, &["J"])]).unwrap();
        assert_eq!(press(&map, Context::Reader, KeyCode::Char('J')), Some(Action::PageDown));
        assert_eq!(press(&map, Context::Palette, KeyCode::Char('J')), None);
        assert_eq!(press(&map, Context::Palette, KeyCode::PageDown), Some(Action::PageDown));
    }

    #[test]
    fn fixed_keys_still_work_after_rebinding_in_every_context() {
        // Esc and q close lists; in a text field only Esc does.
        let map = map(&[(Action::Cancel, &["é"])]).unwrap();
        let of = |context, code| press(&map, context, code);
        assert_eq!((of(Context::Pick, KeyCode::Char('é')), of(Context::Pick, KeyCode::Char('q'))), (Some(Action::Cancel), None));
        for context in [Context::Pick, Context::FormText, Context::Line] {
            assert_eq!(of(context, KeyCode::Esc), Some(Action::Cancel), "{context:?}");
        }
        assert_eq!((of(Context::FormText, KeyCode::Char('é')), of(Context::Line, KeyCode::Char('é'))), (None, None), "it is text there");
        // Where an action has fixed keys only, the new key is added to them.
        let map = super::tests::map(&[(Action::NextTab, &["n"])]).unwrap();
        for (context, code, action) in [
            (Context::Heap, KeyCode::Char('n'), Some(Action::NextTab)),
            (Context::Heap, KeyCode::Right, Some(Action::NextTab)),
            (Context::CallTree, KeyCode::Char('n'), Some(Action::NextTab)),
            (Context::CallTree, KeyCode::Tab, Some(Action::NextTab)),
            (Context::CallTree, KeyCode::Right, Some(Action::Right)),
        ] {
            assert_eq!(press(&map, context, code), action, "{context:?} {code:?}");
        }
        assert_eq!(super::tests::map(&[(Action::Left, &["y"])]).unwrap_err(), "y is already the key of yes; give yes another key");
    }

    #[test]
    fn conflicting_and_empty_key_bindings_are_rejected() {
        for (changes, why) in [
            (&[(Action::Trace, &["w"][..])][..], "w is already the key of watch; give watch another key"),
            (&[(Action::Dump, &["W"]), (Action::WatchAll, &["t"])], "t is already the key of trace; give trace another key"),
            // Conflicts in the methods tab, not in the process list.
            (&[(Action::Dump, &["c"])], "c is already the key of callers; give callers another key"),
            (&[(Action::Trace, &[])], "trace has 1 to 4 keys"),
            (&[(Action::Redraw, &["Ctrl-W"])], "Ctrl-W is used for text editing where redraw works"),
            (&[(Action::Choose, &["N"])], "choose works where text is typed: Ctrl with a letter, or F1 to F12"),
        ] {
            assert_eq!(map(changes).unwrap_err(), why);
        }
        let fixed = KeyMap::new(vec![(Action::Trace, vec![Key::Plain(KeyCode::Esc)])]).unwrap_err();
        assert_eq!((fixed.at, fixed.why.as_str()), (0, "Esc cannot be reassigned"));
    }

    #[test]
    fn action_names_are_unique_and_default_keys_do_not_conflict() {
        let all = Action::rebindable();
        let mut names: Vec<_> = all.iter().map(|action| action.name()).collect();
        assert!(
            names.contains(&"why-slow".to_owned()) && names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
        );
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
        let same: Vec<_> = all.into_iter().map(|action| (action, action.default_keys())).filter(|(_, keys)| !keys.is_empty()).collect();
        assert!(same.len() > 50);
        KeyMap::new(same).unwrap();
    }
}
