//! The command-line tool.
//!
//! Standard output carries data, standard error words. Exit codes: 0 fine, 1 findings or failure, 2 wrong usage; a
//! closed pipe on standard output is no failure.

mod args;
mod backup;
mod check;
mod delete;
mod demo;
mod events;
mod export;
mod failure;
mod fork;
mod holes;
mod import;
mod ls;
mod messages;
mod output;
mod progress;
mod provenance;
mod record;
mod repair;
mod show;
mod stats;
mod stores;
mod surface;
mod tail;
mod verify;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};
use failure::{Ended, Failure, Outcome};
use output::{Output, printable, say};
use stores::Stores;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments) {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::FAILURE,
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(Failure::Output(error)) => failed(&format!("standard output: {error}")),
        Err(Failure::Library(error)) => failed(&error.to_string()),
        Err(Failure::Words(words)) => failed(&words),
    }
}

fn failed(words: &str) -> ExitCode {
    say(format_args!("sessionlog: {}", printable(words)));
    ExitCode::FAILURE
}

fn run(arguments: Arguments) -> Ended {
    let stores = Stores::new(arguments.store, arguments.allow_network_fs);
    let mut out = Output::new(arguments.json);
    if arguments.command.changes_something() {
        out = out.going_on();
    }
    let outcome = match arguments.command {
        // The recorder keeps the output to itself: it answers as it goes.
        Command::Record(_) => return record::run(&stores, out),
        Command::DemoChild => return demo::child(&stores, out),
        Command::Tail(tail) => return tail::run(&stores, &tail, out),
        Command::Demo(demo) => demo::run(&stores, demo.dir, &mut out),
        Command::Import(import) => import::run(&stores, &import, &mut out),
        Command::Export(export) => export::run(&stores, &export.format, &mut out),
        Command::Ls => ls::run(&stores, &mut out),
        Command::Show(session) => show::run(&stores, &session.id, &mut out),
        Command::Events(events) => events::run(&stores, &events, &mut out),
        Command::Messages(session) => messages::run(&stores, &session.id, &mut out),
        Command::Surface(session) => surface::run(&stores, &session.id, &mut out),
        Command::Provenance(of) => provenance::run(&stores, &of.id, of.seq, &mut out),
        Command::Check(check) => check::run(&stores, &check, &mut out),
        Command::Repair(repair) => repair::run(&stores, &repair, &mut out),
        Command::Fork(fork) => fork::run(&stores, fork, &mut out),
        Command::Delete(session) => delete::run(&stores, &session.id, &mut out),
        Command::Verify => verify::run(&stores, &mut out),
        Command::Stats => stats::run(&stores, &mut out),
        Command::Backup(backup) => backup::run(&stores, &backup.target, &mut out),
    };
    // What was found before a failure is data all the same.
    let flushed = out.flush();
    let outcome = outcome?;
    flushed?;
    Ok(outcome)
}
