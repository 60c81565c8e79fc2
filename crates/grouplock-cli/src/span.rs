//! Lengths of time on the command line and in messages.

use std::time::Duration;

/// Reads a length of time: a number of seconds, or a number with a unit: `ms`, `s`, `m`, `h`, `d`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let expected =
        "expected a number of seconds, or a number with a unit, such as 0.5, 90s, 500ms, 2m, 1h";
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let scale = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return Err(expected.to_owned()),
    };
    // Only digits and a point: `f64` would also read `inf` and `1e9`, which nobody means.
    if !number.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return Err(expected.to_owned());
    }
    let number: f64 = number.parse().map_err(|_| expected.to_owned())?;
    Duration::try_from_secs_f64(number * scale).map_err(|_| format!("it is too long; {expected}"))
}

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
    fn units_are_those_of_sleep_and_timeout() {
        for (text, milliseconds) in [
            ("5", 5_000),
            ("0.5", 500),
            ("250ms", 250),
            ("5s", 5_000),
            ("2m", 120_000),
            ("1.5h", 5_400_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        assert_eq!(parse("1d"), Ok(Duration::from_secs(86_400)));
        assert_eq!(parse("0"), Ok(Duration::ZERO));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "s", "-1", "1e9", "inf", "nan", "5 s", "5x", "1.2.3", "1h30", "١"] {
            assert!(parse(text).is_err(), "{text}");
        }
        let message = parse(&"9".repeat(40)).unwrap_err();
        assert!(message.contains("too long"), "{message}");
    }

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
