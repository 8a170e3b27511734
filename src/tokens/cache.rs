//! Caches counts.
//!
//! Two levels. [`IdentityCache`] knows a string object by its address, so a hit reads nothing of the text; it must hold
//! the object alive, since a freed address comes back with another text (19,594 of 20,000 times in a trial), and is
//! bounded by the bytes it holds. The content cache knows a text by a 128-bit hash, holds no text, and serves strings
//! that were decoded anew.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::cache::{Allowance, COUNTS, CUTS as CUT_PLACES, Cache};
use crate::message::{Facts, Media};

/// What an entry of a cache says of a text, for one family of models. No two of them meet, whichever cache they are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The family's id, below 32.
    pub family: u8,
    /// What was found out.
    pub way: Way,
}

/// What is found out about a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Its tokens.
    Text,
    /// Its tokens, and whether it is JSON.
    Arguments,
    /// What the image costs that it is: a URL costs what it stands for.
    Image,
    /// The same of one that is looked at in low detail.
    LowDetailImage,
    /// The same of sound.
    Audio,
    /// The same of a document.
    File,
    /// Its tokens as tool schemas.
    Tools,
    /// A bound of these.
    ToolsBound,
    /// Where it is cut.
    Cut,
    /// The same with a mark in Chinese.
    CutInChinese,
    /// How short it is as arguments, and how.
    ShortestArguments,
}

impl Way {
    /// Returns the way of media.
    pub fn of(media: Media) -> Self {
        match media {
            Media::Image { low_detail: false } => Self::Image,
            Media::Image { low_detail: true } => Self::LowDetailImage,
            Media::Audio => Self::Audio,
            Media::File => Self::File,
        }
    }
}

impl Key {
    /// Returns it as a number below 2^[`KEY_BITS`].
    fn number(self) -> u64 {
        u64::from(self.family) | (self.way as u64) << 5
    }
}

const KEY_BITS: u32 = 9;

/// Texts shorter than this are counted again rather than hashed and looked up: both cost about the same.
const MIN_HASHED_BYTES: usize = 48;

type Map<K, V> = HashMap<K, V, BuildMixedHasher>;

/// Returns what an entry takes in a map that is half full: it is from 44 to 88 % where it grows by doubling.
const fn slot_bytes<K, V>() -> usize {
    2 * (size_of::<(K, V)>() + 1)
}

/// Returns what the slots of a map take, used or not.
fn map_bytes<K, V>(map: &Map<K, V>) -> usize {
    map.capacity() / 7 * 8 * (size_of::<(K, V)>() + 1)
}

/// Bounded without a list of uses: when the young half is full it becomes the old half, and what is not asked for until
/// the next time is gone.
struct ContentCache<V> {
    young: Map<u128, V>,
    old: Map<u128, V>,
    allowance: Allowance,
}

impl<V: Copy> ContentCache<V> {
    fn new(allowance: Allowance) -> Self {
        Self { young: HashMap::default(), old: HashMap::default(), allowance }
    }

    /// Returns how many entries a half may have: as many as fill the largest table within half of its bytes.
    fn generation(&self) -> usize {
        let slots = self.allowance.max_bytes() / slot_bytes::<u128, V>();
        slots.checked_ilog2().map_or(0, |power| (1 << power) / 8 * 7)
    }

    fn get(&mut self, key: u128) -> Option<V> {
        if let Some(&value) = self.young.get(&key) {
            return Some(value);
        }
        let value = self.old.remove(&key)?;
        self.put(key, value);
        Some(value)
    }

    fn put(&mut self, key: u128, value: V) {
        let generation = self.generation();
        if self.young.len() >= generation {
            self.old = std::mem::take(&mut self.young);
        }
        if generation > 0 {
            self.young.insert(key, value);
        }
    }
}

impl<V: Copy + Send> Cache for Mutex<ContentCache<V>> {
    fn bytes(&self) -> usize {
        let cache = self.lock().unwrap_or_else(PoisonError::into_inner);
        map_bytes(&cache.young) + map_bytes(&cache.old)
    }

    fn clear(&self) {
        let mut cache = self.lock().unwrap_or_else(PoisonError::into_inner);
        *cache = ContentCache::new(cache.allowance);
    }
}

static CONTENT: LazyLock<Mutex<ContentCache<u32>>> =
    LazyLock::new(|| Mutex::new(ContentCache::new(Allowance::Share(&COUNTS))));
static CUTS: LazyLock<Mutex<ContentCache<CutPoints>>> =
    LazyLock::new(|| Mutex::new(ContentCache::new(Allowance::Share(&CUT_PLACES))));

/// Returns the caches of counts and of cuts.
pub fn caches() -> [&'static dyn Cache; 2] {
    [&*CONTENT, &*CUTS]
}

/// Unknown to whoever writes the texts, so that no two of them can be made to share a count.
static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0_u64));

/// Returns what hashes of content start from, the same as long as the process lives.
pub fn content_seed() -> u64 {
    *SEED
}

/// Returns the count of `text`, from the content cache or from `count`.
pub fn by_content(text: &str, key: Key, count: impl FnOnce() -> u32) -> u32 {
    if text.len() < MIN_HASHED_BYTES {
        return count();
    }
    known(text, key).unwrap_or_else(|| {
        let tokens = count();
        contents().put(content_key(text, key), tokens);
        tokens
    })
}

/// Returns the count of `text`, where the content cache has it.
pub fn known(text: &str, key: Key) -> Option<u32> {
    contents().get(content_key(text, key))
}

fn content_key(text: &str, key: Key) -> u128 {
    xxh3_128_with_seed(text.as_bytes(), SEED.wrapping_add(key.number()))
}

/// A panic elsewhere cannot leave a map of plain numbers half-changed, so a poisoned lock is still good.
fn contents() -> MutexGuard<'static, ContentCache<u32>> {
    CONTENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Values made of texts, by content.
///
/// Two generations, as the counts have them.
pub struct ContentMemory<V> {
    halves: Mutex<Halves<V>>,
    allowance: Allowance,
}

struct Halves<V> {
    young: Map<u128, (Arc<V>, usize)>,
    old: Map<u128, (Arc<V>, usize)>,
    young_bytes: usize,
    old_bytes: usize,
}

impl<V> Default for Halves<V> {
    fn default() -> Self {
        Self { young: HashMap::default(), old: HashMap::default(), young_bytes: 0, old_bytes: 0 }
    }
}

impl<V> ContentMemory<V> {
    /// What an entry takes beside the heap of its value: its slot, and an allocation with two counters and a header.
    const ENTRY_BYTES: usize = slot_bytes::<u128, (Arc<V>, usize)>() + size_of::<V>() + 32;

    /// Returns an empty memory.
    pub fn new(allowance: Allowance) -> Self {
        Self { halves: Mutex::default(), allowance }
    }

    /// Returns what was made of `text`, or makes it now and says how many bytes it has on the heap; `salt` tells ways of
    /// making apart.
    pub fn get_or_make(&self, text: &str, salt: u64, make: impl FnOnce() -> (V, usize)) -> Arc<V> {
        self.get_or_make_by(xxh3_128_with_seed(text.as_bytes(), SEED.wrapping_add(salt)), make)
    }

    /// As [`ContentMemory::get_or_make`], by the seeded hash of what it was made of.
    pub fn get_or_make_by(&self, key: u128, make: impl FnOnce() -> (V, usize)) -> Arc<V> {
        // A map of finished values is whole after a panic elsewhere, too.
        let halves = || self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        let half_bytes = self.allowance.max_bytes() / 2;
        if let Some(known) = halves().get(key, half_bytes) {
            return known;
        }
        let (value, bytes) = make();
        let value = Arc::new(value);
        let dropped = halves().put(key, (Arc::clone(&value), bytes + Self::ENTRY_BYTES), half_bytes);
        // Let go after the lock.
        drop(dropped);
        value
    }
}

impl<V: Send + Sync> Cache for ContentMemory<V> {
    fn bytes(&self) -> usize {
        let halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        halves.young_bytes + halves.old_bytes
    }

    fn clear(&self) {
        let dropped = std::mem::take(&mut *self.halves.lock().unwrap_or_else(PoisonError::into_inner));
        drop(dropped);
    }
}

impl<V> Halves<V> {
    fn get(&mut self, key: u128, half_bytes: usize) -> Option<Arc<V>> {
        if let Some((value, _)) = self.young.get(&key) {
            return Some(Arc::clone(value));
        }
        let entry = self.old.remove(&key)?;
        self.old_bytes -= entry.1;
        let value = Arc::clone(&entry.0);
        self.put(key, entry, half_bytes);
        Some(value)
    }

    /// Returns what has to go for it.
    fn put(&mut self, key: u128, entry: (Arc<V>, usize), half_bytes: usize) -> Option<Map<u128, (Arc<V>, usize)>> {
        if entry.1 > half_bytes {
            return None;
        }
        let mut dropped = None;
        if self.young_bytes + entry.1 > half_bytes {
            dropped = Some(std::mem::replace(&mut self.old, std::mem::take(&mut self.young)));
            self.old_bytes = std::mem::take(&mut self.young_bytes);
        }
        self.young_bytes += entry.1;
        if let Some((_, replaced)) = self.young.insert(key, entry) {
            self.young_bytes -= replaced;
        }
        dropped
    }
}

/// Where a text was cut and what came of it: see the functions that make them.
pub type CutPoints = [u64; 3];

/// Returns the cut of `text` to `size`, from the cache or from `cut`.
///
/// An agent sends the same conversation again and again, so the same texts are cut to the same sizes.
pub fn cut_by_content(text: &str, size: u64, key: Key, cut: impl FnOnce() -> CutPoints) -> CutPoints {
    let key = content_key(text, key) ^ xxh3_128_with_seed(&size.to_ne_bytes(), *SEED);
    let cache = || CUTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = cache().get(key) {
        return known;
    }
    let made = cut();
    cache().put(key, made);
    made
}

/// Facts about string objects, by address; `K` keeps such an object alive.
#[derive(Debug)]
pub struct IdentityCache<K> {
    entries: Map<u64, HeldEntry<K>>,
    bytes: usize,
    allowance: Allowance,
    call: u32,
}

#[derive(Debug)]
struct HeldEntry<K> {
    facts: Facts,
    last_call: u32,
    bytes: usize,
    /// Only held.
    _object: K,
}

/// Joins an address and what is said; the highest bits of an address are the same for all objects of a process.
fn joined(address: usize, key: Key) -> u64 {
    address as u64 ^ (key.number() << (u64::BITS - KEY_BITS))
}

/// Calls after which a string that was not seen again may go.
const KEPT_CALLS: u32 = 8;

impl<K> IdentityCache<K> {
    /// What an object and its entry take beside the text: of short texts it is most.
    const ENTRY_BYTES: usize = slot_bytes::<u64, HeldEntry<K>>() + 56;

    /// Returns an empty cache.
    pub fn new(allowance: Allowance) -> Self {
        Self { entries: HashMap::default(), bytes: 0, allowance, call: 0 }
    }

    /// Starts a call: what the last calls did not use may go from now on.
    pub fn begin_call(&mut self) {
        self.call = self.call.wrapping_add(1);
    }

    /// Returns what is known of the object at `address`.
    pub fn get(&mut self, address: usize, key: Key) -> Option<Facts> {
        let entry = self.entries.get_mut(&joined(address, key))?;
        entry.last_call = self.call;
        Some(entry.facts)
    }

    /// Remembers what was found out about an object of `bytes` bytes of text.
    ///
    /// An object of more than a quarter of what may be held is not.
    pub fn put(&mut self, address: usize, key: Key, object: K, bytes: usize, facts: Facts) {
        let bytes = bytes + Self::ENTRY_BYTES;
        let max_bytes = self.allowance.max_bytes();
        if bytes > max_bytes / 4 {
            return;
        }
        if self.bytes + bytes > max_bytes {
            self.sweep(max_bytes);
        }
        let entry = HeldEntry { facts, bytes, last_call: self.call, _object: object };
        self.bytes += bytes;
        if let Some(replaced) = self.entries.insert(joined(address, key), entry) {
            self.bytes -= replaced.bytes;
        }
    }

    fn sweep(&mut self, max_bytes: usize) {
        let call = self.call;
        self.entries.retain(|_, entry| call.wrapping_sub(entry.last_call) <= KEPT_CALLS);
        self.entries.shrink_to_fit();
        self.bytes = self.entries.values().map(|entry| entry.bytes).sum();
        // All of it in use, and still too much: start again rather than search for the least useful.
        if self.bytes > max_bytes / 2 {
            *self = Self { call, ..Self::new(self.allowance) };
        }
    }

    /// Returns the bytes of the objects held alive, entries included.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Addresses and hashes are spread by one multiplication; the standard hasher would cost more than all else in a look-up.
#[derive(Debug, Default, Clone, Copy)]
pub struct BuildMixedHasher;

#[derive(Debug, Default)]
pub struct MixedHasher(u64);

impl BuildHasher for BuildMixedHasher {
    type Hasher = MixedHasher;
    fn build_hasher(&self) -> MixedHasher {
        MixedHasher::default()
    }
}

impl std::hash::Hasher for MixedHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }
    #[allow(clippy::cast_possible_truncation)] // the low half of a hash is as good as the whole
    fn write_u128(&mut self, hash: u128) {
        self.write_u64(hash as u64);
    }
    fn write_u64(&mut self, word: u64) {
        // 2^64 divided by the golden ratio; the high bits are the good ones, so they are folded down
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: Key = Key { family: 31, way: Way::Text };
    const TOOLS: Key = Key { family: 31, way: Way::Tools };

    #[test]
    fn keys_have_as_many_bits_as_they_may() {
        let last = Key { family: 31, way: Way::ShortestArguments };
        assert!(last.number() < 1 << KEY_BITS);
        assert_ne!(TEXT.number(), TOOLS.number());
    }

    #[test]
    fn a_count_is_made_once() {
        let text = "a text that is long enough to be worth hashing, and then some";
        assert_eq!(by_content(text, TEXT, || 7), 7);
        assert_eq!(by_content(text, TEXT, || unreachable!()), 7);
        assert_eq!(by_content(text, TOOLS, || 9), 9);
    }

    #[test]
    fn the_content_cache_is_bounded() {
        let mut cache = ContentCache::new(Allowance::Bytes(1 << 20));
        let last = 3 * cache.generation() as u128;
        assert!(last > 20_000);
        for key in 0..=last {
            cache.put(key, 1);
        }
        assert_eq!((cache.get(last), cache.get(0)), (Some(1), None));
        assert!((1 << 18..=1 << 20).contains(&Mutex::new(cache).bytes()));
        let mut none = ContentCache::new(Allowance::Bytes(0));
        none.put(1, 1);
        assert_eq!((none.get(1), Mutex::new(none).bytes()), (None, 0));
    }

    #[test]
    fn a_memory_of_many_values_without_a_heap_is_bounded() {
        let memory: ContentMemory<Option<String>> = ContentMemory::new(Allowance::Bytes(1 << 20));
        for number in 0..100_000_u32 {
            memory.get_or_make(&number.to_string(), 0, || (None, 0));
            assert!(memory.bytes() <= 1 << 20);
        }
        let halves = memory.halves.lock().unwrap();
        let entries = halves.young.len() + halves.old.len();
        let slots = map_bytes(&halves.young) + map_bytes(&halves.old);
        assert!(slots + entries * (size_of::<Option<String>>() + 32) <= 5 << 18, "{entries}");
        drop(halves);
        memory.clear();
        let halves = memory.halves.lock().unwrap();
        assert_eq!((halves.young.capacity(), halves.old.capacity(), halves.young_bytes), (0, 0, 0));
    }

    #[test]
    fn the_identity_cache_holds_no_more_than_it_may() {
        let mut cache = IdentityCache::new(Allowance::Bytes(1000));
        for address in 0..100 {
            cache.begin_call();
            cache.put(address, TEXT, (), 90, Facts { tokens: Some(1), json: None });
            assert!(cache.bytes() <= 1000);
        }
        assert_eq!(cache.get(99, TEXT).and_then(|facts| facts.tokens), Some(1));
        assert_eq!(cache.get(99, TOOLS), None);
        assert_eq!(cache.get(0, TEXT), None);
        cache.put(500, TEXT, (), 251, Facts::default());
        assert_eq!(cache.get(500, TEXT), None);
    }
}
