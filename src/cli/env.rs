//! `env`: the environment of a process, with secrets masked.

use super::exit::{Exit, Failure};
use super::host::Host;
use super::print::{self, json};
use super::target::{connect, display_name, exchange_error};
use crate::ipc;
use crate::model::{EnvironmentSource, Variable};
use crate::sorting::CompactSort;

pub(super) async fn run(host: &Host, target: &str, reveal: bool, is_json: bool) -> Result<Exit, Failure> {
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
    // JSON escapes control characters, so the text is written unchanged.
    let row = |(masked, _, raw): &(bool, Variable, ipc::Variable)| json!({ "name": raw.name, "value": (!masked).then_some(&raw.value), "masked": masked });
    // `runtime` for current values, `startup` for those at the start of the process.
    let document = || json!({ "source": source.name(), "variables": rows.iter().map(row).collect::<Vec<_>>() });
    print::result(is_json, document, |out| {
        rows.iter().try_for_each(|(masked, Variable { name, value, .. }, _)| {
            writeln!(out, "{name}={}", if *masked { "(masked: --reveal shows it)" } else { value.as_str() })
        })
    })?;
    Ok(Exit::Done)
}
