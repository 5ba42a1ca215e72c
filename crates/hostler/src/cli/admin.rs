//! The admin listener of a running Hostler, as a client. Does not know the commands.

use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use hostler_config::{self as config, ADMIN_TOKEN_VARIABLE, AdminToken, ListenAddress, LoadContext};
use hostler_engine::journal::{Allowed, printable_lines};
use hostler_engine::proxy::{ArrivingAnswer, WholeAnswer, ask, ask_status, post};
use hostler_wire::Address;
use rustix::fs::{Access, access};
use rustix::io::Errno;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{Ask, complain, print};
use crate::admin::COMMAND_FIELD;
use crate::admin::note::{self, NotedHostler};

/// The status of a command whose arguments are wrong.
pub(super) const BAD_REQUEST: u16 = 400;
/// The status of a request that needs the token.
const UNAUTHORIZED: u16 = 401;
/// The status of a request that the rules of the listener refuse.
const FORBIDDEN: u16 = 403;
/// The time limit of a question.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// While an order is carried out, the command looks this often whether Hostler still answers.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// For how long it may not. A machine that is short of memory or CPU time may need a while.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);
/// Each Hostler that is alive answers this at once, also without the token.
const ALIVE: &str = "/health/live";

/// The admin listener of a running Hostler, for one command.
pub(super) struct Admin {
    command: &'static str,
    address: ListenAddress,
    /// The admin token. Not every request needs it, so an error is shown only when Hostler wants it.
    token: Result<Option<AdminToken>, String>,
}

impl Admin {
    /// Finds the address and the token; exit code 2 if they are wrong. Other errors in the configuration are for the running Hostler to judge.
    pub fn find(command: &'static str, ask: &Ask) -> Result<Self, ExitCode> {
        let load_context = LoadContext::of_process();
        let environment = load_context.environment.clone();
        let token = |file: Option<&Path>| {
            // What is wrong with a file names it.
            AdminToken::read(file, &environment).map_err(|why| {
                match environment.contains_key(ADMIN_TOKEN_VARIABLE) {
                    true => format!("{ADMIN_TOKEN_VARIABLE}: {why}"),
                    false => why,
                }
            })
        };
        let settings = config::load_admin(&ask.invocation(load_context.clone())).map_err(|errors| {
            complain(&errors);
            ExitCode::from(2)
        })?;
        let looks_for_note = ask.names_no_address(&load_context)
            || settings.unusable.is_some() && ask.only_a_file_names_it(&load_context);
        let noted = if looks_for_note { noted(command, &load_context)? } else { None };
        let is_noted = noted.is_some();
        let (address, token_file) = match noted {
            Some(NotedHostler { admin, token_file, .. }) => (Some(admin), settings.token_file.or(token_file)),
            None => {
                let of_note = || noted_token_file(settings.admin.as_ref()?, &load_context);
                let token_file = settings.token_file.or_else(of_note);
                (settings.admin, token_file)
            }
        };
        let token = token(token_file.as_deref());
        let address = address.ok_or_else(|| {
            complain(format_args!(
                "hostler {command}: server.admin is \"off\"; give the address with --admin"
            ));
            ExitCode::from(2)
        })?;
        if let Some(errors) = settings.unusable {
            let whose = match is_noted {
                true => "it is the admin address of a running Hostler",
                false => "no other admin address of a running Hostler is known",
            };
            complain(&errors);
            complain(format_args!(
                "hostler {command}: Hostler cannot read server.admin because of this, so this command uses {address}: {whose}"
            ));
        }
        if let (ListenAddress::Tcp(at), Ok(Some(_))) = (&address, &token)
            && is_elsewhere(at.ip())
        {
            complain(format_args!(
                "hostler {command}: the admin token crosses the network to {address} unencrypted; `ssh -L` to a loopback address protects it"
            ));
        }
        Ok(Self { command, address, token })
    }

    pub fn address(&self) -> Address {
        match &self.address {
            ListenAddress::Tcp(address) => Address::Tcp(address.ip().to_string(), address.port()),
            ListenAddress::Unix(path) => Address::Unix(path.clone()),
        }
    }

    /// Sends GET, as [`Self::look`] does.
    pub fn get(&self, path: &str) -> Result<WholeAnswer, String> {
        self.ask(self.look(path, TIME_LIMIT))
    }

    /// Sends GET, in the runtime of the caller. Reading needs the token only where other machines can connect, so it is sent only if Hostler
    /// wants it.
    pub async fn look(&self, path: &str, time_limit: Duration) -> Result<WholeAnswer, String> {
        let address = self.address();
        let answer = ask(&address, path, &[], time_limit).await?;
        match self.authorization() {
            Some(authorization) if answer.status == UNAUTHORIZED => {
                // Another program may want a password of its own.
                self.is_alive().await?;
                ask(&address, path, &[("Authorization", &authorization)], time_limit).await
            }
            _ => Ok(answer),
        }
    }

    /// Sends POST with the token.
    pub fn post(&self, path: &str, time_limit: Duration) -> Result<WholeAnswer, String> {
        let authorization = self.authorization();
        let fields = order_fields(authorization.as_deref());
        let address = self.address();
        self.ask(async {
            self.is_alive().await?;
            tokio::select! {
                answered = post(&address, path, &fields, time_limit) => answered,
                why = self.hangs() => Err(why),
            }
        })
    }

    /// An order may take long. So a Hostler that hangs is found before the order is sent, which it would carry out when it no longer hangs.
    /// Another program would get the order and the token: an app has no such path.
    async fn is_alive(&self) -> Result<(), String> {
        match ask_status(&self.address(), ALIVE, &[], TIME_LIMIT).await? {
            200 => Ok(()),
            status => Err(format!("{ALIVE} has status {status}; is it server.admin?")),
        }
    }

    /// Ready when Hostler has answered nothing for a while, with why. It would never end an order that it has begun.
    async fn hangs(&self) -> String {
        let mut answered = Instant::now();
        loop {
            sleep(LOOK_INTERVAL).await;
            match self.is_alive().await {
                Ok(()) => answered = Instant::now(),
                Err(why) if answered.elapsed() >= SILENCE_LIMIT => return format!("it hangs: {why}"),
                Err(_) => {}
            }
        }
    }

    /// Sends POST with the token, and reads the answer as it arrives, until `end`.
    pub fn post_and_read<T>(
        &self,
        path: &str,
        end: impl Future<Output = ()>,
        reading: impl AsyncFnOnce(ArrivingAnswer) -> Result<T, String>,
    ) -> Result<T, String> {
        let authorization = self.authorization();
        let fields = order_fields(authorization.as_deref());
        let whole = async {
            self.is_alive().await?;
            let answer = ArrivingAnswer::post(&self.address(), path, &fields).await?;
            Ok::<_, String>(reading(answer).await)
        };
        self.ask(async {
            tokio::select! {
                read = whole => read,
                () = end => Ok(Err("interrupted".to_owned())),
                why = self.hangs() => Err(why),
            }
        })?
    }

    /// The value of `Authorization`.
    fn authorization(&self) -> Option<String> {
        let AdminToken { token, .. } = self.token.as_ref().ok()?.as_ref()?;
        Some(format!("Bearer {}", token.0))
    }

    /// Why the request was refused, and what to do.
    pub fn complaint(&self, answer: &WholeAnswer) -> String {
        let text = String::from_utf8_lossy(&answer.body);
        match (answer.status, &self.token, text.trim()) {
            (UNAUTHORIZED, Ok(Some(AdminToken { source, .. })), _) => {
                format!("the admin token in {source} is wrong")
            }
            (UNAUTHORIZED, Err(why), _) => format!("this Hostler needs its admin token: {why}"),
            (UNAUTHORIZED, Ok(None), _) => format!(
                "this Hostler needs its admin token: set {ADMIN_TOKEN_VARIABLE}, or name its file with --admin-token-file"
            ),
            (BAD_REQUEST | FORBIDDEN, _, text) if is_sentence(text) => text.to_owned(),
            // Often the page of an app: its text would not help.
            (status, ..) => format!(
                "unexpected response with status {status}; is it server.admin, or another version of Hostler?"
            ),
        }
    }

    /// Asks, in a separate runtime.
    fn ask<T>(&self, asking: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let answered = runtime.map_err(|error| error.to_string())?.block_on(asking);
        answered.map_err(|error| self.unanswered(&error))
    }

    /// That a question got no response, and why. A socket that only another user may use says nothing about whether a Hostler runs.
    pub fn unanswered(&self, why: &str) -> String {
        let address = &self.address;
        match address {
            ListenAddress::Unix(path) if access(path.as_path(), Access::WRITE_OK) == Err(Errno::ACCESS) => {
                format!(
                    "this user may not use {address} (permission denied); give the command as the user of Hostler or as root"
                )
            }
            _ => format!("no Hostler answers on {address}: {why}{}", self.elsewhere()),
        }
    }

    /// Where a Hostler of this folder answers, if the file has another address. A new `server.admin` waits for an upgrade.
    fn elsewhere(&self) -> String {
        let load_context = LoadContext::of_process();
        let all = note::read(&load_context);
        let mut others = started_here(&all, &load_context).filter(|noted| noted.admin != self.address);
        others.next().map_or(String::new(), |noted| {
            format!(
                "; a Hostler that was started in this folder has another address: --admin {}",
                noted.admin
            )
        })
    }

    /// Asks and prints the response, as JSON or as text. Exit code 0, or 1 without a useful response.
    pub fn show(&self, question: &AdminQuestion, as_json: bool) -> ExitCode {
        let answered = self.get(question.path).and_then(|answer| {
            let value = self.value(&answer, question)?;
            Ok(match as_json {
                true => String::from_utf8_lossy(&answer.body).trim_end().to_owned() + "\n",
                // Another program may have answered.
                false => printable_lines(&(question.as_text)(&value), Allowed::Text),
            })
        });
        match answered {
            Ok(text) => print(&text),
            Err(why) => self.failed(&why),
        }
    }

    /// What was asked for. Another program may answer 200 to everything, also with JSON.
    pub fn value(&self, answer: &WholeAnswer, question: &AdminQuestion) -> Result<Value, String> {
        if answer.status != 200 {
            return Err(self.complaint(answer));
        }
        let value: Option<Value> = serde_json::from_slice(&answer.body).ok();
        value.filter(|value| value[question.list].is_array()).ok_or_else(|| {
            format!("{} answered, but not with {}; is it server.admin?", self.address, question.what)
        })
    }

    /// Prints what is wrong with the arguments; exit code 2.
    pub fn misused(&self, why: &str) -> ExitCode {
        complain(format_args!("hostler {}: {why}", self.command));
        ExitCode::from(2)
    }

    /// Prints why the command failed; exit code 1.
    pub fn failed(&self, why: &str) -> ExitCode {
        complain(format_args!("hostler {}: {why}", self.command));
        ExitCode::FAILURE
    }
}

/// What a command asks for and shows.
pub(super) struct AdminQuestion {
    pub path: &'static str,
    /// Its name in a sentence.
    pub what: &'static str,
    /// The key of a list that it always has.
    pub list: &'static str,
    pub as_text: fn(&Value) -> String,
}

/// Whether an address is that of another machine. This one can listen on its own addresses.
fn is_elsewhere(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    !ip.is_loopback() && !ip.is_unspecified() && UdpSocket::bind((ip, 0)).is_err()
}

/// Hostler's own texts have one line.
fn is_sentence(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('<') && !text.contains('\n')
}

fn order_fields(authorization: Option<&str>) -> Vec<(&'static str, &str)> {
    authorization.map(|value| ("Authorization", value)).into_iter().chain([(COMMAND_FIELD, "1")]).collect()
}

/// The Hostler that was started in this folder, or else the only one of this user. Exit code 2 if there are several.
fn noted(command: &str, load_context: &LoadContext) -> Result<Option<NotedHostler>, ExitCode> {
    let all = note::read(load_context);
    let here: Vec<_> = started_here(&all, load_context).collect();
    match (&here[..], &all[..]) {
        ([only], _) => Ok(Some((*only).clone())),
        ([], [only]) => Ok(Some(only.clone())),
        (_, []) => Ok(None),
        _ => {
            complain(format_args!("hostler {command}: several Hostlers run; name the one that you mean:"));
            for noted in &all {
                complain(format_args!(
                    "  hostler {command} --admin {}    started in {}",
                    noted.admin,
                    noted.folder.display()
                ));
            }
            Err(ExitCode::from(2))
        }
    }
}

/// The token file of the Hostler of this user that has this address. With `--admin` the file of the configuration, which names it, is not read.
fn noted_token_file(admin: &ListenAddress, load_context: &LoadContext) -> Option<PathBuf> {
    note::read(load_context).into_iter().find(|noted| noted.admin == *admin)?.token_file
}

/// Those that were started in the working folder.
fn started_here<'a>(
    all: &'a [NotedHostler],
    load_context: &'a LoadContext,
) -> impl Iterator<Item = &'a NotedHostler> {
    // Each shell may have come there by another link.
    let (folder, real) = (&load_context.folder, load_context.folder.canonicalize().ok());
    let is_here = move |other: &Path| other == folder || real.is_some() && other.canonicalize().ok() == real;
    all.iter().filter(move |noted| is_here(&noted.folder))
}

#[cfg(test)]
mod tests {
    use hostler_config::Secret;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;

    async fn listener() -> (TcpListener, Admin) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = ListenAddress::Tcp(listener.local_addr().unwrap());
        (listener, Admin { command: "heap", address, token: Ok(None) })
    }

    fn with_token(admin: Admin) -> Admin {
        let (token, source) = (Secret("hush".into()), "a file".into());
        Admin { token: Ok(Some(AdminToken { token, source, warning: None })), ..admin }
    }

    /// Answers with these statuses, each on a connection of its own. Returns the path of each request, and whether it had the token.
    async fn answers(listener: &TcpListener, statuses: &[u16]) -> Vec<(String, bool)> {
        let mut seen = Vec::new();
        for status in statuses {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap().into());
            }
            seen.push((head.split(' ').nth(1).unwrap().to_owned(), head.contains("hush")));
            let answer = format!("HTTP/1.1 {status} Some\r\nContent-Length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        seen
    }

    #[tokio::test(start_paused = true)]
    async fn a_hostler_that_stops_to_answer_is_noticed() {
        // The system accepts connections, and nobody answers.
        let (_listener, admin) = listener().await;
        let begun = Instant::now();
        let why = timeout(10 * SILENCE_LIMIT, admin.hangs()).await.expect("it is noticed");
        assert!(begun.elapsed() >= SILENCE_LIMIT && why.starts_with("it hangs: "), "{why}");
    }

    #[tokio::test]
    async fn a_hostler_that_answers_is_alive_and_the_question_has_no_token() {
        let (listener, admin) = listener().await;
        let admin = with_token(admin);
        let (alive, seen) = tokio::join!(admin.is_alive(), answers(&listener, &[200]));
        alive.unwrap();
        // An app gets it if the address is a wrong one.
        assert_eq!(seen, [("/health/live".to_owned(), false)]);
    }

    #[tokio::test]
    async fn a_question_has_the_token_only_if_a_hostler_wants_it() {
        let (listener, admin) = listener().await;
        let admin = with_token(admin);
        let (plain, alive) = (("/status".to_owned(), false), ("/health/live".to_owned(), false));
        let (answer, seen) = tokio::join!(admin.look("/status", TIME_LIMIT), answers(&listener, &[200]));
        assert_eq!((answer.unwrap().status, &seen[..]), (200, &[plain.clone()][..]));

        let statuses = [401, 200, 200];
        let (answer, seen) = tokio::join!(admin.look("/status", TIME_LIMIT), answers(&listener, &statuses));
        let told = ("/status".to_owned(), true);
        assert_eq!((answer.unwrap().status, seen), (200, vec![plain.clone(), alive.clone(), told]));

        // An app with a password of its own.
        let (answer, seen) = tokio::join!(admin.look("/status", TIME_LIMIT), answers(&listener, &[401, 404]));
        assert!(answer.unwrap_err().ends_with("is it server.admin?"));
        assert_eq!(seen, [plain, alive]);
    }

    #[test]
    fn the_addresses_of_this_machine_are_not_elsewhere() {
        for here in ["127.0.0.1", "127.0.0.9", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::"] {
            assert!(!is_elsewhere(here.parse().unwrap()), "{here}");
        }
        // For documentation only (RFC 5737).
        assert!(is_elsewhere("192.0.2.1".parse().unwrap()));
    }
}
