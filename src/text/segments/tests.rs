//! What holds for every text, and what each kind is expected to show.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::Value;

use super::*;
use crate::text::elision;

/// As the integration tests: the same cases in every run.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    let rng_seed = if default.rng_seed == RngSeed::Random { RngSeed::Fixed(1) } else { default.rng_seed };
    ProptestConfig { rng_seed, failure_persistence: None, ..default }
}

#[test]
fn a_tuple_of_a_long_line_that_differs_stands_out() {
    let tuple = |i: usize| format!("({i}, 'n{}', '{}')", i * 37 % 991, if i == 61 { "superadmin" } else { "viewer" });
    let tuples: Vec<String> = (0..100).map(tuple).collect();
    for between in [",", ", "] {
        let text = format!("INSERT INTO u (id, name, role) VALUES {};", tuples.join(between));
        assert_eq!(class_of(&text, "superadmin"), Class::Outlier);
        assert_ne!(class_of(&text, "'n37'"), Class::Outlier);
    }
}

/// Lines of every kind, the marks of earlier calls, and what has no kind at all.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ -~]{0,90}",
        2 => "\\PC{0,400}",
        1 => "[a-z ,.]{200,900}",
        1 => "[\\u{4e00}-\\u{4e80}，。！]{0,300}",
        1 => "(\\\\n|\\\\u00e9|\\\\ud83d\\\\ude00|a|\"|\\\\\\\\){0,200}",
        1 => Just("Traceback (most recent call last):".to_owned()),
        1 => Just("ValueError: bad".to_owned()),
        1 => (0..999u32).prop_map(|n| format!("2026-05-01 INFO worker-{n} processed batch {n} ok")),
        1 => (0..999u32).prop_map(|n| format!("[…{n} lines]")),
        1 => (0..999u32).prop_map(|n| format!("words […{n} characters] words").repeat(9)),
        1 => Just("+changed".to_owned()),
        1 => Just("@@ -1,2 +1,2 @@".to_owned()),
        1 => Just("    def f(self, x):".to_owned()),
        1 => Just("<p>text</p><script>let x = 1;</script>".to_owned()),
        2 => Just(String::new()),
    ]
}

/// Lines that end as lines do.
fn lines() -> impl Strategy<Value = String> {
    vec(line(), 0..60).prop_map(|lines| lines.into_iter().map(|line| line + "\n").collect())
}

fn text() -> impl Strategy<Value = String> {
    let ends = prop_oneof![6 => Just("\n"), 1 => Just("\r\n"), 1 => Just(""), 1 => Just("\r")];
    vec((line(), ends), 0..60).prop_map(|lines| lines.into_iter().map(|(line, end)| line + end).collect())
}

/// JSON source, spaces and escapes as they come.
fn json() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        Just("123456789012345678901234".to_owned()),
        Just("31.10".to_owned()),
        Just("1.50e-7".to_owned()),
        Just("-0.0".to_owned()),
        (0..99i32).prop_map(|n| n.to_string()),
    ];
    let string = prop_oneof![
        6 => "[a-zA-Z0-9 …]{0,20}",
        1 => "[a-z .,]{250,900}",
        2 => "(line of text\\\\n|\\\\u00e9|\\\\ud83d\\\\ude00|\\\\\\\\|\\\\\"|中文。|error: x\\\\n){0,120}",
        1 => Just("… 46 of 60 rows left out …".to_owned()),
        1 => Just("\\u2026 3 of 9 items left out \\u2026".to_owned()),
    ];
    let literal = string.prop_map(|body| format!("\"{body}\""));
    let leaf = prop_oneof![number, literal.clone(), Just("null".to_owned()), Just("true".to_owned())];
    let space = prop_oneof![8 => Just(""), 4 => Just(" "), 2 => Just("\n    "), 1 => Just("\n                                                                                          ")];
    let value = leaf.prop_recursive(5, 200, 40, move |inner| {
        let key = "[a-c…]{0,3}".prop_map(|key| format!("\"{key}\""));
        let array = (vec(inner.clone(), 0..40), space.clone())
            .prop_map(|(values, space)| format!("[{space}{}{space}]", values.join(&format!("{space},{space}"))));
        let object = (vec((key, inner.clone()), 0..20), space.clone()).prop_map(|(members, space)| {
            let members: Vec<String> =
                members.into_iter().map(|(key, value)| format!("{key}:{space}{value}")).collect();
            format!("{{{space}{}{space}}}", members.join(&format!(",{space}")))
        });
        let rows = (inner, 1..60_usize).prop_map(|(value, n)| format!("[{}]", vec![value; n].join(", ")));
        prop_oneof![array, object, rows]
    });
    (value, space_around()).prop_map(|(value, (before, behind))| {
        let value = if value.starts_with(['[', '{']) { value } else { format!("[{value}]") };
        format!("{before}{value}{behind}")
    })
}

fn space_around() -> impl Strategy<Value = (&'static str, &'static str)> {
    prop_oneof![Just(("", "")), Just(("\n ", "\n")), Just(("", "\n\n\n\n"))]
}

/// Which pieces stay: none, few, half, most, all; by a hash of the index.
fn keep(seed: u64) -> impl Fn(usize) -> bool {
    move |i| {
        let hash = (i as u64 + 1).wrapping_mul(seed | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        hash % 100 < [0, 5, 20, 50, 80, 95, 100][(seed % 7) as usize]
    }
}

fn is_mark(source: &str) -> bool {
    source.contains(" left out") || source.contains("[... ") || source.contains("[…")
}

fn check_pieces(text: &str, segments: &Segments) -> Result<(), TestCaseError> {
    let mut end = 0;
    for piece in segments.pieces() {
        prop_assert!(piece.start as usize == end && piece.start < piece.end, "{piece:?} behind {end}");
        prop_assert!(text.is_char_boundary(piece.end as usize));
        end = piece.end as usize;
    }
    prop_assert_eq!(end, text.len());
    prop_assert_eq!(segments.excerpt(text, &|_| true, Marks::at("a/b")), text);
    Ok(())
}

fn check_kept(text: &str, segments: &Segments, seed: u64) -> Result<String, TestCaseError> {
    let keep = keep(seed);
    let out = segments.excerpt(text, &keep, Marks::at("a/\"b"));
    let mut rest = out.as_str();
    for (i, piece) in segments.pieces().iter().enumerate() {
        let source = &text[piece.range()];
        if keep(i) && !is_mark(source) {
            let Some(at) = rest.find(source) else {
                return Err(TestCaseError::fail(format!("{source:?} is not in {rest:?} of {out:?}")));
            };
            rest = &rest[at + source.len()..];
        }
    }
    Ok(out)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn all_pieces_make_the_text(text in prop_oneof![text(), any::<String>()]) {
        let segments = Segments::of(&text);
        check_pieces(&text, &segments)?;
        prop_assert!(segments.pieces().len() <= text.len() / 40 + 8);
    }

    #[test]
    fn what_stays_is_shown_in_order(text in text(), seed: u64) {
        check_kept(&text, &Segments::of(&text), seed)?;
    }

    #[test]
    fn shortening_again_adds_no_second_mark(text in lines(), seed: u64, again: u64) {
        let once = Segments::of(&text).excerpt(&text, &keep(seed), Marks::default());
        let twice = Segments::of(&once).excerpt(&once, &keep(again), Marks::default());
        let is_mark = |line: &str| elision::read_gap(line).is_some();
        let chain = |text: &str| {
            let lines: Vec<&str> = text.lines().collect();
            lines.windows(2).filter(|pair| is_mark(pair[0]) && is_mark(pair[1])).count()
        };
        prop_assert!(chain(&twice) <= chain(&text) + chain(&once), "{twice}");
    }

    #[test]
    fn json_stays_json(text in json(), seed: u64) {
        let _: Value = serde_json::from_str(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let segments = Segments::of(&text);
        prop_assert_eq!(segments.kind(), Kind::Json);
        check_pieces(&text, &segments)?;
        let out = check_kept(&text, &segments, seed)?;
        prop_assert!(serde_json::from_str::<Value>(&out).is_ok(), "{out}");
        for number in out.split(|c: char| !(c.is_ascii_digit() || ".-e".contains(c))).filter(|part| part.len() > 3) {
            prop_assert!(text.contains(number) || !number.starts_with(|c: char| c.is_ascii_digit()), "{number}");
        }
    }

    #[test]
    fn json_lines_stay_json_lines(lines in vec(json(), 2..8), seed: u64) {
        let text: String = lines.iter().map(|line| line.trim().to_owned() + "\n").collect();
        let segments = Segments::of(&text);
        prop_assert_eq!(segments.kind(), Kind::Json);
        check_pieces(&text, &segments)?;
        let out = check_kept(&text, &segments, seed)?;
        for value in serde_json::Deserializer::from_str(&out).into_iter::<Value>() {
            prop_assert!(value.is_ok(), "{out}");
        }
    }

    #[test]
    fn json_behind_a_few_words_stays_json(text in json(), seed: u64) {
        if text.trim().len() <= 300 {
            return Ok(());
        }
        let before = match seed % 3 {
            0 => "Process exited with code 0\nOutput:\n",
            1 => "1| ",
            _ => "HTTP 200: ",
        };
        let text = format!("{before}{}. Please go on.\n", text.trim());
        let segments = Segments::of(&text);
        prop_assert_eq!(segments.kind(), Kind::Json);
        check_pieces(&text, &segments)?;
        let keep = keep(seed);
        check_kept(&text, &segments, seed)?;
        let last = segments.pieces().len() - 1;
        let out = segments.excerpt(&text, &|i| i == 0 || i == last || keep(i), Marks::default());
        let json = out.strip_prefix(before);
        let json = json.and_then(|json| json.strip_suffix(". Please go on.\n"));
        prop_assert!(json.is_some_and(|json| serde_json::from_str::<Value>(json).is_ok()), "{out}");
    }

    #[test]
    fn nothing_is_a_mark(text in prop_oneof![text(), json()]) {
        let out = Segments::of(&text).excerpt(&text, &|_| false, Marks::default());
        prop_assert!(out.len() < 300, "{out}");
        prop_assert!(text.is_empty() || !out.is_empty());
    }
}

#[test]
fn the_largest_and_strangest_texts_are_taken_apart() {
    let large = |part: &str| part.repeat(5_000_000 / part.len());
    let texts = [
        large("x"),
        large("["),
        large("{\"a\":") + "1" + &"}".repeat(5_000_000 / 5),
        format!("[{}1]", large("1,")),
        large("\n"),
        large("[... "),
        large("[…"),
    ];
    let small = |part: &str| part.repeat(500_000 / part.len());
    let more = [
        small("[") + &small("]"),
        format!("[{}{{}}]", small("{\"a\": 1}, ")),
        format!("[\"{}\"]", small("\\\\")),
        format!("{{{}\"b\": 2}}", small("\"a\": 1,")),
        format!("[{}1]", small("[\"… 4 of 6 items left out …\", 2], ")),
        format!("[1{}]", small(" ")),
        small("\r"),
        small("a\n"),
        small("[…7 lines]\n"),
        small("<"),
        small("<script"),
        small("<p>\n"),
        small("错误"),
        small("error "),
        small("\u{0}\u{1}\u{7f}"),
        small("```\n"),
        small("[a]("),
        small("a,"),
        small("+"),
    ];
    for text in texts.into_iter().chain(more) {
        let segments = Segments::of(&text);
        let name: String = text.chars().take(12).collect();
        assert!(segments.pieces().len() <= text.len() / 24 + 8, "{name}: {}", segments.pieces().len());
        assert_eq!(segments.excerpt(&text, &|_| true, Marks::default()), text, "{name}");
        let none = segments.excerpt(&text, &|_| false, Marks::at("origin.txt"));
        assert!(none.len() < 300, "{name}: {} {}", none.len(), &none[..80]);
        let some = segments.excerpt(&text, &|i| i % 3 == 0, Marks::default());
        assert!(some.len() <= text.len() + 300, "{name}: {}", some.len());
    }
}

/// A text of numbered lines.
pub fn numbered(lines: Range<usize>, line: impl Fn(usize) -> String) -> String {
    lines.map(line).collect()
}

/// The classes of the pieces of a text, with their text.
fn classed(text: &str) -> Vec<(Class, &str)> {
    let segments = Segments::of(text);
    segments.pieces().iter().map(|piece| (piece.class, &text[piece.range()])).collect()
}

pub fn class_of(text: &str, part: &str) -> Class {
    classed(text).into_iter().find(|(_, source)| source.contains(part)).map(|(class, _)| class).unwrap()
}

pub fn with_classes(text: &str, classes: &[Class], archive_path: Option<&str>) -> String {
    let segments = Segments::of(text);
    segments.excerpt(
        text,
        &|i| classes.contains(&segments.pieces()[i].class),
        Marks { archive_path, ..Marks::default() },
    )
}

#[test]
fn of_many_changed_files_the_deleted_one_stands_out() {
    let modified = |i: usize| format!("\tmodified:   src/part{}/f{i}.ts\n", i % 7);
    let mut lines: Vec<String> = (0..80).map(modified).collect();
    lines.insert(40, "\tdeleted:    src/part3/key.ts\n".to_owned());
    let text = format!("On branch main\nChanges not staged for commit:\n{}", lines.concat());
    let segments = Segments::of(&text);
    let outliers = segments.pieces().iter().filter(|piece| piece.class == Class::Outlier);
    let outliers: Vec<&str> = outliers.map(|piece| &text[piece.range()]).collect();
    assert!(outliers.len() <= 4 && outliers.concat().contains("deleted"), "{outliers:?}");
}

#[test]
fn a_log_keeps_its_error_and_says_what_repeats() {
    let mut log = String::from("starting the run of all workers, please wait\n");
    log += &numbered(0..120, |i| {
        format!("2026-05-01T{}:{:02}:00 INFO worker-{} processed batch {} ok\n", 10 + i / 60, i % 60, i % 4, i * 37)
    });
    log +=
        "Traceback (most recent call last):\n  File 'x.py', line 7\nE123456: assertion failed in step 7\nexit code 1";
    assert_eq!(Segments::of(&log).kind(), Kind::Log);
    assert_eq!(class_of(&log, "E123456"), Class::Error);
    assert_eq!(class_of(&log, "exit code 1"), Class::Error);
    assert_eq!(class_of(&log, "File 'x.py'"), Class::Outlier, "no other line is like it");
    assert_eq!(class_of(&log, "starting"), Class::Header);
    let kept = [Class::Error, Class::Outlier, Class::NearError, Class::Header, Class::Edge];
    let out = with_classes(&log, &kept, Some("out/1.txt"));
    assert!(out.contains(" characters left out; all of it: out/1.txt ...]\n"), "{out}");
    assert!(out.ends_with("E123456: assertion failed in step 7\nexit code 1"), "{out}");
    assert!(out.len() < 1_500, "{out}");
    let later = Segments::of(&log).excerpt(&log, &|i| i == 1 || i == 100, Marks::default());
    assert_eq!(later.lines().filter(|line| line.ends_with(" similar lines]")).count(), 1, "{later}");
}

#[test]
fn the_frame_beside_an_error_says_where_it_is() {
    let lines = numbered(0..40, |i| format!("compiled module number {i} of the tree\n"));
    let traceback = "Traceback (most recent call last):\n  File \"/repo/setup.py\", line 12, in <module>\n    main(options, everything)\n  \
                     File \"/repo/src/build_limits.py\", line 338, in build\n    raise BuildError(limits)\nBuildError: limit missing\n";
    let rust =
        "error[E0308]: mismatched types\n  --> src/parser/limits.rs:449:17\n   |\n449 |     let limit: u32 = value;\n";
    for (text, place) in [(traceback, "build_limits.py\", line 338"), (rust, "limits.rs:449:17")] {
        let text = format!("{lines}{text}");
        let errors: Vec<&str> =
            classed(&text).into_iter().filter(|(class, _)| *class == Class::Error).map(|(_, part)| part).collect();
        assert!(errors.iter().any(|part| part.contains(place)), "{errors:?}");
        assert!(!errors.iter().any(|part| part.contains("setup.py")), "{errors:?}");
    }
}

#[test]
fn marks_beside_a_gap_become_one() {
    let log: String = numbered(0..40, |i| format!("line of the log with the number {i} and words {}\n", "x".repeat(i)));
    let once = Segments::of(&log).excerpt(&log, &|i| !(10..20).contains(&i), Marks::at("a.txt"));
    assert_eq!(once.matches("[... 10 lines, ").count(), 1, "{once}");
    let segments = Segments::of(&once);
    let mark = segments.pieces().iter().position(|piece| once[piece.range()].starts_with("[... ")).unwrap();
    let twice = segments.excerpt(&once, &|i| !(mark + 1..mark + 4).contains(&i), Marks::default());
    assert_eq!(twice.matches("[... ").count(), 1, "{twice}");
    assert!(twice.contains("[... 13 lines, ") && twice.contains("all of it: a.txt ...]"), "{twice}");
}

#[test]
fn an_error_is_not_lost_among_warnings_of_each_module() {
    let modules = ["auth", "billing", "cart", "search", "mail", "queue", "index", "media", "login"];
    let line = |i: usize| match i * 37 % 101 % 3 {
        0 => format!("10:{:02}:{:02} WARN {} slow call {}ms\n", i / 60, i % 60, modules[i * 31 % 97 % 9], 100 + i % 89),
        _ => format!("10:{:02}:{:02} INFO {} handled {i}\n", i / 60, i % 60, modules[i * 29 % 83 % 9]),
    };
    let text = numbered(0..900, |i| if i == 300 { "10:05:00 ERROR mail is out of disk\n".into() } else { line(i) });
    let segments = Segments::of(&text);
    let errors: Vec<&str> = segments
        .pieces()
        .iter()
        .filter(|piece| piece.class == Class::Error)
        .map(|piece| &text[piece.range()])
        .collect();
    assert!(errors.len() <= 9 && errors.last().is_some_and(|last| last.contains("ERROR mail")), "{errors:?}");
}

#[test]
fn line_numbers_say_what_is_missing_behind_the_first_mark() {
    let file = numbered(0..60, |i| format!("{}| let value_{i} = compute(\"the word number {i}\", {i});\n", i + 1));
    let some = |i: usize| i % 10 < 3;
    let cut = Segments::of(&file).excerpt(&file, &some, Marks::at("a.txt"));
    let lines: Vec<&str> = cut.lines().filter(|line| line.starts_with('[')).collect();
    assert_eq!(lines.len(), 2, "the first gap, and the last, behind which no number is: {cut}");
    assert!(lines[0].contains("; all of it: a.txt") && lines[1] == "[…7 lines]", "{cut}");
    assert!(cut.contains("value_12 = compute(\"the word number 12\", 12);\n21| let value_20"), "{cut}");
    // What is cut again is a numbered file still.
    let segments = Segments::of(&cut);
    assert_eq!(segments.kind(), Kind::Code);
    let is_kept = |i: usize| !cut[segments.pieces()[i].range()].starts_with("21| ");
    let again = segments.excerpt(&cut, &is_kept, Marks::default());
    assert_eq!(again.matches("left out").count(), 2, "{again}");
    // The numbers of hits jump by themselves.
    let hits = numbered(0..60, |i| format!("{}:let value_{i} = compute(\"the word number {i}\", {i});\n", 7 * i + 1));
    let cut = Segments::of(&hits).excerpt(&hits, &some, Marks::default());
    assert_eq!(cut.lines().filter(|line| line.starts_with('[')).count(), 6, "{cut}");
}

#[test]
fn a_gap_within_a_line_is_counted_in_characters() {
    let text = "One sentence of the text stands here. ".repeat(60);
    let out = Segments::of(&text).excerpt(&text, &|i| i != 2 && i != 4, Marks::default());
    assert!(out.contains(" characters left out ...] One") && out.contains(" characters] One"), "{out}");
}

#[test]
fn code_shows_its_signatures() {
    let code = "# Copyright 2024 Someone\n# Licensed under MIT, see the file LICENSE for more\nimport os\n\n\nclass Importer(Base):\n    \"\"\"Reads.\"\"\"\n\n    def read(self, path: str) -> list[str]:\n        rows = open(path).read().splitlines()\n        return [row for row in rows if row != 'error']\n\n    async def write(self, path):\n        raise ValueError('cannot write this one')\n\n\ndef main():\n    Importer().read('x')\n";
    assert_eq!(Segments::of(code).kind(), Kind::Code);
    for signature in ["class Importer", "def read", "async def write", "def main"] {
        assert_eq!(class_of(code, signature), Class::Header, "{signature}");
    }
    assert_eq!(class_of(code, "Licensed under"), Class::Noise);
    assert_eq!(class_of(code, "cannot write"), Class::Plain);
    let lines: Vec<&str> = code.lines().collect();
    let listing = numbered(0..lines.len(), |i| format!("{:6}\t{}\n", i + 1, lines[i]));
    assert_eq!(Segments::of(&listing).kind(), Kind::Code);
    assert_eq!(class_of(&listing, "def main"), Class::Header);
}

#[test]
fn among_comments_and_signatures_that_are_alike_the_odd_one_stands_out() {
    type Line = fn(usize) -> String;
    let cases: [(Line, &str); 6] = [
        (|i| format!("# Day {i}: {} km walked", 10 + i % 30), "# Day 61: lost the boat"),
        (|i| format!("-- step {i}: copy table t{i}"), "-- step 61: truncate the payments"),
        (|i| format!("* item {i}: buy {} apples", 2 + i % 7), "* item 61: the dog has eaten the contract"),
        (
            |i| format!("<!-- block {i} rendered in {} ms -->", 10 + i % 80),
            "<!-- block 61 was served from a stale copy -->",
        ),
        (|i| format!("def handle_{i}(r): return check(r, {i})"), "def handle_61(r): return True"),
        (|i| format!("src/m{i}.py:{}:    timeout = 30", 10 + i % 90), "src/m61.py:41:    timeout = None"),
    ];
    for (line, odd) in cases {
        for before in [|_| String::new(), |i| format!("{i}| "), |i| format!("{i:6}\t")] as [fn(usize) -> String; 3] {
            let text: String =
                (1..201).map(|i| before(i) + &if i == 61 { odd.to_owned() } else { line(i) } + "\n").collect();
            assert_eq!(class_of(&text, odd), Class::Outlier, "{}{odd}", before(61));
        }
    }
}

#[test]
fn a_diff_shows_files_hunks_and_changes() {
    let diff = "diff --git a/src/a.rs b/src/a.rs\nindex 1b2c3d4..5e6f7a8 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,5 +1,5 @@ fn read\n context of the change, line one\n context of the change, line two\n-let mut total = compute_old(value);\n+let mut total = compute_new(value);\n context of the change, line three\n";
    assert_eq!(Segments::of(diff).kind(), Kind::Diff);
    assert_eq!(class_of(diff, "@@ -1"), Class::Header);
    assert_eq!(class_of(diff, "compute_new"), Class::Outlier);
    assert_eq!(class_of(diff, "line one"), Class::Plain);
}

#[test]
fn tables_show_their_head_and_odd_rows() {
    let mut csv = String::from("id,name,status,amount in euro\n");
    csv += &numbered(0..40, |i| {
        format!("{i},customer number {i},{},{}.10\n", if i == 23 { "blocked" } else { "active" }, 100 + i)
    });
    assert_eq!(Segments::of(&csv).kind(), Kind::Table);
    assert_eq!(class_of(&csv, "id,name"), Class::Header);
    assert_eq!(class_of(&csv, "23,customer"), Class::Outlier);
    assert_eq!(class_of(&csv, "15,customer"), Class::Plain);
    let pods = "NAME                STATUS             AGE\nweb-7d4b9c-1        Running            12d\nweb-7d4b9c-2        Running            12d\nweb-7d4b9c-3        CrashLoopBackOff   12d\nweb-7d4b9c-4        Running            12d\nweb-7d4b9c-5        Running            12d\nweb-7d4b9c-6        Running            12d\nweb-7d4b9c-7        Running            12d\n";
    assert_eq!(Segments::of(pods).kind(), Kind::Table);
    assert_eq!(class_of(pods, "CrashLoop"), Class::Outlier);
}

#[test]
fn pages_have_noise_around_their_text() {
    let html = "<!DOCTYPE html>\n<html><head>\n<script>var tracker = load('x'); tracker.start();</script>\n</head><body>\n<nav><ul><li><a href=\"/\">Home page</a></li><li><a href=\"/about\">About us</a></li></ul></nav>\n<h1>How importers work in practice</h1>\n<p>An importer reads rows from a source and writes them.</p>\n<div class=\"wrapper\"><div class=\"inner\"></div></div>\n<p>It stops at the first row that it does not know.</p>\n<p>It can be started once more after that, and goes on.</p>\n</body></html>\n";
    assert_eq!(Segments::of(html).kind(), Kind::Html);
    assert_eq!(class_of(html, "tracker.start"), Class::Noise);
    assert_eq!(class_of(html, "wrapper"), Class::Noise);
    assert_eq!(class_of(html, "How importers"), Class::Header);
    assert_eq!(class_of(html, "It stops"), Class::Plain);
}

#[test]
fn hits_of_a_search_name_each_file_once() {
    let hits = numbered(0..12, |i| {
        let name = "x".repeat(i + 1);
        format!("src/part_{}.rs:{}:    let total_of_{name} = compute(value);\n", i / 6, i * 7)
    });
    assert_eq!(Segments::of(&hits).kind(), Kind::Search);
    assert_eq!(class_of(&hits, "src/part_1.rs:42:"), Class::Header);
    assert_eq!(class_of(&hits, "src/part_0.rs:28:"), Class::Plain);
}

#[test]
fn json_is_opened_however_deep_it_lies() {
    let deep = |depth: usize, inner: &str| format!("{}{inner}{}", r#"{"a": [1, "#.repeat(depth), "]}".repeat(depth));
    let words = format!("\"{}\"", "word ".repeat(2_000));
    for depth in [70, 400, 5_000] {
        let text = deep(depth, &words);
        let segments = Segments::of(&text);
        let is_opened = (0..segments.pieces().len()).any(|piece| segments.is_within_string(piece));
        assert_eq!(is_opened, depth < 500, "{depth}");
        let short = segments.excerpt(&text, &|piece| piece < segments.pieces().len() / 2, Marks::default());
        serde_json::from_str::<serde::de::IgnoredAny>(&short).unwrap();
        assert!(short.len() < text.len() && short.contains("left out"), "{depth}");
    }
}

#[test]
fn the_records_of_one_line_of_markup_are_compared() {
    let state = |i: usize| if i == 41 { "failed" } else { "active" };
    let attributes = |i: usize| format!(r#"<svc id="{}" state="{}"/>"#, 1_000 + i, state(i));
    let cells = |i: usize| format!("<tr><td>{}</td><td>svc-{i}</td><td>{}</td></tr>", 1_000 + i, state(i));
    let wrapped =
        |tag: &str, row: &dyn Fn(usize) -> String| format!("<{tag}>{}</{tag}>", (0..90).map(row).collect::<String>());
    for text in [wrapped("list", &attributes), wrapped("table", &cells)] {
        let out = with_classes(&text, &[Class::Outlier], None);
        assert!(out.contains("1041") && out.contains("failed") && out.len() < 300, "{out}");
    }
}
#[test]
fn the_last_line_of_a_log_is_odd_like_any_other() {
    let line = |i: usize| format!("[INFO] job {} done in {} ms\n", 40_000 + i * 7919 % 50_000, 20 + i * 37 % 60);
    let log = numbered(0..300, line);
    assert_eq!(class_of(&format!("{log}[INFO] job 43211 booked twice"), "booked twice"), Class::Outlier);
    let last = line(300);
    assert_eq!(class_of(&format!("{log}{last}"), &last), Class::Header);
}

#[test]
fn a_line_with_another_indentation_is_odd_behind_any_numbers() {
    let words = ["copy", "link", "scan", "move", "pack"];
    for behind in ["", "| ", "|", "→", "\t"] {
        let line = |i: usize| {
            let number = if behind.is_empty() { String::new() } else { format!("{}{behind}", i + 1) };
            let indentation = if i == 150 { "    " } else { "" };
            format!("{number}{indentation}{} part: {} {}\n", words[i % 5], words[i * 7 % 4], i * 37 % 99)
        };
        let text = numbered(0..300, line);
        assert_eq!(class_of(&text, line(150).trim_end()), Class::Outlier, "{behind:?}");
    }
}
