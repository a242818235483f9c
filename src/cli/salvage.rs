//! `salvage FILE -o OUT`: a whole, readable file out of one that was cut off.

mod join;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::exit::{Exit, Failure};
use super::print;
use crate::analysis::Throughput;
use crate::model::{Bytes, Count, sanitise};
use crate::nettrace::{Ending, Repair};
use crate::session::{OutputFile, Recorded};

pub(super) fn run(paths: &[PathBuf], out: &Path) -> Result<Exit, Failure> {
    match paths {
        [path] => make_whole(path, out),
        segments => join::run(segments, out),
    }
}

fn make_whole(path: &Path, out: &Path) -> Result<Exit, Failure> {
    let mut recorded = Recorded::open(path).map_err(Failure::failed)?;
    let mut tally = Throughput::default();
    let pass = recorded.read(&mut tally).map_err(Failure::failed)?;
    let repair = match (&pass.ending, pass.repair) {
        (Ending::Complete, _) | (_, None) => Repair { keep: pass.bytes, patch: None, append: &[] },
        (_, Some(repair)) => repair,
    };
    let source = recorded.rewind().map_err(Failure::failed)?;
    let size = source.metadata().with_context(|| format!("cannot read {}", path.display()))?.len();
    let (output, mut file) = OutputFile::create(out).map_err(|error| {
        let exit = if error.is_denied() { Exit::Denied } else { Exit::Failed };
        Failure::new(exit, error)
    })?;
    if let Err(error) = write(source, &mut file, &repair) {
        let error = anyhow::Error::new(error).context(format!("{} could not be written; nothing is left of it", out.display()));
        output.discard();
        return Err(error.into());
    }
    let kept = output.keep().map_err(Failure::failed)?;

    if pass.ending.is_complete() {
        print::say(format_args!("{} is complete: the copy is the same", path.display()));
    } else {
        let events = tally.snapshot().events;
        let lost = size.saturating_sub(repair.keep);
        print::say(format_args!("{} events are kept; the last {lost} bytes of {} held no whole one", Count(events), Bytes(size)));
        if let Ending::Broken { error, .. } = &pass.ending {
            print::say(format_args!("it stopped making sense there: {error}"));
        }
        if !tally.counts().iter().any(|count| count.provider.ends_with("Rundown")) {
            print::say("the rundown is missing, which comes last: methods that were compiled before the recording have no names");
        }
    }
    print::text(|out| writeln!(out, "{}", sanitise(&kept.to_string_lossy())))?;
    Ok(Exit::Done)
}

/// Copies what is kept and makes it whole.
fn write(source: &mut File, file: &mut File, repair: &Repair) -> io::Result<()> {
    io::copy(&mut source.take(repair.keep), file)?;
    file.write_all(repair.append)?;
    if let Some((at, bytes)) = repair.patch {
        file.write_all_at(&bytes, at)?;
    }
    file.sync_all()
}
