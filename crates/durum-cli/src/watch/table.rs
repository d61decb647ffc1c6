//! What is counted, for people.

use std::io::{self, Write};
use std::time::Duration;

use durum_protocol::watching::{Number, Numbers};

use crate::color;
use crate::output::{self, grouped, size, time};

/// Shows what each program has counted, and how fast that grew since an earlier look.
pub(super) fn show(
    all: &[Numbers],
    since: Option<(Duration, &[Numbers])>,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (at, numbers) in all.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        let before = since.and_then(|(time, before)| {
            let same = before.iter().find(|before| is_same(before, numbers));
            same.map(|before| (time, before))
        });
        one(numbers, before, out)?;
    }
    Ok(())
}

/// Whether both are of one program's opening of the store.
fn is_same(before: &Numbers, now: &Numbers) -> bool {
    before.pid == now.pid && before.open_us <= now.open_us
}

fn one(
    numbers: &Numbers,
    before: Option<(Duration, &Numbers)>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let open = time(Duration::from_micros(numbers.open_us));
    let process = format!("process {}:", numbers.pid);
    writeln!(
        out,
        "{} open for {open}",
        color::out(color::HEADING, process)
    )?;
    let mut rows = output::heading("NUMBER|NOW|A SECOND");
    for number in numbers.all.iter().filter(|number| !number.is_by_pool) {
        let value = number.values.first().copied().unwrap_or(0);
        let rate = before.and_then(|(time, before)| {
            let found = before.all.iter().find(|found| found.name == number.name)?;
            let earlier = found.values.first().copied().unwrap_or(0);
            let new = value.saturating_sub(earlier) as f64;
            number.grows.then(|| new / time.as_secs_f64().max(1e-3))
        });
        rows.push(vec![
            number.name.replace('_', " "),
            shown(number, value),
            rate.map_or_else(|| "-".to_owned(), |rate| shown(number, rate.round() as u64)),
        ]);
    }
    output::table(out, &rows, &[1, 2])?;
    if numbers.pools.is_empty() {
        return writeln!(out, "no pool is open");
    }
    writeln!(out)?;
    let of_pools: Vec<&Number> = numbers
        .all
        .iter()
        .filter(|number| number.is_by_pool)
        .collect();
    let mut heading = output::heading("POOL|ENGINE");
    let names = of_pools.iter().map(|number| {
        let name = number.name.strip_prefix("pool_").unwrap_or(&number.name);
        name.replace('_', " ").to_uppercase()
    });
    heading.iter_mut().for_each(|row| row.extend(names.clone()));
    let mut rows = heading;
    for (at, pool) in numbers.pools.iter().enumerate() {
        let only = match pool.is_read_only {
            true => ", read only",
            false => "",
        };
        let mut row = vec![pool.name.clone(), format!("{}{only}", pool.engine.name())];
        row.extend(of_pools.iter().map(|number| {
            let value = number.values.get(at).copied().unwrap_or(0);
            shown(number, value)
        }));
        rows.push(row);
    }
    let right: Vec<usize> = (2..2 + of_pools.len()).collect();
    output::table(out, &rows, &right)
}

/// The unit stands at the end of the name.
fn shown(number: &Number, value: u64) -> String {
    match number.name.ends_with("bytes") {
        true => size(value),
        false => grouped(value),
    }
}
