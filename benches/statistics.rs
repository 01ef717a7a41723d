//! The median and the range of some values, and percentiles.

/// Minimum, median and maximum of some values.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    pub minimum: f64,
    pub median: f64,
    pub maximum: f64,
}

impl Summary {
    /// Summarizes the values, of which there must be at least one.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let half = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[half]
        } else {
            f64::midpoint(values[half - 1], values[half])
        };
        Self {
            minimum: values[0],
            median,
            maximum: values[values.len() - 1],
        }
    }

    /// Formats a summary of ratios as `1.07 (1.05–1.10)`.
    pub fn format_ratio(self) -> String {
        format!(
            "{:.2} ({:.2}–{:.2})",
            self.median, self.minimum, self.maximum
        )
    }
}

/// Returns a percentile of sorted values; `None` if there are too few of them for one to lie beyond it.
pub fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    let index = (sorted.len() as f64 * percent / 100.0).ceil() as usize;
    (index < sorted.len()).then(|| sorted[index.max(1) - 1])
}
