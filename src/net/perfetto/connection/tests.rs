//! A connection to a service that does not read.

use tokio::io::AsyncReadExt;
use tokio::net::{UnixListener, UnixStream};

use super::*;
use crate::perfetto::ipc::Body;
use crate::perfetto::producer::ProducerMethod;

/// More frames than fit in the channel and the buffer of the socket.
const MANY: usize = 64 * MAX_OUTGOING;

/// Starts a service that replies to the first request and reads nothing more.
async fn answer_first(listener: UnixListener) -> UnixStream {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = bind::<ProducerMethod>().unwrap();
    stream.read_exact(&mut request).await.unwrap();
    let methods = vec![(7, ProducerMethod::CommitData.name().to_owned())];
    let reply = Frame { request: 1, body: Body::BindReply { success: true, service: 1, methods } };
    stream.write_all(&reply.encode().unwrap()).await.unwrap();
    stream
}

#[tokio::test]
async fn service_that_does_not_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("producer");
    let service = tokio::spawn(answer_first(UnixListener::bind(&path).unwrap()));
    let mut connection = Connection::<_, ()>::open(Address::Path(path.clone())).await.unwrap();
    let stream = service.await.unwrap();
    let mut accepted = 0;
    let error = loop {
        match connection.send(ProducerMethod::CommitData, vec![0; 4096]) {
            Ok(()) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < MANY, "nothing limits what waits to be sent");
        // Lets the sending task fill the buffer of the socket.
        tokio::task::yield_now().await;
    };
    assert!(accepted > MAX_OUTGOING, "the socket took none of {accepted} frames");
    assert!(matches!(error.cause, Cause::NotReading), "{error}");
    let words = format!("Perfetto's tracing service at {}: it is not reading its socket", path.display());
    assert_eq!(error.to_string(), words);
    // A call with a reply fails at once, too.
    let asked = connection.ask(ProducerMethod::CommitData, Vec::new(), (), Duration::MAX).await;
    assert!(matches!(asked.unwrap_err().cause, Cause::NotReading));
    // A closed connection is a different error.
    drop(stream);
    connection.out.closed().await;
    let closed = connection.send(ProducerMethod::CommitData, Vec::new()).unwrap_err();
    assert!(matches!(closed.cause, Cause::Closed), "{closed}");
}

#[tokio::test]
async fn error_message_of_the_service_is_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("producer");
    let listener = UnixListener::bind(&path).unwrap();
    let refuse = |request| Frame { request, body: Body::RequestError("not\u{1b} for you".to_owned()) }.encode().unwrap();
    let service = tokio::spawn(async move {
        let mut stream = answer_first(listener).await;
        // The frame of the call that is refused.
        let _ = stream.read(&mut [0; 4096]).await.unwrap();
        stream.write_all(&refuse(2)).await.unwrap();
        stream
    });
    let mut connection = Connection::<_, ()>::open(Address::Path(path)).await.unwrap();
    let error = connection.ask(ProducerMethod::CommitData, Vec::new(), (), REPLY_TIMEOUT).await.unwrap_err().to_string();
    assert!(error.ends_with(": CommitData was refused: not\u{fffd} for you"), "{error}");
    drop(service.await.unwrap());

    let path = folder.path().join("other");
    let listener = UnixListener::bind(&path).unwrap();
    let service = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(&refuse(1)).await.unwrap();
        stream
    });
    let error = Connection::<ProducerMethod, ()>::open(Address::Path(path)).await.unwrap_err().to_string();
    assert!(error.ends_with(": the request for its methods was refused: not\u{fffd} for you"), "{error}");
    drop(service.await.unwrap());
}

/// One call may have any number of replies.
#[tokio::test]
async fn endless_replies_to_another_call_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("producer");
    let listener = UnixListener::bind(&path).unwrap();
    let service = tokio::spawn(async move {
        let mut stream = answer_first(listener).await;
        // The frame of the first call.
        let _ = stream.read(&mut [0; 4096]).await.unwrap();
        let body = Body::InvokeReply { success: true, has_more: true, reply: vec![0; 1000] };
        let reply = Frame { request: 2, body }.encode().unwrap();
        while stream.write_all(&reply).await.is_ok() {}
    });
    let mut connection = Connection::<_, u32>::open(Address::Path(path)).await.unwrap();
    connection.call(ProducerMethod::CommitData, Vec::new(), 1).unwrap();
    let error = connection.ask(ProducerMethod::CommitData, Vec::new(), 2, Duration::from_secs(20)).await.unwrap_err();
    let why = "more than 64 other answers arrived before that to CommitData";
    assert!(matches!(error.cause, Cause::OtherReplies { .. }) && error.to_string().ends_with(why), "{error}");
    assert_eq!(connection.pending.len(), MAX_PENDING);
    drop(connection);
    service.await.unwrap();
}
