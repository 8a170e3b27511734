//! Summaries in fields: parsed from a model's answer, merged, bounded and written for a model.

use serde_json::{Map, Value};

use crate::text::json_string;
use crate::text::language::Language;
use crate::text::ledger::on_one_line;
use crate::text::rules::normal;
use crate::tokens::{TokenCounter, Tokens};

/// A summary in fields. Entries of a list are oldest first.
///
/// # Source
///
/// `decisions`, `constraints`, `open_questions`, `file_changes` and `context`: document 001, stage nine. The others are
/// found by rules, see [`super::local`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Structured {
    /// What the user asked for first.
    pub goal: String,
    /// Rules of the user, verbatim.
    pub constraints: Vec<String>,
    /// What was decided.
    pub decisions: Vec<String>,
    /// Changed files, one entry each.
    pub file_changes: Vec<String>,
    /// Other calls that changed something, with their outcome.
    pub commands: Vec<String>,
    /// Open questions.
    pub open_questions: Vec<String>,
    /// Error lines of results.
    pub errors: Vec<String>,
    /// What the user asked for.
    pub requests: Vec<String>,
    /// Exact names, most used first.
    pub names: Vec<String>,
    /// Background and progress.
    pub context: String,
}

/// Most characters of an entry.
const MAX_ENTRY_CHARS: usize = 300;
/// Most characters of the background: about 200 words.
const MAX_CONTEXT_CHARS: usize = 2_000;

/// A list of a [`Structured`]: its JSON name, heading, most entries, and the worth of an entry when room is short.
struct List {
    name: &'static str,
    /// By language.
    heading: Headings,
    max_entries: usize,
    worth: u64,
    get: fn(&mut Structured) -> &mut Vec<String>,
}

/// Headings of a field in the text, by [`Language`].
type Headings = [&'static str; 4];

const GOAL: Headings = ["目标", "目標", "목표", "Goal"];
const CONTEXT: Headings = ["背景", "背景", "배경", "Context"];

const LISTS: [List; 8] = [
    List {
        name: "constraints",
        heading: ["用户的规则", "ユーザーのルール", "사용자의 규칙", "Rules of the user"],
        max_entries: 24,
        worth: 16,
        get: |s| &mut s.constraints,
    },
    List {
        name: "decisions",
        heading: ["决定", "決定", "결정", "Decisions"],
        max_entries: 24,
        worth: 4,
        get: |s| &mut s.decisions,
    },
    List {
        name: "file_changes",
        heading: ["改动的文件", "変更したファイル", "변경한 파일", "Files changed"],
        max_entries: 32,
        worth: 4,
        get: |s| &mut s.file_changes,
    },
    List {
        name: "commands",
        heading: ["已执行", "実行済み", "실행함", "Done"],
        max_entries: 24,
        worth: 2,
        get: |s| &mut s.commands,
    },
    List {
        name: "open_questions",
        heading: ["未解决", "未解決", "미해결", "Open"],
        max_entries: 12,
        worth: 4,
        get: |s| &mut s.open_questions,
    },
    List {
        name: "errors",
        heading: ["出现的错误", "発生したエラー", "발생한 오류", "Errors seen"],
        max_entries: 12,
        worth: 2,
        get: |s| &mut s.errors,
    },
    List {
        name: "requests",
        heading: ["用户的要求", "ユーザーの依頼", "사용자의 요청", "Asked by the user"],
        max_entries: 12,
        worth: 2,
        get: |s| &mut s.requests,
    },
    List {
        name: "names",
        heading: ["名称", "名前", "이름", "Names"],
        max_entries: 40,
        worth: 2,
        get: |s| &mut s.names,
    },
];

impl Structured {
    /// Parses a model's answer: JSON alone, in a fence or in prose, cut off, with trailing commas, or with a text or an
    /// object in place of a list. `None` if it has no field: then it is free text.
    pub fn parse(raw: &str) -> Option<Self> {
        let start = raw.find('{')?;
        let value = object(&raw[start..])?;
        Self::from_json(&value).filter(|read| *read != Self::default())
    }

    /// Returns the fields of a JSON object, ignoring unknown ones; `None` for anything else.
    pub fn from_json(value: &Value) -> Option<Self> {
        let fields = value.as_object()?;
        let mut read = Self::default();
        for (name, value) in fields {
            let name = snake_case(name);
            match name.as_str() {
                "goal" => read.goal = on_one_line(&texts(value).join("; "), MAX_ENTRY_CHARS),
                "context" => read.context = clipped(&texts(value).join("\n"), MAX_CONTEXT_CHARS),
                name => {
                    if let Some(list) = LISTS.iter().find(|list| list.name == name) {
                        (list.get)(&mut read)
                            .extend(texts(value).iter().map(|text| on_one_line(text, MAX_ENTRY_CHARS)));
                    }
                }
            }
        }
        Some(read)
    }

    /// Returns the fields as a JSON object, with empty ones of document 001.
    pub fn to_json(&self) -> Value {
        let mut copy = self.clone();
        let mut fields = Map::new();
        for list in &LISTS {
            let entries = std::mem::take((list.get)(&mut copy));
            if !entries.is_empty()
                || ["constraints", "decisions", "file_changes", "open_questions"].contains(&list.name)
            {
                fields.insert(list.name.to_owned(), entries.into());
            }
        }
        if !self.goal.is_empty() {
            fields.insert("goal".to_owned(), self.goal.clone().into());
        }
        fields.insert("context".to_owned(), self.context.clone().into());
        Value::Object(fields)
    }

    /// Merges a newer summary into this one. Common entries appear once, in the newer words; a list that is too long loses
    /// its oldest entries. The older goal stays, the newer one becomes a request.
    #[must_use]
    pub fn merged(mut self, mut newer: Self) -> Self {
        if self.goal.is_empty() {
            self.goal = std::mem::take(&mut newer.goal);
        } else if !newer.goal.is_empty() && newer.goal != self.goal {
            newer.requests.insert(0, std::mem::take(&mut newer.goal));
        }
        for list in &LISTS {
            let theirs = std::mem::take((list.get)(&mut newer));
            let ours = (list.get)(&mut self);
            let is_ranked = list.name == "names";
            let key = |entry: &String| if list.name == "file_changes" { file(entry) } else { normal(entry) };
            let mut seen: Vec<String> = Vec::new();
            let mut all: Vec<String> = Vec::new();
            // Newest first: the first occurrence stays.
            let newest_first: Vec<String> = if is_ranked {
                theirs.into_iter().chain(std::mem::take(ours)).collect()
            } else {
                std::mem::take(ours).into_iter().chain(theirs).rev().collect()
            };
            for entry in newest_first {
                let key = key(&entry);
                if !key.is_empty() && !seen.contains(&key) && all.len() < list.max_entries {
                    seen.push(key);
                    all.push(entry);
                }
            }
            if !is_ranked {
                all.reverse();
            }
            *ours = all;
        }
        if !newer.context.is_empty() {
            self.context = newer.context;
        }
        self
    }

    /// Returns this summary with at most `max_tokens` as text: the longest lists lose their oldest entries, rules last, and
    /// the last rule is cut.
    #[must_use]
    pub fn within(mut self, max_tokens: Tokens, counter: TokenCounter) -> Self {
        let cost = |entry: &str| counter.text(entry) + Tokens(2);
        while counter.text(&self.to_string()) > max_tokens {
            let mut over = counter.text(&self.to_string()) - max_tokens;
            let mut sizes: Vec<Tokens> = Vec::with_capacity(LISTS.len());
            for list in &LISTS {
                sizes.push((list.get)(&mut self).iter().map(|entry| cost(entry)).sum());
            }
            let mut dropped = false;
            while over > Tokens::ZERO {
                let weighted = |at: &usize| sizes[*at] * 16 / LISTS[*at].worth;
                // Rules go when nothing else is left.
                let largest = (1..LISTS.len()).filter(|&at| sizes[at] > Tokens::ZERO).max_by_key(weighted);
                let Some(at) = largest else { break };
                let list = (LISTS[at].get)(&mut self);
                let entry = if LISTS[at].name == "names" { list.pop() } else { Some(list.remove(0)) };
                let freed = entry.map_or(Tokens::ZERO, |entry| cost(&entry));
                sizes[at] = if list.is_empty() { Tokens::ZERO } else { (sizes[at] - freed).max(Tokens(1)) };
                over -= freed;
                dropped = true;
            }
            if dropped {
                continue;
            }
            if !self.context.is_empty() {
                self.context = halved(&self.context);
            } else if !self.goal.is_empty() {
                self.goal = halved(&self.goal);
            } else if let [rule] = &mut self.constraints[..] {
                // Half of a rule is better than none.
                *rule = halved(rule);
                self.constraints.retain(|rule| !rule.is_empty());
            } else if self.constraints.is_empty() {
                break;
            } else {
                self.constraints.remove(0);
            }
        }
        self
    }

    /// Returns the language of its headings: that of the user's words in it, else of the words about them.
    pub fn language(&self) -> Language {
        let of_user = self.requests.iter().rev().chain([&self.goal]).chain(self.constraints.iter().rev());
        let written = self.decisions.iter().rev().chain([&self.context]).chain(&self.open_questions);
        Language::of(of_user).or_else(|| Language::of(written)).unwrap_or_default()
    }

    /// Returns it as a text with headings in a language.
    #[must_use]
    pub fn written_in(&self, language: Language) -> String {
        let language = language as usize;
        let mut blocks: Vec<String> = Vec::new();
        if !self.goal.is_empty() {
            blocks.push(format!("{}: {}", GOAL[language], self.goal));
        }
        let mut copy = self.clone();
        for list in &LISTS {
            let entries = (list.get)(&mut copy);
            if list.name == "names" && !entries.is_empty() {
                blocks.push(format!("{}: {}", list.heading[language], entries.join(", ")));
            } else if !entries.is_empty() {
                blocks.push(format!("{}:\n- {}", list.heading[language], entries.join("\n- ")));
            }
        }
        if !self.context.is_empty() {
            blocks.push(format!("{}: {}", CONTEXT[language], self.context));
        }
        blocks.join("\n")
    }

    /// Returns the rules that `text` does not have verbatim, and the exact names that it lacks.
    #[must_use]
    pub fn missing_in(&self, text: &str) -> Self {
        let said = normal(text);
        Self {
            constraints: self.constraints.iter().filter(|rule| !said.contains(&normal(rule))).cloned().collect(),
            names: self.names.iter().filter(|name| !text.contains(name.as_str())).cloned().collect(),
            ..Self::default()
        }
    }
}

impl std::fmt::Display for Structured {
    /// Writes the summary for a model, in its own language: document 001's `format_summary_for_context`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.written_in(self.language()))
    }
}

/// Returns the file of an entry: a newer entry of the same file replaces it.
fn file(entry: &str) -> String {
    let word = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/' && c != '_').to_owned();
    let is_path = |word: &String| word.contains(['/', '.', '\\']) && word.chars().any(char::is_alphanumeric);
    entry.split([' ', '\t', ':', '：', '（', '(', ',']).map(word).find(is_path).unwrap_or_else(|| normal(entry))
}

fn clipped(text: &str, max_chars: usize) -> String {
    let text = text.trim();
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// Returns the first half of a text; nothing of a short one.
fn halved(text: &str) -> String {
    let chars = text.chars().count() / 2;
    if chars < 20 { String::new() } else { clipped(text, chars) }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for c in name.trim().chars() {
        if c.is_uppercase() && snake.chars().next_back().is_some_and(char::is_lowercase) {
            snake.push('_');
        }
        snake.extend(c.to_lowercase().map(|c| if c == ' ' || c == '-' { '_' } else { c }));
    }
    snake
}

/// Returns the entries of a field, whatever form it has.
fn texts(value: &Value) -> Vec<String> {
    let texts: Vec<String> = match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.trim().to_owned()],
        Value::Array(items) => items.iter().map(|item| texts(item).join("; ")).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name}: {}", texts(value).join(", "))).collect()
        }
        other => vec![other.to_string()],
    };
    texts.into_iter().filter(|text| !text.is_empty()).collect()
}

/// Returns the JSON object at the start of `raw`, with missing ends and trailing commas repaired.
fn object(raw: &str) -> Option<Value> {
    let mut repair = Repair::default();
    let mut rest = raw;
    while let Some(c) = rest.chars().next() {
        rest = repair.read(c, &rest[c.len_utf8()..])?;
        if repair.open.is_empty() {
            break;
        }
    }
    repair.close();
    serde_json::from_str(&repair.json).ok()
}

/// The repair of an object, as far as it was read.
#[derive(Default)]
struct Repair<'r> {
    json: String,
    /// The brackets that close what is open, innermost last.
    open: Vec<char>,
    /// The text of a string without an end.
    unfinished: Option<&'r str>,
}

impl<'r> Repair<'r> {
    /// Reads a character, or a string that starts with it; returns what is behind that. `None` if this is no object.
    fn read(&mut self, c: char, mut rest: &'r str) -> Option<&'r str> {
        match c {
            '"' if self.open.is_empty() => return None,
            '"' => {
                let close = json_string::closing_quote(rest);
                let body = &rest[..close.unwrap_or(rest.len())];
                self.json.push('"');
                // Models write line breaks in strings, which are not valid JSON.
                self.json.push_str(&body.replace('\n', "\\n"));
                if close.is_none() {
                    self.unfinished = Some(body);
                    return Some("");
                }
                rest = &rest[body.len() + 1..];
            }
            '{' => self.open.push('}'),
            '[' => self.open.push(']'),
            '}' | ']' => {
                self.drop_commas();
                if self.open.pop() != Some(c) {
                    return None;
                }
            }
            _ => {}
        }
        self.json.push(c);
        Some(rest)
    }

    fn drop_commas(&mut self) {
        let end = self.json.trim_end_matches(|c: char| c.is_whitespace() || c == ',').len();
        self.json.truncate(end);
    }

    /// Closes what is open, without a name whose value is missing.
    fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        if let Some(body) = self.unfinished {
            if json_string::ends_in_escape(body) {
                self.json.pop();
            }
            self.json.push('"');
        }
        self.drop_commas();
        if let Some(named) = self.json.strip_suffix(':') {
            // Without quotes it is not a name, and the text is not JSON.
            let start = named.trim_end().strip_suffix('"').and_then(|name| name.rfind('"')).unwrap_or(0);
            self.json.truncate(start);
            self.drop_commas();
        }
        self.json.extend(self.open.iter().rev());
    }
}
