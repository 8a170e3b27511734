//! A cluster of three masters and three replicas: the contract, one slot for each user, slots that move, a master that dies.

use std::collections::{BTreeMap, HashSet};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use nanobot_context::session::store::{
    Append, Create, EventKind, NewEvent, Page, Redis, Scope, SessionKey, SessionStore, StoreError, Ttl,
};

use super::redis_server::{Server, wait_until};
use super::store_contract::{Open, all, batch, create, delta, event, holds, ids};

const NODES: usize = 6;

fn start() -> Vec<Server> {
    let options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--repl-diskless-sync-delay", "0"];
    let nodes: Vec<Server> = (0..NODES).map(|_| Server::with(&options)).collect();
    let mut command = Command::new("redis-cli");
    command.args(["--cluster", "create"]).args(nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)));
    let made = command.args(["--cluster-replicas", "1", "--cluster-yes"]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
    wait_until("the cluster is ready", || {
        nodes.iter().all(|node| {
            let replication = node.tell(&["INFO", "replication"]);
            let is_fed = replication.contains("connected_slaves:1") || replication.contains("master_link_status:up");
            is_fed && node.tell(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
        })
    });
    nodes
}

fn is_master(node: &Server) -> bool {
    node.tell(&["ROLE"]).starts_with("master")
}

/// CRC16 as the specification of Redis Cluster words it, bit by bit.
fn slot(tag: &str) -> u32 {
    let mut crc = 0_u32;
    for bit in tag.bytes().flat_map(|byte| (0..8).rev().map(move |at| u32::from(byte >> at) & 1)) {
        crc = ((crc << 1) & 0xffff) ^ if (crc >> 15) ^ bit == 1 { 0x1021 } else { 0 };
    }
    crc % 16_384
}

fn master_of(nodes: &[Server], slot: u32) -> usize {
    let slot = slot.to_string();
    let holds = |node: &Server| node.tell(&["CLUSTER", "COUNTKEYSINSLOT", &slot]).parse::<u32>().unwrap() > 0;
    nodes.iter().position(|node| is_master(node) && holds(node)).unwrap()
}

/// The keys of a user are on one slot, and the server agrees about which; the users of an app are spread.
fn keys_are_where_they_should_be(nodes: &[Server], store: &Redis) {
    for at in 0..60 {
        let key = SessionKey::new("spread", format!("user-{at}"), "s");
        let changing = NewEvent {
            app: delta(&[("n", Some("1"))]),
            user: delta(&[("u", Some("1"))]),
            ..event("a", EventKind::User)
        };
        store.create(&key, &create()).unwrap();
        let batch = Append { events: vec![changing], ..Append::default() };
        store.append(&key, &batch).unwrap();
        assert_eq!(store.list(&key.owner, Page::default()).unwrap().len(), 1);
    }
    let (mut slots, mut masters) = (BTreeMap::<String, u32>::new(), HashSet::new());
    for node in nodes.iter().filter(|node| is_master(node)) {
        for name in node.tell(&["KEYS", "nbctx:*{*"]).lines() {
            let (tag, _) = name.split_once('{').unwrap().1.split_once('}').unwrap();
            let told: u32 = node.tell(&["CLUSTER", "KEYSLOT", name]).parse().unwrap();
            assert_eq!(told, slot(tag), "{name}");
            assert_eq!(*slots.entry(tag.to_owned()).or_insert(told), told, "{name}");
            if tag.starts_with("6:spread|") {
                masters.insert(node.port);
            }
        }
    }
    let users = slots.iter().filter(|(tag, _)| tag.starts_with("6:spread|"));
    assert_eq!((users.count(), masters.len()), (60, 3));
}

/// Moves the slot of `key` to another master while it is written.
fn a_slot_moves_under_a_writer(nodes: &[Server], store: &Redis) {
    let key = SessionKey::new("moving", "u", "s");
    store.create(&key, &create()).unwrap();
    store.append(&key, &batch(&["first"])).unwrap();
    let number = slot("6:moving|1:u");
    let from = &nodes[master_of(nodes, number)];
    let to = nodes.iter().find(|node| is_master(node) && node.port != from.port).unwrap();
    let [source, target] = [from, to].map(|node| node.tell(&["CLUSTER", "MYID"]));
    let slot = number.to_string();
    let is_over = AtomicBool::new(false);
    let written = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0;
            while !is_over.load(Ordering::Relaxed) {
                let id = format!("e{written}");
                assert_eq!(store.append(&key, &batch(&[&id])).unwrap().repeated, [false]);
                written += 1;
                assert_eq!(store.list(&key.owner, Page::default()).unwrap().len(), 1);
            }
            written
        });
        sleep(Duration::from_millis(100));
        to.tell(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source]);
        from.tell(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target]);
        // One key after the other, so that the writer finds some here and some there.
        while let Some(name) =
            from.tell(&["CLUSTER", "GETKEYSINSLOT", &slot, "1"]).lines().next().filter(|name| !name.is_empty())
        {
            from.tell(&["MIGRATE", "127.0.0.1", &to.port.to_string(), name, "0", "5000"]);
            sleep(Duration::from_millis(20));
        }
        for node in [to, from] {
            node.tell(&["CLUSTER", "SETSLOT", &slot, "NODE", &target]);
        }
        sleep(Duration::from_millis(200));
        is_over.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert!(written > 10, "{written}");
    assert_eq!(nodes[master_of(nodes, number)].port, to.port);
    let loaded = all(store, &key);
    assert_eq!(ids(&loaded)[1..], (0..written).map(|at| format!("e{at}")).collect::<Vec<_>>());
}

/// Kills the master of a user; `store` was opened through it.
fn a_master_dies(nodes: &mut [Server], key: &SessionKey, at: usize) {
    let url = nodes[at].url();
    let safe = Redis::open(&format!("{url}?replicas=1")).unwrap();
    let store = Redis::open(&format!("{url}?timeout=15")).unwrap();
    let names: Vec<String> = (0..50).map(|at| format!("e{at}")).collect();
    for name in &names {
        safe.append(key, &batch(&[name])).unwrap();
    }
    all(&store, key);
    nodes[at].kill();
    store.append(key, &batch(&["after"])).unwrap();
    let loaded = all(&store, key);
    assert_eq!(ids(&loaded).len(), 51, "what a replica had is there");
    assert_eq!(store.append(key, &batch(&["e0", "after"])).unwrap().repeated, [true, true]);
    let other = nodes.iter().enumerate().find(|(number, _)| *number != at).unwrap().1;
    assert_eq!(all(&Redis::open(&other.url()).unwrap(), key).events, loaded.events);
}

#[test]
fn a_cluster_holds_the_contract_while_slots_move_and_masters_die() {
    let mut nodes = start();
    let url = nodes[0].url();
    let store = Redis::open(&url).unwrap();
    assert!(store.describe().contains("a cluster"), "{}", store.describe());
    let address = url.clone();
    let open: Open = Box::new(move || Arc::new(Redis::open(&address).unwrap()));
    holds(&open);
    keys_are_where_they_should_be(&nodes, &store);
    let short = SessionKey::new("spread", "user-0", "short");
    store.create(&short, &Create { ttls: [Ttl(1), Ttl(0), Ttl(0)], ..create() }).unwrap();
    sleep(Duration::from_millis(20));
    assert!(store.sweep().unwrap() > 0);
    let refused = Redis::open(&format!("{url}/3")).unwrap_err();
    assert!(matches!(refused, StoreError::Failed { .. }), "{refused}");
    a_slot_moves_under_a_writer(&nodes, &store);
    let key = SessionKey::new("dying", "u", "s");
    store.create(&key, &create()).unwrap();
    store.update_state(&Scope::App("dying".to_owned()), &delta(&[("x", Some("1"))]), Ttl(0)).unwrap();
    let at = master_of(&nodes, slot("5:dying|1:u"));
    a_master_dies(&mut nodes, &key, at);
}
