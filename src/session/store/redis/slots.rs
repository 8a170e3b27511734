//! Finds the node of a key in a cluster.

use redis::Value;

use super::reply::{Odd, Reply};

/// A node's host and port.
pub type ClusterNode = (String, u16);

/// Slots of a cluster. Source: Redis Cluster specification, "Key distribution model".
const SLOTS: u16 = 16_384;

/// Masters of ranges of slots; none if the server is not a cluster.
#[derive(Debug, Default)]
pub struct Slots {
    ranges: Vec<(u16, u16, ClusterNode)>,
    /// All known nodes with replicas: one of them will know a new master.
    pub nodes: Vec<ClusterNode>,
}

impl Slots {
    /// Parses `CLUSTER SLOTS` of `teller`; a node without a host is on the teller's.
    pub fn read(answer: Value, teller: &ClusterNode) -> Result<Self, Odd> {
        let mut slots = Self::default();
        for range in Reply::of(answer)? {
            let mut range = Reply::of(range)?;
            let [first, last] = [range.number()?, range.number()?].map(|slot| u16::try_from(slot).unwrap_or(SLOTS));
            for (at, node) in range.enumerate() {
                let mut node = Reply::of(node)?;
                let host = node.text().unwrap_or_default();
                let host = if host.is_empty() || host == "?" { teller.0.clone() } else { host };
                let node = (host, u16::try_from(node.number()?).unwrap_or(teller.1));
                if at == 0 {
                    slots.ranges.push((first, last, node.clone()));
                }
                if !slots.nodes.contains(&node) {
                    slots.nodes.push(node);
                }
            }
        }
        Ok(slots)
    }

    /// Returns the node that has a slot.
    pub fn master(&self, slot: u16) -> Option<&ClusterNode> {
        self.ranges.iter().find(|(first, last, _)| (*first..=*last).contains(&slot)).map(|(_, _, node)| node)
    }

    /// Returns every node that has slots.
    pub fn masters(&self) -> Vec<ClusterNode> {
        let mut masters: Vec<ClusterNode> = self.ranges.iter().map(|(_, _, node)| node.clone()).collect();
        masters.sort();
        masters.dedup();
        masters
    }
}

/// Returns the slot of a key: of what stands between its first braces, if anything does.
pub fn slot(key: &str) -> u16 {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    crc16(tag.filter(|tag| !tag.is_empty()).unwrap_or(key).as_bytes()) % SLOTS
}

/// CRC16, XMODEM. Source: Redis Cluster specification, appendix A.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(
            crc ^ (u16::from(*byte) << 8),
            |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 },
        )
    })
}

/// Reads the node that a redirection names, as seen from `teller`.
pub fn redirected(address: &str, teller: &ClusterNode) -> Option<ClusterNode> {
    let (host, port) = address.rsplit_once(':')?;
    let host = if host.is_empty() { teller.0.clone() } else { host.to_owned() };
    Some((host, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{redirected, slot};

    #[test]
    fn keys_have_the_slots_that_redis_gives_them() {
        // `CLUSTER KEYSLOT` of Redis 7.0.15.
        for (key, expected) in [("123456789", 12_739), ("foo", 12_182), ("a{foo}b", 12_182), ("{}foo", 9_500)] {
            assert_eq!(slot(key), expected, "{key}");
        }
    }

    #[test]
    fn a_redirection_without_host_is_to_the_same_host() {
        let teller = ("h".to_owned(), 1);
        assert_eq!(redirected(":7000", &teller), Some(("h".to_owned(), 7000)));
        assert_eq!(redirected("::1:7000", &teller), Some(("::1".to_owned(), 7000)));
        assert_eq!(redirected("nothing", &teller), None);
    }
}
