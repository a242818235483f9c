//! Decoding of complete control sequences.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

pub(super) fn key(code: KeyCode) -> Event {
    modified(code, KeyModifiers::NONE)
}

pub(super) fn modified(code: KeyCode, mut modifiers: KeyModifiers) -> Event {
    if code == KeyCode::BackTab || matches!(code, KeyCode::Char(c) if c.is_uppercase()) {
        modifiers |= KeyModifiers::SHIFT;
    }
    Event::Key(KeyEvent::new(code, modifiers))
}

/// Decodes ESC [, parameters and a final byte. Unknown sequences are ignored: answers to queries of other programs, keys without a function here.
pub(super) fn control_sequence(parameters: &[u8], last: u8) -> Option<Event> {
    let parameters = std::str::from_utf8(parameters).ok()?;
    if let Some(report) = parameters.strip_prefix('<') {
        let mut numbers = report.split(';').map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten();
        return mouse(next()?, next()?, next()?, last == b'm').filter(|_| matches!(last, b'M' | b'm'));
    }
    let mut numbers = parameters.split(';').map(|number| number.parse::<u8>().ok());
    let first = numbers.next().flatten();
    // 1 plus a bit each for Shift, Alt and Ctrl.
    let bits = numbers.next().flatten().unwrap_or(1).saturating_sub(1);
    let code = match (last, first) {
        // Enter with a modifier, if the terminal distinguishes it (kitty's "CSI u", xterm's modifyOtherKeys).
        (b'u', Some(13)) => KeyCode::Enter,
        (b'~', Some(27)) if numbers.next() == Some(Some(13)) => KeyCode::Enter,
        (b'Z', _) => KeyCode::BackTab,
        // With other numbers, R reports the cursor position.
        (b'P'..=b'S', None | Some(1)) => KeyCode::F(last - b'P' + 1),
        (b'~', Some(number)) => match number {
            1 | 7 => KeyCode::Home,
            2 => KeyCode::Insert,
            3 => KeyCode::Delete,
            4 | 8 => KeyCode::End,
            5 => KeyCode::PageUp,
            6 => KeyCode::PageDown,
            11..=15 => KeyCode::F(number - 10),
            17..=21 => KeyCode::F(number - 11),
            23..=24 => KeyCode::F(number - 12),
            _ => return None,
        },
        _ => cursor_key(last)?,
    };
    Some(modified(code, modifiers(bits.into())))
}

pub(super) fn cursor_key(last: u8) -> Option<KeyCode> {
    Some(match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        _ => return None,
    })
}

/// Decodes a mouse report. Columns and rows count from 1.
pub(super) fn mouse(button: u16, column: u16, row: u16, released: bool) -> Option<Event> {
    let is_motion = button & 0b10_0000 != 0;
    let pressed = match button & 0b1100_0011 {
        0 => Some(MouseButton::Left),
        1 => Some(MouseButton::Middle),
        2 => Some(MouseButton::Right),
        _ => None,
    };
    let kind = match (button & 0b1100_0011, pressed) {
        (0b100_0000, _) => MouseEventKind::ScrollUp,
        (0b100_0001, _) => MouseEventKind::ScrollDown,
        (_, Some(pressed)) if released => MouseEventKind::Up(pressed),
        (_, Some(pressed)) if is_motion => MouseEventKind::Drag(pressed),
        (_, Some(pressed)) => MouseEventKind::Down(pressed),
        // The normal encoding does not report which button was released.
        (0b11, _) if released && !is_motion => MouseEventKind::Up(MouseButton::Left),
        // Motion without a button and horizontal scrolling are ignored.
        _ => return None,
    };
    let (column, row) = (column.checked_sub(1)?, row.checked_sub(1)?);
    Some(Event::Mouse(MouseEvent { kind, column, row, modifiers: modifiers(button >> 2) }))
}

/// Decodes a bit each for Shift, Alt and Ctrl.
fn modifiers(bits: u16) -> KeyModifiers {
    let held = [(0b1, KeyModifiers::SHIFT), (0b10, KeyModifiers::ALT), (0b100, KeyModifiers::CONTROL)];
    held.into_iter().filter(|(bit, _)| bits & bit != 0).map(|(_, modifier)| modifier).collect()
}
