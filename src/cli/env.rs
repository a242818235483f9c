//! `env`: the environment of a process, secrets masked.

use serde::Serialize;

use super::exit::{Exit, Failure};
use super::host::Host;
use super::print;
use super::target::{connect, declined};
use crate::model::sanitise;

#[derive(Serialize)]
struct Row {
    name: String,
    value: Option<String>,
    masked: bool,
}

pub(super) async fn run(host: &Host, target: &str, reveal: bool, json: bool) -> Result<Exit, Failure> {
    let (process, client) = connect(host, target).await?;
    let variables = client.environment().await.map_err(|error| declined(&process, error))?;
    let row = |variable: crate::model::Variable| {
        let masked = variable.is_secret() && !reveal;
        // In JSON control characters are escaped, so the text may stay as it is.
        Row { masked, value: (!masked).then_some(variable.value), name: variable.name }
    };
    let mut rows: Vec<Row> = variables.into_iter().map(row).collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    if json {
        print::json_list(&rows)?;
    } else {
        print::text(|out| {
            for Row { name, value, .. } in &rows {
                let value = value.as_deref().map_or("(masked: --reveal shows it)".into(), sanitise);
                writeln!(out, "{}={value}", sanitise(name))?;
            }
            Ok(())
        })?;
    }
    Ok(Exit::Done)
}
