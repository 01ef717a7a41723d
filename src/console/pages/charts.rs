//! Charts as SVG: bars of days, and shares of a whole. Their numbers stand in tables beneath.

use crate::console::texts::{Texts, UsageTexts, count, short_amount};
use crate::console::views::{NamedUsage, UsageSumView};

/// The place of a day in the chart, and the height of all, in units of the picture.
const DAY_WIDTH: usize = 10;
const HEIGHT: f64 = 100.0;

/// What a chart shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageMeasure {
    Cost,
    Tokens,
    Requests,
}

impl UsageMeasure {
    pub const ALL: [UsageMeasure; 3] = [
        UsageMeasure::Cost,
        UsageMeasure::Tokens,
        UsageMeasure::Requests,
    ];

    pub const fn word(self) -> &'static str {
        match self {
            UsageMeasure::Cost => "cost",
            UsageMeasure::Tokens => "tokens",
            UsageMeasure::Requests => "requests",
        }
    }

    pub fn from_word(word: &str) -> UsageMeasure {
        let known = UsageMeasure::ALL.into_iter();
        let mut known = known.filter(|measure| measure.word() == word);
        known.next().unwrap_or(UsageMeasure::Cost)
    }

    pub const fn label(self, texts: &UsageTexts) -> &'static str {
        match self {
            UsageMeasure::Cost => texts.cost,
            UsageMeasure::Tokens => texts.tokens,
            UsageMeasure::Requests => texts.requests,
        }
    }

    fn value(self, sum: &UsageSumView) -> f64 {
        match self {
            UsageMeasure::Cost => sum.cost.0.to_f64(),
            UsageMeasure::Tokens => sum.tokens() as f64,
            UsageMeasure::Requests => sum.requests as f64,
        }
    }

    fn text(self, sum: &UsageSumView) -> String {
        match self {
            UsageMeasure::Cost => short_amount(sum.cost.0),
            UsageMeasure::Tokens => count(sum.tokens()),
            UsageMeasure::Requests => count(sum.requests),
        }
    }

    /// The width of the bar of one among several, in percent of the largest.
    pub fn share(self, sum: &UsageSumView, all: &[NamedUsage]) -> String {
        let values = all.iter().map(|usage| self.value(&usage.sum));
        let largest = values.fold(0.0, f64::max);
        match largest > 0.0 {
            true => format!("{:.2}", self.value(sum) / largest * 100.0),
            false => "0".to_owned(),
        }
    }
}

/// One bar.
pub struct ChartBar {
    pub x: usize,
    pub y: String,
    pub height: String,
    /// What it says when it is pointed at.
    pub title: String,
}

/// A chart of days.
pub struct DayChart {
    pub width: usize,
    pub bars: Vec<ChartBar>,
    /// The highest value of the scale, and the half of it.
    pub scale: [String; 2],
    /// The first day, one in the middle, and the last one.
    pub days: Vec<String>,
}

impl DayChart {
    pub fn new(days: &[NamedUsage], measure: UsageMeasure, texts: &Texts) -> DayChart {
        let values = days.iter().map(|day| measure.value(&day.sum));
        let least = match measure {
            UsageMeasure::Cost => 0.0,
            UsageMeasure::Tokens | UsageMeasure::Requests => 2.0,
        };
        let highest = round_up(values.fold(least, f64::max));
        let bars = days.iter().enumerate().map(|(at, day)| {
            let height = measure.value(&day.sum) / highest * HEIGHT;
            ChartBar {
                x: at * DAY_WIDTH + 1,
                y: format!("{:.2}", HEIGHT - height),
                height: format!("{height:.2}"),
                title: format!("{}: {}", texts.date(&day.name), measure.text(&day.sum)),
            }
        });
        let shown = [0, days.len() / 2, days.len().saturating_sub(1)];
        let mut shown: Vec<String> = shown
            .into_iter()
            .filter_map(|at| days.get(at).map(|day| texts.date(&day.name)))
            .collect();
        shown.dedup();
        DayChart {
            width: days.len() * DAY_WIDTH,
            bars: bars.collect(),
            scale: [label(highest), label(highest / 2.0)],
            days: shown,
        }
    }
}

/// The end of a scale for a value: 1, 2 or 4 with as many zeros as it takes.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powi(value.log10().floor() as i32);
    let steps = [1.0, 2.0, 4.0, 10.0].map(|step| step * power);
    let found = steps.into_iter().find(|step| value <= *step);
    found.unwrap_or(steps[3])
}

/// A value of a scale, which has few digits.
fn label(value: f64) -> String {
    if value >= 1.0 && value.fract() == 0.0 {
        return count(value as u64);
    }
    let decimals = usize::try_from(2 - value.log10().floor() as i32).unwrap_or_default();
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::texts::{CHINESE, ENGLISH};
    use crate::model::Money;
    use crate::store::UsageSum;

    fn day(name: &str, cost: &str, requests: u64) -> NamedUsage {
        let sum = UsageSum {
            requests,
            cost: Money::parse(cost).expect("an amount"),
            ..UsageSum::default()
        };
        NamedUsage {
            name: name.to_owned(),
            sum: sum.into(),
        }
    }

    #[test]
    fn bars_fit_their_scale() {
        let days = [
            day("2026-11-16", "0.3", 3),
            day("2026-11-17", "0", 0),
            day("2026-11-18", "0.05", 1),
        ];
        let chart = DayChart::new(&days, UsageMeasure::Cost, &ENGLISH);
        assert_eq!(chart.scale, ["0.4", "0.2"]);
        let heights: Vec<&str> = chart.bars.iter().map(|bar| &*bar.height).collect();
        assert_eq!(heights, ["75.00", "0.00", "12.50"]);
        assert_eq!(chart.bars[0].y, "25.00");
        assert_eq!(chart.bars[2].title, "18 Nov 2026: 0.05");
        assert_eq!(chart.days, ["16 Nov 2026", "17 Nov 2026", "18 Nov 2026"]);
        let requests = DayChart::new(&days, UsageMeasure::Requests, &ENGLISH);
        assert_eq!(requests.scale, ["4", "2"]);
        assert_eq!(UsageMeasure::Cost.share(&days[2].sum, &days), "16.67");
    }

    #[test]
    fn a_chart_of_nothing_is_one() {
        let chart = DayChart::new(&[], UsageMeasure::Cost, &ENGLISH);
        assert_eq!((chart.width, chart.bars.len()), (0, 0));
        let chart = DayChart::new(&[day("2026-11-18", "0", 0)], UsageMeasure::Tokens, &CHINESE);
        assert_eq!(chart.scale, ["2", "1"]);
        assert_eq!(chart.days, ["2026年11月18日"]);
    }

    #[test]
    fn scales_end_at_round_numbers() {
        for (value, end, text) in [
            (0.000_012_3, 0.000_02, "0.00002"),
            (0.9, 1.0, "1"),
            (3.0, 4.0, "4"),
            (12_345.0, 20_000.0, "20,000"),
        ] {
            assert!((round_up(value) - end).abs() < end * 1e-9, "{value}");
            assert_eq!(label(round_up(value)), text);
        }
    }
}
