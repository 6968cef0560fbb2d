// SPDX-License-Identifier: Apache-2.0
//! `espbench-traffic serve` takes commands as JSON lines on stdin and answers with events as JSON lines on stdout.

use std::io::BufRead;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::Duration;

use crate::commands::output::{emit, emit_failure};
use crate::commands::session::Session;
use crate::failure::{Failure, Outcome};
use crate::host::{signals, threads};
use crate::protocol::{Command, Event, PROTOCOL};
use crate::trial::caller::Caller;

/// Longest line that is accepted as a command, bytes. A trial with 4096 packets of noise, of 1500 B each, in base64 needs
/// 8 MiB.
const LONGEST_LINE: usize = 16 << 20;

/// Reads stdin in a thread of its own. The process ends when stdin does, because then the controller is gone.
fn read_lines() -> Receiver<Outcome<String>> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().split(b'\n') {
            let Ok(bytes) = line else { break };
            let line = if bytes.len() > LONGEST_LINE {
                Err(Failure::new(
                    "the line is longer than 16 MiB",
                    "send one command a line",
                ))
            } else {
                String::from_utf8(bytes)
                    .map_err(|_| Failure::new("the line is not UTF-8", "send JSON, one command a line"))
            };
            if send.send(line).is_err() {
                break;
            }
        }
        // The kernel closes sockets and rings and leaves promiscuous mode when the process ends.
        std::process::exit(0);
    });
    receive
}

fn parse(line: Outcome<String>) -> Outcome<Command> {
    serde_json::from_str(&line?).map_err(|error| {
        Failure::new(
            format!("bad command: {error}"),
            "one JSON object a line: {\"cmd\":\"hello\"|\"open\"|\"resolve\"|\"console\"|\"branch\"|\"trial\"|\"continue\"|\"stop\"|\"close\", …}",
        )
    })
}

/// Serves one controller until it closes stdin or a signal arrives.
pub fn serve() {
    threads::die_with_parent();
    signals::install();
    let lines = read_lines();
    let mut session = Session::default();
    while !signals::asked_to_end() {
        let line = match lines.recv_timeout(Duration::from_millis(100)) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if line.as_ref().is_ok_and(|line| line.trim().is_empty()) {
            continue;
        }
        match parse(line) {
            Ok(Command::Hello) => emit(&Event::Hello {
                version: env!("CARGO_PKG_VERSION"),
                protocol: PROTOCOL,
                pid: std::process::id(),
            }),
            Ok(Command::Open(open)) => answer(session.open(&open)),
            Ok(Command::Resolve(resolve)) => answer(session.resolve(&resolve, &mut || stop_asked(&lines))),
            Ok(Command::Console(console)) => answer(session.console(&console, &mut || stop_asked(&lines))),
            Ok(Command::Branch(branch)) => answer(session.branch(&branch)),
            Ok(Command::Trial(trial)) => {
                let mut caller = Caller {
                    emit: &mut emit,
                    asked_to_stop: &mut || stop_asked(&lines),
                    next_command: &mut || next_command(&lines),
                };
                let result = session.trial(&trial, &mut caller);
                answer(result.map(|result| Event::Trial(Box::new(result))));
            }
            Ok(Command::Stop | Command::Continue) => {} // for a trial that is already over
            Ok(Command::Close) => {
                session.close();
                emit(&Event::Closed);
            }
            Err(failure) => emit_failure(failure),
        }
    }
}

fn answer(outcome: Outcome<Event>) {
    match outcome {
        Ok(event) => emit(&event),
        Err(failure) => emit_failure(failure),
    }
}

/// Waits for a command while virtual time stands still in a trial; returns None if a signal arrived or the controller
/// is gone.
fn next_command(lines: &Receiver<Outcome<String>>) -> Option<Outcome<Command>> {
    while !signals::asked_to_end() {
        match lines.recv_timeout(Duration::from_millis(100)) {
            Ok(line) => return Some(parse(line)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
    None
}

/// Returns whether the running command is to end: by the command `stop`, a signal, or because the controller is gone.
///
/// Refuses any other command that has arrived.
fn stop_asked(lines: &Receiver<Outcome<String>>) -> bool {
    if signals::asked_to_end() {
        return true;
    }
    match lines.try_recv() {
        Ok(line) => match parse(line) {
            Ok(Command::Stop) => true,
            Ok(_) => {
                emit_failure(Failure::new(
                    "a command is being carried out",
                    "wait for its result, or send {\"cmd\":\"stop\"}",
                ));
                false
            }
            Err(failure) => {
                emit_failure(failure);
                false
            }
        },
        Err(TryRecvError::Empty) => false,
        Err(TryRecvError::Disconnected) => true,
    }
}
