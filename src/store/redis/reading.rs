//! Reading a session: one picture of it, however many events it has.

use super::super::{Event, Head, Loaded, Scope, SessionKey, SessionStore, StoreError, StoreResult, Window};
use super::Redis;
use super::scripts::LOAD;
use super::server::Run;

/// Events that are read at once. Longer sessions are read in pages, so that the server serves others in between.
const EVENTS: u64 = 1_000;
/// How often a session is read again that changes under the pages, before it is read at once, however long it is.
const READINGS: u32 = 3;

/// What became of a reading.
enum Picture {
    Whole(Box<Loaded>),
    /// The session changed between two pages.
    Torn,
    None,
}

impl Redis {
    /// Reads what is asked for in one script, and more than a thousand events in pages, all of one picture: where the session
    /// loses events meanwhile, it is read again.
    pub(super) fn load_session(&self, key: &SessionKey, window: &Window) -> StoreResult<Option<Loaded>> {
        for reading in 0..=READINGS {
            let page = if reading < READINGS { EVENTS } else { u64::MAX };
            match self.picture(key, window, page)? {
                Picture::Whole(loaded) => return Ok(Some(*loaded)),
                Picture::None => return Ok(None),
                Picture::Torn => {}
            }
        }
        let problem = format!("session `{key}` changed while it was read");
        Err(StoreError::Unavailable { store: self.server.options.describe(), problem })
    }

    /// Reads a session, its events in pages of `page`, the newest first.
    fn picture(&self, key: &SessionKey, window: &Window, page: u64) -> StoreResult<Picture> {
        let keys = self.keys.session(key);
        let wanted = window.last.unwrap_or(u64::MAX);
        // A page that is filtered may show fewer than are wanted, however few that are.
        let count = if window.since_ms.is_some() && wanted > 0 { page } else { wanted.min(page) };
        let run = if window.refresh.is_some() { Run::Write(&LOAD) } else { Run::Read(&LOAD) };
        let (became, mut reply) = self.script(run, &keys, &|arguments| {
            arguments.number(window.after).number(count).number_or_nothing(window.refresh.map(|ttl| ttl.0));
        })?;
        if became != "ok" {
            return Ok(Picture::None);
        }
        let (head, cuts, session, user, mut summaries, first_page, notes) = self.read(|| {
            let head = reply.head(key.clone())?;
            let (cuts, session, user) = (reply.text()?, reply.list()?.state()?, reply.list()?.state()?);
            let summaries = reply.list()?.summaries()?;
            Ok((head, cuts, session, user, summaries, reply.list()?.events()?, reply.list()?))
        })?;
        summaries.sort_by(|a, b| a.filter_key.cmp(&b.filter_key));
        let mut events = Vec::new();
        let mut shown = first_page;
        let mut is_first = true;
        loop {
            let (is_full, lowest) = (shown.len() as u64 == count, shown.last().map_or(0, |event| event.seq));
            events.extend(shown.into_iter().filter(|event| window.since_ms.is_none_or(|since| event.time_ms >= since)));
            let is_enough =
                events.len() as u64 >= wanted || lowest <= window.after.saturating_add(1).max(head.first_seq);
            if !is_full || is_enough {
                break;
            }
            is_first = false;
            shown = self.page(&keys[1], window.after + 1, lowest - 1, count)?;
        }
        if !is_first && !self.is_unchanged(&keys[0], &head, &cuts)? {
            return Ok(Picture::Torn);
        }
        events.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
        events.reverse();
        self.settle(&key.owner, notes)?;
        let app = self.state(&Scope::App(key.owner.app.clone()))?;
        Ok(Picture::Whole(Box::new(Loaded { head, events, session, user, app, summaries })))
    }

    /// Reads events from `first` to `last`, the newest first.
    fn page(&self, key: &str, first: u64, last: u64, count: u64) -> StoreResult<Vec<Event>> {
        let reply = self.command("XREVRANGE", key.to_owned(), &|arguments| {
            arguments.text(&format!("{last}-0")).text(&format!("{first}-0")).text("COUNT").number(count);
        })?;
        self.odd(reply.events())
    }

    /// Whether events were only added since `head` and `cuts` were read.
    fn is_unchanged(&self, key: &str, head: &Head, cuts: &str) -> StoreResult<bool> {
        let mut reply = self.command("HMGET", key.to_owned(), &|arguments| {
            arguments.text("gen").text("created").text("cuts");
        })?;
        let [generation, created, now] = [(); 3].map(|()| reply.text().unwrap_or_default());
        Ok(generation == head.generation && created == head.created_ms.to_string() && now == cuts)
    }
}
