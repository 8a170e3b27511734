//! The operations of a store, each in one transaction.

use rusqlite::{OptionalExtension, Transaction, named_params, params};

use super::Sqlite;
use super::open::{free_reserve, reserve};
use super::rows::{
    APP, Clock, Expired, SESSION, SessionRow, USER, append, change, change_owner, delete, event, expired_sessions,
    find, found, head, owner_of_user, read_state, run, summary, take, taken,
};
use crate::session::store::rules::expires_ms;
use crate::session::store::{
    Append, Appended, Create, Delta, EventWindow, Head, Loaded, NewSummary, Page, PutSummary, Scope, SessionEvent,
    SessionKey, SessionStore, State, StoreError, StoreResult, StoredSummary, SummaryQuery, Ttl, UserKey,
};

impl SessionStore for Sqlite {
    fn create(&self, key: &SessionKey, create: &Create) -> StoreResult<Head> {
        self.write(|transaction, clock| {
            let now = clock.now;
            if !create.overwrite && find(transaction, key, clock)?.is_some() {
                return Err(StoreError::AlreadyExists(key.clone()).into());
            }
            // Also an expired one that was not swept.
            let old = transaction
                .prepare_cached("SELECT sid FROM session WHERE app = ?1 AND user = ?2 AND id = ?3")?
                .query_row(params![key.owner.app, key.owner.user, key.id], |row| row.get(0))
                .optional()?;
            if let Some(sid) = old {
                delete(transaction, sid)?;
            }
            run(
                transaction,
                "INSERT INTO session (app, user, id, gen, meta, created_ms, updated_ms, expires_ms)
                        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7)",
                params![
                    key.owner.app,
                    key.owner.user,
                    key.id,
                    create.generation,
                    create.meta,
                    now,
                    expires_ms(now, create.ttls[0])
                ],
            )?;
            change(transaction, SESSION, &transaction.last_insert_rowid().to_string(), &create.session)?;
            change_owner(transaction, USER, &owner_of_user(&key.owner), &create.user, create.ttls[1], now)?;
            change_owner(transaction, APP, &key.owner.app, &create.app, create.ttls[2], now)?;
            Ok(Head {
                key: key.clone(),
                generation: create.generation.clone(),
                seq: 0,
                first_seq: 1,
                created_ms: now,
                updated_ms: now,
                meta: create.meta.clone(),
            })
        })
    }

    fn load(&self, key: &SessionKey, window: &EventWindow) -> StoreResult<Option<Loaded>> {
        let load = |transaction: &Transaction<'_>, clock: &Clock| {
            let now = clock.now;
            let Some(found) = find(transaction, key, clock)? else { return Ok(None) };
            let sid = found.sid;
            if let Some(ttl) = window.refresh {
                run(
                    transaction,
                    "UPDATE session SET expires_ms = ?2 WHERE sid = ?1",
                    params![sid, expires_ms(now, ttl)],
                )?;
            }
            let sql = "SELECT place, id, time_ms, author, filter_key, kind, payload FROM event
                WHERE place > ?1 AND place <= ?2 AND time_ms >= ?3 ORDER BY place DESC LIMIT ?4";
            let (first, end) = found.places_behind(window.after);
            let since = window.since_ms.unwrap_or(i64::MIN);
            let last = window.last.map_or(-1, |last| i64::try_from(last).unwrap_or(-1));
            let mut events: Vec<SessionEvent> = transaction
                .prepare_cached(sql)?
                .query_map(params![first, end, since, last], event)?
                .collect::<rusqlite::Result<_>>()?;
            if let Some(first) = window.lacks_user(&events) {
                let sql = "SELECT place, id, time_ms, author, filter_key, kind, payload FROM event
                    WHERE kind = 1 AND place > ?1 AND place < ?2 ORDER BY place DESC LIMIT 1";
                let places = [found.place(0), found.place(first)];
                events.extend(transaction.prepare_cached(sql)?.query_row(places, event).optional()?);
            }
            events.reverse();
            let newest = "SELECT * FROM summary s WHERE sid = ?1 AND version > 0 AND version =
                (SELECT max(version) FROM summary n WHERE n.sid = s.sid AND n.filter_key = s.filter_key) ORDER BY filter_key";
            let summaries =
                transaction.prepare_cached(newest)?.query_map([sid], summary)?.collect::<rusqlite::Result<_>>()?;
            Ok(Some(Loaded {
                events,
                session: read_state(transaction, SESSION, &sid.to_string(), clock)?,
                user: read_state(transaction, USER, &owner_of_user(&key.owner), clock)?,
                app: read_state(transaction, APP, &key.owner.app, clock)?,
                summaries,
                head: found.head,
            }))
        };
        let loaded = if window.refresh.is_some() { self.write(load) } else { self.read(load) };
        loaded.map_err(|error| error.of_session(key))
    }

    fn list(&self, user: &UserKey, page: Page) -> StoreResult<Vec<Head>> {
        self.read(|transaction, clock| {
            let sql = "SELECT id, gen, seq, first_seq, created_ms, updated_ms, meta FROM session
                WHERE app = ?1 AND user = ?2 AND (expires_ms IS NULL OR expires_ms >= ?3)
                ORDER BY updated_ms DESC, id DESC LIMIT ?4 OFFSET ?5";
            let limit = page.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(-1));
            let offset = i64::try_from(page.offset).unwrap_or(i64::MAX);
            let mut statement = transaction.prepare_cached(sql)?;
            let heads = statement.query_map(params![user.app, user.user, clock.now, limit, offset], |row| {
                head(row, SessionKey { owner: user.clone(), id: row.get(0)? }, 1)
            })?;
            let heads = heads.collect::<rusqlite::Result<_>>()?;
            let sql = "SELECT sid FROM session WHERE app = ?1 AND user = ?2 AND expires_ms < ?3";
            let mut statement = transaction.prepare_cached(sql)?;
            for sid in statement.query_map(params![user.app, user.user, clock.now], |row| row.get(0))? {
                clock.expired.borrow_mut().push(Expired::Session(sid?));
            }
            Ok(heads)
        })
    }

    fn delete(&self, key: &SessionKey) -> StoreResult<bool> {
        let deleted = self.write(|transaction, clock| {
            let found = find(transaction, key, clock)?;
            if let Some(SessionRow { sid, .. }) = &found {
                delete(transaction, *sid)?;
            }
            Ok(found.is_some())
        });
        if let Err(StoreError::Full { .. }) = deleted { self.delete_on_full_disk(key) } else { deleted }
    }

    fn append(&self, key: &SessionKey, batch: &Append) -> StoreResult<Appended> {
        self.write(|transaction, clock| {
            let now = clock.now;
            let found = found(transaction, key, clock)?;
            batch.check(&found.head)?;
            append(transaction, found, batch, false, now)
        })
        .map_err(|error| error.of_session(key))
    }

    fn replace_tail(&self, key: &SessionKey, after: u64, batch: &Append) -> StoreResult<Appended> {
        self.write(|transaction, clock| {
            let now = clock.now;
            let mut found = found(transaction, key, clock)?;
            batch.check(&found.head)?;
            found.held -=
                run(transaction, "DELETE FROM event WHERE place > ?1 AND place <= ?2", found.places_behind(after))?
                    as u64;
            for sql in [
                "DELETE FROM op WHERE sid = ?1 AND seq > ?2",
                "DELETE FROM summary WHERE sid = ?1 AND last_seq > ?2 AND version > 0",
            ] {
                run(transaction, sql, params![found.sid, after])?;
            }
            if found.held == 0 {
                found.head.first_seq = found.head.seq + 1;
            }
            append(transaction, found, batch, true, now)
        })
        .map_err(|error| error.of_session(key))
    }

    fn state(&self, scope: &Scope) -> StoreResult<State> {
        self.read(|transaction, clock| {
            Ok(match scope {
                Scope::App(app) => read_state(transaction, APP, app, clock)?,
                Scope::User(user) => read_state(transaction, USER, &owner_of_user(user), clock)?,
                Scope::Session(key) => match find(transaction, key, clock)? {
                    Some(SessionRow { sid, .. }) => read_state(transaction, SESSION, &sid.to_string(), clock)?,
                    None => State::new(),
                },
            })
        })
    }

    fn update_state(&self, scope: &Scope, delta: &Delta, ttl: Ttl) -> StoreResult<()> {
        self.write(|transaction, clock| {
            let now = clock.now;
            match scope {
                Scope::App(app) => change_owner(transaction, APP, app, delta, ttl, now)?,
                Scope::User(user) => change_owner(transaction, USER, &owner_of_user(user), delta, ttl, now)?,
                Scope::Session(key) => {
                    let SessionRow { sid, .. } = found(transaction, key, clock)?;
                    change(transaction, SESSION, &sid.to_string(), delta)?;
                    run(
                        transaction,
                        "UPDATE session SET updated_ms = ?2, expires_ms = ?3 WHERE sid = ?1",
                        params![sid, now, expires_ms(now, ttl)],
                    )?;
                }
            }
            Ok(())
        })
    }

    fn set_meta(&self, key: &SessionKey, meta: &str, expected: Option<&str>) -> StoreResult<()> {
        self.write(|transaction, clock| {
            let SessionRow { sid, head, .. } = found(transaction, key, clock)?;
            if let Some(expected) = expected.filter(|expected| *expected != head.meta) {
                let expected = expected.to_owned();
                return Err(StoreError::Conflict { key: key.clone(), expected, actual: head.meta }.into());
            }
            run(transaction, "UPDATE session SET meta = ?2 WHERE sid = ?1", params![sid, meta])?;
            Ok(())
        })
        .map_err(|error| error.of_session(key))
    }

    fn put_summary(&self, key: &SessionKey, new: &NewSummary) -> StoreResult<PutSummary> {
        self.write(|transaction, clock| {
            let now = clock.now;
            let Some(mut found) = find(transaction, key, clock)? else { return Ok(PutSummary::Gone) };
            let newest = "SELECT coalesce(max(version), 0), coalesce(max(last_seq), 0) FROM summary
                WHERE sid = ?1 AND filter_key = ?2 AND version > 0";
            let (version, covered): (u64, u64) = transaction
                .prepare_cached(newest)?
                .query_row(params![found.sid, new.filter_key], |row| Ok((row.get(0)?, row.get(1)?)))?;
            if let Some(refusal) = new.refusal(&found.head, version, covered) {
                return Ok(refusal);
            }
            let version = if new.failed { 0 } else { version + 1 };
            run(
                transaction,
                "INSERT INTO summary (id, sid, filter_key, version, first_seq, last_seq, text, record, created_ms)
                        VALUES (:id, :sid, :filter_key, :version, :first_seq, :last_seq, :text, :record, :created_ms)",
                named_params! {
                    ":id": new.id, ":sid": found.sid, ":filter_key": new.filter_key, ":version": version,
                    ":first_seq": new.first_seq, ":last_seq": new.last_seq, ":text": new.text, ":record": new.record,
                    ":created_ms": now,
                },
            )?;
            for (seq, id) in &new.links {
                run(
                    transaction,
                    "INSERT INTO summary_event (summary_id, seq, event_id) VALUES (?1, ?2, ?3)",
                    params![new.id, seq, id],
                )?;
            }
            if new.failed {
                return Ok(PutSummary::Accepted(0));
            }
            if let Some(placeholder) = &new.placeholder
                && taken(transaction, found.sid, &placeholder.id)?.is_none()
            {
                take(transaction, &mut found, placeholder)?;
            }
            run(
                transaction,
                "UPDATE session SET seq = ?2, held = ?3, expires_ms = ?4 WHERE sid = ?1",
                params![found.sid, found.head.seq, found.held, expires_ms(now, new.ttl)],
            )?;
            Ok(PutSummary::Accepted(version))
        })
        .map_err(|error| error.of_session(key))
    }

    fn summaries(&self, key: &SessionKey, query: &SummaryQuery) -> StoreResult<Vec<StoredSummary>> {
        self.read(|transaction, clock| {
            let Some(SessionRow { sid, .. }) = find(transaction, key, clock)? else { return Ok(Vec::new()) };
            let sql = "SELECT * FROM summary WHERE sid = ?1 AND (version = 0) = ?2 AND (?3 IS NULL OR filter_key = ?3)
                ORDER BY rowid DESC LIMIT ?4";
            let limit = query.last.map_or(-1, |last| i64::try_from(last).unwrap_or(-1));
            let mut found: Vec<StoredSummary> = transaction
                .prepare_cached(sql)?
                .query_map(params![sid, query.failed, query.filter_key, limit], summary)?
                .collect::<rusqlite::Result<_>>()?;
            for summary in found.iter_mut().filter(|_| query.links) {
                let sql = "SELECT seq, event_id FROM summary_event WHERE summary_id = ?1 ORDER BY seq";
                summary.links = transaction
                    .prepare_cached(sql)?
                    .query_map([&summary.id], |row| Ok((row.get(0)?, row.get(1)?)))?
                    .collect::<rusqlite::Result<_>>()?;
            }
            Ok(found)
        })
        .map_err(|error| error.of_session(key))
    }

    fn sweep(&self) -> StoreResult<u64> {
        let swept = self.write(|transaction, clock| {
            let now = clock.now;
            let expired = expired_sessions(transaction, now)?;
            for sid in &expired {
                delete(transaction, *sid)?;
            }
            transaction.execute(
                "DELETE FROM state WHERE EXISTS (SELECT 1 FROM state_expiry e
                    WHERE e.scope = state.scope AND e.owner = state.owner AND e.expires_ms < ?1)",
                [now],
            )?;
            transaction.execute("DELETE FROM state_expiry WHERE expires_ms < ?1", [now])?;
            Ok(expired.len() as u64)
        });
        if let Err(StoreError::Full { .. }) = swept {
            free_reserve(&self.path);
            let expired = self.read(|transaction, clock| Ok(expired_sessions(transaction, clock.now)?))?;
            let gone = expired.iter().filter(|sid| self.delete_parts(**sid)).count();
            return if gone > 0 { Ok(gone as u64) } else { swept };
        }
        self.checkpoint("TRUNCATE")?;
        reserve(&self.path);
        swept
    }

    fn describe(&self) -> String {
        self.shown.clone()
    }
}
