//! Semantics of .NET events: providers, keywords, levels and trace profiles.
//!
//! The events to trace are selected by profiles, provider specifications (`NAME:KEYWORDS:LEVEL:ARGUMENTS`, the syntax of dotnet-trace) and
//! names of runtime keywords; [`select`] combines them into one [`SessionConfig`](crate::ipc::SessionConfig). Profiles and the names of
//! providers and keywords are data files in `assets/`, compiled into the program.
//!
//! Events are classified by [`EventKind`], looked up once per metadata record. Payloads of native runtime events, which the stream does not
//! describe, are read through the views in [`payload`].
//!
//! No I/O and no clock. Depends on `ipc` for the session types, and not on the analyses.

pub mod events;
pub mod manifest;
mod method_name;
pub mod payload;

mod arguments;
mod event_ids;
mod kind;
mod level;
mod problem;
mod profile;
mod providers;
mod select;
mod signature;
mod spec;
mod tracepoints;
mod trigger;
mod type_name;

pub use event_ids::parse_event_ids;
pub use kind::{EventKind, SAMPLE_LOSSES, THREAD_TIMES, UNIVERSAL_EVENTS, UNIVERSAL_SYSTEM};
pub use level::parse_level;
pub use method_name::method_name;
pub use problem::{SpecError, SpecErrorKind};
pub use profile::{Profile, UnknownProfile, profile, profiles};
pub use providers::{
    COUNTERS_PROVIDER, DIAGNOSTIC_SOURCE_PROVIDER, EVENT_PIPE_PROVIDER, HOSTING_PROVIDER, HTTP_CLIENT_PROVIDER, Keyword, KnownProvider,
    LOGGING_PROVIDER, METRICS_PROVIDER, RUNDOWN_PROVIDER, RUNTIME_PROVIDER, SAMPLE_PROFILER, known_provider, known_providers,
    silent_provider_hint, unrecorded_provider_note, without_events,
};
pub use select::{DASHBOARD_PROFILES, DEFAULT_PROFILES, SLOW_PROFILE, SelectError, Selection, select};
pub use signature::write_parameters;
pub use spec::{format_keywords, format_provider, parse_provider, parse_runtime_keywords, provider_name};
pub use tracepoints::parse_tracepoints;
pub use trigger::{Condition, Repetition, Trigger, TriggerError};
pub use type_name::{TypeArguments, type_name};
