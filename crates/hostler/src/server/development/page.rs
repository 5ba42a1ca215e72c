//! The page that says why an app does not start. Does not know who gets it.

use std::fmt::Write as _;

use hostler_wire::{ResponseHead, Whole};
use hostler_worker::FailedBoot;

use crate::html::escaped;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The page runs its own script and loads nothing.
const POLICY: &[u8] = b"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'";

/// What the page tells.
pub(super) struct BootFailure<'a> {
    /// Differs from that of every other failure.
    pub number: u64,
    pub failed: &'a FailedBoot,
    /// Older workers serve other requests.
    pub serves: bool,
}

/// The page as an answer.
pub(super) fn page(failure: &BootFailure<'_>) -> Whole {
    let mut head = ResponseHead::with_status(503);
    head.fields.add(b"Content-Type", b"text/html; charset=utf-8");
    head.fields.add(b"Cache-Control", b"no-store");
    head.fields.add(b"Content-Security-Policy", POLICY);
    head.fields.add(b"Hostler-Development", format!("broken {}", failure.number).as_bytes());
    Whole::new(head, html(failure).into_bytes())
}

fn html(BootFailure { number, failed, serves }: &BootFailure<'_>) -> String {
    let error = plain(failed.error.as_deref().unwrap_or(&failed.how));
    let others = match serves {
        true => "Other requests still go to the last code that worked.",
        false => "No older code is running, so other requests get no response.",
    };
    format!(
        "<!doctype html>
<html lang=\"en\" data-state=\"broken {number}\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta name=\"robots\" content=\"noindex\">
<title>The app does not start</title>
<style>{STYLE}</style>
<noscript><meta http-equiv=\"refresh\" content=\"2\"></noscript>
</head>
<body>
<main>
<header>
<p class=\"mark\">Development</p>
<p class=\"state\" role=\"status\"><span class=\"dot\"></span><span class=\"waits\">Waiting for a change</span><span class=\"starts\">Starting</span><span class=\"away\">Hostler does not answer</span></p>
</header>
<h1>The app does not start</h1>
<p class=\"error\">{error}</p>
<p class=\"how\">Worker {worker}: {how}.</p>
<section aria-label=\"Output of the app\">
<h2>Output of the app</h2>
<pre tabindex=\"0\">{output}</pre>
</section>
<footer>
<p>Save a file, and this page loads again when the app starts. {others}</p>
<p>Only <code>hostler run --watch</code> shows this page.</p>
</footer>
</main>
<script>{SCRIPT}</script>
</body>
</html>
",
        worker = failed.worker,
        how = plain(&failed.how),
        output = lines(failed),
    )
}

/// The output, line by line. Lines of Node and of packages are paler than those of the app.
fn lines(failed: &FailedBoot) -> String {
    if failed.output.iter().all(|line| line.trim().is_empty()) {
        return "The app has printed nothing.".to_owned();
    }
    let mut out = String::new();
    for line in &failed.output {
        let is_foreign = line.trim_start().starts_with("at ")
            && (line.contains("(node:") || line.contains(" node:") || line.contains("/node_modules/"));
        let is_error = failed.error.as_deref() == Some(line);
        let kind = if is_error {
            " class=\"named\""
        } else if is_foreign {
            " class=\"pale\""
        } else {
            ""
        };
        let _ = writeln!(out, "<span{kind}>{}</span>", plain(line));
    }
    out
}

/// As text of a page: without the colours of a terminal, and with HTML's characters escaped.
fn plain(text: &str) -> String {
    escaped(&anstream::adapter::strip_str(text).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_the_app_is_text_on_the_page() {
        let failed = FailedBoot {
            worker: 1,
            obstacle: None,
            how: "exit code 1 before it was ready".into(),
            exit_code: 1,
            error: Some("SyntaxError: Unexpected token '<'".into()),
            output: vec![
                "\u{1b}[31mSyntaxError\u{1b}[0m".into(),
                "SyntaxError: Unexpected token '<'".into(),
                "    at wrapSafe (node:internal/modules/cjs/loader:1)".into(),
                "</pre><script>alert(1)</script>".into(),
            ],
        };
        let whole = page(&BootFailure { number: 3, failed: &failed, serves: true });
        let html = String::from_utf8(whole.body.to_vec()).unwrap();
        assert!(html.contains("<span>SyntaxError</span>"), "{html}");
        assert!(html.contains("<span class=\"named\">SyntaxError: Unexpected token '&lt;'</span>"), "{html}");
        assert!(html.contains("<span class=\"pale\">    at wrapSafe"), "{html}");
        assert!(html.contains("&lt;script&gt;alert(1)") && !html.contains("<script>alert"), "{html}");
        assert_eq!(whole.head.status, 503);
    }
}
