//! Sessions with a preview of .NET Core 3.0, over its own protocol.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::endpoint::Endpoint;
use super::error::Cause;
use super::peer::VerifiedStream;
use crate::ipc::{BufferMode, LEGACY_REPLY_BYTES, LegacyRequest, Rundown, SessionConfig, SessionId};

/// First bytes of the reply of any other runtime.
const NOT_LEGACY: &[u8; LEGACY_REPLY_BYTES] = b"DOTNET_I";

/// Translates a session into the legacy protocol; options that it cannot express are refused.
pub(super) fn collect(config: &SessionConfig) -> Result<LegacyRequest, Cause> {
    let lacks = [
        (config.providers.iter().any(|asked| !asked.filter.is_all()), "event ids"),
        (!config.stacks, "sessions without stacks"),
        (config.mode == BufferMode::Block, "sessions that block"),
        (matches!(config.rundown, Rundown::None | Rundown::Keyword(_)), "choice of rundown"),
    ];
    if let Some((_, what)) = lacks.into_iter().find(|(asked, _)| *asked) {
        return Err(Cause::UnsupportedByLegacy(what));
    }
    let providers = config.providers.clone().map(|asked| asked.provider);
    Ok(LegacyRequest::Collect { buffer_mb: config.buffer.get(), providers })
}

/// Sends a request over a new connection and reads the session id from the reply. Data after it is left unread in the connection.
pub(super) async fn exchange(stream: &mut VerifiedStream, to: &Endpoint, request: &LegacyRequest) -> Result<SessionId, Cause> {
    let bytes = request.encode(to.named_pid().unwrap_or(to.key.pid));
    stream.write_all(&bytes).await.map_err(|error| Cause::of_stream(error, 0))?;
    let mut answer = [0; LEGACY_REPLY_BYTES];
    stream.read_exact(&mut answer).await.map_err(|error| Cause::of_stream(error, 0))?;
    match &answer {
        [0, 0, 0, 0, 0, 0, 0, 0] => Err(Cause::LegacyRefused),
        NOT_LEGACY => Err(Cause::NotLegacy),
        answer => Ok(SessionId(u64::from_le_bytes(*answer))),
    }
}
