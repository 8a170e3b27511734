//! Opens a server, and checks what it can do.

use std::collections::HashMap;

use redis::{Value, cmd};

use super::super::{StoreError, StoreResult};
use super::Redis;
use super::keys::Keys;
use super::options::RedisOptions;
use super::scripts::SCHEMA;
use super::server::{Runnable, Server};

/// The newest known schema: how keys are named and what is in them. A later one counts on from here, and brings what an earlier
/// release wrote up to date before it writes its number.
const KNOWN: i64 = 1;

impl Redis {
    /// Opens the server that `url` names: `redis://[user:password@]host[:port][/db]`, or `rediss://…` for TLS.
    ///
    /// Options behind a `?`: `prefix=nbctx` is what all keys begin with; `durability=aof` acknowledges a write when the
    /// server's disk has it (Redis 7.2), and `replicas=N` when that many replicas have it; `timeout=5` is how many
    /// seconds a connection and an answer are waited for; `ca=/path.pem` trusts the certificates in that file, and no others.
    ///
    /// A server that may drop keys is not refused: see [`Redis::warnings`].
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] for another form, [`StoreError::Unavailable`], [`StoreError::Unauthorized`], [`StoreError::Forbidden`],
    /// [`StoreError::NewerSchema`], and what the server says. None of them holds the password.
    pub fn open(url: &str) -> StoreResult<Self> {
        let server = Server::new(RedisOptions::read(url)?);
        let facts = facts(&server)?;
        let is_cluster = facts.get("cluster_enabled").is_some_and(|enabled| enabled == "1");
        if is_cluster {
            server.learn(None);
        }
        let keys = Keys { prefix: server.options.prefix.clone() };
        let redis = Self { server, keys, is_cluster, warnings: warnings(&facts) };
        redis.check_disk(facts.get("redis_version"))?;
        redis.check_schema()?;
        Ok(redis)
    }

    /// Whether the server supports `durability=aof`.
    fn check_disk(&self, version: Option<&String>) -> StoreResult<()> {
        let RedisOptions { is_on_disk: true, .. } = self.server.options else { return Ok(()) };
        let mut wait = cmd("WAITAOF");
        wait.arg(1).arg(0).arg(1);
        let refused = |problem: String| StoreError::invalid("url", format!("asks for `durability=aof`, {problem}"));
        for node in self.server.masters() {
            match self.server.tell(&node, &wait) {
                Err(StoreError::Failed { problem, .. }) if problem.contains("unknown command") => {
                    let version = version.map_or("an earlier release", String::as_str);
                    return Err(refused(format!("which needs Redis 7.2 or Valkey, and the server is {version}")));
                }
                Err(StoreError::Failed { problem, .. }) if problem.contains("appendonly") => {
                    return Err(refused("and the server writes none\nhint: `appendonly yes`".to_owned()));
                }
                Err(error) => return Err(error),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    fn check_schema(&self) -> StoreResult<()> {
        let (_, mut reply) = self.script(Runnable::Read(&SCHEMA), &[self.keys.schema()], &|arguments| {
            arguments.text(&KNOWN.to_string());
        })?;
        let found = self.odd(reply.time())?;
        if found > KNOWN {
            return Err(StoreError::NewerSchema { store: self.server.options.describe(), found, known: KNOWN });
        }
        Ok(())
    }
}

/// Returns what the server reports of itself; nothing if this user may not ask.
fn facts(server: &Server) -> StoreResult<HashMap<String, String>> {
    let text = match server.tell(&server.options.seed(), &cmd("INFO")) {
        Ok(Value::BulkString(text)) => String::from_utf8_lossy(&text).into_owned(),
        Ok(_) | Err(StoreError::Forbidden { .. }) => String::new(),
        Err(error) => return Err(error),
    };
    let facts = text.lines().filter_map(|line| line.trim_end().split_once(':'));
    Ok(facts.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn warnings(facts: &HashMap<String, String>) -> Vec<String> {
    let fact = |name: &str| facts.get(name).map_or("", String::as_str);
    let mut warnings = Vec::new();
    let policy = fact("maxmemory_policy");
    if !matches!(fact("maxmemory"), "" | "0") && !matches!(policy, "" | "noeviction") {
        let what = if policy.starts_with("volatile") { "sessions with a time to live" } else { "sessions" };
        let when = "when its memory is full; `noeviction` tells instead";
        warnings.push(format!("with `maxmemory-policy {policy}` the server may drop parts of {what} {when}"));
    }
    if fact("aof_enabled") == "0" {
        let lost = "what was written since its last snapshot is lost with the server";
        warnings.push(format!("`appendonly` is off: {lost}; `appendonly yes` keeps it"));
    }
    warnings
}
