use std::collections::BTreeSet;

use super::*;
use crate::clr::profiles;
use crate::ipc::{BufferMb, BufferMode, Capabilities, CommandCode, RuntimeVersion};

/// The enabled providers of a session as specifications.
fn enabled_providers(selected: &Selection) -> Vec<String> {
    selected.config.providers.iter().map(|provider| format_provider(&provider.provider)).collect()
}

fn selection(profiles: &[&str], providers: &[&str], runtime_keywords: Option<&str>) -> Selection {
    select(profiles, providers, runtime_keywords).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn empty_selection_uses_the_two_default_profiles() {
    let selected = selection(&[], &[], None);
    assert_eq!(selected.what, ["dotnet-common", "dotnet-sampled-thread-time"]);
    assert_eq!(
        enabled_providers(&selected),
        [
            "Microsoft-Windows-DotNETRuntime:gc+assemblyloader+loader+jit+contention+exception+threading+jittedmethodiltonativemap+compilation:informational",
            "Microsoft-DotNETCore-SampleProfiler:0xf00000000000:informational",
        ]
    );
    assert_eq!(selected.config.command().code(), CommandCode::CollectTracing2);
    assert!(selected.warnings.is_empty());
}

/// Selected profiles, providers and runtime keywords; expected providers.
type Rule<'a> = (&'a [&'a str], &'a [&'a str], Option<&'a str>, &'a [&'a str]);

/// One row per rule.
#[test]
fn provider_merge_rules() {
    let runtime = |rest: &str| format!("{RUNTIME_PROVIDER}:{rest}");
    let table: [Rule<'_>; 12] = [
        // Explicit selection: no defaults.
        (&[], &["P:1:5"], None, &["P:0x1:verbose"]),
        (&["contention"], &[], None, &[&runtime("contention:informational")]),
        (&[], &[], Some("gc+jit"), &[&runtime("gc+jit:informational")]),
        // A provider in both a profile and a specification: keywords of both, higher level, specified arguments.
        (&["gc-verbose"], &[&runtime("loader:2")], None, &[&runtime("gc+gchandle+loader+exception:verbose")]),
        (&["contention"], &[&runtime("gc+contention:5")], None, &[&runtime("gc+contention:verbose")]),
        (
            &["dotnet-sampled-thread-time"],
            &["microsoft-dotnetcore-sampleprofiler:1:2"],
            None,
            &["microsoft-dotnetcore-sampleprofiler:0xf00000000001:informational", &runtime("contention:informational")],
        ),
        (
            &["database-timing"],
            &["Microsoft-Diagnostics-DiagnosticSource:0x8:2:FilterAndPayloadSpecs=x"],
            None,
            &[
                "Microsoft-Diagnostics-DiagnosticSource:messages+events+0x8:verbose:FilterAndPayloadSpecs=x",
                "System.Threading.Tasks.TplEventSource:tasksflowactivityids:informational",
            ],
        ),
        // Duplicate provider: keywords of both, higher level, arguments of either.
        (&["exceptions", "gc-verbose", "contention"], &[], None, &[&runtime("gc+gchandle+contention+exception:verbose")]),
        (&[], &["P:1:2", "p:2:4:k=v"], None, &["P:0x3:informational:k=v"]),
        (&[], &["P:1:5:k=v", "P:2:0:k=v"], None, &["P:0x3:logalways:k=v"]),
        // Runtime keywords only apply if nothing else enables the runtime's provider.
        (
            &["dotnet-sampled-thread-time"],
            &[],
            Some("gc"),
            &["Microsoft-DotNETCore-SampleProfiler:0xf00000000000:informational", &runtime("gc+contention:informational")],
        ),
        (&["contention"], &[], Some("gc"), &[&runtime("contention:informational")]),
    ];
    for (profiles, providers, runtime_keywords, expected) in table {
        assert_eq!(
            enabled_providers(&selection(profiles, providers, runtime_keywords)),
            expected,
            "{profiles:?} {providers:?} {runtime_keywords:?}"
        );
    }
}

#[test]
fn selection_has_labels_and_warnings() {
    let selected = selection(&["HTTP", "database"], &["P"], Some("gc"));
    assert_eq!(selected.what, ["http", "database", "P:0xffffffffffffffff:informational", "gc"]);
    assert_eq!(selected.warnings.len(), 2);
    assert!(selected.warnings[1].starts_with("database: SQL text"));
    let selected = selection(&["contention"], &[], Some("gc+jit"));
    assert_eq!(selected.what, ["contention"]);
    assert_eq!(
        selected.warnings,
        ["runtime events gc+jit are ignored: a provider or profile already enables Microsoft-Windows-DotNETRuntime"]
    );
}

#[test]
fn merged_providers_cause_warnings() {
    let warnings = |profiles: &[&str], provider: &str| selection(profiles, &[&format!("{RUNTIME_PROVIDER}:{provider}")], None).warnings;
    assert_eq!(
        warnings(&["gc-verbose", "contention", "dotnet-sampled-thread-time"], "loader:error"),
        [format!(
            "{RUNTIME_PROVIDER}:loader:error and profiles gc-verbose, contention are merged: {RUNTIME_PROVIDER}:gc+gchandle+loader+contention+exception:verbose"
        )]
    );
    assert_eq!(warnings(&["contention"], "contention+gc:verbose"), [""; 0], "nothing came of the profile");
    let arguments = selection(&["database-timing"], &["Microsoft-Diagnostics-DiagnosticSource:3:5:FilterAndPayloadSpecs=x"], None).warnings;
    assert!(arguments.len() == 1 && arguments[0].ends_with(":FilterAndPayloadSpecs=x, with the specified arguments"), "{arguments:?}");
}

/// The `DiagnosticSource` lists of all profiles are merged, without duplicate lines.
#[test]
fn filter_specs_of_profiles_are_merged() {
    let lines = |profiles: &[&str]| {
        let all = enabled_providers(&selection(profiles, &[], None));
        let (_, specs) = all.iter().find_map(|provider| provider.split_once("FilterAndPayloadSpecs=")).unwrap();
        specs.trim_matches(['\\', '"']).split("\\r\\n").map(str::to_owned).collect::<Vec<_>>()
    };
    let [http, database] = ["http", "database"].map(|profile| lines(&[profile]));
    assert_eq!((http.len(), database.len()), (3, 6));
    assert_eq!(lines(&["slow", "database", "http"]), [http, database].concat());
}

#[test]
fn reduced_rundown_needs_agreement_of_all_profiles() {
    let table: [(&[&str], &[&str], Rundown); 4] = [
        (&["gc-collect"], &[], Rundown::Preferred(1)),
        (&["gc-collect", "contention"], &[], Rundown::Default),
        (&["gc-collect"], &["P"], Rundown::Default),
        (&["dotnet-common"], &[], Rundown::Default),
    ];
    for (profiles, providers, rundown) in table {
        assert_eq!(selection(profiles, providers, None).config.rundown, rundown, "{profiles:?}");
    }
}

#[test]
fn invalid_selections_are_errors() {
    let fails = |profiles: &[&str], providers: &[&str], keywords: Option<&str>| select(profiles, providers, keywords).unwrap_err();
    assert_eq!(
        fails(&[], &["P:1:5:a=1", "P:1:5:a=2"], None).to_string(),
        "provider 'P' is given twice with different arguments: 'a=1' and 'a=2'"
    );
    for more in ["x;k=1", "\"x\";k=1", "\"x;y\";k=\"1\""] {
        let error = fails(&[], &["P:::FilterAndPayloadSpecs=y", &format!("P:::FilterAndPayloadSpecs={more}")], None);
        assert!(matches!(error, SelectError::Arguments { .. }), "filter lists are only merged if there is no other key: {more}");
    }
    assert_eq!(fails(&["nope"], &[], None), SelectError::Profile(UnknownProfile("nope".to_owned())));
    assert!(fails(&[], &["P:zz"], None).to_string().starts_with("provider 'P:zz', character 3: expected keywords"));
    assert!(fails(&[], &[], Some("gcc")).to_string().starts_with("runtime events 'gcc', character 1: expected keywords"));
    let many: Vec<_> = (0..1001).map(|i| format!("P{i}")).collect();
    assert_eq!(select(&[""; 0], &many, None), Err(SelectError::InvalidRequest(InvalidRequest::ProviderCount(1001))));
}

/// Each profile results in a session that even .NET Core 3.1 accepts, with at least one of the available commands.
#[test]
fn every_profile_works_on_every_runtime() {
    let oldest = Capabilities::of(Some(&RuntimeVersion::new("3.1.23")));
    for profile in profiles() {
        let selected = selection(&[&profile.name], &[], None);
        let names: BTreeSet<_> = profile.providers.iter().chain(&profile.required).map(|provider| provider.name()).collect();
        assert_eq!(selected.config.providers.len(), names.len());
        assert_eq!((selected.config.buffer, selected.config.stacks), (BufferMb::DEFAULT, true));
        assert_eq!(selected.config.mode, BufferMode::Drop);
        let attempts = selected.config.attempts();
        assert!(attempts.iter().any(|attempt| oldest.unsupported_reason(attempt.command.code()).is_none()), "{}", profile.name);
        assert!(attempts.iter().all(|attempt| attempt.command.encode().is_ok()), "{}", profile.name);
    }
}
