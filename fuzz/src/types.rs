//! Descriptors of types, and objects that they describe.

use durum_format::types::{Descriptor, Type};

/// A type's text, then a zero byte, then an object of that type.
pub fn types(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let Some(Ok(text)) = parts.next().map(std::str::from_utf8) else {
        return;
    };
    let descriptor = match Descriptor::parse(text) {
        Ok(descriptor) => descriptor,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert_eq!(descriptor.text(), text);
    for line in 0..descriptor.lines().min(8) {
        let target = descriptor.target(line).expect("each line is a type");
        assert_eq!(Descriptor::parse(target.text()).as_ref(), Ok(&target));
    }
    let object = parts.next().unwrap_or_default();
    let _ = descriptor.value(object, 3).to_string();
    let _ = descriptor.value(object, 3).redact().to_json().to_string();
    for offset in [0, object.len() as u64 / 2, object.len() as u64, u64::MAX] {
        let _ = descriptor.path(object, offset);
    }
    if let Ok(pointers) = descriptor.pointers(object) {
        for pointer in pointers.take(64) {
            assert!(pointer.offset + 8 <= object.len() as u64);
            if let Ok(path) = descriptor.path(object, pointer.offset) {
                assert!(matches!(path.ty, Type::Pointer { .. }) && path.offset == pointer.offset);
            }
        }
    }
}
