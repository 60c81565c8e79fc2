//! Durations as text: one syntax for policies, places and the program.

use std::time::Duration;

use crate::error::RoomError;

/// The units, the largest first, in nanoseconds.
const UNITS: [(&str, u128); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Reads a duration: seconds, or numbers with units, the largest unit first.
///
/// ```
/// use std::time::Duration;
/// use grouplock_room::parse_duration;
///
/// assert_eq!(parse_duration("90")?, Duration::from_secs(90));
/// assert_eq!(parse_duration("1.5s")?, Duration::from_millis(1500));
/// assert_eq!(parse_duration("2h30m")?, Duration::from_secs(9000));
/// assert!(parse_duration("30m2h").is_err() && parse_duration("2h30").is_err());
/// # Ok::<(), grouplock_room::RoomError>(())
/// ```
///
/// # Errors
/// [`RoomError::BadOption`] with the expected syntax.
pub fn parse_duration(text: &str) -> Result<Duration, RoomError> {
    read(text).map_err(|reason| RoomError::BadOption {
        what: "a length of time",
        value: format!("`{text}`"),
        expected: format!(
            "{reason}expected seconds such as 90 or 0.5, or numbers with the units d, h, m, s, ms, us or ns, such as \
             500ms, 2m, 1h or 2h30m"
        ),
    })
}

fn read(text: &str) -> Result<Duration, &'static str> {
    let mut sum: u128 = 0;
    let mut units = &UNITS[..];
    let mut rest = text;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(digits);
        let end = behind.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        // A number without a unit means seconds, but only if it is the whole text.
        let unit = if unit.is_empty() && rest.len() == text.len() { "s" } else { unit };
        let at = units.iter().position(|(name, _)| *name == unit).ok_or("")?;
        sum = sum.saturating_add(times(number, units[at].1).ok_or("")?);
        units = &units[at + 1..];
        rest = behind;
        if rest.is_empty() {
            break;
        }
    }
    let (seconds, nanos) = (sum / 1_000_000_000, sum % 1_000_000_000);
    let seconds = u64::try_from(seconds).map_err(|_| "it is too long; ")?;
    Ok(Duration::new(seconds, nanos as u32))
}

/// A decimal number times `unit`, rounded down.
fn times(number: &str, unit: u128) -> Option<u128> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && part.is_empty() || part.contains('.') {
        return None;
    }
    // A number that does not fit into a u128 is too long in every unit.
    let whole = if whole.is_empty() { 0 } else { whole.parse().unwrap_or(u128::MAX) };
    // Later digits are less than a nanosecond.
    let part = part.get(..15).unwrap_or(part);
    let scale = 10_u128.pow(part.len() as u32);
    let part: u128 = if part.is_empty() { 0 } else { part.parse().ok()? };
    Some(whole.saturating_mul(unit).saturating_add(part * unit / scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_sleep_and_timeout_and_go_together() {
        for (text, milliseconds) in [
            ("5", 5_000),
            ("0", 0),
            ("0.5", 500),
            (".5", 500),
            ("250ms", 250),
            ("5s", 5_000),
            ("2m", 120_000),
            ("1.5h", 5_400_000),
            ("1d", 86_400_000),
            ("2h30m", 9_000_000),
            ("1d1s500ms", 86_401_500),
        ] {
            assert_eq!(
                parse_duration(text).unwrap(),
                Duration::from_millis(milliseconds),
                "{text}"
            );
        }
        assert_eq!(parse_duration("1s1ns").unwrap(), Duration::new(1, 1));
    }

    #[test]
    fn nonsense_is_refused_with_what_was_expected() {
        for text in [
            "", "s", ".", "-1", "1e9", "inf", "nan", "5 s", "5x", "1.2.3", "1h30", "30m2h", "1h1h",
            "5S", "١",
        ] {
            let message = parse_duration(text).unwrap_err().to_string();
            assert!(
                message.contains(&format!("`{text}`")) && message.contains("2h30m"),
                "{message}"
            );
        }
        let message = parse_duration(&"9".repeat(60)).unwrap_err().to_string();
        assert!(message.contains("too long"), "{message}");
    }
}
