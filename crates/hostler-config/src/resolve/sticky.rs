//! The meaning of `sticky`, and what does not fit together. Knows no workers.

use std::time::Duration;

use super::Resolver;
use crate::document::KeyPath;
use crate::file::{StickyBy, StickySwitch, StickyTable, is_token};
use crate::resolved::{PoolMembers, Sticky};

/// A shorter key can be guessed.
const SHORTEST_SECRET: usize = 16;

impl Resolver<'_> {
    /// The meaning of `sticky` for the pool of this name.
    pub(super) fn sticky(
        &mut self,
        path: &KeyPath,
        pool: &str,
        written: &StickySwitch,
        (source, longest_request): (&PoolMembers, Duration),
    ) -> Sticky {
        let table = match written {
            StickySwitch::Word(by) => StickyTable { by: by.clone(), ..StickyTable::default() },
            StickySwitch::Value(table) => {
                self.check_sticky(path, table, source);
                table.clone()
            }
        };
        // A request that begins as late as this still ends before its worker is told to stop.
        let time_left = match source {
            PoolMembers::Workers(workers) => workers.hang_timeout.saturating_sub(longest_request),
            PoolMembers::Members(_) => Duration::ZERO,
        };
        Sticky {
            by: table.by,
            wait: table.wait.0,
            drain: table.drain.0.min(time_left),
            cookie: table.name.unwrap_or_else(|| format!("hostler_{pool}")),
            same_site: table.same_site.unwrap_or_default(),
            secret: table.secret,
        }
    }

    fn check_sticky(&mut self, path: &KeyPath, table: &StickyTable, source: &PoolMembers) {
        let written = |key: &str| self.document.is_written(&path.key(key));
        let mut wrong: Vec<(&str, String)> = Vec::new();
        if table.by != StickyBy::Cookie {
            let for_cookies = ["name", "same_site", "secret"].into_iter().filter(|key| written(key));
            wrong.extend(for_cookies.map(|key| (key, "is for by = \"cookie\" only".into())));
        }
        if matches!(table.by, StickyBy::Auto | StickyBy::Off) && written("wait") {
            wrong.push(("wait", format!("has no effect with by = \"{}\"", table.by)));
        }
        if written("drain") {
            if let PoolMembers::Members(_) = source {
                wrong.push(("drain", "not allowed for members, because Hostler does not start them".into()));
            } else if !matches!(table.by, StickyBy::Auto | StickyBy::Cookie) {
                wrong.push(("drain", format!("has no effect with by = \"{}\"", table.by)));
            }
        }
        if let Some(name) = &table.name
            && (name.is_empty() || !name.bytes().all(is_token))
        {
            let why =
                format!("{name:?} is not a valid name of a cookie; use letters, digits, \"-\" and \"_\"");
            wrong.push(("name", why));
        }
        if let Some(secret) = &table.secret
            && secret.0.chars().count() < SHORTEST_SECRET
        {
            wrong.push(("secret", format!("is too short; write at least {SHORTEST_SECRET} characters")));
        }
        wrong.into_iter().for_each(|(key, why)| self.refuse(&path.key(key), why));
    }
}
