//! The scorecard as one page without anything from elsewhere, with the pairs as a picture.

use std::fmt::Write as _;

use super::Scorecard;
use super::grouping::{entries, two_bodies};
use crate::score::wire::WireFormat;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem;color:#1c2430}\
h1{font-size:1.6rem}h2{font-size:1.15rem;margin-top:2rem}details{border-top:1px solid #d8dee6;padding:.5rem 0}\
summary{cursor:pointer}summary small{color:#5b6776}.two{display:grid;grid-template-columns:1fr 1fr;gap:1rem}\
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f4f6f9;padding:.6rem;font-size:12px;max-height:24rem;overflow:auto}\
svg{max-width:100%;height:auto}";

impl Scorecard {
    pub fn html(&self) -> String {
        let total = self.total();
        let title = format!(
            "{}: {:.1} % of {} runs lose nothing",
            self.gateway,
            total.percent(),
            total.all
        );
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style></head>\
             <body>\n<h1>{title}</h1>\n<p>Every client format × every upstream format, JSON and streams, {} scenarios \
             each. A run counts if nothing is lost, changed or added.</p>\n{}\n",
            self.scenarios.len(),
            self.picture(),
            title = escape(&title),
        );
        let lost = entries(self, |run| &run.verdict.losses);
        page.push_str("<h2>Lost</h2>\n");
        if lost.is_empty() {
            page.push_str("<p>Nothing.</p>\n");
        }
        for entry in &lost {
            let _ = write!(
                page,
                "<details><summary><b>{}</b>: {} <small>{}</small></summary>",
                escape(entry.scenario),
                escape(entry.loss),
                escape(&entry.places.join("; ")),
            );
            if let Some(bodies) = entry.bodies {
                page.push_str("<div class=\"two\">");
                for (title, body) in two_bodies(entry.loss, bodies) {
                    let _ = write!(page, "<div>{title}<pre>{}</pre></div>", escape(body));
                }
                page.push_str("</div>");
            }
            page.push_str("</details>\n");
        }
        page.push_str("<h2>Differences of opinion, not counted</h2>\n<ul>\n");
        for entry in &entries(self, |run| &run.verdict.opinions) {
            let places = escape(&entry.places.join("; "));
            let _ = writeln!(
                page,
                "<li><b>{}</b>: {} ({places})</li>",
                escape(entry.scenario),
                escape(entry.loss)
            );
        }
        page.push_str("</ul>\n<h2>Scenarios</h2>\n<ul>\n");
        for (name, about) in &self.scenarios {
            let _ = writeln!(page, "<li><b>{}</b>: {}</li>", escape(name), escape(about));
        }
        page.push_str("</ul>\n</body></html>\n");
        page
    }

    /// The pairs as a picture: clients below each other, upstreams beside each other.
    fn picture(&self) -> String {
        const WIDTH: usize = 150;
        const HEIGHT: usize = 64;
        let mut svg = format!(
            "<svg viewBox=\"0 0 {} {}\" width=\"{}\" role=\"img\" aria-label=\"clients by upstreams\" \
             font-family=\"system-ui,sans-serif\">\n",
            110 + 4 * WIDTH,
            40 + 4 * HEIGHT,
            110 + 4 * WIDTH,
        );
        for (at, format) in WireFormat::ALL.into_iter().enumerate() {
            let (x, y) = (
                110 + at * WIDTH + WIDTH / 2,
                40 + at * HEIGHT + HEIGHT / 2 + 5,
            );
            let name = format.name();
            let _ = writeln!(
                svg,
                "<text x=\"{x}\" y=\"26\" text-anchor=\"middle\" font-size=\"15\">→ {name}</text>"
            );
            let _ = writeln!(
                svg,
                "<text x=\"100\" y=\"{y}\" text-anchor=\"end\" font-size=\"15\">{name}</text>"
            );
        }
        for (row, client) in WireFormat::ALL.into_iter().enumerate() {
            for (column, upstream) in WireFormat::ALL.into_iter().enumerate() {
                let cell = self.cell(client, upstream);
                let (x, y) = (110 + column * WIDTH, 40 + row * HEIGHT);
                let (width, height) = (WIDTH - 4, HEIGHT - 4);
                let colour = colour(cell.map(super::ScoreCount::percent));
                let _ = write!(
                    svg,
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"{colour}\"/>"
                );
                let (big, small) = match cell {
                    Some(count) => (
                        format!("{} %", count.whole_percent()),
                        format!("{} of {}", count.whole, count.all),
                    ),
                    None => ("–".to_owned(), "not offered".to_owned()),
                };
                let middle = x + width / 2;
                let _ = writeln!(
                    svg,
                    "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\" font-size=\"19\" font-weight=\"600\">{big}</text>\
                     <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\" font-size=\"12\">{small}</text>",
                    y + 30,
                    y + 48,
                );
            }
        }
        svg + "</svg>"
    }
}

/// From red to green; most gateways are above one half.
fn colour(percent: Option<f64>) -> String {
    match percent {
        None => "#e3e7ec".to_owned(),
        Some(percent) => format!(
            "hsl({:.0} 62% 72%)",
            ((percent - 40.0) * 2.2).clamp(0.0, 132.0)
        ),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
