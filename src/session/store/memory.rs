//! A store in this process, gone with it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::rules::{Leaving, expires_ms, now_ms};
use super::{
    Append, Appended, Create, Delta, EventKind, EventWindow, Eviction, Head, KEPT_IDS, Loaded, NewEvent, NewSummary,
    Page, PutSummary, Scope, SessionEvent, SessionKey, SessionStore, State, StoreError, StoreResult, StoredSummary,
    SummaryQuery, Ttl, UserKey,
};

/// Sessions in this process.
#[derive(Debug, Default)]
pub struct Memory {
    data: Mutex<Data>,
}

#[derive(Debug, Default)]
struct Data {
    sessions: BTreeMap<SessionKey, StoredSession>,
    users: HashMap<UserKey, Expiring>,
    apps: HashMap<String, Expiring>,
}

#[derive(Debug, Default)]
struct Expiring {
    state: State,
    expires_ms: Option<i64>,
}

#[derive(Debug)]
struct StoredSession {
    head: Head,
    events: Vec<SessionEvent>,
    state: State,
    taken: Taken,
    summaries: Vec<StoredSummary>,
    failed: Vec<StoredSummary>,
    expires_ms: Option<i64>,
}

/// The ids that a session took.
#[derive(Debug, Default)]
struct Taken {
    /// Positions by id, with evicted events; 0 for those that only changed state.
    seqs: HashMap<Arc<str>, u64>,
    /// The ids in the order of appending, each with the last position at that time.
    order: VecDeque<(u64, Arc<str>)>,
}

impl Taken {
    fn add(&mut self, id: &str, seq: u64, at: u64) {
        let id: Arc<str> = id.into();
        self.seqs.insert(Arc::clone(&id), seq);
        self.order.push_back((at, id));
    }

    /// Forgets the ids of events behind the position `after`.
    fn cut(&mut self, after: u64) {
        self.seqs.retain(|_, seq| *seq <= after);
        self.order.retain(|(_, id)| self.seqs.contains_key(id));
    }

    /// Forgets ids of events before the position `first`.
    fn forget(&mut self, first: u64) {
        while self.order.front().is_some_and(|(at, _)| *at < first) {
            if let Some((_, id)) = self.order.pop_front() {
                self.seqs.remove(&id);
            }
        }
    }
}

fn has_expired(expires_ms: Option<i64>, now: i64) -> bool {
    expires_ms.is_some_and(|at| now > at)
}

impl Expiring {
    /// Returns the state; expired state is dropped, so that it stays gone when the clock goes back.
    fn current(&mut self, now: i64) -> State {
        if has_expired(self.expires_ms, now) {
            *self = Self::default();
        }
        self.state.clone()
    }

    fn update(&mut self, delta: &Delta, ttl: Ttl, now: i64) {
        if delta.is_empty() {
            return;
        }
        if has_expired(self.expires_ms, now) {
            self.state.clear();
        }
        change(&mut self.state, delta);
        self.expires_ms = expires_ms(now, ttl);
    }
}

fn change(state: &mut State, delta: &Delta) {
    for (name, value) in delta {
        match value {
            Some(value) => state.insert(name.clone(), value.clone()),
            None => state.remove(name),
        };
    }
}

impl Data {
    fn session(&mut self, key: &SessionKey, now: i64) -> StoreResult<&mut StoredSession> {
        // Dropped, so that it does not come back when the clock goes back.
        if self.sessions.get(key).is_some_and(|session| has_expired(session.expires_ms, now)) {
            self.sessions.remove(key);
        }
        self.sessions.get_mut(key).ok_or_else(|| StoreError::NotFound(key.clone()))
    }

    fn change_owners(&mut self, key: &SessionKey, user: &Delta, app: &Delta, ttls: [Ttl; 3], now: i64) {
        if !user.is_empty() {
            self.users.entry(key.owner.clone()).or_default().update(user, ttls[1], now);
        }
        if !app.is_empty() {
            self.apps.entry(key.owner.app.clone()).or_default().update(app, ttls[2], now);
        }
    }

    fn append(&mut self, key: &SessionKey, batch: &Append, is_replacing: bool, now: i64) -> StoreResult<Appended> {
        let session = self.session(key, now)?;
        batch.check(&session.head)?;
        let (mut seqs, mut repeated) = (Vec::new(), Vec::new());
        let mut owners: Vec<&NewEvent> = Vec::new();
        let before = session.head.seq;
        for event in &batch.events {
            let taken = session.taken.seqs.get(event.id.as_str()).copied();
            repeated.push(taken.is_some());
            let seq = taken.unwrap_or_else(|| {
                owners.push(event);
                session.take(event)
            });
            seqs.push((seq > 0).then_some(seq));
        }
        if is_replacing && session.head.seq == before {
            session.head.seq += 1;
        }
        session.evict(batch.eviction);
        session.head.updated_ms = now;
        session.expires_ms = expires_ms(now, batch.ttls[0]);
        let head = session.head.clone();
        for event in owners {
            self.change_owners(key, &event.user, &event.app, batch.ttls, now);
        }
        Ok(Appended { seqs, repeated, head })
    }
}

impl StoredSession {
    /// Appends an event and returns its position; 0 for one that only changes state.
    fn take(&mut self, event: &NewEvent) -> u64 {
        change(&mut self.state, &event.session);
        let seq = if let Some(payload) = &event.payload {
            self.head.seq += 1;
            self.events.push(SessionEvent {
                seq: self.head.seq,
                id: event.id.clone(),
                time_ms: event.time_ms,
                author: event.author.clone(),
                filter_key: event.filter_key.clone(),
                kind: event.kind,
                payload: payload.clone(),
            });
            self.head.seq
        } else {
            0
        };
        self.taken.add(&event.id, seq, self.head.seq);
        seq
    }

    fn evict(&mut self, eviction: Eviction) {
        let covered = self.summaries.iter().filter(|s| s.filter_key.is_empty()).map(|s| s.last_seq).max().unwrap_or(0);
        let leaving = Leaving { held: self.events.len() as u64, covered, eviction };
        let leaves = |(at, event): &(u64, &SessionEvent)| leaving.takes(*at, event.seq, event.kind);
        let gone = (0..).zip(&self.events).take_while(leaves).count();
        self.events.drain(..gone);
        self.head.first_seq = self.events.first().map_or(self.head.seq + 1, |event| event.seq);
        if gone > 0 {
            self.taken.forget(self.head.first_seq.saturating_sub(KEPT_IDS));
        }
    }
}

impl Memory {
    /// Returns an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn data(&self) -> MutexGuard<'_, Data> {
        // Each change is complete before the lock is released, so a poisoned store is still consistent.
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionStore for Memory {
    fn create(&self, key: &SessionKey, create: &Create) -> StoreResult<Head> {
        let now = now_ms();
        let mut data = self.data();
        if !create.overwrite && data.session(key, now).is_ok() {
            return Err(StoreError::AlreadyExists(key.clone()));
        }
        let head = Head {
            key: key.clone(),
            generation: create.generation.clone(),
            seq: 0,
            first_seq: 1,
            created_ms: now,
            updated_ms: now,
            meta: create.meta.clone(),
        };
        let mut state = State::new();
        change(&mut state, &create.session);
        let session = StoredSession {
            head: head.clone(),
            events: Vec::new(),
            state,
            taken: Taken::default(),
            summaries: Vec::new(),
            failed: Vec::new(),
            expires_ms: expires_ms(now, create.ttls[0]),
        };
        data.sessions.insert(key.clone(), session);
        data.change_owners(key, &create.user, &create.app, create.ttls, now);
        Ok(head)
    }

    fn load(&self, key: &SessionKey, window: &EventWindow) -> StoreResult<Option<Loaded>> {
        let now = now_ms();
        let mut data = self.data();
        let user = data.users.get_mut(&key.owner).map(|user| user.current(now)).unwrap_or_default();
        let app = data.apps.get_mut(&key.owner.app).map(|app| app.current(now)).unwrap_or_default();
        let Ok(session) = data.session(key, now) else { return Ok(None) };
        if let Some(ttl) = window.refresh {
            session.expires_ms = expires_ms(now, ttl);
        }
        let newest_first = || session.events.iter().rev();
        let last = window.last.map_or(usize::MAX, |last| usize::try_from(last).unwrap_or(usize::MAX));
        let mut events: Vec<SessionEvent> = newest_first()
            .take_while(|event| event.seq > window.after)
            .filter(|event| window.since_ms.is_none_or(|since| event.time_ms >= since))
            .take(last)
            .cloned()
            .collect();
        if let Some(first) = window.lacks_user(&events) {
            events.extend(newest_first().find(|event| event.seq < first && event.kind == EventKind::User).cloned());
        }
        events.reverse();
        let mut newest: BTreeMap<&str, &StoredSummary> = BTreeMap::new();
        for summary in &session.summaries {
            newest.insert(&summary.filter_key, summary);
        }
        let summaries =
            newest.into_values().map(|summary| StoredSummary { links: Vec::new(), ..summary.clone() }).collect();
        Ok(Some(Loaded { head: session.head.clone(), events, session: session.state.clone(), user, app, summaries }))
    }

    fn list(&self, user: &UserKey, page: Page) -> StoreResult<Vec<Head>> {
        let now = now_ms();
        let mut data = self.data();
        data.sessions.retain(|key, session| key.owner != *user || !has_expired(session.expires_ms, now));
        let own = |session: &&StoredSession| session.head.key.owner == *user;
        let mut heads: Vec<Head> = data.sessions.values().filter(own).map(|session| session.head.clone()).collect();
        heads.sort_by(|a, b| (b.updated_ms, &b.key.id).cmp(&(a.updated_ms, &a.key.id)));
        let [skip, take] =
            [page.offset, page.limit.unwrap_or(u64::MAX)].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        Ok(heads.into_iter().skip(skip).take(take).collect())
    }

    fn delete(&self, key: &SessionKey) -> StoreResult<bool> {
        let now = now_ms();
        let mut data = self.data();
        let existed = data.session(key, now).is_ok();
        data.sessions.remove(key);
        Ok(existed)
    }

    fn append(&self, key: &SessionKey, batch: &Append) -> StoreResult<Appended> {
        self.data().append(key, batch, false, now_ms())
    }

    fn replace_tail(&self, key: &SessionKey, after: u64, batch: &Append) -> StoreResult<Appended> {
        let now = now_ms();
        let mut data = self.data();
        let session = data.session(key, now)?;
        batch.check(&session.head)?;
        session.events.retain(|event| event.seq <= after);
        session.taken.cut(after);
        session.summaries.retain(|summary| summary.last_seq <= after);
        data.append(key, &Append { expected_seq: None, ..batch.clone() }, true, now)
    }

    fn state(&self, scope: &Scope) -> StoreResult<State> {
        let now = now_ms();
        let mut data = self.data();
        Ok(match scope {
            Scope::App(app) => data.apps.get_mut(app).map(|app| app.current(now)).unwrap_or_default(),
            Scope::User(user) => data.users.get_mut(user).map(|user| user.current(now)).unwrap_or_default(),
            Scope::Session(key) => data.session(key, now).map(|session| session.state.clone()).unwrap_or_default(),
        })
    }

    fn update_state(&self, scope: &Scope, delta: &Delta, ttl: Ttl) -> StoreResult<()> {
        let now = now_ms();
        let mut data = self.data();
        match scope {
            Scope::App(app) => data.apps.entry(app.clone()).or_default().update(delta, ttl, now),
            Scope::User(user) => data.users.entry(user.clone()).or_default().update(delta, ttl, now),
            Scope::Session(key) => {
                let session = data.session(key, now)?;
                change(&mut session.state, delta);
                session.head.updated_ms = now;
                session.expires_ms = expires_ms(now, ttl);
            }
        }
        Ok(())
    }

    fn set_meta(&self, key: &SessionKey, meta: &str, expected: Option<&str>) -> StoreResult<()> {
        let mut data = self.data();
        let session = data.session(key, now_ms())?;
        if let Some(expected) = expected.filter(|expected| *expected != session.head.meta) {
            let actual = session.head.meta.clone();
            return Err(StoreError::Conflict { key: key.clone(), expected: expected.to_owned(), actual });
        }
        meta.clone_into(&mut session.head.meta);
        Ok(())
    }

    fn put_summary(&self, key: &SessionKey, summary: &NewSummary) -> StoreResult<PutSummary> {
        let now = now_ms();
        let mut data = self.data();
        let Ok(session) = data.session(key, now) else { return Ok(PutSummary::Gone) };
        let newest = session.summaries.iter().rfind(|known| known.filter_key == summary.filter_key);
        let (version, covered) = newest.map_or((0, 0), |newest| (newest.version, newest.last_seq));
        if let Some(refusal) = summary.refusal(&session.head, version, covered) {
            return Ok(refusal);
        }
        let mut stored = StoredSummary {
            id: summary.id.clone(),
            filter_key: summary.filter_key.clone(),
            version: 0,
            first_seq: summary.first_seq,
            last_seq: summary.last_seq,
            text: summary.text.clone(),
            record: summary.record.clone(),
            created_ms: now,
            links: summary.links.clone(),
        };
        if summary.failed {
            session.failed.push(stored);
            return Ok(PutSummary::Accepted(0));
        }
        stored.version = version + 1;
        session.summaries.push(stored);
        if let Some(placeholder) =
            summary.placeholder.as_ref().filter(|event| !session.taken.seqs.contains_key(event.id.as_str()))
        {
            session.take(placeholder);
        }
        session.expires_ms = expires_ms(now, summary.ttl);
        Ok(PutSummary::Accepted(version + 1))
    }

    fn summaries(&self, key: &SessionKey, query: &SummaryQuery) -> StoreResult<Vec<StoredSummary>> {
        let mut data = self.data();
        let Ok(session) = data.session(key, now_ms()) else { return Ok(Vec::new()) };
        let all = if query.failed { &session.failed } else { &session.summaries };
        let is_asked =
            |summary: &&StoredSummary| query.filter_key.as_ref().is_none_or(|key| *key == summary.filter_key);
        let last = query.last.map_or(usize::MAX, |last| usize::try_from(last).unwrap_or(usize::MAX));
        let links = |summary: &StoredSummary| if query.links { summary.links.clone() } else { Vec::new() };
        let newest = all.iter().rev().filter(is_asked).take(last);
        Ok(newest.map(|summary| StoredSummary { links: links(summary), ..summary.clone() }).collect())
    }

    fn sweep(&self) -> StoreResult<u64> {
        let now = now_ms();
        let mut data = self.data();
        let before = data.sessions.len();
        data.sessions.retain(|_, session| !has_expired(session.expires_ms, now));
        data.users.retain(|_, user| !has_expired(user.expires_ms, now));
        data.apps.retain(|_, app| !has_expired(app.expires_ms, now));
        Ok((before - data.sessions.len()) as u64)
    }

    fn describe(&self) -> String {
        "memory:".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_expired_does_not_come_back_when_the_clock_goes_back() {
        let (store, key) = (Memory::new(), SessionKey::new("a", "u", "s"));
        let ttls = [Ttl(1_000); 3];
        let user: Delta = [("x".to_owned(), Some(b"1".to_vec()))].into();
        store.create(&key, &Create { user, ttls, ..Create::default() }).unwrap();
        let (before, after) = (now_ms(), now_ms() + 2_000);
        let mut data = store.data();
        assert!(data.session(&key, before).is_ok());
        assert!(data.session(&key, after).is_err());
        assert!(data.session(&key, before).is_err());
        let state = data.users.get_mut(&key.owner).unwrap();
        assert_eq!([before, after, before].map(|now| state.current(now).len()), [1, 0, 0]);
    }
}
