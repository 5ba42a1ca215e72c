//! What Hypernova's clients and its browser code read in the fallback for batches of all kinds.

use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use proptest::collection::{hash_map, vec};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;
use serde_json::{Value, json};

use super::*;

fn cause(user_agent: &str) -> RenderFailure {
    RenderFailure::of(&Refusal::QueueTimeout, Some(user_agent.as_bytes()))
}

fn answer_to(batch: &str) -> Option<Value> {
    let body = Body::Memory(Arc::new(batch.as_bytes().to_vec().into()));
    let bytes = answer(&body, BatchCoding::Identity, MAX_BATCH, &cause("curl/8"))?;
    Some(serde_json::from_slice(&bytes).expect("what we answer is JSON"))
}

fn results(batch: &str) -> Value {
    answer_to(batch).expect("it is a batch")["results"].take()
}

/// The key, id and data that the browser's code finds in the page; or why a browser would read something else.
fn read(html: &str) -> (String, String, String) {
    let rest = html.strip_prefix("<div data-hypernova-key=\"").expect(html);
    let (key, rest) = rest.split_once("\" data-hypernova-id=\"").expect(html);
    let (id, rest) = rest.split_once("\"></div>\n").expect(html);
    let open = format!(
        "<script type=\"application/json\" data-hypernova-key=\"{key}\" data-hypernova-id=\"{id}\"><!--"
    );
    let data = rest.strip_prefix(&open).and_then(|rest| rest.strip_suffix("--></script>")).expect(html);
    assert!(!data.contains('<') && !data.contains('>'), "nothing in the data can end the script: {data}");
    (key.into(), id.into(), data.replace("&gt;", ">").replace("&amp;", "&"))
}

/// The data that the browser gets, as text.
fn data_of(job: &str) -> String {
    let results = results(&format!("[{{\"name\":\"A\",\"data\":{job}}}]"));
    read(results["0"]["html"].as_str().expect("markup")).2
}

#[test]
fn every_job_has_failed_with_an_error_of_its_own_and_has_markup() {
    let id = "fc62836b-d798-4380-97ca-6761e114d5ca";
    let batch = format!(r#"{{"{id}": {{"name": "a/b c.js", "data": {{"x": "<&>"}}, "context": {{}}}}}}"#);
    let message = "not rendered on the server: no worker became free in time (queue_timeout)";
    let html = format!(
        "<div data-hypernova-key=\"abcjs\" data-hypernova-id=\"{id}\"></div>\n<script type=\"application/json\" \
         data-hypernova-key=\"abcjs\" data-hypernova-id=\"{id}\"><!--{{\"x\": \"\\u003c&amp;&gt;\"}}--></script>"
    );
    let error =
        json!({ "name": "RuntimeError", "message": message, "stack": [format!("RuntimeError: {message}")] });
    let job = json!({
        "name": "a/b c.js", "html": html, "meta": {}, "duration": null, "statusCode": 503, "success": false, "error": error,
    });
    assert_eq!(answer_to(&batch), Some(json!({ "success": true, "error": null, "results": { id: job } })));
}

#[test]
fn the_error_has_the_text_of_the_refusal_and_names_no_member() {
    for (refusal, status, reason) in [
        (Refusal::QueueFull { limit: 3 }, 503, "queue_full"),
        (Refusal::Overloaded, 503, "overloaded"),
        (Refusal::Stopping, 503, "stopping"),
        (Refusal::WorkerLost("secret".into()), 502, "worker_lost"),
        (Refusal::BadAnswer("secret".into()), 502, "bad_answer"),
        (Refusal::Unreachable(io::Error::other("secret")), 502, "unreachable"),
        (Refusal::AnswerTimeout, 504, "answer_timeout"),
    ] {
        let batch = Batch::parse(r#"[{"name":"A","data":{}}]"#).unwrap();
        let answer = reply::write(&batch, &RenderFailure::of(&refusal, None)).unwrap();
        let text = String::from_utf8(answer).unwrap();
        let says = [format!("\"statusCode\":{status},"), format!("{refusal} ({reason})\"")];
        assert!(says.iter().all(|part| text.contains(part)) && !text.contains("secret"), "{text}");
    }
}

#[test]
fn a_client_that_replaces_the_markup_of_a_job_with_an_error_gets_one_error_for_the_batch() {
    let read = |batch: &str, agent| {
        let batch = Batch::parse(batch).unwrap();
        serde_json::from_slice::<Value>(&reply::write(&batch, &cause(agent)).unwrap()).unwrap()
    };
    let named = r#"{"A.js":{"name":"A.js","data":{}},"B.js":{"name":"B\u002ejs","data":{}}}"#;
    for agent in ["axios/0.15.3", "python-requests/2.34.2"] {
        let answer = read(named, agent);
        assert_eq!((&answer["success"], &answer["error"]["name"]), (&false.into(), &"RuntimeError".into()));
        let job = &answer["results"]["B.js"];
        assert_eq!(
            (&job["error"], &job["success"], &job["statusCode"]),
            (&Value::Null, &false.into(), &503.into())
        );
        assert!(job["html"].as_str().unwrap().contains("data-hypernova-key=\"Bjs\""));
    }
    // Other clients that use axios or requests, or that use names as tokens, read the error of each job.
    let numbered = r#"{"1":{"name":"A.js","data":{}}}"#;
    for (batch, agent) in [
        (numbered, "axios/0.15.3"),
        (numbered, "python-requests/2.34.2"),
        (named, "curl/8"),
        ("{}", "axios/1"),
    ] {
        let answer = read(batch, agent);
        assert_eq!((&answer["success"], &answer["error"]), (&true.into(), &Value::Null), "{batch}");
        assert!(answer["results"].as_object().unwrap().values().all(|job| job["error"]["stack"].is_array()));
    }
}

#[test]
fn tokens_keep_the_order_of_the_batch_and_the_last_equal_one_wins() {
    let answer = |batch: &str| {
        let body = Body::Memory(Arc::new(batch.as_bytes().to_vec().into()));
        String::from_utf8(answer(&body, BatchCoding::Identity, MAX_BATCH, &cause("")).unwrap()).unwrap()
    };
    let text = answer(
        r#"{"z":{"name":"Z"},"1":0,"\u007a":{"name":"Y"},"\ud800":{"name":"\udfffX\"<"},"":{"name":""}}"#,
    );
    let places = [
        "\"z\":{\"name\":\"Y\"",
        "\"1\":{\"html\":null",
        "\"\\ud800\":{\"name\":\"\\udfffX\\\"<\"",
        "\"\":{\"name\":\"\"",
    ];
    let found: Vec<_> =
        places.iter().map(|part| text.find(part).unwrap_or_else(|| panic!("{part} in {text}"))).collect();
    assert!(found.is_sorted(), "{text}");
    assert!(!text.contains("\"Z\"") && text.contains("data-hypernova-key=\\\"X\\\""), "{text}");
    let keys: Vec<_> =
        results(r#"[{"name":"A"},{"name":"A"}]"#).as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["0", "1"]);
}

#[test]
fn the_id_is_the_token_if_that_is_unique_and_otherwise_new() {
    let id = |token: &str| {
        let results = results(&format!(r#"{{"{token}":{{"name":"A","data":1}}}}"#));
        read(results[token].as_object().unwrap()["html"].as_str().unwrap()).1
    };
    let token = "FC62836B-d798-1380-97ca-6761e114d5ca";
    assert_eq!(id(token), token);
    for token in [
        "0",
        "A.js",
        "fc62836b-d798-4380-97ca-6761e114d5c",
        "fc62836b-d798-4380-97ca_6761e114d5ca",
        "\u{1F600}",
    ] {
        let (first, second) = (id(token), id(token));
        assert_ne!(first, second);
        assert!(
            reply::is_uuid(&first) && &first[14..15] == "4" && "89ab".contains(&first[19..20]),
            "{first}"
        );
    }
}

#[test]
fn the_key_is_the_name_as_the_browsers_code_strips_it() {
    for (name, key) in [
        (r#""Boom.js""#, "Boomjs"),
        (r#""a\"><script>_1""#, "ascript_1"),
        (r#""\u00e9\u65e5Ab""#, "Ab"),
        (r#""\ud83d\ude00""#, ""),
        (r#""""#, ""),
    ] {
        let results = results(&format!(r#"[{{"data":{{}},"name":{name}}}]"#));
        assert_eq!(read(results["0"]["html"].as_str().unwrap()).0, key, "{name}");
    }
}

#[test]
fn a_job_that_names_no_component_has_failed_and_has_no_markup() {
    let jobs = [r#"null"#, "5", r#""x""#, "[]", "{}", r#"{"name":null,"data":1}"#, r#"{"name":{"a":1}}"#];
    let results = results(&format!("[{}]", jobs.join(",")));
    for (index, job) in jobs.iter().enumerate() {
        let result = &results[index.to_string()];
        assert_eq!((&result["html"], &result["success"]), (&Value::Null, &false.into()), "{job}");
        assert!(result["error"]["message"].is_string(), "{job}");
    }
    assert_eq!(results["6"]["name"], json!({ "a": 1 }));
}

#[test]
fn data_is_kept_to_the_byte() {
    assert_eq!(
        data_of(r#"{"a":1e400,"b":12345678901234567890.10,"c":-0,"d":"\ud800"}"#),
        r#"{"a":1e400,"b":12345678901234567890.10,"c":-0,"d":"\ud800"}"#
    );
    assert_eq!(
        data_of("\"</script >\u{2028}--><!--<script&gt;\\\\<\""),
        "\"\\u003c/script >\u{2028}-->\\u003c!--\\u003cscript&gt;\\\\\\u003c\""
    );
    let deep = ["[".repeat(50_000), "]".repeat(50_000)].concat();
    assert_eq!(data_of(&deep), deep);
    assert_eq!(read(results(r#"[{"name":"A"}]"#)["0"]["html"].as_str().unwrap()).2, "null", "no props");
    assert_eq!(
        read(results(r#"[{"name":"B","data":1,"name":"A","data":2}]"#)["0"]["html"].as_str().unwrap()).2,
        "2"
    );
}

#[test]
fn a_body_that_is_no_batch_is_refused() {
    let many = format!("[{}0]", "0,".repeat(10_000));
    let deep = "[".repeat(100_000);
    for text in [
        "",
        "null",
        "1",
        "\"a\"",
        "{",
        "{} x",
        "{a:1}",
        "{\"a\":{\"name\":\"x}}",
        "[1,]",
        "{\"a\":\"\u{1}\"}",
        &many,
        &deep,
    ] {
        assert!(answer_to(text).is_none(), "{}", &text[..text.len().min(40)]);
    }
    assert_eq!(answer_to(&many.replacen("0,", "", 1)).unwrap()["results"].as_object().unwrap().len(), 10_000);
    assert_eq!(answer_to("\u{feff}{}"), Some(json!({ "success": true, "error": null, "results": {} })));
}

#[test]
fn a_packed_batch_is_unpacked_but_not_beyond_the_limit() {
    let gzip = |bytes: &[u8]| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    };
    let zlib = |bytes: &[u8]| {
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    };
    let batch = br#"[{"name":"A","data":{}}]"#;
    let unpacked = |bytes: Vec<u8>, coding| {
        answer(&Body::Memory(Arc::new(bytes.into())), coding, 1000, &cause("")).is_some()
    };
    assert!(unpacked(gzip(batch), BatchCoding::Gzip));
    assert!(unpacked(zlib(batch), BatchCoding::Deflate));
    assert!(!unpacked(zlib(batch), BatchCoding::Gzip));
    assert!(!unpacked(gzip(batch)[..20].to_vec(), BatchCoding::Gzip));
    let bomb = gzip(&[b"[", &b" ".repeat(1000)[..], b"]"].concat());
    assert!(bomb.len() < 100 && !unpacked(bomb, BatchCoding::Gzip));
}

#[test]
fn a_batch_is_json_that_the_body_parser_would_take() {
    for content_type in [
        "application/json",
        "Application/JSON; charset=UTF-8",
        "application/json;a=b; Charset=\"utf-8\"",
        "application/json; charset=\"utf8\"",
        "application/json ; charset = utf-8",
        "application/json; charset=",
    ] {
        assert!(is_utf8_json(content_type.as_bytes()), "{content_type}");
    }
    for content_type in [
        "",
        "text/plain",
        "application/jsonx",
        "application/json; charset=latin1",
        "application/json; charset=\"a\"",
    ] {
        assert!(!is_utf8_json(content_type.as_bytes()), "{content_type}");
    }
}

#[test]
fn a_batch_has_one_of_the_codings_that_hypernova_takes() {
    let coding_of = |value: &str| {
        let mut fields = Fields::default();
        fields.add(b"Content-Encoding", value.as_bytes());
        coding(&fields)
    };
    assert_eq!(coding(&Fields::default()), Some(BatchCoding::Identity));
    for (value, expected) in [
        ("identity", Some(BatchCoding::Identity)),
        ("gzip", Some(BatchCoding::Gzip)),
        ("X-Gzip", Some(BatchCoding::Gzip)),
        ("deflate", Some(BatchCoding::Deflate)),
        ("br", None),
    ] {
        assert_eq!(coding_of(value), expected, "{value}");
    }
}

/// Strings with text that could end a script, a comment, an attribute or a JSON string.
fn nasty() -> impl Strategy<Value = String> {
    let dangerous = select(vec![
        "</script >",
        "<!--",
        "-->",
        "&gt;",
        "&amp;gt;",
        "&",
        "\\",
        "\"",
        "\u{2028}",
        "\\u003c",
        "\n\t\u{0}",
    ]);
    let part = prop_oneof![dangerous.prop_map(String::from), any::<String>()];
    vec(part, 0..4).prop_map(|parts| parts.concat())
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), any::<i64>().prop_map(Value::from), nasty().prop_map(Value::from),];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            hash_map(nasty(), inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn the_browser_reads_the_data_that_was_sent(token in nasty(), name in nasty(), data in any_json(), pretty: bool) {
        let batch = json!({ &token: { "name": &name, "data": &data } });
        let text = if pretty { serde_json::to_string_pretty(&batch) } else { serde_json::to_string(&batch) };
        let results = results(&text.unwrap());
        assert_eq!(results.as_object().unwrap().keys().collect::<Vec<_>>(), [&token]);
        assert_eq!(&results[&token]["name"], &name);
        let (key, _, read) = read(results[&token]["html"].as_str().unwrap());
        assert!(key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
        assert_eq!(serde_json::from_str::<Value>(&read).unwrap(), data);
    }

    #[test]
    fn no_bytes_cause_a_panic(bytes: Vec<u8>, parts in vec(select(vec!["{", "}", "[", "]", "\"", ":", ",", "\\ud8", "name", "data", "0"]), 0..40)) {
        for bytes in [bytes, parts.concat().into_bytes()] {
            for coding in [BatchCoding::Identity, BatchCoding::Gzip, BatchCoding::Deflate] {
                answer(&Body::Memory(Arc::new(bytes.clone().into())), coding, MAX_BATCH, &cause(""));
            }
        }
    }
}
