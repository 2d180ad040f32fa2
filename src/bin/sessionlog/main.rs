//! The command-line tool.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(2)
}
