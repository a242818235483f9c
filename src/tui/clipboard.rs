//! Copying to the desktop's clipboard if there is one, otherwise through the terminal (OSC 52).

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Maximum length of a text for OSC 52. Encoding adds a third; terminals and tmux truncate longer sequences.
pub(super) const MAX_OSC52: usize = 74_994 / 4 * 3;

/// Timeout of the desktop's clipboard. A dead X display fails at once; a hung one must not delay the toast.
const CLIPBOARD_TIMEOUT: Duration = Duration::from_millis(500);

/// Whether to use the desktop's clipboard: over SSH, or without a display, only the terminal can reach the user's clipboard.
pub(super) fn uses_desktop() -> bool {
    is_desktop(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Returns where copied text goes, as the end of a sentence.
pub fn clipboard_destination() -> &'static str {
    if uses_desktop() { "to the desktop's clipboard" } else { "through the terminal (OSC 52), which has to allow it" }
}

/// Decides by whether environment variables are set and not empty.
fn is_desktop(variable: impl Fn(&str) -> bool) -> bool {
    let remote = variable("SSH_TTY") || variable("SSH_CONNECTION");
    let display = variable("DISPLAY") || variable("WAYLAND_DISPLAY") || ["macos", "windows"].contains(&std::env::consts::OS);
    display && !remote
}

/// The desktop's clipboard. On X11 and Wayland the owning process serves the text, so one instance is kept for the whole run, on a separate thread
/// because its calls block.
#[derive(Debug, Default)]
pub(super) struct Desktop {
    requests: Option<mpsc::UnboundedSender<Request>>,
}

/// A text, and where to send the result.
type Request = (String, oneshot::Sender<Result<(), String>>);

impl Desktop {
    /// Puts a text on the clipboard. The future resolves to why that failed, if it did.
    pub(super) fn set(&mut self, text: String) -> impl Future<Output = Result<(), String>> + use<> {
        let (answer, answered) = oneshot::channel();
        // If the request cannot be sent, its answer is dropped.
        let _ = self.requests.get_or_insert_with(start).send((text, answer));
        async move {
            match timeout(CLIPBOARD_TIMEOUT, answered).await {
                Ok(Ok(result)) => result,
                Ok(Err(_)) => Err("the thread for the clipboard cannot be started".to_owned()),
                Err(_) => Err("the desktop's clipboard does not respond".to_owned()),
            }
        }
    }
}

fn start() -> mpsc::UnboundedSender<Request> {
    let (requests, mut incoming) = mpsc::unbounded_channel::<Request>();
    let serve = move || {
        let mut clipboard = arboard::Clipboard::new();
        while let Some((text, answer)) = incoming.blocking_recv() {
            let result = match &mut clipboard {
                Ok(clipboard) => clipboard.set_text(text).map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            // After the timeout the result is no longer needed.
            let _ = answer.send(result.map_err(|why| format!("the desktop's clipboard cannot be used: {why}")));
        }
    };
    // Without the thread the receiver is dropped, and every request fails at once, which is reported.
    let _ = std::thread::Builder::new().name("clipboard".to_owned()).spawn(serve);
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_route_depends_on_the_environment() {
        let cases: [(&[&str], bool); 5] = [
            (&[], false),
            (&["DISPLAY"], true),
            (&["WAYLAND_DISPLAY"], true),
            (&["DISPLAY", "SSH_TTY"], false),
            (&["WAYLAND_DISPLAY", "SSH_CONNECTION"], false),
        ];
        for (set, expected) in cases {
            assert_eq!(is_desktop(|name| set.contains(&name)), expected, "{set:?}");
        }
    }

    #[tokio::test]
    async fn a_missing_clipboard_is_an_error() {
        // With or without a display: there is an answer before the timeout.
        let mut desktop = Desktop { requests: Some(mpsc::unbounded_channel().0) };
        assert_eq!(desktop.set("text".to_owned()).await, Err("the thread for the clipboard cannot be started".to_owned()));
    }
}
