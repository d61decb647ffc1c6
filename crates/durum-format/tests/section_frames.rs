//! Frames of callers in the stack of a slot: the way outwards, and what does not lead there.

mod common;

use common::slots::{Image, STACK_WORDS, bytes, code, salt, seal, slot};
use durum_format::section::{
    Damage, FRAME_WORDS_MAX, FrameLink, FrameWriter, LIVE_INS_MAX, StackTop, State,
};

/// Three callers, each with locals of two words below its frame, and the record of the innermost function.
fn three() -> (Image, [FrameLink; 3]) {
    let mut image = Image::default();
    let outer = image.frame(
        2,
        StackTop {
            free: 2,
            frame: None,
        },
        &[10],
    );
    let middle = image.frame(
        8,
        StackTop {
            free: 8,
            frame: Some(outer),
        },
        &[20, 21],
    );
    let inner = image.frame(
        15,
        StackTop {
            free: 15,
            frame: Some(middle),
        },
        &[],
    );
    let top = StackTop {
        free: 20,
        frame: Some(inner),
    };
    image.record(1, |writer| writer.stack(top));
    (image, [inner, middle, outer])
}

fn indices(image: &Image) -> Result<Option<Vec<u16>>, Damage> {
    let bytes = image.bytes();
    Ok(match slot(&bytes).current()? {
        State::InSection(record) => Some(record.frames().map(|frame| frame.index).collect()),
        _ => None,
    })
}

#[test]
fn frames_are_read_from_the_innermost_outwards() {
    let (image, links) = three();
    let bytes = image.bytes();
    let Ok(State::InSection(record)) = slot(&bytes).current() else {
        panic!("the record is whole");
    };
    let frames: Vec<_> = record.frames().collect();
    assert_eq!(frames.len(), 3);
    for ((frame, link), live_ins) in frames
        .iter()
        .zip(links)
        .zip([vec![], vec![20, 21], vec![10]])
    {
        assert_eq!((frame.index, frame.code), (link.index, code(link.index)));
        assert!(frame.live_ins().eq(live_ins));
    }
    assert_eq!(frames[0].stack.frame, Some(links[1]));
    assert_eq!(
        frames[2].stack,
        StackTop {
            free: 2,
            frame: None
        }
    );
}

#[test]
fn a_changed_bit_of_any_frame_is_noticed() {
    let (image, _) = three();
    for (start, words) in [(2, 4), (8, 5), (15, 3)] {
        for bit in start * 64..(start + words) * 64 {
            let mut changed = image.clone();
            changed.stack[bit / 64] ^= 1 << (bit % 64);
            assert_eq!(indices(&changed), Ok(None), "bit {bit}");
            // With a record before that has no frames, that one counts.
            changed.section(2);
            assert_eq!(indices(&changed), Ok(Some(vec![])), "bit {bit}");
        }
    }
    // What lies between is nobody's.
    for word in [0, 1, 6, 7, 13, 14, 18, 31] {
        let mut changed = image.clone();
        changed.stack[word] = !0;
        assert_eq!(indices(&changed), Ok(Some(vec![15, 8, 2])));
    }
}

#[test]
fn another_frame_in_the_same_place_is_another_one() {
    let (mut image, links) = three();
    image.frame(
        8,
        StackTop {
            free: 8,
            frame: Some(links[2]),
        },
        &[20, 22],
    );
    assert_eq!(indices(&image), Ok(None));
    image.frame(
        8,
        StackTop {
            free: 8,
            frame: Some(links[2]),
        },
        &[20, 21],
    );
    assert_eq!(indices(&image), Ok(Some(vec![15, 8, 2])));
}

/// Frames whose checksums fit, and which no thread writes.
#[test]
fn frames_that_lead_anywhere_but_downwards_are_refused() {
    let refusal = |change: &dyn Fn(&mut Image) -> FrameLink| {
        let (mut image, _) = three();
        let inner = change(&mut image);
        let top = StackTop {
            free: 20,
            frame: Some(inner),
        };
        image.record(1, |writer| writer.stack(top));
        indices(&image).unwrap_err().to_string()
    };
    let forge = |image: &mut Image, index: usize, words: &[u64]| {
        image.stack[index..][..words.len()].copy_from_slice(words);
        seal(&mut image.stack[index..][..words.len()]);
        let checksum = image.stack[index] as u32;
        FrameLink {
            index: index as u16,
            checksum,
        }
    };
    let stack = |free: u64, frame: u64| free | frame << 16;
    for (words, message) in [
        // To itself, to what lies above, to what reaches into it.
        (vec![0, stack(20, 16), 1], "stack in word 16 of the stack"),
        (vec![0, stack(20, 18), 1], "below the one that names it"),
        (vec![0, stack(20, 14), 1], "below the one that names it"),
        // Out of the stack, or into what is free.
        (vec![0, stack(33, 0), 1], "a first free word in the stack"),
        (vec![0, stack(8, 9), 1], "a frame below the first free word"),
        (vec![0, 1 << 32, 1], "no checksum of no frame"),
        (vec![0, 0, 0], "code in word 17"),
        (vec![1 << 40, 0, 1], "number of live-ins in word 15"),
        // Into what the function that is called uses.
        (
            vec![3 << 32, 0, 1, 0, 0, 0],
            "a frame that ends at word 20 or before",
        ),
    ] {
        let refused = refusal(&|image| forge(image, 15, &words));
        assert!(refused.contains(message), "{words:x?}: {refused}");
    }
    // The one before reaches into what the one behind says is free.
    let refused = refusal(&|image| {
        let middle = forge(image, 8, &[3 << 32, 0, 1, 0, 0, 0]);
        image.frame(
            15,
            StackTop {
                free: 12,
                frame: Some(middle),
            },
            &[],
        )
    });
    assert!(
        refused.contains("a frame that ends at word 12 or before"),
        "{refused}"
    );
}

#[test]
fn a_frame_is_as_large_as_its_values_and_its_place_allow() {
    let write = |room: usize, values: usize| {
        let mut place = vec![0; room];
        let writer = FrameWriter::new(&mut place, code(1), StackTop::default());
        let half = vec![1; values / 2];
        let rest = vec![1; values - values / 2];
        let written = writer.live_ins(&half).live_ins(&rest).finish(&salt())?;
        Some(written.bytes)
    };
    assert_eq!(write(3, 0), Some(24));
    assert_eq!(write(2, 0), None);
    assert_eq!(
        write(FRAME_WORDS_MAX, LIVE_INS_MAX),
        Some(FRAME_WORDS_MAX * 8)
    );
    assert_eq!(write(FRAME_WORDS_MAX - 1, LIVE_INS_MAX), None);
    assert_eq!(write(1000, LIVE_INS_MAX + 1), None);
    let link = |index| Some(FrameLink { index, checksum: 1 });
    let mut place = [0; 3];
    let top = StackTop {
        free: 0,
        frame: link(u16::MAX),
    };
    assert_eq!(
        FrameWriter::new(&mut place, code(1), top).finish(&salt()),
        None
    );
}

/// Live-ins of 0 to 255 in all three frames, over a stack that is too small for most.
#[test]
fn forged_counts_of_frames_never_lead_out_of_the_stack() {
    for count in 0..=u8::MAX {
        for index in [0, 15, 28, STACK_WORDS - 3] {
            let mut image = Image::default();
            let words = (3 + usize::from(count)).min(STACK_WORDS - index);
            image.stack[index] = u64::from(count) << 32;
            image.stack[index + 2] = 1;
            seal(&mut image.stack[index..][..words]);
            let checksum = image.stack[index] as u32;
            let link = FrameLink {
                index: index as u16,
                checksum,
            };
            let top = StackTop {
                free: STACK_WORDS as u16,
                frame: Some(link),
            };
            image.record(1, |writer| writer.stack(top));
            let fits = index + 3 + usize::from(count) <= STACK_WORDS;
            let expected = fits.then(|| vec![index as u16]);
            assert_eq!(indices(&image), Ok(expected), "{count} at {index}");
        }
    }
    assert_eq!(bytes(&Image::default().stack).len(), STACK_WORDS * 8);
}
