//! The source of the processes and the access to them: the options `--demo` and `--readonly`.

use std::cell::RefCell;
use std::path::Path;

use anyhow::Context;
use tempfile::TempDir;

use super::args::Dashboard;
use super::awaited::Awaited;
use super::config::Settings;
use super::exit::{Exit, Failure};
use crate::net::discovery::Sources;
use crate::net::{Access, Directory};
use crate::sim::Fleet;

/// This machine, or simulated runtimes.
pub(super) struct Host {
    pub(super) sources: Sources,
    pub(super) access: Access,
    /// Settings of the configuration file that are not options.
    pub(super) settings: Settings,
    /// The demo's simulated runtimes and their folder.
    _demo: Option<(Fleet, TempDir)>,
    /// The program that connected to the port of the target, if the target is one.
    pub(super) awaited: RefCell<Option<Awaited>>,
}

impl Host {
    /// Must be called inside a tokio runtime.
    pub(super) fn new(options: &Dashboard) -> Result<Self, Failure> {
        let demo = if options.demo { Some(demo()?) } else { None };
        let simulated = demo.as_ref().map(|(_, folder)| folder.path()).or(options.sim.as_deref());
        let sources = simulated.map_or_else(Sources::machine, Sources::below);
        Ok(Self {
            sources,
            access: if options.readonly { Access::ReadOnly } else { Access::Full },
            settings: options.settings.clone(),
            _demo: demo,
            awaited: RefCell::default(),
        })
    }

    pub(super) fn directory(&self) -> Result<Directory, Failure> {
        let directory = Directory::new(self.sources.clone()).context("the processes of this machine cannot be listed")?;
        Ok(directory.with_access(self.access))
    }
}

fn demo() -> anyhow::Result<(Fleet, TempDir)> {
    let folder = tempfile::Builder::new().prefix("dn-top-demo-").tempdir().context("the demo needs a temporary folder")?;
    let fleet = Fleet::demo(folder.path());
    let fleet = fleet.with_context(|| format!("the demo's runtimes cannot be started in {}", folder.path().display()))?;
    Ok((fleet, folder))
}

/// `sim COUNT DIR`: runs simulated runtimes for measurements until killed.
pub(super) async fn simulate(count: usize, dir: &Path) -> Result<Exit, Failure> {
    let fleet = Fleet::uniform(dir, count).with_context(|| format!("no simulated runtimes can be started below {}", dir.display()))?;
    println!("{} runtimes in {}", fleet.alive(), dir.display());
    tokio::signal::ctrl_c().await.context("cannot install signal handlers")?;
    Ok(Exit::Done)
}
