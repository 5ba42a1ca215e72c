//! The token of the admin listener: where it is written, and which text can be one. Knows no requests.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::access;
use crate::value::Secret;

/// The environment variable with the token. It takes precedence over the file.
pub const VARIABLE: &str = "HOSTLER_ADMIN_TOKEN";

/// A shorter token can be guessed.
const SHORTEST: usize = 16;
/// A file with a token is not longer.
const LONGEST: usize = 4096;

/// A token, and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct AdminToken {
    /// The token: visible ASCII characters.
    pub token: Secret,
    /// The variable or the file, for messages.
    pub source: String,
    /// What is allowed but dangerous about the file.
    pub warning: Option<String>,
}

impl AdminToken {
    /// The token from the variable, or else from the file. `None` if there is neither. The error does not contain the token.
    pub fn read(file: Option<&Path>, environment: &BTreeMap<String, String>) -> Result<Option<Self>, String> {
        if let Some(text) = environment.get(VARIABLE) {
            let token = token(text)?;
            return Ok(Some(Self { token, source: VARIABLE.into(), warning: None }));
        }
        let Some(file) = file else { return Ok(None) };
        access::file(file)?;
        let shown = file.display();
        let unreadable = |error| format!("{shown} {}", access::unreadable(&error));
        let opened = std::fs::File::open(file).map_err(unreadable)?;
        let about = opened.metadata().map_err(unreadable)?;
        let warning = check_mode(file, &about)?;
        let mut text = String::new();
        opened.take(LONGEST as u64 + 1).read_to_string(&mut text).map_err(unreadable)?;
        let token = token(&text).map_err(|why| format!("{shown}: {why}"))?;
        Ok(Some(Self { token, source: shown.to_string(), warning }))
    }
}

/// Refuses a file in which another user can write a token of his own. Warns if another user can read it: the files of a Kubernetes secret
/// have such a mode, in a container with one user.
fn check_mode(file: &Path, about: &Metadata) -> Result<Option<String>, String> {
    let (file, mode) = (file.display(), about.permissions().mode() & 0o777);
    if !about.is_file() {
        return Err(format!("{file} is not a regular file"));
    }
    if mode & 0o002 != 0 {
        return Err(format!("every user may write {file} (mode {mode:04o}); run: chmod 600 {file}"));
    }
    let dangers = [(0o004, "every user may read"), (0o020, "its group may write")];
    let danger = dangers.into_iter().find(|(bit, _)| mode & bit != 0);
    Ok(danger.map(|(_, what)| format!("{what} {file} (mode {mode:04o}); run: chmod 600 {file}")))
}

/// The token in a text that may end with a line break.
fn token(text: &str) -> Result<Secret, String> {
    let token = text.trim();
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("the token must be one line of visible ASCII characters without spaces".into());
    }
    if token.len() < SHORTEST {
        return Err(format!("the token is too short; write at least {SHORTEST} characters"));
    }
    if token.len() > LONGEST {
        return Err(format!("the token is longer than {LONGEST} characters"));
    }
    Ok(Secret(token.into()))
}
