//! What a type may become, and what has to be true of its values then.

use durum_format::types::{Count, Descriptor, Type, Variants, successors};

/// Two texts and an object of the first type, each behind a zero byte but the first.
#[allow(dead_code, reason = "a test of its own takes what is below only")]
pub fn successors_of(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == 0);
    let mut descriptor = || {
        let text = std::str::from_utf8(parts.next()?).ok()?;
        Descriptor::parse(text).ok()
    };
    let (Some(was), Some(is)) = (descriptor(), descriptor()) else {
        return;
    };
    assert_eq!(successors(&was, &was), Ok(Default::default()));
    match successors(&was, &is) {
        Err(obstacle) => assert!(!obstacle.to_string().is_empty()),
        Ok(_) => check_successors(&was, &is, &mut parts.next().unwrap_or_default().to_vec()),
    }
}

/// Each value of a type is one of its successor, and has the same pointers.
pub fn check_successors(was: &Descriptor, is: &Descriptor, object: &mut [u8]) {
    assert_eq!(was.layout(), is.layout());
    let size = was.layout().size as usize;
    if object.len() < size {
        return;
    }
    // One object, its tail aside.
    clear_reserved(was.root(), &mut object[..size]);
    // A tag that is no case is seen only where cases have pointers.
    if !was.is_value(&object[..size]) {
        return;
    }
    let pointers = |of: &Descriptor| -> Option<Vec<_>> {
        let found = of.pointers(object).ok()?;
        let place = |at: u64| object.get(at as usize..at as usize + 8);
        let is_set = |at: u64| place(at).is_some_and(|word| word != [0; 8]);
        let mut found: Vec<_> = found
            .filter(|pointer| is_set(pointer.offset))
            .map(|pointer| (pointer.offset, pointer.strength))
            .collect();
        found.sort_by_key(|pointer| pointer.0);
        Some(found)
    };
    if object.len() < 2 * size.max(1)
        && let Some(before) = pointers(was)
    {
        assert_eq!(Some(before), pointers(is), "{} {}", was.text(), is.text());
    }
}

/// Makes reserved bytes zero, as they are from the start.
fn clear_reserved(ty: &Type<usize>, bytes: &mut [u8]) {
    match ty {
        Type::Reserved { .. } => bytes.fill(0),
        Type::Struct(it) => {
            for field in &it.fields {
                clear_part(&field.ty, field.offset, bytes);
            }
        }
        Type::Variants(it) => {
            let tag = tag(it, bytes);
            let case = it.case_of(tag);
            for field in case.iter().flat_map(|case| &case.fields) {
                clear_part(&field.ty, field.offset, bytes);
            }
        }
        Type::Array {
            element,
            count: Count::Fixed(_),
        } => {
            let size = element.layout().map_or(1, |layout| layout.size.max(1));
            for element_bytes in bytes.chunks_mut(size as usize) {
                clear_reserved(element, element_bytes);
            }
        }
        _ => {}
    }
}

fn clear_part(ty: &Type<usize>, offset: u64, bytes: &mut [u8]) {
    let size = ty.layout().map_or(0, |layout| layout.size);
    if let Some(part) = bytes.get_mut(offset as usize..(offset + size) as usize) {
        clear_reserved(ty, part);
    }
}

fn tag(of: &Variants<usize>, bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let from = of.tag_offset as usize;
    let found = &bytes[from..from + of.tag_width as usize];
    word[..found.len()].copy_from_slice(found);
    u64::from_le_bytes(word)
}
