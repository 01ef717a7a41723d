//! Days for people, as each language writes them.

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The year, the month and the day of `2026-11-08`.
fn parts(day: &str) -> Option<(&str, usize, u8)> {
    let mut parts = day.splitn(3, '-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    Some((year, month.parse().ok()?, day.parse().ok()?))
}

/// Such as `8 Nov 2026`; what is no day stays.
pub fn english(day: &str) -> String {
    let written = parts(day).and_then(|(year, month, number)| {
        let month = MONTHS.get(month.checked_sub(1)?)?;
        Some(format!("{number} {month} {year}"))
    });
    written.unwrap_or_else(|| day.to_owned())
}

/// Such as `2026年11月8日`.
pub fn chinese(day: &str) -> String {
    let written = parts(day).map(|(year, month, number)| format!("{year}年{month}月{number}日"));
    written.unwrap_or_else(|| day.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_written_as_people_do() {
        assert_eq!(english("2026-11-08"), "8 Nov 2026");
        assert_eq!(chinese("2026-11-08"), "2026年11月8日");
        for odd in ["", "today", "2026-13-01", "2026-00-01"] {
            assert_eq!(english(odd), odd);
        }
        assert_eq!(chinese("today"), "today");
    }
}
