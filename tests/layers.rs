//! Checks the sources against rules that the compiler does not enforce: the allowed dependencies between top-level modules, and what pure modules may not use.
//!
//! Sources are read as tokens, not as text: comments, strings and tests are ignored, and a `use` may span lines.

#![allow(clippy::unwrap_used, reason = "clippy knows tests by their attribute, and not what they call")]

#[path = "support/rust_source.rs"]
mod rust_source;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rust_source::{paths, tokens, without_tests};

/// Every top-level module, and the others that it may use.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("listed", &[]),
    ("sorting", &[]),
    ("assembly", &["wire"]),
    ("ipc", &["wire"]),
    // A macro exported by a module is at the crate root.
    ("nettrace", &["wire", "forward_sink"]),
    ("clr", &["ipc", "nettrace", "wire"]),
    ("analysis", &["sorting", "clr", "nettrace", "wire"]),
    ("perfetto", &["wire"]),
    ("export", &["model", "analysis", "perfetto", "clr", "nettrace", "wire"]),
    ("model", &["sorting", "analysis", "clr", "nettrace", "ipc"]),
    ("diagnosis", &["sorting", "model", "analysis", "clr", "ipc"]),
    ("app", &["sorting", "diagnosis", "model", "analysis", "clr", "ipc"]),
    ("ui", &["sorting", "app", "diagnosis", "model", "analysis", "clr", "ipc"]),
    ("net", &["sorting", "assembly", "model", "ipc", "perfetto", "wire"]),
    ("session", &["sorting", "net", "export", "perfetto", "model", "nettrace", "analysis", "clr", "ipc", "wire"]),
    ("sim", &["net", "assembly", "model", "ipc", "perfetto", "nettrace", "clr", "wire"]),
    ("tui", &["ui", "app", "session", "net", "sim", "model", "analysis", "clr", "ipc"]),
    (
        "cli",
        &[
            "tui",
            "ui",
            "app",
            "session",
            "net",
            "sim",
            "diagnosis",
            "export",
            "perfetto",
            "model",
            "analysis",
            "clr",
            "nettrace",
            "ipc",
            "sorting",
            "wire",
        ],
    ),
    ("main", &["cli"]),
];

/// Rooms that receive bytes, time and sizes as arguments, and have no access to the system.
const PURE: &[&str] =
    &["wire", "sorting", "assembly", "ipc", "nettrace", "clr", "analysis", "perfetto", "export", "model", "diagnosis", "app", "ui"];

/// Path prefixes that are forbidden in a pure module.
const IMPURE: &[&str] = &[
    "tokio",
    "arboard",
    "procfs",
    "rustix",
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "std::os",
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "Instant::now",
    "SystemTime::now",
];

#[test]
fn modules_use_only_those_below_them() {
    let mut wrong = Vec::new();
    for (file, source) in sources() {
        wrong.extend(forbidden(&file, &source).into_iter().map(|what| format!("src/{}: {what}", file.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Entry points of the platform-specific modules: modules of one name with the same items.
const PLATFORM_ENTRY_POINTS: &[&str] =
    &["net/mod.rs", "net/perf/mod.rs", "net/perfetto/mod.rs", "net/port/mod.rs", "sim/mod.rs", "tui/mod.rs"];
/// Platform-specific paths, allowed only in the modules that have such modules.
const PLATFORM_PATHS: &[&str] = &[
    "rustix",
    "procfs",
    "signal_hook",
    "sysinfo",
    "interprocess",
    "crossterm_winapi",
    "winsafe",
    "std::os",
    "tokio::signal::unix",
    "tokio::signal::windows",
];

#[test]
fn only_module_selection_is_platform_specific() {
    let mut wrong = Vec::new();
    for (file, source) in sources() {
        let tokens = without_tests(tokens(&source));
        let may_choose = PLATFORM_ENTRY_POINTS.iter().any(|door| file == Path::new(door));
        let systems = conditions(&tokens).filter(|(condition, _)| {
            ["unix", "windows", "target_os", "target_family"].iter().any(|of| condition.contains(&(*of).to_owned()))
        });
        for (_, item) in systems {
            let chooses = item.iter().take(3).any(|token| ["mod", "use"].contains(&token.as_str()));
            if !(may_choose && chooses) {
                wrong.push(format!(
                    "src/{}: depends on the system before {}",
                    file.display(),
                    item.iter().take(4).cloned().collect::<Vec<_>>().join(" ")
                ));
            }
        }
        let module = module_of(&file);
        if module.first().is_some_and(|top_level| !["net", "sim", "tui"].contains(&top_level.as_str())) {
            let of_system = |path: &String| {
                PLATFORM_PATHS.iter().any(|start| path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with("::")))
            };
            wrong.extend(paths(&module, &tokens).into_iter().filter(of_system).map(|path| format!("src/{}: names {path}", file.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(conditions(&tokens("#[cfg(windows)] pub mod x; fn f() { cfg!(target_os = \"linux\") }")).count() == 2);
    let source = tokens("#[cfg(windows)] #[path = \"[x].rs\"] #[cfg(test)] mod x;");
    assert!(conditions(&source).all(|(_, item)| item[0] == "mod"));
}

/// Returns the condition of each `cfg`, with the tokens that follow it.
fn conditions(tokens: &[String]) -> impl Iterator<Item = (&[String], &[String])> {
    let starts = tokens.iter().enumerate().filter(|(_, token)| ["cfg", "cfg_attr"].contains(&token.as_str()));
    starts.map(|(at, _)| {
        let mut depth = 0;
        let rest = &tokens[at..];
        let end = rest.iter().position(|token| {
            depth += i32::from(token == "(") - i32::from(token == ")");
            depth == 0 && token == ")"
        });
        let (condition, behind) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        (condition, without_attributes(behind.strip_prefix(&["]".to_owned()]).unwrap_or(behind)))
    })
}

fn without_attributes(mut tokens: &[String]) -> &[String] {
    while tokens.first().is_some_and(|token| token == "#") {
        let mut depth = 0;
        let end = tokens.iter().position(|token| {
            depth += i32::from(token == "[") - i32::from(token == "]");
            depth == 0 && token == "]"
        });
        tokens = &tokens[end.map_or(tokens.len(), |end| end + 1)..];
    }
    tokens
}

#[test]
fn every_module_is_in_dependency_table() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    for top_level in lib.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')) {
        assert!(ALLOWED_DEPENDENCIES.iter().any(|(name, _)| *name == top_level), "{top_level} has no row in the table of dependencies");
    }
}

/// Returns the violations in a file.
fn forbidden(file: &Path, source: &str) -> Vec<String> {
    let module = module_of(file);
    let Some(top_level) = module.first().cloned() else { return Vec::new() };
    let Some((_, below)) = ALLOWED_DEPENDENCIES.iter().find(|(name, _)| *name == top_level) else {
        return vec![format!("the module {top_level} has no row in the table of dependencies")];
    };
    let mut wrong = Vec::new();
    for path in paths(&module, &without_tests(tokens(source))) {
        // The fields of log messages are parsed here; what is shown of them is sanitized like any text from a target.
        let is_read = module == ["app", "tabs", "logs"];
        if path.starts_with("serde_json::") && module != ["cli", "print"] && !is_read {
            wrong.push(format!("JSON is written in cli::print, which escapes what a terminal obeys, and not with {path}"));
        }
        match path.strip_prefix("crate::") {
            Some(inner) => {
                let used = inner.split("::").next().unwrap();
                if used != top_level && !below.contains(&used) {
                    wrong.push(format!("{top_level} may not use {path}"));
                }
            }
            None if PURE.contains(&top_level.as_str()) => {
                let names = |banned: &&&str| path.strip_prefix(**banned).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
                wrong.extend(IMPURE.iter().find(names).map(|_| format!("{top_level} is pure and may not use {path}")));
            }
            None => {}
        }
    }
    wrong
}

/// `ipc/frame.rs` is `[ipc, frame]`, `ipc/mod.rs` is `[ipc]`; the library's root is `[]` and may use every module.
fn module_of(file: &Path) -> Vec<String> {
    let mut module: Vec<String> = file.with_extension("").iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    if ["mod", "lib"].contains(&module.last().unwrap().as_str()) {
        module.pop();
    }
    module
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns every source file except those that contain only tests, by path relative to `src`.
fn sources() -> BTreeMap<PathBuf, String> {
    let top = root().join("src");
    let mut found = BTreeMap::new();
    let mut folders = vec![top.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.file_stem().is_some_and(|name| name == "tests") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let source = fs::read_to_string(&path).unwrap();
                found.insert(path.strip_prefix(&top).unwrap().to_owned(), source);
            }
        }
    }
    assert!(found.len() > 10, "the sources are not where this test looks for them");
    found
}

#[test]
fn planted_violations_are_found() {
    let planted = [
        ("ipc/frame.rs", "use crate::net::Client;"),
        ("ipc/frame.rs", "use crate::{\n    wire::Reader, // fine\n    nettrace::{Block},\n};"),
        ("ipc/frame.rs", "use super::super::net;"),
        ("ipc/mod.rs", "pub use super::net::{self};"),
        ("ipc/frame.rs", "mod inner { use super::super::super::net::Client; }"),
        ("ipc/frame.rs", "fn f() -> crate::net::Client { todo!() }"),
        ("ipc/frame.rs", "fn f<'a>(c: char) -> bool { c == '\"' && crate::net::f::<'a>('\\'') }"),
        ("ipc/frame.rs", "#[cfg(test)]\nmod tests { fn f() { if true {} } }\nuse crate::net::Client;"),
        ("wire/mod.rs", "use crate::ipc;"),
        ("wire/mod.rs", "use crate::*;"),
        ("app/state.rs", "use crate::cli::Args;"),
        ("net/mod.rs", "use crate::session::Recorder;"),
        ("main.rs", "fn main() { dn_top::tui::run() }"),
        ("attic/mod.rs", "fn f() {}"),
        ("model/process.rs", "use std::{collections::HashMap, fs::{File}};"),
        ("model/process.rs", "fn f() { let t = tokio::spawn(g()); }"),
        ("model/process.rs", "use tokio;"),
        ("clr/mod.rs", "fn f() { std::time::Instant::now() }"),
        ("clr/mod.rs", "use std::time::Instant; fn f(at: Instant) -> Duration { Instant::now() - at }"),
        ("ui/mod.rs", "const S: &str = r#\"\"#; use std::env;"),
    ];
    for (file, source) in planted {
        assert_eq!(forbidden(Path::new(file), source).len(), 1, "{file}: {source}");
    }
}

#[test]
fn allowed_code_has_no_violations() {
    let allowed = [
        ("ipc/frame.rs", "use crate::{wire::{Reader, Writer}, ipc::id::Command};"),
        ("ipc/frame.rs", "use super::id::Command; mod inner { use super::super::id; }"),
        ("ipc/frame.rs", "// crate::net::Client\n/* crate::net /* tokio::spawn */ std::fs::read */"),
        (
            "ipc/frame.rs",
            "const A: &str = \"\\\" crate::net::Client\"; const B: &str = r##\"\"# std::fs::read\"##; const C: &[u8] = b\"tokio::x\";",
        ),
        ("ipc/frame.rs", "#[cfg(test)]\nmod tests { use std::fs::read; fn f() { crate::net::f() } }"),
        ("ipc/frame.rs", "#[cfg(test)]\nuse std::fs;\nuse std::time::Instant;"),
        ("ipc/frame.rs", "use std::fmt; fn f(x: u8) { Self::g(x); environment::fs(x); my::tokio::f() }"),
        ("net/socket.rs", "use tokio::net::UnixStream; use std::fs; fn f() { std::time::Instant::now(); }"),
        ("main.rs", "fn main() -> std::process::ExitCode { dn_top::cli::main() }"),
        ("lib.rs", "pub use crate::net::Client;"),
    ];
    for (file, source) in allowed {
        assert_eq!(forbidden(Path::new(file), source), [""; 0], "{file}: {source}");
    }
}
