//! Layout of dialogs, shared by the view and mouse handling.

use ratatui::layout::{Position, Rect};

use crate::app::ScrollBar;
use crate::app::layout::{Layout, width, wrap};

use super::{Field, Form};

/// The layout of a dialog on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormLayout {
    /// Includes the border.
    pub frame: Rect,
    /// The visible questions, by index, each with its line.
    pub questions: Vec<(usize, Rect)>,
    pub labels: u16,
    /// Whether each question is followed by a line with its description.
    pub explained: bool,
    /// Shows that there are more questions than fit.
    pub scroll_bar: ScrollBar,
    /// Lines below the questions.
    pub lines: Vec<(Line, Rect)>,
    pub buttons: Vec<Rect>,
}

/// A line below the questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Help(String),
    Effect(String),
    Warning(String),
    Problem(String),
    /// The equivalent command line.
    Command(String),
}

/// Dialogs with more questions describe only the focused one.
const MAX_EXPLAINED: usize = 3;
const HELP_LINES: usize = 3;
/// Maximum number of lines of a problem and of the command line: text that was pasted must not displace the questions.
const MAX_LINES: usize = 5;
/// Maximum width of a dialog, in columns.
const MAX_WIDTH: u16 = 78;
/// Maximum width of a dialog with a command line, in columns.
const MAX_COMMAND_WIDTH: u16 = 100;
/// Blanks around a button label, and between two buttons.
const BUTTON_PADDING: u16 = 4;
const BUTTON_GAP: u16 = 2;

impl Form {
    /// Computes the layout on a screen.
    pub fn place(&self, layout: &Layout) -> FormLayout {
        let screen = layout.screen;
        let widest = if self.command_line().is_some() { MAX_COMMAND_WIDTH } else { MAX_WIDTH };
        let columns = widest.min(screen.width.saturating_sub(2));
        let room = columns.saturating_sub(4);
        let few = self.questions.len() <= MAX_EXPLAINED;
        let mut lines = self.lines(room, few);
        let questions = self.questions.len() as u16;
        let explained: u16 = if few { self.questions.iter().filter(|question| !question.about().is_empty()).count() as u16 } else { 0 };
        // If space is short, blank lines and descriptions are dropped first, then the hint line is covered, then the questions farthest from the
        // focused one are left out.
        let roomy = 2 + questions + explained + u16::from(questions > 0) + lines.len() as u16 + 2;
        let tight = 2 + questions + lines.len() as u16 + 1;
        let (height, blank) = if roomy <= screen.height - layout.hints.height { (roomy, 1) } else { (tight.min(screen.height), 0) };
        let (explained, frame) = (few && blank > 0, layout.centered(columns, height));
        let inside = Rect::new(frame.x + 2, frame.y + 1, frame.width.saturating_sub(4), frame.height.saturating_sub(2));
        let bottom = inside.bottom().saturating_sub(1 + blank);
        lines.truncate(usize::from(inside.height.saturating_sub(1)));
        let left = inside.height.saturating_sub(1 + lines.len() as u16);
        let shown = if blank > 0 { self.questions.len() } else { self.questions.len().min(left.max(1).into()) };
        let focus = if let Field::Question(at) = self.focus { at } else { 0 };
        let first = (focus + 1).saturating_sub(shown);
        let mut y = inside.y;
        let mut places = Vec::with_capacity(shown);
        for (at, question) in self.questions.iter().enumerate().skip(first).take(shown) {
            places.push((at, Rect { y, height: 1, ..inside }));
            y += 1 + u16::from(explained && !question.about().is_empty());
        }
        y += u16::from(questions > 0) * blank;
        let lines = lines.into_iter().zip(y..bottom).map(|(line, y)| (line, Rect { y, height: 1, ..inside })).collect();
        let rows = Rect { height: shown as u16, ..inside };
        let scroll_bar = ScrollBar::of_text(rows, first, self.questions.len());
        let labels = self.questions.iter().map(|question| width(question.label)).max().unwrap_or(0) + 1;
        FormLayout { frame, questions: places, labels, explained, scroll_bar, lines, buttons: self.button_places(inside) }
    }

    fn lines(&self, room: u16, few: bool) -> Vec<Line> {
        let wrapped = |text: &str, line: fn(String) -> Line| wrap(text, room).into_iter().map(line).collect::<Vec<_>>();
        let mut lines = Vec::new();
        if !few {
            // The help area has a constant height so that nothing moves.
            let help = self.help(HELP_LINES);
            match help.as_slice() {
                [one] => lines.extend(wrapped(one, Line::Help)),
                _ => lines.extend(help.into_iter().map(Line::Help)),
            }
            lines.resize(HELP_LINES, Line::Help(String::new()));
        }
        lines.extend(self.effects().iter().flat_map(|effect| wrapped(effect, Line::Effect)));
        lines.extend(self.warning().iter().flat_map(|warning| wrapped(warning, Line::Warning)));
        let bounded = |text: &str, line: fn(String) -> Line| {
            let mut all = wrap(text, room);
            if all.len() > MAX_LINES {
                all.truncate(MAX_LINES - 1);
                all.push("…".to_owned());
            }
            all.into_iter().map(line).collect::<Vec<_>>()
        };
        lines.extend(self.problem.iter().flat_map(|problem| bounded(problem, Line::Problem)));
        lines.extend(self.command_line().into_iter().flat_map(|line| bounded(line, Line::Command)));
        lines
    }

    fn button_places(&self, inside: Rect) -> Vec<Rect> {
        let widths: Vec<u16> = self.buttons().iter().map(|button| width(button) + BUTTON_PADDING).collect();
        let total = widths.iter().map(|width| width + BUTTON_GAP).sum();
        let mut x = inside.right().saturating_sub(total).max(inside.x);
        let y = inside.bottom().saturating_sub(1);
        let place = |wide: u16| {
            let place = Rect { x, y, width: wide.min(inside.right().saturating_sub(x)), height: 1 };
            x += wide + BUTTON_GAP;
            place
        };
        widths.into_iter().map(place).collect()
    }
}

impl FormLayout {
    pub fn field(&self, x: u16, y: u16) -> Option<Field> {
        let here = Position::new(x, y);
        let button = self.buttons.iter().position(|place| place.contains(here)).map(Field::Button);
        button.or_else(|| self.questions.iter().find(|(_, place)| place.contains(here)).map(|(at, _)| Field::Question(*at)))
    }
}
