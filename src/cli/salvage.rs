//! `salvage FILE -o OUT`: repairs a truncated file, and adds method names if the recorded process still runs.

mod names;

use super::args::Salvage;
use super::exit::{Exit, Failure};
use super::host::Host;
use super::print;
use crate::session::{OutputFile, SalvageError, salvage};

const NO_RUNDOWN: &str = "the rundown is missing: methods that were compiled before the recording have no names";

pub(super) async fn run(host: &Host, Salvage { files: paths, output: out, names: wants_names }: &Salvage) -> Result<Exit, Failure> {
    let (output, mut file) = OutputFile::create(out).map_err(|error| {
        let exit = if error.is_denied() { Exit::Denied } else { Exit::Failed };
        Failure::new(exit, error)
    })?;
    let mut notes = Vec::new();
    let has_rundown = salvage(paths, &mut file, &mut notes)?;
    if *wants_names {
        notes.push(names::append(host, output.partial(), &mut file).await?);
    } else if !has_rundown {
        notes.push(NO_RUNDOWN.to_owned());
        notes.extend(names::names_hint(host, output.partial(), paths));
    }
    let kept = output.persist().map_err(Failure::failed)?;
    notes.iter().for_each(print::message);
    print::text(|out| writeln!(out, "{}", kept.display()))?;
    Ok(Exit::Done)
}

impl From<SalvageError> for Failure {
    fn from(error: SalvageError) -> Self {
        let exit = if matches!(error, SalvageError::NotSegments(_)) { Exit::Usage } else { Exit::Failed };
        Self::new(exit, error)
    }
}
