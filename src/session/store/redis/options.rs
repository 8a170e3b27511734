//! The options of a URL.

use std::time::Duration;

use redis::{Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, TlsCertificates, parse_redis_url};

use super::super::{StoreError, StoreResult};
use super::slots::ClusterNode;

/// Default timeout of a connection and an answer.
const TIMEOUT: Duration = Duration::from_secs(5);
const PREFIX: &str = "nbctx";

/// The options of a URL. `Debug` shows no password.
#[derive(Debug)]
pub struct RedisOptions {
    /// Server, credentials, certificates.
    pub connection: ConnectionInfo,
    /// The prefix of all keys.
    pub prefix: String,
    /// Whether a write is acknowledged only when it is on disk.
    pub is_on_disk: bool,
    /// Number of replicas that must have a write.
    pub replicas: u64,
    /// Timeout of a connection and an answer.
    pub timeout: Duration,
}

fn wrong(problem: &str) -> StoreError {
    StoreError::invalid("url", format!("{problem}\nhint: `redis://user:password@host:6379/0`"))
}

impl RedisOptions {
    /// Reads a URL, and the file of certificates that it names.
    pub fn read(url: &str) -> StoreResult<Self> {
        let (mut options, authority) = Self::parse(url)?;
        if let Some(path) = authority {
            options.connection = trusting(options.connection, &path)?;
        }
        Ok(options)
    }

    /// Reads a URL alone, and returns the path of the certificates to trust, too. No part of it is repeated in an error: a
    /// password with a `?` or an `@` could stand anywhere.
    pub fn parse(url: &str) -> StoreResult<(Self, Option<String>)> {
        let form =
            "must be `redis[s]://[user:password@]host[:port][/db]`, with `#`, `/`, `?` and `@` in names as `%23`, …";
        let parsed =
            parse_redis_url(url).filter(|url| matches!(url.scheme(), "redis" | "rediss")).ok_or_else(|| wrong(form))?;
        if parsed.fragment().is_some() || parsed.host_str().is_none_or(str::is_empty) {
            return Err(wrong(form));
        }
        let is_encrypted = parsed.scheme() == "rediss";
        let pairs: Vec<(String, String)> = parsed.query_pairs().into_owned().collect();
        let mut bare = parsed;
        bare.set_query(None);
        let mut options = Self {
            connection: bare.into_connection_info().map_err(|_| wrong(form))?,
            prefix: PREFIX.to_owned(),
            is_on_disk: false,
            replicas: 0,
            timeout: TIMEOUT,
        };
        let mut authority = None;
        for (name, value) in pairs {
            match name.as_str() {
                "prefix" => options.prefix = prefix(value)?,
                "durability" => {
                    options.is_on_disk = match value.as_str() {
                        "aof" => true,
                        "server" => false,
                        _ => return Err(wrong("has an unknown `durability`; known are `server` and `aof`")),
                    }
                }
                "replicas" => options.replicas = value.parse().map_err(|_| wrong("needs a number for `replicas`"))?,
                "timeout" => options.timeout = timeout(&value)?,
                "ca" if is_encrypted => authority = Some(value),
                "ca" => return Err(wrong("has a `ca`, which only `rediss://` uses")),
                _ => {
                    let known = "`prefix`, `durability`, `replicas`, `timeout` and `ca`";
                    return Err(wrong(&format!("has an unknown option; known are {known}")));
                }
            }
        }
        // A name of the library would cost each connection two more requests, and errors before Redis 7.2.
        let settings = options.connection.redis_settings().clone().set_skip_set_lib_name();
        let tcp = options.connection.tcp_settings().clone().set_nodelay(true);
        options.connection = options.connection.set_redis_settings(settings).set_tcp_settings(tcp);
        Ok((options, authority))
    }

    /// Returns the server that the URL names.
    pub fn seed(&self) -> ClusterNode {
        match self.connection.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => (host.clone(), *port),
            other => (other.to_string(), 0),
        }
    }

    /// Returns how to connect to another node of the same cluster.
    pub fn connection_to(&self, (host, port): &ClusterNode) -> ConnectionInfo {
        let address = match self.connection.addr().clone() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host: host.clone(), port: *port, insecure, tls_params }
            }
            _ => ConnectionAddr::Tcp(host.clone(), *port),
        };
        self.connection.clone().set_addr(address)
    }

    /// Returns the password, to keep it out of messages.
    pub fn password(&self) -> Option<&str> {
        self.connection.redis_settings().password()
    }

    /// Returns the URL without credentials.
    pub fn describe(&self) -> String {
        let scheme = if matches!(self.connection.addr(), ConnectionAddr::TcpTls { .. }) { "rediss" } else { "redis" };
        let (host, port) = self.seed();
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        let prefix = if self.prefix == PREFIX { String::new() } else { format!("?prefix={}", self.prefix) };
        format!("`{scheme}://{host}:{port}/{}{prefix}`", self.connection.redis_settings().db())
    }
}

fn prefix(prefix: String) -> StoreResult<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    if prefix.is_empty() || !prefix.chars().all(is_plain) {
        // A brace would change which slot a key is on, a star which keys are swept.
        return Err(wrong("has a `prefix` with other characters than letters, digits, `_`, `-`, `.`, `:` and `/`"));
    }
    Ok(prefix)
}

fn timeout(seconds: &str) -> StoreResult<Duration> {
    let timeout = seconds.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    timeout.filter(|timeout| timeout.as_millis() > 0).ok_or_else(|| wrong("needs a number of seconds for `timeout`"))
}

/// Trusts the certificates in a file, and no others.
fn trusting(connection: ConnectionInfo, path: &str) -> StoreResult<ConnectionInfo> {
    let unusable = |problem: String| StoreError::invalid("ca", format!("`{path}` cannot be used: {problem}"));
    let root_cert = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
    if !root_cert.windows(27).any(|bytes| bytes == b"-----BEGIN CERTIFICATE-----") {
        return Err(unusable("it holds no certificate in PEM".to_owned()));
    }
    let certificates = TlsCertificates { client_tls: None, root_cert: Some(root_cert) };
    let client = Client::build_with_tls(connection, certificates).map_err(|error| unusable(error.to_string()))?;
    Ok(client.get_connection_info().clone())
}
