//! `salvage FILE -o OUT`: repairs a truncated file, and adds method names if the recorded process still runs.

mod names;

use super::args::Salvage;
use super::exit::{Exit, Failure};
use super::host::Host;
use super::interrupt::{self, interruptible};
use super::print;
use crate::model::check_file_name;
use crate::session::{OutputFile, SalvageError, salvage};

const NO_RUNDOWN: &str = "the rundown is missing: methods that were compiled before the recording have no names";

pub(super) async fn run(host: &Host, Salvage { files: paths, output: out, names: wants_names }: &Salvage) -> Result<Exit, Failure> {
    check_file_name(out, "nettrace").map_err(Failure::usage)?;
    // Before the file is created, which a signal would leave behind.
    let mut interrupts = interrupt::listen()?;
    let (output, mut file) = OutputFile::create(out).map_err(|error| Failure::new(Exit::of_error(error.is_denied()), error))?;
    let files = paths.clone();
    let repair = move |wanted: &dyn Fn() -> bool| {
        let mut notes = Vec::new();
        salvage(&files, &mut file, &mut notes, wanted).map(|has_rundown| (file, notes, has_rundown))
    };
    let (mut file, mut notes, has_rundown) = interruptible(&mut interrupts, repair).await??;
    if *wants_names {
        notes.push(names::append(host, output.partial(), &mut file, &mut interrupts).await?);
    } else if !has_rundown {
        notes.push(NO_RUNDOWN.to_owned());
        notes.extend(names::names_hint(host, output.partial(), paths, &mut interrupts).await?);
    }
    let kept = output.persist().map_err(Failure::failed)?;
    notes.iter().for_each(print::message);
    print::text(|out| writeln!(out, "{}", kept.display()))?;
    Ok(Exit::Done)
}

impl From<SalvageError> for Failure {
    fn from(error: SalvageError) -> Self {
        let exit = match error {
            SalvageError::NotSegments(_) => Exit::Usage,
            SalvageError::Canceled => Exit::Interrupted,
            _ => Exit::Failed,
        };
        Self::new(exit, error)
    }
}
