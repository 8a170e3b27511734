use super::*;

fn found(text: &str) -> Vec<&str> {
    names(text).into_iter().map(|name| &text[name]).collect()
}

#[test]
fn a_part_of_a_code_is_none() {
    for (text, part, is) in [
        ("id: 7cea943d-a332-2c5e-7b3d-d131ce36fd2f,", "a332", "7cea943d-a332-2c5e-7b3d-d131ce36fd2f"),
        (r#"{"sku": "SKU-D13A48"}"#, "D13A48", "SKU-D13A48"),
        (r"a\nSKU-D13A48", "D13A48", "SKU-D13A48"),
        ("<user9354@mail.example.com>", "user9354", "user9354@mail.example.com"),
        ("<anna@x.user9354.org>", "user9354", "user9354"),
        ("see v1.7.3-rc2.", "rc2", "rc2"),
        ("/a/D13A48/b", "D13A48", "D13A48"),
        ("D13A48", "D13A48", "D13A48"),
        ("日D13A48-日", "D13A48", "D13A48"),
        (&"ab12-".repeat(40), "ab12", "ab12"),
    ] {
        let at = text.find(part).expect("it stands there");
        assert_eq!(&text[code(text, at..at + part.len())], is, "{text}");
    }
}

#[test]
fn a_measure_is_none() {
    for word in [
        "51ms",
        "4.2KB",
        "00:15:43",
        "00:15:43.120Z",
        "98%",
        "2026-03-02T00:06",
        "2026-03-02T00:06:11.5Z",
        "02T00",
        "043Z",
    ] {
        assert!(is_measure(word), "{word}");
    }
    for word in [
        "14:35",
        "x86",
        "4711",
        "a1b2",
        "v1.7.3",
        "5g",
        "10:20:x",
        "s3",
        ":8080",
        "2026-03-02",
        "T1000",
        "MT5",
        "5Z",
        "A043Z",
    ] {
        assert!(!is_measure(word), "{word}");
    }
}

#[test]
fn a_time_to_the_minute_is_a_clock() {
    assert!(["14:35", "4:02"].into_iter().all(is_clock));
    assert!(!["14:35:07", "2026-03-02", "10.0.0.7", "1:1", "a:10", "127:80"].into_iter().any(is_clock));
}

#[test]
fn numbers_in_a_row_are_no_telephone_number() {
    for text in ["10 20 30 40 50", "0.5 0612 31", "rows 01 02 03"] {
        assert!(
            found(text).iter().all(|name| !name.contains(' ') || name.starts_with("rows")),
            "{text}: {:?}",
            found(text)
        );
    }
}

#[test]
fn a_file_ends_before_an_escaped_line_break() {
    assert_eq!(
        found(r"align_base_bucket.go\ndrain_open.go\njoin_column.go"),
        ["align_base_bucket.go", "drain_open.go", "join_column.go"]
    );
    assert_eq!(found(r"src\net\read.cs"), [r"src\net\read.cs"]);
}

#[test]
fn a_name_is_found_as_somebody_would_write_it_down() {
    for (text, name) in [
        ("It was OPS-1442 that was put on hold.", "OPS-1442"),
        ("the image has CVE-2026-18001 in it", "CVE-2026-18001"),
        ("Back to v1.7.3, please.", "v1.7.3"),
        ("在车上的，小米 14 Ultra掉了。", "小米 14 Ultra"),
        ("it goes to IBAN CH93 0076 2011 6238 5295 7 by Friday", "IBAN CH93 0076 2011 6238 5295 7"),
        ("It says UTC+2. The rest is plain.", "UTC+2"),
        ("It ends on 2026-11-04 at noon", "2026-11-04"),
        ("it leaves at 14:35 from there", "14:35"),
        ("Parcel #A-1190 was left", "Parcel #A-1190"),
        ("it came to €3,250.", "€3,250"),
        ("it listens on port 48211 behind", "port 48211"),
        ("call +41 44 555 01 27 after six", "+41 44 555 01 27"),
        ("he answers at (415) 555-0132 now", "(415) 555-0132"),
        ("call +1 (600) 555-8580 after six", "+1 (600) 555-8580"),
        ("she is at 0682 507 6777 until six", "0682 507 6777"),
        ("call 06 12 34 56 78 after six", "06 12 34 56 78"),
        ("pay with 1637 8210 3361 1843, please", "1637 8210 3361 1843"),
        ("write to lena.k@firma.ch only", "lena.k@firma.ch"),
        ("they live in redis.internal:6380 since", "redis.internal:6380"),
        ("moved to bucket cold-storage-eu in spring", "cold-storage-eu"),
        ("she flies with LH 454 at dusk", "LH 454"),
        ("the keys are with Marta Lindqvist today", "Marta Lindqvist"),
        ("a letter from Dr. Okafor came", "Dr. Okafor"),
        ("she wants the KX-100 Mini in blue", "KX-100 Mini"),
        ("ask @infra-oncall first", "@infra-oncall"),
        ("it is in /etc/nginx/nginx.conf, or was", "/etc/nginx/nginx.conf"),
        ("run `./run/app.py` again", "./run/app.py"),
        ("run ../run/app.py again", "../run/app.py"),
        ("kept in ~/lumen/app.py now", "~/lumen/app.py"),
        ("start it with --max-old-space=4096 only", "--max-old-space=4096"),
        ("see https://a.example.org/x?id=77&y=2#frag.", "https://a.example.org/x?id=77&y=2#frag"),
        ("see (https://a.example.org/x) there", "https://a.example.org/x"),
        ("not earlier than 24 March 2033 at all", "24 March 2033"),
        ("it came to 8665,34 €, then less", "8665,34 €"),
        ("and ₹1,23,456 for the rest", "₹1,23,456"),
        ("with 3.5 GB of it left", "3.5 GB"),
        ("at 40 km/h or so", "40 km/h"),
        ("heated to 21 °C at night", "21 °C"),
        ("ask Prof. Dr. Ilse Quast-Haas there", "Prof. Dr. Ilse Quast-Haas"),
        ("it was published (2003) in print", "2003"),
    ] {
        assert_eq!(found(text), [name], "{text}");
    }
    for (text, name) in [
        ("可以先打19354712641问一下再过去。", "19354712641"),
        ("加微信wanglei_8649要备注小区名字。", "微信wanglei_8649"),
        ("空调型号格力KFR-35GW用久了滴水。", "格力KFR-35GW"),
        ("月租谈到5900，押金另算。", "5900"),
        ("deliveries to KW17 2EL cost more", "KW17 2EL"),
        ("we took 3RT2 016-1BB41 for it", "3RT2 016-1BB41"),
        ("on FR14 2004 1010 0505 0001 3M02 606 since", "FR14 2004 1010 0505 0001 3M02 606"),
    ] {
        assert_eq!(found(text), [name], "{text}");
    }
    for (text, name) in [
        ("房东说押金是￥1400元，搬走时退还。", "￥1400元"),
        ("订单号88213的包裹", "订单号88213"),
        ("停在门口的车是沪A·7K391，挡住了", "沪A·7K391"),
        ("想要的平板是华为 MatePad Pro 13.2，白色", "华为 MatePad Pro 13.2"),
        ("合同由王建国保管", "王建国"),
        ("定于2039年9月22日举行", "2039年9月22日"),
        ("合同编号HT-2024-沪-0193月底前寄到了。", "合同编号HT-2024-沪-0193"),
        ("通知是沪建规〔2023〕12号，下月起执行。", "沪建规〔2023〕12号"),
        ("（2023）京0105民初4471号里写的是押金", "（2023）京0105民初4471号"),
        ("按民法典第577条押金应当退还。", "民法典第577条"),
        ("看的是静安路88弄3号602室，朝南。", "静安路88弄3号602室"),
        ("西荻北3丁目4-5の部屋", "西荻北3丁目4-5"),
    ] {
        assert!(found(text).iter().any(|found| found.contains(name)), "{text}: {:?}", found(text));
    }
}

#[test]
fn a_word_that_names_nothing_is_no_part_of_one() {
    assert_eq!(found("What I said in June I meant. Where I'm from. Would Anna mind?"), [""; 0]);
    assert_eq!(found("What Anna Lind said"), ["Anna Lind"]);
    assert_eq!(found("Wann Anna Lind kommt"), ["Anna Lind"]);
    assert_eq!(found("Past Crow Hill they rest. Gestern Anna Lind."), ["Crow Hill", "Anna Lind"]);
}

#[test]
fn a_name_ends_at_an_escaped_end_of_line() {
    assert_eq!(found(r"in agent-cb6\nRun it with\n\tGC_MB"), ["agent-cb6", "GC_MB"]);
    assert_eq!(without_escape(r"agent-cb6\n"), Some("agent-cb6"));
    assert_eq!([without_escape(r"cache\nRun"), without_escape(r"strongly.\nRun")], [None; 2]);
    for path in [r"C:\Users\N7\n", r"src\new_a.py", "a_b"] {
        assert_eq!(without_escape(path), Some(path));
    }
}

#[test]
fn a_cell_ends_at_its_comma() {
    assert_eq!(
        found("P-838,46.00\nRE-12345,Kranz,84,50\n2026-03-05,1204.50"),
        ["P-838", "46.00", "RE-12345", "84,50", "2026-03-05", "1204.50"]
    );
}

#[test]
fn an_integer_or_a_decimal_is_a_bare_number() {
    assert!(["4711", "60.45", "0.123456789", "1,5"].into_iter().all(is_bare_number));
    assert!(
        !["10.0.0.7", "2026-03-02", "port 4711", "v1.2", "3.5 GB", "1656367028", ""].into_iter().any(is_bare_number)
    );
}

#[test]
fn prose_without_names_has_none() {
    for text in [
        "The morning crew went through the usual list. Our neighbour sorted 12 boxes, and then had lunch.",
        "Well-read people don't mind. \"Nobody\" came!",
        "It is one or the other, and </b> ends it; 3 percent, 20 mice.",
        "他等了3年，买了2号楼。",
        "楼下的邻居一起整理了一排旧书架，天气不错。",
        "",
    ] {
        assert_eq!(found(text), Vec::<&str>::new(), "{text}");
    }
}
