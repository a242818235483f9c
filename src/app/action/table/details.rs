//! Actions of several tabs of the details pane. Those of a single tab are in its module.

use crate::app::action::Run::{Digit, Do, Emit};
use crate::app::action::places::{DETAIL, LISTED, OVERVIEW, PLAIN_PANES, ROWS, SIDEWAYS, TRACE, TREES};
use crate::app::action::{Action, BACK_TAB, ENTER, ESC, Entry, FILTER, Key, LEFT, RIGHT, TAB, char, details, status};
use crate::app::cursor::Neighbor::{Next, Previous};
use crate::app::state::State;
use crate::app::update::{panes, process};

pub(super) const ENTRIES: &[Entry] = &[
    details(Action::Back, &[ESC, char('q')], "back", "Focus the process list.", DETAIL, Emit(panes::back)).hint(85),
    details(Action::NextTab, &[TAB, RIGHT], "tabs", "Next tab.", PLAIN_PANES, Do(|state| panes::switch_tab(state, Next))).hint(84),
    details(Action::PreviousTab, &[BACK_TAB, LEFT], "tabs", "Previous tab.", PLAIN_PANES, Do(|state| panes::switch_tab(state, Previous))),
    details(Action::NextTab, &[TAB], "tabs", "Next tab.", SIDEWAYS, Do(|state| panes::switch_tab(state, Next))).hint(84),
    details(Action::PreviousTab, &[BACK_TAB], "tabs", "Previous tab.", SIDEWAYS, Do(|state| panes::switch_tab(state, Previous))),
    details(Action::Digit, &[Key::Digit], "tab", "Open the tab with this digit.", DETAIL, Digit(panes::open_tab_by_digit)),
    details(Action::Search, &[char('/')], "filter", FILTER, LISTED, Do(panes::filter_tab)).hint(80),
    details(Action::Filter, &[char('/')], "processes", "Filter the process list.", OVERVIEW.and(TRACE), Do(panes::filter_processes)),
    details(Action::Open, &[ENTER], "expand", "Expand or collapse the row.", TREES, Do(State::toggle_row)).hint(84),
    details(
        Action::SortRight,
        &[char('>')],
        "sort",
        "Sort by the next column.",
        LISTED,
        Do(|state| state.sort_tab_by_adjacent_column(Next)),
    )
    .hint(40)
    .when(status::sortable),
    details(
        Action::SortLeft,
        &[char('<')],
        "sort",
        "Sort by the previous column.",
        LISTED,
        Do(|state| state.sort_tab_by_adjacent_column(Previous)),
    )
    .when(status::sortable),
    details(Action::Reverse, &[char('r')], "reverse", "Reverse the sort order.", LISTED, Do(State::reverse_tab_sort))
        .when(status::sortable),
    details(Action::RecordTab, &[ENTER], "record", "Record what the tab shows.", ROWS, Emit(process::record_tab))
        .hint(99)
        .changing()
        .when(status::record_tab),
];
