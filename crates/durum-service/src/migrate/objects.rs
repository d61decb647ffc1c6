//! The table of a C++ pool's objects says of which type each is (`durum::pool::put_object`): by an id, which nothing
//! but its name tells from a number.

use durum_format::migrate::Conversion;
use durum_format::types::{Count, Type};

use super::old::{Old, OldPool};

/// What `durum.hpp` calls it.
const OBJECTS: &str = "durum.objects";

/// Ids in a new object, if it is such a table, are those that the types have now: the program takes the objects for
/// others otherwise.
pub(super) fn renew_ids(old: &Old<'_>, pool: &OldPool, conversion: &Conversion, new: &mut [u8]) {
    let Type::Struct(table) = conversion.new_type().root() else {
        return;
    };
    if table.name != OBJECTS {
        return;
    }
    let ids = table.fields.iter().find(|field| field.name == "types");
    let Some((
        Type::Array {
            count: Count::Fixed(count),
            ..
        },
        at,
    )) = ids.map(|field| (&field.ty, field.offset as usize))
    else {
        return;
    };
    let words = new.get_mut(at..).unwrap_or_default().chunks_exact_mut(8);
    for word in words.take(*count as usize) {
        let id = word.try_into().map_or(0, u64::from_le_bytes);
        if let Some(conversion) = old.pairs.of(pool.meanings.of(id)) {
            word.copy_from_slice(&conversion.new_type().id().to_le_bytes());
        }
    }
}
