//! Parts of answers of members on routes that compress: no client gets bytes of the plain form behind bytes of a compressed one.

use hostler_testkit::{Upstream, text, upstream};

use crate::cache_hits::asked;
use crate::compression::{html, page};
use crate::site;

const DATE: &str = "Mon, 01 Jan 2024 00:00:00 GMT";

/// A member that answers each range with four bytes.
async fn app() -> Upstream {
    let fields = format!(
        "Date: Tue, 02 Jan 2024 00:00:00 GMT\r\nLast-Modified: {DATE}\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n\
         Cache-Control: private\r\n"
    );
    let part = "HTTP/1.1 206 Partial Content\r\nContent-Type: text/html\r\nContent-Range: bytes 0-3/9000\r\n\
                Content-Length: 4\r\n\r\n<li>";
    let script = move |seen: &hostler_testkit::Seen| match seen.field("range") {
        Some(_) => text(part),
        None => html(&fields, &page()),
    };
    upstream().script(script).start().await
}

#[tokio::test]
async fn neither_a_date_nor_a_weak_tag_says_of_which_form_a_client_has_a_part() {
    for cache in ["false", "'standard'"] {
        let app = app().await;
        let config =
            format!("server.compress = true\n[[routes]]\nmatch = '*'\npool = 'app'\ncache = {cache}");
        let site = site(&config).with("app", &app).start().await;
        let guarded = |accepted: &str, validator: &str| {
            format!("Accept-Encoding: {accepted}\r\nRange: bytes=0-3\r\nIf-Range: {validator}\r\n")
        };
        for validator in [DATE, "W/\"v1\""] {
            let whole = asked(&site, "GET", "/", &guarded("gzip", validator)).await;
            whole.assert_status(200).assert_no_field("content-range");
        }
        assert_eq!(app.targets().len(), 2, "each whole answer is asked for once");
        for (accepted, validator) in [("identity", DATE), ("gzip", "\"v1\"")] {
            let part = asked(&site, "GET", "/", &guarded(accepted, validator)).await;
            part.assert_status(206).assert_says("<li>");
        }
    }
}
