use proptest::prelude::*;

use super::*;
use crate::clr::known_providers;
use crate::ipc::InvalidRequest;

fn read(spec: &str) -> (String, u64, Level, Option<String>) {
    let provider = parse_provider(spec).unwrap_or_else(|error| panic!("{error}"));
    (provider.name().to_owned(), provider.keywords(), provider.level(), provider.arguments().map(str::to_owned))
}

#[test]
fn valid_provider_specs_are_parsed() {
    let table = [
        ("MyCompany-Source", "MyCompany-Source", u64::MAX, Level::Informational, None),
        ("P:", "P", u64::MAX, Level::Informational, None),
        // All keywords of the runtime's provider would trigger collections and dump the heap.
        (RUNTIME_PROVIDER, RUNTIME_PROVIDER, 0x10_0003_801d, Level::Informational, None),
        ("P:1f", "P", 0x1f, Level::Informational, None),
        ("P:0x1F:", "P", 0x1f, Level::Informational, None),
        ("P:0X1f:5", "P", 0x1f, Level::Verbose, None),
        ("P:FFFFFFFFFFFFFFFF:Verbose", "P", u64::MAX, Level::Verbose, None),
        ("P::error", "P", u64::MAX, Level::Error, None),
        ("P: : :", "P", u64::MAX, Level::Informational, None),
        ("P:::k=v", "P", u64::MAX, Level::Informational, Some("k=v")),
        ("P:1:99:k=v;k2=\"v;x:1\"", "P", 1, Level::Verbose, Some("k=v;k2=\"v;x:1\"")),
        ("P:1:logalways:  ", "P", 1, Level::LogAlways, None),
        ("Microsoft-Windows-DotNETRuntime:gc+Exception:4", RUNTIME_PROVIDER, 0x8001, Level::Informational, None),
        ("microsoft-windows-dotnetruntime:fusion+0x100+8", "microsoft-windows-dotnetruntime", 0x10c, Level::Informational, None),
        ("System.Runtime:::EventCounterIntervalSec=1", "System.Runtime", u64::MAX, Level::Informational, Some("EventCounterIntervalSec=1")),
        ("Microsoft-Extensions-Logging:formattedmessage:5", "Microsoft-Extensions-Logging", 4, Level::Verbose, None),
    ];
    for (spec, name, keywords, level, arguments) in table {
        assert_eq!(read(spec), (name.to_owned(), keywords, level, arguments.map(str::to_owned)), "{spec}");
    }
}

#[test]
fn spec_errors_have_kind_and_position() {
    let keywords = |name: &str| SpecErrorKind::Keywords(name.to_owned());
    let table = [
        ("", 0, SpecErrorKind::NoName),
        ("  :1", 0, SpecErrorKind::NoName),
        (":1:5", 0, SpecErrorKind::NoName),
        ("A:1:5,B:1:5", 5, SpecErrorKind::Comma),
        ("A,B", 1, SpecErrorKind::Comma),
        ("P:zz", 2, keywords("P")),
        ("P:gc", 2, keywords("P")),
        ("P:0x", 2, keywords("P")),
        ("P:-1", 2, keywords("P")),
        ("P:1+", 4, keywords("P")),
        ("P:1ffffffffffffffff", 2, keywords("P")),
        ("Microsoft-Windows-DotNETRuntime:gc+jitt:5", 35, keywords(RUNTIME_PROVIDER)),
        ("P:1:loud", 4, SpecErrorKind::Level),
        ("Pé:1:-1", 5, SpecErrorKind::Level),
        ("P:1:5:k", 7, SpecErrorKind::NoValue),
        ("P:1:5:k=\"v", 8, SpecErrorKind::OpenQuote),
        ("P\0:1", 0, SpecErrorKind::InvalidRequest(InvalidRequest::Nul("a provider's name"))),
        ("P:::k=\0", 4, SpecErrorKind::InvalidRequest(InvalidRequest::Nul("a provider's arguments"))),
    ];
    for (spec, at, problem) in table {
        assert_eq!(parse_provider(spec), Err(SpecError { spec: spec.to_owned(), at, problem }), "{spec}");
    }
}

#[test]
fn spec_error_messages() {
    let words = |spec: &str| parse_provider(spec).unwrap_err().to_string();
    assert_eq!(words("P\x1b:zz"), r"'P\u{1b}:zz', character 4: expected keywords: hexadecimal digits such as 1f or 0x1f");
    let runtime = words("Microsoft-Windows-DotNETRuntime:gcc");
    assert!(runtime.contains("character 33: expected keywords: ") && runtime.contains("joined with '+': gc, gchandle, "), "{runtime}");
}

#[test]
fn runtime_keywords_are_parsed() {
    let provider = parse_runtime_keywords("gc+JIT+exception").unwrap();
    assert_eq!((provider.name(), provider.keywords(), provider.level()), (RUNTIME_PROVIDER, 0x8011, Level::Informational));
    let error = parse_runtime_keywords("gc+jitt").unwrap_err();
    assert_eq!((error.at, error.problem), (3, SpecErrorKind::Keywords(RUNTIME_PROVIDER.to_owned())));
    assert_eq!(parse_runtime_keywords("").unwrap_err().at, 0);
}

#[test]
fn keywords_are_formatted_by_name() {
    let table = [
        (RUNTIME_PROVIDER, 0x8011, "gc+jit+exception"),
        (RUNTIME_PROVIDER, 0x101, "gc+0x100"),
        (RUNTIME_PROVIDER, 0x100, "0x100"),
        (RUNTIME_PROVIDER, 0, "0x0"),
        (RUNTIME_PROVIDER, u64::MAX, "0xffffffffffffffff"),
        ("Unknown", 0x11, "0x11"),
        ("system.threading.tasks.tpleventsource", 0x80, "tasksflowactivityids"),
    ];
    for (provider, keywords, text) in table {
        assert_eq!(format_keywords(provider, keywords), text);
    }
}

fn names() -> impl Strategy<Value = String> {
    let known: Vec<_> = known_providers().iter().map(|provider| provider.name.clone()).collect();
    prop_oneof![proptest::sample::select(known), "[A-Za-z][A-Za-z.-]{0,20}"]
}

proptest! {
    #[test]
    fn formatted_providers_parse_back(
        name in names(),
        keywords: u64,
        level in 0..6_usize,
        arguments in proptest::option::of(r#"[a-z]{1,5}=[a-z0-9:, \\\r\n\t]{0,12}(;[A-Z]{1,4}="[a-z;=]{0,8};")?"#),
    ) {
        let provider = Provider::new(name, keywords, Level::ALL[level]).unwrap();
        let provider = provider.with_arguments(arguments.unwrap_or_default()).unwrap();
        prop_assert_eq!(parse_provider(&format_provider(&provider)), Ok(provider));
    }

    #[test]
    fn any_text_is_safe(spec in r#"P:[0-9a-f+,gcx]{0,6}:[0-9a-z]{0,5}:[a-c=;"\\rnt]{0,16}|.*"#) {
        match parse_provider(&spec) {
            Ok(provider) => prop_assert_eq!(parse_provider(&format_provider(&provider)), Ok(provider)),
            Err(error) => {
                prop_assert!(error.at <= spec.chars().count());
                prop_assert!(!error.to_string().contains(|c: char| c.is_control()));
            }
        }
    }
}
