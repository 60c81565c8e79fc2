//! Lengths of time in messages.

use std::time::Duration;

/// Writes a length of time as people say it: `0.3 s`, `12 s`, `4 min`, `2 h 5 min`, `3 d 4 h`.
pub(crate) fn show(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_people_say_them() {
        for (seconds, text) in [
            (0, "0.0 s"),
            (9, "9.0 s"),
            (75, "75 s"),
            (240, "4 min"),
            (7_500, "2 h 5 min"),
            (273_600, "3 d 4 h"),
        ] {
            assert_eq!(show(Duration::from_secs(seconds)), text);
        }
    }
}
