//! Lives of a pool in a model, with a crash wherever one can be, also in recovery.

use std::collections::HashSet;
use std::convert::Infallible;

use durum_format::twin::{Copy, Stage, State, Whole, whole_copy};

use crate::{BACK, FRESH, MAIN, Media, Seal, Suspect, WORDS, holds};

/// Since the last fence: the versions of each unit. Any of them may be what a crash leaves.
#[derive(Default)]
struct Unfenced {
    state: Vec<u64>,
    suspects: Vec<Suspect>,
    seals: [Vec<Seal>; 2],
    copies: [[Vec<u64>; WORDS]; 2],
}

/// A transaction, or what else writes a state. Numbers are masks of the words that it changes, of those that are there.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// Its ranges fit a seal.
    Sealed(usize),
    /// They do not.
    Large(usize),
    Aborted(usize),
    /// Makes the object, or frees it; with or without a seal.
    Make {
        is_sealed: bool,
    },
    /// Outside of a transaction: the first word.
    Persist,
    Settle,
    /// The pool is closed in order, and opened again.
    Reopen,
}

/// What a writer leaves out, which has to be noticed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Forgotten {
    Nothing,
    /// A word is on the list durably before it changes.
    Fence,
    /// A word that the transaction has changed stays on the list.
    Staying,
    /// New objects are on the list where no seal names them.
    Objects,
    /// Recovery looks at what the last seal names, too.
    Seal,
    /// What is persisted is on the list.
    Persisted,
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
    /// What the list says, and whether this process has written it.
    suspect: Option<Suspect>,
    /// The words that the transaction has changed.
    touched: usize,
    /// What a recovery may find: the last acknowledged contents, and those of a transaction whose commit has begun.
    allowed: Vec<[u64; WORDS]>,
    /// Never repeats, so that every version of a word is another one.
    value: u64,
    forgotten: Forgotten,
    images: HashSet<(Media, Vec<[u64; WORDS]>)>,
}

impl Life {
    fn on(media: Media, forgotten: Forgotten) -> Self {
        let memory = media.copies[MAIN];
        let mut life = Self {
            media,
            unfenced: Unfenced::default(),
            memory,
            next: 0,
            is_changing: false,
            is_settled: false,
            suspect: None,
            touched: 0,
            allowed: vec![seen(&memory)],
            value: 1000,
            forgotten,
            images: HashSet::new(),
        };
        life.open();
        life
    }

    fn open(&mut self) {
        let word = *self.unfenced.state.last().unwrap_or(&self.media.state);
        self.next = State::from_word(word).unwrap().generation + 1;
        self.is_changing = false;
        self.suspect = None;
    }

    fn write_state(&mut self, stage: Stage, is_settled: bool) {
        let generation = self.next;
        let state = State {
            generation,
            stage,
            is_settled,
            is_listed: true,
        };
        self.unfenced.state.push(state.to_word());
    }

    fn write(&mut self, copy: usize, word: usize, value: u64) {
        self.unfenced.copies[copy][word].push(value);
    }

    /// Puts a word on the list. Whether a fence has to follow.
    fn suspect(&mut self, word: usize) -> bool {
        self.touched |= 1 << word;
        let wanted = match self.suspect {
            Some(Suspect::Everything) => return false,
            Some(Suspect::Word(known)) if known == word => return false,
            Some(Suspect::Word(other))
                if self.touched >> other & 1 == 1 && self.forgotten != Forgotten::Staying =>
            {
                Suspect::Everything
            }
            _ => Suspect::Word(word),
        };
        self.suspect = Some(wanted);
        self.unfenced.suspects.push(wanted);
        true
    }

    /// Makes the media ready for a change of a word that is there.
    fn before_store(&mut self, word: usize) {
        let is_new = self.suspect(word);
        if !self.is_changing {
            self.write_state(Stage::Changing, true);
            self.fence();
            (self.is_changing, self.is_settled) = (true, true);
        } else if is_new && self.forgotten != Forgotten::Fence {
            self.fence();
        }
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
        let suspects = &unfenced.suspects;
        spread(&mut images, suspects.len(), &|media, version| {
            media.suspect = suspects[version]
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

    fn settle(&mut self) {
        if self.is_changing && !self.is_settled {
            self.write_state(Stage::Changing, true);
            self.fence();
            self.is_settled = true;
        }
    }

    fn step(&mut self, step: Step) {
        // Every copy is durable: the list may begin anew.
        self.touched = 0;
        if self.suspect == Some(Suspect::Everything) {
            self.suspect = None;
        }
        match step {
            Step::Sealed(mask) | Step::Large(mask) | Step::Aborted(mask) => {
                let there = if has_object(&self.memory) { 3 } else { 1 };
                if mask & there != 0 {
                    self.transaction(step, mask & there);
                }
            }
            Step::Make { .. } => self.transaction(step, 1),
            Step::Persist => self.persist(),
            Step::Settle => self.settle(),
            Step::Reopen => {
                if self.is_changing {
                    // No fence follows.
                    self.write_state(Stage::Idle, false);
                }
                self.open();
            }
        }
    }

    fn next_value(&mut self, word: usize, has_object: bool) -> u64 {
        self.value += 1;
        self.value << 1 | u64::from(word == 0 && has_object)
    }

    fn persist(&mut self) {
        if self.forgotten == Forgotten::Persisted {
            if !self.is_changing {
                self.write_state(Stage::Changing, true);
                self.fence();
                (self.is_changing, self.is_settled) = (true, true);
            }
        } else {
            self.before_store(0);
        }
        self.settle();
        let value = self.next_value(0, has_object(&self.memory));
        self.memory[0] = value;
        self.allowed.push(seen(&self.memory));
        self.write(MAIN, 0, value);
        self.write(BACK, 0, value);
        self.fence();
        self.allowed = vec![seen(&self.memory)];
    }

    fn transaction(&mut self, step: Step, mask: usize) {
        let before = self.memory;
        let mut changed: Vec<usize> = (0..WORDS).filter(|word| mask >> word & 1 == 1).collect();
        let mut has_object = has_object(&before);
        if let Step::Make { .. } = step {
            has_object = !has_object;
            if has_object {
                // It is stored to before anything is said, and announced.
                for _ in 0..2 {
                    self.memory[1] = self.next_value(1, true);
                    self.write(MAIN, 1, self.memory[1]);
                }
            }
        }
        // Each word twice: what it holds in between may reach the media.
        for &word in &changed {
            self.before_store(word);
            for _ in 0..2 {
                self.memory[word] = self.next_value(word, has_object);
                self.write(MAIN, word, self.memory[word]);
            }
        }
        if matches!(step, Step::Aborted(_)) {
            for &word in &changed {
                self.write(MAIN, word, before[word]);
            }
            self.memory = before;
            return self.fence();
        }
        let is_made = matches!(step, Step::Make { .. }) && has_object;
        let mask = mask | if is_made { 2 } else { 0 };
        if is_made {
            changed.push(1);
        }
        let is_sealed = matches!(step, Step::Sealed(_) | Step::Make { is_sealed: true });
        if is_sealed {
            let place = (self.next % 2) as usize;
            self.unfenced.seals[place] = vec![None, Some((self.next, mask, self.memory))];
        } else {
            if is_made && self.forgotten != Forgotten::Objects {
                self.suspect(1);
            }
            if !self.is_changing {
                self.write_state(Stage::Changing, true);
            }
            self.fence();
            self.write_state(Stage::Copying, false);
        }
        self.allowed.push(seen(&self.memory));
        self.fence();
        // Acknowledged.
        self.allowed = vec![seen(&self.memory)];
        for word in changed {
            self.write(BACK, word, self.memory[word]);
        }
        self.next += 1;
        self.is_changing = is_sealed;
        self.is_settled = false;
        if self.is_changing {
            self.write_state(Stage::Changing, false);
        }
        self.fence();
    }
}

/// Whether the second word is an object.
fn has_object(contents: &[u64; WORDS]) -> bool {
    contents[0] & 1 == 1
}

/// Without what lies in no object.
fn seen(contents: &[u64; WORDS]) -> [u64; WORDS] {
    match has_object(contents) {
        true => *contents,
        false => [contents[0], 0],
    }
}

fn decide(media: &Media) -> Whole {
    let holds = |copy, generation| Ok::<_, Infallible>(holds(media, copy, generation).is_some());
    let Ok(whole) = whole_copy(State::from_word(media.state).unwrap(), holds);
    whole
}

/// The words that recovery copies.
fn suspects(media: &Media, whole: Copy, forgotten: Forgotten) -> usize {
    let state = State::from_word(media.state).unwrap();
    let listed = match media.suspect {
        Suspect::None => 0,
        Suspect::Word(word) => 1 << word,
        Suspect::Everything => 3,
    };
    if (state.stage, whole) != (Stage::Changing, Copy::Main) || forgotten == Forgotten::Seal {
        return listed;
    }
    let numbers = [state.generation, state.generation.wrapping_sub(1)];
    let sealed = numbers
        .iter()
        .find_map(|number| holds(media, whole, *number));
    listed | sealed.unwrap_or_default()
}

/// Recovers, and crashes on the way in each way. What is there in the end.
fn recover(media: &Media, forgotten: Forgotten) -> Media {
    let mut recovered = media.clone();
    let whole = match decide(media) {
        Whole::Both => return recovered,
        Whole::One(whole) => whole,
        Whole::Neither => panic!("no crash leaves {media:?}"),
    };
    let (from, to) = match whole {
        Copy::Main => (MAIN, BACK),
        Copy::Back => (BACK, MAIN),
    };
    let words = suspects(media, whole, forgotten);
    let copied = |some: usize| {
        let mut media = media.clone();
        for word in (0..WORDS).filter(|word| words >> word & some >> word & 1 == 1) {
            media.copies[to][word] = media.copies[from][word];
        }
        media
    };
    for some in 0..1 << WORDS {
        let again = copied(some);
        let contents = match decide(&again) {
            Whole::Both => again.copies[MAIN],
            Whole::One(Copy::Main) => again.copies[MAIN],
            Whole::One(Copy::Back) => again.copies[BACK],
            Whole::Neither => panic!("no crash of a recovery leaves {again:?}"),
        };
        assert_eq!(
            seen(&contents),
            seen(&media.copies[from]),
            "recovered again: {again:?}"
        );
    }
    recovered.copies = copied(usize::MAX).copies;
    let state = State::from_word(media.state).unwrap();
    let stage = Stage::Idle;
    recovered.state = State { stage, ..state }.to_word();
    recovered
}

/// What a life leaves, whatever the crash, recovers to what was acknowledged. The images after it, all different.
fn live(media: Media, steps: &[Step], forgotten: Forgotten) -> Vec<Media> {
    let mut life = Life::on(media, forgotten);
    for step in steps {
        life.step(*step);
    }
    let mut recovered = Vec::new();
    for (image, allowed) in &life.images {
        let media = recover(image, forgotten);
        assert_eq!(
            seen(&media.copies[MAIN]),
            seen(&media.copies[BACK]),
            "{steps:?}: {image:?}"
        );
        assert!(
            allowed.contains(&seen(&media.copies[MAIN])),
            "{steps:?}: {image:?}"
        );
        recovered.push(media);
    }
    recovered
}

const KINDS: [Step; 11] = [
    Step::Sealed(1),
    Step::Sealed(2),
    Step::Sealed(3),
    Step::Large(3),
    Step::Aborted(1),
    Step::Aborted(3),
    Step::Make { is_sealed: true },
    Step::Make { is_sealed: false },
    Step::Persist,
    Step::Settle,
    Step::Reopen,
];

/// Lives of four steps, and second lives on what a crash of those has left: other seals, another state.
fn live_in_all_ways(forgotten: Forgotten) -> (usize, usize) {
    let mut left = HashSet::new();
    let mut images = 0;
    let with_object = live(FRESH, &[Step::Make { is_sealed: true }], Forgotten::Nothing);
    let with_object = with_object
        .into_iter()
        .find(|media| has_object(&media.copies[MAIN]));
    for media in [FRESH, with_object.unwrap()] {
        for first in KINDS {
            for second in KINDS {
                for third in KINDS {
                    for fourth in [Step::Sealed(1), Step::Sealed(3), Step::Large(2)] {
                        let steps = [first, second, third, fourth];
                        left.extend(live(media.clone(), &steps, forgotten));
                    }
                }
            }
        }
    }
    for media in &left {
        for second in [
            Step::Sealed(2),
            Step::Large(1),
            Step::Aborted(3),
            Step::Persist,
        ] {
            images += live(media.clone(), &[second, Step::Sealed(1)], forgotten).len();
        }
    }
    (left.len(), images)
}

#[test]
fn whatever_crashes_recovery_finds_what_was_acknowledged() {
    let (left, images) = live_in_all_ways(Forgotten::Nothing);
    println!("{left} images, and {images} of second lives");
    assert!(left > 1000);
}

#[test]
fn each_rule_of_the_list_is_needed() {
    for forgotten in [
        Forgotten::Fence,
        Forgotten::Staying,
        Forgotten::Objects,
        Forgotten::Seal,
        Forgotten::Persisted,
    ] {
        let lived = std::panic::catch_unwind(|| live_in_all_ways(forgotten));
        assert!(lived.is_err(), "nobody notices without {forgotten:?}");
    }
}
