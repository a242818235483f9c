//! Lists over the panes: profiles, suggestions, files, the copy and action menus, and the palette.

use ratatui::layout::{Position, Rect};

use crate::analysis::Filter;
use crate::app::action::{Action, Entry, Status, TABLE, entry};
use crate::app::cursor::{Cursor, Step};
use crate::app::layout::inside;
use crate::app::state::State;
use crate::app::tabs::{Cell, Fit, Line, List, Role, Rows, Table};
use crate::app::text::width;
use crate::clr::profiles;
use crate::model::Bytes;

use super::picker::overhead;
use super::{Found, Overlay, Pick};

/// The selection and filter of a list.
#[derive(Debug, Default)]
pub struct ListState {
    /// The selected row among those that pass the filter.
    pub cursor: Cursor,
    pub filter: Filter,
    /// Whether each item is chosen; empty if only one can be.
    pub chosen: Vec<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyItem {
    pub label: &'static str,
    pub text: String,
}

/// The purpose of choosing a recorded file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileUse {
    Open,
    /// Compare with the open file. If only a range of it is shown, it can be chosen itself, to compare the range with the whole.
    Compare,
}

impl Pick {
    /// The actions on a process, whether currently possible or not.
    pub const ACTIONS: [Action; 14] = [
        Action::TraceForm,
        Action::Profiles,
        Action::Dump,
        Action::PerfMap,
        Action::SetVariable,
        Action::UnsetVariable,
        Action::StartupHook,
        Action::AttachProfiler,
        Action::StartupProfiler,
        Action::Resume,
        Action::WalkHeap,
        Action::Port,
        Action::Producer,
        Action::Launch,
    ];
}

impl ListState {
    pub(in crate::app) fn set_filter(&mut self, filter: Filter) {
        (self.filter, self.cursor) = (filter, Cursor::default());
    }
}

/// A list over the panes, ready to draw.
pub struct PickList<'a> {
    pub title: String,
    pub frame: Rect,
    /// Number of lines below the list for the description of the selected row.
    pub detail_lines: u16,
    /// The full description of the selected row.
    pub detail: Vec<Line>,
    /// The rows that pass the filter.
    pub list: Rows<'a>,
    items: Vec<usize>,
    pub cursor: Cursor,
    pub filter: &'a Filter,
    /// Text shown instead of an empty list.
    pub empty: String,
    /// Whether the first line is the input line of the palette.
    pub is_palette: bool,
}

impl PickList<'_> {
    /// Returns the area of the rows, below the palette's input line and above the description.
    pub fn rows(&self) -> Rect {
        let (inside, top) = (inside(self.frame), u16::from(self.is_palette));
        let height = inside.height.saturating_sub(top + self.detail_lines);
        Rect { x: inside.x + 3, y: inside.y + top, width: inside.width.saturating_sub(4), height }
    }

    /// Returns the area of the description of the selected row.
    pub fn detail_area(&self) -> Rect {
        let rows = self.rows();
        let height = self.detail_lines.saturating_sub(1);
        Rect { y: inside(self.frame).bottom().saturating_sub(height), height, ..rows }
    }
}

/// A list before it is filtered and placed.
struct Draft<'a> {
    title: String,
    width: u16,
    lines: u16,
    /// Returns the full description of an item.
    detail: Box<dyn Fn(usize) -> Vec<Line> + 'a>,
    table: Table<'a, usize>,
    /// The column ranked by the filter: exact matches come first, then prefix matches.
    names: &'static str,
}

impl State {
    /// Returns the list over the panes; `None` if there is no overlay or it is not a list.
    pub fn pick_list(&self) -> Option<PickList<'_>> {
        let Some(Overlay::List(ListState { cursor, filter, chosen }, pick)) = &self.overlay else { return None };
        let Draft { title, width, lines, detail, mut table, names } = self.draft(pick, chosen);
        let is_palette = matches!(pick, Pick::Palette(_));
        // The frame must not change its size while a filter is typed.
        let all = u16::try_from(table.rows.len()).unwrap_or(u16::MAX);
        let layout = self.layout();
        let height = if is_palette { 18 } else { all.saturating_add(2 + lines) }.min(layout.reader().height.max(3));
        let frame = layout.centered(width, height);
        if !is_palette && !filter.is_empty() {
            table.filter(filter);
            table.sort_by_name(names, filter.as_str());
        }
        let cursor = cursor.moved_to(cursor.at.min(table.rows.len().saturating_sub(1)));
        let columns: Vec<_> = table.columns().iter().map(|column| column.title).collect();
        let detail = table.rows.get(cursor.at).map(|item| detail(*item)).unwrap_or_default();
        Some(PickList {
            title,
            frame,
            detail_lines: lines.min(frame.height.saturating_sub(2) / 2),
            detail,
            items: table.rows.clone(),
            list: table.finish(),
            cursor,
            filter,
            empty: filter.unknown_column(&columns).unwrap_or_else(|| "Nothing matches.".to_owned()),
            is_palette,
        })
    }

    /// Returns the selected item of the list over the panes.
    pub(in crate::app) fn picked(&self) -> Option<usize> {
        let list = self.pick_list()?;
        list.items.get(list.cursor.at).copied()
    }

    /// Moves the selection in the list over the panes.
    pub(in crate::app) fn step_pick(&mut self, step: Step) {
        let Some((len, page)) = self.pick_list().map(|list| (list.items.len(), usize::from(list.rows().height))) else { return };
        if let Some(Overlay::List(list, _)) = &mut self.overlay {
            list.cursor.go(step, len, page);
        }
    }

    /// Selects the row at this screen position. Returns whether it was already selected; `None` outside the rows.
    pub(in crate::app) fn click_pick(&mut self, x: u16, y: u16) -> Option<bool> {
        let list = self.pick_list()?;
        let rows = list.rows();
        if !rows.contains(Position::new(x, y)) {
            return None;
        }
        let at = list.cursor.window(list.items.len(), rows.height.into()).nth(usize::from(y - rows.y))?;
        let again = at == list.cursor.at;
        let cursor = list.cursor.moved_to(at);
        drop(list);
        let Some(Overlay::List(list, _)) = &mut self.overlay else { return None };
        list.cursor = cursor;
        Some(again)
    }

    fn draft<'a>(&'a self, pick: &'a Pick, chosen: &'a [bool]) -> Draft<'a> {
        let table = |len: usize| Table::new((0..len).collect(), |item: &usize| item.to_string());
        let dim = |text: &str| Cell::new(text, Role::Dim);
        let line = |text: &str| vec![vec![(text.to_owned(), Role::Text)]];
        match pick {
            Pick::Profiles(subject) => {
                let questions = profiles().iter().map(|profile| width(&profile.question)).max().unwrap_or(0);
                let table = table(profiles().len())
                    .column("", 3, Fit::Left, move |item| Cell::Check(chosen[*item]))
                    .column("QUESTION", questions, Fit::Left, move |item| {
                        Cell::new(&profiles()[*item].question, if chosen[*item] { Role::Strong } else { Role::Text })
                    })
                    .column("PROFILE", 0, Fit::Left, move |item| dim(&profiles()[*item].name));
                let title = format!("Record {subject}");
                let detail = Box::new(|item| about_profile(chosen, item));
                Draft { title, width: 104, lines: 7, detail, table, names: "QUESTION" }
            }
            Pick::Values(chooser) => {
                let items = &chooser.items;
                let names = items.iter().map(|(name, _)| width(name)).max().unwrap_or(0).clamp(4, 48);
                let table = table(items.len())
                    .column_if(!chosen.is_empty(), "", 3, Fit::Left, move |item| Cell::Check(chosen[*item]))
                    .column("NAME", names, Fit::Left, move |item| {
                        let name = items[*item].0.as_str();
                        let role = if chosen.get(*item) == Some(&false) { Role::Text } else { Role::Strong };
                        Cell::new(if name.is_empty() { "none" } else { name }, role)
                    })
                    .shrinking_to(16)
                    .column("ABOUT", 0, Fit::Left, move |item| dim(&items[*item].1));
                let detail = Box::new(move |item: usize| line(&items[item].1));
                Draft { title: chooser.title().to_owned(), width: 104, lines: 3, detail, table, names: "NAME" }
            }
            Pick::Files(purpose, files) => {
                let file = |item: &usize| files[*item].as_ref();
                let table = table(files.len())
                    .column("NAME", 0, Fit::Left, move |item| match file(item) {
                        Some(file) => Cell::new(&*file.name(), Role::Strong),
                        None => Cell::new("another range of this file", Role::Accent),
                    })
                    .column("SIZE", 8, Fit::Right, move |item| Cell::known(file(item).map(|file| Bytes(file.bytes)), Role::Bytes))
                    .column("RECORDED", 16, Fit::Left, move |item| Cell::known(file(item).map(|file| self.recorded_at(file)), Role::Dim))
                    .column("PROCESS", 8, Fit::Right, move |item| {
                        Cell::known(file(item).map(|file| file.process_id).filter(|pid| *pid != 0), Role::Dim)
                    });
                let detail = move |item: usize| match file(&item) {
                    Some(file) => line(&file.path.to_string_lossy()),
                    None => {
                        let [back, forward, start] = [Action::Earlier, Action::Later, Action::Mark].map(|action| self.key(action));
                        line(&format!(
                            "Keeps what is shown now as \"before\". Then choose the other range with {back} {forward} and {start}."
                        ))
                    }
                };
                let title = match purpose {
                    FileUse::Open => "Open a recorded file or a heap file",
                    FileUse::Compare => "Compare with (\"before\")",
                };
                Draft { title: title.to_owned(), width: 104, lines: 3, detail: Box::new(detail), table, names: "NAME" }
            }
            Pick::Copy(items) => {
                let table = table(items.len()).column("WHAT", 20, Fit::Left, |item| Cell::new(items[*item].label, Role::Text)).column(
                    "TEXT",
                    0,
                    Fit::Left,
                    move |item| dim(items[*item].text.lines().next().unwrap_or_default()),
                );
                let detail = Box::new(|_| Vec::new());
                Draft { title: "Copy".to_owned(), width: 76, lines: 0, detail, table, names: "WHAT" }
            }
            Pick::Actions(subject) => {
                let table = table(Pick::ACTIONS.len())
                    .column("KEY", 1, Fit::Left, |item| self.key_cell(entry(Pick::ACTIONS[*item])))
                    .column("ACTION", 14, Fit::Left, |item| self.action_cells(entry(Pick::ACTIONS[*item])).0)
                    .column("HELP", 0, Fit::Left, |item| self.action_cells(entry(Pick::ACTIONS[*item])).1);
                let title = subject.as_ref().map_or_else(|| "Actions".to_owned(), |subject| format!("Actions on {subject}"));
                let detail = Box::new(|item: usize| self.about_action(entry(Pick::ACTIONS[item])));
                Draft { title, width: 100, lines: 3, detail, table, names: "ACTION" }
            }
            Pick::Palette(palette) => {
                let cell = |item: usize, column: usize| self.found_cells(&palette.found[item])[column].clone();
                let table = table(palette.found.len())
                    .column("ACTION", 14, Fit::Left, move |item| cell(*item, 0))
                    .column("HELP", 0, Fit::Left, move |item| cell(*item, 1))
                    .column("KEY", 7, Fit::Right, move |item| cell(*item, 2));
                let detail = move |item: usize| match &palette.found[item] {
                    Found::Action(index) => self.about_action(&TABLE[*index]),
                    Found::Profile(profile) => line(&profile.about),
                    Found::File(file) => line(&file.path.to_string_lossy()),
                    Found::Tab(_) | Found::Theme(_) | Found::Process(_) => Vec::new(),
                };
                let title = "Find by name".to_owned();
                Draft { title, width: 84, lines: 3, detail: Box::new(detail), table, names: "ACTION" }
            }
        }
    }

    /// Returns the label of an action, and its help or the reason why it is not possible now.
    pub(super) fn action_cells(&self, entry: &Entry) -> (Cell, Cell) {
        match entry.status(self) {
            Status::Refused(reason) => (Cell::new(entry.label, Role::Dim), Cell::new(reason, Role::Warning)),
            Status::Ready | Status::Idle => (Cell::new(entry.label, Role::Strong), Cell::new(entry.help, Role::Dim)),
        }
    }

    pub(super) fn key_cell(&self, entry: &Entry) -> Cell {
        self.options.keys.of(entry).first().copied().map_or(Cell::EMPTY, Cell::Key)
    }

    /// Returns the full help of an action, or the reason why it is not possible now.
    fn about_action(&self, entry: &Entry) -> Vec<Line> {
        match entry.status(self) {
            Status::Refused(reason) => vec![vec![(reason, Role::Warning)]],
            Status::Ready | Status::Idle => vec![vec![(entry.help.to_owned(), Role::Text)]],
        }
    }
}

fn about_profile(chosen: &[bool], item: usize) -> Vec<Line> {
    let profile = &profiles()[item];
    let labeled = |label: &str, text: &str, role| vec![(format!("{label}: "), Role::Dim), (text.to_owned(), role)];
    let mut lines = vec![vec![(profile.about.clone(), Role::Text)], labeled("Overhead", &profile.cost, Role::Text)];
    lines.extend(profile.warning.as_ref().map(|warning| labeled("Privacy", warning, Role::Warning)));
    lines.extend(overhead(chosen).map(|sum| labeled("Overhead of all picked", &sum, Role::Text)));
    lines
}
