//! A list of the possible values of a form field.

use tui_input::Input;

use crate::app::cursor::Cursor;
use crate::clr::{RUNTIME_PROVIDER, level_name};
use crate::ipc::Level;

use super::suggest::Kind;
use super::words::words;
use super::{Field, Form, ListState};

/// A list of values, shown over a form.
#[derive(Debug)]
pub struct Chooser {
    /// The form, without the value being chosen.
    pub form: Form,
    kind: Kind,
    /// Byte offset in the field's text at which the choice is inserted.
    start: usize,
    /// The possible values, each with a description.
    pub items: Vec<(String, String)>,
    pub list: ListState,
    /// Whether each item is chosen; `None` if only one can be.
    pub chosen: Option<Vec<bool>>,
}

/// Outcome of a list.
#[derive(Debug)]
pub(in crate::app) enum Chosen {
    /// The next list: keywords follow a provider, then a level.
    Next(Chooser),
    Done(Form),
}

impl Form {
    /// Returns whether the focused field has a list of values.
    pub(in crate::app) fn can_choose(&self) -> bool {
        matches!(self.focus, Field::Question(at) if self.kind(at).is_some())
    }

    /// Lists the values that can follow the text of the focused field.
    pub(in crate::app) fn choose(mut self) -> Chosen {
        let Field::Question(at) = self.focus else { return Chosen::Done(self) };
        let text = self.untrimmed(at).to_owned();
        self.write(&text);
        let Some(kind) = self.kind(at) else { return Chosen::Done(self) };
        if kind == Kind::Complete {
            return self.append_and_choose(&text, " ");
        }
        let found = self.suggestions(at);
        let mut items = found.items;
        // A complete provider name is extended rather than listed.
        if kind == Kind::Provider && items.first().is_some_and(|(name, _)| name.eq_ignore_ascii_case(&text[found.start..])) {
            let separator = self.after_provider(at);
            return self.append_and_choose(&text, separator);
        }
        let mut list = ListState::default();
        match kind {
            Kind::Keywords if items.is_empty() => return self.append_and_choose(&text, ":"),
            Kind::Keywords => {
                let provider = text.rsplit(char::is_whitespace).next().and_then(|word| word.split(':').next());
                let general = provider.is_some_and(|name| name.eq_ignore_ascii_case(RUNTIME_PROVIDER));
                let usual = if general { "a general overview" } else { "all of them" };
                items.insert(0, (String::new(), format!("default: {usual}")));
            }
            // Preselects the default.
            Kind::Level => {
                let usual = items.iter().position(|(name, _)| name == level_name(Level::Informational));
                list.cursor = Cursor::at(usual.unwrap_or(0));
            }
            _ if items.is_empty() => return Chosen::Done(self),
            _ => {}
        }
        let there = words(&text);
        let several = matches!(kind, Kind::Profiles | Kind::Keywords | Kind::Ids);
        let chosen = several.then(|| items.iter().map(|(name, _)| kind == Kind::Profiles && there.contains(name)).collect());
        let start = if kind == Kind::Profiles { 0 } else { found.start };
        Chosen::Next(Chooser { form: self, kind, start, items, list, chosen })
    }

    /// Returns the separator between a provider name and its description.
    fn after_provider(&self, at: usize) -> &'static str {
        if self.is_for_providers(at) { ":" } else { "/" }
    }

    /// Continues after the completed part.
    fn append_and_choose(mut self, text: &str, separator: &str) -> Chosen {
        self.write(&format!("{text}{separator}"));
        self.choose()
    }

    /// Replaces the text of the focused field and puts the cursor at its end.
    fn write(&mut self, text: &str) {
        if let Some(input) = self.input() {
            *input = Input::new(text.to_owned());
        }
        self.reset_confirmation();
    }
}

impl Chooser {
    pub fn title(&self) -> &'static str {
        match self.kind {
            Kind::Profiles => "Profiles",
            Kind::Provider | Kind::Complete => "Provider",
            Kind::Keywords => "Keywords",
            Kind::Level => "Level",
            Kind::Event => "Event",
            Kind::Ids => "Events",
        }
    }

    pub(in crate::app) fn toggle(&mut self, item: usize) {
        if let Some(chosen) = self.chosen.as_mut().and_then(|chosen| chosen.get_mut(item)) {
            *chosen = !*chosen;
        }
    }

    /// Inserts the chosen items, or the selected one if none is chosen, and continues with the part that follows.
    pub(in crate::app) fn accept(self, selected: usize) -> Chosen {
        let Self { mut form, kind, start, items, chosen, .. } = self;
        let Field::Question(at) = form.focus else { return Chosen::Done(form) };
        let chosen = chosen.unwrap_or_default();
        let any = chosen.contains(&true);
        let taken = |(index, (name, _)): (usize, &(String, String))| {
            let taken = if any { chosen.get(index).copied().unwrap_or(false) } else { index == selected };
            (taken && !name.is_empty()).then(|| name.clone())
        };
        let names: Vec<String> = items.iter().enumerate().filter_map(taken).collect();
        let (between, behind) = match kind {
            Kind::Profiles => (" ", ""),
            Kind::Provider | Kind::Complete => ("", form.after_provider(at)),
            Kind::Keywords => ("+", ":"),
            Kind::Level | Kind::Event => ("", ""),
            Kind::Ids => (",", ""),
        };
        let text = format!("{}{}{behind}", &form.untrimmed(at)[..start], names.join(between));
        form.write(&text);
        if behind.is_empty() { Chosen::Done(form) } else { form.choose() }
    }
}
