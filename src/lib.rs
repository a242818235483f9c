//! .NET processes over the Diagnostic IPC protocol: the library below the `dn-top` program.
//!
//! The program is built by default. To use the library, depend on `dn-top` with `default-features = false` and one of
//!
//! | features | contents |
//! |---|---|
//! | none | decoders, encoders and analyses: no I/O, no threads, no clock |
//! | `client` | in addition: process discovery, commands, recording, reading of files (tokio) |
//! | `cli` (default) | in addition: the program with dashboard, commands and simulated runtimes |
//!
//! Before version 1.0, each minor version may contain breaking changes.
//!
//! # Examples
//!
//! List all visible processes (`client`):
//!
//! ```
//! use std::time::Duration;
//!
//! use dn_top::net::Directory;
//! use dn_top::net::discovery::Sources;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let mut directory = Directory::new(Sources::machine())?;
//! for process in directory.refresh(Duration::from_secs(1)).await? {
//!     let runtime = process.runtime.map_or("?".to_owned(), |version| version.to_string());
//!     println!("{:>7} {:<30} .NET {runtime}", process.key.pid, process.name);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Record a process to a file (`client`), for five seconds with `record(&mut directory, "OrderService", file, Duration::from_secs(5))`:
//!
//! ```
//! use std::error::Error;
//! use std::path::Path;
//! use std::time::Duration;
//!
//! use dn_top::clr::{DEFAULT_PROFILES, select};
//! use dn_top::model::Recording;
//! use dn_top::net::Directory;
//! use dn_top::session::{Plan, Recorder};
//!
//! async fn record(directory: &mut Directory, target: &str, file: &Path, time: Duration) -> Result<Recording, Box<dyn Error>> {
//!     let process = directory.resolve(target, Duration::from_secs(5)).await?;
//!     let client = directory.clients().of(&process).ok_or("the process has no diagnostic socket")?;
//!     let config = select(&DEFAULT_PROFILES, &[""; 0], None)?.config;
//!     let plan = Plan { duration: Some(time), ..Plan::new(process.key, process.name, config, file.to_owned()) };
//!     Ok(Recorder::start(client, plan).await?.finished().await)
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let _fleet = dn_top::sim::Fleet::demo(folder.path())?;
//! # let mut directory = Directory::new(dn_top::net::discovery::Sources::below(folder.path()))?;
//! # let file = folder.path().join("OrderService.nettrace");
//! # let recording = record(&mut directory, "OrderService", &file, Duration::from_millis(200)).await?;
//! # assert!(recording.events > 0 && file.is_file());
//! # Ok(())
//! # }
//! ```
//!
//! Decode a file and count its events (no features):
//!
//! ```
//! use std::io::Read;
//!
//! use dn_top::analysis::Throughput;
//! use dn_top::nettrace::{Decoder, Limits};
//!
//! fn count(mut file: impl Read) -> Result<Throughput, Box<dyn std::error::Error>> {
//!     let (mut decoder, mut throughput) = (Decoder::new(Limits::default()), Throughput::default());
//!     let mut buffer = vec![0; 64 << 10];
//!     loop {
//!         match file.read(&mut buffer)? {
//!             0 => break,
//!             bytes => decoder.feed(&buffer[..bytes], &mut throughput)?,
//!         }
//!     }
//!     decoder.finish(&mut throughput);
//!     Ok(throughput)
//! }
//! # use dn_top::nettrace::{Encoder, Metadata, NewEvent, TraceHeader};
//! # let mut encoder = Encoder::new(TraceHeader::default());
//! # let metadata = encoder.metadata(&Metadata { provider: "Orders".to_owned(), event_id: 1, ..Metadata::default() });
//! # encoder.event(&NewEvent { metadata, ..NewEvent::default() });
//! # encoder.end();
//!
//! # let file = std::io::Cursor::new(encoder.take());
//! # let mut counted = 0;
//! for event in count(file)?.counts() {
//!     println!("{:>9}  {}/{}", event.count, event.provider, event.title());
//! #   counted += event.count;
//! }
//! # assert_eq!(counted, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Print the methods in which threads spend the most time (`client`):
//!
//! ```
//! use std::path::Path;
//!
//! use dn_top::analysis::{MethodTime, SampleFilter};
//! use dn_top::session::{ReadError, RecordedFile};
//!
//! fn top_methods(file: &Path) -> Result<Vec<MethodTime>, ReadError> {
//!     let (sampled, _) = RecordedFile::open(file)?.read_methods(None)?;
//!     Ok(sampled.profile().methods(SampleFilter::BUSY, 10).methods)
//! }
//! # use dn_top::{clr::select, net::{Directory, discovery::Sources}, session::{Plan, Recorder}, sim::Fleet};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let _fleet = Fleet::demo(folder.path())?;
//! # let mut directory = Directory::new(Sources::below(folder.path()))?;
//! # let process = directory.resolve("OrderService", std::time::Duration::from_secs(5)).await?;
//! # let file = &folder.path().join("OrderService.nettrace");
//! # let config = select(&["dotnet-sampled-thread-time"], &[""; 0], None)?.config;
//! # let plan = Plan { max_bytes: Some(50_000), ..Plan::new(process.key, process.name.clone(), config, file.clone()) };
//! # Recorder::start(directory.clients().of(&process).ok_or("no socket")?, plan).await?.finished().await;
//!
//! for method in top_methods(file)? {
//!     println!("{:>8} ms  {}", method.own.all_ns() / 1_000_000, method.name);
//! }
//! # assert!(!top_methods(file)?.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! # Modules
//!
//! Pure decoders turn bytes into values, and one pure state machine turns values into the displayed frame; a thin layer of tokio tasks around
//! them does all I/O. Each module only uses those below it:
//!
//! | module | contents | feature |
//! |---|---|---|
//! | `cli` | argument parsing, headless commands | `cli` |
//! | `tui` | event loop, effect runner, terminal guard, clipboard | `cli` |
//! | `ui` | pure: panes, charts, theme, overlays | `cli` |
//! | `app` | pure: state, messages, update, the action table | `cli` |
//! | `sim` | simulated runtimes on real sockets | `cli` |
//! | `session` | recording, reading and exporting traces, core dumps, launching programs | `client` |
//! | `net` | endpoints, client, discovery, diagnostic ports | `client` |
//! | [`diagnosis`] | causes of slowness found in a recording, most severe first | |
//! | [`export`] | recordings and heap snapshots in the file formats of other tools | |
//! | [`model`] | plain data types shared by the modules: processes, recordings | |
//! | [`analysis`] | accumulators that turn events into small snapshots | |
//! | [`clr`] | semantics of .NET events: providers, keywords, levels, profiles | |
//! | [`perfetto`] | Perfetto's trace format and tracing protocol, sans-io | |
//! | [`nettrace`] | nettrace event stream format, sans-io: push decoder and encoder | |
//! | [`ipc`] | Diagnostic IPC Protocol, sans-io | |
//! | [`assembly`] | .NET assemblies, as far as needed for startup hooks | |
//! | `listed` | enums with a list of their variants | |
//! | `sorting` | sorting with a single instantiation for all types | |
//! | [`wire`] | bounds-checked little-endian reader and writer, UTF-16 strings, varints | |
//!
//! `tests/layers.rs` checks the dependencies between the modules, and that the pure ones use no files, sockets and the like.
//! Clippy keeps clocks out of them: their declarations below enable a lint, configured in `.clippy.toml`.
//! `missing_docs` is enabled in all modules that are meant to be used as a library.

#[macro_use]
mod listed;

#[warn(missing_docs, clippy::disallowed_methods)]
pub mod analysis;
#[cfg(feature = "cli")]
#[warn(clippy::disallowed_methods)]
pub mod app;
#[warn(missing_docs, clippy::disallowed_methods)]
pub mod assembly;
#[cfg(feature = "cli")]
pub mod cli;
#[warn(missing_docs, clippy::disallowed_methods)]
pub mod clr;
#[warn(missing_docs, clippy::disallowed_methods)]
pub mod diagnosis;
#[warn(missing_docs, clippy::disallowed_methods)]
pub mod export;
#[warn(missing_docs, clippy::disallowed_methods)]
pub mod ipc;
#[warn(missing_docs, clippy::disallowed_methods)]
pub mod model;
#[cfg(feature = "client")]
#[warn(missing_docs)]
pub mod net;
#[warn(missing_docs, clippy::disallowed_methods)]
pub mod nettrace;
#[warn(missing_docs, clippy::disallowed_methods)]
pub mod perfetto;
#[cfg(feature = "client")]
#[warn(missing_docs)]
pub mod session;
#[cfg(feature = "cli")]
pub mod sim;
mod sorting;
#[cfg(feature = "cli")]
pub mod tui;
#[cfg(feature = "cli")]
#[warn(clippy::disallowed_methods)]
pub mod ui;
#[warn(missing_docs, clippy::disallowed_methods)]
pub mod wire;
