//! Notices of the desktop's own. Where there is no desktop, the caller falls back to the terminal.

/// Shows a notice on the desktop.
///
/// # Errors
/// What the notification service says, or that there is none.
pub async fn on_desktop(summary: &str, body: &str) -> Result<(), notify_rust::error::Error> {
    let mut notice = notify_rust::Notification::new();
    notice.appname("turnstile").summary(summary).body(body);
    notice.show_async().await.map(drop)
}
