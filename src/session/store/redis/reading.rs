//! Reads a consistent snapshot of a session, however many events it has.

use redis::{Cmd, Value, cmd};

use super::super::{
    EventKind, EventWindow, Head, Loaded, Scope, SessionEvent, SessionKey, SessionStore, State, StoreError,
    StoreResult, StoredSummary,
};
use super::Redis;
use super::reply::Reply;
use super::scripts::{Arguments, LOAD, MOST};
use super::server::{Exchange, Runnable};

/// Events on a page. Longer sessions are read in pages, so that the server serves others in between.
const EVENTS: u64 = 1_000;
/// How often a session that changes under the pages is read again, before it is read at once, however long it is.
const READINGS: u32 = 3;

/// The result of a read.
enum Picture {
    Whole(Box<Loaded>),
    /// The session changed between two pages.
    Torn,
    None,
}

impl Redis {
    /// Reads up to a thousand events in one script, and more in pages of one snapshot: if the session loses events
    /// meanwhile, it is read again.
    pub(super) fn load_session(&self, key: &SessionKey, window: &EventWindow) -> StoreResult<Option<Loaded>> {
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
    fn picture(&self, key: &SessionKey, window: &EventWindow, page: u64) -> StoreResult<Picture> {
        let mut keys = self.keys.session(key).to_vec();
        // In a cluster it is on another slot, and read by itself.
        let app_key = self.keys.app(&key.owner.app)[0].clone();
        keys.extend((!self.is_cluster).then_some(app_key));
        let wanted = window.last.unwrap_or(u64::MAX);
        // A filtered page may have fewer events than wanted.
        let count = if window.since_ms.is_some() && wanted > 0 { page } else { wanted.min(page) };
        let Some((mut told, early)) = self.tell(key, &keys, window, 0, &in_front(&keys, window.after, count))? else {
            return Ok(Picture::None);
        };
        if count > 0 && window.after < told.head.seq {
            match told.events_of(early) {
                Some(events) => told.events = events,
                None => match self.tell(key, &keys, window, count, &[])? {
                    Some((again, _)) => told = again,
                    None => return Ok(Picture::None),
                },
            }
        }
        let Told { head, cuts, newest_user, session, user, app, summaries, events: mut shown, outbox } = told;
        let mut events = Vec::new();
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
        events.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
        if let Some(first) = window.lacks_user(&events) {
            is_first = false;
            events.extend(self.user_before(&keys[1], first, newest_user)?);
        }
        if !is_first && !self.is_unchanged(&keys[0], &head, &cuts)? {
            return Ok(Picture::Torn);
        }
        events.reverse();
        let is_older = self.is_cluster || outbox.left() > 0;
        self.apply(&key.owner, outbox)?;
        let app = if is_older { self.state(&Scope::App(key.owner.app.clone()))? } else { app };
        Ok(Picture::Whole(Box::new(Loaded { head, events, session, user, app, summaries })))
    }

    /// Runs the script behind the commands `first`; returns both answers.
    fn tell(
        &self,
        key: &SessionKey,
        keys: &[String],
        window: &EventWindow,
        count: u64,
        first: &[Cmd],
    ) -> StoreResult<Option<(Told, Vec<Value>)>> {
        let run = if window.refresh.is_some() { Runnable::Write(&LOAD) } else { Runnable::Read(&LOAD) };
        let fill = |arguments: &mut Arguments<'_>| {
            arguments.number(window.after).number(count).number_or_nothing(window.refresh.map(|ttl| ttl.0));
        };
        let (became, mut reply, early) = self.told(&Exchange { run, keys, fill: &fill, first })?;
        match became.as_str() {
            "ok" => {}
            "torn" => return Err(self.torn(key)),
            _ => return Ok(None),
        }
        let told = self.read(|| {
            let mut told = Told {
                head: reply.head(key.clone())?,
                cuts: reply.text()?,
                newest_user: reply.number()?,
                session: reply.list()?.state()?,
                user: reply.list()?.state()?,
                app: reply.list()?.state()?,
                summaries: reply.list()?.summaries()?,
                events: reply.list()?.events()?,
                outbox: reply.list()?,
            };
            told.summaries.sort_by(|a, b| a.filter_key.cmp(&b.filter_key));
            Ok(told)
        })?;
        Ok(Some((told, early)))
    }

    /// Reads events from `first` to `last`, the newest first.
    fn page(&self, key: &str, first: u64, last: u64, count: u64) -> StoreResult<Vec<SessionEvent>> {
        let reply = self.command("XREVRANGE", key.to_owned(), &|arguments| {
            arguments.text(&format!("{last}-0")).text(&format!("{first}-0")).text("COUNT").number(count);
        })?;
        self.odd(reply.events())
    }

    /// Reads the newest message of the user before `first`: the one at `newest`, or it is looked for in pages backwards.
    fn user_before(&self, key: &str, mut first: u64, newest: u64) -> StoreResult<Option<SessionEvent>> {
        if newest > 0 && newest < first {
            return Ok(self.page(key, newest, newest, 1)?.pop());
        }
        let mut count = 32;
        while first > 1 {
            let page = self.page(key, 1, first - 1, count)?;
            let Some(lowest) = page.last().map(|event| event.seq) else { break };
            let found = page.into_iter().find(|event| event.kind == EventKind::User);
            if found.is_some() {
                return Ok(found);
            }
            (first, count) = (lowest, EVENTS.min(count * 2));
        }
        Ok(None)
    }

    /// Whether events were only added since `head` and `cuts` were read.
    fn is_unchanged(&self, key: &str, head: &Head, cuts: &str) -> StoreResult<bool> {
        let reply = self.command("HMGET", key.to_owned(), &|arguments| {
            for mark in MARKS {
                arguments.text(mark);
            }
        })?;
        Ok(is_marked(reply, head, cuts))
    }
}

/// The script's answer about a session.
struct Told {
    head: Head,
    /// Number of evictions.
    cuts: String,
    /// Position of the newest message of the user; 0 if unknown.
    newest_user: u64,
    session: State,
    user: State,
    app: State,
    summaries: Vec<StoredSummary>,
    events: Vec<SessionEvent>,
    outbox: Reply,
}

impl Told {
    /// Returns the events that were read before the script, if they are of the same snapshot: none has left since and none
    /// came.
    fn events_of(&self, early: Vec<Value>) -> Option<Vec<SessionEvent>> {
        let [marks, events] = <[Value; 2]>::try_from(early).ok()?;
        let events = Reply::of(events).and_then(Reply::events).ok()?;
        let is_newest = events.first().is_some_and(|event| event.seq == self.head.seq);
        (is_newest && is_marked(Reply::of(marks).ok()?, &self.head, &self.cuts)).then_some(events)
    }
}

/// Fields of the metadata that identify a session without lost events.
const MARKS: [&str; 3] = ["gen", "created", "cuts"];

fn is_marked(mut reply: Reply, head: &Head, cuts: &str) -> bool {
    let [generation, created, now] = MARKS.map(|_| reply.text().unwrap_or_default());
    generation == head.generation && created == head.created_ms.to_string() && now == cuts
}

/// Returns the commands before the script: they read the session's marks and newest events, which the script would pass on
/// at four times the cost.
fn in_front(keys: &[String], after: u64, count: u64) -> Vec<Cmd> {
    if count == 0 {
        return Vec::new();
    }
    let (after, count) = (after.min(MOST), count.min(MOST));
    let events = cmd("XREVRANGE").arg(&keys[1]).arg("+").arg(format!("{}-0", after + 1)).arg("COUNT").arg(count).take();
    vec![cmd("HMGET").arg(&keys[0]).arg(&MARKS).take(), events]
}
