//! Actions of dialogs, lists and text fields.

use crate::app::action::Run::{Do, Emit, InForm};
use crate::app::action::places::{ENDING, FIELDS, FORM, FORM_TEXT, LINE, LISTS, PALETTE, PICK, PICK_MANY, READER};
use crate::app::action::{Action, BACK_TAB, DOWN, ENTER, ESC, Entry, F1, FILTER, Key, LEFT, RIGHT, TAB, UP, char, dialogs, status};
use crate::app::cursor::Neighbor::{Next, Previous};
use crate::app::update::{keys, leaving, overlays};
use crate::app::{Form, Overlay, Pick};

pub(super) const ENTRIES: &[Entry] = &[
    dialogs(Action::Accept, &[ENTER], "choose", "Choose the selected row.", LISTS, Emit(overlays::accept))
        .hint(90)
        .label_now(|state| if matches!(state.overlay, Some(Overlay::List(_, Pick::Profiles(_)))) { "record" } else { "choose" }),
    dialogs(Action::Accept, &[ENTER], "next field", "Press the button; in a field: go to the next.", FIELDS, Emit(overlays::accept_form))
        .hint(90)
        .label_now(|state| state.form().map_or("next field", Form::enter_label)),
    dialogs(Action::Accept, &[ENTER], "keep", "Keep the filter.", LINE, Do(|state| state.line = None)).hint(90),
    dialogs(Action::Cancel, &[ESC], "clear", "Clear the filter.", LINE, Do(keys::clear_line)).hint(85),
    dialogs(Action::Cancel, &[ESC, char('q')], "cancel", "Cancel.", PICK.and(FORM), Do(overlays::cancel)).hint(85),
    dialogs(Action::Cancel, &[ESC], "cancel", "Cancel.", FORM_TEXT.and(PALETTE), Do(overlays::cancel)).hint(85),
    dialogs(Action::Cancel, &[ESC, char('q')], "close", "Close.", READER, Do(overlays::cancel)).hint(85),
    dialogs(Action::Help, &[char('?'), F1], "close", "Close.", READER, Do(overlays::cancel)),
    dialogs(Action::Toggle, &[char(' ')], "pick", "Pick or unpick the row.", PICK_MANY, Do(overlays::toggle)).hint(88),
    dialogs(Action::TraceForm, &[char('O')], "options", "Trace options with these profiles.", PICK_MANY, Emit(overlays::options))
        .hint(86)
        .when(status::picked_options),
    dialogs(
        Action::CopyCommand,
        &[Key::Ctrl('y')],
        "copy command",
        "Copy the equivalent command line.",
        FIELDS,
        Emit(overlays::copy_command),
    )
    .hint(84)
    .when(status::copy_command),
    dialogs(Action::Choose, &[Key::Ctrl('p')], "pick", "List the possible values.", FORM_TEXT, Do(overlays::choose))
        .hint(88)
        .when(status::choose),
    dialogs(Action::NextField, &[TAB, DOWN], "next field", "Next field.", FIELDS, InForm(|form| form.step(Next))).hint(60),
    dialogs(Action::PreviousField, &[BACK_TAB, UP], "previous", "Previous field.", FIELDS, InForm(|form| form.step(Previous))),
    dialogs(Action::Left, &[LEFT, char('h')], "change", "Previous option or button.", FORM, InForm(|form| form.change(Previous))),
    dialogs(Action::Right, &[RIGHT, char('l')], "change", "Next option or button.", FORM, InForm(|form| form.change(Next))),
    dialogs(Action::Yes, &[char('y')], "yes", "Confirm. Changes to a process also need Enter.", FORM, Emit(overlays::confirm))
        .hint(80)
        .label_now(|state| if state.form().is_some_and(Form::is_dangerous) { "go to yes" } else { "yes" }),
    dialogs(
        Action::Start,
        &[Key::CtrlEnter],
        "start",
        "Submit from any field (also Ctrl-J); if it changes a process, go to the button.",
        FIELDS,
        Emit(overlays::confirm),
    )
    .hint(89)
    .when(status::start)
    .label_now(|state| if state.form().is_some_and(Form::is_dangerous) { "go to button" } else { "start" }),
    dialogs(Action::No, &[char('n')], "no", "Cancel.", FORM, Do(overlays::cancel)),
    dialogs(Action::Search, &[char('/')], "filter", FILTER, READER.and(PICK), Do(overlays::filter)).hint(80),
    dialogs(Action::Abandon, &[char('x')], "quit now", "Quit without waiting for the rundown.", ENDING, Emit(leaving::abandon_all))
        .hint(90)
        .when(status::abandon),
];
