//! Actions of the process list.

use crossterm::event::KeyCode;

use crate::app::Focus;
use crate::app::action::Run::{Digit, Do, Emit};
use crate::app::action::places::{LIST, PANES};
use crate::app::action::{Action, ENTER, ESC, Entry, FILTER, Key, char, status, table};
use crate::app::cursor::Neighbor::{Next, Previous};
use crate::app::update::panes;

pub(super) const ENTRIES: &[Entry] = &[
    table(Action::Open, &[ENTER], "details", "Focus details.", LIST, Do(|state| state.focus = Focus::Detail))
        .hint(85)
        .when(status::selected),
    table(Action::Filter, &[char('/')], "filter", FILTER, LIST, Do(panes::filter_processes)).hint(75),
    table(Action::Back, &[ESC], "clear", "Clear the filter, dismiss an error, or go back to the processes.", LIST, Emit(panes::back))
        .hint(70)
        .when(status::clear)
        .label_now(
            |state| if state.saved_process_view.is_some() && state.list.filter().as_str().is_empty() { "processes" } else { "clear" },
        ),
    table(
        Action::SortRight,
        &[char('>')],
        "sort",
        "Sort by the next column.",
        LIST,
        Do(|state| panes::sort_by_adjacent_column(state, Next)),
    )
    .hint(40),
    table(
        Action::SortLeft,
        &[char('<')],
        "sort",
        "Sort by the previous column.",
        LIST,
        Do(|state| panes::sort_by_adjacent_column(state, Previous)),
    ),
    table(Action::Reverse, &[char('r')], "reverse", "Reverse the sort order.", LIST, Do(|state| state.list.reverse())),
    table(
        Action::Tag,
        &[char('s')],
        "tag",
        "Tag or untag the process; trace, profiles, why slow and watch act on all tagged.",
        LIST,
        Do(|state| state.list.toggle_tag()),
    )
    .hint(30)
    .when(status::selected),
    table(Action::ClearTags, &[char('U')], "untag", "Untag all processes.", LIST, Do(|state| state.list.clear_tags())).when(status::tagged),
    table(
        Action::Tree,
        &[char('H')],
        "tree",
        "Switch between a tree of processes and a flat list.",
        LIST,
        Do(|state| state.list.toggle_tree()),
    ),
    table(Action::Digit, &[Key::Digit], "sort by", "Sort by the nth column; again: reverse.", LIST, Digit(panes::sort_by_digit)),
    table(
        Action::Refresh,
        &[Key::Plain(KeyCode::F(5)), Key::Ctrl('r')],
        "refresh",
        "Refresh now; read a recorded file again.",
        PANES,
        Emit(panes::refresh),
    )
    .when(status::refresh),
];
