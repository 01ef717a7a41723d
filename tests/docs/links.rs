//! Links between documents lead somewhere, and every page can be found.

use std::path::Path;

use regex::Regex;

use crate::{files_in, pages, read, root};

/// Every relative link of every page names a file that exists, and a heading in it.
pub fn check() {
    let pattern = Regex::new(r"\]\(([^)\s]+)\)").expect("a pattern");
    let mut broken = Vec::new();
    for page in pages() {
        let text = read(&page);
        for found in pattern.captures_iter(&text) {
            let link = &found[1];
            if link.starts_with("https://") {
                continue;
            }
            if let Err(reason) = follow(&page, link) {
                broken.push(format!("{page}: {link}: {reason}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

fn follow(page: &str, link: &str) -> Result<(), String> {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let target = match file {
        "" => page.to_owned(),
        file => folder.join(file).to_str().expect("text").to_owned(),
    };
    // The site that is made of docs/ has nothing else.
    if page.starts_with("docs/") && target.contains("..") {
        return Err("leads out of docs/".to_owned());
    }
    if !root().join(&target).exists() {
        return Err("there is no such file".to_owned());
    }
    let is_known = anchor.is_empty() || anchors(&read(&target)).contains(&anchor.to_owned());
    is_known
        .then_some(())
        .ok_or("there is no such heading".to_owned())
}

/// The anchors that the headings of a page have on GitHub and in mdBook.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let headings = headings.map(|line| line.trim_start_matches('#').trim());
    headings
        .map(|heading| {
            let kept = heading
                .chars()
                .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
            let lower = kept.flat_map(char::to_lowercase);
            lower
                .map(|letter| if letter == ' ' { '-' } else { letter })
                .collect()
        })
        .collect()
}

/// The index and the table of contents name every page of docs/.
pub fn check_index() {
    for page in files_in("docs", "md") {
        let name = page.trim_start_matches("docs/");
        let link = format!("]({name})");
        for list in ["docs/README.md", "docs/SUMMARY.md"] {
            let lists_itself = page == list || name == "SUMMARY.md";
            let is_listed = lists_itself || read(list).contains(&link);
            assert!(is_listed, "{list} does not name {name}");
        }
        let in_readme = read("README.md").contains(&format!("](docs/{name}"));
        let is_list = matches!(name, "README.md" | "SUMMARY.md");
        assert!(in_readme || is_list, "README.md does not name {page}");
    }
}
