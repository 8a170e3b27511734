//! Classes unified diffs.
//!
//! The same change in many hunks is said by the first few, and so are like lines within one; what differs is what one looks
//! for: a hunk with another change, a line of another shape, a number far from the others, a deleted file.

use std::collections::HashMap;
use std::ops::Range;

use super::records::Named;
use super::units::{SHORT_BYTES, Unit};
use super::{Class, odd};
use crate::tokens::BuildMixedHasher;

/// Hunks with the same changes that are a change of many files, and those of them that show it.
const MANY: usize = 8;
const SHOWN: usize = 2;
/// A header that at most one file in so many has is rare, or [`FEW`] of [`MANY`] files and more.
const RARE_IN: usize = 50;
const FEW: usize = 3;

/// Returns whether the sampled lines come from a diff.
pub fn is_diff(lines: &[&str]) -> bool {
    let has = |start: &str| lines.iter().any(|line| line.starts_with(start));
    let hunks = lines.iter().filter(|line| is_hunk(line)).count();
    let changes = lines.iter().filter(|line| line.starts_with(['+', '-', ' '])).count();
    (has("diff --git ") || has("--- ") && has("+++ ")) && hunks > 0 && changes * 2 > lines.len()
}

fn is_hunk(line: &str) -> bool {
    line.starts_with("@@ -") || line.starts_with("@@@ ")
}

/// A file of a diff.
struct File {
    header: usize,
    /// The line that names it as it becomes, the nearest to its hunks; else its header.
    name: usize,
    /// Lines that say what becomes of the file: of modes, names, binary contents.
    fates: Vec<usize>,
    /// Their units, without the headers.
    hunks: Vec<Range<usize>>,
}

/// What a line of a diff opens; each ends with the next of its kind or of one before.
#[derive(Clone, Copy)]
enum Opens {
    Commit,
    File,
    Hunk,
}

/// Classes the units of a diff: headers of files and hunks, changed lines, context. Also returns the commits, files and hunks, each
/// with the line that names it: a change under another one's name would be a change of that.
pub fn classes(text: &str, units: &[Unit]) -> (Vec<Class>, Vec<Named>) {
    let mut class = Class::Plain;
    let mut commits = Vec::new();
    let mut in_hunk = false;
    let mut files: Vec<File> = Vec::new();
    let mut classes: Vec<Class> = Vec::with_capacity(units.len());
    for (i, unit) in units.iter().enumerate() {
        let line = unit.line(text);
        if unit.opens {
            // Without "diff --git" a file begins with two lines that look like changes.
            let next = || units.get(i + 1).is_some_and(|unit| unit.line(text).starts_with("+++ "));
            let is_name = line.starts_with("--- ") && next();
            in_hunk = is_hunk(line) || (in_hunk && !line.starts_with("diff ") && !is_name);
            class = match line {
                _ if is_hunk(line) || line.starts_with("diff ") => Class::Header,
                _ if !in_hunk && (line.starts_with("--- ") || line.starts_with("+++ ")) => Class::Header,
                _ if line.starts_with("--- a/") || line.starts_with("+++ b/") => Class::Header,
                _ if line.starts_with("index ") => Class::Noise,
                _ if line.starts_with(['+', '-']) && line.trim_end().len() > 1 => Class::Outlier,
                _ if line.trim().is_empty() || matches!(line, "+" | "-") => Class::Noise,
                _ => Class::Plain,
            };
            let is_named = files.last().is_some_and(|file| file.hunks.is_empty());
            if line.starts_with("diff ") || (class == Class::Header && line.starts_with("--- ") && !is_named) {
                files.push(File { header: i, name: i, fates: Vec::new(), hunks: Vec::new() });
            }
            if line.starts_with("commit ") {
                commits.push(i);
            }
            match files.last_mut() {
                Some(file) if is_hunk(line) => file.hunks.push(i + 1..i + 1),
                Some(file) if !in_hunk && line.starts_with("+++ ") && !line.starts_with("+++ /dev/null") => {
                    file.name = i;
                }
                Some(file) if !in_hunk && class == Class::Plain => file.fates.push(i),
                Some(File { hunks, .. }) if class == Class::Outlier => {
                    if let Some(hunk) = hunks.last_mut() {
                        hunk.end = i + 1;
                    }
                }
                _ => {}
            }
        }
        classes.push(class);
    }
    compare(text, units, &files, &mut classes);
    (classes, named(text, units, &commits, &files))
}

/// Returns the commits, files and hunks of a diff, those within others behind them.
fn named(text: &str, units: &[Unit], commits: &[usize], files: &[File]) -> Vec<Named> {
    let of_file = |file: &File| {
        let hunks = file.hunks.iter().map(|hunk| (hunk.start - 1, Opens::Hunk));
        [(file.header, Opens::File), (file.name, Opens::File)].into_iter().chain(hunks).collect::<Vec<_>>()
    };
    let commits = commits.iter().map(|&at| (at, Opens::Commit));
    let mut opening: Vec<(usize, Opens)> = files.iter().flat_map(of_file).chain(commits).collect();
    opening.sort_unstable_by_key(|(at, _)| *at);
    opening.dedup_by_key(|(at, _)| *at);
    // Shorter ones are not cut.
    if opening.len() * SHORT_BYTES as usize > text.len() {
        return Vec::new();
    }
    let mut ends = [units.len(); 3];
    let mut named: Vec<Named> = Vec::with_capacity(opening.len());
    for (at, opens) in opening.into_iter().rev() {
        named.push(Named { units: at..ends[opens as usize], named_by: at, titled: None });
        ends[opens as usize..].fill(at);
    }
    named.reverse();
    named
}

/// Marks what many hunks, files or lines of a hunk have in common, and what few have.
fn compare(text: &str, units: &[Unit], files: &[File], classes: &mut [Class]) {
    let changed = |hunk: &Range<usize>| hunk.clone().filter(|&i| units[i].opens && classes[i] == Class::Outlier);
    let forms = |hunk: &Range<usize>| {
        changed(hunk).fold([0, 0], |[form, shape], i| {
            let line = units[i].line(text);
            let [of_line, shape_of_line] = odd::forms(line);
            let sign = u64::from(line.as_bytes()[0]);
            [(form ^ of_line).rotate_left(7), (shape ^ shape_of_line ^ sign).rotate_left(7)]
        })
    };
    let hunks: Vec<(usize, &Range<usize>, [u64; 2])> = (files.iter().enumerate())
        .flat_map(|(nth, file)| file.hunks.iter().map(move |hunk| (nth, hunk)))
        .map(|(nth, hunk)| (nth, hunk, forms(hunk)))
        .collect();
    let mut counts: HashMap<u64, usize, BuildMixedHasher> = HashMap::default();
    for form in hunks.iter().flat_map(|(.., forms)| forms) {
        *counts.entry(*form).or_default() += 1;
    }
    // Changes of the same form but with other words repeat only if most are so.
    let class_of = |[form, shape]: [u64; 2]| match (counts[&form], counts[&shape]) {
        (same, _) if same >= MANY => Some((form, Class::Repeat)),
        (_, alike) if alike >= MANY.max(hunks.len() / 2) => Some((shape, Class::Plain)),
        _ => None,
    };
    let mut shown: HashMap<u64, usize, BuildMixedHasher> = HashMap::default();
    // Changed lines that are alike; of other lines nothing is compared.
    let mut alike: Vec<Unit> = units.iter().map(|unit| Unit { opens: false, ..*unit }).collect();
    let mut repeats = Vec::new();
    let mut is_other: Vec<bool> = files.iter().map(|file| file.hunks.is_empty()).collect();
    for &(file, hunk, forms) in &hunks {
        let like = class_of(forms);
        if let Some((form, class)) = like {
            let nth = shown.entry(form).or_default();
            *nth += 1;
            for i in changed(hunk) {
                alike[i] = units[i];
                if *nth > SHOWN {
                    repeats.push((i, class));
                }
            }
            if *nth > SHOWN {
                continue;
            }
        }
        // A long hunk has a pattern of its own: a new file of settings or rows.
        let own = odd::pattern_of(changed(hunk).map(|i| (i, units[i].said(text))));
        is_other[file] |= like.is_none() && own.as_ref().is_none_or(|own| !own.odd.is_empty());
        let usual = own.into_iter().flat_map(|own| own.usual);
        repeats.extend(usual.skip(SHOWN).map(|i| (i, Class::Plain)));
    }
    for (line, class) in repeats {
        let parts = units[line + 1..].iter().take_while(|unit| !unit.opens).count();
        classes[line..=line + parts].fill(class);
    }
    for i in odd::pattern(text, &alike).map_or_else(Vec::new, |pattern| pattern.odd) {
        classes[i] = Class::Outlier;
        is_other[files.partition_point(|file| file.header < i) - 1] = true;
    }
    if files.len() < MANY {
        return;
    }
    let is_rare = |count: usize| count <= (files.len() / RARE_IN).max(FEW);
    let others = || files.iter().zip(&is_other).filter(|(_, is_other)| **is_other).map(|(file, _)| file.name);
    for header in others().filter(|_| is_rare(others().count())) {
        classes[header] = Class::Outlier;
    }
    // "deleted file mode 100644", "new mode 100755", "Binary files a/key and b/key differ".
    let fate = |i: usize| {
        let mut words = units[i].line(text).split_ascii_whitespace();
        (words.next(), words.next())
    };
    let mut fates: HashMap<_, usize, BuildMixedHasher> = HashMap::default();
    for &i in files.iter().flat_map(|file| &file.fates) {
        *fates.entry(fate(i)).or_default() += 1;
    }
    for &i in files.iter().flat_map(|file| &file.fates).filter(|&&i| is_rare(fates[&fate(i)])) {
        classes[i] = Class::Outlier;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Segments;

    /// Returns the pieces that stand out in a diff of 120 files that `change` writes, one with `odd` in its place.
    fn outstanding(change: impl Fn(usize) -> String, odd: &str) -> String {
        let file = |i: usize| match i {
            61 if odd.starts_with("diff") => odd.to_owned(),
            _ => format!(
                "diff --git a/src/f{i}.py b/src/f{i}.py\nindex 63f0cd0..e873a00 100644\n--- a/src/f{i}.py\n+++ b/src/f{i}.py\n\
                 @@ -{i},5 +{i},5 @@ def f{i}(msg):\n     if msg:\n{}\n     return {i}\n",
                if i == 61 { odd.to_owned() } else { change(i) },
            ),
        };
        let text: String = (0..120).map(file).collect();
        let shown = |text: &str| {
            let segments = Segments::of(text);
            let pieces = segments.pieces().iter().filter(|piece| piece.class.stands_out());
            pieces.map(|piece| &text[piece.range()]).collect::<String>()
        };
        // Without the lines of git only two lines name a file.
        if !odd.starts_with("diff") {
            let plain = text.lines().filter(|line| !line.starts_with(['d', 'i']));
            let plain: Vec<String> = plain.map(|line| line.replace(" a/", " old/").replace(" b/", " new/")).collect();
            assert!(shown(&plain.join("\n")).contains(odd.lines().last().unwrap_or_default()));
        }
        shown(&text)
    }

    #[test]
    fn among_files_with_the_same_change_the_one_with_another_stands_out() {
        const WORDS: [&str; 7] = ["user", "order", "cart", "mail", "queue", "cache", "token"];
        let same = |_| "-    warn(msg, 30)\n+    warning(msg, 30)".to_owned();
        let alike = |i: usize| {
            let name = format!("{}_{}", WORDS[i % 7], WORDS[i / 7 % 7]);
            format!("-    warn({name}, {i})\n+    warning({name}, {i})")
        };
        let (binary, deleted) =
            ("diff --git a/key.pem b/key.pem\nnew file mode 100644\n", "diff --git a/log.py b/log.py\n");
        let cases = [
            ("-    warn(msg, 30)\n+    warning(msg, 99999)", "+    warning(msg, 99999)"),
            ("-    check(user)\n+    # check(user)", "+    # check(user)"),
            ("-    warn(msg, 30)\n+    warning(msg, 30)\n+    send(secret)", "+    send(secret)"),
            (&format!("{binary}Binary files /dev/null and b/key.pem differ\n"), "Binary files"),
            (
                &format!("{deleted}deleted file mode 100644\n--- a/log.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"),
                "deleted file",
            ),
            ("diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n", "new mode 100755"),
        ];
        for (odd, part) in cases {
            for outstanding in [outstanding(same, odd), outstanding(alike, odd)] {
                assert!(outstanding.contains(part), "{outstanding}");
                assert!(odd.starts_with("diff") || outstanding.contains("+++ b/src/f61.py"), "{outstanding}");
                assert!(outstanding.lines().count() < 16, "{outstanding}");
            }
        }
    }

    #[test]
    fn files_with_changes_of_their_own_stand_out() {
        let line = |k: usize| format!("    b{}: c\n+", "(a)".repeat(k));
        let lines = |i: usize| (0..=i % 41).map(line).collect::<String>();
        let change = |i: usize| format!("-    old{}\n+{}", "(a)".repeat(1 + i % 30), lines(i));
        assert!(outstanding(change, "-x = 1\n+x = 2").lines().count() > 1000);
    }

    #[test]
    fn in_a_long_hunk_and_among_hunks_of_one_file_the_odd_lines_stand_out() {
        let shown = |text: &str| -> String {
            let segments = Segments::of(text);
            let pieces = segments.pieces().iter().filter(|piece| piece.class.stands_out());
            pieces.map(|piece| &text[piece.range()]).collect()
        };
        let header = "diff --git a/x.json b/x.json\n--- a/x.json\n+++ b/x.json\n";
        let setting = |i: usize| format!("+    \"mail_{i}\": \"v{}\",\n", i % 9);
        for odd in
            ["+    \"admin_password\": null,\n", "-    \"mail_40\": \"v4\",\n", "+    # FIXME disable the check\n"]
        {
            let lines = (0..60).map(|i| if i == 40 { odd.to_owned() } else { setting(i) });
            let shown = shown(&format!("{header}@@ -1,3 +1,60 @@\n{}", lines.collect::<String>()));
            assert!(shown.contains(odd) && shown.lines().count() < 8, "{shown}");
        }
        let odd = "+    os.system(x)\n";
        let hunk = |i: usize| {
            let new = if i == 30 { odd } else { "+    log.warning(x)\n" };
            format!("@@ -{i},3 +{i},3 @@ def f{i}():\n     x = f{i}()\n-    log.warn(x)\n{new}")
        };
        let shown = shown(&(0..60).map(hunk).fold(header.to_owned(), |text, hunk| text + &hunk));
        assert!(shown.contains(odd) && shown.lines().count() < 12, "{shown}");
    }
}
