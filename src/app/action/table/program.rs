//! Actions of recorded files, navigation, and the program itself.

use crossterm::event::KeyCode;

use crate::app::action::Run::{Do, Emit, InFile, Move};
use crate::app::action::places::{EVERYWHERE, FIELDS, FLAME, LINE, LIST, PAGED, PALETTE, PANES, PICK, STEPPED, TREES};
use crate::app::action::{
    Action, DOWN, END, Entry, F1, HOME, Key, LEFT, PAGE_DOWN, PAGE_UP, RIGHT, UP, char, files, moves, program, status,
};
use crate::app::cursor::Neighbor::{Next, Previous};
use crate::app::cursor::Step;
use crate::app::update::{comparison, files as ranges, leaving, overlays, panes};
use crate::app::{Effect, FileUse, OpenFile, State};

pub(super) const ENTRIES: &[Entry] = &[
    // Recorded files.
    files(Action::Earlier, &[char('[')], "earlier", "Move range end back.", InFile(|file| file.step(-1))).hint(70),
    files(Action::Later, &[char(']')], "later", "Move range end forward.", InFile(|file| file.step(1))).hint(69),
    files(Action::MuchEarlier, &[char('{')], "earlier", "Move range end far back.", InFile(|file| file.step(-10))),
    files(Action::MuchLater, &[char('}')], "later", "Move range end far forward.", InFile(|file| file.step(10))),
    files(Action::Mark, &[char('b')], "range start", "Set range start here, or back to the beginning.", InFile(OpenFile::set_mark))
        .hint(68),
    files(Action::Whole, &[char('B')], "whole file", "Show the whole file.", InFile(OpenFile::reset_range)).hint(67),
    files(Action::Compare, &[char('=')], "compare", "Compare the shown range with another range or file.", Emit(comparison::choose))
        .hint(64)
        .when(status::comparable),
    // Navigation.
    moves(Action::Up, &[UP, char('k')], "up", "One line up.", STEPPED, Move(Step::By(-1))),
    moves(Action::Down, &[DOWN, char('j')], "down", "One line down.", STEPPED, Move(Step::By(1))),
    moves(
        Action::Left,
        &[LEFT],
        "left",
        "Select the frame to the left.",
        FLAME,
        Do(|state| state.select_frame(|graph| graph.beside(Previous))),
    ),
    moves(
        Action::Right,
        &[RIGHT],
        "right",
        "Select the frame to the right.",
        FLAME,
        Do(|state| state.select_frame(|graph| graph.beside(Next))),
    ),
    moves(Action::Left, &[LEFT], "collapse", "Collapse the row, or go to its caller.", TREES, Do(State::step_out_of_row)),
    moves(Action::Right, &[RIGHT], "expand", "Expand the row, or go to its first callee.", TREES, Do(State::step_into_row)),
    moves(Action::Up, &[UP], "up", "One line up.", LINE.and(PALETTE), Move(Step::By(-1))),
    moves(Action::Down, &[DOWN], "down", "One line down.", LINE.and(PALETTE), Move(Step::By(1))),
    moves(Action::PageUp, &[PAGE_UP, Key::Ctrl('b')], "page up", "One page up.", PAGED, Move(Step::Page(-1))),
    moves(Action::PageDown, &[PAGE_DOWN, Key::Ctrl('f')], "page down", "One page down.", PAGED, Move(Step::Page(1))),
    moves(Action::First, &[HOME, char('g')], "first", "To the first line.", STEPPED, Move(Step::First)),
    moves(Action::Last, &[END, char('G')], "last", "To the last line.", STEPPED, Move(Step::Last)),
    // The program.
    program(Action::Pause, &[char(' ')], "pause", "Pause the display; recordings continue.", PANES, Do(panes::pause))
        .hint(35)
        .when(status::pause)
        .label_now(|state| if state.pause.is_some() { "continue" } else { "pause" }),
    program(Action::Zoom, &[char('z')], "zoom", "Maximize or restore the pane.", PANES, Do(|state| state.zoomed = !state.zoomed)).hint(20),
    program(
        Action::Palette,
        &[char(':')],
        "find",
        "Find an action, a tab, a profile, a theme, a process or a recorded file by name.",
        PANES,
        Emit(ranges::open_palette),
    )
    .hint(25),
    program(
        Action::OpenFile,
        &[char('L')],
        "open file",
        "Open a recorded file or a heap file, of this run or in the current folder.",
        PANES,
        Emit(|state| ranges::find(state, FileUse::Open)),
    )
    .hint(22),
    program(Action::Messages, &[char('!')], "messages", "Show the message history.", PANES, Do(panes::messages)).hint(15),
    program(
        Action::OwnLog,
        &[char('l')],
        "log of dn-top",
        "Show the log of dn-top: requests, sessions, recordings.",
        PANES,
        Emit(overlays::open_log),
    ),
    program(
        Action::FrameStats,
        &[Key::Plain(KeyCode::F(12))],
        "frame times",
        "Show frame times, frame sizes and queued messages.",
        PANES,
        Do(panes::toggle_frame_stats),
    ),
    program(Action::Help, &[char('?'), F1], "more", "Show all keys, those of this view first.", PANES, Do(State::open_help)).hint(100),
    program(
        Action::Help,
        &[char('?'), F1],
        "more",
        "Show all keys, those of this view first.",
        PICK.and(FIELDS).and(PALETTE),
        Do(State::open_help),
    ),
    program(Action::Quit, &[char('q')], "quit", "Quit.", LIST, Emit(leaving::quit)).hint(30),
    program(Action::Interrupt, &[Key::Ctrl('c')], "quit", "Quit from anywhere.", EVERYWHERE, Emit(leaving::interrupt)),
    program(
        Action::Suspend,
        &[Key::Ctrl('z')],
        "suspend",
        "Suspend dn-top; fg in the shell resumes it.",
        EVERYWHERE,
        Emit(|_| vec![Effect::Suspend]),
    ),
    program(Action::Redraw, &[Key::Ctrl('l')], "redraw", "Redraw the screen.", EVERYWHERE, Emit(|_| vec![Effect::Redraw])),
];
