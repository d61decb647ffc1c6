//! Events of the log that are told once the caller holds no lock any more.
//!
//! A thread that is stopped at an access to a pool may hold what a subscriber waits for: `println!("{}", object.name)`
//! reads memory of a pool while it holds standard output. So nobody may wait for a subscriber who holds a lock that is
//! needed to map that memory (docs/internals/on-demand.md).

use std::cell::RefCell;
use std::fmt::{Debug, Write};
use std::sync::OnceLock;

use tracing::dispatcher::{self, Dispatch};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Interest, NoSubscriber, Subscriber};
use tracing::{Event, Level, Metadata};

/// An event, as it will be told.
struct Kept {
    level: Level,
    module: &'static str,
    text: String,
}

thread_local! {
    static KEPT: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
}

/// Runs `body`, and tells behind it what it says to the log. Inside of another one, behind that.
pub(crate) fn put_off<R>(body: impl FnOnce() -> R) -> R {
    static KEEPER: OnceLock<Dispatch> = OnceLock::new();
    let is_unneeded =
        dispatcher::get_default(|current| current.is::<NoSubscriber>() || current.is::<Keeper>());
    if is_unneeded {
        return body();
    }
    let keeper = KEEPER.get_or_init(|| Dispatch::new(Keeper));
    let result = dispatcher::with_default(keeper, body);
    let kept = KEPT.with(RefCell::take);
    kept.iter().for_each(tell);
    result
}

fn tell(kept: &Kept) {
    let Kept { module, text, .. } = kept;
    // The level of an event is a constant of its place.
    match kept.level {
        Level::ERROR => tracing::error!(module, "{text}"),
        Level::WARN => tracing::warn!(module, "{text}"),
        Level::INFO => tracing::info!(module, "{text}"),
        Level::DEBUG => tracing::debug!(module, "{text}"),
        _ => tracing::trace!(module, "{text}"),
    }
}

/// Asks no other subscriber for anything: whether one wants an event is asked when it is told.
struct Keeper;

impl Subscriber for Keeper {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        // What others want beside is kept, too; this alone makes no place of the program slower.
        Some(LevelFilter::WARN)
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let kept = Kept {
            level: *event.metadata().level(),
            module: event.metadata().target(),
            text: text.message + &text.fields,
        };
        KEPT.with(|all| all.borrow_mut().push(kept));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Notes which events come, and whether a lock is held then.
    struct Heard {
        texts: Arc<Mutex<Vec<String>>>,
        lock: Arc<Mutex<()>>,
    }

    impl Subscriber for Heard {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() <= Level::INFO
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, event: &Event<'_>) {
            assert!(self.lock.try_lock().is_ok(), "told under a lock");
            let mut text = Text::default();
            event.record(&mut text);
            let level = event.metadata().level();
            let text = format!("{level} {}{}", text.message, text.fields);
            self.texts.lock().unwrap().push(text);
        }
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn events_are_told_in_order_behind_the_lock() {
        let (texts, lock) = (Arc::default(), Arc::default());
        let heard = Heard {
            texts: Arc::clone(&texts),
            lock: Arc::clone(&lock),
        };
        tracing::subscriber::with_default(heard, || {
            let answer = put_off(|| {
                let _held = lock.lock().unwrap();
                tracing::warn!(pool = "words", size = 3, "first");
                tracing::debug!("nobody wants it");
                put_off(|| tracing::error!("second"));
                7
            });
            assert_eq!(answer, 7);
            tracing::info!("third");
        });
        let module = module_path!();
        let expected = [
            format!("WARN first pool=\"words\" size=3 module=\"{module}\""),
            format!("ERROR second module=\"{module}\""),
            "INFO third".into(),
        ];
        assert_eq!(*texts.lock().unwrap(), expected);
    }
}
