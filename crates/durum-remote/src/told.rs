//! Who of the program is told what the service says unasked.

use std::fmt;
use std::sync::Arc;

use durum_service::ShowFn;

/// Who wants to know that the service has taken this client for gone.
#[derive(Default)]
pub(crate) struct WhenLost(pub(crate) Option<Box<dyn FnOnce() + Send>>);

impl fmt::Debug for WhenLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WhenLost").field(&self.0.is_some()).finish()
    }
}

/// Who is told that somebody wants to see a pool.
#[derive(Default)]
pub(crate) struct Show(pub(crate) Option<Arc<ShowFn>>);

impl fmt::Debug for Show {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Show").field(&self.0.is_some()).finish()
    }
}
