//! Progress bars, on a terminal only.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};

use durum::{Progress, Stage};
use durum_service::ProgressFn;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on the standard error, or nothing where that is no terminal.
pub(crate) fn bar(length: u64, template: &str) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        // A template of ours that does not parse: the default bar tells as much.
        Err(_) => bar,
    }
}

/// Shows the progress of a store's long operations; the bar goes away with the last clone of the function.
pub(crate) fn stages() -> Arc<ProgressFn> {
    let shown: Mutex<Option<(Stage, ProgressBar)>> = Mutex::new(None);
    Arc::new(move |progress: Progress| {
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        match &*shown {
            Some((stage, bar)) if *stage == progress.stage => {
                bar.set_length(progress.total);
                bar.set_position(progress.done);
            }
            _ => {
                let bar = bar(progress.total, "{msg:<10} [{bar:40}] {pos}/{len}");
                bar.set_message(match progress.stage {
                    Stage::Registry => "registry",
                    Stage::Logs => "logs",
                    Stage::Check => "checking",
                    Stage::Pointers => "pointers",
                    Stage::Leaks => "leaks",
                    Stage::Clone => "copying",
                    Stage::Export => "exporting",
                    Stage::Import => "importing",
                    Stage::Dump => "dumping",
                    Stage::Load => "loading",
                    Stage::Move => "moving",
                    Stage::Migrate => "migrating",
                    _ => "working",
                });
                bar.set_position(progress.done);
                *shown = Some((progress.stage, bar));
            }
        }
    })
}
