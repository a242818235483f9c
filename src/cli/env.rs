//! `env`: the environment of a process, with secrets masked.

use serde::Serialize;

use super::exit::{Exit, Failure};
use super::host::Host;
use super::print;
use super::target::{connect, exchange_error};
use crate::ipc;
use crate::model::Variable;
use crate::sorting::CompactSort;

#[derive(Serialize)]
struct Row {
    name: String,
    value: Option<String>,
    masked: bool,
}

pub(super) async fn run(host: &Host, target: &str, reveal: bool, json: bool) -> Result<Exit, Failure> {
    let (_, client) = connect(host, target).await?;
    let variables = client.environment().await.map_err(exchange_error)?;
    let row = |raw: ipc::Variable| {
        let variable = Variable::new(&raw, &host.settings.secrets);
        (variable.is_secret() && !reveal, variable, raw)
    };
    let mut rows: Vec<_> = variables.into_iter().map(row).collect();
    rows.compact_sort_by(|(.., a), (.., b)| a.name.cmp(&b.name));
    if json {
        // JSON escapes control characters, so the text is written unchanged.
        let row = |(masked, _, raw): (bool, Variable, ipc::Variable)| Row { masked, value: (!masked).then_some(raw.value), name: raw.name };
        print::json_list("variables", rows.into_iter().map(row))?;
    } else {
        print::text(|out| {
            rows.iter().try_for_each(|(masked, Variable { name, value, .. }, _)| {
                writeln!(out, "{name}={}", if *masked { "(masked: --reveal shows it)" } else { value.as_str() })
            })
        })?;
    }
    Ok(Exit::Done)
}
