//! A certificate of X.509 version 1, as `openssl x509 -req` made it before OpenSSL 3.2. rustls does not read it. Knows no connections.

/// For `a.test`, self-signed with [`VERSION_1_KEY`].
pub const VERSION_1: &str = "\
-----BEGIN CERTIFICATE-----
MIIBHjCBxQIUCVuN4IT80NWbMxocPPFssi4lrfYwCgYIKoZIzj0EAwIwETEPMA0G
A1UEAwwGYS50ZXN0MCAXDTI2MTEzMDA2MTUwOVoYDzIxMjYxMTA2MDYxNTA5WjAR
MQ8wDQYDVQQDDAZhLnRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQqzo4z
BkihlvZtj4mS/iRKUylPoboFOAXJ7XVyc/TDiUlWBhzYlSuQ+9SYZkkQAJ3HOES5
+RFS5uwK28rSw29yMAoGCCqGSM49BAMCA0gAMEUCIEW+GoZ6ayXYCGxaSz7uFc05
tMwV4lnoKN4j8ksDQrI/AiEArr3+LC+EmkaDMCucH9lY8ISOIqp/aq1Q+Y0EUEq7
+yk=
-----END CERTIFICATE-----
";

/// The key of [`VERSION_1`].
pub const VERSION_1_KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgKWYeL3T4tJEnKqx6
hUcTCwAYKAcpnfwBjJTJprl1PsqhRANCAAQqzo4zBkihlvZtj4mS/iRKUylPoboF
OAXJ7XVyc/TDiUlWBhzYlSuQ+9SYZkkQAJ3HOES5+RFS5uwK28rSw29y
-----END PRIVATE KEY-----
";
