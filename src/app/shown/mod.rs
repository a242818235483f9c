//! What is to be seen, worked out from the state: lists as they are filtered and sorted, and what is selected in them.

mod advice;
mod flame;
mod lists;
mod palette;
mod samples;
mod unwatched;
