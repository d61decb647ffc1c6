//! `durum explore`: a store as a page of a browser, served to this machine or written as one file to send. Nothing of
//! the store is written.
//!
//! [`survey`] answers what the page asks, out of what `ls`, `stat`, `inspect` and `check` find; [`objects`] answers for
//! objects, which [`tree`] makes JSON of, and [`types`] for types; [`checking`] checks the store in the background, and
//! [`leaks`] counts what it finds lost.
//! [`page`] puts the page together, [`file`] with the answers in it, [`server`] over HTTP ([`durum_remote::http`]),
//! where it asks for each.

mod checking;
mod file;
mod leaks;
mod objects;
mod page;
mod server;
mod survey;
mod tree;
mod types;

use std::io::Write;

use crate::args::explore::Explore;
use crate::failure::Failure;
use crate::place::Place;
use crate::watch::live::Live;
use checking::Checking;
use survey::Survey;

pub(crate) fn run(options: &Explore, out: &mut dyn Write) -> Result<(), Failure> {
    let mut place = Place::of(&options.store);
    let name = options.store.display().to_string();
    let live = match options.live {
        true => Some(Live::of(&place, place.pool(None)?)?),
        false => None,
    };
    if let Some(live) = &live {
        place = Place::Directory(live.store());
    }
    let survey = Survey {
        place,
        program: Place::of(&options.store),
        is_live: live.is_some(),
        name,
        redact: options.redact,
        checking: Checking::default(),
    };
    match &options.html {
        Some(path) => file::write(&survey, path, options, out),
        None => server::serve(survey, options, out),
    }
}
