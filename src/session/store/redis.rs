//! A store on a Redis server or cluster, for many processes and machines. Redis 6.2 or later, or Valkey.
//!
//! Every write is one short script, and so atomic. Events are a stream whose ids are their positions. All keys of a user are
//! on one slot of a cluster; the state of an app is on another, and `outbox.rs` says how it is changed exactly once.
//!
//! Redis acknowledges a write before it is on disk: with `appendonly yes` and `appendfsync everysec` the loss of power or of
//! the server can lose the last second or two, with `always` nothing acknowledged. A failover can always lose what the new
//! master had not seen; `replicas=N` makes that rare.

mod errors;
mod keys;
mod lists;
mod open;
mod options;
mod outbox;
mod packed;
mod reading;
mod reply;
mod scripts;
mod server;
mod slots;

use std::hash::{BuildHasher, RandomState};

use redis::Value;

#[cfg(fuzzing)]
pub use self::options::RedisOptions;

use self::keys::Keys;
use self::reply::{Odd, Reply};
use self::scripts::{
    APPEND, Arguments, CREATE, DELETE, LuaScript, OWNER, PUT_SUMMARY, SET_META, SUMMARIES, UPDATE, arguments_of,
};
use self::server::{Exchange, Runnable, Server};
use super::{
    Append, Appended, Create, Delta, EventWindow, Head, Loaded, NewSummary, Page, PutSummary, Scope, SessionKey,
    SessionStore, State, StoreError, StoreResult, StoredSummary, SummaryQuery, Ttl, UserKey,
};

/// Most arguments of a script. Source: Redis, `networking.c`: 1,048,576 less than the command's own.
const ARGUMENTS: usize = 1_000_000;

/// Sessions on a Redis server or cluster.
pub struct Redis {
    server: Server,
    keys: Keys,
    is_cluster: bool,
    warnings: Vec<String>,
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis").field("url", &self.server.options.describe()).finish_non_exhaustive()
    }
}

impl Redis {
    /// Returns warnings about the server, a sentence each: what it may drop or lose.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Runs a script; returns the first word of its answer, and the rest.
    fn script(
        &self,
        run: Runnable<'_>,
        keys: &[String],
        fill: &dyn Fn(&mut Arguments<'_>),
    ) -> StoreResult<(String, Reply)> {
        let (became, reply, _) = self.told(&Exchange { run, keys, fill, first: &[] })?;
        Ok((became, reply))
    }

    /// Runs a script behind commands; their answers are the third part.
    fn told(&self, request: &Exchange<'_>) -> StoreResult<(String, Reply, Vec<Value>)> {
        let mut values = self.server.run(request)?;
        self.read(|| {
            let mut reply = Reply::of(values.pop().ok_or(Odd)?)?;
            Ok((reply.text()?, reply, values))
        })
    }

    fn write(
        &self,
        script: &LuaScript,
        keys: &[String],
        fill: &dyn Fn(&mut Arguments<'_>),
    ) -> StoreResult<(String, Reply)> {
        self.script(Runnable::Write(script), keys, fill)
    }

    fn command(&self, name: &'static str, key: String, fill: &dyn Fn(&mut Arguments<'_>)) -> StoreResult<Reply> {
        let mut values = self.server.run(&Exchange { run: Runnable::Command(name), keys: &[key], fill, first: &[] })?;
        self.odd(values.pop().ok_or(Odd).and_then(Reply::of))
    }

    fn odd<T>(&self, read: Result<T, Odd>) -> StoreResult<T> {
        read.map_err(|odd| self.server.odd(odd))
    }

    fn torn(&self, key: &SessionKey) -> StoreError {
        let problem = format!(
            "the server dropped a key of session `{key}`\nhint: set its `maxmemory-policy` to `noeviction`; delete the session"
        );
        StoreError::Corrupt { store: self.server.options.describe(), problem }
    }

    fn read<T>(&self, read: impl FnOnce() -> Result<T, Odd>) -> StoreResult<T> {
        self.odd(read())
    }

    fn append(&self, key: &SessionKey, after: Option<u64>, batch: &Append) -> StoreResult<Appended> {
        if arguments_of(&batch.events) > ARGUMENTS {
            return Err(StoreError::invalid("batch", "is too large for one write: some 130,000 events at most"));
        }
        let (became, mut reply) = self.write(&APPEND, &self.keys.session(key), &|arguments| {
            arguments.text(&key.id).maybe(batch.generation.as_deref());
            arguments.number_or_nothing(batch.expected_seq).number_or_nothing(after);
            arguments.number(batch.eviction.max_events).flag(batch.eviction.protect);
            arguments.ttl(batch.ttls[0]).ttl(batch.ttls[1]).number(batch.events.len() as u64);
            for event in &batch.events {
                arguments.text(&event.id);
            }
            for event in &batch.events {
                arguments.event(event, batch.ttls[2]);
            }
        })?;
        match became.as_str() {
            "ok" => {}
            "torn" => return Err(self.torn(key)),
            "missing" => return Err(StoreError::NotFound(key.clone())),
            "gone" => return Err(StoreError::Gone(key.clone())),
            _ => {
                let expected = batch.expected_seq.unwrap_or_default().to_string();
                return Err(StoreError::Conflict { key: key.clone(), expected, actual: self.odd(reply.text())? });
            }
        }
        let (appended, outbox) = self.read(|| {
            let head = reply.head(key.clone())?;
            let (mut seqs, mut repeated) = (reply.list()?, reply.list()?);
            let mut appended = Appended { seqs: Vec::new(), repeated: Vec::new(), head };
            while seqs.left() > 0 {
                appended.seqs.push(Some(seqs.number()?).filter(|seq| *seq > 0));
                appended.repeated.push(repeated.number()? > 0);
            }
            Ok((appended, reply.list()?))
        })?;
        self.apply(&key.owner, outbox)?;
        Ok(appended)
    }
}

impl SessionStore for Redis {
    fn create(&self, key: &SessionKey, create: &Create) -> StoreResult<Head> {
        let (became, mut reply) = self.write(&CREATE, &self.keys.session(key), &|arguments| {
            arguments.text(&key.id).text(&create.generation).flag(create.overwrite).text(&create.meta);
            arguments.ttl(create.ttls[0]).ttl(create.ttls[1]).delta(&create.session).delta(&create.user);
            arguments.bytes(&packed::of_delta(&create.app, create.ttls[2]));
        })?;
        if became != "ok" {
            return Err(StoreError::AlreadyExists(key.clone()));
        }
        let created_ms = self.odd(reply.time())?;
        let outbox = self.odd(reply.list())?;
        self.apply(&key.owner, outbox)?;
        Ok(Head {
            key: key.clone(),
            generation: create.generation.clone(),
            seq: 0,
            first_seq: 1,
            created_ms,
            updated_ms: created_ms,
            meta: create.meta.clone(),
        })
    }

    fn load(&self, key: &SessionKey, window: &EventWindow) -> StoreResult<Option<Loaded>> {
        self.load_session(key, window)
    }

    fn list(&self, user: &UserKey, page: Page) -> StoreResult<Vec<Head>> {
        self.list_sessions(user, page)
    }

    /// Deletes a session. If the answer is lost and the connection replaced, it reports that there was none.
    fn delete(&self, key: &SessionKey) -> StoreResult<bool> {
        let (_, mut reply) = self.write(&DELETE, &self.keys.session(key), &|arguments| {
            arguments.text(&key.id);
        })?;
        Ok(self.odd(reply.number())? > 0)
    }

    /// Appends a batch. If the first answer was lost, its events are reported as repeated.
    fn append(&self, key: &SessionKey, batch: &Append) -> StoreResult<Appended> {
        self.append(key, None, batch)
    }

    fn replace_tail(&self, key: &SessionKey, after: u64, batch: &Append) -> StoreResult<Appended> {
        self.append(key, Some(after), batch)
    }

    fn state(&self, scope: &Scope) -> StoreResult<State> {
        let key = match scope {
            Scope::App(app) => self.keys.app(app)[0].clone(),
            Scope::User(user) => self.keys.user_state(user),
            Scope::Session(key) => self.keys.session(key)[4].clone(),
        };
        let reply = self.command("HGETALL", key, &|_| ())?;
        self.odd(reply.state())
    }

    fn update_state(&self, scope: &Scope, delta: &Delta, ttl: Ttl) -> StoreResult<()> {
        let owner = match scope {
            Scope::App(app) => self.keys.app(app)[0].clone(),
            Scope::User(user) => self.keys.user_state(user),
            Scope::Session(key) => {
                let (became, _) = self.write(&UPDATE, &self.keys.session(key), &|arguments| {
                    arguments.text(&key.id).ttl(ttl).delta(delta);
                })?;
                return if became == "ok" { Ok(()) } else { Err(StoreError::NotFound(key.clone())) };
            }
        };
        self.write(&OWNER, &[owner], &|arguments| {
            arguments.ttl(ttl).delta(delta);
        })?;
        Ok(())
    }

    fn set_meta(&self, key: &SessionKey, meta: &str, expected: Option<&str>) -> StoreResult<()> {
        // Each hasher of the standard library has a seed of its own.
        let token = RandomState::new().hash_one(std::process::id());
        let (became, mut reply) = self.write(&SET_META, &self.keys.session(key), &|arguments| {
            arguments.text(&token.to_string()).text(meta).maybe(expected);
        })?;
        match became.as_str() {
            "ok" => Ok(()),
            "missing" => Err(StoreError::NotFound(key.clone())),
            _ => {
                let expected = expected.unwrap_or_default().to_owned();
                Err(StoreError::Conflict { key: key.clone(), expected, actual: self.odd(reply.text())? })
            }
        }
    }

    fn put_summary(&self, key: &SessionKey, summary: &NewSummary) -> StoreResult<PutSummary> {
        let (became, mut reply) = self.write(&PUT_SUMMARY, &self.keys.session(key), &|arguments| {
            arguments.text(&summary.id).text(&summary.generation).text(&summary.filter_key);
            arguments.number(summary.expected_version).number(summary.first_seq).number(summary.last_seq);
            arguments.text(&summary.text).text(&summary.record).flag(summary.failed);
            arguments.bytes(&packed::of_links(&summary.links)).ttl(summary.ttl);
            match &summary.placeholder {
                // It changes nothing of the user's and the app's.
                Some(event) => {
                    let event = super::NewEvent { user: Delta::new(), app: Delta::new(), ..event.clone() };
                    arguments.text(&event.id).event(&event, Ttl(0));
                }
                None => drop(arguments.text("")),
            }
        })?;
        Ok(match became.as_str() {
            "ok" => PutSummary::Accepted(self.odd(reply.number())?),
            "torn" => return Err(self.torn(key)),
            "stale" => PutSummary::Stale,
            "beyond" => PutSummary::Beyond,
            _ => PutSummary::Gone,
        })
    }

    fn summaries(&self, key: &SessionKey, query: &SummaryQuery) -> StoreResult<Vec<StoredSummary>> {
        let (_, mut reply) = self.script(Runnable::Read(&SUMMARIES), &self.keys.session(key), &|arguments| {
            arguments.maybe(query.filter_key.as_deref()).flag(query.failed).flag(query.links);
            arguments.number(query.last.unwrap_or(u64::MAX));
        })?;
        self.odd(reply.list().and_then(Reply::summaries))
    }

    fn sweep(&self) -> StoreResult<u64> {
        self.sweep_lists()
    }

    fn describe(&self) -> String {
        let cluster = if self.is_cluster { ", a cluster" } else { "" };
        let mut lines = vec![format!("{}{cluster}", self.server.options.describe())];
        lines.extend(self.warnings.iter().map(|warning| format!("warning: {warning}")));
        lines.join("\n")
    }
}
