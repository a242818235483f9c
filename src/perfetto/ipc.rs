//! Frames of the socket protocol: `IPCFrame`, each preceded by its length.
//!
//! Source: the specification "Tracing API and ABI", "Socket protocol", and `protos/perfetto/ipc/wire_protocol.proto`.

use thiserror::Error;

use super::Message;
use super::read::{Malformed, fields};

/// Maximum size of a frame in bytes, including its length, that a service accepts (`kIPCBufferSize`).
pub const MAX_FRAME_BYTES: usize = 128 * 1024;
const LENGTH: usize = 4;

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Request number, repeated in its replies.
    pub request: u64,
    /// Content.
    pub body: Body,
}

/// Content of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Requests a port by name.
    Bind(String),
    /// The methods of a port.
    BindReply {
        /// Whether the port exists.
        success: bool,
        /// Identifies the port in invocations.
        service: u32,
        /// Method numbers and names.
        methods: Vec<(u32, String)>,
    },
    /// Calls a method.
    Invoke {
        /// Number of the port.
        service: u32,
        /// Number of the method.
        method: u32,
        /// The arguments message.
        arguments: Vec<u8>,
        /// Whether no reply is requested.
        drop_reply: bool,
    },
    /// Result of a call.
    InvokeReply {
        /// Whether the method was executed.
        success: bool,
        /// Whether another reply to the same call follows.
        has_more: bool,
        /// The result message.
        reply: Vec<u8>,
    },
    /// The request failed, with an error message.
    RequestError(String),
    /// Not known to this program.
    Unknown,
}

/// The reason why a frame cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a frame of {0} bytes is longer than the {MAX_FRAME_BYTES} that a tracing service accepts")]
pub struct TooLong(pub usize);

/// The reason why nothing more can be read from a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The announced length exceeds the protocol's limit.
    #[error("a frame of {0} bytes was announced, which is more than the protocol allows")]
    Length(usize),
}

impl Frame {
    /// Encodes the frame as sent over the socket.
    ///
    /// # Errors
    /// [`TooLong`]
    pub fn encode(&self) -> Result<Vec<u8>, TooLong> {
        let mut bytes = vec![0; LENGTH];
        let mut frame = Message::new(&mut bytes);
        frame.uint(2, self.request);
        match &self.body {
            Body::Bind(name) => frame.message(3, |body| body.text(1, name)),
            Body::BindReply { success, service, methods } => frame.message(4, |body| {
                body.uint(1, (*success).into());
                body.uint(2, (*service).into());
                for (id, name) in methods {
                    body.message(3, |method| {
                        method.uint(1, (*id).into());
                        method.text(2, name);
                    });
                }
            }),
            Body::Invoke { service, method, arguments, drop_reply } => frame.message(5, |body| {
                body.uint(1, (*service).into());
                body.uint(2, (*method).into());
                body.bytes(3, arguments);
                if *drop_reply {
                    body.uint(4, 1);
                }
            }),
            Body::InvokeReply { success, has_more, reply } => frame.message(6, |body| {
                body.uint(1, (*success).into());
                body.uint(2, (*has_more).into());
                body.bytes(3, reply);
            }),
            Body::RequestError(error) => frame.message(7, |body| body.text(1, error)),
            Body::Unknown => {}
        }
        let length = bytes.len() - LENGTH;
        if bytes.len() > MAX_FRAME_BYTES {
            return Err(TooLong(bytes.len()));
        }
        bytes[..LENGTH].copy_from_slice(&(length as u32).to_le_bytes());
        Ok(bytes)
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut frame = Self { request: 0, body: Body::Unknown };
        for field in fields(bytes) {
            match field? {
                (2, value) => frame.request = value.number()?,
                (3, value) => frame.body = Body::Bind(fields(value.bytes()?).text(1)?),
                (4, value) => frame.body = bind_reply(value.bytes()?)?,
                (5, value) => frame.body = invoke(value.bytes()?)?,
                (6, value) => frame.body = invoke_reply(value.bytes()?)?,
                (7, value) => frame.body = Body::RequestError(fields(value.bytes()?).text(1)?),
                _ => {}
            }
        }
        Ok(frame)
    }
}

fn bind_reply(bytes: &[u8]) -> Result<Body, Malformed> {
    let (mut success, mut service, mut methods) = (false, 0, Vec::new());
    for field in fields(bytes) {
        match field? {
            (1, value) => success = value.flag()?,
            (2, value) => service = value.small()?,
            (3, value) => {
                let method = fields(value.bytes()?);
                methods.push((method.small(1)?, method.text(2)?));
            }
            _ => {}
        }
    }
    Ok(Body::BindReply { success, service, methods })
}

fn invoke(bytes: &[u8]) -> Result<Body, Malformed> {
    let call = fields(bytes);
    let (service, method, arguments) = (call.small(1)?, call.small(2)?, call.bytes(3)?.to_vec());
    Ok(Body::Invoke { service, method, arguments, drop_reply: call.flag(4)? })
}

fn invoke_reply(bytes: &[u8]) -> Result<Body, Malformed> {
    let answer = fields(bytes);
    Ok(Body::InvokeReply { success: answer.flag(1)?, has_more: answer.flag(2)?, reply: answer.bytes(3)?.to_vec() })
}

/// Splits bytes received from a socket into frames.
#[derive(Debug, Default)]
pub struct FrameReader {
    bytes: Vec<u8>,
    /// Number of bytes that belong to frames already returned.
    used: usize,
}

impl FrameReader {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.used);
        self.used = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Number of bytes not yet returned as frames.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.used
    }

    /// Returns the next frame; `None` if it is incomplete. A frame that cannot be decoded becomes [`Body::Unknown`]: services ignore such
    /// frames, too.
    ///
    /// # Errors
    /// [`FrameError`]: the connection is no longer usable.
    pub fn frame(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            let rest = &self.bytes[self.used..];
            let Some((length, rest)) = rest.split_first_chunk::<LENGTH>() else { return Ok(None) };
            let length = u32::from_le_bytes(*length) as usize;
            if length > MAX_FRAME_BYTES - LENGTH {
                return Err(FrameError::Length(length));
            }
            let Some(payload) = rest.get(..length) else { return Ok(None) };
            let decode = || Frame::decode(payload).unwrap_or(Frame { request: 0, body: Body::Unknown });
            let frame = (length > 0).then(decode);
            self.used += LENGTH + length;
            if frame.is_some() {
                return Ok(frame);
            }
        }
    }
}
