//! Classifies tool calls by tool name, arguments and result: only these tell a file read from a payment.

mod command_line;
mod fields;
mod instructions;
mod made;
mod outcome;
mod plans;
mod running;

use std::cell::RefCell;
use std::collections::HashMap;

use serde_json::Value;

use command_line::{files_edited_by, files_of_patch, files_shown_by, only_looks};
pub use command_line::{names_patched_file, run_by};
pub use instructions::instructs;
pub use made::made;
pub use outcome::{changed_nothing, exit_code, has_failed, refers_back, state};
pub use plans::{Progress, progress};
pub use running::running;

/// The effect of a tool call.
///
/// The numbers are part of `src/select/usage_trees.txt`, which was fitted to them: a new variant gets the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Shows a file.
    ReadsFile = 0,
    /// Looks something up: listings, searches, pages.
    LooksUp = 1,
    /// Writes or removes all of the file that it names.
    WritesFile = 2,
    /// Changes some of the file that it names.
    EditsFile = 3,
    /// Runs a command line, which may do anything. Of a call: one that does not only look.
    RunsCommand = 4,
    /// Changes something else: an order, a calendar, a message that was sent.
    Changes = 5,
    /// Unknown from its name.
    Unknown = 6,
}

impl Effect {
    /// Returns what the name of a tool says, in whatever case it is written: `read_file`, `readFile`, `mcp-Read-File`.
    ///
    /// Whether a call changed something is for [`Effect::of_call`] to say, which knows what a shell ran. A conversation has few
    /// tools, and asks for each at every call and every result: each thread remembers some.
    pub fn of(tool: &str) -> Self {
        thread_local! {
            static KNOWN: RefCell<HashMap<String, Effect>> = RefCell::default();
        }
        KNOWN.with_borrow_mut(|known| {
            if let Some(effect) = known.get(tool) {
                return *effect;
            }
            let effect = Self::said_by(&words(tool));
            if known.len() < MAX_KNOWN && tool.len() <= MAX_KNOWN_BYTES {
                known.insert(tool.to_owned(), effect);
            }
            effect
        })
    }

    fn said_by(words: &[String]) -> Self {
        let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        let is_all = |lists: &[&[&str]]| {
            !words.is_empty() && words.iter().all(|word| lists.iter().any(|list| list.contains(&word.as_str())))
        };
        let changes = changes(words);
        if has(&RUNNING) || (has(&["run", "execute"]) && has(&["command", "commands", "cmd", "code", "script"])) {
            Self::RunsCommand
        } else if has(&WRITING) && (has(&FILES) || is_all(&[&WRITING])) {
            Self::WritesFile
        } else if has(&EDITING) && (has(&FILES) || is_all(&[&EDITING, &BESIDE_EDITING])) {
            Self::EditsFile
        } else if !changes && (reads(words) || (has(&READING) && has(&FILES))) {
            Self::ReadsFile
        } else if has(&SEARCHING) && is_all(&[&READING, &SEARCHING, &FILES, &SEARCHED]) {
            Self::LooksUp
        } else if changes {
            Self::Changes
        } else {
            Self::Unknown
        }
    }

    /// Returns what a call of `tool` does, as [`Action::of`] has it; `arguments` are JSON text.
    ///
    /// O(1) in arguments that can say nothing but what the name says: they are parsed for a shell, and where there is a `command`.
    pub fn of_call(tool: &str, arguments: &str) -> Self {
        match Self::of(tool) {
            named if named != Self::RunsCommand && !arguments.contains("\"command\"") => named,
            _ => Action::of(tool, &serde_json::from_str(arguments).unwrap_or_default()).effect,
        }
    }

    /// Returns whether the tool is for files, which its calls name.
    pub fn is_of_file(self) -> bool {
        matches!(self, Self::ReadsFile | Self::WritesFile | Self::EditsFile)
    }

    /// Returns whether a call may have changed something outside of the conversation.
    pub fn is_changing(self) -> bool {
        matches!(self, Self::WritesFile | Self::EditsFile | Self::RunsCommand | Self::Changes)
    }
}

/// Names of tools that a thread remembers, and the bytes of each, at most.
const MAX_KNOWN: usize = 256;
const MAX_KNOWN_BYTES: usize = 64;

/// A tool call's effect and files.
#[derive(Debug, PartialEq, Eq)]
pub struct Action {
    /// What it does, which its arguments may say where the tool's name does not.
    pub effect: Effect,
    /// The files that it names, without a leading `./`.
    pub files: Vec<String>,
}

impl Action {
    /// Returns what a call of `tool` with `arguments` does: one tool for files may read and write, and a shell may print one.
    pub fn of(tool: &str, arguments: &Value) -> Self {
        let named = Effect::of(tool);
        if named == Effect::RunsCommand {
            let does =
                [(Effect::EditsFile, files_edited_by(arguments)), (Effect::ReadsFile, files_shown_by(arguments))];
            let other = || (if only_looks(arguments) { Effect::LooksUp } else { named }, Vec::new());
            let (effect, files) = does.into_iter().find(|(_, files)| !files.is_empty()).unwrap_or_else(other);
            return Self { effect, files: files.iter().map(|file| bare(file).to_owned()).collect() };
        }
        let mut files = files_in(arguments);
        if files.is_empty() && named == Effect::EditsFile {
            let texts = arguments.as_object().into_iter().flat_map(|values| values.values()).filter_map(Value::as_str);
            files = texts.flat_map(files_of_patch).map(bare).collect();
        }
        let files: Vec<String> = files.into_iter().map(str::to_owned).collect();
        let command = arguments.get("command").and_then(Value::as_str).filter(|_| !files.is_empty());
        // Source: Anthropic, "Text editor tool" and "Memory tool".
        let effect = match command {
            Some("view") => Effect::ReadsFile,
            Some("create" | "delete") => Effect::WritesFile,
            Some("str_replace" | "insert" | "undo_edit") => Effect::EditsFile,
            _ => named,
        };
        Self { effect, files }
    }
}

const READING: [&str; 5] = ["read", "view", "open", "cat", "show"];
/// Nouns behind a reading verb: `get_file_contents`, `fs_read`.
const CONTENTS: [&str; 6] = ["content", "contents", "text", "lines", "raw", "fs"];
/// Verbs that read if their object is a file.
const GETTING: [&str; 3] = ["get", "fetch", "load"];
const FILES: [&str; 4] = ["file", "files", "notebook", "document"];
const WRITING: [&str; 6] = ["write", "create", "overwrite", "save", "delete", "remove"];
const EDITING: [&str; 6] = ["edit", "append", "insert", "replace", "patch", "modify"];
/// Words that a tool for one file may have beside [`EDITING`]: `apply_patch`, `str_replace`, `MultiEdit`.
const BESIDE_EDITING: [&str; 5] = ["apply", "str", "search", "multi", "text"];
const RUNNING: [&str; 7] = ["exec", "shell", "bash", "terminal", "sh", "zsh", "powershell"];
const SEARCHING: [&str; 8] = ["list", "ls", "search", "find", "glob", "grep", "fetch", "lookup"];
const SEARCHED: [&str; 12] =
    ["web", "internet", "dir", "directory", "folder", "url", "page", "pages", "code", "codebase", "path", "paths"];

/// Verbs that say that a call changes something, wherever they stand.
const CHANGING: [&str; 38] = [
    "write",
    "create",
    "delete",
    "remove",
    "send",
    "execute",
    "exec",
    "shell",
    "bash",
    "rename",
    "install",
    "insert",
    "replace",
    "modify",
    "cancel",
    "spawn",
    "make",
    "place",
    "reserve",
    "upload",
    "purchase",
    "buy",
    "sell",
    "invite",
    "register",
    "submit",
    "approve",
    "publish",
    "subscribe",
    "unsubscribe",
    "enroll",
    "withdraw",
    "donate",
    "revoke",
    "grant",
    "assign",
    "lock",
    "unlock",
];

/// Words that say so only where none of [`ASKING`] stands before them: `return_order`, but `get_return_policy`.
const CHANGING_OR_NOUN: [&str; 35] = [
    "edit", "post", "put", "update", "run", "message", "patch", "apply", "move", "commit", "push", "book", "set",
    "add", "cron", "schedule", "pay", "transfer", "return", "exchange", "append", "deploy", "charge", "refund",
    "checkout", "reply", "forward", "merge", "close", "order", "sign", "start", "stop", "restart", "confirm",
];

const ASKING: [&str; 16] = [
    "get",
    "list",
    "read",
    "search",
    "find",
    "show",
    "fetch",
    "query",
    "view",
    "check",
    "describe",
    "lookup",
    "count",
    "is",
    "has",
    "calculate",
];

/// Returns whether a name says that a file is read in words that say so only together: `get_file_contents`, `fs_read`.
fn reads(words: &[String]) -> bool {
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let is_content = |word: &String| CONTENTS.contains(&word.as_str());
    let ends = words.last().is_some_and(|word| word == "file" || is_content(word));
    let is_got = has(&GETTING) && has(&["file"]) && ends;
    is_got || (has(&READING) && words.iter().all(|word| is_content(word) || READING.contains(&word.as_str())))
}

fn changes(words: &[String]) -> bool {
    let mut asks = false;
    for word in words.iter().map(String::as_str) {
        if CHANGING.contains(&word) || (!asks && CHANGING_OR_NOUN.contains(&word)) {
            return true;
        }
        asks |= ASKING.contains(&word);
    }
    false
}

/// Returns the words of a name in lower case: of `createFile`, `create-file` and `HTTPCreate_file2`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut chars = name.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        if c.is_alphanumeric() {
            let is_hump =
                c.is_uppercase() && (!before.is_uppercase() || chars.peek().is_some_and(|next| next.is_lowercase()));
            if is_hump || !before.is_alphanumeric() {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(c.to_lowercase());
            }
        }
        before = c;
    }
    words
}

/// Words of tools that say something to somebody.
const SPEAKING: [&str; 6] = ["message", "reply", "respond", "answer", "notify", "say"];
/// Arguments with what they say.
pub const SAID_KEYS: [&str; 4] = ["content", "text", "message", "body"];

/// Returns whether a tool says something to somebody, by its name.
pub fn speaks(tool: &str) -> bool {
    Effect::of(tool) == Effect::Changes && words(tool).iter().any(|word| SPEAKING.contains(&word.as_str()))
}

/// Arguments that name a file, the usual ones first.
pub const PATH_KEYS: &[&str] = SUBJECT_KEYS.split_at(10).0;

/// Arguments whose values say nothing when they are cut: a file, an address, a command line.
pub const LOCATOR_KEYS: &[&str] = SUBJECT_KEYS.split_at(12).0;

/// Arguments that say what a call is about: [`LOCATOR_KEYS`]; `name` and `input`, all that some have.
pub const SUBJECT_KEYS: [&str; 14] = [
    "path",
    "file_path",
    "filepath",
    "filename",
    "file",
    "filePath",
    "target_file",
    "absolute_path",
    "notebook_path",
    "relative_workspace_path",
    "url",
    "command",
    "name",
    "input",
];

/// Returns the file that the arguments of a call name, without a leading `./`.
pub fn path_in(arguments: &Value) -> Option<&str> {
    PATH_KEYS.iter().find_map(|key| arguments.get(key)?.as_str()).map(bare)
}

/// Arguments that name several files: paths, or objects that have one each.
const PATHS_KEYS: [&str; 5] = ["paths", "files", "file_paths", "filenames", "operations"];

/// Returns all files that the arguments of a call name.
fn files_in(arguments: &Value) -> Vec<&str> {
    if let Some(path) = path_in(arguments) {
        return vec![path];
    }
    let listed = PATHS_KEYS.iter().find_map(|key| arguments.get(*key)?.as_array());
    listed.into_iter().flatten().filter_map(|one| one.as_str().map(bare).or_else(|| path_in(one))).collect()
}

fn bare(path: &str) -> &str {
    path.trim_start_matches("./")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_a_tool_does_in_whatever_case() {
        use Effect::{Changes, EditsFile, LooksUp, ReadsFile, RunsCommand, Unknown, WritesFile};
        let cases = [
            (ReadsFile, "read_file readFile ReadFile Read view_file open_file cat_file mcp_filesystem_read_file"),
            (ReadsFile, "get_file_contents fetch_file getFileContent mcp__github__get_file_contents fs_read read_text"),
            (Unknown, "get_file_info get_text load_contents get_or_load_text"),
            (WritesFile, "write_file createFile Write mcp-fs-delete-file"),
            (EditsFile, "edit_file append_file apply_patch str_replace Edit MultiEdit NotebookEdit search_replace"),
            (RunsCommand, "exec shell bash Bash execute_shell run_shell run_command runCommand run_terminal_cmd"),
            (
                LooksUp,
                "list_dir list_directory glob grep Grep find_files web_search search_web WebFetch codebase_search",
            ),
            (
                Changes,
                "send_message book_reservation cancel_order create_issue cron message spawn setTimer return_order",
            ),
            (Changes, "mcp_github_create_issue update_user exchange_delivered_order_items run_tests"),
            (Unknown, "get_return_policy getMessage list_posts get_order_details find_exchange_rate calculate think"),
            (Unknown, "check_schedule describe_commit  __ 天气"),
        ];
        for (effect, tools) in cases {
            for tool in tools.split(' ') {
                assert_eq!(Effect::of(tool), effect, "{tool}");
            }
        }
    }

    #[test]
    fn what_a_call_does_is_said_by_its_arguments_too() {
        let cases = [
            ("str_replace_based_edit_tool", r#"{"command": "view", "path": "./a.md"}"#, Effect::ReadsFile),
            ("str_replace_editor", r#"{"command": "create", "path": "a.md", "file_text": "x"}"#, Effect::WritesFile),
            ("memory", r#"{"command": "str_replace", "path": "a.md"}"#, Effect::EditsFile),
            ("read_many_files", r#"{"paths": ["a.md"]}"#, Effect::ReadsFile),
            ("read_file", r#"{"files": [{"path": "a.md", "line_ranges": ["1-9"]}]}"#, Effect::ReadsFile),
            ("fs_read", r#"{"operations": [{"mode": "Line", "path": "a.md"}]}"#, Effect::ReadsFile),
            ("readFile", r#"{"relative_workspace_path": "a.md"}"#, Effect::ReadsFile),
            ("write_file", r#"{"path": "a.md", "content": "view"}"#, Effect::WritesFile),
            ("Bash", r#"{"command": "cat ./a.md"}"#, Effect::ReadsFile),
            ("local_shell", r#"{"type": "exec", "command": ["cat", "a.md"]}"#, Effect::ReadsFile),
        ];
        for (tool, arguments, effect) in cases {
            let action = Action::of(tool, &serde_json::from_str(arguments).unwrap_or_default());
            assert_eq!(action, Action { effect, files: vec!["a.md".to_owned()] }, "{tool}");
        }
        let pays = Action::of("bash", &serde_json::json!({ "command": "pay 5" }));
        assert_eq!(pays, Action { effect: Effect::RunsCommand, files: Vec::new() });
        let patch =
            serde_json::json!({ "input": "*** Begin Patch\n*** Update File: ./a.md\n@@\n-a\n+b\n*** End Patch" });
        let patched = Action { effect: Effect::EditsFile, files: vec!["a.md".to_owned()] };
        assert_eq!(Action::of("apply_patch", &patch), patched);
        assert_eq!(Action::of("Bash", &serde_json::json!({ "command": "sed -i s/a/b/ ./a.md" })), patched);
        let looks = Action::of("camera", &serde_json::json!({ "command": "view" }));
        assert_eq!(looks, Action { effect: Effect::Unknown, files: Vec::new() });
    }

    #[test]
    fn a_call_is_a_change_by_what_it_does_and_not_by_its_tool_alone() {
        let editor = "str_replace_based_edit_tool";
        for (tool, arguments, is_change) in [
            ("Bash", r#"{"command": "ls -la src"}"#, false),
            ("exec", r#"{"cmd": "tree src | head -20"}"#, false),
            ("local_shell", r#"{"command": ["bash", "-lc", "ls"]}"#, false),
            ("shell", r#"{"commands": ["ls", "wc -l a.md"]}"#, false),
            ("Bash", r#"{"command": "cat a"}"#, false),
            ("Bash", r#"{"command": "cat a > b"}"#, true),
            ("Bash", r#"{"command": "find . -delete"}"#, true),
            ("Bash", r#"{"command": "sed -i s/a/b/ a.md"}"#, true),
            ("shell", r#"{"commands": ["ls", "make"]}"#, true),
            ("exec", r#"{"command": "make"}"#, true),
            ("exec", "broken", true),
            ("exec", "{}", true),
            (editor, r#"{"command": "view", "path": "a.md"}"#, false),
            (editor, r#"{"command": "insert", "path": "a.md", "insert_text": "x"}"#, true),
            ("memory", r#"{"command": "view", "path": "/memories"}"#, false),
            ("memory", r#"{"command": "delete", "path": "/memories/a.md"}"#, true),
            ("create_spreadsheet", r#"{"title": "costs"}"#, true),
            ("createFile", r#"{"filePath": "a.md"}"#, true),
            ("create_file", r#"{"path": "a.md"}"#, true),
            ("get_return_policy", r#"{"order": "W1"}"#, false),
            ("getReturnPolicy", r#"{"order": "W1"}"#, false),
            ("returnOrder", r#"{"order": "W1"}"#, true),
        ] {
            assert_eq!(Effect::of_call(tool, arguments).is_changing(), is_change, "{tool} {arguments}");
            let action = Action::of(tool, &serde_json::from_str(arguments).unwrap_or_default());
            assert_eq!(action.effect, Effect::of_call(tool, arguments), "{tool} {arguments}");
        }
    }

    #[test]
    fn words_end_at_humps_and_marks() {
        assert_eq!(words("createFile"), ["create", "file"]);
        assert_eq!(words("HTTPGet-URL2_x"), ["http", "get", "url2", "x"]);
        assert_eq!(words("__"), Vec::<String>::new());
    }

    #[test]
    fn paths_are_found_whatever_the_argument_is_called() {
        let named = |arguments: &str| -> Option<String> {
            path_in(&serde_json::from_str(arguments).unwrap_or_default()).map(str::to_owned)
        };
        for key in PATH_KEYS {
            assert_eq!(named(&format!(r#"{{"x": 1, "{key}": "./src/a.py"}}"#)).as_deref(), Some("src/a.py"));
        }
        assert_eq!(named(r#"{"path": 3}"#), None);
        assert_eq!(named("not json"), None);
    }
}
