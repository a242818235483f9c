//! Tests of dn-top with real .NET runtimes: 3.1, 8, 9 and 10. `tests/setup.sh` installs them.

#![allow(clippy::unwrap_used, reason = "clippy knows tests by their attribute, and not what they call")]

#[path = "../support/figures.rs"]
mod figures;
#[path = "../support/protobuf.rs"]
mod protobuf;
#[path = "../support/reader.rs"]
mod reader;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/trace_contents.rs"]
mod trace_contents;
#[path = "../support/trace_processor.rs"]
mod trace_processor;

mod analyses;
mod analysis;
mod awaited;
mod capabilities;
mod changes;
mod commands_analysis;
mod comparison;
mod completions;
mod conditions;
mod configuration;
mod container;
mod cpu;
mod cpu_gc;
mod cpu_live;
mod cpu_recordings;
mod cpu_refusals;
mod cpu_reports;
mod cpu_sampler;
mod cpu_waits;
mod dashboard;
mod exports;
mod fatal_hooks;
mod fatal_meters;
mod fatal_requests;
mod follow;
mod forms;
mod heap;
mod joint;
mod json_fields;
mod limits;
mod log;
mod names;
mod net;
mod numbers;
mod options;
mod perf;
mod perfetto;
mod perfetto_contents;
mod perfetto_files;
mod perfetto_protocol;
mod ports;
mod process_states;
mod ps;
mod readers;
mod recording_analysis;
mod refusals;
mod requests;
mod run;
mod runtimes;
mod salvage;
mod second_user;
mod secrets;
mod signals;
mod slowdown;
mod stacks;
mod table;
mod terminal;
mod thread_time;
mod tools;
mod trace;
mod tracing_service;
mod watched_findings;
mod watched_screen;
mod watching;
