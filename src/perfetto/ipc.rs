//! Frames of the socket protocol: `IPCFrame`, each behind its length.
//!
//! Source: the specification "Tracing API and ABI", "Socket protocol", and `protos/perfetto/ipc/wire_protocol.proto`.

use thiserror::Error;

use super::Message;
use super::read::{Malformed, fields};

/// Bytes of a frame, its length included: what a service takes (`kIPCBufferSize`).
pub const LONGEST_FRAME: usize = 128 * 1024;
const LENGTH: usize = 4;

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Numbers a request; its replies have the same.
    pub request: u64,
    /// What it is.
    pub body: Body,
}

/// What a frame is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Asks for one of the ports.
    Bind(String),
    /// The methods of a port.
    BindReply {
        /// Whether there is such a port.
        success: bool,
        /// Names the port in invocations.
        service: u32,
        /// Numbers and names of the methods.
        methods: Vec<(u32, String)>,
    },
    /// Calls a method.
    Invoke {
        /// The port.
        service: u32,
        /// The method.
        method: u32,
        /// Its argument, a message.
        arguments: Vec<u8>,
        /// Whether no reply is wanted.
        drop_reply: bool,
    },
    /// A result of a call.
    InvokeReply {
        /// Whether the method was executed.
        success: bool,
        /// Whether another reply to the same call follows.
        has_more: bool,
        /// The result, a message.
        reply: Vec<u8>,
    },
    /// The request cannot be answered; why.
    RequestError(String),
    /// Something newer than this program.
    Unknown,
}

/// Why a frame cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a frame of {0} bytes is longer than the {LONGEST_FRAME} that a tracing service takes")]
pub struct TooLong(pub usize);

/// Why nothing more can be read from a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// No frame is that long.
    #[error("a frame of {0} bytes was announced, which is more than the protocol allows")]
    Length(usize),
}

impl Frame {
    /// The bytes on the socket.
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
        if bytes.len() > LONGEST_FRAME {
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
                (3, value) => frame.body = Body::Bind(text_of(value.bytes()?)?),
                (4, value) => frame.body = bind_reply(value.bytes()?)?,
                (5, value) => frame.body = invoke(value.bytes()?)?,
                (6, value) => frame.body = invoke_reply(value.bytes()?)?,
                (7, value) => frame.body = Body::RequestError(text_of(value.bytes()?)?),
                _ => {}
            }
        }
        Ok(frame)
    }
}

/// The text in field 1.
fn text_of(bytes: &[u8]) -> Result<String, Malformed> {
    let mut text = String::new();
    for field in fields(bytes) {
        if let (1, value) = field? {
            text = value.text()?;
        }
    }
    Ok(text)
}

fn bind_reply(bytes: &[u8]) -> Result<Body, Malformed> {
    let (mut success, mut service, mut methods) = (false, 0, Vec::new());
    for field in fields(bytes) {
        match field? {
            (1, value) => success = value.flag()?,
            (2, value) => service = value.small()?,
            (3, value) => {
                let (mut id, mut name) = (0, String::new());
                for field in fields(value.bytes()?) {
                    match field? {
                        (1, value) => id = value.small()?,
                        (2, value) => name = value.text()?,
                        _ => {}
                    }
                }
                methods.push((id, name));
            }
            _ => {}
        }
    }
    Ok(Body::BindReply { success, service, methods })
}

fn invoke(bytes: &[u8]) -> Result<Body, Malformed> {
    let (mut service, mut method, mut arguments, mut drop_reply) = (0, 0, Vec::new(), false);
    for field in fields(bytes) {
        match field? {
            (1, value) => service = value.small()?,
            (2, value) => method = value.small()?,
            (3, value) => arguments = value.bytes()?.to_vec(),
            (4, value) => drop_reply = value.flag()?,
            _ => {}
        }
    }
    Ok(Body::Invoke { service, method, arguments, drop_reply })
}

fn invoke_reply(bytes: &[u8]) -> Result<Body, Malformed> {
    let (mut success, mut has_more, mut reply) = (false, false, Vec::new());
    for field in fields(bytes) {
        match field? {
            (1, value) => success = value.flag()?,
            (2, value) => has_more = value.flag()?,
            (3, value) => reply = value.bytes()?.to_vec(),
            _ => {}
        }
    }
    Ok(Body::InvokeReply { success, has_more, reply })
}

/// Cuts what comes from a socket into frames.
#[derive(Debug, Default)]
pub struct FrameReader {
    bytes: Vec<u8>,
    /// How many of the bytes are frames that were given.
    used: usize,
}

impl FrameReader {
    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.used);
        self.used = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// How many bytes are in no frame that was given.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.used
    }

    /// The next frame; `None` until more bytes come. One that cannot be decoded is [`Body::Unknown`]: services ignore such frames, too.
    ///
    /// # Errors
    /// [`FrameError`]: the connection is of no use any more.
    pub fn frame(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            let rest = &self.bytes[self.used..];
            let Some((length, rest)) = rest.split_first_chunk::<LENGTH>() else { return Ok(None) };
            let length = u32::from_le_bytes(*length) as usize;
            if length > LONGEST_FRAME - LENGTH {
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
