//! The details of a process.

use super::{BACK_TAB, BACKSPACE, ENTER, ESC, FILTER, LEFT, RIGHT, TAB};
use crate::app::action::Run::{Ask, Digit, Do};
use crate::app::action::key::char;
use crate::app::action::places::{
    ALLOCATED_TYPES, ALLOCATION_TREE, COLLECTIONS, COMPARE, COUNTERS, DETAIL, ENVIRONMENT, EVENTS, EXCEPTIONS, FLAT_METHODS, HEAP, JOBS,
    LISTED, METHODS, OVERVIEW, PLAIN_PANES, ROWS, SIDEWAYS, SLOWDOWN, TRACE, TREES,
};
use crate::app::action::{Action, Entry, Key, details, status, view_status};
use crate::app::cursor::Neighbour::{Next, Previous};
use crate::app::state::State;
use crate::app::update::{comparison, heap, panes, process, watching};

pub(super) const ENTRIES: &[Entry] = &[
    details(Action::Back, &[ESC, char('q')], "back", "Focus the process list.", DETAIL, Ask(panes::back)).hint(85),
    details(Action::NextTab, &[TAB, RIGHT], "tabs", "Next tab.", PLAIN_PANES, Do(|state| panes::turn(state, Next))).hint(84),
    details(Action::PreviousTab, &[BACK_TAB, LEFT], "tabs", "Previous tab.", PLAIN_PANES, Do(|state| panes::turn(state, Previous))),
    details(Action::NextTab, &[TAB], "tabs", "Next tab.", SIDEWAYS, Do(|state| panes::turn(state, Next))).hint(84),
    details(Action::PreviousTab, &[BACK_TAB], "tabs", "Previous tab.", SIDEWAYS, Do(|state| panes::turn(state, Previous))),
    details(Action::Digit, &[Key::Digit], "tab", "Open the tab with this digit.", DETAIL, Digit(panes::turn_to_digit)),
    details(Action::Search, &[char('/')], "filter", FILTER, LISTED, Do(panes::filter_tab)).hint(80),
    details(Action::Reveal, &[char('v')], "reveal", "Show or hide the selected secret value.", ENVIRONMENT, Do(panes::reveal))
        .hint(82)
        .when(view_status::reveal),
    details(Action::Filter, &[char('/')], "processes", "Filter the process list.", OVERVIEW.and(TRACE), Do(panes::filter_processes)),
    details(
        Action::Waiting,
        &[char('w')],
        "waiting",
        "Include or exclude waiting threads.",
        METHODS,
        Do(|state| state.views.sampling.toggle_waiting()),
    )
    .hint(82)
    .when(view_status::waiting),
    details(Action::Shape, &[char('f')], "tree/flame", "Switch between list, call tree and flame graph.", METHODS, Do(State::next_shape))
        .hint(83)
        .when(view_status::samples),
    details(
        Action::Shape,
        &[char('f')],
        "call tree",
        "Switch between types, what throws the selected type, and what throws all.",
        EXCEPTIONS,
        Do(State::next_throw_tree),
    )
    .hint(83)
    .when(view_status::thrown),
    details(
        Action::Shape,
        &[char('f')],
        "single events",
        "Switch between event types and single events.",
        EVENTS,
        Do(State::toggle_single_events),
    )
    .hint(83)
    .when(view_status::recorded),
    details(Action::Open, &[ENTER], "open", "Show the event's fields, or the events of the type.", EVENTS, Do(State::enter_event))
        .hint(84)
        .when(view_status::recorded),
    details(Action::Threads, &[char('s')], "threads", "Choose a thread.", METHODS, Do(State::toggle_threads))
        .hint(81)
        .when(view_status::samples),
    details(Action::Open, &[ENTER], "zoom in", "Zoom in, or show the methods of the thread.", FLAT_METHODS, Do(State::enter_sampling))
        .hint(84)
        .when(view_status::enter_sampling),
    details(Action::Open, &[ENTER], "expand", "Expand or collapse the row.", TREES, Do(State::toggle_row)).hint(84),
    details(
        Action::Callers,
        &[char('c')],
        "callers",
        "Show the callers of the selected method, or go back.",
        METHODS,
        Do(State::toggle_callers),
    )
    .hint(79)
    .when(view_status::callers),
    details(Action::Widen, &[BACKSPACE], "zoom out", "Zoom out, back from callers, or to all threads.", METHODS, Do(State::widen))
        .hint(83)
        .when(view_status::widen),
    details(Action::Open, &[ENTER], "collapse", "Collapse or expand a provider.", COUNTERS, Do(State::fold_counters))
        .hint(83)
        .when(view_status::counters),
    details(Action::Meters, &[char('m')], "meters", "Watch or unwatch all meters (.NET 9).", COUNTERS, Ask(watching::toggle_meters))
        .hint(82)
        .changing()
        .when(status::meters),
    details(Action::SortRight, &[char('>')], "sort", "Sort by the next column.", LISTED, Do(|state| state.sort_tab_beside(Next)))
        .hint(40)
        .when(view_status::sortable),
    details(Action::SortLeft, &[char('<')], "sort", "Sort by the previous column.", LISTED, Do(|state| state.sort_tab_beside(Previous)))
        .when(view_status::sortable),
    details(Action::Reverse, &[char('r')], "reverse", "Reverse the sort order.", LISTED, Do(State::reverse_tab))
        .when(view_status::sortable),
    details(Action::RecordTab, &[ENTER], "record", "Record what the tab shows.", ROWS, Ask(process::record_tab))
        .hint(99)
        .changing()
        .when(status::record_tab),
    details(
        Action::Shape,
        &[char('f')],
        "allocations",
        "Switch between collections and allocated types.",
        COLLECTIONS,
        Do(State::toggle_allocations),
    )
    .hint(83)
    .when(view_status::allocations),
    details(Action::Open, &[ENTER], "call tree", "Show where the type is allocated.", ALLOCATED_TYPES, Do(State::open_allocation_tree))
        .hint(84),
    details(
        Action::Widen,
        &[BACKSPACE],
        "types",
        "Back to the allocated types.",
        ALLOCATION_TREE,
        Do(|state| {
            state.leave_allocation_tree();
        }),
    )
    .hint(83),
    details(Action::Open, &[ENTER], "why", "Show what is behind the selected finding.", OVERVIEW, Ask(panes::open_finding))
        .hint(86)
        .when(view_status::finding),
    details(Action::Open, &[ENTER], "open", "Open the tab of the selected cause.", SLOWDOWN, Do(State::open_cause))
        .hint(84)
        .when(view_status::recorded),
    details(Action::Open, &[ENTER], "paths", "Show or hide what keeps the type alive.", HEAP, Do(State::toggle_heap_paths))
        .hint(84)
        .when(status::walked_heap),
    details(
        Action::Shape,
        &[char('f')],
        "difference",
        "Switch between the last walk and its difference to the one before.",
        HEAP,
        Do(State::toggle_heap_difference),
    )
    .hint(83)
    .when(status::walked_twice),
    details(
        Action::WriteHeap,
        &[char('o')],
        "write file",
        "Write the objects of the last walk to a .gcdump file.",
        HEAP,
        Ask(heap::file_form),
    )
    .hint(82)
    .when(status::write_heap),
    details(
        Action::Shape,
        &[char('f')],
        "next subject",
        "Show the figures of the next subject only, or all.",
        COMPARE,
        Do(comparison::next_subject),
    )
    .hint(83)
    .when(view_status::compared),
    details(Action::Swap, &[char('X')], "swap", "Swap before and after.", COMPARE, Do(comparison::swap))
        .hint(82)
        .when(view_status::compared),
    details(Action::Open, &[ENTER], "go to", "Go to the process, or show the output of a program.", JOBS, Do(panes::open_job))
        .hint(80)
        .when(status::jobs),
];
