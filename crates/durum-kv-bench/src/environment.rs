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
    let mut text = [0u8; 64];
    // SAFETY: zeros are a `tm`; text, its length and the form are as the functions want them.
    let len = unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&(seconds as libc::time_t), &mut time);
        let form = c"%a %b %e %T %Y UTC".as_ptr();
        libc::strftime(text.as_mut_ptr().cast(), text.len(), form, &time)
    };
    String::from_utf8_lossy(&text[..len]).into_owned()
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
