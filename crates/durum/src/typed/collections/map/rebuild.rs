//! Maps whose keys a migration has changed, built anew where they lie: as many entries in the same objects, in other
//! places. Nothing is logged, as nobody has the pool yet.

use std::any::Any;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

use durum_format::types::Descriptor;
use durum_service::{NewPuddles, Result, Room};

pub(in crate::typed::collections) use crate::migration::{DAMAGED, NO_KEY};
use crate::typed::psafe::PSafe;

/// What comes of building a map: the reason where that cannot be.
pub(crate) type Outcome = Result<std::result::Result<(), String>>;

/// A map: [`Migration::rebuild`](crate::typed::Migration::rebuild).
pub trait MapType: PSafe {
    /// Names of the types of objects with its entries, and of what is in these.
    #[doc(hidden)]
    fn parts() -> [String; 2];
}

/// A map that can be built anew, as its keys have `Hash` and `Eq`, or `Ord`.
pub trait Rebuild: MapType {
    /// Bytes of room that this takes. A map that says more than `most` bytes hold is damaged, and takes none.
    #[doc(hidden)]
    fn room(&self, most: u64) -> u64;

    /// Puts all entries where their keys say now.
    ///
    /// # Safety
    /// The map lies in a puddle that is one of `new`, which are mapped, and its objects are what its types say.
    #[doc(hidden)]
    unsafe fn rebuild(&self, new: &mut NewPuddles, room: &mut Room) -> Outcome;
}

/// What keys look like, before code of the user is asked about them.
pub(in crate::typed::collections) struct Keys<K> {
    /// None where any bytes are a key.
    checked: Option<Descriptor>,
    _keys: PhantomData<K>,
}

impl<K: PSafe> Keys<K> {
    pub(in crate::typed::collections) fn new() -> Self {
        let described = Descriptor::parse(K::description().text()).ok();
        Self {
            checked: described.filter(|it| !it.takes_any_bytes()),
            _keys: PhantomData,
        }
    }

    /// Whether a key lies there.
    ///
    /// # Safety
    /// As many bytes do, which nobody writes meanwhile.
    pub(in crate::typed::collections) unsafe fn is_key(&self, at: *const K) -> bool {
        // SAFETY: as the caller promises.
        let bytes = unsafe { std::slice::from_raw_parts(at.cast::<u8>(), size_of::<K>()) };
        let checked = self.checked.as_ref();
        checked.is_none_or(|checked| checked.is_value(bytes))
    }
}

/// Runs code of the user; tells where it panics.
pub(in crate::typed::collections) fn asked<T>(
    what: &str,
    ask: impl FnOnce() -> T,
) -> std::result::Result<T, String> {
    let said = |panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("{what} of a key panicked: {}", text.unwrap_or("nothing"))
    };
    catch_unwind(AssertUnwindSafe(ask)).map_err(said)
}

/// Elements of a key that are told.
const TOLD_MAX: usize = 16;

/// Two keys are the same.
pub(in crate::typed::collections) fn doubled<K: PSafe>(key: &K) -> String {
    let from = std::ptr::from_ref(key).cast::<u8>();
    // SAFETY: the bytes of a value that lies in a file's memory, padding too.
    let bytes = unsafe { std::slice::from_raw_parts(from, size_of::<K>()) };
    let told = match Descriptor::parse(K::description().text()) {
        Ok(descriptor) => format!(": {}", descriptor.value(bytes, TOLD_MAX).to_json()),
        Err(_) => String::new(),
    };
    format!("two of its keys have become the same one{told}")
}
