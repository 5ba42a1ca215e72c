//! The meaning of a pool: workers or members, and their defaults. Of routes it knows only their timeouts.

use std::collections::BTreeMap;
use std::time::Duration;

use hostler_worker::{CompileCache, CpuList, CpuSetting, WorkerSettings};

use super::Resolver;
use crate::document::KeyPath;
use crate::error::nearest;
use crate::file::{self, Bind, Gc, NumberOfWorkers, Order, WorkerRange};
use crate::resolved::{Members, Poison, Pool, PoolMembers, Queue, Route, Target};
use crate::schema;
use crate::value::{Auto, CommandLine, Cpus, Period, Slots};

/// Keys that are for members only, and the reason.
const MEMBERS_ONLY: [(&str, &str); 5] = [
    ("protocol", "Hostler always uses HTTP/1.1 to them"),
    ("tls", "Hostler uses no TLS to them"),
    ("health_check", "Hostler watches them itself; for the path that shows when they are ready, use health"),
    ("ejection", "Hostler replaces a worker that hangs, after hang_timeout"),
    (
        "hedge",
        "their queue knows which worker can begin a request at once, so a second try would only make others wait",
    ),
];

/// The default limit of a queue before slots of a fixed number.
const QUEUE_LIMIT: usize = 100;
/// Workers whose event loops are observed get requests one after the other, so a burst waits in the queue although the
/// workers can take it.
const OBSERVED_QUEUE_LIMIT: usize = 1_000;
/// What ends within this part (1/5) of the time that a request can wait is a burst, and no overload.
const SHARE_OF_BURST: u32 = 5;

fn is_observed(source: &PoolMembers) -> bool {
    matches!(source, PoolMembers::Workers(workers) if matches!(workers.slots, hostler_worker::Slots::Auto { .. }))
}

fn may_sleep(source: &PoolMembers) -> bool {
    matches!(source, PoolMembers::Workers(workers) if workers.least == Some(0))
}

impl Resolver<'_> {
    /// The meaning of `[pools.NAME]`.
    pub(super) fn pool(&mut self, name: &str, written: &file::Pool, routes: &[Route]) -> Pool {
        let path = KeyPath::of("pools").key(name);
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        {
            let place = self.document.place_of_key(&path);
            self.report.error(
                place,
                format!("\"{name}\" is not a valid name of a pool; use letters, digits, \"-\" and \"_\""),
            );
        }
        let source = match (&written.command, &written.members) {
            (Some(_), Some(_)) => {
                self.refuse(&path.key("members"), "a pool has either command or members, not both");
                PoolMembers::Members(Members::default())
            }
            (None, Some(members)) => PoolMembers::Members(self.members(&path, written, members)),
            (Some(command), None) => {
                PoolMembers::Workers(self.workers(&path, name, command, written, routes))
            }
            (None, None) => {
                self.refuse_empty(&path, name);
                PoolMembers::Members(Members::default())
            }
        };
        Pool {
            name: name.into(),
            announce: written.announce.0.iter().map(|name| name.0.clone()).collect(),
            choice: written.choice,
            sticky: self.sticky(
                &path.key("sticky"),
                name,
                &written.sticky,
                (&source, longest_request(name, written, routes)),
            ),
            queue: self.queue(&path.key("queue"), &written.queue, is_observed(&source)),
            rate_limit: self.rate_limit(&path.key("rate_limit"), &written.rate_limit, true),
            request_timeout: written.request_timeout.0,
            wake_timeout: if may_sleep(&source) { written.wake_timeout.0 } else { Duration::ZERO },
            connect_timeout: written.connect_timeout.0,
            max_tunnels: written.max_tunnels.get(),
            tunnel_idle_timeout: written.tunnel_idle_timeout.0,
            max_streams: written.max_streams.get(),
            response_idle_timeout: written.response_idle_timeout.0,
            stream_idle_timeout: written.stream_idle_timeout.0,
            ejection: self.ejection(&path.key("ejection"), &written.ejection),
            hedge: self.hedge(
                &path.key("hedge"),
                &written.hedge,
                (&source, longest_request(name, written, routes)),
            ),
            poison: Poison { kills: written.poison.kills.get(), keep_off: written.poison.keep_off.0 },
            source,
        }
    }

    /// The queue of a pool. `is_observed`: its members are workers whose event loops are observed.
    pub(super) fn queue(&mut self, path: &KeyPath, written: &file::Queue, is_observed: bool) -> Queue {
        let (limit, burst) = match written.limit {
            Some(limit) => (limit.get(), Duration::ZERO),
            // Clients of a fast app may be more than this default, and each of them waits for a moment only.
            None if is_observed => (OBSERVED_QUEUE_LIMIT, written.timeout.0 / SHARE_OF_BURST),
            None => (QUEUE_LIMIT, Duration::ZERO),
        };
        Queue {
            limit,
            burst,
            timeout: written.timeout.0,
            policy: written.policy,
            short_first: self.short_first(path, written),
            fair: self.request_keys(&path.key("fair"), &written.fair.0),
            low: written.low.0.clone(),
        }
    }

    /// The delay that is allowed if short requests are served first.
    fn short_first(&mut self, path: &KeyPath, written: &file::Queue) -> Option<Duration> {
        let (order, max_delay) = (path.key("order"), path.key("max_delay"));
        if written.order == Order::Arrival {
            if self.document.is_written(&max_delay) {
                self.refuse(&max_delay, "is for order = \"short_first\" only");
            }
            return None;
        }
        if !written.fair.0.is_empty() {
            self.refuse(&order, "\"short_first\" is not allowed with fair, which decides the order by key");
        }
        if written.max_delay.0 >= written.timeout.0 {
            let file::Queue { max_delay: delay, timeout, .. } = written;
            if self.document.is_written(&max_delay) {
                self.refuse(&max_delay, format!("is not shorter than timeout, which is {timeout}"));
            } else {
                let why = format!("is not longer than max_delay, which is {delay} by default");
                self.refuse(&path.key("timeout"), format!("{why}; write a shorter max_delay, too"));
            }
        }
        Some(written.max_delay.0)
    }

    fn slots(&mut self, path: &KeyPath, written: &file::Pool) -> hostler_worker::Slots {
        match written.concurrency {
            Some(Slots::Value(slots)) => {
                if written.max_concurrency.is_some() {
                    self.refuse(&path.key("max_concurrency"), "is for concurrency = \"auto\" only");
                }
                hostler_worker::Slots::Fixed(slots.get())
            }
            Some(Slots::Word(Auto)) | None => hostler_worker::Slots::Auto {
                most: written.max_concurrency.map_or(hostler_worker::Slots::MOST, |most| most.get()),
            },
        }
    }

    fn refuse_empty(&mut self, path: &KeyPath, name: &str) {
        let was_wrong = ["command", "members"].iter().any(|key| self.document.is_written(&path.key(key)));
        if !was_wrong {
            let place = self.document.place_of_key(path);
            let others = self.document.values().get("pools").and_then(toml::Value::as_table);
            let others = others
                .into_iter()
                .flat_map(toml::Table::keys)
                .map(String::as_str)
                .filter(|other| *other != name);
            let help =
                nearest(name, others).map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
            self.report
                .error(place, format!("{path}: a pool needs command (to start workers) or members{help}"));
        }
    }

    fn workers(
        &mut self,
        path: &KeyPath,
        name: &str,
        command: &CommandLine,
        written: &file::Pool,
        routes: &[Route],
    ) -> WorkerSettings {
        for (key, why) in MEMBERS_ONLY {
            let here = path.key(key);
            if self.document.is_written(&here) {
                let place = self.document.place_of_key(&here);
                self.report.error(place, format!("{here}: not allowed for workers: {why}"));
            }
        }
        if let (Bind::Port, Some(_)) = (written.bind, written.port) {
            self.refuse(
                &path.key("port"),
                "not allowed with bind = \"port\": each worker gets its port in PORT",
            );
        }
        if let (Bind::Port, Gc::Idle) = (written.bind, written.gc) {
            self.refuse(
                &path.key("gc"),
                "\"idle\" needs the preload inside the worker, which does not exist with bind = \"port\"",
            );
        }
        self.check_cpus(&path.key("cpu"), &written.cpu);
        let (least, count) = self.worker_range(path, written);
        WorkerSettings {
            command: command.0.clone(),
            count,
            least,
            boot_cpu: self.load_context.cores as f64 * written.restart_cpu.get() as f64 / 100.0,
            slots: self.slots(path, written),
            env: self.environment(path, written),
            cwd: self.folder_of_workers(&path.key("cwd"), name, &written.cwd),
            compile_cache: self.compile_cache(path, &written.compile_cache),
            hang_timeout: self.hang_timeout(path, name, written, routes),
            ..written.for_workers()
        }
    }

    /// A list may name only CPUs that exist.
    fn check_cpus(&mut self, path: &KeyPath, written: &Cpus) {
        let (CpuSetting::Lists(lists), Some(cpus)) = (&written.0, &self.load_context.cpus) else { return };
        if let Some(cpu) = lists.iter().flat_map(CpuList::iter).find(|cpu| !cpus.contains(*cpu)) {
            self.refuse(path, format!("there is no CPU {cpu}; this machine has the CPUs {cpus}"));
        }
    }

    fn compile_cache(&mut self, path: &KeyPath, written: &str) -> CompileCache {
        match written {
            "auto" => CompileCache::Auto,
            "off" => CompileCache::Off,
            "" => {
                self.refuse(&path.key("compile_cache"), "must be \"auto\", \"off\" or a folder");
                CompileCache::Off
            }
            folder => CompileCache::Folder(self.folder.join(folder)),
        }
    }

    /// The least number of workers, if it is not the greatest one, and the greatest.
    fn worker_range(&mut self, path: &KeyPath, written: &file::Pool) -> (Option<usize>, usize) {
        let cores = self.load_context.cores;
        let NumberOfWorkers::Value(WorkerRange { min, max }) = written.workers else { return (None, cores) };
        let most = max.map_or(cores.max(min.get()), |max| max.get());
        if min.get() > most {
            let key = path.key("workers").key("min");
            self.refuse(&key, format!("is greater than max, which is {most}"));
        }
        if min.get() == 0 && written.queue.limit.is_some_and(|limit| limit.get() == 0) {
            let why = "0 is not allowed with workers = { min = 0 }: the request that wakes the app waits for its worker";
            self.refuse(&path.key("queue").key("limit"), why);
        }
        (Some(min.get()).filter(|least| *least < most), most)
    }

    /// Hostler must not kill a worker while a client may still wait for its response.
    fn hang_timeout(
        &mut self,
        path: &KeyPath,
        name: &str,
        written: &file::Pool,
        routes: &[Route],
    ) -> Duration {
        let time_limit = longest_request(name, written, routes);
        let Some(Period(hang_timeout)) = written.hang_timeout else { return time_limit * 2 };
        if hang_timeout < time_limit {
            let longest = Period(time_limit);
            self.refuse(
                &path.key("hang_timeout"),
                format!("is less than the longest request_timeout, {longest}"),
            );
        }
        hang_timeout
    }

    fn environment(&mut self, path: &KeyPath, written: &file::Pool) -> BTreeMap<String, String> {
        for name in written.env.keys() {
            let set_by_us = name.starts_with("HOSTLER_") || name.starts_with("NODE_CHANNEL_");
            let port_is_ours =
                written.bind == Bind::Port && ["PORT", "HOST", "HOSTNAME"].contains(&name.as_str());
            let here = path.key("env").key(name);
            if name.is_empty() || name.contains(['=', '\0']) {
                self.refuse(&here, format!("{name:?} is not a valid name of a variable"));
            } else if set_by_us || port_is_ours {
                self.refuse(&here, "Hostler sets this variable itself");
            } else if is_key_of_pool(path, name) {
                let place = self.document.place_of_key(&here);
                let why = format!(
                    "is a variable for the app, and not the key {name} of the pool; write keys of the pool above [{path}.env]"
                );
                self.report.warn(place, format!("{here}: {why}"));
            }
        }
        written.env.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect()
    }
}

/// Whether the pool at this path has such a key. In TOML all lines below `[pools.web.env]` belong to it, also those that are meant for the pool.
fn is_key_of_pool(path: &KeyPath, name: &str) -> bool {
    schema::at(schema::of_file(), path).is_some_and(|pool| schema::known_keys(pool).contains(&name))
}

/// The longest `request_timeout` of the pool and its routes.
fn longest_request(name: &str, written: &file::Pool, routes: &[Route]) -> Duration {
    let of_routes = routes.iter().filter_map(|route| match &route.target {
        Target::Pool { name: target, request_timeout } if target == name => Some(*request_timeout),
        _ => None,
    });
    of_routes.fold(written.request_timeout.0, Duration::max)
}
