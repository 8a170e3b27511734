//! Parses answers of the server.

use std::collections::BTreeMap;

use redis::Value;

use super::super::{Head, SessionEvent, SessionKey, State, StoredSummary};
use super::packed;

/// An answer of an unexpected form.
#[derive(Debug)]
pub struct Odd;

/// The rest of an answer.
pub struct Reply(std::vec::IntoIter<Value>);

impl Iterator for Reply {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        self.0.next()
    }
}

impl Reply {
    /// Returns the parts of an answer that is a list.
    pub fn of(value: Value) -> Result<Self, Odd> {
        match value {
            Value::Array(values) => Ok(Self(values.into_iter())),
            _ => Err(Odd),
        }
    }

    /// Returns how many parts are left.
    pub fn left(&self) -> usize {
        self.0.len()
    }

    /// Returns the next part, a list.
    pub fn list(&mut self) -> Result<Self, Odd> {
        Self::of(self.next().ok_or(Odd)?)
    }

    /// Returns the next part, bytes.
    pub fn bytes(&mut self) -> Result<Vec<u8>, Odd> {
        match self.next() {
            Some(Value::BulkString(bytes)) => Ok(bytes),
            Some(Value::SimpleString(text)) => Ok(text.into_bytes()),
            Some(Value::Int(number)) => Ok(number.to_string().into_bytes()),
            _ => Err(Odd),
        }
    }

    /// Returns the next part, text.
    pub fn text(&mut self) -> Result<String, Odd> {
        String::from_utf8(self.bytes()?).map_err(|_| Odd)
    }

    fn parsed<T: std::str::FromStr>(&mut self) -> Result<T, Odd> {
        self.text()?.parse().map_err(|_| Odd)
    }

    /// Returns the next part, a number.
    pub fn number(&mut self) -> Result<u64, Odd> {
        self.parsed()
    }

    /// Returns the next part, a time in milliseconds.
    pub fn time(&mut self) -> Result<i64, Odd> {
        self.parsed()
    }

    /// Reads a session, but its key.
    pub fn head(&mut self, key: SessionKey) -> Result<Head, Odd> {
        Ok(Head {
            key,
            generation: self.text()?,
            seq: self.number()?,
            first_seq: self.number()?,
            created_ms: self.time()?,
            updated_ms: self.time()?,
            meta: self.text()?,
        })
    }

    /// Reads names and values in turn to the end.
    pub fn state(mut self) -> Result<State, Odd> {
        let mut state = BTreeMap::new();
        while self.left() > 0 {
            state.insert(self.text()?, self.bytes()?);
        }
        Ok(state)
    }

    /// Reads an entry of a stream: its number, and its fields without their names.
    fn entry(value: Value) -> Result<(u64, Self), Odd> {
        let mut entry = Self::of(value)?;
        let number = entry.text()?.split_once('-').and_then(|(number, _)| number.parse().ok()).ok_or(Odd)?;
        let values: Vec<Value> = entry.list()?.skip(1).step_by(2).collect();
        Ok((number, Self(values.into_iter())))
    }

    /// Reads events to the end.
    pub fn events(self) -> Result<Vec<SessionEvent>, Odd> {
        let event = |value| {
            let (seq, mut fields) = Self::entry(value)?;
            packed::event(seq, &fields.bytes()?, fields.text()?).ok_or(Odd)
        };
        self.map(event).collect()
    }

    /// Reads summaries to the end.
    pub fn summaries(self) -> Result<Vec<StoredSummary>, Odd> {
        let summary = |value| {
            let (_, mut fields) = Self::entry(value)?;
            Ok(StoredSummary {
                id: fields.text()?,
                filter_key: fields.text()?,
                version: fields.number()?,
                first_seq: fields.number()?,
                last_seq: fields.number()?,
                text: fields.text()?,
                record: fields.text()?,
                created_ms: fields.time()?,
                links: packed::links(&fields.bytes()?).ok_or(Odd)?,
            })
        };
        self.map(summary).collect()
    }
}
