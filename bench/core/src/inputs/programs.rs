//! Inputs of the programs that work on text.

use super::random::{Random, mix};
use super::{Scale, Walk};

/// Pairs of texts, one behind the other: the key and the value of each. All keys have one length, and all values,
/// multiples of 8.
#[derive(Debug)]
pub struct Texts {
    /// All of them.
    pub text: String,
    /// Bytes of a key.
    pub key_len: usize,
    /// Bytes of a value.
    pub value_len: usize,
}

impl Texts {
    /// Key and value of each.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let len = self.key_len + self.value_len;
        let places = (0..self.text.len()).step_by(len);
        places.map(move |at| self.text[at..at + len].split_at(self.key_len))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.text.len() / (self.key_len + self.value_len)
    }

    /// The first so many, and the others.
    pub fn split(&self, count: usize) -> [Texts; 2] {
        let (first, others) = self.text.split_at(count * (self.key_len + self.value_len));
        [first, others].map(|text| Texts {
            text: text.to_owned(),
            ..*self
        })
    }
}

/// The sum of the 64-bit words of a text: who knows it has read all of it.
#[inline]
pub fn sum_of_words(text: &str) -> u64 {
    let words = text.as_bytes().as_chunks::<8>().0;
    let sum = |sum: u64, word: &[u8; 8]| sum.wrapping_add(u64::from_le_bytes(*word));
    words.iter().fold(0, sum)
}

/// The hash of a word, by FNV-1a.
pub fn hash_of(word: &str) -> u64 {
    word.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Inputs of the rows of the key-value store; they run one after the other on the same store.
#[derive(Debug)]
pub struct StoreInputs {
    /// New keys.
    pub puts: Texts,
    /// Other values for these keys, in another order.
    pub replacements: Texts,
    /// What goes behind these values, in a third order.
    pub appends: Texts,
    /// The keys in a fourth order.
    pub reads: Texts,
    /// The keys in a fifth order.
    pub deletions: Texts,
    /// What walks find after the puts, the replacements and the appends.
    pub walks: [Walk; 3],
    /// The sum of the words of all values after the appends.
    pub read_sum: u64,
}

/// Bytes of a key, of a value (about that of a YCSB field), and of what is appended.
const LENGTHS: [usize; 3] = [24, 96, 8];

/// Makes the inputs of the rows of the key-value store.
pub fn store(scale: &Scale) -> StoreInputs {
    let mut random = Random::new(6);
    let mut order: Vec<u64> = (0..scale.programs as u64).collect();
    let mut state = vec![0u64; scale.programs];
    let mut texts = |value_len: usize, replaces: bool, state: &mut [u64]| {
        let mut text = String::new();
        for &item in &order {
            let (key, value) = (key(item), value(random.bits(), value_len));
            let known = &mut state[item as usize];
            let kept = if replaces { 0 } else { *known };
            *known = kept.wrapping_add(sum_of_words(&value));
            text += &key;
            text += &value;
        }
        random.shuffle(&mut order);
        let key_len = LENGTHS[0];
        Texts {
            text,
            key_len,
            value_len,
        }
    };
    let walk = |state: &[u64]| {
        let pairs = (0..).zip(state);
        let sums = pairs.map(|(item, value)| sum_of_words(&key(item)) ^ value);
        Walk {
            count: state.len() as u64,
            sum: sums.fold(0, u64::wrapping_add),
            sorted: true,
        }
    };
    let [_, value_len, append_len] = LENGTHS;
    let puts = texts(value_len, true, &mut state);
    let after_puts = walk(&state);
    let replacements = texts(value_len, true, &mut state);
    let after_replacements = walk(&state);
    let appends = texts(append_len, false, &mut state);
    StoreInputs {
        puts,
        replacements,
        appends,
        walks: [after_puts, after_replacements, walk(&state)],
        read_sum: state.iter().copied().fold(0, u64::wrapping_add),
        reads: texts(0, false, &mut state),
        deletions: texts(0, false, &mut state),
    }
}

fn key(item: u64) -> String {
    format!("user{:020}", mix(item))
}

fn value(seed: u64, len: usize) -> String {
    let parts = (0..).map(|part: u64| format!("{:08x}", mix(seed ^ part) as u32));
    parts.take(len / 8).collect()
}

/// Inputs of the word count.
#[derive(Debug)]
pub struct WordInputs {
    /// Words of which some are frequent and most are rare, in ASCII.
    pub text: String,
    /// How many there are.
    pub count: usize,
    /// What a walk finds when they are counted.
    pub walk: Walk,
}

/// Makes the inputs of the word count.
pub fn words(scale: &Scale) -> WordInputs {
    let mut random = Random::new(7);
    let (mut text, mut sum) = (String::new(), 0u64);
    for _ in 0..scale.words {
        let rank = (0..3).fold(40_000, |limit, _| 1 + random.below(limit));
        let word = format!("word{rank}");
        sum = sum.wrapping_add(hash_of(&word));
        text += &word;
        text += [" ", ", ", ".\n", "\n"][random.below(4)];
    }
    WordInputs {
        text,
        count: scale.words,
        walk: Walk {
            count: scale.words as u64,
            sum,
            sorted: true,
        },
    }
}
