use super::super::units::units;
use super::fields::number;
use super::*;

fn odd(text: &str, units: &[Unit]) -> Vec<usize> {
    pattern(text, units).map_or_else(Vec::new, |pattern| pattern.odd)
}

/// Returns the odd lines among a hundred that `line` writes, the `odd` ones in their places.
fn odd_among(line: impl Fn(usize) -> String, odd_lines: &[(usize, &str)]) -> Vec<String> {
    let mut lines: Vec<String> = (0..100).map(line).collect();
    for (at, odd) in odd_lines {
        lines[*at] = (*odd).to_owned();
    }
    let text = lines.join("\n");
    let units = units(&text, false, |_| 0);
    odd(&text, &units).into_iter().map(|i| units[i].line(&text).to_owned()).collect()
}

#[test]
fn a_line_that_breaks_the_pattern_is_odd_whatever_it_says() {
    type Line = fn(usize) -> String;
    let cases: [(Line, &str); 38] = [
        (|i| format!("GET /o/{i} 200 {}", 100 + i * 37 % 900), "GET /o/7 502 0"),
        (|i| format!("{i},SKU-{i:05},{},{}.50", 12 + i * 7 % 400, i % 80), "61,SKU-00061,-31744,4.50"),
        (|i| format!("step {i} loss={}.{i:02} lr=3e-4", i % 3), "step 61 loss=nan lr=3e-4"),
        (
            |i| format!("{{\"ts\":{},\"level\":\"info\",\"status\":200}}", i * 1000),
            r#"{"ts":61000,"level":"info","status":507}"#,
        ),
        (|i| format!("web-{:x}   1/1   Running   0   {i}m", i * 7919), "web-7c9fd   0/1   CrashLoopBackOff   17   3m"),
        (|i| format!("64 bytes: icmp_seq={i} time={} ms", 20 + i % 11), "64 bytes: icmp_seq=61 time=1893 ms"),
        (|i| format!("tenant.{i}.max=200"), "tenant.61.max=0"),
        (|i| format!("第{i}号订单 已发货 状态正常"), "第61号订单 磁盘已满 状态异常"),
        (|i| format!("10.0.{}.{} srv{i}.corp", i % 7, 1 + i * 37 % 250), "203.0.113.66 srv61.corp"),
        (|i| format!("copied /srv/data/{:x} in {i} s", i * 7919), "copied /etc/shadow in 61 s"),
        (|i| format!("stock of {i}: {} pieces", 40 + i * 37 % 460), "stock of 61: 0 pieces"),
        (|i| format!("第{i}次 耗时{}毫秒", 20 + i % 30), "第61次 耗时90011毫秒"),
        (|i| format!("支付 ¥{} 完成 {i}", 20 + i % 30), "支付 ¥90011 完成 61"),
        (|i| format!("room {i}: {}°C", 20 + i % 9), "room 61: 90°C"),
        (|i| format!("took{}ms for {i}", 20 + i % 30), "took90011ms for 61"),
        (|i| format!("worker-{} served {i}", i % 7), "worker-99 served 61"),
        (|i| format!("[{i}/100] Building src/f{i}.c.o"), "src/f61.c:12:5: error: unknown type name 'foo'"),
        // Another unit, and none.
        (|i| format!("GET /a/{i} took {}ms", 10 + i * 37 % 80), "GET /a/61 took 41min"),
        (|i| format!("{}K  ./f{i}", 10 + i * 37 % 80), "41G  ./f61"),
        (|i| format!("c{i} up {}d", 10 + i * 37 % 80), "c61 up 41"),
        // One of the numbers in a field.
        (|i| format!("op{i} [{}/{}/{}]", 10 + i % 31, 10 + i % 29, 10 + i % 23), "op61 [14/88120/31]"),
        (|i| format!("pkg{i}@4.{}.{}", i % 21, i % 10), "pkg61@9.1.0"),
        (|i| format!("node-{i:04}  Ready  {}d  v1.29.3", 10 + i * 37 % 80), "node-0061  Ready  61d  v1.18.0"),
        (|i| format!("img{i}.png {}x{}", 800 + i * 37 % 200, 600 + i * 41 % 200), "img61.png 1x1"),
        (|i| format!("job{i} took 1m{}s", 10 + i * 37 % 50), "job61 took 9m41s"),
        (|i| format!("reg{i} 0x00{:02x}", i * 37 % 256), "reg61 0xffff"),
        // Numbers that end abruptly, and one not far behind.
        (|i| format!("/dev/sd{i}  50G  {}% /mnt/v{i}", 10 + i * 37 % 51), "/dev/sd61  50G  100% /mnt/v61"),
        (|i| format!("node {i} {}%", 60 + i * 37 % 31), "node 61 3%"),
        // A number said twice or out of turn, where all others count.
        (|i| format!("{i},{}.00,debit,acct-{}", 100 + i * 370 % 800, i % 9), "17,950.00,debit,acct-4"),
        (|i| format!("SKU-{i:05};{};ok", 100 + i * 370 % 800), "SKU-00017;412;ok"),
        (|i| format!("    CODE_{i} = {},", 300 + 2 * i), "    CODE_61 = 317,"),
        // Columns that could be the thousands of a number, and one row with one less.
        (|i| format!("{i},{},{}", 100 + i * 370 % 900, 100 + i * 733 % 900), "61,412"),
        // The other decimal mark.
        (|i| format!("P-{i};{},{:02}", i * 37 % 90, 10 + i * 71 % 90), "P-61;41.17"),
        (|i| format!("t{} 36.{}", i % 5, i * 7 % 10), "t1 36,4"),
        // Nothing, among sizes.
        (|i| format!("part{} {} bytes", i % 6, 1000 + i * 7919 % 90_000), "part1 0 bytes"),
        (|i| format!("item{} {}.{:02}", i % 6, 1 + i * 37 % 90, i * 71 % 100), "item1 0.00"),
        // What looks like comments.
        (|i| format!("  # aws_instance.web[{i}] will be created"), "  # aws_db_instance.main must be replaced"),
        (|i| format!("//app/mod{}:lib{i}", i % 40), "//app/mod12:lib12 (manual, testonly)"),
    ];
    for (line, odd) in cases {
        for at in [0, 61, 99] {
            assert_eq!(odd_among(line, &[(at, odd)]), [odd]);
        }
        assert_eq!(odd_among(line, &[]), Vec::<String>::new(), "{odd}");
    }
}

#[test]
fn marks_of_full_width_separate_fields() {
    let name = |i: usize| format!("{}{}", ["王", "李", "张", "刘"][i % 4], ["伟", "芳", "娜", "强", "敏"][i * 7 % 5]);
    for mark in ["，", "、", "：", "；", "｜", "→", "\u{3000}"] {
        let row = |i: usize, state: &str| [format!("{i:03}").as_str(), &name(i), "北京", state].join(mark);
        assert_eq!(odd_among(|i| row(i, "阴性"), &[(61, &row(61, "阳性"))]), [row(61, "阳性")]);
    }
    let row = |i: usize, state: &str| format!("{i:03}{}（北京）{state}", name(i));
    assert_eq!(odd_among(|i| row(i, "阴性"), &[(61, &row(61, "阳性"))]), [row(61, "阳性")]);
}

#[test]
fn a_name_that_occurs_once_among_many_that_recur_is_odd() {
    let mut state = 5;
    let names: Vec<String> =
        (0..30).map(|_| (0..6).map(|_| char::from(b'a' + mixed(&mut state).to_le_bytes()[0] % 26)).collect()).collect();
    let text: String = (0..800)
        .map(|i| {
            if i == 301 { "signed by root\n".into() } else { format!("signed by {}\n", names[mixed(&mut state) % 30]) }
        })
        .collect();
    assert_eq!(odd(&text, &units(&text, false, |_| 0)), [301]);
}

#[test]
fn a_word_among_hashes_is_odd_and_a_hash_without_digits_is_not() {
    let hash = |i: usize| format!("{i}  {:06x}", i * 7_919_291 % 16_777_216);
    assert_eq!(odd_among(hash, &[(61, "61  uncommitted")]), ["61  uncommitted"]);
    assert_eq!(odd_among(hash, &[(61, "61  fadeca")]), Vec::<String>::new());
}

#[test]
fn a_rule_below_the_names_of_columns_is_no_row() {
    let line = |i: usize| match i {
        0 => "Package Version Editable project location".to_owned(),
        1 => "------- ------- --------".to_owned(),
        _ => format!("n{i} {}.{}.1", i % 9, i % 7),
    };
    assert!(odd_among(line, &[(61, "n61 0.4.1 /home/jan/wip")]).contains(&"n61 0.4.1 /home/jan/wip".to_owned()));
}

#[test]
fn what_one_of_a_few_records_has_is_odd() {
    type Record = fn(usize) -> String;
    let cases: [(Record, &str, &str); 3] = [
        (|i| format!("[db-{i}]\nport = 5432\nsslmode = verify\npool = 20"), "verify", "disable"),
        (|i| format!("- name: n-{i}\n  replicas: 3\n  image: reg/n{i}:v1\n  zone: b"), "replicas: 3", "replicas: 0"),
        (|i| format!("subject=CN = n{i}.corp\nissuer=CN = Corp CA 1\nnotAfter=Jun {i} 12:00 GMT"), "CA 1", "CA TEST"),
    ];
    for (record, usual, odd_one) in cases {
        for count in 6..16 {
            let record = |i: usize| if i == 4 { record(i).replace(usual, odd_one) } else { record(i) };
            let text = (0..count).map(record).collect::<Vec<_>>().join("\n");
            let units = units(&text, false, |_| 0);
            let found: Vec<&str> = odd(&text, &units).into_iter().map(|i| units[i].line(&text)).collect();
            assert!(found.len() == 1 && found[0].contains(odd_one), "{count} {odd_one}: {found:?}");
        }
    }
}

#[test]
fn a_number_of_one_of_a_few_records_is_odd() {
    let pod = |i: usize, restarts: usize| {
        let host = i * 7_919 % 251;
        format!("Name:   shop-{host:x}\nNode:   ip-10-4-0-{host}\nReady:   True\nRestart Count:   {restarts}\n\n")
    };
    let patient = |i: usize, oxygen: usize| {
        let (pulse, note) = (58 + i * 37 % 38, ["slept well", "walked twice", "ate half"][i % 3]);
        format!(
            "Patient: No. {i}\nPulse: {pulse} /min\nSpO2: {oxygen} %\nNote: {note}\nWeight: {}.5 kg\n\n",
            48 + i * 29 % 50
        )
    };
    for count in 6..16 {
        let pods: String = (0..count).map(|i| pod(i, if i == 4 { 47 } else { i % 2 })).collect();
        assert!(odd_lines(&pods).contains(&"Restart Count:   47"), "{count}: {:?}", odd_lines(&pods));
        let ward: String = (0..count).map(|i| patient(i, if i == 4 { 71 } else { 94 + i * 3 % 5 })).collect();
        assert!(odd_lines(&ward).contains(&"SpO2: 71 %"), "{count}: {:?}", odd_lines(&ward));
        assert!(odd_lines(&ward).len() <= 4, "{count}: {:?}", odd_lines(&ward));
    }
}

#[test]
fn rows_are_compared_up_to_a_last_column_of_any_number_of_words() {
    let row = |i: usize| {
        let (memory, words) =
            (if i == 17 { 64.2 } else { f32::from(u8::try_from(i % 20).unwrap()) / 10.0 }, "--x=1 ".repeat(i * 7 % 6));
        format!(
            "app      {}  0.{}  {memory:.1} {} ?   Ss   /usr/bin/job {words}\n",
            300 + i * 7_919 % 32_000,
            i % 9,
            2_000 + i * 37
        )
    };
    let text = format!("USER     PID  %CPU  %MEM  RSS TTY STAT COMMAND\n{}", (0..40).map(row).collect::<String>());
    assert!(odd_lines(&text).iter().any(|line| line.contains(" 64.2 ")), "{:?}", odd_lines(&text));
    assert!(odd_lines(&text).len() <= 3, "{:?}", odd_lines(&text));
}

#[test]
fn a_number_is_far_from_others_that_come_in_turn() {
    for period in 1..16 {
        for count in [100, 300, 600, 900, 1_300, 3_000] {
            let value = |i: usize| if i == 61 { 90_011 } else { 20 + i % period };
            let line = |i: usize| format!("heartbeat {i} of node latency={}ms", value(i));
            let text = (0..count).map(line).collect::<Vec<_>>().join("\n");
            let units = units(&text, false, |_| 0);
            assert!(odd(&text, &units).contains(&61), "{period} {count}");
        }
    }
}

#[test]
fn a_line_of_a_record_is_held_against_the_same_line_of_others() {
    type Record = fn(usize) -> String;
    let cases: [(Record, &str, &str); 5] = [
        (|i| format!("[user{i}]\nshell = /bin/sh\nquota = {}\nadmin = no", 10 + i % 80), "admin = no", "admin = yes"),
        (|i| format!("[user{i}]\nshell = /bin/sh\nquota = {}", 10 + i % 80), "/bin/sh", "/usr/sbin/nologin"),
        (|i| format!("[user{i}]\nadmin = 0\nquota = {}", 10 + i % 80), "admin = 0", "admin = 40"),
        (|i| format!("<order id=\"{i}\">\n<state>paid</state>\n<sum>{}</sum>\n</order>", i % 90), "paid", "disputed"),
        (|i| format!("<tr>\n<td>{i}</td>\n<td>n{}</td>\n<td>paid</td>\n</tr>", i % 9), "paid", "refused"),
    ];
    for (record, usual, odd_one) in cases {
        for at in [3, 200, 399] {
            let record = |i: usize| if i == at { record(i).replace(usual, odd_one) } else { record(i) };
            let text = (0..400).map(record).collect::<Vec<_>>().join("\n");
            let units = units(&text, false, |_| 0);
            let odd: Vec<&str> = odd(&text, &units).into_iter().map(|i| units[i].line(&text)).collect();
            // The sample may begin behind the first number of a heading.
            let others = odd.iter().filter(|line| !line.contains(odd_one));
            assert!(others.eq(["[user0]"].iter().take(odd.len() - 1)), "{odd_one} {at}: {odd:?}");
        }
    }
}

#[test]
fn among_lines_of_several_shapes_in_no_order_few_are_odd_by_chance() {
    const MODULES: [&str; 8] = ["auth", "billing", "cart", "search", "mail", "queue", "index", "media"];
    for seed in 0..20 {
        let mut state = seed;
        let mut chance = |of: usize| mixed(&mut state) % of;
        let mut line = |i: usize| match chance(4) {
            _ if i == 301 => "DEBUG sql rows=48000000 t=3ms\n".to_owned(),
            0 => format!("INFO {} handled request in {}ms\n", MODULES[chance(8)], 3 + chance(88)),
            1 => format!("DEBUG sql rows={} t={}ms\n", chance(50), 1 + chance(9)),
            2 => format!("DEBUG {} pool size {}\n", MODULES[chance(7)], 1 + chance(20)),
            _ => format!("WARN cache miss key=user:{}\n", i * 7 % 997),
        };
        let text: String = (0..2000).map(&mut line).collect();
        let odd = odd(&text, &units(&text, false, |_| 0));
        assert!(odd.contains(&301) && odd.len() <= 4 * MIN_ODD, "{seed}: {odd:?}");
    }
}

#[test]
fn a_number_out_of_turn_is_odd_where_numbers_count_and_do_not_begin_anew() {
    let odd_in = |number: &dyn Fn(usize) -> usize| {
        let text = (0..2000).map(|i| format!("row {} of a table", number(i))).collect::<Vec<_>>().join("\n");
        odd(&text, &units(&text, false, |_| 0))
    };
    assert_eq!(odd_in(&|i| i), Vec::<usize>::new());
    // The line that says the same stands out, too.
    assert_eq!(odd_in(&|i| if i == 700 { 41 } else { i }), [41, 700]);
    assert_eq!(odd_in(&|i| if i == 700 { 1900 } else { i }), [700, 1900]);
    // Which of two is the wrong one, nobody knows.
    assert_eq!(odd_in(&|i| if i == 700 { 699 } else { i }), [699, 700]);
    assert_eq!(odd_in(&|i| i % 1100), Vec::<usize>::new());
    assert_eq!(odd_in(&|i| i % 100), Vec::<usize>::new());
    assert_eq!(odd_in(&|i| i / 3), Vec::<usize>::new());
}

#[test]
fn what_many_lines_do_is_not_odd() {
    let two_shapes =
        |i: usize| if i.is_multiple_of(9) { format!("gc: {i} ms") } else { format!("served {i} in {} ms", i % 40) };
    assert_eq!(odd_among(two_shapes, &[]), Vec::<String>::new());
    let grows = |i: usize| format!("row {} of {}", i * i * i, i * 17);
    assert_eq!(odd_among(grows, &[]), Vec::<String>::new());
    for count in 100..400 {
        let second = |i: usize| format!("at second {:02} finished job {i} of {}", i % 60, i * 37 % 90);
        let text = (0..count).map(second).collect::<Vec<_>>().join("\n");
        assert_eq!(odd(&text, &units(&text, false, |_| 0)), Vec::<usize>::new(), "{count}");
    }
    let words = ["The shop is closed, we think.", "Nobody came!", "It rained: so what?", "(a note)", "- one\t- two"];
    let prose = |i: usize| format!("{} {}", words[i % 5], "and so on, ".repeat(i));
    assert_eq!(odd_among(prose, &[(50, "Prices: 3, 4")]), Vec::<String>::new());
}

#[test]
fn of_a_long_tail_the_ends_are_odd() {
    let latency = |i: usize| format!("took {} ms\n", if i % 40 == 3 { 1000 + i } else { 20 + i % 37 });
    let text: String = (0..2000).map(latency).collect();
    let units = units(&text, false, |_| 0);
    assert_eq!(odd(&text, &units), [1843, 1883, 1923, 1963]);
}

#[test]
fn numbers_of_any_size_compare() {
    let digits = "9".repeat(400);
    assert_eq!(odd_among(|i| format!("n {digits}{i}"), &[]), Vec::<String>::new());
    assert_eq!(
        (number("-0.5"), number("45%"), number("1."), number("12ab3"), number("-")),
        (Some(-0.5), Some(45.0), Some(1.0), None, None)
    );
}

/// Returns the odd lines among 900 of which about `share` percent are of one kind and the others of another, one replaced.
/// The lines are written from numbers in no order.
fn odd_of_kinds(
    share: usize,
    one: impl Fn(usize) -> String,
    other: impl Fn(usize) -> String,
    odd_line: &str,
) -> Vec<String> {
    let mut state = 0;
    let mut line = |i: usize| match mixed(&mut state) {
        _ if i == 461 => odd_line.to_owned(),
        number if number % 100 < share => one(number / 100),
        number => other(number / 100),
    };
    let time = |i: usize| format!("2026-11-20 {:02}:{:02}:{:02}", 8 + i * 7 / 3600, i * 7 / 60 % 60, i * 7 % 60);
    let text = (0..900).map(|i| format!("{} {}", time(i), line(i))).collect::<Vec<_>>().join("\n");
    let units = units(&text, false, |_| 0);
    odd(&text, &units).into_iter().map(|i| units[i].line(&text)[20..].to_owned()).collect()
}

/// Returns the next number of a sequence without an order.
fn mixed(state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    usize::try_from(mixed >> 33).unwrap()
}

#[test]
fn a_number_is_held_against_lines_of_its_kind() {
    let others: [fn(usize) -> String; 5] = [
        |i| format!("INFO heartbeat b{i:x} ok"),
        |i| format!("WARN heartbeat b{i:x} ok"),
        |_| "INFO heartbeat received ok".to_owned(),
        |i| format!("INFO heartbeat from {}", i % 99),
        |i| format!("INFO {} waits", ["worker", "cache", "store of x"][i % 3]),
    ];
    for other in others {
        let sent = |i: usize| format!("INFO sent {} messages", 1000 + i % 8000);
        for odd in ["INFO sent 900000 messages", "INFO sent 0 messages"] {
            assert_eq!(odd_of_kinds(35, sent, other, odd), [odd]);
        }
        assert_eq!(odd_of_kinds(35, sent, other, "INFO sent 4096 messages"), Vec::<String>::new());
    }
}

#[test]
fn a_number_of_few_lines_is_odd_below_and_above_the_others() {
    let sent = |i: usize| format!("INFO sent {} messages to n{i:x}", 1000 + i % 8000);
    let other = |i: usize| format!("INFO heartbeat b{i:x}");
    for share in [15, 35, 70] {
        for odd in [0, 3, 13_500, 900_000] {
            let odd = format!("INFO sent {odd} messages to n9ab");
            assert_eq!(odd_of_kinds(share, sent, other, &odd), [odd], "{share}");
        }
    }
    let heap = |i: usize| format!("DEBUG heap {} MB", 300 + i % 400);
    assert_eq!(odd_of_kinds(7, heap, other, "DEBUG heap 31 MB"), ["DEBUG heap 31 MB"]);
    // Numbers that reach down to zero, and a long tail.
    let low = |i: usize| format!("INFO sent {} messages to n{i:x}", i % 480);
    assert_eq!(odd_of_kinds(35, low, other, "INFO sent 0 messages to n9ab"), Vec::<String>::new());
    let tail = |i: usize| format!("INFO sent {} messages to n{i:x}", 20 + 800_000 / (1 + i % 9_000));
    assert!(odd_of_kinds(35, tail, other, "INFO sent 20 messages to n9ab").len() <= 3 * MIN_ODD);
}

#[test]
fn a_part_of_a_word_is_odd_however_many_different_words_there_are() {
    type Line = fn(String, usize) -> String;
    // Seventeen names and more are no few values.
    let name = |i: usize| format!("{}{}", ["lib", "py", "go"][i % 3], (b'a' + u8::try_from(i % 26).unwrap()) as char);
    let cases: [(Line, &str); 5] = [
        (|name, i| format!("{name}{i}/bookworm,now {}.{}-1 amd64", i % 9, i % 7), "libc7/focal,now 7.0-1 amd64"),
        (|name, i| format!("{name} https://{name}{i}.prod.acme.io/v2"), "gob https://gob7.staging.acme.io/v2"),
        (|name, i| format!("/srv/{name}{i}/ro/data {}", i % 9), "/srv/pyz7/rw/data 4"),
        (|name, i| format!("{name}/{name}_{i}.jpg"), "gob/gob_7.exe"),
        (|name, i| format!("{name}.{i}@acme.com"), "libc.7@gmail.com"),
    ];
    for (line, odd) in cases {
        assert_eq!(odd_among(|i| line(name(i), i), &[(61, odd)]), [odd]);
        assert_eq!(odd_among(|i| line(name(i), i), &[]), Vec::<String>::new(), "{odd}");
    }
}

#[test]
fn a_setting_is_held_against_the_same_of_other_services() {
    let services = ["auth", "cart", "mail", "search", "billing", "queue"];
    for kinds in 1..6 {
        let mut state = 0;
        let mut line = |i: usize| {
            let (service, number) = (services[mixed(&mut state) % 6], mixed(&mut state));
            match if i == 301 { 0 } else { mixed(&mut state) % kinds } {
                0 => format!("{service}_{i}_debug={}", i == 301),
                1 => format!("{service}_{i}_port={}", 3000 + number % 6000),
                2 => format!("{service}_{i}_host={}.internal", services[number % 6]),
                3 => format!("{service}_{i}_timeout={}", [5, 10, 30][number % 3]),
                _ => format!("{service}_{i}_region={}", ["eu", "us", "ap"][number % 3]),
            }
        };
        let text = (0..900).map(&mut line).collect::<Vec<_>>().join("\n");
        let odd = odd(&text, &units(&text, false, |_| 0));
        assert!(odd.contains(&301) && odd.len() <= 3 * MIN_ODD, "{kinds}: {odd:?}");
    }
}

#[test]
fn a_line_of_a_long_record_is_held_against_the_same_of_others() {
    let values = ["true", "false", "Always", "IfNotPresent"];
    for records in [100, 160, 200, 400] {
        let line = |record: usize, key: usize| {
            let value = if (record, key) == (61, 8) { "Never" } else { values[key % 4] };
            let letter = (b'a' + u8::try_from(key).unwrap()) as char;
            format!("{}{letter}Key: {value}", " ".repeat(key % 5 * 2))
        };
        let lines = (0..records).flat_map(|record| (0..20).map(move |key| line(record, key)));
        let text = lines.collect::<Vec<_>>().join("\n");
        assert_eq!(odd(&text, &units(&text, false, |_| 0)), [61 * 20 + 8], "{records}");
    }
}

#[test]
fn parts_of_a_name_tell_no_kinds() {
    let names = ["load_config", "parse_header", "send_batch", "open_socket", "flush_cache", "read_frame", "run_hook"];
    let names = names.map(|name| [name.to_owned(), name.replace('_', "s_"), name.replace('_', "ed_")]).concat();
    let mut state = 0;
    let mut line = |i: usize| {
        let (name, number) = (&names[mixed(&mut state) % names.len()], mixed(&mut state));
        match if i == 301 { 0 } else { mixed(&mut state) % 4 } {
            0 => format!("{name}_{i}_encrypted: {}", i != 301),
            1 => format!("{name}_{i}_retries: {}", number % 9),
            2 => format!("{name}_{i}_bucket: {}", ["lyon", "berlin", "paris"][number % 3]),
            _ => format!("{name}_{i}_ttl: {}h", 2 + number % 20),
        }
    };
    let text = (0..400).map(&mut line).collect::<Vec<_>>().join("\n");
    assert!(odd(&text, &units(&text, false, |_| 0)).contains(&301));
}

#[test]
fn of_few_lines_a_value_is_odd_beside_one_that_the_others_have() {
    let source = |i: usize| format!("source = \"{}\"", if i == 20 { "git+acme/fork" } else { "registry+index" });
    let package = |i: usize| format!("[[package]]\nname = \"crate{i}\"\n{}\n", source(i));
    let text: String = (0..30).map(package).collect();
    let units = units(&text, false, |_| 0);
    let odd: Vec<&str> = odd(&text, &units).into_iter().map(|i| units[i].line(&text)).collect();
    assert_eq!(odd, [source(20)]);
}

#[test]
fn where_a_sequence_breaks_the_line_is_odd() {
    let clock = |seconds: usize| format!("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let id = |i: usize| format!("TX-{:08x}", mixed(&mut (i as u64)));
    let odd_lines = |line: &dyn Fn(usize) -> String| {
        let text = (0..300).map(line).collect::<Vec<_>>().join("\n");
        odd(&text, &units(&text, false, |_| 0))
    };
    let at = |i: usize, before: usize, behind: usize| if i < 140 { before } else { behind };
    let number = |i: usize| format!("{},{},paid", 7000 + at(i, i, i + 1), 10 + i * 7 % 50);
    assert_eq!(odd_lines(&number), [140]);
    for behind in [43_000, 18_000] {
        let line = |i: usize| format!("{} job {} done", clock(at(i, 32_000, behind) + 7 * i), 1000 + i * 37 % 900);
        assert_eq!(odd_lines(&line), [140], "{behind}");
        assert_eq!(odd_lines(&|i| line(299 - i)), [159], "{behind}");
    }
    // Past midnight, with and without a date.
    let night = |i: usize| 86_000 + 7 * i;
    assert_eq!(odd_lines(&|i| format!("{} job {} done", clock(night(i)), 1000 + i * 37 % 900)), [0; 0]);
    let dated =
        |i: usize| format!("2026-03-{:02}T{}Z job {} done", 4 + night(i) / 86_400, clock(night(i)), i * 37 % 900);
    assert_eq!(odd_lines(&dated), [0; 0]);
    let twice = |i: usize| if i == 140 { 120 } else { i };
    assert_eq!(odd_lines(&|i| format!("{} booked {}", id(twice(i)), i * 37 % 900)), [120, 140]);
    assert_eq!(
        odd_lines(&|i| format!("entry {} of {}", 50 + twice(i) * 7919 % 10_007, 50 + twice(i) * 31 % 97)),
        [120, 140]
    );
}

#[test]
fn a_line_in_a_script_of_its_own_is_odd() {
    let words = ["lemon", "cedar", "basket", "copper", "violet", "harbor", "window", "garden"];
    let chat = |i: usize| {
        let said: Vec<&str> = (0..3 + i % 6).map(|nth| words[(i * 7 + nth * 3) % 8]).collect();
        format!("<{}> {}", ["anna", "boris", "carla"][i % 3], said.join(" "))
    };
    for said in ["завтра сервер выключат", "garden fÃ¼r harbor", "lemon \u{fffd} cedar", "غدا نغلق", "कल बंद"]
    {
        let odd = format!("<anna> {said}");
        assert_eq!(odd_among(chat, &[(61, &odd)]), [odd]);
    }
    let french = |i: usize| format!("{} déjà réglé", chat(i));
    assert_eq!(odd_among(french, &[]), Vec::<String>::new());
}

#[test]
fn cells_of_any_number_of_words_are_compared() {
    const PAYEES: [&str; 5] =
        ["LIDL", "ALDI SUED", "APOTHEKE AM MARKT", "Praxis Dr. med. Lorenz", "REWE SAGT DANKE 4411"];
    for separator in [";", ",", "\t", " | "] {
        let row = |i: usize, amount: &str, reference: usize| {
            [&format!("2026-08-{:02}", i % 28 + 1), PAYEES[i * i % 7 % 5], amount, "EUR", &format!("REF {reference}")]
                .join(separator)
        };
        let usual =
            |i: usize| row(i, &format!("-{}.{:02}", 3 + i * 37 % 130, i * 7 % 100), 4_400_000_000 + i * 7919 % 997);
        let (much, first, again) =
            (row(61, "-2750.00", 4_400_000_998), row(30, "-17.20", 4_400_000_999), row(33, "-17.20", 4_400_000_999));
        let odd = odd_among(usual, &[(61, &much), (30, &first), (33, &again)]);
        assert!([&much, &first, &again].into_iter().all(|line| odd.contains(line)), "{separator:?} {odd:?}");
        assert!(odd.len() < 8, "{separator:?} {odd:?}");
    }
}

/// Returns the odd lines of a text.
fn odd_lines(text: &str) -> Vec<&str> {
    let units = units(text, false, |_| 0);
    odd(text, &units).into_iter().map(|i| units[i].line(text)).collect()
}

#[test]
fn a_few_blocks_are_compared_line_by_line() {
    let block = |i: usize| {
        let (rows, state) = if i == 6 { (0, "off") } else { (10_000 + i * 7_919 % 80_000, "zstd") };
        format!("=== job_{i} ===\nrows      {rows}\ncompression {state} inherited\n")
    };
    let text: String = (0..14).map(block).collect();
    assert_eq!(odd_lines(&text), ["rows      0", "compression off inherited"]);
}

#[test]
fn what_is_all_but_full_is_odd_where_nothing_else_is() {
    let disks = |of: fn(usize) -> usize| {
        let disk = |i: usize| format!("/dev/vg1-{i:02}  {}G {}% /srv/{i}\n", 200 + i % 3 * 200, of(i));
        (0..22).map(disk).collect::<String>()
    };
    assert_eq!(odd_lines(&disks(|i| if i == 9 { 99 } else { 40 + i * 17 % 49 })).len(), 1);
    assert!(odd_lines(&disks(|i| 60 + i * 17 % 40)).is_empty());
}

#[test]
fn a_header_of_single_blanks_makes_no_text_of_numbers() {
    let row =
        |i: usize| format!("queue_{i}.jobs      {}   {}   running\n", if i == 9 { 48_112 } else { i * 7 % 20 }, i % 4);
    let text = format!("name     messages    consumers state\n{}", (0..26).map(row).collect::<String>());
    assert!(odd_lines(&text).iter().any(|line| line.contains("48112")), "{:?}", odd_lines(&text));
}

#[test]
fn the_frame_of_rows_hides_no_row_among_them() {
    let row = |i: usize| {
        let state = if i == 31 { "SKIPPED (needs STRIPE_KEY)" } else { "PASSED" };
        format!("tests/test_{}.py::test_{i} {state} [{:3}%]\n", i % 5, i * 100 / 64)
    };
    let head = "======= test session starts =======\nplatform linux -- Python 3.12.3\ncollected 64 items\n\n";
    let text = format!("{head}{}\n===== 63 passed, 1 skipped in 4.21s =====", (0..64).map(row).collect::<String>());
    assert!(odd_lines(&text).iter().any(|line| line.contains("SKIPPED")), "{:?}", odd_lines(&text));
}

#[test]
fn where_a_field_changes_for_good_both_lines_are_odd() {
    let dose = |i: usize| {
        format!(
            "2026-{:02}-{:02} ramipril {} mg, pulse {}",
            1 + i / 28,
            1 + i % 28,
            if i < 40 { 5 } else { 10 },
            60 + i * 37 % 19
        )
    };
    assert_eq!(odd_among(dose, &[]), [dose(39), dose(40)]);
    let rent = |i: usize| {
        format!("{i};rent, flat {};{};-840.00", i * 37 % 61, if i < 60 { "DE12 1203 0000" } else { "LT87 3250 0441" })
    };
    assert_eq!(odd_among(rent, &[]), [rent(59), rent(60)]);
    // Months count on, and three groups of a few lines are none.
    let month = |i: usize| format!("{i},2026-{:02},{}.50", 3 + i / 50, 10 + i * 37 % 60);
    assert!(odd_among(month, &[]).is_empty());
    let shift = |i: usize| format!("{i},{},{}.50", ["early", "late", "night"][i / 4 % 3], 10 + i * 37 % 60);
    assert!(odd_among(shift, &[]).is_empty());
}

#[test]
fn a_row_that_contradicts_itself_is_odd() {
    let train = |i: usize| {
        let (from, to) = (300 + i * 7, 302 + i * 7 + i % 3);
        format!(
            "RE{} {:02}:{:02} {:02}:{:02} {}",
            4000 + i * 37 % 91,
            from / 60,
            from % 60,
            to / 60,
            to % 60,
            1 + i % 9
        )
    };
    assert_eq!(odd_among(train, &[(61, "RE4011 12:31 12:09 4")]), ["RE4011 12:31 12:09 4"]);
    let of = |i: usize| 400 + i * i * 391 % 2200;
    let votes = |i: usize| format!("P-{i:03},{},{}", of(i), of(i) * (6 + i % 3) / 10);
    assert_eq!(odd_among(votes, &[(61, "P-061,720,951")]), ["P-061,720,951"]);
    // By chance of two columns that say nothing of each other, and where many do.
    let apart = |i: usize| format!("c{i},{},{}", i * 37 % 90, 60 + i * 41 % 97);
    assert!(odd_among(apart, &[]).is_empty());
}

#[test]
fn what_falls_where_all_else_rises_is_odd() {
    let meter = |i: usize| format!("{i:02};1EMH007712;{}.{}", 18_000 + i * 11 + i * 37 % 9, i * 7 % 10);
    assert_eq!(odd_among(meter, &[(61, "61;1EMH007712;18402.5")]), ["61;1EMH007712;18402.5"]);
    // A day begins anew.
    let clock = |i: usize| format!("{} backup of vm{} done", (i * 1000 / 60 + 600) % 1440, i * 37 % 61);
    assert!(odd_among(clock, &[]).is_empty(), "{:?}", odd_among(clock, &[]));
}

#[test]
fn several_lines_of_a_kind_are_odd() {
    type Line = fn(usize) -> String;
    let cases: [(Line, Line); 7] = [
        (|i| format!("ok {i} - reads part {}", i % 7), |i| format!("not ok {i} - refuses a voucher that is over")),
        (|i| format!("\tmodified:   src/f{i}.ts"), |i| format!("\tboth modified:   src/g{i}.ts")),
        (|i| format!("\tmodified:   src/f{i}.ts"), |i| format!("\tdeleted:    src/g{i}.ts")),
        (|i| format!("net[{i}]: Refreshing state..."), |i| format!("  # db{i} will be destroyed")),
        (|i| format!("  svc{i}.service loaded active running"), |i| format!("  s{i}.service loaded inactive dead")),
        (|i| format!("-rw-r--r-- 1 app app {} f{i}", 100 + i * 37 % 900), |i| format!("-rw-r--r-- 1 root root 7 f{i}")),
        (|i| format!("ok  \tgithub.com/a/p{i}\t0.{i:03}s"), |i| format!("?   \tgithub.com/a/p{i}\t[no test files]")),
    ];
    for (line, odd_line) in cases {
        for several in [2, 3, 5] {
            let expected: Vec<String> = (0..several).map(|nth| odd_line(20 + nth * 11)).collect();
            let places: Vec<(usize, &str)> = (0..several).map(|nth| (20 + nth * 11, &*expected[nth])).collect();
            assert_eq!(odd_among(line, &places), expected);
        }
    }
    // One line in five is a kind.
    assert_eq!(odd_among(|i| if i % 5 == 0 { format!("# part {i}") } else { format!("{i} {}", i * 7) }, &[]).len(), 0);
}
