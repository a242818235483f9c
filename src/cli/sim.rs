//! `sim COUNT DIR`: simulated runtimes for measuring, until killed.

use std::path::Path;

use anyhow::Context;

use super::exit::{Exit, Failure};
use crate::sim::Fleet;

pub(super) async fn run(count: usize, dir: &Path) -> Result<Exit, Failure> {
    let fleet = Fleet::uniform(dir, count).with_context(|| format!("no simulated runtimes can be started below {}", dir.display()))?;
    println!("{} runtimes in {}", fleet.alive(), dir.display());
    tokio::signal::ctrl_c().await.context("signals cannot be waited for")?;
    Ok(Exit::Done)
}
