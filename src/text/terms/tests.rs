use std::collections::HashSet;

use super::*;

fn found(text: &str) -> Vec<(TermKind, usize)> {
    let mut found = Vec::new();
    scan(text, |term, at| found.push((term.kind(), at)));
    found
}

fn terms(text: &str) -> Vec<Term> {
    let mut terms = Vec::new();
    scan(text, |term, _| terms.push(term));
    terms
}

#[test]
fn every_kind_of_term_is_found_where_it_starts() {
    use TermKind::{Ident, Joined, LongWord, Number, Pair, Part, Path, Word};
    for (text, expected) in [
        ("a word", vec![(Word, 2)]),
        ("an exception", vec![(LongWord, 3), (Word, 3)]),
        ("job_7f3a", vec![(Ident, 0), (Part, 0), (Part, 4)]),
        ("loadConfig", vec![(Ident, 0), (Part, 0), (Part, 4)]),
        ("10.0.0.7:8080", vec![(Part, 0), (Number, 9), (Joined, 0)]),
        ("in deploy-17, well-read", vec![(Word, 3), (Part, 10), (Joined, 3), (Word, 14), (Word, 19)]),
        ("see usr/lib now", vec![(Word, 0), (Word, 4), (Word, 8), (Path, 4), (Word, 12)]),
        ("at 4711, 42 and 7", vec![(Number, 3), (Part, 9), (Word, 12)]),
        ("查日志。好", vec![(Pair, 0), (Pair, 3)]),
        ("Привет", vec![(Word, 0)]),
    ] {
        assert_eq!(found(text), expected, "{text}");
    }
}

#[test]
fn a_name_is_given_back_as_it_was_written() {
    for (text, name) in [
        ("open src/loadConfig.py.", "loadConfig"),
        ("open src/loadConfig.py.", "src/loadConfig.py"),
        ("open src/loadConfig.py.", "loadConfig.py"),
        ("(see HTTP_Timeout)", "HTTP_Timeout"),
        ("版本v1.2.3。", "v1.2.3"),
        ("id 123456789012345678901234, ok", "123456789012345678901234"),
        ("call +49 171 5550 123 now", "49 171 5550 123"),
        (r"C:\Users\me\a.txt!", r"C:\Users\me\a.txt"),
    ] {
        let mut names = Vec::new();
        scan(text, |term, at| names.extend(text_at(text, at, term.short())));
        assert!(names.contains(&name), "{names:?}");
    }
}

#[test]
fn case_and_place_are_ignored_and_kinds_are_not() {
    assert_eq!(terms("LoadConfig"), terms("  loadConfig"));
    assert_eq!(terms("Timeout"), terms("timeout"));
    assert_ne!(terms("日志"), terms("志日"));
    assert_ne!(terms("src/a"), terms("src.a"));
}

#[test]
fn a_word_is_found_by_its_stem() {
    for forms in [
        "arrive arrives Arrived arriving",
        "query queries queried",
        "glass glasses glassed",
        "cookie cookies cookie",
        "listen listens listened",
        "Batterie Batterien batteria batterie",
        "Regal Regale Regalen Regals",
        "Keller Kellern kellers",
        "cantina cantine cantinas",
        "rideau rideaux rideau",
        "Rynna rynnami rynny",
    ] {
        let found = terms(forms);
        let stems: HashSet<&Term> = found.iter().filter(|term| term.kind() == TermKind::Word).collect();
        assert_eq!((stems.len(), found.len() >= 3), (1, true), "{forms}");
    }
    for (one, other) in [("class", "clash"), ("sing", "king"), ("use", "used_by")] {
        assert_ne!(terms(one), terms(other), "{one} {other}");
    }
    assert_eq!(terms("red ring bus ted"), terms("RED RING BUS TED"));
    assert_eq!(terms("requests").len(), 2, "a long word counts as it is, too");
}

#[test]
fn escaped_letters_are_the_letters_that_they_stand_for() {
    for (escaped, plain) in [
        (r"G\u00e4stezimmer", "Gästezimmer"),
        (r"\u4e0a\u6d77\u5929\u6c14", "上海天气"),
        (r"\u043d\u0430\u0441\u043e\u0441", "насос"),
        (r"\ud840\udc00\u4e0a", "𠀀上"),
        (r"gr\u00f6\u00dfe_2 ok", "größe_2 ok"),
        (r"G\\u00e4ste", "Gäste"),
        (r"x\nGr\u00fc\u00dfe", "x Grüße"),
        (r"x\nCrème", "x Crème"),
    ] {
        assert_eq!(terms(&format!(r#"{{"a": "{escaped}"}}"#)), terms(&format!(r#"{{"a": "{plain}"}}"#)), "{escaped}");
    }
    // Each where it begins in the source.
    assert_eq!(found(r"\u4e0a\u6d77\u5929"), [(TermKind::Pair, 0), (TermKind::Pair, 6)]);
    for text in [r"\u", r"\u4e0", r"\ud840", r"\ud840\u4e0a", r"\u0041b", r"C:\users\uwe"] {
        scan(text, |_, at| assert!(at < text.len(), "{text}"));
    }
}

#[test]
fn an_escape_of_json_joins_nothing() {
    let plain = terms("a = 813 max_retries = 12 table name");
    assert_eq!(terms(r#"{"a = 813\nmax_retries = 12\ttable\r\nname": 0}"#), plain);
    let path = |text| found(text).iter().any(|(kind, _)| *kind == TermKind::Path);
    assert!(!path(r#"{"a": "ledger_1\nretry_2"}"#) && !path(r#"[["ledger_1\nretry_2"]]"#));
    assert!(path(r"C:\new\table.txt") && path(r#"{"a": "C:\\new\\table.txt"}"#) && path(r"[12:00] C:\new\table.txt"));
}

#[test]
fn what_has_an_empty_box_is_open() {
    let open = terms("open")[0];
    assert!(terms("- [ ] Renew the passport").contains(&open) && terms("* [ ] Ölwechsel").contains(&open));
    assert!(!terms("- [x] Renew the passport").contains(&open));
}

#[test]
fn a_name_is_found_in_another_spelling() {
    for (one, other) in [
        ("+49 171 5550 123", "+491715550123"),
        ("+49 171 5550 123", "0171 5550123"),
        ("DE89 3704 0044 0532 0130 00", "DE89370400440532013000"),
        ("LH 2451", "lh2451"),
        ("1,400.50", "1400"),
        ("Siobhán", "siobhan"),
        ("Müller", "Mueller"),
        ("Анной", "Анна"),
        ("2026-10-03", "October 3rd"),
        ("3 Oct 2026", "2026-10-03"),
        ("14:30", "2:30 pm"),
    ] {
        assert!(terms(one).iter().any(|term| terms(other).contains(term)), "{one} {other}");
    }
    let names = |text| terms(text).into_iter().filter(|term| term.kind().is_name()).count();
    assert_eq!(names("+49 171 5550 123"), 3, "the number, as it is dialled at home, and its longest group");
}

#[test]
fn data_is_no_name() {
    let data = "QUJDREVGR0hJ4/".repeat(40);
    assert!(terms(&data).iter().all(|term| term.kind() != TermKind::Path));
    assert_eq!(terms(&"a1".repeat(101)), []);
}
