//! `profiles`: the built-in trace profiles and what each enables.

use serde::Serialize;

use super::exit::{Exit, Failure};
use super::print;
use crate::clr::{Profile, format_provider, profiles};

#[derive(Serialize)]
struct Row {
    name: &'static str,
    question: &'static str,
    about: &'static str,
    cost: &'static str,
    warning: Option<&'static str>,
    providers: Vec<String>,
}

pub(super) fn run(json: bool) -> Result<Exit, Failure> {
    let row = |profile: &'static Profile| Row {
        name: &profile.name,
        question: &profile.question,
        about: &profile.about,
        cost: &profile.cost,
        warning: profile.warning.as_deref(),
        providers: profile.providers.iter().map(format_provider).collect(),
    };
    let rows = profiles().iter().map(row);
    if json {
        print::json_list("profiles", rows)?;
        return Ok(Exit::Done);
    }
    print::text(|out| {
        for Row { name, question, about, cost, warning, providers } in rows {
            writeln!(out, "{name}: {question}\n    {about}\n    Overhead: {cost}.")?;
            if let Some(warning) = warning {
                writeln!(out, "    Privacy: {warning}")?;
            }
            for provider in providers {
                writeln!(out, "    {provider}")?;
            }
        }
        Ok(())
    })?;
    Ok(Exit::Done)
}
