//! The objects of pools, one after the other.

use durum_format::extent::{self, element_size};
use durum_format::migrate::{Conversion, Wrong};
use durum_format::nvl::Kind;
use durum_format::types::Descriptor;

use super::MigrateOptions;
use super::old::{Old, OldType};
use crate::dump::align_of;
use crate::dump::heap::Wanted;
use crate::dump::window::Window;
use crate::error::{Error, Result};
use crate::model::{Progress, Stage};
use crate::puddle_view::PuddleView;
use crate::roles::{Role, Tally};

/// Objects between two words of progress.
const TELL_EACH: u64 = 1 << 16;
/// How types are aligned at most that may lie among others of their size.
const SLAB_ALIGN_MAX: u64 = 64;
const CURE: &str = "`durum check` looks at everything";

/// An object as it is.
pub(super) struct Visit<'v> {
    /// Which of the pools it is in.
    pub(super) pool: usize,
    pub(super) view: &'v PuddleView,
    /// Its number, from 0.
    pub(super) index: u64,
    pub(super) ty: &'v OldType,
    pub(super) conversion: Option<&'v Conversion>,
    /// What the new one is, beyond what its fields say.
    pub(super) new_role: Role,
    /// What the new one is in a heap of NVL-C.
    pub(super) new_kind: Option<Kind>,
    pub(super) object: &'v extent::Object,
    /// Its bytes by its type.
    pub(super) bytes: &'v [u8],
    pub(super) wanted: Wanted,
    /// The bytes of the new one by its type.
    pub(super) new_size: u64,
}

impl Visit<'_> {
    /// Whether the value of a counted object is gone.
    pub(super) fn is_husk(&self) -> bool {
        self.ty.role == Role::Counted && Tally::read(self.bytes).is_some_and(|it| it.is_husk())
    }

    pub(super) fn damaged(&self, wrong: &Wrong) -> Error {
        Error::Damaged {
            file: self.view.path().to_owned(),
            structure: "object",
            offset: self.object.offset + wrong.at,
            problem: format!("it does not fit its type: {}", wrong.what),
            cure: CURE.into(),
        }
    }
}

/// Gives each object to `visit`, in the order in which they get places.
pub(super) fn go_over(
    old: &Old<'_>,
    options: &MigrateOptions,
    before: u64,
    mut visit: impl FnMut(&Visit<'_>) -> Result<()>,
) -> Result<()> {
    let mut index = 0;
    let total = 2 * old.numbers.objects();
    let views = old.pools.iter().enumerate();
    let views = views.flat_map(|(at, pool)| pool.views.iter().map(move |view| (at, pool, view)));
    for (at, pool, view) in views {
        let mut window = Window::of(view);
        for extent in extent::extents(view, view.header()) {
            let extent = extent.map_err(|error| Error::damaged_heap(view.path(), &error))?;
            let (ty, conversion) = old.of_extent(pool, &extent);
            let aligned = |of: Option<&Descriptor>| of.map_or(1, |it| it.layout().align);
            let new_role = conversion.map_or(Role::Plain, |it| Role::of(it.new_type()));
            let new_kind = ty.kinds.map(|kinds| kinds.is);
            let align = align_of(&extent, aligned(ty.descriptor.as_ref()));
            let is_root = view.header().is_root && extent.granule() == 0;
            for object in extent.objects() {
                let size = Old::size(ty, &object);
                let bytes = window.bytes(object.offset, object.size)?;
                let bytes = bytes.get(..size as usize).unwrap_or(bytes);
                let bytes = ty.without_slack(bytes);
                let size = bytes.len() as u64;
                let new_size = conversion.map_or(object.size, |conversion| conversion.size(size));
                let new_type = conversion.map(Conversion::new_type);
                let wanted = wanted(ty, new_type, (&object, new_size), align, is_root);
                visit(&Visit {
                    pool: at,
                    view,
                    index,
                    ty,
                    conversion,
                    new_role,
                    new_kind,
                    object: &object,
                    bytes,
                    wanted,
                    new_size,
                })?;
                index += 1;
                if index.is_multiple_of(TELL_EACH) {
                    Progress::tell(&options.progress, Stage::Migrate, before + index, total);
                }
            }
        }
    }
    Progress::tell(&options.progress, Stage::Migrate, before + index, total);
    Ok(())
}

/// The place that a new object needs.
fn wanted(
    ty: &OldType,
    new: Option<&Descriptor>,
    (object, new_size): (&extent::Object, u64),
    align: Option<u64>,
    is_root: bool,
) -> Wanted {
    let type_align = new.map_or(1, |new| new.layout().align);
    let is_same = new.is_none_or(|new| new.id() == ty.id);
    let own = (type_align > SLAB_ALIGN_MAX).then_some(type_align);
    let align = align.max(own).map(|align| align.max(type_align));
    let size = match (is_same, align, is_root) {
        (true, ..) => object.size,
        (false, None, false) => element_size(new_size).unwrap_or(new_size),
        _ => new_size,
    };
    Wanted {
        type_id: new.map_or(ty.id, Descriptor::id),
        size: size.max(1),
        type_align,
        align,
        is_root,
    }
}
