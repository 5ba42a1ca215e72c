//! The Hypernova response for a batch in which every job has failed, each with the markup from which the browser renders. Does not know how
//! the batch came.

use memchr::memchr3;
use serde_json::Result;

use super::batch::{Batch, Job, JsonText, Token};
use crate::gateway::refusal::Refusal;

/// How `User-Agent` begins for clients that replace the markup of a job with an error: hypernova-client of npm is built on axios, and
/// hypernova of PyPI on requests.
const AGENTS: [&[u8]; 2] = [b"axios/", b"python-requests/"];

/// Why the batch failed, and which client gets the response.
pub(super) struct RenderFailure {
    status: u16,
    message: String,
    /// The client may be one that replaces the markup of a job with an error.
    may_replace: bool,
}

impl RenderFailure {
    pub fn of(refusal: &Refusal, user_agent: Option<&[u8]>) -> Self {
        let facts = refusal.facts();
        Self {
            status: facts.status,
            message: format!("not rendered on the server: {refusal} ({})", facts.reason),
            may_replace: user_agent.is_some_and(|agent| AGENTS.iter().any(|start| agent.starts_with(start))),
        }
    }

    /// An error as Hypernova writes it. hypernova-ruby 1.0.0 raises an exception class of this name, so Ruby must have that class.
    fn error(&self) -> Result<String> {
        let name = "RuntimeError";
        let (message, first) = (json(&self.message)?, json(&format!("{name}: {}", self.message))?);
        Ok(format!("{{\"name\":\"{name}\",\"message\":{message},\"stack\":[{first}]}}"))
    }
}

/// The response. Each job has its own error, as when a render fails. Only hypernova-client and hypernova of PyPI get one error for the
/// whole batch: for a job with an error they replace the markup with their own, which no browser code finds
/// (docs/decisions/0009-hypernova-fallback.md).
pub(super) fn write(batch: &Batch<'_>, cause: &RenderFailure) -> Result<Vec<u8>> {
    let error = cause.error()?;
    let is_at_once = cause.may_replace && has_names_for_tokens(batch);
    let (success, of_batch, of_job) =
        if is_at_once { ("false", error.as_str(), "null") } else { ("true", "null", error.as_str()) };
    let mut out = format!("{{\"success\":{success},\"error\":{of_batch},\"results\":{{");
    for (index, (token, job)) in batch.0.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        out.extend([comma, &token.json, ":{"]);
        if let Some(name) = job.name {
            out.extend(["\"name\":", name.get(), ","]);
        }
        let html = match job.component() {
            Some(name) => json(&markup(&name, token, job))?,
            // No component name, so there is nothing to render. Each client treats it as a failed job.
            None => "null".into(),
        };
        let status = itoa::Buffer::new().format(cause.status).to_owned();
        out.extend(["\"html\":", &html, ",\"meta\":{},\"duration\":null,\"statusCode\":", &status]);
        out.extend([",\"success\":false,\"error\":", of_job, "}"]);
    }
    out.push_str("}}");
    Ok(out.into_bytes())
}

/// Only those two clients do this.
fn has_names_for_tokens(batch: &Batch<'_>) -> bool {
    !batch.0.is_empty()
        && batch.0.iter().all(|(token, job)| job.component().is_some_and(|name| name == token.text))
}

/// What `serialize` of the package `hypernova` writes for a component that rendered nothing.
fn markup(name: &JsonText, token: &Token<'_>, job: &Job<'_>) -> String {
    let (key, id) = (key(name), id(token));
    // Without data there are no props; the browser's code reads `null` as no props.
    let data = job.data.map_or("null", |data| data.get());
    let attributes = format!("data-hypernova-key=\"{key}\" data-hypernova-id=\"{id}\"");
    let mut markup = format!("<div {attributes}></div>\n<script type=\"application/json\" {attributes}><!--");
    encode(data, &mut markup);
    markup.push_str("--></script>");
    markup
}

/// The name without the characters that `\W` matches in JavaScript.
fn key(name: &JsonText) -> String {
    name.0
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
        .map(|&byte| byte as char)
        .collect()
}

/// The browser's code decodes `&gt;` and `&amp;`, and `JSON.parse` the rest. `<` occurs in strings only, so it can be written as a JSON
/// escape. Then nothing in the data can end the script.
fn encode(data: &str, out: &mut String) {
    let mut rest = data;
    while let Some(at) = memchr3(b'&', b'<', b'>', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        out.push_str(match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "\\u003c",
            _ => "&gt;",
        });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

/// The token, if it is a UUID (as with pyramid-hypernova), because the client's own fallback uses it too. Any other token (`"0"`, a name)
/// could occur again in the next batch of the same page, so it gets a new id.
fn id(token: &Token<'_>) -> String {
    match std::str::from_utf8(&token.text.0) {
        Ok(token) if is_uuid(token) => token.to_owned(),
        _ => new_id(),
    }
}

pub(super) fn is_uuid(token: &str) -> bool {
    token.len() == 36
        && token.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// A UUID of version 4. It must be unique, but not secret.
fn new_id() -> String {
    let id = fastrand::u128(..) & !(0xf000 << 64) & !(0xc000 << 48) | 0x4000 << 64 | 0x8000 << 48;
    let digits = format!("{id:032x}");
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

fn json(text: &str) -> Result<String> {
    serde_json::to_string(text)
}
