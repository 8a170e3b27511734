//! Finds what a call has made in its result: the number of an order, the address of a page.

use super::fields::{Field, fields};
use super::words;
use crate::text::bytes::has_digit;

/// Returns what names that which a call of `tool` has made: its number, key or link.
///
/// Of several identifiers that which is called as the object of the call, else the outermost; none of what it belongs to. Beside a
/// number as `id` a `key` or `number` is what other calls take: "OPS-12" of an issue. What the call's `arguments` name it has not made.
pub fn made(tool: &str, arguments: &str, result: &str) -> Option<String> {
    let objects = words(tool);
    let rate = |field: Field<'_>| {
        let (key, within) = (words(field.key), words(field.within));
        let (last, before) = key.split_last()?;
        let is = |list: &[&str], word: &String| list.contains(&word.as_str());
        let is_named = is(&IDENTIFIERS, last) || (before.is_empty() && is(&RECEIPTS, last));
        if !is_named || !is_identifier(last, field.value.trim_end_matches('.')) {
            return None;
        }
        let is_of_object = |words: &[String]| words.iter().any(|word| objects.contains(word));
        let is_of_others = |words: &[String]| words.iter().any(|word| is(&OTHERS, word));
        let is_objects = is_of_object(&key) || (before.is_empty() && is_of_object(&within));
        let is_others = is_of_others(before) || (before.is_empty() && is_of_others(&within));
        let rank = match () {
            () if is_objects && !is_others => 0,
            () if is_others && !is_objects => return None,
            () if is_others => 2,
            () if is(&RECEIPTS, last) || before.iter().any(|word| is(&RECEIPTS, word)) => 1,
            () if last == "id" && !field.value.bytes().all(|byte| byte.is_ascii_digit()) => 2,
            () if before.is_empty() && is(&HANDLES, last) => 3,
            () if last == "id" => 4,
            () => 5,
        };
        Some((rank, field.depth))
    };
    let is_new = |field: &Field<'_>| !arguments.contains(&format!("\"{}\"", field.value));
    let rated = fields(result).filter(is_new).filter_map(|field| Some((rate(field)?, field.value)));
    rated.min_by_key(|(rank, _)| *rank).map(|(_, value)| value.trim_end_matches('.').to_owned())
}

/// Returns whether a value may name something; a number as a code says how it went.
fn is_identifier(key: &str, value: &str) -> bool {
    (1..=MAX_IDENTIFIER_BYTES).contains(&value.len())
        && has_digit(value)
        && !value.contains(' ')
        && !(key == "code" && value.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Longest value that names something.
const MAX_IDENTIFIER_BYTES: usize = 100;

/// Last words of keys whose value names something; those that do so alone or before another word; and first words of those that name
/// what it belongs to.
const IDENTIFIERS: [&str; 15] =
    ["id", "key", "number", "no", "nr", "code", "reference", "ref", "uuid", "eid", "sha", "url", "link", "num", "ts"];
/// Keys of what people and other calls name a thing by.
const HANDLES: [&str; 3] = ["key", "number", "ts"];
const RECEIPTS: [&str; 12] = [
    "receipt",
    "confirmation",
    "booking",
    "reservation",
    "order",
    "invoice",
    "transaction",
    "tracking",
    "pnr",
    "ticket",
    "reference",
    "locator",
];
const OTHERS: [&str; 34] = [
    "request",
    "trace",
    "correlation",
    "session",
    "user",
    "owner",
    "project",
    "customer",
    "client",
    "account",
    "parent",
    "thread",
    "channel",
    "chat",
    "org",
    "organization",
    "team",
    "workspace",
    "author",
    "creator",
    "sender",
    "recipient",
    "assignee",
    "existing",
    "duplicate",
    "flight",
    "tenant",
    "group",
    "member",
    "product",
    "calendar",
    "conflicts",
    "phone",
    "error",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_call_made_is_named_as_its_object_and_not_as_what_it_belongs_to() {
        for (tool, result, named) in [
            ("create_ticket", r#"{"project": {"id": "P-111"}, "ticket": {"id": "T-555"}}"#, "T-555"),
            ("create_ticket", r#"{"user": {"id": "U-111"}, "id": "T-555"}"#, "T-555"),
            ("create_ticket", r#"{"code": 200, "message": "OK", "data": {"id": "T-555"}}"#, "T-555"),
            ("create_ticket", r#"{"owner_id": "U-111", "ticket_id": "T-555"}"#, "T-555"),
            ("create_ticket", r#"{"assignee": {"id": "U-111"}, "number": 555}"#, "555"),
            ("create_ticket", r#"{"number": 1, "id": "T-555"}"#, "T-555"),
            ("create_issue", r#"{"id": 2096143883, "number": 555, "state": "open"}"#, "555"),
            ("create_issue", r#"{"id": "10093", "key": "OPS-555"}"#, "OPS-555"),
            ("post_message", r#"{"ok": true, "channel": "C02", "ts": "1712.555"}"#, "1712.555"),
            ("create_event", r#"{"trace_id": "tr-111", "result": {"event": {"id": "E-555"}}}"#, "E-555"),
            (
                "create_event",
                r#"{"calendar_id": "c-1", "conflicts": [{"id": "E-111"}], "event": {"id": "E-555"}}"#,
                "E-555",
            ),
            ("book_flight", r#"{"customer_number": "C-111", "booking": {"reference": "B-555"}}"#, "B-555"),
            ("book_flight", r#"{"flight_number": "TP579", "pnr": "B555XQ"}"#, "B555XQ"),
            ("send_email", r#"{"thread_id": "th-111", "message_id": "m-555"}"#, "m-555"),
            (
                "create_issue",
                r#"{"content": [{"type": "text", "text": "{\"number\": 1442, \"url\": \"https://git.host/a/1442\"}"}]}"#,
                "1442",
            ),
            ("create_ticket", "{'ok': True, 'ticket': {'id': 'T-555'}}", "T-555"),
            ("create_ticket", "ok: true\nticket:\n  id: T-555\n", "T-555"),
            ("create_ticket", "<ticket><id>T-555</id></ticket>", "T-555"),
            ("place_order", "Created.\n```json\n{\"order_no\": \"A-99812\"}\n```", "A-99812"),
            ("book_table", "Booked. Confirmation code: QX77P.", "QX77P"),
            ("upload_file", r#"{"url": "https://files.host/f/8812"}"#, "https://files.host/f/8812"),
        ] {
            assert_eq!(made(tool, "", result).as_deref(), Some(named), "{result}");
        }
        for nothing in
            ["", "ok", r#"{"id": null}"#, r#"{"request_id": "r-1"}"#, r#"{"code": 200}"#, r#"{"at": "10:30"}"#]
        {
            assert_eq!(made("create_ticket", "", nothing), None, "{nothing}");
        }
    }
}
