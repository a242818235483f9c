//! Copying: to the desktop's clipboard where there is one, through the terminal (OSC 52) where there is not.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

/// The longest text that is sent through a terminal. Encoded it takes a third more; terminals and tmux cut longer ones off.
pub(super) const LONGEST_OSC52: usize = 74_994 / 4 * 3;

/// How long the desktop may take. A dead X display answers at once; a hung one must not hold the toast back.
const DEADLINE: Duration = Duration::from_millis(500);

/// Where a text went, or should go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    Desktop,
    /// The terminal's own clipboard by escape sequence.
    Terminal,
}

/// Chooses by the environment: over SSH, or without a display, only the terminal can reach the person's clipboard.
pub(super) fn route(variable: impl Fn(&str) -> bool) -> Route {
    let remote = variable("SSH_TTY") || variable("SSH_CONNECTION");
    let display = variable("DISPLAY") || variable("WAYLAND_DISPLAY") || ["macos", "windows"].contains(&std::env::consts::OS);
    if remote || !display { Route::Terminal } else { Route::Desktop }
}

/// Where a copied text goes from here, as the end of a sentence.
pub fn clipboard_reaches() -> &'static str {
    match route(is_set) {
        Route::Desktop => "to the desktop's clipboard",
        Route::Terminal => "through the terminal (OSC 52), which has to allow it",
    }
}

/// Whether a variable of the environment has a value.
pub(super) fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// The desktop's clipboard. On X11 and Wayland it is this process that hands the text out, so one is kept for the whole run, on a
/// thread of its own because its calls block.
#[derive(Debug, Default)]
pub(super) struct Desktop {
    requests: Option<mpsc::UnboundedSender<(String, oneshot::Sender<bool>)>>,
}

impl Desktop {
    /// Puts the text into the clipboard; the answer comes by itself: whether it worked within the deadline.
    pub(super) fn set(&mut self, text: String) -> impl Future<Output = bool> + use<> {
        let (answer, answered) = oneshot::channel();
        // A request that cannot be sent drops its answer, which reads as "did not work".
        let _ = self.requests.get_or_insert_with(start).send((text, answer));
        async move { matches!(tokio::time::timeout(DEADLINE, answered).await, Ok(Ok(true))) }
    }
}

fn start() -> mpsc::UnboundedSender<(String, oneshot::Sender<bool>)> {
    let (requests, mut incoming) = mpsc::unbounded_channel::<(String, oneshot::Sender<bool>)>();
    let serve = move || {
        let mut clipboard = arboard::Clipboard::new().ok();
        while let Some((text, answer)) = incoming.blocking_recv() {
            let done = clipboard.as_mut().is_some_and(|clipboard| clipboard.set_text(text).is_ok());
            // Past the deadline the result is not needed.
            let _ = answer.send(done);
        }
    };
    // Without the thread the receiver is gone and every request fails at once, which the caller turns into OSC 52.
    let _ = std::thread::Builder::new().name("clipboard".to_owned()).spawn(serve);
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_route_follows_the_person() {
        let cases: [(&[&str], Route); 5] = [
            (&[], Route::Terminal),
            (&["DISPLAY"], Route::Desktop),
            (&["WAYLAND_DISPLAY"], Route::Desktop),
            (&["DISPLAY", "SSH_TTY"], Route::Terminal),
            (&["WAYLAND_DISPLAY", "SSH_CONNECTION"], Route::Terminal),
        ];
        for (set, expected) in cases {
            assert_eq!(route(|name| set.contains(&name)), expected, "{set:?}");
        }
    }

    #[tokio::test]
    async fn a_clipboard_that_is_not_there_says_so() {
        // Whether or not this machine has a display: the answer comes, and within the deadline.
        let mut desktop = Desktop { requests: Some(mpsc::unbounded_channel().0) };
        assert!(!desktop.set("text".to_owned()).await);
    }
}
