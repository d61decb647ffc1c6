//! What objects mean, whatever their bytes and types say.

use durum_format::content::{self, At, Limits, Object, Objects, Path};
use durum_format::types::{Descriptor, Registry};

/// Where the first object lies.
pub const BASE: u64 = 0x2000_0000_0000;
/// Bytes from one object to the next.
pub const STRIDE: u64 = 256;

/// Objects of one descriptor's types.
pub struct Heap {
    types: Registry,
    objects: Vec<(u64, Vec<u8>)>,
}

impl Heap {
    /// A text, a zero byte, and objects: for each the line of its type, its length and its bytes.
    pub fn parse(data: &[u8]) -> Option<Heap> {
        let end = data.iter().position(|byte| *byte == 0)?;
        let descriptor = Descriptor::parse(std::str::from_utf8(&data[..end]).ok()?).ok()?;
        let mut types = Registry::new();
        types.register(&descriptor).ok()?;
        let mut rest = &data[end + 1..];
        let mut objects = Vec::new();
        while let [line, length, behind @ ..] = rest {
            let (bytes, next) = behind.split_at((*length as usize).min(behind.len()));
            let target = descriptor
                .target(*line as usize % descriptor.lines())
                .ok()?;
            objects.push((target.id(), bytes.to_vec()));
            rest = next;
        }
        Some(Heap { types, objects })
    }

    fn index(&self, address: u64) -> Option<(u64, &(u64, Vec<u8>))> {
        let index = address.checked_sub(BASE)? / STRIDE;
        let object = self.objects.get(index as usize)?;
        let start = BASE + index * STRIDE;
        (address < start + object.1.len() as u64).then_some((start, object))
    }
}

impl Objects for Heap {
    fn at(&self, address: u64) -> At {
        match self.index(address) {
            Some((start, (type_id, bytes))) => At::Object(Object {
                start,
                size: bytes.len() as u64,
                type_id: *type_id,
                is_element: start % (2 * STRIDE) == 0,
            }),
            None => At::Other("nothing".to_owned()),
        }
    }

    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), String> {
        assert!(buffer.len() == 4096 && address.is_multiple_of(4096));
        for (at, byte) in (address..).zip(buffer.iter_mut()) {
            let found = self.index(at);
            *byte = found.map_or(0xaa, |(start, (_, bytes))| bytes[(at - start) as usize]);
        }
        Ok(())
    }

    fn descriptor(&self, type_id: u64) -> Option<&Descriptor> {
        self.types.by_id(type_id)
    }
}

/// Reads a heap from its first object on, prints it, and finds what has a path.
pub fn content(data: &[u8]) {
    let Some(heap) = Heap::parse(data) else {
        return;
    };
    let limits = Limits {
        depth: 4,
        objects: 8,
        elements: 4,
    };
    let look = content::of_object(&heap, BASE, "root", &limits);
    let text = look.to_string();
    assert!(
        !text.chars().any(|char| char.is_control() && char != '\n'),
        "{text:?}"
    );
    let _ = look.to_json().to_string();
    let _ = look.content.clone().redact();
    for start in look.shown.keys().take(8) {
        if let At::Object(object) = heap.at(*start) {
            for offset in (0..object.size).step_by(4) {
                let (part, rest) = content::part_of(&heap, &object, offset);
                assert!(rest <= offset, "{part}");
            }
        }
    }
    for path in look.shown.values().take(8) {
        let Ok(path) = path.parse::<Path>() else {
            continue;
        };
        if let Ok(found) = content::at_path(&heap, BASE, &path, &limits) {
            let _ = found.to_string();
        }
    }
}
