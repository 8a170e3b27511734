//! Classes HTML and XML.

use memchr::memchr;

use super::headings::Headed;
use super::severity::{Level, Scan};
use super::units::Unit;
use super::{Class, log};

/// Returns whether a text is HTML or XML: it says so, or most of its lines have tags.
pub fn is_html(trimmed: &str, lines: &[&str]) -> bool {
    let starts = |start: &str| trimmed.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
    if ["<!doctype html", "<html", "<?xml", "<head", "<body"].iter().any(|start| starts(start)) {
        return true;
    }
    let tags = lines.iter().filter(|line| {
        let line = if memchr(b'<', line.as_bytes()).is_some() { line.trim() } else { "" };
        line.starts_with('<')
            && line[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '!')
            && line.contains('>')
    });
    tags.count() * 2 > lines.len() && lines.iter().any(|line| line.contains("</") || line.contains("/>"))
}

/// Elements without text of the page.
const NOISE: [&str; 9] = ["script", "style", "nav", "svg", "noscript", "footer", "head", "iframe", "template"];

/// Classes the units of a page: scripts, styles, navigation and tags without text are noise.
pub fn classes(text: &str, units: &[Unit], scans: &[Scan]) -> Vec<Class> {
    let mut inside: Option<&str> = None;
    let mut classes: Vec<Class> = units
        .iter()
        .zip(scans)
        .map(|(unit, scan)| {
            let source = unit.of(text);
            let (was_inside, is_title) = (inside.is_some(), has_tag(source, &["title", "h1", "h2", "h3", "h4"]));
            inside = after(source, inside);
            match () {
                () if is_title => Class::Header,
                () if was_inside && inside.is_some() => Class::Noise,
                () if text_bytes(source) < 3 => Class::Noise,
                () if inside.is_some() && text_bytes(source) < 20 => Class::Noise,
                () if scan.level >= Level::Strong => Class::Error,
                () => Class::Plain,
            }
        })
        .collect();
    log::edges(&mut classes, (1, 1));
    classes
}

/// Returns the tables of a page: the units that name the columns, and those below up to the end of the table or the next names. O(n).
pub fn tables(text: &str, units: &[Unit]) -> Vec<Headed> {
    let mut tables: Vec<Headed> = Vec::new();
    let mut is_open = false;
    for (unit, of) in units.iter().enumerate() {
        let source = of.of(text);
        let names_columns = has_tag(source, &["th"]);
        match tables.last_mut().filter(|_| is_open) {
            Some(table) if names_columns && table.heading.end == unit => {
                (table.heading.end, table.rows) = (unit + 1, unit + 1..unit + 1);
            }
            Some(table) if !names_columns => table.rows.end = unit + 1,
            _ if names_columns => tables.push(Headed { heading: unit..unit + 1, rows: unit + 1..unit + 1 }),
            _ => {}
        }
        is_open = (is_open || names_columns) && !source.contains("</table");
    }
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn tag_name(tag: &str) -> &str {
    &tag[..tag.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(tag.len())]
}

fn has_tag(source: &str, names: &[&str]) -> bool {
    source.match_indices('<').any(|(at, _)| {
        let name = tag_name(&source[at + 1..]);
        names.iter().any(|known| name.eq_ignore_ascii_case(known))
    })
}

/// Returns the element of [`NOISE`] that is open behind `source`.
fn after<'n>(source: &str, mut inside: Option<&'n str>) -> Option<&'n str> {
    for (at, _) in source.match_indices('<') {
        let tag = &source[at + 1..];
        if let Some(name) = inside {
            let closes = tag.strip_prefix('/').is_some_and(|tag| tag_name(tag).eq_ignore_ascii_case(name));
            inside = inside.filter(|_| !closes);
        } else {
            let name = tag_name(tag);
            let is_closed = tag.find('>').is_some_and(|close| tag[..close].ends_with('/'));
            inside = NOISE.into_iter().find(|known| known.eq_ignore_ascii_case(name)).filter(|_| !is_closed);
        }
    }
    inside
}

/// Returns the number of bytes outside of tags, without spaces.
fn text_bytes(source: &str) -> usize {
    let (mut in_tag, mut bytes) = (!source.contains('<') && source.contains('>') && source.contains("=\""), 0);
    for byte in source.bytes() {
        match byte {
            b'<' => in_tag = true,
            b'>' => in_tag = false,
            byte => bytes += usize::from(!in_tag && !byte.is_ascii_whitespace()),
        }
    }
    bytes
}
