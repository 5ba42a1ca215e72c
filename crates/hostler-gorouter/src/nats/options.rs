//! The options of a NATS client, made from the configuration. Does not know what the client is used for.

use std::cmp;
use std::time::Duration;

use async_nats::{ConnectOptions, ServerAddr};
use hostler_config::{Nats, NatsLogin};

/// How many messages the library may hold for each subscription. They go on to a backlog at once, which has a limit in bytes, too. gorouter has the same limit.
pub(super) const MAX_WAITING: usize = 131_072;

/// The longest wait between two attempts. The library waits as long before it makes a lost connection again.
pub(super) const MAX_PAUSE: Duration = Duration::from_secs(2);

pub(super) fn of(settings: &Nats) -> ConnectOptions {
    let options = ConnectOptions::new()
        .name("hostler")
        .ping_interval(settings.ping_interval)
        .subscription_capacity(MAX_WAITING)
        .max_reconnects(None)
        .reconnect_delay_callback(pause);
    let options = match &settings.login {
        NatsLogin::None => options,
        NatsLogin::User { user, password } => options.user_and_password(user.clone(), password.0.clone()),
        NatsLogin::Token(token) => options.token(token.0.clone()),
    };
    // The scheme of an address counts for that address alone, and the servers of a cluster that a server names have none.
    let is_tls = settings.tls.is_some() || settings.servers.iter().all(ServerAddr::tls_required);
    let mut options = options.require_tls(is_tls);
    let Some(tls) = &settings.tls else { return options };
    if let Some(ca) = &tls.ca {
        options = options.add_root_certificates(ca.clone());
    }
    if let Some((cert, key)) = &tls.own {
        options = options.add_client_certificate(cert.clone(), key.clone());
    }
    options
}

/// The wait before the next attempt: longer with each failure, with a random part.
pub(super) fn pause(failures: usize) -> Duration {
    let exponent = u32::try_from(failures).unwrap_or(u32::MAX).min(12);
    let most = cmp::min(Duration::from_millis(1 << exponent), MAX_PAUSE);
    most.mul_f64(0.5 + fastrand::f64() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_a_server_names_need_tls_if_all_in_the_configuration_do() {
        let needs_tls = |urls: &[&str]| {
            let settings = Nats {
                servers: urls.iter().map(|url| url.parse().unwrap()).collect(),
                login: NatsLogin::None,
                tls: None,
                ping_interval: Duration::from_secs(60),
            };
            // The library shows it in no other way.
            format!("{:?}", of(&settings)).contains("\"tls_required\": true")
        };
        assert!(needs_tls(&["tls://10.0.2.1:4222", "tls://10.0.2.2:4222"]));
        assert!(!needs_tls(&["tls://10.0.2.1:4222", "nats://10.0.2.2:4222"]));
        assert!(!needs_tls(&["nats://10.0.2.1:4222"]));
    }

    #[test]
    fn reconnects_back_off_up_to_a_limit() {
        assert!(pause(0) <= Duration::from_millis(1));
        assert!((0..100).all(|failures| pause(failures) <= MAX_PAUSE));
        assert!(pause(1000) >= MAX_PAUSE / 2);
    }
}
