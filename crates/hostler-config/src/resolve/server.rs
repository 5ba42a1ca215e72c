//! The meaning of `[server]`: looks up names, and uses the cores of the machine. Knows no pools and routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::num::NonZeroUsize;
use std::sync::Arc;

use ipnet::IpNet;

use super::Resolver;
use crate::document::KeyPath;
use crate::file;
use crate::resolved::Server;
use crate::value::{Address, Proxy, RequestPath};

pub fn resolve(resolver: &mut Resolver<'_>, written: &file::Server) -> Server {
    let section = KeyPath::of("server");
    let listen = listen(resolver, &section.key("listen"), &written.listen.0);
    let admin = resolver.admin_address(&section.key("admin"), &written.admin, &listen);
    let temp_dir = match &written.temp_dir {
        Some(folder) => resolver.folder_at(&section.key("temp_dir"), folder),
        None => resolver.load_context.temp_dir.clone(),
    };
    let compress = resolver.server_compress(&written.compress);
    check_hops(resolver, &section.key("trusted_hops"), written);
    Server {
        listen,
        admin,
        admin_hosts: resolver.admin_hosts(&section.key("admin_hosts"), written),
        admin_token_file: written.admin_token_file.as_ref().map(|file| resolver.folder.join(file)),
        admin_token: None,
        threads: written.threads.map_or(resolver.load_context.cores, |threads| threads.get()),
        header_timeout: written.header_timeout.0,
        body_timeout: written.body_timeout.0,
        min_receive_rate: written.min_receive_rate.0,
        min_send_rate: written.min_send_rate.0,
        min_slot_rate: written.min_slot_rate.0,
        send_timeout: written.send_timeout.0,
        idle_timeout: written.idle_timeout.0,
        drain_timeout: written.drain_timeout.0,
        drain_wait: written.drain_wait.0,
        health_path: health_path(resolver, &section.key("health_path"), written.health_path.as_ref()),
        health_pools: written.health_pools.clone(),
        log_health_checks: written.log_health_checks,
        upgrade_timeout: written.upgrade_timeout.0,
        worker_memory: written.worker_memory.map(|size| size.0),
        max_header_size: written.max_header_size.0,
        max_header_fields: written.max_header_fields.get(),
        max_interim_answers: written.max_interim_answers.get(),
        body_memory: written.body_memory.0,
        request_memory: written.request_memory.0,
        temp_dir,
        // The final value is set later, because it depends on the longest body.
        spool_size: written.spool_size.map_or(0, |size| size.0),
        answer_memory: written.answer_memory.0,
        answer_buffer: written.answer_buffer.0,
        compress,
        compress_memory: written.compress_memory.0,
        max_connections: written.max_connections.get(),
        client_connections: written.client_connections,
        client_requests: written.client_requests,
        http2: written.http2,
        http2_max_streams: written.http2_max_streams.get(),
        http2_stream_window: written.http2_stream_window.0,
        http2_connection_window: written.http2_connection_window.0,
        access_log: written.access_log,
        trusted_proxies: networks(resolver, &section.key("trusted_proxies"), &written.trusted_proxies),
        trusted_hops: NonZeroUsize::new(written.trusted_hops.get()),
        proxy_protocol: networks(resolver, &section.key("proxy_protocol"), &written.proxy_protocol),
        client_ip_header: written.client_ip_header,
    }
}

fn check_hops(resolver: &mut Resolver<'_>, key: &KeyPath, written: &file::Server) {
    if written.trusted_hops.get() > 0 && !written.trusted_proxies.is_empty() {
        resolver.refuse(key, "cannot be set together with server.trusted_proxies; remove one of them");
    }
}

/// The path is compared byte by byte with that of a request.
fn health_path(
    resolver: &mut Resolver<'_>,
    key: &KeyPath,
    written: Option<&RequestPath>,
) -> Option<Arc<str>> {
    let path = written?.0.trim_end_matches('/');
    if path.is_empty() {
        resolver.refuse(key, "would take all requests from the routes; write a path such as \"/healthz\"");
    }
    if path.contains(['?', '#']) {
        resolver.refuse(key, "must be a path without a query and without #");
    }
    Some(path.into())
}

pub(super) fn listen(resolver: &mut Resolver<'_>, path: &KeyPath, written: &[Address]) -> Vec<SocketAddr> {
    let mut found: Vec<SocketAddr> = Vec::new();
    for (index, address) in written.iter().enumerate() {
        let here = path.index(index);
        let Some(address) = look_up(resolver, &here, address) else { continue };
        if let Some(other) = found.iter().find(|other| overlap(address, **other)) {
            resolver
                .refuse(&here, format!("{address} and {other} overlap; each listener needs its own address"));
        }
        found.push(address);
    }
    found
}

/// Whether two listeners would get the same connections. Port 0 is always another port.
pub fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let (ip, other_ip) = (one.ip().to_canonical(), other.ip().to_canonical());
    // `[::]` is every address of both families, `0.0.0.0` only of IPv4.
    let contains = |all: IpAddr, ip: IpAddr| all.is_unspecified() && (all.is_ipv6() || ip.is_ipv4());
    let same_ip = ip == other_ip || contains(ip, other_ip) || contains(other_ip, ip);
    one.port() == other.port() && one.port() != 0 && same_ip
}

/// The first IPv4 address of a name, if it has one. `localhost` also means `::1` on machines without IPv6.
pub(super) fn look_up(resolver: &mut Resolver<'_>, path: &KeyPath, address: &Address) -> Option<SocketAddr> {
    let Some(host) = &address.host else {
        // A socket of IPv6 is one of IPv4 as well.
        let every: IpAddr = match resolver.load_context.has_ipv6 {
            true => Ipv6Addr::UNSPECIFIED.into(),
            false => Ipv4Addr::UNSPECIFIED.into(),
        };
        return Some(SocketAddr::new(every, address.port));
    };
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Some(SocketAddr::from((ip, address.port)));
    }
    let mut found: Vec<SocketAddr> = match (host.as_str(), address.port).to_socket_addrs() {
        Ok(found) => found.collect(),
        Err(error) => {
            resolver.refuse(path, format!("\"{host}\" is not an IP address, and its lookup failed: {error}"));
            return None;
        }
    };
    found.sort_by_key(SocketAddr::is_ipv6);
    if found.is_empty() {
        resolver.refuse(path, format!("the lookup of \"{host}\" found no address"));
    }
    found.first().copied()
}

fn networks(resolver: &mut Resolver<'_>, path: &KeyPath, written: &[Proxy]) -> Vec<IpNet> {
    for (index, Proxy(net)) in written.iter().enumerate().filter(|(_, proxy)| proxy.0.prefix_len() == 0) {
        let place = resolver.document.place_of_value(&path.index(index));
        let message = format!("{path}: {net} contains every address, so any client can claim any address");
        resolver.report.warn(place, message);
    }
    written.iter().map(|proxy| proxy.0).collect()
}
