//! Scripted sessions: the analyses must find what the script wrote.

mod comparison;
mod counters;
mod events;
mod gc;
mod heap;
mod hostile;
mod locks;
mod methods;
mod recent;
mod requests;
mod retention;
mod runtime_waits;
mod script;
mod thread_times;

use script::{Bytes, Script};
