//! The section of `docs/reference/refusals.md` about registered routes: each refusal in gorouter's words. Knows no page.

use hostler_engine::gateway::refusal::{self, Refusal};
use hostler_wire::{ResponseHead, Whole};

use super::{answer, objection};

const INTRODUCTION: &str = "
## Responses on registered routes

A request that goes by a registered route (`[registrar]`), or by none while there is a registrar, is answered in the format of Cloud Foundry's gorouter. The reason in
the log and in the status is the same as above; the response has `X-Cf-Routererror` in place of `Hostler-Refusal`. `WHY` is the reason of the last
attempt, for example `endpoint_failure (EOF)`. All other refusals look as above. See [Cloud Foundry's router protocol](../protocols/cloud-foundry-router.md).

";

/// The host of the examples.
const HOST: &str = "shop.example.com";

/// The section. What `compat` changes has a row of its own.
pub fn markdown() -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str(
        "| reason | status | `X-Cf-Routererror` | `Cache-Control` | body |\n|---|---|---|---|---|\n",
    );
    let mut rows = Vec::new();
    for refusal in refusal::examples().into_iter().chain(objection::examples()) {
        let Some(usual) = row(&refusal, false) else { continue };
        let compat = row(&refusal, true).filter(|compat| *compat != usual);
        let reason = refusal.facts().reason;
        rows.push(format!("| `{reason}` {usual}"));
        rows.extend(compat.map(|compat| format!("| `{reason}` with `compat = \"gorouter\"` {compat}")));
    }
    rows.dedup();
    text.push_str(&rows.join("\n"));
    text.push_str(
        "\n\nA 503 has `Retry-After` as above; with `compat = \"gorouter\"` it has none. The responses with 414 and 431 look like this only with \
         `compat = \"gorouter\"`, because\nHostler reads no route from such a head.\n",
    );
    text
}

fn row(refusal: &Refusal, compat: bool) -> Option<String> {
    let Whole { head, body } = answer::shown(refusal, HOST, compat)?;
    let body = String::from_utf8_lossy(&body);
    let body = if body.is_empty() { "none".into() } else { format!("`{}`", body.trim_end()) };
    let cells = [field(&head, "X-Cf-Routererror"), field(&head, "Cache-Control"), body];
    Some(format!("| {} | {} |", head.status, cells.join(" | ")))
}

fn field(head: &ResponseHead, name: &str) -> String {
    head.fields.get(name).map_or("none".into(), |value| format!("`{}`", String::from_utf8_lossy(value)))
}
