//! Files of ELF, as far as their sections go.

const FILE_SIZE: usize = 64;

/// A file of ELF with sections of these names and bytes, the first of which has the names.
pub fn executable(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut names = vec![0];
    let mut table = Vec::new();
    let mut bytes: Vec<u8> = Vec::new();
    let mut enter = |name: u32, size: usize, at: usize| {
        table.extend(name.to_le_bytes());
        table.extend([0; 20]);
        table.extend((at as u64).to_le_bytes());
        table.extend((size as u64).to_le_bytes());
        table.extend([0; 24]);
    };
    let mut starts = Vec::new();
    for (name, _) in sections {
        starts.push(names.len() as u32);
        names.extend(name.bytes());
        names.push(0);
    }
    enter(0, names.len(), FILE_SIZE);
    bytes.extend(&names);
    for ((_, content), name) in sections.iter().zip(starts) {
        enter(name, content.len(), FILE_SIZE + bytes.len());
        bytes.extend(*content);
    }
    let mut file = b"\x7fELF\x02\x01".to_vec();
    file.resize(40, 0);
    file.extend(((FILE_SIZE + bytes.len()) as u64).to_le_bytes());
    file.resize(58, 0);
    file.extend(64u16.to_le_bytes());
    file.extend((sections.len() as u16 + 1).to_le_bytes());
    file.extend(0u16.to_le_bytes());
    assert_eq!(file.len(), FILE_SIZE);
    file.extend(bytes);
    file.extend(table);
    file
}
