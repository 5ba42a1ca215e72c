//! Reads a Procfile (Heroku, Foreman): its `web` line is a pool. Runs nothing.

use std::collections::BTreeMap;

use super::found::FoundPool;
use super::next;
use super::node_app;
use super::package::NodePackage;
use super::script_line::ScriptLine;

/// The port that a command line gets in place of `$PORT`. No port is opened: the preload replaces the address.
const PORT: &str = "3000";

/// The pool of the `web` line. `None` if there is no such line.
pub(super) fn pool(text: &str, name: &str, package: Option<&NodePackage>) -> Option<FoundPool> {
    let mut lines: BTreeMap<&str, &str> = text.lines().filter_map(entry).collect();
    let web = lines.remove("web")?;
    let mut pool = FoundPool {
        name: name.to_owned(),
        what: "the web process of the Procfile".into(),
        found: vec![format!("Procfile, web: {web}")],
        ..FoundPool::default()
    };
    let (line, has_port) = without_port(web);
    if has_port {
        pool.env.insert("PORT".into(), PORT.into());
    }
    let is_alone = |script: &ScriptLine| !package.is_some_and(|package| package.starts_another(script));
    let read = ScriptLine::read(&line).filter(is_alone);
    let script = read
        .clone()
        .map(|script| package.and_then(|package| package.follow(script.clone(), 5)).unwrap_or(script));
    match script.filter(|script| !package.is_some_and(|package| package.needs_path(script))) {
        Some(script) => {
            pool.env.extend(script.env);
            pool.command = script.words;
            next::leave_port_to_hostler(&mut pool);
            if let (Some(package), Some(read)) = (package, &read) {
                pool.open.extend(node_app::scripts_before(package, read, &pool.command));
            }
        }
        None => {
            pool.found.push("The line needs a shell, or programs of dependencies in PATH.".into());
            pool.open.extend(node_app::done_by_each_shell(&line));
            // Heroku has the programs of dependencies in PATH.
            let path = if package.is_some() { "PATH=\"$PWD/node_modules/.bin:$PATH\"; " } else { "" };
            pool.command = vec!["sh".into(), "-c".into(), format!("{path}{line}")];
        }
    }
    pool.consider_runtime();
    if has_port && pool.env.contains_key("PORT") {
        pool.found.push("PORT has a fixed value: the app opens no port, because Hostler replaces the address of listen().".into());
    }
    if let Some(package) = package {
        node_app::remark(package, &mut pool);
    }
    if let Some(release) = lines.remove("release") {
        pool.open.push(format!(
            "Procfile, release: Hostler does not run it. Run it before each deploy: {release}"
        ));
    }
    for (kind, command) in lines {
        pool.open.push(format!(
            "Procfile, {kind}: Hostler runs only programs that listen for HTTP. Give this one a service of its own: {command}"
        ));
    }
    Some(pool)
}

/// `web: node server.js`
fn entry(line: &str) -> Option<(&str, &str)> {
    let (kind, command) = line.split_once(':')?;
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
    let (kind, command) = (kind.trim(), command.trim());
    (!kind.is_empty() && kind.chars().all(is_name) && !command.is_empty()).then_some((kind, command))
}

/// No shell runs the line, so `$PORT` would stay as it is.
fn without_port(line: &str) -> (String, bool) {
    let mut given = line.replace("${PORT}", PORT);
    while let Some(at) = given.find("${PORT:-") {
        let Some(length) = given[at..].find('}') else { break };
        given.replace_range(at..=at + length, PORT);
    }
    let mut pieces = given.split("$PORT");
    let mut fixed = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        // `$PORTAL` is a variable of its own.
        let is_other = piece.starts_with(|char: char| char.is_ascii_alphanumeric() || char == '_');
        fixed.push_str(if is_other { "$PORT" } else { PORT });
        fixed.push_str(piece);
    }
    let has_port = fixed != line;
    (fixed, has_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_web_line_becomes_a_pool() {
        let text = "# comment\nweb: NODE_ENV=production node server.js --port ${PORT:-80}\nrelease: npm run migrate\nworker: node queue.js\n";
        let pool = pool(text, "shop", None).unwrap();
        assert_eq!(pool.command, ["node", "server.js", "--port", "3000"]);
        let env: Vec<_> = pool.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(env, ["NODE_ENV=production", "PORT=3000"]);
        assert_eq!(pool.open.len(), 2, "{:?}", pool.open);
    }

    #[test]
    fn a_line_for_a_shell_gets_one() {
        let pool = pool("web: npm run migrate && exec node server.js -p $PORT", "shop", None).unwrap();
        assert_eq!(pool.command, ["sh", "-c", "npm run migrate && exec node server.js -p 3000"]);
        let [open] = &pool.open[..] else { panic!("{:?}", pool.open) };
        assert!(
            open.starts_with("Each worker does this")
                && open.ends_with(": npm run migrate && exec node server.js -p 3000"),
            "{open}"
        );
    }

    #[test]
    fn a_variable_whose_name_begins_with_port_stays() {
        let command = |line: &str| pool(&format!("web: {line}"), "shop", None).unwrap().command;
        let shell = ["sh", "-c", "node server.js -p 3000 --url $PORTAL"];
        assert_eq!(command("node server.js -p ${PORT} --url $PORTAL"), shell);
        assert_eq!(
            command("node server.js --url=http://[::]:$PORT/"),
            ["node", "server.js", "--url=http://[::]:3000/"]
        );
    }

    #[test]
    fn a_procfile_without_a_web_line_is_no_app() {
        assert_eq!(pool("worker: node queue.js\nnonsense\n: x\n", "shop", None), None);
    }
}
