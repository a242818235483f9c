//! `salvage FILE -o OUT`: a whole, readable file out of one that was cut off, with names of methods where its process still runs.

mod join;
mod names;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use super::args::Salvage;
use super::exit::{Exit, Failure};
use super::host::Host;
use super::print;
use crate::analysis::Throughput;
use crate::model::{Bytes, Count};
use crate::net::files;
use crate::nettrace::{Ending, Repair};
use crate::session::{OutputFile, Recorded};

/// A file that was made whole.
struct Made {
    /// What a person should know of it.
    words: Vec<String>,
    /// Whether it holds names of methods that were compiled before the recording.
    rundown: bool,
}

pub(super) async fn run(host: &Host, Salvage { files: paths, output: out, names: wants_names }: &Salvage) -> Result<Exit, Failure> {
    let (output, mut file) = OutputFile::create(out).map_err(|error| {
        let exit = if error.is_denied() { Exit::Denied } else { Exit::Failed };
        Failure::new(exit, error)
    })?;
    let made = async {
        let mut made = match &paths[..] {
            [path] => make_whole(path, &mut file),
            segments => join::make_whole(segments, &mut file),
        }?;
        if *wants_names {
            made.words.push(names::append(host, output.partial(), &mut file).await?);
        } else if !made.rundown {
            made.words
                .push("the rundown is missing, which comes last: methods that were compiled before the recording have no names".to_owned());
            made.words.extend(names::offer(host, output.partial(), paths)?);
        }
        Ok(made)
    };
    let made = match made.await {
        Ok(made) => made,
        Err(failure) => {
            output.discard();
            return Err(failure);
        }
    };
    let kept = output.keep().map_err(Failure::failed)?;
    made.words.iter().for_each(print::say);
    print::text(|out| writeln!(out, "{}", kept.display()))?;
    Ok(Exit::Done)
}

fn make_whole(path: &Path, file: &mut File) -> Result<Made, Failure> {
    let mut recorded = Recorded::open(path).map_err(Failure::failed)?;
    let mut tally = Throughput::default();
    let pass = recorded.read(&mut tally).map_err(Failure::failed)?;
    let repair = match (&pass.ending, pass.repair) {
        (Ending::Complete, _) | (_, None) => Repair { keep: pass.bytes, patch: None, append: &[] },
        (_, Some(repair)) => repair,
    };
    let source = recorded.rewind().map_err(Failure::failed)?;
    let size = source.metadata().map_err(|error| unreadable(path, &error))?.len();
    write(source, file, &repair).map_err(|error| unwritten(&error))?;
    let rundown = tally.counts().iter().any(|count| count.provider.ends_with("Rundown"));
    if pass.ending.is_complete() {
        return Ok(Made { words: vec![format!("{} is complete: the copy is the same", path.display())], rundown: true });
    }
    let events = tally.snapshot().events;
    let lost = size.saturating_sub(repair.keep);
    let mut words = vec![format!("{} events are kept; the last {lost} bytes of {} contained no complete one", Count(events), Bytes(size))];
    if let Ending::Broken { error, .. } = &pass.ending {
        words.push(format!("it cannot be decoded beyond that: {error}"));
    }
    Ok(Made { words, rundown })
}

/// Copies what is kept and makes it whole.
fn write(source: &mut File, file: &mut File, repair: &Repair) -> io::Result<()> {
    io::copy(&mut source.take(repair.keep), file)?;
    file.write_all(repair.append)?;
    if let Some((at, bytes)) = repair.patch {
        files::write_all_at(file, &bytes, at)?;
    }
    file.sync_all()
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    anyhow::anyhow!("cannot read {}: {error}", path.display()).into()
}

fn unwritten(trouble: &dyn std::fmt::Display) -> Failure {
    anyhow::anyhow!("cannot write the file, and what was written of it is removed: {trouble}").into()
}
