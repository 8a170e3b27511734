//! A summary in fields: read from what a model wrote, merged, kept small, written for a model.

use serde_json::{Map, Value};

use crate::text::ledger::on_one_line;
use crate::text::rules::normal;
use crate::tokens::TokenCounter;

/// What a stretch of conversation comes to. Entries of a list stand oldest first.
///
/// # Source
///
/// `decisions`, `constraints`, `open_questions`, `file_changes` and `context`: document 001, stage nine. The others come of
/// what was called and said, see [`super::local`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Structured {
    /// What the user asked for first.
    pub goal: String,
    /// Rules of the user, to the letter.
    pub constraints: Vec<String>,
    /// What was decided.
    pub decisions: Vec<String>,
    /// Files that were changed, one entry for each.
    pub file_changes: Vec<String>,
    /// Other calls that changed something, with how they ended.
    pub commands: Vec<String>,
    /// What is open.
    pub open_questions: Vec<String>,
    /// Error lines of results.
    pub errors: Vec<String>,
    /// What the user asked for.
    pub requests: Vec<String>,
    /// Exact names that were used most, most used first.
    pub names: Vec<String>,
    /// Background and progress.
    pub context: String,
}

/// Characters of an entry.
const MAX_ENTRY_CHARS: usize = 300;
/// Characters of the background: about 200 words.
const MAX_CONTEXT_CHARS: usize = 2_000;

/// A list of a [`Structured`]: its name in JSON, its heading, the entries it may have, and what an entry is worth when there
/// is no room for all of them.
struct List {
    name: &'static str,
    heading: &'static str,
    max_entries: usize,
    worth: u64,
    get: fn(&mut Structured) -> &mut Vec<String>,
}

const LISTS: [List; 8] = [
    List { name: "constraints", heading: "Rules of the user", max_entries: 24, worth: 16, get: |s| &mut s.constraints },
    List { name: "decisions", heading: "Decisions", max_entries: 24, worth: 4, get: |s| &mut s.decisions },
    List { name: "file_changes", heading: "Files changed", max_entries: 32, worth: 4, get: |s| &mut s.file_changes },
    List { name: "commands", heading: "Done", max_entries: 24, worth: 2, get: |s| &mut s.commands },
    List { name: "open_questions", heading: "Open", max_entries: 12, worth: 4, get: |s| &mut s.open_questions },
    List { name: "errors", heading: "Errors seen", max_entries: 12, worth: 2, get: |s| &mut s.errors },
    List { name: "requests", heading: "Asked by the user", max_entries: 12, worth: 2, get: |s| &mut s.requests },
    List { name: "names", heading: "Names", max_entries: 40, worth: 2, get: |s| &mut s.names },
];

impl Structured {
    /// Reads what a model wrote: JSON alone, in a fence or in prose, cut off at its end, with trailing commas, with a text or
    /// an object where a list belongs. `None` where no field can be told; then it is free text.
    pub fn parse(raw: &str) -> Option<Self> {
        let start = raw.find('{')?;
        let value = object(&raw[start..])?;
        Self::from_json(&value).filter(|read| *read != Self::default())
    }

    /// Returns the fields of a JSON object, unknown ones left out; `None` for anything else.
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

    /// Returns the fields as a JSON object, empty ones of document 001 included.
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

    /// Returns this summary and a newer one as one. What both say stands once, in the newer one's words; of a list with more
    /// entries than it may have the oldest go. The goal is the older one's, the newer one's a request.
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
            // From the newest on: what comes first stays.
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

    /// Returns this summary with at most `max_tokens` as text: the oldest entries of the lists that take most room go, rules
    /// last.
    #[must_use]
    pub fn within(mut self, max_tokens: u64, counter: TokenCounter) -> Self {
        let cost = |entry: &str| u64::from(counter.text(entry)) + 2;
        while u64::from(counter.text(&self.to_string())) > max_tokens {
            let mut over = u64::from(counter.text(&self.to_string())) - max_tokens;
            let mut sizes: Vec<u64> = Vec::with_capacity(LISTS.len());
            for list in &LISTS {
                sizes.push((list.get)(&mut self).iter().map(|entry| cost(entry)).sum());
            }
            let mut dropped = false;
            while over > 0 {
                let weighted = |at: &usize| sizes[*at] * 16 / LISTS[*at].worth;
                // Rules go when nothing else is left.
                let largest = (1..LISTS.len()).filter(|&at| sizes[at] > 0).max_by_key(weighted);
                let Some(at) = largest else { break };
                let list = (LISTS[at].get)(&mut self);
                let entry = if LISTS[at].name == "names" { list.pop() } else { Some(list.remove(0)) };
                let freed = entry.map_or(0, |entry| cost(&entry));
                sizes[at] = if list.is_empty() { 0 } else { sizes[at].saturating_sub(freed).max(1) };
                over = over.saturating_sub(freed);
                dropped = true;
            }
            if dropped {
                continue;
            }
            if !self.context.is_empty() {
                self.context = halved(&self.context);
            } else if !self.goal.is_empty() {
                self.goal = halved(&self.goal);
            } else if self.constraints.is_empty() {
                break;
            } else {
                self.constraints.remove(0);
            }
        }
        self
    }

    /// Returns what `text` does not say of what has to stay: rules that are not in it to the letter, and exact names.
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
    /// Writes the summary for a model: document 001's `format_summary_for_context`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut blocks: Vec<String> = Vec::new();
        if !self.goal.is_empty() {
            blocks.push(format!("Goal: {}", self.goal));
        }
        let mut copy = self.clone();
        for list in &LISTS {
            let entries = (list.get)(&mut copy);
            if list.name == "names" && !entries.is_empty() {
                blocks.push(format!("{}: {}", list.heading, entries.join(", ")));
            } else if !entries.is_empty() {
                blocks.push(format!("{}:\n- {}", list.heading, entries.join("\n- ")));
            }
        }
        if !self.context.is_empty() {
            blocks.push(format!("Context: {}", self.context));
        }
        f.write_str(&blocks.join("\n"))
    }
}

/// Returns the file that an entry is about, by which one entry replaces another.
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

/// Returns the JSON object that `raw` begins with, mended where its end is missing or commas are left over.
fn object(raw: &str) -> Option<Value> {
    let mut whole = String::with_capacity(raw.len() + 8);
    let mut open: Vec<char> = Vec::new();
    let (mut in_string, mut escaped) = (false, false);
    for c in raw.chars() {
        if in_string {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                // No JSON, but what models write.
                '\n' => {
                    whole.push_str("\\n");
                    continue;
                }
                _ => {}
            }
            whole.push(c);
            continue;
        }
        match c {
            '"' => in_string = true,
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' => {
                let end = whole.trim_end_matches(|c: char| c.is_whitespace() || c == ',').len();
                whole.truncate(end);
                if open.pop() != Some(c) {
                    return None;
                }
            }
            _ => {}
        }
        whole.push(c);
        if open.is_empty() {
            break;
        }
    }
    if !open.is_empty() {
        if escaped {
            whole.pop();
        }
        if in_string {
            whole.push('"');
        }
        let mut end = whole.trim_end_matches(|c: char| c.is_whitespace() || c == ',').len();
        // A name whose value is missing.
        if whole[..end].ends_with(':') {
            end = whole[..end - 1].trim_end().len();
            // Without its quotes it is no name, and nothing of this is JSON.
            end = whole[..end].strip_suffix('"').and_then(|name| name.rfind('"')).unwrap_or(0);
            end = whole[..end].trim_end_matches(|c: char| c.is_whitespace() || c == ',').len();
        }
        whole.truncate(end);
        whole.extend(open.iter().rev());
    }
    serde_json::from_str(&whole).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|&entry| entry.to_owned()).collect()
    }

    fn decisions(entries: &[&str]) -> Structured {
        Structured { decisions: list(entries), ..Structured::default() }
    }

    #[test]
    fn what_models_write_is_read() {
        let expected = Structured { context: "on it".to_owned(), ..decisions(&["use sqlite", "port 8080"]) };
        for raw in [
            r#"{"decisions": ["use sqlite", "port 8080"], "context": "on it"}"#,
            "Here it is:\n```json\n{\"decisions\": [\"use sqlite\", \"port 8080\",], \"context\": \"on it\",}\n```\nDone.",
            r#"{"Decisions": ["use sqlite", "port 8080"], "context": "on it", "mood": "good"}"#,
            r#"{"decisions": ["use sqlite", "port 8080"], "context": "on it", "constraints": null, "openQuestions": []}"#,
        ] {
            assert_eq!(Structured::parse(raw), Some(expected.clone()), "{raw}");
        }
    }

    #[test]
    fn json_that_was_cut_off_is_closed() {
        let whole = r#"{"decisions": ["use sqlite", "port 8080"], "context": "on it"}"#;
        for end in 0..whole.len() {
            if let Some(read) = Structured::parse(&whole[..end]) {
                assert!(read.decisions.is_empty() || "use sqlite".starts_with(&read.decisions[0]), "{end}: {read:?}");
            }
        }
        assert_eq!(Structured::parse(&whole[..31]), Some(decisions(&["use sqlite", "p"])));
        assert_eq!(Structured::parse(&whole[..53]), Some(decisions(&["use sqlite", "port 8080"])));
    }

    #[test]
    fn fields_of_another_form_are_taken_as_they_are_meant() {
        let read = Structured::parse(
            r#"{"decisions": "one", "file_changes": {"a.py": "new"}, "constraints": [{"rule": "no tabs"}], "context": ["x", 1.50]}"#,
        );
        let read = read.unwrap();
        assert_eq!((read.decisions, read.file_changes), (list(&["one"]), list(&["a.py: new"])));
        assert_eq!((read.constraints, read.context.as_str()), (list(&["rule: no tabs"]), "x\n1.50"));
    }

    #[test]
    fn what_is_no_such_json_is_free_text() {
        for raw in ["", "All went well.", "{}", "{\"mood\": 1}", "[1]", "{]", "a } b { c", "{ބ :", "{中:", "{:"] {
            assert_eq!(Structured::parse(raw), None, "{raw}");
        }
    }

    #[test]
    fn merging_keeps_both_and_the_newer_wins() {
        let older = Structured {
            file_changes: list(&["write_file src/a.py: added", "b.md: fixed"]),
            context: "old".to_owned(),
            goal: "build it".to_owned(),
            ..decisions(&["Use SQLite.", "ship on Friday"])
        };
        let newer = Structured {
            file_changes: list(&["src/a.py: removed again"]),
            context: "new".to_owned(),
            goal: "else".to_owned(),
            ..decisions(&["use sqlite", "no cache"])
        };
        let merged = older.clone().merged(newer.clone());
        assert_eq!(merged.decisions, list(&["ship on Friday", "use sqlite", "no cache"]));
        assert_eq!(merged.file_changes, list(&["b.md: fixed", "src/a.py: removed again"]));
        assert_eq!((merged.context.as_str(), merged.goal.as_str()), ("new", "build it"));
        assert_eq!(merged.requests, list(&["else"]));
        assert_eq!(merged.clone().merged(newer), merged, "merging again adds nothing");
    }

    #[test]
    fn a_summary_does_not_grow_by_merging() {
        let counter = TokenCounter::new(None);
        let mut all = Structured::default();
        for round in 0..200 {
            let newer = Structured {
                constraints: vec![format!("Never touch file {round}.")],
                names: vec![format!("src/file_{round}.py")],
                context: "word ".repeat(round),
                ..decisions(&[&format!("decision {round} {}", "x".repeat(round))])
            };
            all = all.merged(newer).within(400, counter);
            assert!(counter.text(&all.to_string()) <= 400);
            assert!(all.constraints.contains(&format!("Never touch file {round}.")), "rules go last, the oldest first");
        }
    }

    #[test]
    fn json_comes_back_as_it_went() {
        let summary = Structured {
            goal: "g".to_owned(),
            constraints: list(&["Never \"x\"."]),
            commands: list(&["exec make (exit code: 2)"]),
            names: list(&["a/b.py"]),
            context: "第一行\n第二行".to_owned(),
            ..decisions(&["d"])
        };
        assert_eq!(Structured::parse(&summary.to_json().to_string()), Some(summary));
    }

    #[test]
    fn what_a_text_does_not_say_is_named() {
        let all = Structured {
            constraints: list(&["Never push to main!", "Always test."]),
            names: list(&["src/a.py", "run_77"]),
            ..decisions(&["d"])
        };
        let missing = all.missing_in("The user said: never push, to main. They work on src/a.py.");
        assert_eq!(missing.constraints, list(&["Always test."]));
        assert_eq!(missing.names, list(&["run_77"]));
        assert_eq!(missing.to_string(), "Rules of the user:\n- Always test.\nNames: run_77");
    }
}
