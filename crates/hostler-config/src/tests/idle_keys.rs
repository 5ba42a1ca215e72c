//! Keys that change nothing, because of what another key says.

use expect_test::{Expect, expect};

use super::site;

#[test]
fn a_key_that_changes_nothing_causes_a_warning() {
    let check = |text: &str, expected: Expect| {
        site(&format!("{text}\n[[routes]]\nmatch = \"*\"\npool = \"a\"\n")).says(expected);
    };
    check(
        "[pools.a]\ncommand = \"x\"\nworkers = 2\nshrink_after = \"1m\"\nwake_timeout = \"1m\"\nrequest_timeout = \"5s\"\nqueue.timeout = \"6s\"\n[server]\nadmin = \"off\"\nadmin_hosts = [\"a.test\"]\nhttp2 = false\nhttp2_max_streams = 9\nclient_ip_header = \"X-Real-IP\"\ncompress_memory = \"1 MiB\"\nworker_memory = \"1 GiB\"\n",
        expect![[r#"
            hostler.toml:4:1: pools.a.shrink_after: changes nothing, because workers is not { min, max }
            hostler.toml:5:1: pools.a.wake_timeout: changes nothing, because workers is not { min = 0 }
            hostler.toml:7:7: pools.a.queue.timeout: has no effect above the longest request_timeout, 5s: a request waits no longer than that
            hostler.toml:10:1: server.admin_hosts: changes nothing, because server.admin is "off"
            hostler.toml:12:1: server.http2_max_streams: changes nothing, because server.http2 is false
            hostler.toml:13:1: server.client_ip_header: changes nothing, because no proxy is trusted (server.trusted_proxies, trusted_hops)
            hostler.toml:14:1: server.compress_memory: changes nothing, because no route has compress
            hostler.toml:15:1: server.worker_memory: changes nothing, because no pool has workers = { min, max }"#]],
    );
    check(
        "[traces]\nsample = 1\ntls.ca = \"a.pem\"\n[cache]\nmemory = \"9 MiB\"\nnamespace = \"a\"\n[log]\nsample = 9\n[server]\naccess_log = \"gorouter\"\nspool_size = \"8 MiB\"\n[pools.a]\ncommand = \"x\"\n",
        expect![[r#"
            hostler.toml:2:1: traces.sample: changes nothing, because there is no traces.endpoint
            hostler.toml:3:1: traces.tls: changes nothing, because there is no traces.endpoint
            hostler.toml:5:1: cache.memory: changes nothing, because no route has cache or collapse
            hostler.toml:6:1: cache.namespace: changes nothing, because cache.memcached has no server
            hostler.toml:8:1: log.sample: changes nothing, because the log has all requests with server.access_log = "gorouter"
            hostler.toml:11:14: server.spool_size: one connection can take half of it, 4 MiB, and max_body_size allows 10 MiB: longer bodies are refused"#]],
    );
    check(
        "[log]\nslow = \"1s\"\n[server]\naccess_log = \"off\"\n[pools.a]\ncommand = \"x\"\n",
        expect![[
            r#"hostler.toml:2:1: log.slow: changes nothing, because the log has no requests with server.access_log = "off""#
        ]],
    );
    check(
        "[traces]\nendpoint = \"http://127.0.0.1:4318\"\nsample = 1\n[log]\nsample = 9\n[server]\ncompress = true\ncompress_memory = \"1 MiB\"\ntrusted_hops = 1\nclient_ip_header = \"X-Real-IP\"\nspool_size = \"20 MiB\"\n[pools.a]\ncommand = \"x\"\nworkers = { min = 0, max = 2 }\nshrink_after = \"1m\"\nwake_timeout = \"1m\"\nqueue.timeout = \"30s\"\n",
        expect![""],
    );
    // It has an effect: by default requests wait for 5 s.
    check(
        "[pools.a]\ncommand = \"x\"\nqueue.timeout = \"1m\"\n",
        expect![
            "hostler.toml:3:7: pools.a.queue.timeout: has no effect above the longest request_timeout, 30s: a request waits no longer than that"
        ],
    );
}

#[test]
fn the_memory_of_the_cache_is_also_for_responses_that_are_only_shared() {
    let file = "[cache]\nmemory = \"128 MiB\"\nmax_entry = \"64 MiB\"\nmemcached = \"127.0.0.1:11211\"\n[pools.a]\ncommand = \"x\"\n";
    site(&format!("{file}[[routes]]\nmatch = \"*\"\npool = \"a\"\ncollapse = true\n"))
        .says(expect!["hostler.toml:4:1: cache.memcached: changes nothing, because no route has cache"]);
}

/// In TOML all lines below `[pools.a.env]` belong to it. The pool would have the default, without a word.
#[test]
fn a_key_of_a_pool_among_its_variables_causes_a_warning() {
    site("[pools.a]\ncommand = \"x\"\n[pools.a.env]\nNODE_ENV = \"production\"\nworkers = 8\nmax_memory = \"1 GiB\"\n").says(expect![[r#"
        hostler.toml:5:1: pools.a.env.workers: is a variable for the app, and not the key workers of the pool; write keys of the pool above [pools.a.env]
        hostler.toml:6:1: pools.a.env.max_memory: is a variable for the app, and not the key max_memory of the pool; write keys of the pool above [pools.a.env]"#]]);
}
