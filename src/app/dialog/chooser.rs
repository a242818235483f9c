//! A list of the possible values of a field of a form.

use tui_input::Input;

use crate::app::cursor::Cursor;
use crate::clr::{RUNTIME, level_name};
use crate::ipc::Level;

use super::suggest::Kind;
use super::words::words;
use super::{Field, Form, ListState};

/// A list to choose from, over a form.
#[derive(Debug)]
pub struct Chooser {
    /// The form, as it is without what is being chosen.
    pub form: Form,
    kind: Kind,
    /// Where in its text what is chosen goes: bytes.
    start: usize,
    /// What there is, each with what it is about.
    pub items: Vec<(String, String)>,
    pub list: ListState,
    /// Which are chosen, where several can be.
    pub chosen: Option<Vec<bool>>,
}

/// What a list is left for.
#[derive(Debug)]
pub(in crate::app) enum Chosen {
    /// The next list: after a provider its keywords, then a level.
    Next(Chooser),
    Done(Form),
}

impl Form {
    /// Whether the field with the focus has a list to choose from.
    pub(in crate::app) fn can_choose(&self) -> bool {
        matches!(self.focus, Field::Question(at) if self.kind(at).is_some())
    }

    /// Lists what could be typed next.
    pub(in crate::app) fn choose(mut self) -> Chosen {
        let Field::Question(at) = self.focus else { return Chosen::Done(self) };
        let text = self.untrimmed(at).to_owned();
        self.write(&text);
        let Some(kind) = self.kind(at) else { return Chosen::Done(self) };
        if kind == Kind::Complete {
            return self.go_on(&text, " ");
        }
        let found = self.suggestions(at);
        let mut items = found.items;
        // What is whole stands there to be gone on from.
        if kind == Kind::Provider && items.first().is_some_and(|(name, _)| name.eq_ignore_ascii_case(&text[found.start..])) {
            let separator = self.after_provider(at);
            return self.go_on(&text, separator);
        }
        let mut list = ListState::default();
        match kind {
            Kind::Keywords if items.is_empty() => return self.go_on(&text, ":"),
            Kind::Keywords => {
                let provider = text.rsplit(char::is_whitespace).next().and_then(|word| word.split(':').next());
                let general = provider.is_some_and(|name| name.eq_ignore_ascii_case(RUNTIME));
                let usual = if general { "a general overview" } else { "all of them" };
                items.insert(0, (String::new(), format!("default: {usual}")));
            }
            // The default.
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

    /// What stands between a provider and its description.
    fn after_provider(&self, at: usize) -> &'static str {
        if self.is_for_providers(at) { ":" } else { "/" }
    }

    /// Goes on behind what is whole.
    fn go_on(mut self, text: &str, separator: &str) -> Chosen {
        self.write(&format!("{text}{separator}"));
        self.choose()
    }

    /// Puts a text into the field with the focus, and the cursor behind it.
    fn write(&mut self, text: &str) {
        if let Some(input) = self.input() {
            *input = Input::new(text.to_owned());
        }
        self.disarm();
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

    /// Types what is chosen, or where nothing is the selected line, and goes on to what comes behind it.
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
