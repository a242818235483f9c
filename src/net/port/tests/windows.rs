//! Tests of the pipe name.

use super::*;

#[tokio::test]
async fn pipe_is_served_once_and_its_name_is_validated() {
    let dir = tempfile::tempdir().unwrap();
    let path = address_in(dir.path(), "port");
    let serve = |path: &Path| Port::serve(path, &Sources::machine());
    let port = serve(&path).unwrap();
    let refused = |path: &Path, words: &str| {
        let error = serve(path).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(&path, "is served by another program");
    assert!(test_stream::connect(&path).await.is_ok(), "the first one goes on");
    drop(port);
    // A name alone is the name of a pipe. The pipe disappears when the task of the first port has ended.
    let name = path.to_str().unwrap().rsplit('\\').next().unwrap();
    let began = Instant::now();
    let port = loop {
        match serve(Path::new(name)) {
            Ok(port) => break port,
            Err(error) => assert!(began.elapsed() < TIMEOUT, "{error}"),
        }
        sleep(Duration::from_millis(5)).await;
    };
    assert_eq!(port.path(), path);

    refused(Path::new(&"n".repeat(256)), "256 characters at most");
    for path in [r"\\server\pipe\port", r"\\.\COM1", r"\\?\C:\port", r"C:\port", "folder/port", "NUL:"] {
        refused(Path::new(path), "it is not the name of a pipe of this machine");
    }
    refused(Path::new("a,b"), "cannot be written into DOTNET_DiagnosticPorts");
}
