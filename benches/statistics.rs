//! The median and the range of some values, and percentiles.

#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub least: f64,
    pub median: f64,
    pub most: f64,
}

impl Spread {
    /// Of at least one value.
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
            least: values[0],
            median,
            most: values[values.len() - 1],
        }
    }

    pub fn ratio(self) -> String {
        format!("{:.2} ({:.2}–{:.2})", self.median, self.least, self.most)
    }
}

/// So many of a hundred are at most this; `None`: there are too few values for one to lie beyond it.
pub fn percentile(sorted: &[f64], hundredth: f64) -> Option<f64> {
    let index = (sorted.len() as f64 * hundredth / 100.0).ceil() as usize;
    (index < sorted.len()).then(|| sorted[index.max(1) - 1])
}
