//! sessionlog beside other stores, each in its durable setting.
//!
//! `cargo run --release -- damage` writes the same events to each, damages the files, and says what is left.

mod damage;
mod reading;
mod stores;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["damage"] => damage::table(),
        ["write", store, directory, events] => damage::write(store, directory.as_ref(), events),
        ["read", store, directory] => damage::read(store, directory.as_ref()),
        _ => {
            eprintln!("usage: sessionlog-peers damage");
            ExitCode::from(2)
        }
    }
}
