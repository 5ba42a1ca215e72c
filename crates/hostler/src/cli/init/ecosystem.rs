//! Reads the ecosystem file of PM2 as JSON values. Node evaluates a file that is a program. Does not know what its keys mean.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

/// The file that `pm2 start` finds, and the other names that its documentation has or had.
const FILES: [&str; 18] = [
    "ecosystem.config.js",
    "ecosystem.config.cjs",
    "ecosystem.config.mjs",
    "ecosystem.config.json",
    "ecosystem.config.yaml",
    "ecosystem.config.yml",
    "ecosystem.json",
    "ecosystem.yaml",
    "ecosystem.yml",
    "pm2.config.js",
    "pm2.config.cjs",
    "pm2.config.mjs",
    "pm2.json",
    "pm2.yaml",
    "pm2.yml",
    "process.json",
    "process.yaml",
    "process.yml",
];

/// How long the evaluation of a file may take. It may look things up.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Before the JSON: the file may print something itself.
const MARK: &str = "hostler-init-ecosystem:";

/// The file of the folder, if there is one.
pub(super) fn find(folder: &Path) -> Option<PathBuf> {
    // Other programs have files of this name, too.
    let is_of_pm2 = |file: &PathBuf| {
        !file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("process."))
            || std::fs::read_to_string(file).is_ok_and(|text| text.contains("script"))
    };
    FILES.iter().map(|name| folder.join(name)).find(|file| file.is_file() && is_of_pm2(file))
}

/// The entries of `apps`.
pub(super) fn apps(file: &Path, environment: &BTreeMap<String, String>) -> Result<Vec<Value>, String> {
    let named = |why: String| format!("{}: {why}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| named(format!("cannot be read: {error}")))?;
    let value = match file.extension().and_then(|ending| ending.to_str()) {
        Some("yaml" | "yml") => {
            serde_saphyr::from_str(&text).map_err(|error| named(format!("not valid YAML: {error}")))?
        }
        Some("json") => match serde_json::from_str(&text) {
            Ok(value) => value,
            // PM2 also takes comments and the like.
            Err(error) => evaluated(&format!("({text}\n)"), file, true, environment)
                .map_err(|_| named(format!("not valid JSON: {error}")))?,
        },
        _ => evaluated("", file, false, environment).map_err(named)?,
    };
    let apps = match value {
        Value::Object(mut file) => file.remove("apps").or(file.remove("pm2")).unwrap_or(Value::Object(file)),
        other => other,
    };
    match apps {
        Value::Array(apps) if !apps.is_empty() => Ok(apps),
        app @ Value::Object(_) if app.get("script").is_some() => Ok(vec![app]),
        _ => Err(named("has no apps with a script".into())),
    }
}

/// What the file exports, or the value of the text.
fn evaluated(
    text: &str,
    file: &Path,
    is_text: bool,
    environment: &BTreeMap<String, String>,
) -> Result<Value, String> {
    let program = format!(
        "const [file, text] = process.argv.slice(1);\n\
         const show = (value) => process.stdout.write('\\n{MARK}' + JSON.stringify(value) + '\\n', () => process.exit(0));\n\
         {}",
        if is_text {
            "show((0, eval)(text));"
        } else {
            "import(require('url').pathToFileURL(file)).then(async (m) => { let value = m.default ?? m; \
             if (typeof value === 'function') value = await value(); show(value); })\
             .catch((error) => { console.error(error.stack); process.exit(1); });"
        }
    );
    let mut command = tokio::process::Command::new("node");
    command.args(["-e", &program, "--"]).arg(file).arg(text);
    command.current_dir(file.parent().unwrap_or(Path::new("."))).env_clear().envs(environment);
    command.stdin(Stdio::null()).kill_on_drop(true);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let output = runtime.block_on(async { tokio::time::timeout(TIME_LIMIT, command.output()).await });
    let output = match output {
        Err(_) => {
            return Err(format!(
                "node did not finish reading it in {}",
                humantime::format_duration(TIME_LIMIT)
            ));
        }
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err("it is a program, and there is no node in PATH to read it".into());
        }
        Ok(output) => output.map_err(|error| format!("node cannot read it: {error}"))?,
    };
    let stdout = String::from_utf8_lossy(&output.stdout);
    let json = stdout.lines().rev().find_map(|line| line.strip_prefix(MARK));
    let json = json.and_then(|json| serde_json::from_str(json).ok());
    json.ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().filter(|line| !line.trim().is_empty());
        format!("node cannot read it:\n  {}", said.take(6).collect::<Vec<_>>().join("\n  "))
    })
}
