//! How the compiler lays out an `Option` of a value: what descriptions say of its values is right, and what is made by
//! them are these values. That a compiler changes its ways shows here.

use std::fmt::Debug;
use std::mem::MaybeUninit;

use durum_format::dump::line::read_value;
use durum_format::dump::{Plan, To};
use durum_format::types::Descriptor;

use durum::typed::__private::Plain;
use durum::typed::*;
use durum::types::{Field, Primitive, Type};
use durum::{Described, Walk};

durum::pool!(P);

fn descriptor_of<T: Described>() -> Descriptor {
    Descriptor::parse(T::description().text()).unwrap()
}

/// What its description says of an option that lies where other bytes were.
fn told<T: InOption>(option: Option<T>, before: u8) -> String {
    let mut place = MaybeUninit::<Option<T>>::uninit();
    // SAFETY: any bytes, and then the option; its padding is what it was, or anything.
    let bytes = unsafe {
        place.as_mut_ptr().write_bytes(before, 1);
        place.write(option);
        std::slice::from_raw_parts(place.as_ptr().cast::<u8>(), size_of::<Option<T>>())
    };
    let mut line = Vec::new();
    let mut to = |_| To::Nowhere;
    let plan = Plan::of(&descriptor_of::<Option<T>>()).unwrap();
    plan.write(bytes, &mut line, &mut to).unwrap();
    String::from_utf8(line).unwrap()
}

/// An option that is made by its description.
fn made<T: InOption>(json: &str) -> Option<T> {
    let mut place = MaybeUninit::<Option<T>>::zeroed();
    let plan = Plan::of(&descriptor_of::<Option<T>>()).unwrap();
    let mut pointer = |_, _| Err("there are none".to_owned());
    // SAFETY: all of them are initialized, and then those of an option, if the description is right.
    unsafe {
        let bytes =
            std::slice::from_raw_parts_mut(place.as_mut_ptr().cast::<u8>(), size_of::<Option<T>>());
        read_value(
            format!("{json}}}").as_bytes(),
            0,
            &plan,
            bytes,
            &mut pointer,
        )
        .unwrap();
        place.assume_init()
    }
}

/// The description of the option says `text`, and of its values what is said here, both ways.
#[track_caller]
fn is<T: InOption + PartialEq + Debug + Copy>(text: &str, values: &[(T, &str)]) {
    let descriptor = descriptor_of::<Option<T>>();
    assert_eq!(descriptor.text(), format!("{text}\n"));
    assert_eq!(descriptor.layout().size as usize, size_of::<Option<T>>());
    let values = values.iter();
    let values = values.map(|(value, json)| (Some(*value), format!("{{\"Some\":{json}}}")));
    for (value, json) in values.chain([(None, "{\"None\":{}}".to_owned())]) {
        for before in [0, 0x55, 0xff] {
            assert_eq!(told(value, before), json);
        }
        assert_eq!(made::<T>(&json), value);
    }
}

#[derive(PSafe, Clone, Copy, Debug, PartialEq)]
#[repr(C, u8)]
enum State {
    Waiting = 1,
    Running { worker: u64 },
}

#[derive(PSafe, Clone, Copy, Debug, PartialEq)]
#[repr(i16)]
enum Sign {
    Minus = -1,
    Zero,
}

#[derive(PSafe, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Job {
    number: u64,
    letter: char,
    is_done: bool,
    later: Reserved<3>,
}

#[test]
fn a_number_beside_the_value_tells() {
    is::<u64>(
        r#"variants "Option<u64>"(16,8,tag 0,8){0:"None"{}1:"Some"{8:"0":u64;}}"#,
        &[
            (0, r#"{"0":0}"#),
            (7, r#"{"0":7}"#),
            (u64::MAX, r#"{"0":"18446744073709551615"}"#),
        ],
    );
    is::<u8>(
        r#"variants "Option<u8>"(2,1,tag 0,1){0:"None"{}1:"Some"{1:"0":u8;}}"#,
        &[(0, r#"{"0":0}"#), (255, r#"{"0":255}"#)],
    );
    is::<f32>(
        r#"variants "Option<f32>"(8,4,tag 0,4){0:"None"{}1:"Some"{4:"0":f32;}}"#,
        &[(-1.5, r#"{"0":-1.5}"#)],
    );
    is::<[u16; 2]>(
        r#"variants "Option<[u16;2]>"(6,2,tag 0,2){0:"None"{}1:"Some"{2:"0":[u16;2];}}"#,
        &[([1, 2], r#"{"0":[1,2]}"#)],
    );
    is::<()>(
        r#"variants "Option<()>"(1,1,tag 0,1){0:"None"{}1:"Some"{}}"#,
        &[((), "{}")],
    );
}

#[test]
fn bits_that_are_no_value_tell() {
    is::<bool>(
        r#"variants "Option<bool>"(1,1,tag 0,1){2:"None"{}else:"Some"{0:"0":bool;}}"#,
        &[(false, r#"{"0":false}"#), (true, r#"{"0":true}"#)],
    );
    is_right(&[
        ('\0', r#"{"0":"\u0000"}"#),
        (char::MAX, "{\"0\":\"\u{10ffff}\"}"),
    ]);
    // Options in options: `None` has the next bits, or the last ones.
    is_right(&[
        (None::<u64>, r#"{"0":{"None":{}}}"#),
        (Some(9), r#"{"0":{"Some":{"0":9}}}"#),
    ]);
    is_right(&[
        (None::<Option<bool>>, r#"{"0":{"None":{}}}"#),
        (Some(None), r#"{"0":{"Some":{"0":{"None":{}}}}}"#),
        (
            Some(Some(true)),
            r#"{"0":{"Some":{"0":{"Some":{"0":true}}}}}"#,
        ),
    ]);
}

/// Which bits the compiler takes is its own affair; what the description says of them is right.
#[track_caller]
fn is_right<T: InOption + PartialEq + Debug + Copy>(values: &[(T, &str)]) {
    let text = descriptor_of::<Option<T>>().text().trim_end().to_owned();
    assert!(text.starts_with("variants \"Option<"), "{text}");
    is::<T>(&text, values);
}

#[test]
fn values_with_several_parts_are_told_and_made() {
    is_right(&[
        (State::Waiting, r#"{"0":{"Waiting":{}}}"#),
        (
            State::Running { worker: 3 },
            r#"{"0":{"Running":{"worker":3}}}"#,
        ),
    ]);
    is_right(&[
        (Sign::Minus, r#"{"0":{"Minus":{}}}"#),
        (Sign::Zero, r#"{"0":{"Zero":{}}}"#),
    ]);
    let job = |letter, is_done| Job {
        number: 1,
        letter,
        is_done,
        later: Reserved::new(),
    };
    is_right(&[
        (
            job('a', true),
            r#"{"0":{"number":1,"letter":"a","is_done":true}}"#,
        ),
        (
            job('\0', false),
            r#"{"0":{"number":1,"letter":"\u0000","is_done":false}}"#,
        ),
    ]);
    is_right(&[((1_u8, [false, true]), r#"{"0":{"0":1,"1":[false,true]}}"#)]);
    is_right(&[(
        (1_u64, Some(State::Waiting)),
        r#"{"0":{"0":1,"1":{"Some":{"0":{"Waiting":{}}}}}}"#,
    )]);
    is_right(&[([0_u16; 0], "{}")]);
}

#[test]
fn a_cell_keeps_the_bits_of_its_value_for_itself() {
    // The compiler keeps `None` beside it: nobody sees into a cell.
    let of = |some: Option<PCell<bool, P>>| told(some, 0xff);
    assert_eq!(
        of(Some(PCell::default())),
        r#"{"Some":{"0":{"value":false}}}"#
    );
    assert_eq!(of(None), r#"{"None":{}}"#);
    let of = |some: Option<PMutex<char, P>>| told(some, 0xff);
    assert_eq!(
        of(Some(PMutex::default())),
        r#"{"Some":{"0":{"value":"\u0000"}}}"#
    );
    assert_eq!(of(None), r#"{"None":{}}"#);
}

#[test]
fn what_is_large_or_gives_no_value_is_bytes() {
    #[derive(Clone, Copy)]
    #[repr(transparent)]
    struct Mine(#[allow(dead_code, reason = "it is there to be laid out")] u32);

    // SAFETY: four bytes.
    unsafe impl Described for Mine {
        fn name() -> Option<std::borrow::Cow<'static, str>> {
            Some("Mine".into())
        }

        fn layout(_: &mut Walk) -> Type<String> {
            Type::structure(
                "Mine",
                4,
                4,
                vec![Field::new("0", 0, Type::Primitive(Primitive::U32))],
            )
        }
    }

    // SAFETY: a number.
    unsafe impl PSafe for Mine {
        type Threads = ();
        type Kind = Plain;
        const OWNERS: bool = false;
        const WORDS: bool = false;
        const POOL: PoolId = PoolId::ANY;

        fn owners(&self) -> i64 {
            0
        }
    }

    let bytes = |descriptor: Descriptor| {
        let text = descriptor.text().to_owned();
        assert!(
            text.starts_with("struct \"Option<") && text.contains("\"bytes of "),
            "{text}"
        );
    };
    bytes(descriptor_of::<Option<Mine>>());
    bytes(descriptor_of::<Option<(u8, Mine)>>());
    bytes(descriptor_of::<Option<[u64; 3000]>>());
}

/// It takes no time for each of them to say so.
#[test]
#[should_panic(expected = "elements of an array need a size of their own")]
fn rows_of_any_number_of_values_without_bytes_have_no_description() {
    #[derive(PSafe, Clone, Copy)]
    #[repr(C)]
    struct Nothing {
        not: [u64; 0],
    }
    descriptor_of::<Option<[Nothing; 1 << 40]>>();
}

/// An array without elements has no bits that tell, whatever else lies in its place.
#[test]
fn no_bits_of_an_array_without_elements_tell() {
    #[derive(PSafe, Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    struct Flag {
        letters: [char; 0],
        is_set: bool,
        rest: [u8; 3],
    }
    is_right(&[(
        Flag {
            letters: [],
            is_set: true,
            rest: [1, 2, 3],
        },
        r#"{"0":{"is_set":true,"rest":"\u0001\u0002\u0003"}}"#,
    )]);
}
