//! Redis servers that a test starts on free ports, with a folder of their own, and that end with it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// How long a server may take to start, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("nbctx-redis-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running `redis-server`.
pub struct Server {
    child: Child,
    pub port: u16,
    folder: Folder,
    options: Vec<String>,
}

/// Returns a port that nobody listens on, and whose port for a cluster's nodes is free too.
fn free_port() -> u16 {
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if port < 55_000 && TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok() {
            return port;
        }
    }
}

fn start(folder: &Path, port: u16, options: &[String]) -> Child {
    let mut command = Command::new("redis-server");
    command.current_dir(folder).args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
    command.args(options).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|error| {
        panic!(
            "`redis-server` cannot be started: {error}\nhint: `apt-get install redis-server` or `brew install redis`"
        )
    })
}

impl Server {
    /// Starts a server that keeps nothing.
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// Starts a server with more options.
    pub fn with(options: &[&str]) -> Self {
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        // Another test may take the port between its being found free and its being used.
        for _ in 0..5 {
            let (folder, port) = (Folder::new(), free_port());
            let mut child = start(&folder.0, port, &options);
            if listens(&mut child, port) {
                return Self { child, port, folder, options };
            }
        }
        panic!("`redis-server {}` does not start", options.join(" "));
    }

    /// Returns the URL of the server.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Returns a file of the server's.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }

    /// Ends the server as a crash would: SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again in the same folder on the same port.
    pub fn start_again(&mut self) {
        self.child = start(&self.folder.0, self.port, &self.options);
        assert!(listens(&mut self.child, self.port), "it does not start again");
    }

    /// Has the server write its log anew, and waits for it.
    pub fn rewrite_log(&self) {
        self.tell(&["BGREWRITEAOF"]);
        wait_until("the log is rewritten", || {
            let info = self.tell(&["INFO", "persistence"]);
            ["aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0"].iter().all(|said| info.contains(said))
        });
    }

    /// Runs `redis-cli`, and returns what it said.
    pub fn tell(&self, words: &[&str]) -> String {
        tell(self.port, words)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `redis-cli` on the server of a port.
pub fn tell(port: u16, words: &[&str]) -> String {
    let output = Command::new("redis-cli").args(["-p", &port.to_string()]).args(words).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// Waits until `is_so`, for a cluster that settles.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        sleep(Duration::from_millis(20));
    }
}

/// Waits until a server answers, with an error too; false where it ended.
fn listens(child: &mut Child, port: u16) -> bool {
    let mut has_ended = false;
    wait_until("`redis-server` answers", || {
        has_ended = child.try_wait().unwrap().is_some();
        has_ended || TcpStream::connect(("127.0.0.1", port)).is_ok_and(answers)
    });
    !has_ended
}

fn answers(mut stream: TcpStream) -> bool {
    let mut line = String::new();
    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    stream.write_all(b"PING\r\n").is_ok()
        && BufReader::new(stream).read_line(&mut line).is_ok()
        && (line.starts_with("+PONG") || line.starts_with("-NOAUTH"))
}

/// What a proxy does with what it is to pass on.
pub enum Act {
    Pass,
    /// Closes the connection on both sides; the other side never sees it.
    Cut,
    /// Sends this back in its place.
    Answer(&'static [u8]),
}

/// Which way something goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Request,
    Reply,
}

type Rule = Arc<Mutex<Box<dyn FnMut(Way, &str) -> Act + Send>>>;

/// A connection to a server that can be cut between sending and the answer.
pub struct Proxy {
    pub port: u16,
    rule: Rule,
}

impl Proxy {
    /// Starts a proxy that passes everything on to a port, as long as the process lives.
    pub fn new(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let rule: Rule = Arc::new(Mutex::new(Box::new(|_, _| Act::Pass)));
        let shared = Arc::clone(&rule);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(("127.0.0.1", to)).unwrap());
                for (way, from, to) in [(Way::Request, &client, &server), (Way::Reply, &server, &client)] {
                    let (from, to, rule) = (from.try_clone().unwrap(), to.try_clone().unwrap(), Arc::clone(&shared));
                    thread::spawn(move || pass(way, from, to, &rule));
                }
            }
        });
        Self { port, rule }
    }

    /// Does from now on what `rule` says.
    pub fn follow(&self, rule: impl FnMut(Way, &str) -> Act + Send + 'static) {
        *self.rule.lock().unwrap() = Box::new(rule);
    }

    /// Returns the URL of the server behind it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

fn pass(way: Way, mut from: TcpStream, mut to: TcpStream, rule: &Rule) {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let length = from.read(&mut bytes).unwrap_or(0);
        let act = match length {
            0 => Act::Cut,
            _ => rule.lock().unwrap()(way, &String::from_utf8_lossy(&bytes[..length])),
        };
        let is_passed = match act {
            Act::Pass => to.write_all(&bytes[..length]),
            Act::Answer(answer) => from.write_all(answer),
            Act::Cut => Err(std::io::ErrorKind::Other.into()),
        };
        if is_passed.is_err() {
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
            return;
        }
    }
}
