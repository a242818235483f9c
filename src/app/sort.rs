//! Sort orders of lists.

use std::cmp::Ordering;

use super::list::Column;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

impl Direction {
    pub(super) fn reversed(self) -> Self {
        match self {
            Self::Ascending => Self::Descending,
            Self::Descending => Self::Ascending,
        }
    }

    /// Orders two values by their ascending order, and by whether each is unknown: unknown values come last in either direction.
    pub(super) fn order(self, ascending: Ordering, unknown: [bool; 2]) -> Ordering {
        let order = match self {
            Self::Ascending => ascending,
            Self::Descending => ascending.reverse(),
        };
        unknown[0].cmp(&unknown[1]).then(order)
    }
}

/// The sort order of a list: a column of the process table, or the title of a column of a tab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort<C = Column> {
    pub column: C,
    pub direction: Direction,
}

impl Default for Sort {
    fn default() -> Self {
        Self { column: Column::Cpu, direction: Direction::Descending }
    }
}

impl Sort {
    /// Parses a column name with an optional direction if it is not the default: `cpu`, `name:desc`.
    ///
    /// # Errors
    /// A sentence that describes the problem.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, direction) = text.split_once(':').map_or((text, None), |(name, direction)| (name, Some(direction)));
        let column = Column::named(name)?;
        let direction = match direction {
            None => column.first_direction(),
            Some("asc") => Direction::Ascending,
            Some("desc") => Direction::Descending,
            Some(other) => return Err(format!("unknown direction '{}': expected asc or desc", other.escape_debug())),
        };
        Ok(Self { column, direction })
    }
}
