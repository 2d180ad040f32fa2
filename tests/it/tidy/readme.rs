//! What the README tells a reader to type exists.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use super::source::{files, root};

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).expect("there is a README")
}

/// The lines of the blocks marked `sh`, without comments.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            inside = !inside && language == "sh";
        } else if inside {
            let line = line.split(" #").next().unwrap_or_default().trim();
            if !line.is_empty() && !line.starts_with('#') {
                found.push(line.to_owned());
            }
        }
    }
    found
}

/// The names in the first column of the table of commands: `| `name …` | …`.
fn table(text: &str) -> BTreeSet<String> {
    let section = text.split("## The command line").nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let first = |line: &str| Some(line.strip_prefix("| `")?.split([' ', '`']).next()?.to_owned());
    section.lines().filter_map(first).collect()
}

fn help(arguments: &[&str]) -> Option<String> {
    let tool = option_env!("CARGO_BIN_EXE_sessionlog")?;
    let output = Command::new(tool).args(arguments).arg("--help").output().expect("the tool starts");
    assert!(output.status.success(), "sessionlog {} --help fails", arguments.join(" "));
    Some(String::from_utf8(output.stdout).expect("help is UTF-8"))
}

#[test]
fn the_two_commands_are_there() {
    let commands = commands(&readme());
    for wanted in ["cargo run --release -- demo", "cargo test"] {
        assert!(commands.iter().any(|line| line == wanted), "README does not give `{wanted}`");
    }
    let ci = fs::read_to_string(root().join(".ci/run")).expect("there is a CI script");
    assert_eq!(ci.trim_end().lines().last(), Some("cargo test"), "CI ends with README's test command");
}

#[test]
fn every_command_line_of_the_readme_is_understood() {
    for line in commands(&readme()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(at) = words.iter().position(|word| *word == "sessionlog") else { continue };
        let mut rest = words[at + 1..].to_vec();
        if rest.first() == Some(&"--store") {
            rest.drain(..2);
        }
        let depth = if rest.first() == Some(&"export") { 2 } else { 1 };
        let until = rest.iter().position(|word| matches!(*word, "|" | ">" | "<")).unwrap_or(rest.len());
        let rest = &rest[..until];
        let Some(text) = help(&rest[..depth.min(rest.len())]) else {
            println!("skipped: the tool is not built");
            return;
        };
        for flag in rest.iter().filter(|word| word.starts_with("--") && word.len() > 2) {
            assert!(text.contains(flag), "`{line}`: no {flag} in its help");
        }
    }
}

#[test]
fn the_table_of_commands_is_the_tool_s() {
    let Some(text) = help(&[]) else {
        println!("skipped: the tool is not built");
        return;
    };
    let listed =
        text.split("Commands:").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap_or_default();
    let indented = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let listed: BTreeSet<String> = listed
        .lines()
        .filter(indented)
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect();
    assert!(listed.len() > 10, "no commands found in the help");
    assert_eq!(table(&readme()), listed);
}

#[test]
fn links_inside_the_project_lead_somewhere() {
    let mut found = Vec::new();
    for (path, file) in files(&[".md"]) {
        let text = fs::read_to_string(&file).expect("it is UTF-8");
        let folder = file.parent().expect("a file is in a folder");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            if !target.is_empty() && !target.contains("://") && !folder.join(target).exists() {
                found.push(format!("{path}: {target}"));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
