//! The meaning of a route's `when`: valid names, each once, and at least one condition. Knows no requests.

use std::collections::BTreeMap;

use super::Resolver;
use crate::document::KeyPath;
use crate::file::{self, MethodName, Saying, is_token};
use crate::resolved::Conditions;
use crate::value::{OneOrMany, Proxy, Wanted};

/// The tables `when` and `not`, without the latter's place.
struct Written<'a> {
    method: &'a OneOrMany<MethodName>,
    header: &'a BTreeMap<String, Wanted>,
    query: &'a BTreeMap<String, Wanted>,
    cookie: &'a BTreeMap<String, Wanted>,
    client: &'a OneOrMany<Proxy>,
    is: &'a OneOrMany<Saying>,
}

impl Resolver<'_> {
    /// The meaning of `when`. `None` if it is not written, or has no condition.
    pub(super) fn when(&mut self, path: &KeyPath, written: &file::Route) -> Option<Conditions> {
        let (path, written) = (path.key("when"), written.when.as_ref()?);
        let file::When { method, header, query, cookie, client, is, not } = written;
        let here = Written { method, header, query, cookie, client, is };
        let mut conditions = self.conditions(&path, &here);
        let file::WhenNot { method, header, query, cookie, client, is } = not;
        let not_path = path.key("not");
        let not = self.conditions(&not_path, &Written { method, header, query, cookie, client, is });
        if !not.is_empty() {
            conditions.not = Some(Box::new(not));
        } else if self.document.is_written(&not_path) && !self.report.has_errors() {
            self.refuse(&not_path, "has no condition; add method, header, query, cookie, client or is");
        }
        // A condition that cannot be read has an error already.
        if conditions.is_empty() && !self.report.has_errors() {
            let why =
                "has no condition; add method, header, query, cookie, client, is or not, or remove when";
            self.refuse(&path, why);
        }
        (!conditions.is_empty()).then_some(conditions)
    }

    fn conditions(&mut self, path: &KeyPath, written: &Written<'_>) -> Conditions {
        let token = |name: &str| !name.is_empty() && name.bytes().all(is_token);
        let lower = |name: &str| name.to_ascii_lowercase();
        Conditions {
            methods: sorted(written.method.0.iter().map(|method| method.0.clone())),
            fields: self.named(&path.key("header"), written.header, ("a header field", token), lower),
            parameters: self.named(
                &path.key("query"),
                written.query,
                ("a parameter", |name: &str| !name.is_empty()),
                str::to_owned,
            ),
            cookies: self.named(&path.key("cookie"), written.cookie, ("a cookie", token), str::to_owned),
            clients: sorted(written.client.0.iter().map(|network| network.0)),
            sayings: sorted(written.is.0.iter().copied()),
            not: None,
        }
    }

    fn named(
        &mut self,
        path: &KeyPath,
        written: &BTreeMap<String, Wanted>,
        (what, is_name): (&str, impl Fn(&str) -> bool),
        form: impl Fn(&str) -> String,
    ) -> Vec<(String, Wanted)> {
        let mut named: Vec<(String, Wanted)> = Vec::new();
        for (name, wanted) in written {
            let here = path.key(name);
            if !is_name(name) {
                self.refuse(&here, format!("{name:?} is not a valid name of {what}"));
                continue;
            }
            let name = form(name);
            if named.iter().any(|(known, _)| *known == name) {
                self.refuse(&here, format!("{name} is there twice"));
                continue;
            }
            let wanted = match wanted {
                Wanted::OneOf(patterns) => Wanted::OneOf(sorted(patterns.iter().cloned())),
                there @ Wanted::There(_) => there.clone(),
            };
            named.push((name, wanted));
        }
        named.sort_by(|(one, _), (other, _)| one.cmp(other));
        named
    }
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort();
    items.dedup();
    items
}
