//! The key of a request's response.

use super::*;

fn key(query: &Query, host: &str, target: &str) -> String {
    key_by(query, false, host, target)
}

fn key_by(query: &Query, secure: bool, host: &str, target: &str) -> String {
    let mut into = b"what was there".to_vec();
    write_key(query, secure, host.as_bytes(), target.as_bytes(), &mut into);
    String::from_utf8(into).expect("text")
}

#[test]
fn a_host_key_ignores_case_and_the_default_port() {
    let cases = [
        (false, "a.test", "a.test"),
        (false, "A.Test", "a.test"),
        (false, "a.test:80", "a.test"),
        (false, "a.test:443", "a.test:443"),
        (true, "a.test:443", "a.test"),
        (true, "a.test:80", "a.test:80"),
        (true, "[::1]:443", "[::1]"),
        (false, "[::1]:443", "[::1]:443"),
        (false, "a.test:8080", "a.test:8080"),
        (false, "a.test:8", "a.test:8"),
        (false, "a.test:080", "a.test:080"),
        (false, "a.test:", "a.test:"),
        (false, "a.test.", "a.test."),
    ];
    for (secure, host, expected) in cases {
        assert_eq!(
            key_by(&Query::AsSent, secure, host, "/B?c"),
            format!("{expected}/B?c"),
            "{host} by TLS: {secure}"
        );
        assert_eq!(is_host_of_key(secure, host.as_bytes()), host == expected, "{host} by TLS: {secure}");
    }
    assert!(!is_host_of_key(false, b""));
}

#[test]
fn the_route_chooses_the_query_parameters_in_the_key() {
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
fn a_parameter_that_an_app_could_read_as_one_of_the_key_belongs_to_the_key() {
    let names = ["q", "f[a]", "gr%C3%B6", "utm_*"];
    let only = Query::Only(names.map(Box::<str>::from).to_vec());
    for name in
        ["%71", "q[]", "q%5B%5D", "q[x]", "[q]", "f%5Ba%5D", "f[a][]", "gr%c3%b6", "utm%5fx", "utm_[]"]
    {
        assert_eq!(key(&only, "a", &format!("/?q=1&{name}=2")).matches('=').count(), 2, "{name}");
    }
    // ASP.NET and PHP.
    for name in ["Q", "+q", "%20q", "q%00x", "Q[]", "UTM.x", "utm+x"] {
        assert_eq!(key(&only, "a", &format!("/?q=1&{name}=2")).matches('=').count(), 2, "{name}");
    }
    for name in ["qq", "%71q", "x[q]", "f", "f[]", "f[b]", "f[ab]", "q+", "q.x", "utm"] {
        assert_eq!(key(&only, "a", &format!("/?q=1&{name}=2")), "a/?q=1", "{name}");
    }
    let only = Query::Only(vec!["pageSize".into(), "a.b".into()]);
    for name in ["pagesize", "a_b", "a+b"] {
        assert_eq!(key(&only, "a", &format!("/?q=1&{name}=2")), format!("a/?{name}=2"));
    }
}

#[test]
fn a_parameter_after_a_semicolon_belongs_to_the_key_if_it_would_after_an_ampersand() {
    let only = Query::Only(vec!["q".into(), "a;b".into()]);
    for parameter in ["x=1;q=2", "x;q=2", "q;x=2", "x=1;%71=2", "x=1;;q[]=2", "a;b=2"] {
        assert_eq!(key(&only, "a", &format!("/?{parameter}&c")), format!("a/?{parameter}"));
    }
    assert_eq!(key(&only, "a", "/?x=1;y=2"), "a/");

    let without = Query::Without(vec!["utm_*".into()]);
    for parameter in ["utm_x=1;q=2", "utm_x;q=2", "q;utm_x=2", "utm_x=1;q"] {
        assert_eq!(key(&without, "a", &format!("/?utm_x&{parameter}")), format!("a/?{parameter}"));
    }
    for parameter in ["utm_x=1;", "utm_x=1;utm_y=2", "utm_x;utm_y"] {
        assert_eq!(key(&without, "a", &format!("/?c&{parameter}")), "a/?c", "{parameter}");
    }
}

#[test]
fn a_query_with_very_many_parameters_belongs_to_the_key_as_it_was_sent() {
    let names = || vec!["q".into()];
    for query in [Query::Sorted, Query::Only(names()), Query::Without(vec!["x".into()])] {
        for more in ["&", "x=1&"] {
            // Express reads the first 1000 parameters, so it would not see this one.
            let target = format!("/?{}q=1", more.repeat(1000));
            assert_eq!(key(&query, "a", &target), format!("a{target}"), "{query:?}");
        }
        assert_eq!(key(&query, "a", &format!("/?{}q=1", "&".repeat(99))), "a/?q=1", "{query:?}");
    }
    for query in [Query::Only(Vec::new()), Query::Ignored] {
        assert_eq!(key(&query, "a", &format!("/?{}q=1", "&".repeat(1000))), "a/", "{query:?}");
    }
}

#[test]
fn a_purge_url_may_omit_its_scheme() {
    let keys = |url: &str| {
        let keys = keys_of_url(&Query::Sorted, url)?;
        Some(keys.into_iter().map(|key| String::from_utf8(key).expect("text")).collect::<Vec<_>>())
    };
    let cases: [(&str, Option<&[&str]>); 13] = [
        ("https://A.test/b?d&c", Some(&["a.test/b?c&d"])),
        ("http://a.test:80", Some(&["a.test/"])),
        ("https://a.test:443", Some(&["a.test/"])),
        ("https://a.test:80", Some(&["a.test:80/"])),
        ("a.test:80/b", Some(&["a.test/b", "a.test:80/b"])),
        ("a.test:443/b", Some(&["a.test:443/b", "a.test/b"])),
        ("a.test/b#c", Some(&["a.test/b"])),
        ("a.test?x", Some(&["a.test/?x"])),
        ("a.test/?to=http://b.test", Some(&["a.test/?to=http://b.test"])),
        ("/b", None),
        ("", None),
        ("ftp://a.test/", None),
        ("a.test/b c", None),
    ];
    for (url, expected) in cases {
        assert_eq!(keys(url), expected.map(|keys| keys.iter().map(ToString::to_string).collect()), "{url}");
    }
}

#[test]
fn a_purge_url_outside_of_ascii_is_read_as_browsers_send_it() {
    let keys = |url: &str| keys_of_url(&Query::AsSent, url);
    for (url, expected) in [
        ("https://a.test/gr\u{f6}\u{df}e?q=\u{20ac}", "a.test/gr%C3%B6%C3%9Fe?q=%E2%82%AC"),
        ("https://a.test/gr%C3%B6", "a.test/gr%C3%B6"),
        ("https://M\u{fc}ller.test:8443/", "xn--mller-kva.test:8443/"),
    ] {
        assert_eq!(keys(url), Some(vec![expected.as_bytes().to_vec()]), "{url}");
    }
    assert_eq!(keys("https://\u{fc} b.test/"), None);
}
