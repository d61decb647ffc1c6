//! Steps of work that have to stay proportional to what a transaction contains. Tests count them; else there is nothing
//! here.

#[cfg(test)]
thread_local!(static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });

/// This thread looks at so many things, or moves them.
#[inline(always)]
pub(crate) fn add(count: usize) {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + count as u64));
    let _ = count;
}

/// The steps of this thread so far.
#[cfg(test)]
pub(crate) fn taken() -> u64 {
    STEPS.with(std::cell::Cell::get)
}
