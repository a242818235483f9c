//! Table cells.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Display;
use std::time::Duration;

use super::{Role, Sign};
use crate::analysis::ThreadId;
use crate::app::action::Key;
use crate::app::{Branch, Direction};
use crate::model::{ByteRate, Bytes, Count, CountRate, Nanoseconds, Percent, SafeText, Stopwatch};

#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Text(SafeText, Role),
    /// A quantity and its formatted text.
    Number(f64, SafeText, Role),
    /// Text with several roles.
    Pieces(Vec<(SafeText, Role)>),
    /// An unknown value.
    Unknown,
    Signed(Vec<(Sign, Role)>, SafeText, Role),
    /// Values over time in eighths, the newest at the right; 0 where there is none.
    Levels([u8; 6], Role),
    /// Parts of a whole, left to right.
    Meter(Vec<(f64, Role)>),
    /// Values over time, the newest at the right; NaN where there is none.
    Bars(Vec<f64>, Role),
    Sign(Sign, Role),
    /// Whether the row is chosen.
    Check(bool),
    Key(Key),
    /// Text that is neither shown nor matched by filters.
    Masked,
    Node(Branch, SafeText, Role),
}

/// A value shown in a cell. Columns of quantities are sorted by quantity, all others by text.
pub trait CellValue: Display {
    /// Returns the quantity, in the same unit for all rows of a column; `None` for text.
    fn quantity(&self) -> Option<f64> {
        None
    }
}

impl Cell {
    pub const EMPTY: Self = Self::Pieces(Vec::new());

    pub(in crate::app) fn new(value: impl CellValue, role: Role) -> Self {
        let text = SafeText::from(value.to_string());
        match value.quantity() {
            Some(quantity) => Self::Number(quantity, text, role),
            None => Self::Text(text, role),
        }
    }

    pub fn into_text(self) -> SafeText {
        match self {
            Self::Text(text, _) | Self::Number(_, text, _) | Self::Node(_, text, _) | Self::Signed(_, text, _) => text,
            Self::Pieces(pieces) => joined(&pieces),
            Self::Unknown
            | Self::Levels(..)
            | Self::Meter(_)
            | Self::Bars(..)
            | Self::Sign(..)
            | Self::Check(_)
            | Self::Key(_)
            | Self::Masked => SafeText::default(),
        }
    }

    /// Creates a cell for an optional value; empty if `None`.
    pub(in crate::app) fn known<T: CellValue>(value: Option<T>, role: Role) -> Self {
        value.map_or(Self::EMPTY, |value| Self::new(value, role))
    }

    pub(super) fn into_sort_key(self) -> SortKey {
        match self {
            Self::Number(quantity, ..) if !quantity.is_nan() => SortKey::Quantity(quantity),
            cell => match cell.into_text() {
                text if text.is_empty() => SortKey::Unknown,
                text => SortKey::Text(text.to_lowercase()),
            },
        }
    }
}

/// Converts nanoseconds since the session started.
pub(super) fn at(nanoseconds: i64) -> Stopwatch {
    Stopwatch(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0)))
}

/// Returns a duration as a quantity.
pub(super) fn nanoseconds(time: Duration) -> Nanoseconds {
    Nanoseconds(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// Concatenates the pieces.
pub fn joined(pieces: &[(SafeText, Role)]) -> SafeText {
    pieces.iter().map(|(text, _)| text.as_str()).collect::<String>().into()
}

#[derive(Debug, PartialEq, PartialOrd)]
pub(super) enum SortKey {
    Quantity(f64),
    /// Text in lower case.
    Text(String),
    /// A cell without a value: sorted last in either direction.
    Unknown,
}

impl SortKey {
    pub(super) fn compare(&self, other: &Self, direction: Direction) -> Ordering {
        let ascending = self.partial_cmp(other).unwrap_or(Ordering::Equal);
        direction.order(ascending, [self, other].map(|key| *key == Self::Unknown))
    }
}

impl<T: CellValue + ?Sized> CellValue for &T {
    fn quantity(&self) -> Option<f64> {
        (**self).quantity()
    }
}

macro_rules! quantity {
    ($($kind:ty => $value:expr),* $(,)?) => {
        $(impl CellValue for $kind {
            fn quantity(&self) -> Option<f64> {
                let value: fn(&$kind) -> f64 = $value;
                Some(value(self))
            }
        })*
    };
}

impl CellValue for str {}
impl CellValue for String {}
impl CellValue for SafeText {}
impl CellValue for Cow<'_, str> {}

quantity! {
    u8 => |value| f64::from(*value),
    u16 => |value| f64::from(*value),
    u32 => |value| f64::from(*value),
    u64 => |value| *value as f64,
    usize => |value| *value as f64,
    f64 => |value| *value,
    Count => |value| value.0 as f64,
    Bytes => |value| value.0 as f64,
    Nanoseconds => |value| value.0 as f64,
    CountRate => |value| value.0,
    ByteRate => |value| value.0,
    Percent => |value| value.0,
    Stopwatch => |value| value.0.as_secs_f64(),
    ThreadId => |value| value.thread as f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_sorted_by_value_and_unknown_ones_are_last() {
        let cells = || {
            [Cell::new(Bytes(900), Role::Text), Cell::EMPTY, Cell::new(Bytes(1_200_000), Role::Text), Cell::new(Bytes(15_000), Role::Text)]
        };
        for (direction, expected) in
            [(Direction::Descending, ["1.2 MB", "15.0 kB", "900 B", ""]), (Direction::Ascending, ["900 B", "15.0 kB", "1.2 MB", ""])]
        {
            let mut rows: Vec<_> = cells().into_iter().map(|cell| (cell.clone().into_sort_key(), cell.into_text())).collect();
            rows.sort_by(|(a, _), (b, _)| a.compare(b, direction));
            assert_eq!(rows.into_iter().map(|(_, text)| text).collect::<Vec<_>>(), expected);
        }
        let key = |text: &str| Cell::new(text, Role::Text).into_sort_key();
        assert_eq!(key("alpha").compare(&key("Beta"), Direction::Ascending), Ordering::Less);
    }
}
