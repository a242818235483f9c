//! A program started by the dashboard: suspended, recorded, and resumed.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::tail::Tail;
use crate::app::{JobResult, Msg, ProgramRequest, Ticket};
use crate::model::{OutputName, RecordingId, SafeText, TraceOptions};
use crate::net::files;
use crate::session::{ChildOutput, Launch, LaunchEvent, Launched, Orphans, Plan, RUNTIME_START_TIMEOUT};

/// Interval at which the output of the program is read.
const OUTPUT_INTERVAL: Duration = Duration::from_millis(200);

/// How a started program is recorded.
pub(super) struct LaunchRecording {
    pub(super) id: RecordingId,
    pub(super) output_name: OutputName,
    pub(super) start: oneshot::Sender<(Launched, Plan)>,
}

/// Starts the program, passes it on to be recorded, shows its output, and reports its exit.
pub(super) async fn run(program: ProgramRequest, recording: LaunchRecording, ticket: Ticket, inbox: mpsc::Sender<Msg>) {
    let result = match create(&program.output) {
        Ok((file, mut tail)) => {
            let mut program = std::pin::pin!(run_program(program, file, recording, ticket, &inbox));
            let result = loop {
                match timeout(OUTPUT_INTERVAL, program.as_mut()).await {
                    Ok(result) => break result,
                    Err(_) => forward(&mut tail, ticket, &inbox).await,
                }
            };
            forward(&mut tail, ticket, &inbox).await;
            result
        }
        Err(trouble) => Err(trouble),
    };
    // The dashboard may have quit in the meantime.
    drop(inbox.send(Msg::job_done(ticket, result)).await);
}

/// Sends the output since the last call.
async fn forward(tail: &mut Tail, ticket: Ticket, inbox: &mpsc::Sender<Msg>) {
    if let Some(lines) = tail.new_lines() {
        drop(inbox.send(Msg::ProgramOutput { ticket, lines: lines.into() }).await);
    }
}

async fn run_program(
    program: ProgramRequest,
    file: File,
    recording: LaunchRecording,
    ticket: Ticket,
    inbox: &mpsc::Sender<Msg>,
) -> Result<JobResult, String> {
    let ProgramRequest { words, options, output } = program;
    let LaunchRecording { id, output_name, start } = recording;
    let program = SafeText::new(words.first().map(String::as_str).unwrap_or_default());
    let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    let mut launch = Launch::start(&words, ChildOutput::File(file), Orphans::Resume).map_err(|error| error.to_string())?;
    let ended = |code: u8, more: &str| {
        let files = vec![output.to_string_lossy().into_owned().into()];
        Ok(JobResult { files, bytes: None, note: Some(format!("It exited with {code}{more}").into()) })
    };
    let mut late = false;
    let launched = loop {
        match launch.next().await {
            LaunchEvent::Connected(launched) => break launched,
            LaunchEvent::NoRuntime => {
                late = true;
                let why = format!("no .NET runtime connected within {} s: it is not recorded", RUNTIME_START_TIMEOUT.as_secs());
                drop(inbox.send(Msg::Failed(format!("{program}: {why}").into())).await);
            }
            LaunchEvent::Exited(code) if late => return ended(code, ", and nothing was recorded"),
            LaunchEvent::Exited(code) => return ended(code, ", and nothing was recorded: no .NET runtime connected"),
        }
    };
    let plan = plan_recording(&launched, &program, id, options, &output_name).await?;
    drop(inbox.send(Msg::Launched { ticket, recording: Box::new(plan.starting()) }).await);
    if start.send((launched, plan)).is_err() {
        return Err("it was canceled".to_owned());
    }
    launch.release();
    ended(launch.wait().await, "")
}

/// Plans the recording of a started program.
async fn plan_recording(
    launched: &Launched,
    program: &str,
    id: RecordingId,
    options: TraceOptions,
    output_name: &OutputName,
) -> Result<Plan, String> {
    let name = launched.name(Path::new(program)).await.map_err(|error| error.to_string())?;
    let plan = Plan::from_options(&options, launched.key, name, &std::env::current_dir().unwrap_or_default(), output_name)?;
    Ok(Plan { id, notes: launched.note().into_iter().collect(), analyzed: true, ..plan })
}

/// Creates a new file, never overwriting another, with a reader of its end.
fn create(path: &Path) -> Result<(File, Tail), String> {
    let both = files::create(path).and_then(|file| Ok((file.try_clone()?, Tail::new(file))));
    both.map_err(|error| format!("{} cannot be created for its output: {error}", path.display()))
}
