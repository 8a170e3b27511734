use serde_json::{Value, json};

use crate::text::elision::Marks;
use crate::text::segments::tests::{class_of, numbered, with_classes};
use crate::text::segments::{Class, Segments};

#[test]
fn rows_of_json_that_differ_stand_out() {
    let mut rows: Vec<String> = (0..60)
        .map(|i| {
            format!(
                r#"{{"id": {i}, "title": "Result {i}", "url": "https://ex.org/{i}", "score": 0.{i:03}, "status": "ok", "snippet": "lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor"}}"#
            )
        })
        .collect();
    rows[30] = rows[30].replace("\"ok\"", "\"FAILED-482910\"");
    rows[41] = rows[41].replace("0.041", "991.50e7");
    rows[47] = rows[47].replace("\"url\"", "\"link\"");
    rows[52] = rows[52].replace("\"Result 52\"", "null");
    let text = format!("[{}]", rows.join(", "));
    let out = with_classes(&text, &[Class::Outlier, Class::Header], Some("r.json"));
    assert!(out.contains("FAILED-482910") && out.contains("991.50e7") && out.contains("\"link\""), "{out}");
    assert!(out.contains("\"title\": null"), "{out}");
    assert!(out.contains("\"… 29 of 60 rows left out; all of it: r.json …\""), "{out}");
    assert_eq!(serde_json::from_str::<Vec<Value>>(&out).unwrap().len(), 10, "{out}");
    assert_eq!(class_of(&text, "\"id\": 0,"), Class::Header);
    assert_eq!(class_of(&text, "\"id\": 59,"), Class::Edge);
    // Once more: the counts add up.
    let again = with_classes(&out, &[Class::Header, Class::Edge], None);
    assert!(again.contains(" of 60 rows left out"), "{again}");
}

#[test]
fn a_long_string_in_json_is_opened() {
    let log: String = numbered(0..80, |i| format!("line {i} \\\"quoted\\\" of the output \\u4e2d\\n"));
    let text =
        format!(r#"{{"exit_code": 1, "stdout": "{log}ValueError: bad input\n", "n": 123456789012345678901234}}"#);
    let out = with_classes(&text, &[Class::Error], None);
    let value: Value = serde_json::from_str(&out).unwrap();
    assert!(value["stdout"].as_str().unwrap().ends_with("ValueError: bad input\n"), "{out}");
    assert!(value["stdout"].as_str().unwrap().contains(" lines, "), "{out}");
    assert!(out.starts_with("{\"exit_code\": 1"), "{out}");
    assert!(out.len() < 400, "{out}");
}

/// Returns `text` with the pieces that have one of `wanted`, and what they stand under.
fn short(text: &str, wanted: &[&str]) -> String {
    let segments = Segments::of(text);
    let has = |piece: usize| wanted.iter().any(|wanted| text[segments.pieces()[piece].range()].contains(wanted));
    segments.excerpt(text, &has, Marks::default())
}

#[test]
fn members_without_a_value_say_nothing() {
    let text = json!({
        "status": "delivered",
        "items": [{"name": "Lamp", "id": 1}, {"name": "Desk", "id": 2}],
        "cancel_reason": null,
        "note": "",
        "tags": [],
    });
    let text = text.to_string();
    assert_eq!(class_of(&text, "\"cancel_reason\""), Class::Noise, "{text}");
    assert_eq!(class_of(&text, "\"status\""), Class::Plain);
}

#[test]
fn where_a_listing_goes_on_stands_out() {
    let rows: Vec<Value> = (0..40).map(|i| json!({"name": format!("web-{i}"), "phase": "Running"})).collect();
    for (key, value) in [
        ("metadata", json!({"continue": "eyJ2IjoibWV0YS5rOHMuaW8", "resourceVersion": "882211"})),
        ("response_metadata", json!({"next_cursor": "dXNlcjpVMDYxTkZUVDI="})),
        ("paging", json!({"next": {"after": "25"}})),
        ("nextPageToken", json!("CAUQAA-of-the-second-page")),
        ("@odata.nextLink", json!("https://graph.host/me/messages?$skip=10")),
    ] {
        let text = json!({"items": rows, key: value}).to_string();
        assert_eq!(class_of(&text, &format!("\"{key}\"")), Class::Cursor, "{key}");
    }
    for value in [json!({"next_cursor": ""}), json!({"next_cursor": null}), json!({"next_run": "10:30"})] {
        let text = json!({"items": rows, "response_metadata": value}).to_string();
        assert_ne!(class_of(&text, "\"response_metadata\""), Class::Cursor, "{text}");
    }
}

#[test]
fn titles_that_are_about_errors_hide_no_row_that_differs() {
    let about = |i: usize| ["colour", "crash", "menu", "failure", "print"][i % 5];
    let issue = |i: usize| json!({"number": 4000 + i, "title": format!("{} {} of the page {i}", ["Login", "Search"][i % 2], about(i)), "locked": i == 62});
    let text = json!((0..100).map(issue).collect::<Vec<_>>()).to_string();
    let out = with_classes(&text, &[Class::Outlier, Class::Error], None);
    assert!(out.contains("4062") && out.matches("number").count() < 8, "{out}");
}

#[test]
fn what_stays_of_a_large_row_has_its_name() {
    let event = |i: usize| {
        let guests =
            json!([{"mail": format!("u{i}a@x.org"), "says": "yes"}, {"mail": format!("u{i}b@x.org"), "says": "no"}]);
        let title = ["Tea", "Lunch", "Walk"][i % 3].repeat(i / 3 + 1);
        json!({"kind": "event", "id": format!("ev_{:04}", i * 791 % 1_000), "title": title, "place": "Room of the north wing", "notes": "lorem ipsum dolor sit amet ".repeat(12), "guests": guests})
    };
    let events: Vec<Value> = (0..12).map(event).collect();
    let wrapped = json!({"content": [{"type": "text", "text": json!({"items": events}).to_string()}]});
    for text in [json!({"items": events}).to_string(), wrapped.to_string()] {
        let short = short(&text, &["u7b@"]);
        let named = format!("ev_{:04}", 7 * 791 % 1_000);
        assert!(
            short.contains(&named) && short.contains("LunchLunchLunch") && short.matches("ev_").count() == 1,
            "{short}"
        );
    }
}

#[test]
fn the_rows_of_a_group_have_its_name() {
    let item = |i: usize| json!({"sku": format!("S-{i}"), "price": 10 + i, "name": "a lamp of brass, two arms, with a switch"});
    let group = |g: usize| json!({"shop": format!("Shop of street {g}"), "items": (g * 9..g * 9 + 9).map(item).collect::<Vec<_>>()});
    let text = json!({"groups": (0..6).map(group).collect::<Vec<_>>()}).to_string();
    let short = short(&text, &["\"S-40\""]);
    assert!(short.contains("Shop of street 4") && short.matches("Shop").count() == 1, "{short}");
}

#[test]
fn the_rows_of_a_list_have_what_stands_beside_it() {
    let node = |i: usize| json!({"node": {"id": format!("gid://x/P/{}", i * 7919), "title": format!("Lamp {i}"), "variants": [{"price": format!("{i}.50")}]}});
    let products = json!({"edges": (0..28).map(node).collect::<Vec<_>>(), "pageInfo": {"hasNextPage": false}});
    let shop = json!({"name": "Cordoba", "currencyCode": "CHF", "isOpen": true, "products": products});
    let short = short(&json!({"data": {"shop": shop}}).to_string(), &["Lamp 17"]);
    assert!(short.contains("Cordoba") && short.contains("CHF") && !short.contains("isOpen"), "{short}");
}

#[test]
fn rows_without_keys_have_their_columns() {
    let columns = ["sku", "title of the product", "price in euros", "units in stock", "last delivery"];
    let row = |i: usize| json!([format!("S-{i}"), format!("Lamp {i}"), 10 + i, 100 - i, "2026-05-01"]);
    let rows: Vec<Value> = (0..40).map(row).collect();
    let beside = json!({"rows": rows, "columns": columns, "count": 40}).to_string();
    let first = json!({"values": std::iter::once(json!(columns)).chain(rows).collect::<Vec<_>>()}).to_string();
    for text in [beside, first] {
        let short = short(&text, &["\"S-30\""]);
        assert!(short.contains("units in stock") && short.matches("S-").count() == 1, "{short}");
    }
    let other = json!({"rows": (0..40).map(row).collect::<Vec<_>>(), "tags": ["a long word", "another of them"]});
    assert!(!short(&other.to_string(), &["\"S-30\""]).contains("another"));
}

#[test]
fn members_left_out_are_counted_under_a_free_key() {
    let members: Vec<String> = (0..12).map(|i| format!("\"key {i}\": \"{}\"", "value ".repeat(9))).collect();
    let text = format!("{{\"…\": \"mine {}\", {}}}", "x".repeat(60), members.join(", "));
    let segments = Segments::of(&text);
    let out = segments.excerpt(&text, &|i| i == 0 || i == 5, Marks::default());
    let value: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["…2"], "11 of 13 keys left out", "{out}");
}

/// Asserts that of many values that `record` makes, one where `change` was made stands out, and hardly another.
fn stands_out(shape: &str, text_of: impl Fn(&[Value]) -> String, change: impl Fn(&mut Value), odd: &str) {
    let record = |i: usize| {
        let (region, owner) = (["eu", "us"][i % 2], ["ann", "bob", "cy"][i % 3]);
        json!({
            "meta": {"id": 1000 + i, "labels": {"region": region, "owner": owner}},
            "status": {"phase": "active", "conditions": [{"type": "Ready", "value": "True"}, {"type": "Cpu", "value": 10 + i * 37 % 70}]},
        })
    };
    for at in [3, 200, 396] {
        let mut records: Vec<Value> = (0..400).map(record).collect();
        change(&mut records[at]);
        let text = text_of(&records);
        let segments = Segments::of(&text);
        let odd_ones: Vec<&str> = segments
            .pieces()
            .iter()
            .filter(|piece| piece.class.stands_out())
            .map(|piece| &text[piece.range()])
            .collect();
        assert!(odd_ones.len() <= 3 && odd_ones.iter().any(|piece| piece.contains(odd)), "{shape} {at}: {odd_ones:?}");
    }
}

#[test]
fn a_cell_that_differs_stands_out_however_deep_it_lies() {
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap();
    let list = |records: &[Value]| pretty(&json!({"apiVersion": "v1", "items": records}));
    let lines = |records: &[Value]| records.iter().map(|record| record.to_string() + "\n").collect::<String>();
    let by_name = |records: &[Value]| {
        let named = records.iter().enumerate().map(|(i, record)| (format!("svc-{i:05x}"), record.clone()));
        pretty(&Value::Object(named.collect()))
    };
    let large = |records: &[Value]| {
        let mut records = records.to_vec();
        for record in &mut records {
            record["spec"] = (0..20).map(|i| (format!("field{i}"), json!("the same value in each"))).collect();
        }
        pretty(&records.into())
    };
    stands_out("list", list, |record| record["status"]["phase"] = "quarantined".into(), "quarantined");
    stands_out("lines", lines, |record| record["status"]["conditions"][1]["value"] = 91_823.into(), "91823");
    stands_out("by name", by_name, |record| record["meta"]["labels"]["owner"] = "mallory".into(), "mallory");
    stands_out("by name", by_name, |record| record["meta"]["labels"]["quirk"] = true.into(), "quirk");
    stands_out("large", large, |record| record["status"]["phase"] = "quarantined".into(), "quarantined");
}

#[test]
fn a_column_of_few_rows_has_its_own_usual_values() {
    let event = |i: usize| match i % 3 {
        0 => json!({"event": "login", "user": format!("u{i}"), "reason": "bad password"}),
        1 => json!({"event": "payment", "amount": 10 + i % 90, "currency": "EUR"}),
        _ => json!({"event": "heartbeat", "seq": i}),
    };
    let mut events: Vec<Value> = (0..600).map(event).collect();
    events[301]["currency"] = "KPW".into();
    events[420]["reason"] = "impossible travel".into();
    let out = with_classes(&Value::from(events).to_string(), &[Class::Outlier], None);
    assert!(out.contains("KPW") && out.contains("impossible travel"), "{out}");
    assert!(serde_json::from_str::<Vec<Value>>(&out).unwrap().len() < 12, "{out}");
}

#[test]
fn text_in_strings_is_read_as_the_text_that_it_is() {
    let line = |i: usize| match i {
        301 => "10:05:01 INFO sent 900000 messages to ledger".to_owned(),
        _ => format!("10:{:02}:{:02} INFO sent {} messages to queue", i / 60, i % 60, 1000 + i * 37 % 8000),
    };
    let lines: Vec<String> = (0..600).map(line).collect();
    let numbered: Vec<String> = lines.iter().enumerate().map(|(i, line)| format!("{}\t{line}", i + 1)).collect();
    for value in [
        json!({"stdout": lines.join("\n"), "exit_code": 0}),
        json!({"content": numbered.join("\n")}),
        json!({"lines": lines}),
    ] {
        let out = with_classes(&value.to_string(), &[Class::Outlier], None);
        assert!(out.contains("sent 900000 messages to ledger") && out.len() < 900, "{out}");
        serde_json::from_str::<Value>(&out).unwrap();
    }
}

#[test]
fn a_string_of_another_form_stands_out_where_all_values_differ() {
    type Cell = fn(usize) -> Value;
    let cases: [(Cell, Value); 6] = [
        (|i| json!(format!("https://n{i}.corp.example/v1")), json!("http://localhost:9/m")),
        (|i| json!(format!("job {i} is deployed to staging")), json!("never restart the payment worker by hand")),
        (|i| json!(format!("{}Mi", 10 + i * 7 % 80)), json!("64Gi")),
        (|i| json!(format!("10.0.{i}.{}", i * 7 % 250)), json!("203.0.113.9")),
        (|i| json!(format!("{:07x}", i * 7_919_291 % 268_435_455)), json!("uncommitted")),
        (|i| json!([format!("read_{i}")]), json!([])),
    ];
    for (cell, odd) in cases {
        let row = |i: usize| json!({"id": i, "of": if i == 77 { odd.clone() } else { cell(i) }});
        let rows: Vec<String> = (0..150).map(|i| row(i).to_string()).collect();
        for text in [format!("[{}]", rows.join(",")), rows.join("\n")] {
            let out = with_classes(&text, &[Class::Outlier], None);
            assert!(out.contains(&rows[77]) && out.len() < 400, "{odd}: {out}");
        }
    }
}

#[test]
fn what_an_object_says_of_its_failure_is_an_error() {
    for failure in [
        json!({"url": "https://api.example/v1/quota", "status": 403, "detail": "token lacks scope billing:read"}),
        json!({"error": {"code": "E42", "at": "2026-11-27T10:00:00Z", "id": "7f3a91c2", "detail": "token lacks scope billing:read"}}),
        json!({"status": 403, "detail": "token lacks scope"}),
    ] {
        assert_eq!(class_of(&failure.to_string(), "token lacks"), Class::Error, "{failure}");
    }
    let done = json!({"url": "https://api.example/v1/quota", "status": 201, "detail": "token has scope billing:read"});
    assert_ne!(class_of(&done.to_string(), "token has"), Class::Error);
}

#[test]
fn an_odd_cell_of_a_large_row_comes_with_what_names_the_row() {
    let state = |i: usize| if i == 26 { json!({"waiting": "back-off"}) } else { json!({"running": "since 10:00"}) };
    let pod = |i: usize| {
        json!({
            "kind": "Pod", "uid": format!("{:032x}", i * 7_919_919), "name": format!("mail-worker-{i}"),
            "spec": (0..12).map(|k| (format!("field{k}"), json!("the same value in each of them"))).collect::<serde_json::Map<_, _>>(),
            "containers": [{"state": state(i)}],
        })
    };
    let pods: Vec<Value> = (0..40).map(pod).collect();
    let out = with_classes(&serde_json::to_string_pretty(&pods).unwrap(), &[Class::Outlier], None);
    for said in ["back-off", "mail-worker-26", pods[26]["uid"].as_str().unwrap()] {
        assert!(out.contains(said), "{said}: {out}");
    }
    assert!(!out.contains("mail-worker-25") && out.len() < 900, "{out}");
}

#[test]
fn rows_in_groups_are_compared_with_those_of_all_groups() {
    let states = ["paid", "shipped", "open"];
    let order = |i: usize| json!({"id": 1_000 + i * 37, "state": if i == 44 { "chargeback" } else { states[i * 7 % 11 % 3] }, "note": "left at the door of the house"});
    let group =
        |g: usize| json!({"group": format!("Depot {g}"), "items": (g * 6..g * 6 + 6).map(order).collect::<Vec<_>>()});
    let text = json!({"groups": (0..10).map(group).collect::<Vec<_>>()}).to_string();
    let segments = Segments::of(&text);
    let odd: Vec<&str> = segments
        .pieces()
        .iter()
        .filter(|piece| piece.class == Class::Outlier)
        .map(|piece| &text[piece.range()])
        .collect();
    assert!(matches!(odd[..], [odd] if odd.contains("chargeback")), "{odd:?}");
}

#[test]
fn json_in_a_string_is_json_when_parts_of_it_go() {
    let row = |i: usize| json!({"id": 1_000 + i, "name": format!("svc-{i}"), "state": if i == 41 { "failed" } else { "active" }});
    let said = serde_json::to_string_pretty(&json!({"items": (0..90).map(row).collect::<Vec<_>>()})).unwrap();
    let twice = json!({"result": json!({"text": said}).to_string()});
    for value in [json!({"content": [{"type": "text", "text": said}]}), json!([said, "done"]), twice] {
        let path = r#"C:\"a".txt"#;
        let out = with_classes(&value.to_string(), &[Class::Outlier], Some(path));
        let mut inner: Value = serde_json::from_str(&out).unwrap();
        while let Some(said) = ["/content/0/text", "/0", "/result", "/text"].iter().find_map(|at| inner.pointer(at)) {
            inner = serde_json::from_str(said.as_str().unwrap()).unwrap();
        }
        let rows = inner["items"].as_array().unwrap();
        assert!(
            rows.len() < 6 && rows.iter().any(|row| *row == json!({"id": 1041, "name": "svc-41", "state": "failed"})),
            "{out}"
        );
        assert_eq!(out.matches(".txt").count(), 1, "{out}");
    }
}

#[test]
fn objects_behind_each_other_and_json_in_one_string_are_compared() {
    let row = |i: usize| json!({"id": 1_000 + i, "name": format!("svc-{i}"), "state": if i == 41 { "failed" } else { "active" }});
    let rows: Vec<Value> = (0..90).map(row).collect();
    for between in ["", " ", "\n"] {
        let text = rows.iter().map(Value::to_string).collect::<Vec<_>>().join(between);
        let out = with_classes(&text, &[Class::Outlier], None);
        let values: Vec<Value> = serde_json::Deserializer::from_str(&out).into_iter().map(Result::unwrap).collect();
        assert!(values.contains(&rows[41]) && values.len() < 6, "{out}");
    }
    let out = with_classes(&json!(json!(rows).to_string()).to_string(), &[Class::Outlier], None);
    let inner: Value = serde_json::from_str(serde_json::from_str::<Value>(&out).unwrap().as_str().unwrap()).unwrap();
    assert!(inner.as_array().unwrap().contains(&rows[41]) && out.len() < 400, "{out}");
}

#[test]
fn numbers_in_quotes_and_of_members_are_compared() {
    let sample = |i: usize| if i == 301 { "87.40".to_owned() } else { format!("20.{:02}", i * 37 % 100) };
    let samples: Vec<Value> = (0..400).map(|i| json!([1_746_950_000 + i * 60, sample(i)])).collect();
    let metric = |i: usize| (format!("metric.{}.{i:03}", ["cpu", "net", "disk"][i % 3]), json!(100 + i * 37 % 900));
    let mut metrics: serde_json::Map<String, Value> = (0..300).map(metric).collect();
    metrics["metric.net.100"] = json!(-1);
    for (value, odd) in [(json!({"values": samples}), "87.40"), (json!({"metrics": metrics}), "\"metric.net.100\":-1")]
    {
        let out = with_classes(&value.to_string(), &[Class::Outlier], None);
        assert!(out.contains(odd) && out.len() < 400, "{out}");
    }
}

/// Returns a JSON value made of numbers without an order.
fn any_value(next: &mut impl FnMut(usize) -> usize, depth: usize) -> Value {
    match next(if depth == 0 { 6 } else { 10 }) {
        0 => Value::Null,
        1 => (next(2) == 0).into(),
        2 => json!(next(100_000)),
        3 => json!(f64::from(u16::try_from(next(60_000)).unwrap()) / 100.0),
        4 => "word é \"quoted\" it's 中文 \\ \n".repeat(next(30)).into(),
        5 => ["ok", "", "{", "[…1 line]", "… 3 of 9 rows left out …"][next(5)].into(),
        6 | 7 => {
            let (count, is_alike) = (next(40), next(2) == 0);
            let first = any_value(next, depth - 1);
            (0..count).map(|_| if is_alike { first.clone() } else { any_value(next, depth - 1) }).collect()
        }
        _ => {
            let member =
                |i: usize| (format!("{}{}", ["id", "name", "it's", "中"][i % 4], i / 4), any_value(next, depth - 1));
            Value::Object((0..12).map(member).collect())
        }
    }
}

#[test]
fn whatever_stays_of_json_is_json_and_of_what_is_nearly_json_it_is_source_and_marks() {
    let mut state = 7_u64;
    let mut next = |of: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % of
    };
    for _ in 0..60 {
        let value = json!([any_value(&mut next, 3), any_value(&mut next, 3), any_value(&mut next, 3)]);
        let json = if next(2) == 0 { value.to_string() } else { serde_json::to_string_pretty(&value).unwrap() };
        let python = json.replace("null", "None").replace("true", "True").replace("false", "nan");
        let cut = &json[..json.floor_char_boundary(next(json.len()))];
        let wrapped = json!({"content": [{"type": "text", "text": json}], "isError": false}).to_string();
        for text in [&json, &python, cut, &wrapped] {
            let segments = Segments::of(text);
            let end = segments.pieces().iter().fold(0, |end, piece| {
                assert!(piece.start == end && piece.end > end, "pieces cover the text: {text}");
                piece.end
            });
            assert_eq!(end as usize, text.len(), "{text}");
            for share in [1, 3, 7] {
                let kept: Vec<bool> = segments.pieces().iter().map(|_| next(8) < share).collect();
                let short = segments.excerpt(text, &|piece| kept[piece], Marks::default());
                if *text == *json {
                    serde_json::from_str::<serde::de::IgnoredAny>(&short)
                        .unwrap_or_else(|error| panic!("{error}: {short}"));
                }
                if *text == *wrapped {
                    let short: Value = serde_json::from_str(&short).unwrap_or_else(|error| panic!("{error}: {short}"));
                    let inner = short["content"][0]["text"].as_str();
                    inner.map(|inner| {
                        serde_json::from_str::<Value>(inner).unwrap_or_else(|error| panic!("{error}: {inner}"))
                    });
                }
                let again = Segments::of(&short);
                again.excerpt(&short, &|piece| piece % 2 == 0, Marks::default());
            }
        }
    }
}
