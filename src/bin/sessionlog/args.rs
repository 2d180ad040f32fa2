//! The command line: what can be asked, with the texts of `--help`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use sessionlog::interop::Existing;

const EXIT_CODES: &str = "\
Exit codes:
  0  fine
  1  findings (check, verify, events on damage, import with a refused file), or a failure
  2  wrong usage
A closed pipe on standard output is no failure. Data goes to standard output, words to standard error.

Only import, record, repair, fork, delete, and the target of backup write. import and record create a store that is
missing. All other commands read, take no lock, and work beside a live writer.

The store: --store DIR, else $SESSIONLOG_STORE, else ./.sessionlog";

/// Sessions of AI agents in one crash-safe log.
#[derive(Debug, Parser)]
#[command(name = "sessionlog", version, about, after_help = EXIT_CODES, max_term_width = 110)]
pub(crate) struct Arguments {
    /// The store's directory [default: $SESSIONLOG_STORE, else ./.sessionlog]
    #[arg(long, global = true, value_name = "DIR", overrides_with = "store")]
    pub(crate) store: Option<PathBuf>,
    /// Print data as JSON, one object a line; absent fields are left out
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Write on a network or FUSE-like file system, where locks and syncs may mean less than the store needs
    #[arg(long, global = true)]
    pub(crate) allow_network_fs: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Record a bundled session, kill the recorder, recover: the main job in one command
    Demo(Demo),
    /// The child that `demo` starts and kills
    #[command(hide = true)]
    DemoChild,
    /// Store the sessions of other programs' files; exit 1 if any was refused
    Import(Import),
    /// Write sessions to files
    Export(Export),
    /// List the stored sessions
    Ls,
    /// Show one session: its header and figures
    Show(Session),
    /// Print the events of a session; with --json the lines exactly as exported
    Events(Events),
    /// Print the messages that a model would get
    Messages(Session),
    /// Print the events that make the messages, as the linked list they are
    Surface(Session),
    /// Print what an event came from, what came of it, what it shadows and what shadows it
    Provenance(Provenance),
    /// Check a session against the invariants I1-I10 and M; exit 1 if any is broken
    Check(Check),
    /// Close what a crash left open; prints the closing events
    Repair(Repair),
    /// Fork a session: the new one has the events of the old one up to a place
    Fork(Fork),
    /// Delete a session; its forks keep what they need
    Delete(Session),
    /// Read everything and report all damage; exit 1 if there is any
    Verify,
    /// Print figures of the store
    Stats,
    /// Copy the store, a live one included, to a new directory
    Backup(Backup),
    /// Print the last events of a session, and follow it
    Tail(Tail),
    /// Record sessions for a program: requests on standard input, answers on standard output
    Record(Record),
}

impl Command {
    /// Whether it leaves more behind than what it prints.
    pub(crate) fn changes_something(&self) -> bool {
        match self {
            Self::Import(import) => !import.dry_run,
            Self::Export(export) => !export.dry_run(),
            Self::Fork(_) | Self::Delete(_) | Self::Record(_) => true,
            Self::Repair(repair) => !repair.dry_run,
            _ => false,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Keep the store in this directory, which must be new or empty [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Files of any name, JSONL or SQLite as their content says, and folders to search for *.jsonl
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Store the events before a hole that is damage, and say what is missing
    #[arg(long)]
    pub(crate) salvage: bool,
    /// Say what would happen, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    #[command(subcommand)]
    pub(crate) format: ExportFormat,
}

impl Export {
    fn dry_run(&self) -> bool {
        match &self.format {
            ExportFormat::Jsonl(jsonl) => jsonl.what.dry_run,
            #[cfg(feature = "sqlite")]
            ExportFormat::Sqlite(sqlite) => sqlite.what.dry_run,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExportFormat {
    /// One file a session: DIR/cwd-HASH/ID.jsonl
    Jsonl(ExportJsonl),
    /// One SQLite database of schema 4
    #[cfg(feature = "sqlite")]
    Sqlite(ExportSqlite),
}

#[derive(Debug, Args)]
pub(crate) struct ExportJsonl {
    /// The folder to write to; it is created when missing
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) what: ExportWhat,
}

#[cfg(feature = "sqlite")]
#[derive(Debug, Args)]
pub(crate) struct ExportSqlite {
    /// The database to write; it appears when it is whole
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Refuse sessions that the schema has no place for, instead of keeping such lines in a table beside it
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) what: ExportWhat,
}

/// What is exported, and what becomes of output that is there already.
#[derive(Debug, Args)]
pub(crate) struct ExportWhat {
    /// Add new sessions, and new events of those that are there; what is there must be the beginning of what is written
    #[arg(long, conflicts_with = "force")]
    pub(crate) append: bool,
    /// Replace what is there
    #[arg(long)]
    pub(crate) force: bool,
    /// Say what would happen, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The sessions [default: all]
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
}

impl ExportWhat {
    pub(crate) fn existing(&self) -> Existing {
        match (self.append, self.force) {
            (true, _) => Existing::Append,
            (_, true) => Existing::Replace,
            _ => Existing::Refuse,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Session {
    /// The session's id
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct Events {
    /// The session's id
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Start at this sequence number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) from: u64,
    /// Print at most so many events
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Only events of this type
    #[arg(long = "type", value_name = "T")]
    pub(crate) event_type: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Provenance {
    /// The session's id
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The event's sequence number
    #[arg(value_name = "SEQ")]
    pub(crate) seq: u64,
}

#[derive(Debug, Args)]
#[group(id = "what", required = true, multiple = false)]
pub(crate) struct Check {
    /// The session's id
    #[arg(value_name = "ID", group = "what")]
    pub(crate) id: Option<String>,
    /// Check a JSONL file without storing it
    #[arg(long, value_name = "F.jsonl", group = "what")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Repair {
    /// The session's id
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) id: Option<String>,
    /// Every session with an open turn
    #[arg(long)]
    pub(crate) all: bool,
    /// Say what would be appended; write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Go on with a session of which events are lost to damage
    #[arg(long)]
    pub(crate) accept_loss: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Fork {
    /// The session to fork
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The last event to inherit [default: the last there is]
    #[arg(long, value_name = "SEQ")]
    pub(crate) at: Option<u64>,
    /// The id of the new session [default: a fresh UUID]
    #[arg(long = "id", value_name = "NEW")]
    pub(crate) new_id: Option<String>,
    /// Where a turn is open at the cut, close it in the new session; otherwise that is an error
    #[arg(long)]
    pub(crate) close_open_turn: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The directory to create
    #[arg(value_name = "DIR")]
    pub(crate) target: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Tail {
    /// The session's id
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Go on printing events as a writer makes them durable
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// How many events to start with
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub(crate) lines: u64,
}

#[derive(Debug, Args)]
#[command(after_help = RECORD_HELP)]
pub(crate) struct Record {}

const RECORD_HELP: &str = "\
One JSON object a line in, one a line out, in order; an answer repeats the request's \"tag\". Requests, by \"op\":
  create   {id?, cwd?, parentSession?, createdAt?}
  resume   {session}                                                            answers closers
  append   {session, type, data, surfaceOp?, sourceEventSeqs?, time?, extra?, expect?}
  batch    {session, events: [{type, data, surfaceOp?, sourceEventSeqs?, time?, ...}], expect?}
  flush    {session?}              answered when it is on disk: the session, or without one the whole store
  messages {session}                                                            answers messages
  surface  {session}                                     answers nodes: [[seq, prev, next], ...]
  events   {session, from?, limit?}                                             answers events
  fork     {session, at?, id?, closeOpenTurn?}
  delete   {session}
  stat     {session}                                                            answers stat, a line of ls --json
Answers: {\"ok\":true,\"session\":...,\"seq\":...} where seq is the event's (append), the first one (batch, with \"last\"),
the next one (create, resume, fork), the highest durable one (flush; absent without events, and for the whole store,
which has no one seq: session and seq are left out); or {\"ok\":false,\"error\":{\"kind\",\"message\"}}.
A line has at most 65 MiB (68157440 bytes). End of input, SIGTERM and SIGINT flush, close and exit 0.";
