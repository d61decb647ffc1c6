//! Choosing images: which version each thing shows that is not durable.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::media::{Media, len_term, mix, name_term, piece_term};
use super::names::{Node, Place, Repair};
use crate::record::FileId;

/// Which image of a crash point. "Thing" is anything that may be old or new: a unit, a length, a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Draw {
    /// Nothing newer.
    None,
    /// Everything newer.
    All,
    /// One thing newer.
    Alone(usize),
    /// Everything newer but one thing.
    AllBut(usize),
    /// Each thing, or each word of it, at random.
    Random(u32),
    /// All combinations, counted through.
    Nth(u64),
}

impl fmt::Display for Draw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Draw::None => write!(f, "none"),
            Draw::All => write!(f, "all"),
            Draw::Alone(thing) => write!(f, "alone-{thing}"),
            Draw::AllBut(thing) => write!(f, "all-but-{thing}"),
            Draw::Random(number) => write!(f, "random-{number}"),
            Draw::Nth(number) => write!(f, "nth-{number}"),
        }
    }
}

impl FromStr for Draw {
    type Err = String;

    fn from_str(text: &str) -> Result<Draw, String> {
        let parse = |text: &str| {
            Some(match text {
                "none" => Draw::None,
                "all" => Draw::All,
                _ => match text.rsplit_once('-')? {
                    ("alone", thing) => Draw::Alone(thing.parse().ok()?),
                    ("all-but", thing) => Draw::AllBut(thing.parse().ok()?),
                    ("random", number) => Draw::Random(number.parse().ok()?),
                    ("nth", number) => Draw::Nth(number.parse().ok()?),
                    _ => return None,
                },
            })
        };
        parse(text).ok_or_else(|| format!("{text:?} names no image"))
    }
}

/// How many images of each kind to draw.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amounts {
    pub(super) random_images: u32,
    pub(super) single_units_max: u32,
    pub(super) exhaustive_max: u32,
}

/// An image, described by what differs from what the running program sees.
#[derive(Default)]
pub(super) struct Image {
    /// Equal for equal images.
    pub(super) hash: u64,
    pub(super) tree: Vec<(PathBuf, Node)>,
    /// By file.
    pub(super) lens: Vec<u64>,
    /// By file: offset in the file and position in `bytes` of each unit that is not clean; offsets grow.
    pub(super) units: Vec<Vec<(u64, usize)>>,
    pub(super) bytes: Vec<u8>,
}

/// The images to draw at a point whose random choices are seeded by `seed`.
pub(super) fn draws(media: &Media<'_>, amounts: Amounts, seed: u64) -> Vec<Draw> {
    let mut combinations = 1u64;
    let mut things = 0;
    for_each_thing(media, |newer_of_pieces| {
        things += 1;
        for newer in newer_of_pieces {
            combinations = combinations.saturating_mul(*newer as u64 + 1);
        }
    });
    if combinations <= u64::from(amounts.exhaustive_max.max(1)) {
        return (0..combinations).map(Draw::Nth).collect();
    }
    let mut draws = vec![Draw::None, Draw::All];
    for thing in sample(things, amounts.single_units_max as usize, mix(seed, 1)) {
        draws.push(Draw::Alone(thing));
        draws.push(Draw::AllBut(thing));
    }
    draws.extend((0..amounts.random_images).map(Draw::Random));
    draws
}

/// At most `max` of the numbers below `count`, growing; all of them if there are no more.
pub(super) fn sample(count: usize, max: usize, seed: u64) -> Vec<usize> {
    let mut left = max.min(count);
    let mut random = Random(seed);
    let mut sample = Vec::with_capacity(left);
    for number in 0..count {
        if left == 0 {
            break;
        }
        // Each set of `max` numbers is equally likely.
        if random.below((count - number) as u64) < left as u64 {
            sample.push(number);
            left -= 1;
        }
    }
    sample
}

/// Names first, then lengths, then units: the order by which [`Draw`] counts things.
fn for_each_thing(media: &Media<'_>, mut visit: impl FnMut(&[usize])) {
    for (_, newer) in media.names.pending() {
        visit(&[newer]);
    }
    for file in media.files.iter().filter(|file| !file.len.newer.is_empty()) {
        visit(&[file.len.newer.len()]);
    }
    let mut newer = Vec::new();
    for unit in media.files.iter().flat_map(|file| file.dirty.values()) {
        newer.clear();
        newer.extend((0..unit.pieces()).map(|piece| unit.newer(piece)));
        visit(&newer);
    }
}

/// Makes the image that `draw` names.
pub(super) fn choose(media: &Media<'_>, draw: Draw, seed: u64) -> Image {
    let mut picker = Picker::new(draw, seed);
    let mut image = Image {
        hash: media.hash,
        ..Image::default()
    };

    let mut picks: BTreeMap<Place, usize> = BTreeMap::new();
    for (place, newer) in media.names.pending() {
        picker.next_thing();
        picks.insert(place, picker.pick(newer));
    }
    let repair = match draw {
        Draw::Alone(_) => Repair::Raise,
        _ => Repair::Lower,
    };
    media.names.repair(&mut picks, repair);
    for (place, picked) in &picks {
        let (shown, durable) = media.names.shown(place, *picked);
        image.replace_term(name_term(place, durable), name_term(place, shown));
    }
    image.tree = media.names.tree(&picks);

    for (index, file) in media.files.iter().enumerate() {
        let picked = if file.len.newer.is_empty() {
            0
        } else {
            picker.next_thing();
            picker.pick(file.len.newer.len())
        };
        let (id, len) = (FileId(index as u32), file.len.shown(picked));
        image.replace_term(len_term(id, file.len.durable), len_term(id, len));
        image.lens.push(len);
    }

    for (index, file) in media.files.iter().enumerate() {
        let mut units = Vec::with_capacity(file.dirty.len());
        let id = FileId(index as u32);
        for (unit_index, unit) in &file.dirty {
            picker.next_thing();
            units.push((unit_index * media.shape.unit as u64, image.bytes.len()));
            let hash = &mut image.hash;
            unit.show(
                &mut image.bytes,
                |newer| picker.pick(newer),
                |piece, durable, shown| {
                    *hash = hash
                        .wrapping_sub(piece_term(media.shape, id, *unit_index, piece, durable))
                        .wrapping_add(piece_term(media.shape, id, *unit_index, piece, shown));
                },
            );
        }
        image.units.push(units);
    }
    image
}

impl Image {
    fn replace_term(&mut self, old: u64, new: u64) {
        self.hash = self.hash.wrapping_sub(old).wrapping_add(new);
    }
}

/// Picks versions, asked for in a fixed order: 0 is the durable one, `newer` the newest.
struct Picker {
    draw: Draw,
    random: Random,
    /// The thing that is being picked for; counted from 1.
    thing: usize,
    /// Random draws: how this thing is treated, and out of 16 how many things are new.
    treatment: Treatment,
    new_of_16: u64,
    /// [`Draw::Nth`]: what remains of the number.
    rest: u64,
}

#[derive(Clone, Copy)]
enum Treatment {
    Old,
    New,
    /// Each piece any version.
    Torn,
}

impl Picker {
    fn new(draw: Draw, seed: u64) -> Picker {
        let (number, rest) = match draw {
            Draw::Random(number) => (number, 0),
            Draw::Nth(rest) => (0, rest),
            _ => (0, 0),
        };
        let mut random = Random(mix(seed, 2 + u64::from(number)));
        // Mostly old, mixed, and mostly new images: protocols break at different ones.
        let new_of_16 = [1, 5, 10][random.below(3) as usize];
        Picker {
            draw,
            random,
            thing: 0,
            treatment: Treatment::Old,
            new_of_16,
            rest,
        }
    }

    fn next_thing(&mut self) {
        self.thing += 1;
        let thing = self.thing - 1;
        self.treatment = match self.draw {
            Draw::None => Treatment::Old,
            Draw::All => Treatment::New,
            Draw::Alone(alone) if alone == thing => Treatment::New,
            Draw::Alone(_) => Treatment::Old,
            Draw::AllBut(but) if but == thing => Treatment::Old,
            Draw::AllBut(_) => Treatment::New,
            Draw::Nth(_) => Treatment::Torn,
            Draw::Random(_) => match self.random.below(16) {
                0..=3 => Treatment::Torn,
                roll if (roll - 4) * 16 < self.new_of_16 * 12 => Treatment::New,
                _ => Treatment::Old,
            },
        };
    }

    fn pick(&mut self, newer: usize) -> usize {
        match (self.treatment, self.draw) {
            (Treatment::Old, _) => 0,
            (Treatment::New, _) => newer,
            (Treatment::Torn, Draw::Nth(_)) => {
                let count = newer as u64 + 1;
                let picked = self.rest % count;
                self.rest /= count;
                picked as usize
            }
            (Treatment::Torn, _) => self.random.below(newer as u64 + 1) as usize,
        }
    }
}

/// Numbers from a seed.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        // The bias is below 2^-32 for the small bounds used here.
        mix(self.0, 0x5851_f42d_4c95_7f2d) % bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_size_asked_for_and_no_number_twice() {
        for seed in 0..200 {
            let sample = sample(20, 7, seed);
            assert_eq!(sample.len(), 7);
            assert!(sample.windows(2).all(|pair| pair[0] < pair[1]) && sample[6] < 20);
        }
        assert_eq!(sample(3, 7, 1), [0, 1, 2]);
        let hits = (0..2000)
            .filter(|seed| sample(20, 7, *seed).contains(&19))
            .count();
        assert!(
            (500..900).contains(&hits),
            "the last number is drawn as often as others: {hits} of 2000"
        );
    }

    #[test]
    fn names_of_images_read_back() {
        for draw in [
            Draw::None,
            Draw::All,
            Draw::Alone(3),
            Draw::AllBut(0),
            Draw::Random(7),
            Draw::Nth(12),
        ] {
            assert_eq!(draw.to_string().parse(), Ok(draw));
        }
        assert!("all-but".parse::<Draw>().is_err());
        assert!("random-x".parse::<Draw>().is_err());
    }
}
