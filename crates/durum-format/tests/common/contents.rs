//! Small heaps with one of each kind of what is recognised, and what they are shown as.

use std::iter::once;

/// Where the objects of these heaps lie.
const BASE: u64 = 0x2000_0000_0000;

fn at(object: u64) -> u64 {
    BASE + 256 * object
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn halves(halves: &[u32]) -> Vec<u8> {
    halves.iter().flat_map(|half| half.to_le_bytes()).collect()
}

/// A descriptor's text, and objects with the lines of their types.
fn heap(text: &str, objects: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let objects = objects.iter();
    let objects = objects.flat_map(|(line, bytes)| {
        let head = [*line, u8::try_from(bytes.len()).unwrap()];
        head.into_iter().chain(bytes.iter().copied())
    });
    text.bytes().chain(once(0)).chain(objects).collect()
}

/// Each heap, and its first object as it is shown.
pub fn heaps() -> Vec<(Vec<u8>, &'static str)> {
    let vector = "struct \"PVec<u32>\"(24,8){0:\"buffer\":*1;8:\"capacity\":u64;16:\"len\":u64;}\n[u32;tail]\n";
    let text = "struct \"PString\"(24,8){0:\"bytes\":struct \"PVec<u8>\"(24,8){0:\"buffer\":*1;8:\"capacity\":u64;\
        16:\"len\":u64;};}\n[u8;tail]\n";
    let table = "struct \"PHashMap<u32,u32>\"(32,8){0:\"table\":*1;8:\"groups\":u64;16:\"len\":u64;24:\"seed\":u64;}\n\
        [struct \"PHashMap<u32,u32>.group\"(64,8){0:\"tags\":u64;8:\"slots\":[struct \"PHashMap<u32,u32>.slot\"(8,4)\
        {0:\"key\":u32;4:\"value\":u32;};7];};tail]\n";
    let tree = "struct \"PBTreeMap<u32,u32>\"(24,8){0:\"root\":*1;8:\"height\":u64;16:\"len\":u64;}\n\
        struct \"PBTreeMap<u32,u32>.node\"(48,8){0:\"order\":u64;8:\"slots\":[struct \"PBTreeMap<u32,u32>.slot\"(8,4)\
        {0:\"key\":u32;4:\"value\":u32;};5];48:\"children\":[*1;tail];}\n";
    let chain = "struct \"list\"(24,8){0:\"head\":*1;8:\"tail\":~1;16:\"first value\":*2;}\n\
        struct \"node\"(16,8){0:\"value\":i64;8:\"next\":*1;}\ni64\n";
    let counted = "struct \"root PMutex<Option<Prc<T>>>\"(32,8){0:\"is_made\":u64;8:\"limbo\":*1;16:\"value\":\
        struct \"PMutex<Option<Prc<T>>>\"(16,8){0:\"word\":volatile(8,8);8:\"value\":struct \"Option<Prc<T>>\"(8,8)\
        {0:\"some\":*2;};};}\nstruct \"drop\"(8,8){0:\"next\":*1;}\nstruct \"counted (u8,[i8;6])\"(24,8){0:\"strong\":u64;\
        8:\"weak\":u64;16:\"value\":struct \"(u8,[i8;6])\"(7,1){0:\"0\":u8;1:\"1\":[i8;6];};}\n";
    let cases =
        "[variants \"V\"(16,8,tag 0,1){1:\"None\"{}2:\"Pair\"{4:\"0\":f32;8:\"1\":f64;}};3]\n";
    let cpp = "struct \"N5durum3mapIiiE\"(16,8){0:\"root_\":*1;8:\"size_\":u64;}\n\
        struct \"N5durum3mapIiiE4nodeE\"(32,8){0:\"entry\":struct \"E\"(8,4){0:\"first\":i32;4:\"second\":i32;};\
        8:\"left\":*1;16:\"right\":*1;24:\"weight\":u64;}\n";
    let nvl = "struct \"nvl point\"(48,16){0:\"count\":u64;8:\"next\":*any;16:\"previous\":~any;24:\"weak\":*any;\
        32:\"strong\":u64;40:\"state\":u64;48:\"data\":[struct \"point\"(16,8){0:\"name\":[i8;8];8:\"to\":*any;};\
        field \"count\"];}\n";
    let objects = "struct \"durum.objects\"(48,8){0:\"types\":[u64;3];24:\"objects\":[*1;3];}\n\
        struct \"bank\"(8,8){0:\"accounts\":u64;}\n";
    let heap_of_nvl = "struct \"nvl heap\"(32,8){0:\"version\":u64;8:\"root\":*1;16:\"checksum\":u64;24:\"zero\":*any;}\n\
        struct \"bank\"(8,8){0:\"accounts\":u64;}\n";
    let weak = "struct \"nvl point\"(48,16){0:\"count\":u64;8:\"next\":*any;16:\"previous\":~any;24:\"weak\":*1;\
        32:\"strong\":u64;40:\"state\":u64;48:\"data\":[struct \"point\"(16,8){0:\"name\":[i8;8];8:\"to\":*any;};\
        field \"count\"];}\nstruct \"nvl weak\"(24,8){0:\"target\":~any;8:\"count\":u64;16:\"next\":*1;}\n";
    let ido = "struct \"durum.ido.heap\"(40,8){0:\"version\":u64;8:\"epoch\":u64;16:\"root\":*any;24:\"size\":u64;\
        32:\"globals\":*1;}\nstruct \"durum.ido.variable\"(32,8){0:\"next\":*1;8:\"place\":*2;16:\"size\":u64;\
        24:\"name_size\":u64;32:\"name\":[u8;tail];}\nu32\n";
    let texts = "struct \"N5durum3mapIPiiE\"(16,8){0:\"root_\":*1;8:\"size_\":u64;}\n\
        struct \"N5durum3mapIPiiE4nodeE\"(40,8){0:\"entry\":struct \"E\"(16,8){0:\"first\":*2;8:\"second\":u64;};\
        16:\"left\":*1;24:\"right\":*1;32:\"weight\":u64;}\nstruct \"name\"(8,1){0:\"text\":[i8;8];}\n";
    let options = "struct \"PVec<Option<Pbox<u32>>>\"(24,8){0:\"buffer\":*1;8:\"capacity\":u64;16:\"len\":u64;}\n\
        [struct \"Option<Pbox<u32>>\"(8,8){0:\"some\":*2;};tail]\nu32\n";
    let pairs = "[struct \"pair\"(16,8){0:\"a\":u64;8:\"b\":u64;};4]\n";
    let leaf = |order: u64, pairs: [u32; 10], children: &[u64]| {
        [words(&[order]), halves(&pairs), words(children)].concat()
    };
    vec![
        (
            heap(
                vector,
                &[(0, words(&[at(1), 4, 3])), (1, halves(&[7, 8, 9, 10]))],
            ),
            "[7, 8, 9]",
        ),
        (
            heap(
                text,
                &[
                    (0, words(&[at(1), 8, 7])),
                    (1, b"a\x1b\"\xc3\xa4xyz".to_vec()),
                ],
            ),
            r#""a\u{1b}\"äxy""#,
        ),
        (
            heap(
                table,
                &[
                    (0, words(&[at(1), 1, 2, 77])),
                    (
                        1,
                        [
                            words(&[0x8100_8200]),
                            halves(&[0, 0, 5, 50, 0, 0, 6, 60, 1, 1, 1, 1, 1, 1]),
                        ]
                        .concat(),
                    ),
                ],
            ),
            "map of 2 { 5: 50, 6: 60 }",
        ),
        (
            heap(
                tree,
                &[
                    (0, words(&[at(1), 2, 5])),
                    (
                        1,
                        leaf(
                            0x3_0121,
                            [0, 0, 0, 0, 30, 3, 0, 0, 0, 0],
                            &[at(2), 0, 0, at(3)],
                        ),
                    ),
                    (1, leaf(0x12, [20, 2, 10, 1, 0, 0, 0, 0, 0, 0], &[])),
                    (1, leaf(0x102, [40, 4, 50, 5, 0, 0, 0, 0, 0, 0], &[])),
                ],
            ),
            "map of 5 { 10: 1, 20: 2, 30: 3, 40: 4, … 1 more }",
        ),
        (
            heap(
                chain,
                &[
                    (0, words(&[at(1), at(3), at(2)])),
                    (1, words(&[1, at(2)])),
                    (1, words(&[u64::MAX, at(3)])),
                    (1, words(&[3, at(1)])),
                ],
            ),
            "list {\n    head: -> chain by next [\n        node { value: 1 },\n        node { value: -1 },\n        \
             node { value: 3 },\n        -> root.head[0],\n    ],\n    tail: ~> root.head[2],\n    \
             first value: -> root.head[1],\n}",
        ),
        (
            heap(
                counted,
                &[
                    (0, words(&[1, 0, 0xdead, at(1)])),
                    (2, [words(&[1, 0]), vec![9], b"abc\0zz\0".to_vec()].concat()),
                ],
            ),
            r#"-> (9, "abc")"#,
        ),
        (heap(counted, &[(0, words(&[1, 0, 0, 0]))]), "None"),
        (
            heap(
                cases,
                &[(
                    0,
                    [
                        words(&[1, 0, 0, 0]),
                        halves(&[2, 1.5_f32.to_bits()]),
                        words(&[f64::INFINITY.to_bits()]),
                    ]
                    .concat(),
                )],
            ),
            "3 elements, 2 filled [0: V::None, 2: V::Pair(1.5, inf)]",
        ),
        (
            heap(
                cpp,
                &[
                    (0, words(&[at(1), 3])),
                    (1, [halves(&[2, 20]), words(&[at(2), at(3), 0])].concat()),
                    (1, [halves(&[1, 10]), words(&[0, 0, 0])].concat()),
                    (1, [halves(&[u32::MAX, 30]), words(&[0, 0, 0])].concat()),
                ],
            ),
            "map of 3 { 1: 10, 2: 20, -1: 30 }",
        ),
        (
            heap(
                nvl,
                &[
                    (
                        0,
                        [
                            words(&[1, 0, 0, 0, 1, 0]),
                            b"one\0\0\0\0\0".to_vec(),
                            words(&[at(1) + 48]),
                        ]
                        .concat(),
                    ),
                    (
                        0,
                        [
                            words(&[1, 0, 0, 0, 1, 0]),
                            b"two\0\0\0\0\0".to_vec(),
                            words(&[at(0)]),
                        ]
                        .concat(),
                    ),
                ],
            ),
            r#"point { name: "one", to: -> point { name: "two", to: -> root + 0 } }"#,
        ),
        (
            heap(
                objects,
                &[(0, words(&[0xfeed, 0, 0, at(1), 0, 0])), (1, words(&[12]))],
            ),
            "-> bank { accounts: 12 }",
        ),
        (
            heap(
                heap_of_nvl,
                &[(0, words(&[1, at(1), 77, 0])), (1, words(&[13]))],
            ),
            "-> bank { accounts: 13 }",
        ),
        (
            heap(
                options,
                &[
                    (0, words(&[at(1), 4, 3])),
                    (1, words(&[0, at(2), 0, 0])),
                    (2, halves(&[7])),
                ],
            ),
            "3 elements, 1 filled [1: -> 7]",
        ),
        (
            heap(pairs, &[(0, words(&[0, 0, 0, 1, 0, 0, 2, 3]))]),
            "4 elements, 2 filled [1: pair { a: 0, b: 1 }, 3: pair { a: 2, b: 3 }]",
        ),
        (
            heap(
                weak,
                &[
                    (
                        0,
                        [
                            words(&[1, 0, 0, 0, 1, 0]),
                            b"one\0\0\0\0\0".to_vec(),
                            words(&[at(1)]),
                        ]
                        .concat(),
                    ),
                    (1, words(&[at(2) + 48, 1, 0])),
                    (
                        0,
                        [
                            words(&[1, 0, 0, at(1), 0, 0]),
                            b"two\0\0\0\0\0".to_vec(),
                            words(&[at(3)]),
                        ]
                        .concat(),
                    ),
                    (1, words(&[0, 1, 0])),
                ],
            ),
            r#"point { name: "one", to: ~> point at 0x200000000200 }"#,
        ),
        (
            heap(
                ido,
                &[
                    (0, words(&[1, 2, 0, 0, at(1)])),
                    (1, [words(&[0, at(2), 4, 6]), b"main.c".to_vec()].concat()),
                    (2, halves(&[7])),
                ],
            ),
            "heap { global variable main.c: 7 }",
        ),
        (
            heap(
                "struct \"N5durum6detail4cellIcEE\"(1,1){0:\"value\":i8;}\n",
                &[(0, b"On pools\0\0\0\0\0\0\0\0".to_vec())],
            ),
            "\"On pools\"",
        ),
        (
            heap("[u32;40]\n", &[(0, halves(&(1..=40).collect::<Vec<_>>()))]),
            "40 elements [1, 2, 3, 4, … 36 more]",
        ),
        (
            heap(
                "struct \"N5durum6detail4cellIcEE\"(2,1){0:\"value\":i8;}\n",
                &[(0, b"a b c ".to_vec())],
            ),
            "[97, 98, 99]",
        ),
        (
            heap("*0\n", &[(0, words(&[at(1) + 8])), (0, words(&[0, 0]))]),
            "-> pointer to pointer to pointer to pointer to pointer to … at 0x200000000100[1]",
        ),
        (
            heap(
                texts,
                &[
                    (0, words(&[at(1), 1])),
                    (1, words(&[at(2), 20, 0, 0, 0])),
                    (2, b"Rome\0\0\0\0".to_vec()),
                ],
            ),
            r#"map of 1 { -> name { text: "Rome" }: 20 }"#,
        ),
        // A key that leads to its own value.
        (
            heap(
                texts,
                &[
                    (0, words(&[at(1), 1])),
                    (1, words(&[at(1) + 8, 20, 0, 0, 0])),
                ],
            ),
            "map of 1 {\n    -> root[-> N5durum3mapIPiiE4nodeE at 0x200000000100[-> N5durum3mapIPiiE4nodeE at 0x200000000100[…]]]: 20,\n}",
        ),
    ]
}
