//! What the bytes mean: providers, keywords, levels and trace profiles of the .NET runtime.
//!
//! What to trace is selected by profiles, by provider specifications (`NAME:KEYWORDS:LEVEL:ARGUMENTS`, the syntax of dotnet-trace) and by
//! names of runtime keywords; [`select`] makes one [`SessionConfig`](crate::ipc::SessionConfig) of them. Profiles and the names of providers and
//! keywords are data, built into the program from `assets/`.
//!
//! What an event is, is its [`EventKind`], looked up once for each metadata record; what is in the payloads of the native runtime events, which the
//! stream does not describe, is read by the views of [`payload`].
//!
//! No input or output, no clock. Knows `ipc` for the types of a session, and nothing of what an analysis does with events.

pub mod events;
pub mod manifest;
mod method_name;
pub mod payload;

mod arguments;
mod event_ids;
mod kind;
mod known;
mod level;
mod problem;
mod profile;
mod select;
mod signature;
mod spec;
mod tracepoints;
mod trigger;
mod type_name;

pub use event_ids::parse_event_ids;
pub use kind::{EventKind, SAMPLE_PROFILER, UNIVERSAL_EVENTS};
pub use known::{Keyword, KnownProvider, RUNTIME, known_provider, known_providers};
pub use level::{level_name, parse_level};
pub use method_name::write_method_name;
pub use problem::{Problem, SpecError};
pub use profile::{Profile, UnknownProfile, profile, profiles};
pub use select::{DASHBOARD_PROFILES, DEFAULT_PROFILES, SLOW, SelectError, Selected, select};
pub use signature::write_parameters;
pub use spec::{format_keywords, format_provider, parse_provider, parse_runtime_keywords};
pub use tracepoints::parse_tracepoints;
pub use trigger::{Condition, Trigger};
pub use type_name::{TypeArguments, type_name, write_type_name};
