//! The decision as a table, with the reason of each row: every input is tried.

use std::convert::Infallible;

use durum_format::twin::{Copy, Stage, State, Whole, whole_copy};

/// One row: for which inputs it is (`None`: any), what recovery takes, and why.
struct Row {
    stage: Stage,
    settled: Option<bool>,
    /// Main holds the seal of the transaction that the state is about.
    main_new: Option<bool>,
    /// A copy holds the seal of the one before.
    back_old: Option<bool>,
    main_old: Option<bool>,
    whole: Whole,
    why: &'static str,
}

const ROWS: [Row; 7] = [
    Row {
        stage: Stage::Idle,
        settled: None,
        main_new: None,
        back_old: None,
        main_old: None,
        whole: Whole::Both,
        why: "The pool was closed, or recovered, when both copies were durable and the same.",
    },
    Row {
        stage: Stage::Copying,
        settled: None,
        main_new: None,
        back_old: None,
        main_old: None,
        whole: Whole::One(Copy::Main),
        why: "Main was durable before the state was written. Back is being changed, and seals are of earlier transactions.",
    },
    Row {
        stage: Stage::Changing,
        settled: None,
        main_new: Some(true),
        back_old: None,
        main_old: None,
        whole: Whole::One(Copy::Main),
        why: "All that the transaction changed is there, and its fence may be through: it has committed. Back may be changing.",
    },
    Row {
        stage: Stage::Changing,
        settled: Some(true),
        main_new: Some(false),
        back_old: None,
        main_old: None,
        whole: Whole::One(Copy::Back),
        why: "Not committed, and back was whole before the state was written. Back changes only when main holds the seal.",
    },
    Row {
        stage: Stage::Changing,
        settled: Some(false),
        main_new: Some(false),
        back_old: Some(true),
        main_old: None,
        whole: Whole::One(Copy::Back),
        why: "Not committed, and back is as the transaction before left it. Main may be as well, or changed already.",
    },
    Row {
        stage: Stage::Changing,
        settled: Some(false),
        main_new: Some(false),
        back_old: Some(false),
        main_old: Some(true),
        whole: Whole::One(Copy::Main),
        why: "The state is durable and the last lines of back are not: the fence for both was not through, so nothing has changed main.",
    },
    Row {
        stage: Stage::Changing,
        settled: Some(false),
        main_new: Some(false),
        back_old: Some(false),
        main_old: Some(false),
        whole: Whole::Neither,
        why: "One of the two holds the seal before until the next seal is held. To take either copy would be to guess.",
    },
];

const BOTH: [bool; 2] = [false, true];

#[test]
fn exactly_one_row_decides_each_input_and_recovery_does_what_it_says() {
    let fits = |asked: Option<bool>, is: bool| asked.is_none_or(|asked| asked == is);
    for stage in [Stage::Idle, Stage::Changing, Stage::Copying] {
        for bits in 0..1u32 << 5 {
            let [settled, main_new, back_new, back_old, main_old] =
                std::array::from_fn(|bit| bits >> bit & 1 == 1);
            // Of the first transaction there is none before.
            for generation in [0, 1, 2, u64::MAX >> 5] {
                let has_before = generation > 0;
                let (back_old, main_old) = (back_old && has_before, main_old && has_before);
                let rows: Vec<&Row> = ROWS
                    .iter()
                    .filter(|row| row.stage == stage)
                    .filter(|row| fits(row.settled, settled) && fits(row.main_new, main_new))
                    .filter(|row| fits(row.back_old, back_old) && fits(row.main_old, main_old))
                    .collect();
                let input = format!("{stage:?} {generation} {bits:#b}");
                let [row] = rows[..] else {
                    panic!("{} rows for {input}", rows.len());
                };
                let word = State {
                    generation,
                    stage,
                    is_settled: settled,
                    is_listed: generation == 2,
                }
                .to_word();
                let state = State::from_word(word).unwrap();
                let holds = |copy, asked| {
                    Ok::<_, Infallible>(match (copy, asked == generation) {
                        (Copy::Main, true) => main_new,
                        (Copy::Back, true) => back_new,
                        (Copy::Main, false) => main_old,
                        (Copy::Back, false) => back_old,
                    })
                };
                assert_eq!(
                    whole_copy(state, holds),
                    Ok(row.whole),
                    "{input}: {}",
                    row.why
                );
            }
        }
    }
}

#[test]
fn a_copy_that_cannot_be_read_decides_nothing() {
    for (stage, is_settled) in [(Stage::Changing, true), (Stage::Changing, false)] {
        let state = State {
            generation: 5,
            stage,
            is_settled,
            is_listed: true,
        };
        for failing in 0..if is_settled { 1 } else { 3 } {
            let mut asked = 0;
            let holds = |_, _| {
                asked += 1;
                if asked > failing {
                    Err("unreadable")
                } else {
                    Ok(false)
                }
            };
            assert_eq!(whole_copy(state, holds), Err("unreadable"));
        }
    }
}

#[test]
fn a_word_that_is_no_state_is_none() {
    for generation in [0, 1, u64::MAX >> 5] {
        for settled in BOTH {
            for stage in [0, 3] {
                let word = generation << 5 | u64::from(settled) << 4 | stage << 2 | 3;
                assert_eq!(State::from_word(word), None);
            }
        }
    }
}
