//! Lists the sessions of a user by the time of the last write.

use std::collections::HashSet;

use super::super::{Head, Page, SessionKey, StoreResult, UserKey};
use super::Redis;
use super::keys::{LIST, META, stem_of};
use super::reply::Reply;
use super::scripts::{LIST as LISTING, SWEEP};
use super::server::Runnable;

/// Sessions on a page.
const SESSIONS: u64 = 500;

impl Redis {
    /// Reads the list in pages and removes expired sessions from it.
    pub(super) fn list_sessions(&self, user: &UserKey, page: Page) -> StoreResult<Vec<Head>> {
        let list = self.keys.list(user);
        let stem = stem_of(&list);
        let mut missing = page.limit.unwrap_or(u64::MAX).saturating_add(page.offset);
        let (mut heads, mut known, mut rank) = (Vec::new(), HashSet::new(), 0);
        while missing > 0 && page.limit != Some(0) {
            let (_, mut reply) = self.script(Runnable::Read(&LISTING), std::slice::from_ref(&list), &|arguments| {
                arguments.text(&stem).text(META).number(rank).number(missing.min(SESSIONS));
            })?;
            let (shown, next, is_end) = self.read(|| {
                let mut shown = Vec::new();
                for session in reply.list()? {
                    let mut session = Reply::of(session)?;
                    let key = SessionKey { owner: user.clone(), id: session.text()? };
                    shown.push(session.list()?.head(key)?);
                }
                Ok((shown, reply.number()?, reply.number()? > 0))
            })?;
            missing -= shown.len() as u64;
            // A session written between two pages moves to the front, which repeats one.
            heads.extend(shown.into_iter().filter(|head: &Head| known.insert(head.key.id.clone())));
            rank = next;
            if is_end {
                break;
            }
        }
        let offset = usize::try_from(page.offset).unwrap_or(usize::MAX);
        Ok(heads.into_iter().skip(offset).collect())
    }

    /// Redis deletes expired keys itself. This scans all key names of the server for lists with expired sessions: rarely is
    /// enough, since reading a list cleans it.
    pub(super) fn sweep_lists(&self) -> StoreResult<u64> {
        let mut dead = 0;
        for node in self.server.masters() {
            let mut cursor = "0".to_owned();
            loop {
                let mut scan = redis::cmd("SCAN");
                scan.arg(&cursor).arg("MATCH").arg(format!("{}:{{*}}{LIST}", self.keys.prefix));
                scan.arg("COUNT").arg(1_000).arg("TYPE").arg("zset");
                let mut reply = self.odd(Reply::of(self.server.tell(&node, &scan)?))?;
                cursor = self.odd(reply.text())?;
                let mut lists = self.odd(reply.list())?;
                while lists.left() > 0 {
                    if let Ok(list) = lists.text() {
                        dead += self.sweep_list(&list)?;
                    }
                }
                if cursor == "0" {
                    break;
                }
            }
        }
        Ok(dead)
    }

    fn sweep_list(&self, list: &str) -> StoreResult<u64> {
        let (stem, mut dead, mut rank) = (stem_of(list), 0, 0);
        loop {
            let (_, mut reply) = self.script(Runnable::Read(&SWEEP), &[list.to_owned()], &|arguments| {
                arguments.text(&stem).text(META).number(rank);
            })?;
            let (dropped, next, is_end) = self.read(|| Ok((reply.number()?, reply.number()?, reply.number()? > 0)))?;
            (dead, rank) = (dead + dropped, next);
            if is_end {
                return Ok(dead);
            }
        }
    }
}
