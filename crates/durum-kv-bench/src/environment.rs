//! Where it ran: LevelDB's lines about the day and the processor.

use std::time::{SystemTime, UNIX_EPOCH};

/// The lines, of which those that nothing is known for are left out.
pub fn lines() -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let mut text = format!("Date:       {}\n", date(seconds));
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text += &processors(&info);
    text
}

/// The processors that a `/proc/cpuinfo` lists.
fn processors(info: &str) -> String {
    let values = |name: &str| -> Vec<&str> {
        info.lines()
            .filter_map(|line| line.split_once(':'))
            .filter(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim())
            .collect()
    };
    let (models, caches) = (values("model name"), values("cache size"));
    let mut text = String::new();
    if let Some(model) = models.last() {
        text += &format!("CPU:        {} * {model}\n", models.len());
    }
    if let Some(cache) = caches.last() {
        text += &format!("CPUCache:   {cache}\n");
    }
    text
}

/// A moment as C's `ctime` writes it, in UTC.
fn date(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let weekday = DAYS[(seconds / 86_400 % 7) as usize];
    let (mut day, mut year) = (seconds / 86_400, 1970);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    let of_day = seconds % 86_400;
    format!(
        "{weekday} {} {:>2} {:02}:{:02}:{:02} {year} UTC",
        MONTHS[month],
        day + 1,
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(date(0), "Thu Jan  1 00:00:00 1970 UTC");
        assert_eq!(date(951_782_399), "Mon Feb 28 23:59:59 2000 UTC");
        assert_eq!(date(951_782_400), "Tue Feb 29 00:00:00 2000 UTC");
        assert_eq!(date(1_735_689_599), "Tue Dec 31 23:59:59 2024 UTC");
        assert_eq!(date(4_107_542_400), "Mon Mar  1 00:00:00 2100 UTC");
    }

    #[test]
    fn processors_are_counted() {
        let one = "model name\t: Some CPU @ 2 GHz\ncache size\t: 512 KB\nflags: x\n\n";
        let text = "CPU:        2 * Some CPU @ 2 GHz\nCPUCache:   512 KB\n";
        assert_eq!(processors(&one.repeat(2)), text);
        assert_eq!(processors("Processor: ARM\n"), "");
    }
}
