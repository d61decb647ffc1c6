//! Work that is done in the order of a list by two threads: one makes what the other one takes.

use std::sync::mpsc;
use std::thread;

use crate::error::Result;

/// Items that are made and taken without a thread, which costs as much as some of them, and how many wait at most.
pub(crate) const FEW: usize = 8;

/// Gives each item to `take`, in their order, while another thread makes the next ones. It ends with the first error.
///
/// # Errors
/// Those of `take`.
pub(crate) fn each_ahead<T: Send>(
    mut items: impl Iterator<Item = T> + Send,
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    items.by_ref().take(FEW).try_for_each(&mut take)?;
    let Some(next) = items.next() else {
        return Ok(());
    };
    take(next)?;
    let ahead = &mut items;
    let made_ahead = thread::scope(|scope| {
        let (send, receive) = mpsc::sync_channel(FEW);
        let make = move || ahead.try_for_each(|item| send.send(item));
        let thread = thread::Builder::new().spawn_scoped(scope, make);
        // Who refuses one goes, and takes the receiving end along.
        thread.map(|_| receive.into_iter().try_for_each(&mut take))
    });
    match made_ahead {
        Ok(taken) => taken,
        // The system has no thread.
        Err(_) => items.try_for_each(take),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn refusal() -> Error {
        Error::Closed {
            store: "store".into(),
        }
    }

    #[test]
    fn all_are_taken_in_their_order() {
        for count in [0, 1, FEW, FEW + 1, FEW + 2, 1000] {
            let mut taken = Vec::new();
            each_ahead(0..count, |item| {
                taken.push(item);
                Ok(())
            })
            .unwrap();
            assert_eq!(taken, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn nothing_is_taken_behind_an_error_and_little_is_made() {
        for last in [0, FEW - 1, FEW, 3 * FEW] {
            let mut made = 0;
            let mut taken = 0;
            let items = (0..1000).inspect(|_| made += 1);
            let done = each_ahead(items, |item| {
                taken += 1;
                if item == last { Err(refusal()) } else { Ok(()) }
            });
            assert!(done.is_err());
            assert_eq!(taken, last + 1);
            assert!(made <= last + 1 + FEW + 2, "{made}");
        }
    }
}
