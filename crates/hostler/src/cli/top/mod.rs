//! `hostler top`: the status in a terminal, again each second. Knows how to ask and which keys there are, not how it looks.

mod draw;
mod page;
mod requests;
mod state;
#[cfg(test)]
mod tests;

use std::future::pending;
use std::io::{IsTerminal, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use hostler_config::LoadContext;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::admin::Admin;
use super::status::STATUS;
use super::{TopArgs, print};
use state::{TopState, TopView};

/// The time between two questions.
const SECOND: Duration = Duration::from_secs(1);
/// The time limit of a question.
const TIME_LIMIT: Duration = Duration::from_secs(2);
/// How long a key may wait for its effect.
const KEY_WAIT: Duration = Duration::from_millis(100);
/// The width of a snapshot.
const SNAPSHOT_WIDTH: u16 = 120;
/// The height of a snapshot, besides its pools and workers.
const SNAPSHOT_HEIGHT: usize = 200;

/// What the thread that asks tells the one that draws.
enum TopNews {
    Asked(Instant, Result<Value, String>),
    /// A signal that ends a program.
    End,
}

/// Shows the status until `q`. Exit code 1 if no Hostler answers to `--once`, and 2 if there is no terminal.
pub fn top(args: &TopArgs) -> ExitCode {
    let admin = match Admin::find("top", &args.ask) {
        Ok(admin) => admin,
        Err(code) => return code,
    };
    let (sender, news) = channel();
    let admin = Arc::new(admin);
    let asked = admin.clone();
    let name = admin.address().to_string();
    // The screen is on standard output. The keys come from the terminal also if standard input is another file.
    let has_terminal = !args.once && stdout().is_terminal();
    std::thread::spawn(move || ask_each_second(&asked, has_terminal, &sender));
    let load_context = LoadContext::of_process();
    let is_coloured = load_context.environment.get("NO_COLOR").is_none_or(String::is_empty);
    if args.once {
        return once(&admin, TopState::new(name, false), &news);
    }
    let is_dumb = load_context.environment.get("TERM").is_some_and(|terminal| terminal == "dumb");
    if is_dumb || !stdout().is_terminal() {
        let why = if is_dumb { "TERM is \"dumb\"" } else { "standard output is no terminal" };
        return admin.misused(&format!("{why}; `hostler top --once` prints one snapshot as text"));
    }
    // Also puts the terminal back after a panic.
    let outcome = ratatui::try_init().and_then(|mut terminal| {
        let outcome = show(&mut terminal, TopState::new(name, is_coloured), &news);
        ratatui::restore();
        outcome
    });
    outcome.map_or_else(|error| admin.failed(&error.to_string()), |()| ExitCode::SUCCESS)
}

/// Prints two looks, a second apart, as one text: rates need both.
fn once(admin: &Admin, mut state: TopState, news: &Receiver<TopNews>) -> ExitCode {
    for _ in 0..2 {
        match news.recv() {
            Ok(TopNews::Asked(at, Ok(status))) => state.take(at, Ok(status)),
            Ok(TopNews::Asked(_, Err(why))) => return admin.failed(&why),
            Ok(TopNews::End) | Err(_) => return ExitCode::FAILURE,
        }
    }
    print(&snapshot(&state))
}

/// All views as text, without the keys and without empty lines at the end.
fn snapshot(state: &TopState) -> String {
    // The pools take a third of the height at most.
    let rows = SNAPSHOT_HEIGHT + 3 * state.pools().len() + state.workers().len();
    let (width, height) = (SNAPSHOT_WIDTH, u16::try_from(rows).unwrap_or(u16::MAX));
    let mut screen = Buffer::empty(Rect::new(0, 0, width, height));
    draw::content(state, screen.area, &mut screen, &TopView::ALL);
    let lines = (0..height).map(|y| page::row_text(&screen, y));
    lines.collect::<Vec<_>>().join("\n").trim_end().to_owned() + "\n"
}

fn show(
    terminal: &mut ratatui::DefaultTerminal,
    mut state: TopState,
    news: &Receiver<TopNews>,
) -> std::io::Result<()> {
    loop {
        while let Ok(told) = news.try_recv() {
            match told {
                TopNews::Asked(at, outcome) => state.take(at, outcome),
                TopNews::End => return Ok(()),
            }
        }
        terminal.draw(|frame| {
            let area = frame.area();
            draw::screen(&state, area, frame.buffer_mut());
        })?;
        if event::poll(KEY_WAIT)?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
        {
            let is_interrupt =
                key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
            if is_interrupt || !press(&mut state, key.code) {
                return Ok(());
            }
        }
    }
}

/// False: the program ends.
fn press(state: &mut TopState, key: KeyCode) -> bool {
    match key {
        KeyCode::Esc if state.helps => state.helps = false,
        KeyCode::Char('q') | KeyCode::Esc => return false,
        KeyCode::Up | KeyCode::Char('k') => state.choose(-1),
        KeyCode::Down | KeyCode::Char('j') => state.choose(1),
        KeyCode::Tab | KeyCode::Left | KeyCode::Right => state.in_workers = !state.in_workers,
        KeyCode::Char('r') => state.view = state.view.next(),
        KeyCode::Char(digit @ '1'..='3') => state.view = TopView::ALL[digit as usize - '1' as usize],
        KeyCode::Char('s') => state.sort = state.sort.next(),
        KeyCode::Char('p' | ' ') => state.paused = !state.paused,
        KeyCode::Char('?' | 'h') => state.helps = !state.helps,
        _ => {}
    }
    true
}

fn ask_each_second(admin: &Admin, has_terminal: bool, sender: &Sender<TopNews>) {
    let asking = async {
        let (Ok(mut end), Ok(mut hangup)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup()))
        else {
            return;
        };
        // From another program, such as `timeout -s INT`: Ctrl-C is a key here. `--once` has no screen to put back, so there it ends the program.
        let mut interrupt = if has_terminal { signal(SignalKind::interrupt()).ok() } else { None };
        let mut ticks = every_second();
        loop {
            let interrupted = async {
                match &mut interrupt {
                    Some(interrupt) => interrupt.recv().await,
                    None => pending().await,
                }
            };
            let ends = tokio::select! {
                _ = end.recv() => true,
                _ = hangup.recv() => true,
                _ = interrupted => true,
                _ = ticks.tick() => false,
            };
            if has_terminal && is_terminal_gone() {
                // The thread that reads keys would read an end of file for ever: crossterm does not tell it.
                std::process::exit(1);
            }
            if ends {
                // Then this goes on, because the terminal may go before that thread has seen the signal.
                let _ = sender.send(TopNews::End);
                continue;
            }
            let outcome = status(admin).await;
            if sender.send(TopNews::Asked(Instant::now(), outcome)).is_err() {
                return;
            }
        }
    };
    if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() {
        runtime.block_on(asking);
    }
    // The other thread may have ended.
    let _ = sender.send(TopNews::End);
}

/// After a late answer the next question comes a second later. The questions that were missed are not asked at once, one after the other.
fn every_second() -> Interval {
    let mut ticks = tokio::time::interval(SECOND);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// The other end of the terminal is closed: its window, or the connection to the machine.
fn is_terminal_gone() -> bool {
    let output = stdout();
    let mut asked = [PollFd::new(&output, PollFlags::empty())];
    let is_told = poll(&mut asked, Some(&Timespec::default())).is_ok();
    is_told && asked[0].revents().contains(PollFlags::HUP)
}

/// The status, and with it the single requests of this moment. The error is a sentence: a Hostler that wants its token does answer.
async fn status(admin: &Admin) -> Result<Value, String> {
    let asked = admin.look(STATUS.path, TIME_LIMIT).await;
    let asked = asked.map_err(|why| admin.unanswered(&why))?;
    let mut status = admin.value(&asked, &STATUS)?;
    // An older version has no such path. The rest can still be shown.
    if let Ok(asked) = admin.look("/live/requests", TIME_LIMIT).await
        && asked.status == 200
        && let Ok(requests) = serde_json::from_slice(&asked.body)
        && let Some(fields) = status.as_object_mut()
    {
        fields.insert("requests_now".into(), requests);
    }
    Ok(status)
}
