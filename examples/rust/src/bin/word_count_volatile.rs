//! Counts the words of files: a thread for each file reads it in chunks, which other threads take and count.
//!
//!     word_count run N FILE...      reads and counts, with N threads that count
//!     word_count apart N FILE...    reads everything first, then counts
//!     word_count status             tells what is there: counted, waiting, and bytes read of each file
//!
//! Standard output has the words with their numbers, and the status.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Chunks wait in lanes. Each lane belongs to one counting thread, so that these do not meet.
const LANES: usize = 16;
const FILES_MAX: usize = 16;
/// Bytes of a chunk, about.
const CHUNK: usize = 4096;
/// Chunks of a lane that may wait before readers do.
const WAITING_MAX: usize = 256;

type Link = Option<Box<Entry>>;

/// A word and how often it was found.
struct Entry {
    word: String,
    count: Cell<u64>,
    next: Link,
}

/// Words in chains, which are as short as one entry on average.
#[derive(Default)]
struct Counts {
    chains: Vec<Link>,
    length: usize,
    words: u64,
}

/// Chunks in the order in which they came.
#[derive(Default)]
struct Queue {
    incoming: Vec<String>,
    /// The next one is the last of these; when there is none, the incoming ones are turned round.
    outgoing: Vec<String>,
}

#[derive(Default)]
struct Lane {
    queue: Mutex<Queue>,
    /// Taken from the queue, and not counted yet: while it is counted, the queue is free. Empty if there is none.
    in_hand: Mutex<String>,
    counts: Mutex<Counts>,
}

#[derive(Default)]
pub(crate) struct Work {
    lanes: [Lane; LANES],
    /// Bytes of each file that have come to a queue.
    read: [Mutex<usize>; FILES_MAX],
}

impl Counts {
    fn add(&mut self, word: &str) {
        self.words += 1;
        if self.length >= self.chains.len() {
            self.grow();
        }
        let chain = self.chain_of(word);
        if let Some(entry) = links(&self.chains[chain]).find(|entry| entry.word == word) {
            entry.count.set(entry.count.get() + 1);
            return;
        }
        let entry = Entry {
            word: String::from(word),
            count: Cell::new(1),
            next: self.chains[chain].take(),
        };
        self.chains[chain] = Some(Box::new(entry));
        self.length += 1;
    }

    fn grow(&mut self) {
        let mut old = std::mem::take(&mut self.chains);
        let twice = (old.len() * 2).max(64);
        self.chains.resize_with(twice, || None);
        for mut rest in old.drain(..) {
            while let Some(mut entry) = rest {
                rest = entry.next.take();
                let chain = self.chain_of(&entry.word);
                entry.next = self.chains[chain].take();
                self.chains[chain] = Some(entry);
            }
        }
    }

    /// By FNV-1a. The hashers of std may differ from one version to the next.
    fn chain_of(&self, word: &str) -> usize {
        let hash = word.bytes().fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
        });
        hash as usize % self.chains.len().max(1)
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.chains.iter().flat_map(links)
    }
}

/// The entries of a chain.
fn links(chain: &Link) -> impl Iterator<Item = &Entry> {
    std::iter::successors(chain.as_deref(), |entry| entry.next.as_deref())
}

impl Queue {
    fn push(&mut self, chunk: &str) {
        self.incoming.push(String::from(chunk));
    }

    fn pop(&mut self) -> Option<String> {
        if self.outgoing.is_empty() {
            while let Some(chunk) = self.incoming.pop() {
                self.outgoing.push(chunk);
            }
        }
        self.outgoing.pop()
    }

    fn len(&self) -> usize {
        self.incoming.len() + self.outgoing.len()
    }

    fn words(&self) -> usize {
        let chunks = self.incoming.iter().chain(self.outgoing.iter());
        chunks.map(|chunk| words(chunk).count()).sum()
    }
}

impl Lane {
    /// Takes a chunk in hand, if there is one.
    fn take(&self) -> bool {
        let mut in_hand = self.in_hand.lock().unwrap();
        if in_hand.is_empty() {
            *in_hand = self.queue.lock().unwrap().pop().unwrap_or_default();
        }
        !in_hand.is_empty()
    }

    /// Counts the chunk in hand.
    fn count(&self) {
        let chunk = std::mem::take(&mut *self.in_hand.lock().unwrap());
        let mut counts = self.counts.lock().unwrap();
        words(&chunk).for_each(|word| counts.add(word));
    }
}

impl Work {
    /// Brings the next chunk of a file to a lane, if there is room. `None`: the file is at its end.
    fn bring(&self, file: usize, text: &str, lane: usize, room: usize) -> Option<bool> {
        let mut read = self.read[file].lock().unwrap();
        let chunk = first_chunk(text.get(*read..)?)?;
        let mut queue = self.lanes[lane].queue.lock().unwrap();
        if queue.len() >= room {
            return Some(false);
        }
        queue.push(chunk);
        *read += chunk.len();
        Some(true)
    }

    /// Reads a file, lane by lane.
    pub(crate) fn read(&self, file: usize, text: &str, room: usize) {
        let mut lane = file;
        loop {
            match self.bring(file, text, lane % LANES, room) {
                Some(true) => {}
                Some(false) => std::thread::yield_now(),
                None => return,
            }
            lane += 1;
        }
    }

    /// Counts what is in the lanes of one of several threads, until no more comes.
    pub(crate) fn count(&self, thread: usize, threads: usize, is_read: &AtomicBool) {
        loop {
            let was_read = is_read.load(Ordering::Acquire);
            let mut was_idle = true;
            for lane in self.lanes[thread..].iter().step_by(threads) {
                let has_chunk = lane.take();
                if has_chunk {
                    lane.count();
                    was_idle = false;
                }
            }
            if was_idle && was_read {
                return;
            }
            if was_idle {
                std::thread::yield_now();
            }
        }
    }

    fn status(&self) -> String {
        let (mut counted, mut waiting) = (0, 0);
        for lane in &self.lanes {
            counted += lane.counts.lock().unwrap().words;
            waiting += words(&lane.in_hand.lock().unwrap()).count();
            waiting += lane.queue.lock().unwrap().words();
        }
        let read: Vec<usize> = self.read.iter().map(|read| *read.lock().unwrap()).collect();
        format!("counted {counted} waiting {waiting} read {read:?}")
    }

    /// All words with their numbers, from all lanes.
    pub(crate) fn totals(&self) -> BTreeMap<String, u64> {
        let mut totals = BTreeMap::new();
        for lane in &self.lanes {
            for entry in lane.counts.lock().unwrap().entries() {
                *totals.entry(entry.word.to_string()).or_default() += entry.count.get();
            }
        }
        totals
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty())
}

/// The text up to the first white space from `CHUNK` bytes on: words stay whole.
fn first_chunk(text: &str) -> Option<&str> {
    let rest = text.as_bytes().iter().skip(CHUNK);
    let more = rest.take_while(|byte| !byte.is_ascii_whitespace()).count();
    let chunk = text.get(..CHUNK + more).unwrap_or(text);
    (!chunk.is_empty()).then_some(chunk)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let work = Work::default();
    if let [how @ ("run" | "apart"), threads, files @ ..] = &arguments[..] {
        let threads = threads.parse::<usize>()?.clamp(1, LANES);
        let texts: Vec<String> = files
            .iter()
            .map(std::fs::read_to_string)
            .collect::<Result<_, _>>()?;
        let is_apart = *how == "apart";
        let room = if is_apart { usize::MAX } else { WAITING_MAX };
        let is_read = AtomicBool::new(false);
        let mut start = Instant::now();
        std::thread::scope(|scope| {
            let (work, is_read) = (&work, &is_read);
            let read = texts.iter().take(FILES_MAX).enumerate();
            let readers: Vec<_> = read
                .map(|(file, text)| scope.spawn(move || work.read(file, text, room)))
                .collect();
            let count = || {
                for thread in 0..threads {
                    scope.spawn(move || work.count(thread, threads, is_read));
                }
            };
            if !is_apart {
                count();
            }
            readers.into_iter().for_each(|reader| drop(reader.join()));
            is_read.store(true, Ordering::Release);
            if is_apart {
                start = Instant::now();
                count();
            }
        });
        let micros = start.elapsed().as_micros();
        eprintln!("{how} {threads} threads: {micros} us");
    }
    let (totals, status) = (work.totals(), work.status());
    for (word, count) in totals {
        println!("{count} {word}");
    }
    println!("{status}");
    Ok(())
}
