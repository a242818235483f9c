//! From what a person ordered to what is recorded.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::clr::Selected;
use crate::model::{Order, ProcessKey, RecordingId};
use crate::net::perfetto::Sockets;
use crate::session::{self, Plan};

/// What is recorded of a process, and into which file.
pub(super) fn plan(order: Order, id: RecordingId, key: ProcessKey, name: String) -> Result<Plan, String> {
    let Selected { what, config, .. } = order.select()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let here = std::env::current_dir().unwrap_or_default();
    let extension = order.extension();
    let file = order.file.map_or_else(|| session::new_file(&here, &name, key.pid, now, extension), |file| here.join(file));
    let Order { duration, max_size: max_bytes, stop_on, flight: keep, scheduling, .. } = order;
    let scheduling = if scheduling { Some(Sockets::of_machine().map_err(|cause| cause.to_string())?) } else { None };
    Ok(Plan { id, what, duration, max_bytes, stop_on, keep, scheduling, analysed: true, ..Plan::new(key, name, config, file) })
}
