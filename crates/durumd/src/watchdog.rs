//! Feeds the watchdog of systemd, as long as the service is well: requests are answered, and clients looked after. One
//! that hangs, or whose store answers nothing any more, is ended and started again. Clients live on meanwhile.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use durum_service::Host;
use sd_notify::NotifyState;

use crate::clients::Clients;

/// Begins, where the system wants it.
///
/// # Errors
/// Of making a thread.
pub(crate) fn begin(host: Arc<Host>, clients: Arc<Clients>) -> std::io::Result<()> {
    let wanted = sd_notify::watchdog_enabled();
    let Some(limit) = wanted.filter(|limit| !limit.is_zero()) else {
        return Ok(());
    };
    // A look and a pause together take less than the time, also on a machine that is busy.
    let part = limit / 3;
    let feed = move || {
        loop {
            match problem(&host, &clients, part) {
                None => drop(sd_notify::notify(&[NotifyState::Watchdog])),
                Some(problem) => tracing::error!("the service is not well: {problem}"),
            }
            thread::sleep(part);
        }
    };
    thread::Builder::new()
        .name("watchdog".to_owned())
        .spawn(feed)
        .map(drop)
}

fn problem(host: &Host, clients: &Clients, limit: Duration) -> Option<String> {
    match host.goes_on(limit) {
        Ok(true) => {}
        Ok(false) => return Some("a change of the store hangs".to_owned()),
        Err(error) => return Some(error.to_string()),
    }
    (!clients.are_watched(limit)).then(|| "nobody looks after the clients".to_owned())
}
