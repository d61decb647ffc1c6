//! Which copy of a Twin pool recovery takes: the decision as a table, tried with every input, and against a model of
//! what crashes leave.

use std::collections::HashSet;
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
            for generation in [0, 1, 2, u64::MAX >> 3] {
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

/// Words of the pool.
const WORDS: usize = 2;

/// What a seal says of the words in a mask, which copies hold or not.
type Seal = Option<(u64, usize, [u64; WORDS])>;

/// The media: units that become durable each by itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Media {
    state: u64,
    /// By the parity of the transaction's number; `None`: nothing that is one, as when it was torn.
    seals: [Seal; 2],
    copies: [[u64; WORDS]; 2],
}

const MAIN: usize = 0;
const BACK: usize = 1;

/// Since the last fence: the versions of each unit. Any of them may be what a crash leaves.
#[derive(Default)]
struct Unfenced {
    state: Vec<u64>,
    seals: [Vec<Seal>; 2],
    copies: [[Vec<u64>; WORDS]; 2],
}

/// A transaction, or what else writes a state. Numbers are masks of the words that it changes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// Its ranges fit a seal.
    Sealed(usize),
    /// They do not.
    Large(usize),
    Aborted(usize),
    Settle,
    /// The pool is closed in order, and opened again.
    Reopen,
}

/// A pool and its writer, who follows docs/format/twin.md.
struct Life {
    media: Media,
    unfenced: Unfenced,
    /// What the program sees.
    memory: [u64; WORDS],
    next: u64,
    is_changing: bool,
    is_settled: bool,
    /// What a recovery may find: the last acknowledged contents, and those of a transaction whose commit has begun.
    allowed: Vec<[u64; WORDS]>,
    /// Never repeats, so that every version of a word is another one.
    value: u64,
    images: HashSet<(Media, Vec<[u64; WORDS]>)>,
}

impl Life {
    fn on(media: Media) -> Self {
        let memory = media.copies[MAIN];
        let mut life = Self {
            media,
            unfenced: Unfenced::default(),
            memory,
            next: 0,
            is_changing: false,
            is_settled: false,
            allowed: vec![memory],
            value: 1000,
            images: HashSet::new(),
        };
        life.open();
        life
    }

    fn open(&mut self) {
        let word = *self.unfenced.state.last().unwrap_or(&self.media.state);
        self.next = State::from_word(word).unwrap().generation + 1;
        self.is_changing = false;
    }

    fn write_state(&mut self, stage: Stage, is_settled: bool) {
        let generation = self.next;
        let state = State {
            generation,
            stage,
            is_settled,
        };
        self.unfenced.state.push(state.to_word());
    }

    fn write(&mut self, copy: usize, word: usize, value: u64) {
        self.unfenced.copies[copy][word].push(value);
    }

    /// Crashes in every way, then goes on with everything durable.
    fn fence(&mut self) {
        let unfenced = std::mem::take(&mut self.unfenced);
        let mut images = vec![self.media.clone()];
        let spread = |images: &mut Vec<Media>, versions: usize, put: &dyn Fn(&mut Media, usize)| {
            let fresh: Vec<Media> = images
                .iter()
                .flat_map(|image| {
                    (0..versions).map(move |version| {
                        let mut image = image.clone();
                        put(&mut image, version);
                        image
                    })
                })
                .collect();
            images.extend(fresh);
        };
        let states = &unfenced.state;
        spread(&mut images, states.len(), &|media, version| {
            media.state = states[version]
        });
        for (place, versions) in unfenced.seals.iter().enumerate() {
            let put = |media: &mut Media, version: usize| media.seals[place] = versions[version];
            spread(&mut images, versions.len(), &put);
        }
        for (copy, words) in unfenced.copies.iter().enumerate() {
            for (word, versions) in words.iter().enumerate() {
                let put = |media: &mut Media, version: usize| {
                    media.copies[copy][word] = versions[version]
                };
                spread(&mut images, versions.len(), &put);
            }
        }
        // The last image has the last version of everything.
        self.media = images.last().unwrap().clone();
        let allowed = self.allowed.clone();
        let images = images.into_iter().map(|image| (image, allowed.clone()));
        self.images.extend(images);
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Sealed(mask) | Step::Large(mask) | Step::Aborted(mask) => {
                self.transaction(step, mask);
            }
            Step::Settle if self.is_changing && !self.is_settled => {
                self.write_state(Stage::Changing, true);
                self.fence();
                self.is_settled = true;
            }
            Step::Settle => {}
            Step::Reopen => {
                if self.is_changing {
                    // No fence follows.
                    self.write_state(Stage::Idle, false);
                }
                self.open();
            }
        }
    }

    fn transaction(&mut self, step: Step, mask: usize) {
        if !self.is_changing {
            self.write_state(Stage::Changing, true);
            self.fence();
            (self.is_changing, self.is_settled) = (true, true);
        }
        let before = self.memory;
        let changed: Vec<usize> = (0..WORDS).filter(|word| mask >> word & 1 == 1).collect();
        // Each word twice: what it holds in between may reach the media.
        for _ in 0..2 {
            for &word in &changed {
                self.value += 1;
                self.memory[word] = self.value;
                self.write(MAIN, word, self.value);
            }
        }
        if matches!(step, Step::Aborted(_)) {
            for &word in &changed {
                self.write(MAIN, word, before[word]);
            }
            self.memory = before;
            return self.fence();
        }
        if let Step::Sealed(_) = step {
            let place = (self.next % 2) as usize;
            self.unfenced.seals[place] = vec![None, Some((self.next, mask, self.memory))];
        } else {
            self.fence();
            self.write_state(Stage::Copying, false);
        }
        self.allowed.push(self.memory);
        self.fence();
        // Acknowledged.
        self.allowed = vec![self.memory];
        for word in changed {
            self.write(BACK, word, self.memory[word]);
        }
        self.next += 1;
        self.is_changing = matches!(step, Step::Sealed(_));
        self.is_settled = false;
        if self.is_changing {
            self.write_state(Stage::Changing, false);
        }
        self.fence();
    }
}

fn decide(media: &Media) -> Whole {
    let holds = |copy, generation| {
        let words = &media.copies[if copy == Copy::Main { MAIN } else { BACK }];
        let seal = media.seals[(generation % 2) as usize];
        Ok::<_, Infallible>(seal.is_some_and(|(of, mask, left)| {
            of == generation
                && (0..WORDS).all(|word| mask >> word & 1 == 0 || words[word] == left[word])
        }))
    };
    let Ok(whole) = whole_copy(State::from_word(media.state).unwrap(), holds);
    whole
}

/// Recovers, and crashes on the way in each way. What is there in the end.
fn recover(media: &Media) -> Media {
    let mut recovered = media.clone();
    let (from, to) = match decide(media) {
        Whole::Both => return recovered,
        Whole::One(Copy::Main) => (MAIN, BACK),
        Whole::One(Copy::Back) => (BACK, MAIN),
        Whole::Neither => panic!("no crash leaves {media:?}"),
    };
    recovered.copies[to] = media.copies[from];
    for some in 0..1 << WORDS {
        let mut again = media.clone();
        for word in (0..WORDS).filter(|word| some >> word & 1 == 1) {
            again.copies[to][word] = media.copies[from][word];
        }
        let contents = match decide(&again) {
            Whole::Both => again.copies[MAIN],
            Whole::One(Copy::Main) => again.copies[MAIN],
            Whole::One(Copy::Back) => again.copies[BACK],
            Whole::Neither => panic!("no crash of a recovery leaves {again:?}"),
        };
        assert_eq!(contents, media.copies[from], "recovered again: {again:?}");
    }
    let state = State::from_word(media.state).unwrap();
    let stage = Stage::Idle;
    recovered.state = State { stage, ..state }.to_word();
    recovered
}

/// What a life leaves, whatever the crash, recovers to what was acknowledged. The images after it, all different.
fn live(media: Media, steps: &[Step]) -> Vec<Media> {
    let mut life = Life::on(media);
    for step in steps {
        life.step(*step);
    }
    let mut recovered = Vec::new();
    for (image, allowed) in &life.images {
        let media = recover(image);
        assert_eq!(
            media.copies[MAIN], media.copies[BACK],
            "{steps:?}: {image:?}"
        );
        assert!(
            allowed.contains(&media.copies[MAIN]),
            "{steps:?}: {image:?}"
        );
        recovered.push(media);
    }
    recovered
}

#[test]
fn whatever_crashes_recovery_finds_what_was_acknowledged() {
    let fresh = || Media {
        state: 0,
        seals: [None; 2],
        copies: [[0; WORDS]; 2],
    };
    let kinds = [
        Step::Sealed(1),
        Step::Sealed(2),
        Step::Sealed(3),
        Step::Large(3),
        Step::Aborted(1),
        Step::Aborted(3),
        Step::Settle,
        Step::Reopen,
    ];
    // Lives after a crash, in what that has left: other seals, another state.
    let mut left = HashSet::new();
    let mut images = 0;
    for first in kinds {
        for second in kinds {
            for third in kinds {
                for fourth in [Step::Sealed(1), Step::Sealed(3), Step::Large(2)] {
                    left.extend(live(fresh(), &[first, second, third, fourth]));
                }
            }
        }
    }
    for media in &left {
        for second in [Step::Sealed(2), Step::Large(1), Step::Aborted(3)] {
            images += live(media.clone(), &[second, Step::Sealed(1)]).len();
        }
    }
    println!("{} images, and {images} of second lives", left.len());
    assert!(left.len() > 1000);
}

#[test]
fn a_word_that_is_no_state_is_none() {
    for generation in [0, 1, u64::MAX >> 3] {
        for settled in BOTH {
            let word = generation << 3 | u64::from(settled) << 2 | 3;
            assert_eq!(State::from_word(word), None);
        }
    }
}
