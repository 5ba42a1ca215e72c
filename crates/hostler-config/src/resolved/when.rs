//! The meaning of a route's `when`: conditions that have been checked. Knows no requests.

use std::fmt;

use ipnet::IpNet;

use crate::file::Saying;
use crate::value::Wanted;

/// Conditions that a request must meet, all of them. Equal conditions are equal values: lists are sorted, and names of header fields are in
/// lower case.
///
/// The `Debug` form is a part of the key of stored answers, also in memcached (`When::new` of the gateway): a renamed field loses them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Conditions {
    /// One of these methods. Empty: any. GET includes HEAD.
    pub methods: Vec<String>,
    /// Header fields.
    pub fields: Vec<(String, Wanted)>,
    /// Parameters of the query, percent-decoded.
    pub parameters: Vec<(String, Wanted)>,
    /// Cookies.
    pub cookies: Vec<(String, Wanted)>,
    /// One of these networks has the client. Empty: any.
    pub clients: Vec<IpNet>,
    /// It says one of these about itself. Empty: anything.
    pub sayings: Vec<Saying>,
    /// It must meet none of these.
    pub not: Option<Box<Conditions>>,
}

impl Conditions {
    /// Whether there is no condition.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Without the values of header fields, parameters and cookies, which may be secrets: `method GET, header x-beta`. The alternate form has
/// the values, too.
impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let mut list = |what: &str, items: Vec<String>| {
            if !items.is_empty() {
                parts.push(format!("{what} {}", items.join(" or ")));
            }
        };
        list("method", self.methods.clone());
        list("client", self.clients.iter().map(ToString::to_string).collect());
        list("is", self.sayings.iter().map(ToString::to_string).collect());
        for (what, named) in
            [("header", &self.fields), ("query", &self.parameters), ("cookie", &self.cookies)]
        {
            for (name, wanted) in named {
                parts.push(match wanted {
                    Wanted::There(true) => format!("{what} {name}"),
                    Wanted::There(false) => format!("no {what} {name}"),
                    Wanted::OneOf(patterns) if f.alternate() => {
                        let values: Vec<_> =
                            patterns.iter().map(|one| format!("{:?}", one.to_string())).collect();
                        format!("{what} {name} = {}", values.join(" or "))
                    }
                    Wanted::OneOf(_) => format!("{what} {name}"),
                });
            }
        }
        if let Some(not) = &self.not {
            parts.push(if f.alternate() { format!("none of ({not:#})") } else { format!("none of ({not})") });
        }
        f.write_str(&parts.join(", "))
    }
}
