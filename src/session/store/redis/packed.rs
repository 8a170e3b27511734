//! Several texts in one value that the scripts only pass on: each is its length, a colon and its bytes.

use super::super::{Delta, EventKind, NewEvent, SessionEvent, Ttl};

fn put(packed: &mut Vec<u8>, bytes: &[u8]) {
    packed.extend_from_slice(bytes.len().to_string().as_bytes());
    packed.push(b':');
    packed.extend_from_slice(bytes);
}

fn take<'a>(packed: &mut &'a [u8]) -> Option<&'a [u8]> {
    let colon = packed.iter().position(|byte| *byte == b':')?;
    let length: usize = std::str::from_utf8(&packed[..colon]).ok()?.parse().ok()?;
    let end = (colon + 1).checked_add(length)?;
    let bytes = packed.get(colon + 1..end)?;
    *packed = &packed[end..];
    Some(bytes)
}

fn text(packed: &mut &[u8]) -> Option<String> {
    String::from_utf8(take(packed)?.to_vec()).ok()
}

fn number<T: std::str::FromStr>(packed: &mut &[u8]) -> Option<T> {
    std::str::from_utf8(take(packed)?).ok()?.parse().ok()
}

/// Packs a change of an app's state; nothing for none. Several of them joined are one value too.
pub fn of_delta(delta: &Delta, ttl: Ttl) -> Vec<u8> {
    let mut packed = Vec::new();
    if !delta.is_empty() {
        put(&mut packed, ttl.0.to_string().as_bytes());
        put(&mut packed, delta.len().to_string().as_bytes());
    }
    for (name, value) in delta {
        put(&mut packed, name.as_bytes());
        put(&mut packed, if value.is_some() { b"1" } else { b"0" });
        put(&mut packed, value.as_deref().unwrap_or_default());
    }
    packed
}

/// Returns the changes of an app's state in `packed`, with their times to live.
pub fn deltas(mut packed: &[u8]) -> Option<Vec<(Ttl, Delta)>> {
    let mut deltas = Vec::new();
    while !packed.is_empty() {
        let ttl = Ttl(number(&mut packed)?);
        let mut delta = Delta::new();
        for _ in 0..number::<usize>(&mut packed)? {
            let name = text(&mut packed)?;
            let is_set = take(&mut packed)? == b"1";
            let value = take(&mut packed)?;
            delta.insert(name, is_set.then(|| value.to_vec()));
        }
        deltas.push((ttl, delta));
    }
    Some(deltas)
}

/// Packs an event without position and text; starts with its kind, a digit.
pub fn of_event(event: &NewEvent) -> Vec<u8> {
    let mut packed = (event.kind as u8).to_string().into_bytes();
    for part in [&event.id, &event.time_ms.to_string(), &event.author, &event.filter_key] {
        put(&mut packed, part.as_bytes());
    }
    packed
}

/// Returns the event at `seq`.
pub fn event(seq: u64, packed: &[u8], payload: String) -> Option<SessionEvent> {
    let (kind, mut packed) = packed.split_first()?;
    let kind = EventKind::of(kind.wrapping_sub(b'0'));
    let (id, time_ms) = (text(&mut packed)?, number(&mut packed)?);
    Some(SessionEvent { seq, id, time_ms, author: text(&mut packed)?, filter_key: text(&mut packed)?, kind, payload })
}

/// Packs the events that a summary was made of.
pub fn of_links(links: &[(u64, String)]) -> Vec<u8> {
    let mut packed = Vec::new();
    for (seq, id) in links {
        put(&mut packed, seq.to_string().as_bytes());
        put(&mut packed, id.as_bytes());
    }
    packed
}

/// Returns the events that a summary was made of.
pub fn links(mut packed: &[u8]) -> Option<Vec<(u64, String)>> {
    let mut links = Vec::new();
    while !packed.is_empty() {
        links.push((number(&mut packed)?, text(&mut packed)?));
    }
    Some(links)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_comes_out_again() {
        let delta = Delta::from([
            ("a:1:b".to_owned(), Some(vec![0, b':', 255])),
            (String::new(), None),
            ("字".to_owned(), Some(Vec::new())),
        ]);
        let two = [of_delta(&delta, Ttl(7)), of_delta(&Delta::from([("x".to_owned(), None)]), Ttl(0))].concat();
        let one_more = Delta::from([("x".to_owned(), None)]);
        assert_eq!(deltas(&two), Some(vec![(Ttl(7), delta), (Ttl(0), one_more)]));
        assert_eq!(of_delta(&Delta::new(), Ttl(7)), Vec::<u8>::new());
        let new = NewEvent { id: "a:b".to_owned(), time_ms: -7, kind: EventKind::Result, ..NewEvent::default() };
        let event = event(9, &of_event(&new), "字".to_owned()).unwrap();
        assert_eq!((event.seq, event.id, event.time_ms, event.kind), (9, new.id, -7, EventKind::Result));
        let made_of = vec![(1, "a:b".to_owned()), (u64::MAX, String::new())];
        assert_eq!(links(&of_links(&made_of)), Some(made_of));
    }

    #[test]
    fn what_is_damaged_is_told() {
        for damaged in ["1", "x:a", "9:abc", "1:5", "1:01:11:a", "18446744073709551615:a"] {
            assert_eq!(deltas(damaged.as_bytes()), None, "{damaged}");
            assert_eq!(event(1, damaged.as_bytes(), String::new()), None, "{damaged}");
        }
    }
}
