//! Lines of dumps, and values of objects both ways.

use durum_format::dump::line::read_value;
use durum_format::dump::{Line, Plan, Reference, To};
use durum_format::types::Descriptor;

/// A line; or a descriptor's text, a zero byte, and an object's bytes or its value as JSON. Without a text the object
/// has no type, and words that are pointers. What is written of an object is read back as the same, and what is read
/// is written so that it is read again.
pub fn dump(data: &[u8]) {
    if let Err(refused) = Line::parse(data) {
        assert!(!refused.to_string().is_empty());
    }
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let text = parts.next().and_then(|text| std::str::from_utf8(text).ok());
    let Some(object) = parts.next() else {
        return;
    };
    if text == Some("") {
        return both_ways(&Plan::untyped_with_pointers(), 0, object);
    }
    if let Some(descriptor) = text.and_then(|text| Descriptor::parse(text).ok()) {
        let plan = Plan::of(&descriptor).expect("the descriptor was checked");
        both_ways(&plan, descriptor.layout().size, object);
    }
}

fn both_ways(plan: &Plan, size: u64, object: &[u8]) {
    if let Some(value) = written(plan, object) {
        let again = read(plan, &value, object.len()).expect("what was written is read");
        assert_eq!(written(plan, &again).as_deref(), Some(&*value));
        let mut changed = again.clone();
        let mut pointers = 0;
        plan.replace_pointers(&mut changed, &mut |word| {
            pointers += 1;
            word
        });
        assert_eq!(changed, again);
        assert!(pointers == 0 || plan.has_pointers());
    }
    // As a value of an object of some length.
    let length = usize::try_from(size).unwrap_or(usize::MAX);
    for length in [length, length.saturating_add(24)] {
        if length < 1 << 16
            && let Some(bytes) = read(plan, object, length)
            && let Some(value) = written(plan, &bytes)
        {
            assert_eq!(read(plan, &value, length), Some(bytes));
        }
    }
}

fn written(plan: &Plan, object: &[u8]) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    let mut to = |address: u64| match address % 3 {
        0 => To::Nowhere,
        1 => To::Object {
            number: address,
            offset: 0,
        },
        _ => To::Object {
            number: address,
            offset: address >> 8 | 1,
        },
    };
    plan.write(object, &mut value, &mut to).ok()?;
    assert!(std::str::from_utf8(&value).is_ok());
    assert!(value.iter().all(|byte| *byte >= 0x20 && *byte != 0x7f));
    Some(value)
}

/// The bytes of an object of which this is the value. A pointer is put there such that it is written as it was read.
fn read(plan: &Plan, value: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut line = value.to_vec();
    line.push(b'}');
    let mut pointer = |_, reference| match reference {
        Reference::Address(address) if address % 3 == 0 && address != 0 => Ok(address),
        Reference::Object { number, offset: 0 } if number % 3 == 1 => Ok(number),
        Reference::Object { number, offset } if number % 3 == 2 && offset == number >> 8 | 1 => {
            Ok(number)
        }
        _ => Err("that was not written".to_owned()),
    };
    read_value(&line, 0, plan, &mut bytes, &mut pointer).ok()?;
    Some(bytes)
}
