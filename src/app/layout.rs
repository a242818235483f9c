//! The screen layout, shared by the view and mouse handling.

use ratatui::layout::{Position, Rect};

use super::{Column, Columns, RowKind, Tab, Trend};

pub use super::text::{width, wrap};
use crate::sorting::CompactSort;

/// The smallest supported terminal width.
pub const MIN_WIDTH: u16 = 40;
/// The smallest supported terminal height.
pub const MIN_HEIGHT: u16 = 10;

/// What the layout depends on, apart from the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayoutInput {
    pub detail_focused: bool,
    /// Whether the focused pane takes the whole screen.
    pub zoomed: bool,
    /// Whether any process is in a container.
    pub containers: bool,
    /// Whether any process is watched.
    pub watching: bool,
    pub row_kind: RowKind,
    pub tab: Tab,
    /// Number of rows to show.
    pub rows: usize,
    /// Columns to show if there is room.
    pub columns: Columns,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub screen: Rect,
    /// Whether the terminal is too small, so that nothing else in here is usable.
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
    /// Including the border.
    pub frame: Rect,
    /// The line of column titles.
    pub head: Rect,
    /// The lines of processes.
    pub rows: Rect,
    /// The columns that fit, left to right.
    pub columns: Vec<Slot>,
}

/// A column on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub column: Column,
    pub x: u16,
    pub width: u16,
}

/// The details of the selected process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetailLayout {
    /// Including the border.
    pub frame: Rect,
    /// Inside the border.
    pub body: Rect,
    /// The tabs, in the top border.
    pub tabs: Vec<TabSlot>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TabSlot {
    pub tab: Tab,
    /// Position of key and title, with spaces around them if there is room.
    pub place: Rect,
    /// The digit that opens the tab, if it fits; otherwise empty.
    pub key: &'static str,
    /// The title, as long as fits.
    pub title: &'static str,
}

/// What is at a screen position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScreenTarget {
    Title(Column),
    /// A row of the table, counted from the first visible one.
    Row(usize),
    Tab(Tab),
    Detail,
    /// The hint line, with the column from its left end.
    Hints(u16),
    Nothing,
}

impl Layout {
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

    /// Returns the number of processes that can be shown.
    pub fn list_height(&self) -> usize {
        self.list.as_ref().map_or(0, |list| usize::from(list.rows.height))
    }

    /// Returns the maximum area of a reader or pick list.
    pub fn reader(&self) -> Rect {
        self.centered(100, self.screen.height.saturating_sub(4))
    }

    /// Returns the area of the text in a reader. A blank column on each side separates it from the border.
    pub(super) fn reader_text(&self) -> Rect {
        padded(inside(self.reader()))
    }

    /// Returns a centered box, limited to the size of the screen.
    pub fn centered(&self, width: u16, height: u16) -> Rect {
        let (width, height) = (width.min(self.screen.width), height.min(self.screen.height));
        let x = (self.screen.width - width) / 2;
        let y = (self.screen.height - height) / 2;
        Rect { x, y, width, height }
    }

    pub fn target_at(&self, x: u16, y: u16) -> ScreenTarget {
        let here = Position::new(x, y);
        if self.too_small {
            return ScreenTarget::Nothing;
        }
        if self.hints.contains(here) {
            return ScreenTarget::Hints(x);
        }
        if let Some(list) = &self.list {
            if list.head.contains(here) {
                let slot = list.columns.iter().find(|slot| (slot.x..slot.x + slot.width).contains(&x));
                return slot.map_or(ScreenTarget::Nothing, |slot| ScreenTarget::Title(slot.column));
            }
            if list.rows.contains(here) {
                return ScreenTarget::Row(usize::from(y - list.rows.y));
            }
        }
        if let Some(detail) = &self.detail {
            if let Some(slot) = detail.tabs.iter().find(|slot| slot.place.contains(here)) {
                return ScreenTarget::Tab(slot.tab);
            }
            if detail.body.contains(here) {
                return ScreenTarget::Detail;
            }
        }
        ScreenTarget::Nothing
    }
}

/// Returns the areas of the table and of the details.
fn split(body: Rect, input: LayoutInput) -> (Option<Rect>, Option<Rect>) {
    match body.width {
        // The table above the details.
        60.. if body.height >= 18 && !input.zoomed => {
            // The details need about ten lines to be useful; the table gets no more lines than it has rows.
            let share = (body.height * 2 / 5).max(8);
            let upper = match u16::try_from(input.rows) {
                Ok(rows @ 1..) => share.min(rows.saturating_add(3)),
                _ => share,
            };
            let lower = Rect { y: body.y + upper, height: body.height - upper, ..body };
            (Some(Rect { height: upper, ..body }), Some(lower))
        }
        // Side by side, in a wide terminal that is too low for stacking.
        160.. if !input.zoomed => {
            let left = body.width * 11 / 20;
            (Some(Rect { width: left, ..body }), Some(Rect { x: left, width: body.width - left, ..body }))
        }
        // Only the focused pane.
        _ if input.detail_focused => (None, Some(body)),
        _ => (Some(body), None),
    }
}

/// Returns an area without its first and last column.
pub fn padded(area: Rect) -> Rect {
    Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area }
}

pub(super) fn inside(frame: Rect) -> Rect {
    Rect { x: frame.x + 1, y: frame.y + 1, width: frame.width.saturating_sub(2), height: frame.height.saturating_sub(2) }
}

impl ListLayout {
    /// Returns the lines of processes without the columns at both ends, the right one of which has the scroll bar.
    pub fn lines(&self) -> Rect {
        padded(self.rows)
    }

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

/// Below this width, states are shown as symbols without words.
const NARROW_WIDTH: u16 = 46;
/// Width of the column with state symbols.
const SYMBOLS_WIDTH: u16 = 5;

/// Allocates width to the mandatory columns first, then to others by priority; the rest goes to the command line, or to the name.
fn slots(inner: Rect, input: LayoutInput) -> Vec<Slot> {
    const ALWAYS: [Column; 4] = [Column::Pid, Column::Name, Column::State, Column::Cpu];
    // Files have no CPU use.
    let files = input.row_kind != RowKind::Process;
    let always = &ALWAYS[..if files { 3 } else { 4 }];
    let listed = input.columns.listed();
    let of_files = [Column::Memory, Column::Command];
    // In the narrowest terminals, states are symbols.
    let width = |column: Column| if column == Column::State && inner.width < NARROW_WIDTH { SYMBOLS_WIDTH } else { column.width() };
    let mut chosen: Vec<_> = always.iter().copied().filter(|column| listed.contains(column)).collect();
    // One space before each column, and one at the end.
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
    // For the whole title.
    let threads = Column::Threads.title_width() - Column::Threads.width();
    let threads = if free >= threads && chosen.contains(&Column::Threads) { threads } else { 0 };
    free -= threads;
    let has_command = chosen.contains(&Column::Command);
    // A wide terminal has room for longer names, too.
    let name = if has_command { (free / 4).min(16) } else { free };
    let mut x = inner.x + 1;
    let mut slots = Vec::with_capacity(chosen.len());
    for column in chosen {
        let more = match column {
            Column::Name => name,
            Column::Command => free - name,
            Column::Cpu => trend,
            Column::Threads => threads,
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
        let shown: Vec<Tab> = Tab::ALL.into_iter().filter(|tab| tab.is_shown(input.row_kind)).collect();
        let mut bar = TabBar { lengths: [0; Tab::ALL.len()], blanks: 1, with_keys: true, row_kind: input.row_kind };
        // A separator before each tab and after the last, and the corners.
        let fits = |bar: &TabBar| shown.iter().map(|tab| bar.width(*tab) + 1).sum::<u16>() + 2 <= frame.width;
        if !fits(&bar) {
            bar.blanks = 0;
        }
        // If not all titles fit, shorten the longest first; drop the keys before titles become two letters.
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
        // The open tab is always visible.
        let open = shown.iter().position(|tab| *tab == input.tab).unwrap_or(0);
        let is_seen = |first: &usize| left + shown[*first..=open].iter().map(|tab| bar.width(*tab) + 1).sum::<u16>() <= right + 1;
        let first = (0..open).find(is_seen).unwrap_or(open);
        let mut x = left;
        let place = |tab: &Tab| {
            let width = bar.width(*tab);
            let place = Rect::new(x.min(right), frame.y, width.min(right.saturating_sub(x)), 1);
            x += width + 1;
            TabSlot { tab: *tab, place, key: if bar.with_keys { bar.key(*tab) } else { "" }, title: bar.title(*tab) }
        };
        Self { frame, body: inside(frame), tabs: shown[first..].iter().map(place).collect() }
    }
}

/// How the tab bar is rendered.
struct TabBar {
    /// Index of the title variant of each tab.
    lengths: [usize; Tab::ALL.len()],
    /// Spaces around each title.
    blanks: u16,
    /// Whether digits are shown.
    with_keys: bool,
    row_kind: RowKind,
}

impl TabBar {
    fn title(&self, tab: Tab) -> &'static str {
        match (tab.titles(), self.lengths[tab as usize]) {
            ([.., short], LETTERS) => &short[..2],
            (titles, length) => titles[length],
        }
    }

    /// Returns the digit of a tab; empty if it has none.
    fn key(&self, tab: Tab) -> &'static str {
        Some(tab.key(self.row_kind)).filter(|key| key.len() == 1).unwrap_or_default()
    }

    fn width(&self, tab: Tab) -> u16 {
        let key = if self.with_keys && !self.key(tab).is_empty() { 1 + self.blanks } else { 0 };
        width(self.title(tab)) + key + 2 * self.blanks
    }
}

/// Title variant that is a tab's first two letters.
const LETTERS: usize = 3;

#[cfg(test)]
pub(super) mod tests;
