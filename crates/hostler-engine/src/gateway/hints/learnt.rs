//! The links that the last answers had in common, by host, in bounded memory. Knows no requests.

use std::sync::Arc;

use hostler_config::is_hinted;
use hostler_wire::{ResponseHead, WebLink, links};

/// A link is sent if so many answers in a row had it.
pub(super) const ENOUGH: u8 = 8;
/// So many links of one answer are looked at ...
pub(super) const MOST_LINKS: usize = 16;
/// ... and those of at most this length.
pub(super) const LONGEST: usize = 512;
/// A 103 has at most this many bytes of links.
const MOST_BYTES: usize = 4096;
/// The hosts of a route that are remembered: those of the last answers.
pub(super) const MOST_HOSTS: usize = 32;

/// What was learnt from the answers of one release.
#[derive(Default)]
pub(super) struct Learnt {
    release: u64,
    /// The host of the last answer comes last.
    hosts: Vec<OfHost>,
}

struct OfHost {
    /// In lower case.
    host: Box<[u8]>,
    /// The links of the last answer, and how many answers in a row have had each.
    links: Vec<(Box<[u8]>, u8)>,
    /// The 103 with those that enough answers have had. None if there are none.
    head: Option<Arc<ResponseHead>>,
}

impl Learnt {
    /// The 103 for a client that asks this host. None: nothing was learnt, or not from the `newest` release.
    pub fn known(&self, host: &[u8], newest: u64) -> Option<Arc<ResponseHead>> {
        if self.release != newest {
            return None;
        }
        let of_host = self.hosts.iter().find(|of_host| of_host.host.eq_ignore_ascii_case(host))?;
        of_host.head.clone()
    }

    /// What is known of each host, if it is of the `newest` release.
    pub fn all(&self, newest: u64) -> impl Iterator<Item = (&[u8], &ResponseHead)> {
        let hosts = if self.release == newest { &self.hosts[..] } else { &[] };
        hosts.iter().filter_map(|of_host| Some((&*of_host.host, &**of_host.head.as_ref()?)))
    }

    /// Learns from the `Link` fields of an answer. What is known of another release is forgotten.
    pub fn take<'a>(&mut self, host: &[u8], fields: impl Iterator<Item = &'a [u8]>, release: u64) {
        if self.release != release {
            *self = Self { release, hosts: Vec::new() };
        }
        let found = self.hosts.iter().position(|of_host| of_host.host.eq_ignore_ascii_case(host));
        let mut of_host = match found {
            Some(at) => self.hosts.remove(at),
            None => OfHost { host: host.to_ascii_lowercase().into(), links: Vec::new(), head: None },
        };
        of_host.take(fields);
        if self.hosts.len() == MOST_HOSTS {
            self.hosts.remove(0);
        }
        self.hosts.push(of_host);
    }
}

impl OfHost {
    fn take<'a>(&mut self, fields: impl Iterator<Item = &'a [u8]>) {
        let mut now: Vec<(Box<[u8]>, u8)> = Vec::new();
        let all = fields.flat_map(|value| links(value).map_while(Result::ok));
        for link in all.filter(may_be_hinted).take(MOST_LINKS) {
            if now.iter().any(|(text, _)| **text == *link.text) {
                continue;
            }
            let before = self.links.iter_mut().find(|(text, _)| **text == *link.text);
            now.push(match before {
                Some((text, times)) => (std::mem::take(text), times.saturating_add(1)),
                None => (link.text.into(), 1),
            });
        }
        self.links = now;
        let mut bytes = 0;
        let common = self.links.iter().filter(|(_, times)| *times >= ENOUGH).map(|(text, _)| &**text);
        let common = common.take_while(|text| {
            bytes += text.len();
            bytes <= MOST_BYTES
        });
        let common: Vec<_> = common.collect();
        let is_same = self
            .head
            .as_ref()
            .map_or(common.is_empty(), |head| head.fields.values("link").eq(common.iter().copied()));
        if !is_same {
            self.head = (!common.is_empty()).then(|| Arc::new(head(common.into_iter())));
        }
    }
}

/// A 103 with these links.
pub(super) fn head<'a>(links: impl Iterator<Item = &'a [u8]>) -> ResponseHead {
    let mut head = ResponseHead::with_status(103);
    links.for_each(|link| head.fields.add(b"Link", link));
    head
}

/// A link that means the same on every page of the host, and that a browser fetches or connects to early.
fn may_be_hinted(link: &WebLink<'_>) -> bool {
    let is_fixed = link.target.starts_with(b"/")
        || [&b"https://"[..], b"http://"].iter().any(|scheme| {
            link.target.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
        });
    is_fixed
        && link.text.len() <= LONGEST
        // An anchor makes it a link of another page.
        && link.parameter("anchor").is_none()
        && link.relations().any(is_hinted)
}
