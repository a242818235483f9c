//! A list of the possible values of a form field.

use tui_input::Input;

use crate::app::cursor::Cursor;
use crate::clr::RUNTIME_PROVIDER;
use crate::ipc::Level;

use super::suggest::{Kind, Suggestions};
use super::words::words;
use super::{Field, Form, ListState, Overlay, Pick, Purpose, trace};

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
}

impl Form {
    /// Returns whether the focused field has a list of values.
    pub(in crate::app) fn can_choose(&self) -> bool {
        matches!(self.focus, Field::Question(at) if self.suggestions(at).is_some())
    }

    /// Lists the values that can follow the text of the focused field; returns to the form if there are none.
    pub(in crate::app) fn choose(mut self) -> Overlay {
        let Field::Question(at) = self.focus else { return Overlay::Form(self) };
        let text = self.untrimmed(at).to_owned();
        self.write(&text);
        let Some(Suggestions { kind, start, mut items }) = self.suggestions(at) else { return Overlay::Form(self) };
        if kind == Kind::Complete {
            return self.append_and_choose(&text, " ");
        }
        // A complete provider name is extended rather than listed.
        if kind == Kind::Provider && items.first().is_some_and(|(name, _)| name.eq_ignore_ascii_case(&text[start..])) {
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
                let usual = items.iter().position(|(name, _)| name == Level::Informational.name());
                list.cursor = Cursor::at(usual.unwrap_or(0));
            }
            _ if items.is_empty() => return Overlay::Form(self),
            _ => {}
        }
        let there = words(&text);
        let several = matches!(kind, Kind::Profiles | Kind::Keywords | Kind::Ids);
        if several {
            list.chosen = items.iter().map(|(name, _)| kind == Kind::Profiles && there.contains(name)).collect();
        }
        let start = if kind == Kind::Profiles { 0 } else { start };
        Overlay::List(list, Pick::Values(Box::new(Chooser { form: self, kind, start, items })))
    }

    /// Returns the separator between a provider name and its description.
    fn after_provider(&self, at: usize) -> &'static str {
        if matches!((&self.purpose, at), (Purpose::Trace(_), trace::PROVIDERS)) { ":" } else { "/" }
    }

    /// Continues after the completed part.
    fn append_and_choose(mut self, text: &str, separator: &str) -> Overlay {
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

    /// Inserts the chosen items, or the selected one if none is chosen, and continues with the part that follows: keywords follow a provider, then a
    /// level.
    pub(in crate::app) fn accept(self, chosen: &[bool], selected: usize) -> Overlay {
        let Self { mut form, kind, start, items } = self;
        let Field::Question(at) = form.focus else { return Overlay::Form(form) };
        let any = chosen.contains(&true);
        let taken = |(index, (name, _)): (usize, &(String, String))| {
            let taken = if any { chosen[index] } else { index == selected };
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
        if behind.is_empty() { Overlay::Form(form) } else { form.choose() }
    }
}
