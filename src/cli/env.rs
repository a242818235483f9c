//! `env`: the environment of a process, with secrets masked.

use serde::Serialize;

use super::exit::{Exit, Failure};
use super::host::Host;
use super::print;
use super::target::{connect, display_name, exchange_error};
use crate::ipc;
use crate::model::{EnvironmentSource, Variable};
use crate::sorting::CompactSort;

#[derive(Serialize)]
struct Document {
    /// `runtime` for current values, `startup` for those at the start of the process.
    source: &'static str,
    variables: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    value: Option<String>,
    masked: bool,
}

pub(super) async fn run(host: &Host, target: &str, reveal: bool, json: bool) -> Result<Exit, Failure> {
    let (process, client) = connect(host, target).await?;
    let (variables, source) = client.environment_or_initial().await.map_err(exchange_error)?;
    if source == EnvironmentSource::Startup {
        let name = display_name(&process);
        print::message(format_args!("{name}: the values at its start; reading the current ones needs .NET 5"));
    }
    let row = |raw: ipc::Variable| {
        let variable = Variable::new(&raw, &host.settings.secrets);
        (variable.is_secret() && !reveal, variable, raw)
    };
    let mut rows: Vec<_> = variables.into_iter().map(row).collect();
    rows.compact_sort_by(|(.., a), (.., b)| a.name.cmp(&b.name));
    if json {
        // JSON escapes control characters, so the text is written unchanged.
        let row = |(masked, _, raw): (bool, Variable, ipc::Variable)| Row { masked, value: (!masked).then_some(raw.value), name: raw.name };
        print::json(&Document { source: source.name(), variables: rows.into_iter().map(row).collect() })?;
    } else {
        print::text(|out| {
            rows.iter().try_for_each(|(masked, Variable { name, value, .. }, _)| {
                writeln!(out, "{name}={}", if *masked { "(masked: --reveal shows it)" } else { value.as_str() })
            })
        })?;
    }
    Ok(Exit::Done)
}
