use proptest::prelude::*;

use super::*;

#[test]
fn secret_names_are_detected() {
    for name in [
        "GITHUB_TOKEN",
        "GITHUBTOKEN",
        "API_TOKENS",
        "refreshToken",
        "CLIENT_SECRET",
        "Secrets__Main",
        "db_password",
        "PGPASSWORD",
        "DbPassword",
        "MYSQL_PWD",
        "PASSWD",
        "KEY_PASSPHRASE",
        "DB_PASS",
        "SMTP_PW",
        "AZURE_DEVOPS_EXT_PAT",
        "AWS_ACCESS_KEY_ID",
        "ApiKey",
        "APIKEY",
        "X-API-KEY",
        "SSH_PRIVATE_KEY",
        "Jwt__Key",
        "BEARER",
        "NPM_AUTH",
        "authCookie",
        "STORAGE_SAS",
        "APPINSIGHTS_INSTRUMENTATIONKEY",
        "ConnectionStrings__Main",
        "CONNECTION_STRING",
        "AccountKey",
        "GOOGLE_CREDENTIALS",
        "SESSION_ID",
        "PASSWORD2",
        "TOKEN2",
        "DB_TOKEN_1",
        "dbPass",
        "MYSQLPWD",
        "OAuth",
        "Authorization",
    ] {
        assert!(is_secret_name(name), "{name}");
    }
}

#[test]
fn other_names_are_not_secret() {
    for name in [
        "",
        "_",
        "PATH",
        "PWD",
        "OLDPWD",
        "HOME",
        "DOTNET_gcServer",
        "KEYBOARD",
        "PASSENGER_COUNT",
        "COMPASS",
        "BYPASS",
        "AUTHOR",
        "GIT_AUTHOR_NAME",
        "AUTHORITY",
        "TOKENIZERS_PARALLELISM",
        "SECRETARY",
        "PATTERN",
        "SASS_BINARY",
        "SSH_AUTH_SOCK",
        "DB_PASSWORD_FILE",
        "Keyword",
        "Compassion",
        "ASPNETCORE_URLS",
        "PUBLIC_KEY",
        "PublicKeyToken",
        "passing",
        "PWM",
        "SASL_MECHANISM",
    ] {
        assert!(!is_secret_name(name), "{name}");
    }
}

#[test]
fn secrets_in_text_are_masked() {
    for (text, masked) in [
        ("postgres://app:hush@db:5432/shop", "postgres://app:***@db:5432/shop"),
        ("amqp://u:p@ss@host", "amqp://u:***@host"),
        ("--db http://a:b@x/ --c https://d:e@y?f", "--db http://a:***@x/ --c https://d:***@y?f"),
        ("Server=db;User Id=app;Password=hu sh;Timeout=5", "Server=db;User Id=app;Password=***;Timeout=5"),
        ("Server=db;Pwd=hush", "Server=db;Pwd=***"),
        ("AccountName=a;AccountKey=abc/+d==;EndpointSuffix=e", "AccountName=a;AccountKey=***;EndpointSuffix=e"),
        ("https://s.blob/c?sv=2020&sig=ab%2Fc&se=1", "https://s.blob/c?sv=2020&sig=***&se=1"),
        ("https://s3/k?X-Amz-Signature=abc123", "https://s3/k?X-Amz-Signature=***"),
        ("InstrumentationKey=00-11;IngestionEndpoint=x", "InstrumentationKey=***;IngestionEndpoint=x"),
        ("dotnet app.dll --password=hush --port=80", "dotnet app.dll --password=*** --port=80"),
        ("dotnet app.dll --token hush --urls http://*:80", "dotnet app.dll --token *** --urls http://*:80"),
        ("dotnet app.dll --api-key 'hush' -v", "dotnet app.dll --api-key *** -v"),
        ("app -pw hush -p 8080", "app -pw *** -p 8080"),
        ("app --password \"hu sh\" x", "app --password *** x"),
        ("app DB_PASSWORD=hush next --more", "app DB_PASSWORD=*** --more"),
        ("app Password='hu sh' next", "app Password=*** next"),
        ("curl -H Authorization: Bearer abcdef -v", "curl -H Authorization: *** -v"),
        ("curl -H 'Authorization: Basic YTpi' -v", "curl -H 'Authorization: ***' -v"),
        ("the header is Bearer abcdef and more", "the header is Bearer *** and more"),
        ("the header is Bearer \"abcdef\" and more", "the header is Bearer \"***\" and more"),
        ("amqp://u:hu;Password=sh@host more", "amqp://u:***"),
        ("Cookie: a=b; c=d", "Cookie: ***"),
        (r#"{"Password":"hu\"sh","Port":1}"#, r#"{"Password":***,"Port":1}"#),
        (r#"{"DbPass": "hush"}"#, r#"{"DbPass": ***}"#),
        ("app --password:hush --port:80", "app --password:*** --port:80"),
        ("app /password hush", "app /password ***"),
        ("app --Auth:Jwt:Key=hush --x", "app --Auth:*** --x"),
        ("app Db:Password=hush --x", "app Db:Password=*** --x"),
        ("app /p:Password=hush", "app /p:Password=***"),
        ("postgres://app:hu/sh@db", "postgres://app:***@db"),
        ("postgres://app:80hu/sh@db", "postgres://app:***@db"),
        ("http://localhost:5000;amqp://u:hush@h", "http://localhost:5000;amqp://u:***@h"),
        // The end of these secrets is ambiguous.
        ("app --password hu sh", "app --password ***"),
        ("app --password=hu sh -v", "app --password=*** -v"),
        ("--jwt-file x eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.c2lnbmF0dXJl end", "--jwt-file x *** end"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----", "-----BEGIN ***-----END PRIVATE KEY-----"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE", "-----BEGIN ***"),
        ("X-Api-Key: hush", "X-Api-Key: ***"),
    ] {
        assert_eq!(mask_secrets(text), masked, "{text}");
        assert!(contains_secret(text), "{text}");
        assert_eq!(mask_secrets(masked), masked, "masked again");
        assert!(!contains_secret(masked), "{masked}");
    }
}

#[test]
fn text_without_secrets_is_unchanged() {
    for text in [
        "",
        "/usr/bin/dotnet /srv/shop.dll --urls http://*:8080 -p 80",
        "http://localhost:5000;https://localhost:5001",
        "user@example.com",
        "https://example.com/a@b:c",
        "ssh://git@host:22/repo",
        "Server=db;Integrated Security=true",
        "--passengers 4 --author me",
        "eyJ is how a token begins",
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0",
        "app --password --port 80",
        "a=b;c=d",
        "12:30:00",
        "/opt/secrets/bin:/usr/bin",
        "TOKENIZERS=on",
        "http://auth:8080/x --y",
        "image my-token:latest",
        "System, Version=4.0.0.0, PublicKeyToken=b77a5c561934e089",
        "--Logging:LogLevel:Default=Debug",
    ] {
        assert_eq!(mask_secrets(text), text);
        assert!(!contains_secret(text), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn detection_and_masking_agree_for_any_text(text in "([A-Za-z0-9=:;&?@/ \"'\\\\-]|password=|--token |://|eyJ|-----BEGIN |\\*\\*\\*|\\PC){0,40}") {
        let masked = mask_secrets(&text);
        prop_assert_eq!(contains_secret(&text), *masked != *text);
        // Masking again never makes the text longer.
        prop_assert!(!contains_secret(&masked) || mask_secrets(&masked).len() <= masked.len());
    }

    /// No part of a secret remains, whatever it consists of and wherever it is.
    #[test]
    fn no_part_of_a_secret_remains_after_masking(
        before in "[a-z ./]{0,10}",
        secret in "[A-Z0-9+/=!#$%&*.:@_~^-]{0,20}Q7Q7[A-Z0-9+/=!#$%&*.:@_~^-]{0,20}",
        after in "( --[a-z]{1,8}){0,2}",
    ) {
        for (start, end) in [("--password ", ""), ("--api-key=", ""), ("{\"pw\":\"", "\"}"), ("Pwd='", "'"), ("Authorization: Bearer ", ""), ("DB_PASS=", "")] {
            // An option without a value follows.
            prop_assume!(!secret.starts_with("--"));
            let text = format!("{before} {start}{secret}{end}{after}");
            let masked = mask_secrets(&text);
            prop_assert!(!masked.contains("Q7Q7"), "{} {}", text, masked);
            prop_assert!(masked.ends_with(&after), "{} {}", text, masked);
        }
    }
}

/// Would take hours if a part of the text were scanned more than a few times.
#[test]
fn hostile_texts_take_linear_time() {
    for piece in [
        "pw=",
        "pw='",
        "--pw '",
        "--pw ",
        "eyJ",
        "eyJ.",
        "-----BEGIN ",
        "://",
        "://a:b",
        "://a:b/",
        "a:",
        "a=",
        "\"",
        "\":",
        "Bearer ",
        "A",
        "aA",
        "Aa_",
        "pw: ",
        "?pw=",
        "pw:\"",
        " -",
        "@",
        "é",
    ] {
        let text = piece.repeat(100_000 / piece.len());
        let masked = mask_secrets(&text);
        assert_eq!(contains_secret(&text), masked != text, "{piece}");
        is_secret_name(&text);
    }
}
