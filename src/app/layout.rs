//! Where everything is on the screen: one answer for the view and for the mouse.

use ratatui::layout::{Position, Rect};

use super::list::{Column, Columns, Trend};
use super::pane::RowKind;
use super::tabs::Tab;

pub use super::text::{width, wrap};
use crate::sorting::CompactSort;

/// The smallest terminal that the dashboard can be shown in.
pub const MIN_WIDTH: u16 = 40;
/// The smallest terminal that the dashboard can be shown in.
pub const MIN_HEIGHT: u16 = 10;

/// How the two panes share the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Panes {
    /// Side by side: in a terminal that is too low for anything else.
    Beside,
    /// Table above, details below.
    Stacked,
    /// The one that has the focus.
    Single,
}

/// What the layout depends on, apart from the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayoutInput {
    pub detail_focused: bool,
    /// Whether the focused pane takes all.
    pub zoomed: bool,
    /// Whether some process is in a container.
    pub containers: bool,
    /// Whether some process is watched.
    pub watching: bool,
    pub of: RowKind,
    /// The open tab.
    pub tab: Tab,
    /// How many rows there are to be shown.
    pub rows: usize,
    /// Which columns are shown where they have room.
    pub columns: Columns,
}

/// Where everything is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub screen: Rect,
    /// Whether the terminal is too small for anything else in here to be used.
    pub too_small: bool,
    /// First line.
    pub header: Rect,
    /// Last line.
    pub hints: Rect,
    pub list: Option<ListLayout>,
    pub detail: Option<DetailLayout>,
}

/// The process table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListLayout {
    /// With its border.
    pub frame: Rect,
    /// Line of column titles.
    pub head: Rect,
    /// Lines of processes.
    pub rows: Rect,
    /// The columns that have room, left to right.
    pub columns: Vec<Slot>,
}

/// A column on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub column: Column,
    /// Where it begins.
    pub x: u16,
    pub width: u16,
}

/// The details of the selected process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetailLayout {
    /// With its border.
    pub frame: Rect,
    /// Inside the border.
    pub body: Rect,
    /// The tabs, in the upper border.
    pub tabs: [TabSlot; Tab::ALL.len()],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TabSlot {
    pub tab: Tab,
    /// Where: its key and its title, with blanks around them where there is room. Empty for a tab that is not shown.
    pub place: Rect,
    /// The digit that opens it, where there is room for it; else empty.
    pub key: &'static str,
    /// Its title, as long as there is room for.
    pub title: &'static str,
}

/// What is at a place on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spot {
    Title(Column),
    /// A row of the table, counted from the first one shown.
    Row(usize),
    Tab(Tab),
    Detail,
    /// The hint line, and how far from its left end.
    Hints(u16),
    Nothing,
}

impl LayoutInput {
    /// Lines of a table with its rows: titles and border, too.
    fn needs(self) -> u16 {
        u16::try_from(self.rows).unwrap_or(u16::MAX).saturating_add(3)
    }
}

impl Layout {
    /// Lays out a terminal of this size.
    pub fn new(width: u16, height: u16, input: LayoutInput) -> Self {
        let screen = Rect::new(0, 0, width, height);
        let too_small = width < MIN_WIDTH || height < MIN_HEIGHT;
        let header = Rect { height: height.min(1), ..screen };
        let hints = Rect { y: height.saturating_sub(1), height: height.min(1), ..screen };
        let body = Rect { y: 1, height: height.saturating_sub(2), ..screen };
        let (list, detail) = if too_small { (None, None) } else { split(body, input) };
        Self {
            screen,
            too_small,
            header,
            hints,
            list: list.map(|frame| ListLayout::new(frame, input)),
            detail: detail.map(|frame| DetailLayout::new(frame, input)),
        }
    }

    /// How many processes can be shown.
    pub fn list_height(&self) -> usize {
        self.list.as_ref().map_or(0, |list| usize::from(list.rows.height))
    }

    /// Where a text to read, or a list to choose from, is shown at its largest.
    pub fn reader(&self) -> Rect {
        self.centred(100, self.screen.height.saturating_sub(4))
    }

    /// How many lines of it are shown.
    pub fn reader_height(&self) -> usize {
        usize::from(inside(self.reader()).height)
    }

    /// How many columns a line of it has.
    pub fn reader_width(&self) -> u16 {
        inside(self.reader()).width.saturating_sub(2)
    }

    /// Rows and columns of what a program writes, less the lines with its state.
    pub fn output_size(&self) -> (usize, u16) {
        let inside = inside(self.reader());
        (usize::from(inside.height.saturating_sub(2)), inside.width.saturating_sub(2))
    }

    /// A box in the middle of the screen, not larger than that.
    pub fn centred(&self, width: u16, height: u16) -> Rect {
        let (width, height) = (width.min(self.screen.width), height.min(self.screen.height));
        let x = (self.screen.width - width) / 2;
        let y = (self.screen.height - height) / 2;
        Rect { x, y, width, height }
    }

    pub fn spot(&self, x: u16, y: u16) -> Spot {
        let here = Position::new(x, y);
        if self.too_small {
            return Spot::Nothing;
        }
        if self.hints.contains(here) {
            return Spot::Hints(x);
        }
        if let Some(list) = &self.list {
            if list.head.contains(here) {
                let slot = list.columns.iter().find(|slot| (slot.x..slot.x + slot.width).contains(&x));
                return slot.map_or(Spot::Nothing, |slot| Spot::Title(slot.column));
            }
            if list.rows.contains(here) {
                return Spot::Row(usize::from(y - list.rows.y));
            }
        }
        if let Some(detail) = &self.detail {
            if let Some(slot) = detail.tabs.iter().find(|slot| slot.place.contains(here)) {
                return Spot::Tab(slot.tab);
            }
            if detail.body.contains(here) {
                return Spot::Detail;
            }
        }
        Spot::Nothing
    }
}

fn split(body: Rect, input: LayoutInput) -> (Option<Rect>, Option<Rect>) {
    let panes = match body.width {
        _ if input.zoomed => Panes::Single,
        60.. if body.height >= 18 => Panes::Stacked,
        160.. => Panes::Beside,
        _ => Panes::Single,
    };
    match panes {
        Panes::Single if input.detail_focused => (None, Some(body)),
        Panes::Single => (Some(body), None),
        Panes::Beside => {
            let left = body.width * 11 / 20;
            (Some(Rect { width: left, ..body }), Some(Rect { x: left, width: body.width - left, ..body }))
        }
        Panes::Stacked => {
            // The details need some ten lines to be worth looking at; the table gets no line that it cannot fill.
            let share = (body.height * 2 / 5).max(8);
            let upper = if input.rows == 0 { share } else { share.min(input.needs()) };
            let lower = Rect { y: body.y + upper, height: body.height - upper, ..body };
            (Some(Rect { height: upper, ..body }), Some(lower))
        }
    }
}

pub(super) fn inside(frame: Rect) -> Rect {
    Rect { x: frame.x + 1, y: frame.y + 1, width: frame.width.saturating_sub(2), height: frame.height.saturating_sub(2) }
}

impl ListLayout {
    fn new(frame: Rect, input: LayoutInput) -> Self {
        let inner = inside(frame);
        Self {
            frame,
            head: Rect { height: 1, ..inner },
            rows: Rect { y: inner.y + 1, height: inner.height.saturating_sub(1), ..inner },
            columns: slots(inner, input),
        }
    }
}

/// Below this, states are signs without words.
const NARROW: u16 = 46;
/// Columns of those signs, and of their title.
const SIGNS: u16 = 5;

/// Gives room to the columns that always stay, then to the others by need, then what is left to the command line, or the name.
fn slots(inner: Rect, input: LayoutInput) -> Vec<Slot> {
    const ALWAYS: [Column; 4] = [Column::Pid, Column::Name, Column::State, Column::Cpu];
    // A file uses no processor.
    let files = input.of != RowKind::Process;
    let always = &ALWAYS[..if files { 3 } else { 4 }];
    let listed = input.columns.listed();
    let of_files = [Column::Memory, Column::Command];
    // In the narrowest terminals, states are signs.
    let width = |column: Column| if column == Column::State && inner.width < NARROW { SIGNS } else { column.width() };
    let mut chosen: Vec<_> = always.iter().copied().filter(|column| listed.contains(column)).collect();
    // One blank before each column, and one at the end.
    let mut free = inner.width.saturating_sub(1 + chosen.iter().map(|column| width(*column) + 1).sum::<u16>());
    for column in Column::BY_NEED {
        if !listed.contains(&column)
            || column == Column::Container && !input.containers
            || column.is_watched() && !input.watching && input.columns == Columns::ALL
            || files && !of_files.contains(&column)
        {
            continue;
        }
        if column.width() < free {
            free -= column.width() + 1;
            chosen.push(column);
        }
    }
    chosen.compact_sort_by_key(|column| listed.iter().position(|other| other == column));
    let trend = if free > Trend::WIDTH && chosen.contains(&Column::Cpu) { Trend::WIDTH + 1 } else { 0 };
    free -= trend;
    let has_command = chosen.contains(&Column::Command);
    // A wide terminal shows longer names, too.
    let name = if has_command { (free / 4).min(16) } else { free };
    let mut x = inner.x + 1;
    let mut slots = Vec::with_capacity(chosen.len());
    for column in chosen {
        let more = match column {
            Column::Name => name,
            Column::Command => free - name,
            Column::Cpu => trend,
            _ => 0,
        };
        let width = width(column) + more;
        slots.push(Slot { column, x, width });
        x += width + 1;
    }
    slots
}

impl DetailLayout {
    fn new(frame: Rect, input: LayoutInput) -> Self {
        let shown: Vec<Tab> = Tab::ALL.into_iter().filter(|tab| tab.is_shown(input.of)).collect();
        let mut bar = TabBar { lengths: [0; Tab::ALL.len()], blanks: 1, with_keys: true, of: input.of };
        // A line in front of each tab, and behind the last; and the corners.
        let fits = |bar: &TabBar| shown.iter().map(|tab| bar.width(*tab) + 1).sum::<u16>() + 2 <= frame.width;
        if !fits(&bar) {
            bar.blanks = 0;
        }
        // Where not all titles have room, the longest become shorter; where they would be letters, it is better to do without keys.
        while !fits(&bar) {
            let least = if bar.with_keys { LETTERS - 1 } else { LETTERS };
            let shorter = shown.iter().filter(|tab| bar.lengths[**tab as usize] < least);
            let length = |tab: &&Tab| (bar.title(**tab).len(), LETTERS - bar.lengths[**tab as usize]);
            match shorter.max_by_key(length) {
                Some(longest) => bar.lengths[*longest as usize] += 1,
                None if bar.with_keys => bar = TabBar { lengths: [0; Tab::ALL.len()], with_keys: false, ..bar },
                None => break,
            }
        }
        let (left, right) = (frame.x + 1 + bar.blanks, frame.right().saturating_sub(1));
        // The open tab is always seen.
        let open = shown.iter().position(|tab| *tab == input.tab).unwrap_or(0);
        let is_seen = |first: &usize| left + shown[*first..=open].iter().map(|tab| bar.width(*tab) + 1).sum::<u16>() <= right + 1;
        let first = (0..open).find(is_seen).unwrap_or(open);
        let mut x = left;
        let tabs = Tab::ALL.map(|tab| {
            let key = if bar.with_keys { bar.key(tab) } else { "" };
            if !shown[first..].contains(&tab) {
                return TabSlot { tab, place: Rect::new(x.min(right), frame.y, 0, 0), key: "", title: "" };
            }
            let width = bar.width(tab);
            let place = Rect::new(x.min(right), frame.y, width.min(right.saturating_sub(x)), 1);
            x += width + 1;
            TabSlot { tab, place, key, title: bar.title(tab) }
        });
        Self { frame, body: inside(frame), tabs }
    }
}

/// How the tabs are written.
struct TabBar {
    /// Which title of each tab.
    lengths: [usize; Tab::ALL.len()],
    /// Blanks around each.
    blanks: u16,
    /// Whether those that have a digit show it.
    with_keys: bool,
    of: RowKind,
}

impl TabBar {
    fn title(&self, tab: Tab) -> &'static str {
        match (tab.titles(), self.lengths[tab as usize]) {
            ([.., short], LETTERS) => &short[..2],
            (titles, length) => titles[length],
        }
    }

    /// The digit of a tab; empty where it has none.
    fn key(&self, tab: Tab) -> &'static str {
        Some(tab.key(self.of)).filter(|key| key.len() == 1).unwrap_or_default()
    }

    fn width(&self, tab: Tab) -> u16 {
        let key = if self.with_keys && !self.key(tab).is_empty() { 1 + self.blanks } else { 0 };
        width(self.title(tab)) + key + 2 * self.blanks
    }
}

/// In place of a title of a tab, its first two letters.
const LETTERS: usize = 3;

#[cfg(test)]
pub(super) mod tests;
