//! `profiles`: the built-in trace profiles and what each enables.

use super::exit::{Exit, Failure};
use super::print::{self, json};
use crate::clr::{Profile, format_provider, profiles};

pub(super) fn run(is_json: bool) -> Result<Exit, Failure> {
    let document = |profile: &Profile| {
        json!({
            "name": profile.name,
            "question": profile.question,
            "about": profile.about,
            "cost": profile.cost,
            "warning": profile.warning,
            "providers": profile.providers.iter().map(format_provider).collect::<Vec<_>>(),
        })
    };
    let documents = || json!({ "profiles": profiles().iter().map(document).collect::<Vec<_>>() });
    print::result(is_json, documents, |out| {
        for Profile { name, question, about, cost, warning, providers, .. } in profiles() {
            writeln!(out, "{name}: {question}\n    {about}\n    Overhead: {cost}.")?;
            if let Some(warning) = warning {
                writeln!(out, "    Privacy: {warning}")?;
            }
            for provider in providers {
                writeln!(out, "    {}", format_provider(provider))?;
            }
        }
        Ok(())
    })?;
    Ok(Exit::Done)
}
