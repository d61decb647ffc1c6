//! `durum top`: what a service does, by its metrics.
//!
//! [`fetch`] asks for them, [`samples`] reads them, [`figures`] is what is shown of them.

mod fetch;
mod figures;
mod samples;

use std::io::{IsTerminal, Write};
use std::thread;
use std::time::{Duration, Instant};

use durum_protocol::address::MetricsAddress;

use crate::args::Top;
use crate::failure::Failure;
use crate::output;
use figures::Figures;
pub(crate) use figures::Recovered;

/// Moves to the first place of a terminal, and clears it.
pub(crate) const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

pub(crate) fn run(options: &Top, out: &mut dyn Write) -> Result<(), Failure> {
    let address = MetricsAddress::parse(&options.address);
    let pause = Duration::from_secs_f64(options.interval);
    let mut before: Option<(Instant, Figures)> = None;
    loop {
        let asked = Instant::now();
        let now = fetch::text(&address).and_then(|text| Figures::of(&samples::parse(&text)?));
        let now = match now {
            Ok(now) => now,
            Err(failure) if options.once || before.is_none() => return Err(failure),
            // It may be started again.
            Err(failure) => {
                writeln!(out, "{failure}")?;
                out.flush()?;
                thread::sleep(pause);
                continue;
            }
        };
        let since = before
            .as_ref()
            .map(|(when, figures)| (asked.duration_since(*when), figures));
        if options.json {
            output::json(out, &now.to_json(since))?;
        } else {
            if !options.once && std::io::stdout().is_terminal() {
                write!(out, "{CLEAR}")?;
            }
            now.show(&options.address, since, out)?;
        }
        out.flush()?;
        if options.once {
            return Ok(());
        }
        before = Some((asked, now));
        thread::sleep(pause);
    }
}

/// What a service has recovered since its start.
pub(crate) fn recovered(address: &MetricsAddress) -> Result<Recovered, Failure> {
    Ok(Recovered::of(&samples::parse(&fetch::text(address)?)?))
}
