//! dn-top: a terminal dashboard for .NET processes.
//!
//! The house in one sentence: bytes go through pure machines into values, values go through one pure
//! state machine into a picture, and a thin ring of tokio tasks around both does all the input and output.
//!
//! # Rooms
//!
//! | room | what it is |
//! |---|---|
//! | [`wire`] | bounds-checked little-endian reader and writer, UTF-16 strings, varints |
//! | [`assembly`] | .NET assemblies, as far as a startup hook takes |
//! | [`ipc`] | Diagnostic IPC Protocol, sans-io |
//! | [`nettrace`] | event stream format, sans-io: push decoder and encoder |
//! | [`clr`] | what the bytes mean: providers, keywords, levels, profiles |
//! | [`analysis`] | accumulators: events in, small snapshots out |
//! | [`perfetto`] | Perfetto's trace format |
//! | [`export`] | what runtimes tell, in the file formats of other tools |
//! | [`model`] | plain values that rooms hand each other: a process, a recording |
//! | [`net`] | tokio: endpoints, client, discovery, diagnostic ports |
//! | [`session`] | tokio: recorder |
//! | [`sim`] | simulated runtimes on real sockets |
//! | [`app`] | pure: state, messages, update, the action table |
//! | [`ui`] | pure: panes, charts, theme, overlays |
//! | [`tui`] | event loop, effect runner, terminal guard, clipboard |
//! | [`cli`] | arguments, headless commands |
//!
//! `tests/layers.rs` holds the arrows between them, and keeps files, sockets and the like out of the pure rooms.
//! Clippy keeps clocks out of them: their modules here turn a lint on, whose list is in `.clippy.toml`.

#[warn(clippy::disallowed_methods)]
pub mod analysis;
#[warn(clippy::disallowed_methods)]
pub mod app;
#[warn(clippy::disallowed_methods)]
pub mod assembly;
pub mod cli;
#[warn(clippy::disallowed_methods)]
pub mod clr;
#[warn(clippy::disallowed_methods)]
pub mod export;
#[warn(clippy::disallowed_methods)]
pub mod ipc;
#[warn(clippy::disallowed_methods)]
pub mod model;
pub mod net;
#[warn(clippy::disallowed_methods)]
pub mod nettrace;
#[warn(clippy::disallowed_methods)]
pub mod perfetto;
pub mod session;
pub mod sim;
pub mod tui;
#[warn(clippy::disallowed_methods)]
pub mod ui;
#[warn(clippy::disallowed_methods)]
pub mod wire;
