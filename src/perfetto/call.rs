//! Method calls on a port, and their replies.

use foldhash::HashMap;
use thiserror::Error;

use super::ipc::{Body, Frame, TooLong};

/// The methods of a port that dn-top uses. Their numbers are assigned by the service: only names are fixed.
pub trait Method: Copy + Eq + 'static {
    /// Name of the port, for binding it.
    const PORT: &'static str;
    /// All methods, with their names in the service's table of methods.
    const ALL: &'static [(Self, &'static str)];

    /// Returns the name of the method.
    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(method, _)| *method == self).map_or("", |(_, name)| name)
    }
}

/// The reason why a call is not possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CallError {
    /// The service is too old to have the method.
    #[error("the tracing service has no method {0}: it is too old for this")]
    NoMethod(&'static str),
    /// The arguments do not fit in a frame.
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

/// The reason why a port cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BindError {
    /// The service does not offer the port on this socket.
    #[error("the tracing service has no {0} on this socket: is it the socket of the other port?")]
    Refused(&'static str),
    /// The reply is not one to the request.
    #[error("malformed answer to the first request: no Perfetto tracing service listens there")]
    NoService,
}

/// Result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Whether the method was executed.
    pub success: bool,
    /// Whether another reply follows.
    pub has_more: bool,
    /// The result message; empty if the call failed.
    pub body: Vec<u8>,
    /// The service's error message, if it sent one instead of a result.
    pub error: Option<String>,
}

/// The calls of a connection: available methods and outstanding replies. `T` identifies the call of a reply.
#[derive(Debug)]
pub struct Calls<M, T> {
    service: u32,
    methods: Vec<(M, u32)>,
    last: u64,
    waiting: HashMap<u64, T>,
}

/// Returns the request to bind a port: the first frame of a connection.
///
/// # Errors
/// Never in practice: the names of ports are short.
pub fn bind<M: Method>() -> Result<Vec<u8>, TooLong> {
    Frame { request: 1, body: Body::Bind(M::PORT.to_owned()) }.encode()
}

impl<M: Method, T: Clone> Calls<M, T> {
    /// Parses the reply to [`bind`].
    ///
    /// # Errors
    /// [`BindError`]
    pub fn bound(reply: Frame) -> Result<Self, BindError> {
        match reply {
            Frame { request: 1, body: Body::BindReply { success: true, service, methods } } => {
                let id = |(method, name): &(M, &str)| Some((*method, methods.iter().find(|(_, known)| known == name)?.0));
                let methods = M::ALL.iter().filter_map(id).collect();
                Ok(Self { service, methods, last: 1, waiting: HashMap::default() })
            }
            Frame { request: 1, body: Body::BindReply { success: false, .. } } => Err(BindError::Refused(M::PORT)),
            _ => Err(BindError::NoService),
        }
    }

    fn id(&self, method: M) -> Option<u32> {
        self.methods.iter().find(|(known, _)| *known == method).map(|(_, id)| *id)
    }

    /// Returns the frame of a call whose replies are identified by `token`.
    ///
    /// # Errors
    /// [`CallError`]: there is nothing to send.
    pub fn call(&mut self, method: M, arguments: Vec<u8>, token: T) -> Result<Vec<u8>, CallError> {
        let frame = self.invoke(method, arguments, false)?;
        self.waiting.insert(self.last, token);
        Ok(frame)
    }

    /// Returns the frame of a call without a reply.
    ///
    /// # Errors
    /// [`CallError`]: there is nothing to send.
    pub fn send(&mut self, method: M, arguments: Vec<u8>) -> Result<Vec<u8>, CallError> {
        self.invoke(method, arguments, true)
    }

    fn invoke(&mut self, method: M, arguments: Vec<u8>, drop_reply: bool) -> Result<Vec<u8>, CallError> {
        let id = self.id(method).ok_or(CallError::NoMethod(method.name()))?;
        let frame = Frame { request: self.last + 1, body: Body::Invoke { service: self.service, method: id, arguments, drop_reply } };
        let bytes = frame.encode()?;
        self.last += 1;
        Ok(bytes)
    }

    /// Returns the token and content of a reply; `None` if it is not to an outstanding call.
    pub fn reply(&mut self, frame: Frame) -> Option<(T, Reply)> {
        let reply = match frame.body {
            Body::InvokeReply { success, has_more, reply } => Reply { success, has_more, body: reply, error: None },
            Body::RequestError(error) => Reply { success: false, has_more: false, body: Vec::new(), error: Some(error) },
            _ => return None,
        };
        let token = if reply.has_more { self.waiting.get(&frame.request).cloned() } else { self.waiting.remove(&frame.request) };
        Some((token?, reply))
    }
}
