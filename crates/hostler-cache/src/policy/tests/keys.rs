//! Under which key a request's answer is.

use super::*;

fn key(query: &Query, host: &str, target: &str) -> String {
    let mut into = b"what was there".to_vec();
    write_key(query, host.as_bytes(), target.as_bytes(), &mut into);
    String::from_utf8(into).expect("text")
}

#[test]
fn hosts_are_one_in_any_case_and_with_the_port_that_goes_without_saying() {
    for host in ["a.test", "A.Test", "a.test:80", "a.test:443"] {
        assert_eq!(key(&Query::AsSent, host, "/B?c"), "a.test/B?c", "{host}");
    }
    assert_eq!(key(&Query::AsSent, "a.test:8080", "/"), "a.test:8080/");
    assert_eq!(key(&Query::AsSent, "[::1]:443", "/"), "[::1]/");
}

#[test]
fn a_query_belongs_to_the_key_as_far_as_the_route_says() {
    let names = || vec!["a".into(), "utm_*".into()];
    let cases = [
        (Query::AsSent, "/?b=2&a=1", "/?b=2&a=1"),
        (Query::AsSent, "/?", "/?"),
        (Query::Sorted, "/?b=2&a=1&&", "/?a=1&b=2"),
        (Query::Sorted, "/?b=2&a=2&b=1", "/?a=2&b=2&b=1"),
        (Query::Sorted, "/?ab=1&a=2", "/?a=2&ab=1"),
        (Query::Sorted, "/?", "/"),
        (Query::Only(names()), "/?b=2&utm_x=3&a=1", "/?a=1&utm_x=3"),
        (Query::Only(names()), "/?b=2", "/"),
        (Query::Without(names()), "/?b=2&utm_x=3&a=1&c", "/?b=2&c"),
        (Query::Ignored, "/?b=2", "/"),
        (Query::Ignored, "/", "/"),
    ];
    for (query, target, expected) in cases {
        assert_eq!(key(&query, "a", target), format!("a{expected}"), "{query:?} {target}");
    }
}

#[test]
fn an_operator_names_a_url_with_or_without_its_scheme() {
    let key = |url: &str| {
        let mut into = Vec::new();
        write_key_of_url(&Query::Sorted, url, &mut into).then(|| String::from_utf8(into).expect("text"))
    };
    let cases = [
        ("https://A.test/b?d&c", Some("a.test/b?c&d")),
        ("http://a.test:80", Some("a.test/")),
        ("a.test/b#c", Some("a.test/b")),
        ("a.test?x", Some("a.test/?x")),
        ("a.test/?to=http://b.test", Some("a.test/?to=http://b.test")),
        ("/b", None),
        ("", None),
        ("ftp://a.test/", None),
        ("a.test/b c", None),
    ];
    for (url, expected) in cases {
        assert_eq!(key(url).as_deref(), expected, "{url}");
    }
}
