//! Clusters of three nodes.

use std::time::Duration;

use crate::installed::ServerKind;
use crate::resp::RespReply;
use crate::server::Server;

const TRIES: u32 = 800;
const PAUSE: Duration = Duration::from_millis(25);
const SLOTS: u32 = 16_384;
const KEYS_AT_ONCE: &str = "10";

/// Three nodes that share the slots. Dropping the cluster stops them.
///
/// ```no_run
/// use tollgate_redis_local::{Cluster, ServerKind};
///
/// let cluster = Cluster::start(ServerKind::Redis);
/// assert_ne!(cluster.move_slot_of("key"), cluster.nodes.len());
/// println!("{}", cluster.url());
/// ```
pub struct Cluster {
    /// The nodes.
    pub nodes: Vec<Server>,
}

impl Cluster {
    /// Starts a cluster, and waits until all nodes know each other.
    ///
    /// # Panics
    ///
    /// Panics if the nodes do not find each other in time.
    pub fn start(kind: ServerKind) -> Cluster {
        let arguments = ["--save", "", "--appendonly", "no", "--cluster-enabled", "yes"];
        let more = ["--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no"];
        let arguments = [&arguments[..], &more].concat();
        let nodes: Vec<Server> = (0..3).map(|_| Server::with(kind, &arguments)).collect();
        for (number, node) in nodes.iter().enumerate() {
            let first = SLOTS * number as u32 / 3;
            let last = SLOTS * (number as u32 + 1) / 3 - 1;
            let reply = node.command(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
            assert_eq!(reply, RespReply::Text("OK".into()));
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]);
            for other in &nodes[..number] {
                node.command(&["CLUSTER", "MEET", "127.0.0.1", &other.port().to_string()]);
            }
        }
        let cluster = Cluster { nodes };
        cluster.wait_until_ready();
        cluster
    }

    #[expect(clippy::disallowed_methods, reason = "a cluster does not notify when it is ready")]
    fn wait_until_ready(&self) {
        let knows_all = |node: &Server| {
            let info = node.command(&["CLUSTER", "INFO"]);
            info.field("cluster_state") == Some("ok") && info.field("cluster_slots_ok") == Some("16384")
        };
        for _ in 0..TRIES {
            if self.nodes.iter().all(knows_all) {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        panic!("the cluster did not become ready");
    }

    /// Returns the address, which names all nodes.
    pub fn url(&self) -> String {
        let nodes: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        format!("redis+cluster://{}", nodes.join(","))
    }

    /// Returns the index of the node that has the slot of a key.
    ///
    /// # Panics
    ///
    /// The cluster does not answer.
    pub fn node_of(&self, key: &str) -> usize {
        let RespReply::Number(slot) = self.nodes[0].command(&["CLUSTER", "KEYSLOT", key]) else {
            panic!("a key has a slot")
        };
        let has = |node: &Server| {
            let own = node.command(&["CLUSTER", "MYID"]).text().to_owned();
            let RespReply::List(ranges) = node.command(&["CLUSTER", "SLOTS"]) else {
                panic!("there are slots")
            };
            ranges.iter().any(|range| match range {
                RespReply::List(range) => match &range[..] {
                    [RespReply::Number(first), RespReply::Number(last), RespReply::List(master), ..] => {
                        (*first..=*last).contains(&slot)
                            && matches!(&master[2], RespReply::Text(id) if *id == own)
                    }
                    _ => false,
                },
                _ => false,
            })
        };
        self.nodes.iter().position(has).expect("every slot has a node")
    }

    /// Moves the slot of a key to the next node, a few keys at a time, while clients use it.
    /// Returns the index of that node.
    ///
    /// # Panics
    ///
    /// Panics if a node refuses a command.
    pub fn move_slot_of(&self, key: &str) -> usize {
        let RespReply::Number(slot) = self.nodes[0].command(&["CLUSTER", "KEYSLOT", key]) else {
            panic!("a key has a slot")
        };
        let slot = slot.to_string();
        let from = self.node_of(key);
        let to = (from + 1) % self.nodes.len();
        let (source, target) = (&self.nodes[from], &self.nodes[to]);
        let id = |node: &Server| node.command(&["CLUSTER", "MYID"]).text().to_owned();
        let (source_id, target_id) = (id(source), id(target));
        let ok = |reply: RespReply| assert_eq!(reply, RespReply::Text("OK".into()));
        ok(target.command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source_id]));
        ok(source.command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target_id]));
        let (mut mover, port) = (source.client(), target.port().to_string());
        loop {
            let RespReply::List(keys) = mover.command(&["CLUSTER", "GETKEYSINSLOT", &slot, KEYS_AT_ONCE])
            else {
                panic!("a slot has keys")
            };
            if keys.is_empty() {
                break;
            }
            let mut words: Vec<&[u8]> =
                [&b"MIGRATE"[..], b"127.0.0.1", port.as_bytes(), b"", b"0", b"5000"].into();
            words.push(b"KEYS");
            words.extend(keys.iter().map(RespReply::bytes));
            let reply = mover.command_bytes(&words);
            assert!(matches!(&reply, RespReply::Text(_)), "{reply:?}");
        }
        ok(target.command(&["CLUSTER", "SETSLOT", &slot, "NODE", &target_id]));
        ok(source.command(&["CLUSTER", "SETSLOT", &slot, "NODE", &target_id]));
        self.nodes.iter().for_each(|node| {
            node.command(&["CLUSTER", "SETSLOT", &slot, "NODE", &target_id]);
        });
        to
    }
}
