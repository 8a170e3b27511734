//! Connections: a few for each node, requests to the right one, and one retry after a lost answer.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::{Client, Cmd, Connection, ConnectionLike, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value, cmd};

use super::super::{StoreError, StoreResult};
use super::errors;
use super::options::RedisOptions;
use super::reply::Odd;
use super::scripts::{Arguments, LuaScript};
use super::slots::{ClusterNode, Slots, redirected, slot};

/// Idle connections kept for each node.
const KEPT: usize = 8;
/// Pause before a server that is not ready is asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// A script, which is told whether it was sent before, or a command.
pub enum Runnable<'a> {
    /// A script that changes something.
    Write(&'a LuaScript),
    /// A script without effects that a caller relies on.
    Read(&'a LuaScript),
    /// A command; it changes nothing.
    Command(&'static str),
}

/// One exchange with the server. All keys are on one slot.
pub struct Exchange<'a> {
    /// What is run.
    pub run: Runnable<'a>,
    /// The keys, by the first of which the node is found.
    pub keys: &'a [String],
    /// Adds the arguments.
    pub fill: &'a dyn Fn(&mut Arguments<'_>),
    /// Commands sent before it in one batch. Others may come in between.
    pub first: &'a [Cmd],
}

impl Exchange<'_> {
    fn command(&self, is_again: bool, with_code: bool) -> Cmd {
        let mut command = match self.run {
            Runnable::Write(script) | Runnable::Read(script) => script.command(with_code).arg(self.keys.len()).take(),
            Runnable::Command(name) => cmd(name),
        };
        command.arg(self.keys);
        let mut arguments = Arguments(&mut command);
        if !matches!(self.run, Runnable::Command(_)) {
            arguments.flag(is_again);
        }
        (self.fill)(&mut arguments);
        command
    }
}

/// Why an exchange failed.
enum Trouble {
    Redis(RedisError),
    /// The write was made, but not as durably as asked for.
    NotSafe(String),
}

impl From<RedisError> for Trouble {
    fn from(error: RedisError) -> Self {
        Self::Redis(error)
    }
}

#[derive(Default)]
struct Idle {
    process: u32,
    connections: HashMap<ClusterNode, Vec<Connection>>,
}

/// A server, or the nodes of a cluster.
pub struct Server {
    pub options: RedisOptions,
    seed: ClusterNode,
    slots: RwLock<Slots>,
    idle: Mutex<Idle>,
}

impl Server {
    /// Returns a server without connecting.
    pub fn new(options: RedisOptions) -> Self {
        let seed = options.seed();
        Self { options, seed, slots: RwLock::default(), idle: Mutex::default() }
    }

    /// Returns the nodes that hold keys.
    pub fn masters(&self) -> Vec<ClusterNode> {
        let masters = self.slots.read().unwrap_or_else(PoisonError::into_inner).masters();
        if masters.is_empty() { vec![self.seed.clone()] } else { masters }
    }

    fn is_cluster(&self) -> bool {
        !self.slots.read().unwrap_or_else(PoisonError::into_inner).nodes.is_empty()
    }

    fn master(&self, slot: u16) -> ClusterNode {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.master(slot).unwrap_or(&self.seed).clone()
    }

    /// Asks for the slots of the cluster's nodes, the `doubtful` one last; keeps the old ones if no node answers.
    pub fn learn(&self, doubtful: Option<&ClusterNode>) {
        let mut nodes = self.slots.read().unwrap_or_else(PoisonError::into_inner).nodes.clone();
        nodes.push(self.seed.clone());
        nodes.sort_by_key(|node| doubtful == Some(node));
        for node in nodes {
            let answer =
                self.exchange(&node, false, |connection| Ok(cmd("CLUSTER").arg("SLOTS").query::<Value>(connection)?));
            let slots = answer.ok().and_then(|answer| Slots::read(answer, &node).ok());
            if let Some(slots) = slots.filter(|slots| !slots.nodes.is_empty()) {
                *self.slots.write().unwrap_or_else(PoisonError::into_inner) = slots;
                return;
            }
        }
    }

    /// Runs a request at the node of its keys; the last answer is its own.
    ///
    /// The answers of the commands before it are missing while its slot is being moved.
    ///
    /// A broken connection is replaced and the request sent once more, in a cluster until its time is up; writing scripts
    /// are told that. Redirections are followed, and a server that is not ready is waited for, within the same time.
    pub fn run(&self, request: &Exchange<'_>) -> StoreResult<Vec<Value>> {
        let slot = request.keys.first().map_or(0, |key| slot(key));
        let mut node = self.master(slot);
        let (begun, mut is_again, mut is_asking, mut tries) = (Instant::now(), false, false, 0);
        loop {
            let error = match self.request(&node, request, is_again, is_asking) {
                Ok(values) => return Ok(values),
                Err(Trouble::NotSafe(problem)) => {
                    return Err(StoreError::Unavailable { store: self.options.describe(), problem });
                }
                Err(Trouble::Redis(error)) => error,
            };
            tries += 1;
            let is_over = begun.elapsed() >= self.options.timeout;
            let redirection = error.redirect_node().and_then(|(address, _)| redirected(address, &node));
            is_asking = error.kind() == ErrorKind::Server(ServerErrorKind::Ask);
            let is_lost = errors::is_broken(&error) || errors::is_read_only(&error);
            let may_retry =
                redirection.is_some() || errors::is_passing(&error) || is_lost && (tries == 1 || self.is_cluster());
            if is_over || !may_retry {
                return Err(errors::told(&error, &self.options));
            }
            is_again |= errors::is_broken(&error);
            // The first redirection, and the first broken connection, cause no pause.
            if tries > 1 || errors::is_passing(&error) {
                sleep(PAUSE);
            }
            if !is_asking && (redirection.is_some() || self.is_cluster()) {
                self.learn(Some(&node).filter(|_| redirection.is_none()));
            }
            node = redirection.unwrap_or_else(|| self.master(slot));
        }
    }

    /// Sends a command without keys to a node.
    pub fn tell(&self, node: &ClusterNode, command: &Cmd) -> StoreResult<Value> {
        let told = |trouble| match trouble {
            Trouble::Redis(error) => errors::told(&error, &self.options),
            Trouble::NotSafe(problem) => StoreError::Unavailable { store: self.options.describe(), problem },
        };
        let send = || self.exchange(node, false, |connection| Ok(command.query(connection)?));
        match send() {
            Err(Trouble::Redis(error)) if errors::is_broken(&error) && !error.is_timeout() => send().map_err(told),
            other => other.map_err(told),
        }
    }

    /// Returns the error for an answer that no script gives.
    pub fn odd(&self, _: Odd) -> StoreError {
        let problem = "what is stored there has another form".to_owned();
        StoreError::Corrupt { store: self.options.describe(), problem }
    }

    fn request(
        &self,
        node: &ClusterNode,
        request: &Exchange<'_>,
        is_again: bool,
        is_asking: bool,
    ) -> Result<Vec<Value>, Trouble> {
        // `ASKING` is good for one command.
        let first = if is_asking { &[] } else { request.first };
        self.exchange(node, is_asking, |connection| {
            let mut send = |with_code| -> RedisResult<Vec<Value>> {
                ask(connection, is_asking && with_code)?;
                let mut commands = redis::pipe();
                for command in first {
                    commands.add_command(command.clone());
                }
                commands.add_command(request.command(is_again, with_code));
                let answers = connection.req_packed_commands(&commands.get_packed_pipeline(), 0, first.len() + 1)?;
                answers.into_iter().map(Value::extract_error).collect()
            };
            let values = match send(false) {
                Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => send(true)?,
                answers => answers?,
            };
            if matches!(request.run, Runnable::Write(_)) {
                self.make_safe(connection)?;
            }
            Ok(values)
        })
    }

    /// Waits until this connection's writes are on disk and on replicas, if asked for.
    fn make_safe(&self, connection: &mut Connection) -> Result<(), Trouble> {
        let RedisOptions { is_on_disk, replicas, timeout, .. } = self.options;
        // Less than the timeout of an answer.
        let millis = u64::try_from(timeout.as_millis() * 4 / 5).unwrap_or(u64::MAX).max(1);
        let (disks, copies): (u64, u64) = if is_on_disk {
            cmd("WAITAOF").arg(1).arg(replicas).arg(millis).query(connection)?
        } else if replicas > 0 {
            (1, cmd("WAIT").arg(replicas).arg(millis).query(connection)?)
        } else {
            return Ok(());
        };
        if disks < 1 || copies < replicas {
            let disk = if is_on_disk && disks < 1 { "the server's disk has it not, " } else { "" };
            let problem =
                format!("it was written, but {disk}{copies} of {replicas} replicas have it after {millis} ms");
            return Err(Trouble::NotSafe(problem));
        }
        Ok(())
    }

    fn exchange<T>(
        &self,
        node: &ClusterNode,
        is_asking: bool,
        work: impl FnOnce(&mut Connection) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let mut connection = match self.take(node) {
            Some(connection) => connection,
            None => self.connect(node)?,
        };
        let done = ask(&mut connection, is_asking).map_err(Trouble::from).and_then(|()| work(&mut connection));
        match &done {
            Err(Trouble::Redis(error)) if errors::is_broken(error) || errors::is_read_only(error) => self.forget(node),
            _ => self.give_back(node, connection),
        }
        done
    }

    fn connect(&self, node: &ClusterNode) -> RedisResult<Connection> {
        let timeout = self.options.timeout;
        let connection = Client::open(self.options.connection_to(node))?.get_connection_with_timeout(timeout)?;
        connection.set_read_timeout(Some(timeout))?;
        connection.set_write_timeout(Some(timeout))?;
        Ok(connection)
    }

    /// Returns an idle connection. Those inherited by `fork` are the parent's, and closed.
    fn take(&self, node: &ClusterNode) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if idle.process != process {
            *idle = Idle { process, connections: HashMap::new() };
        }
        idle.connections.get_mut(node)?.pop()
    }

    fn give_back(&self, node: &ClusterNode, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle.connections.entry(node.clone()).or_default();
        if kept.len() < KEPT {
            kept.push(connection);
        }
    }

    /// Closes idle connections: if one broke, the others did too.
    fn forget(&self, node: &ClusterNode) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).connections.remove(node);
    }
}

/// Sends `ASKING` to a node that is taking over a slot.
fn ask(connection: &mut Connection, is_asking: bool) -> RedisResult<()> {
    if is_asking { cmd("ASKING").exec(connection) } else { Ok(()) }
}
