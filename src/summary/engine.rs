//! Makes a summary: a state machine that asks for model calls and is given the answers.
//!
//! What is too long for the model is summarised in chunks, what the model refuses in halves, and summaries of parts are
//! merged in pairs. Only where that fails a text is cut, with a note that says so.

use crate::conversation::spoken;
use crate::message::{Message, Role};
use crate::select::within::within;
use crate::text::elision::Marks;
use crate::text::language::Language;
use crate::tokens::{TokenCounter, Tokens};

use super::transcript::{self, BYTES_PER_TOKEN, Limit, TranscriptItem};
use super::{Format, Policy, Prompt, Structured, cut, local};

/// The previous summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Previous {
    /// Its text.
    pub text: String,
    /// Its fields.
    pub data: Structured,
}

/// How a summary is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// The form that the model is asked for.
    pub format: Format,
    /// The caller's prompt; `None` for that of the documents in the conversation's language.
    pub prompt: Option<Prompt>,
    /// Most words of the summary; `None` for the documents' number.
    pub max_words: Option<u32>,
    /// The knobs.
    pub policy: Policy,
    /// Window of the model that is asked; `None` if unknown.
    pub window_tokens: Option<Tokens>,
    /// Most tokens of a tool result that the model is shown; longer ones are shortened by content. 0 is no limit.
    pub max_result_tokens: Tokens,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: Format::Text,
            prompt: None,
            max_words: None,
            policy: Policy::default(),
            window_tokens: None,
            max_result_tokens: MAX_RESULT_TOKENS,
        }
    }
}

/// Tokens of a result worth reading for a summary of a few hundred.
const MAX_RESULT_TOKENS: Tokens = Tokens(1_000);

/// Percentage of the window for the conversation. Source: trpc-agent-go, safe prefix.
const INPUT_PERCENT: u64 = 70;
/// Bytes of the smallest chunk.
const MIN_CHUNK_BYTES: usize = 2_048;

/// Tokens of the answer for each token of the target, and the least: models that think need room for it.
const ANSWER_FACTOR: u64 = 4;
const MIN_ANSWER_TOKENS: Tokens = Tokens(1_024);
/// Most length of a summary, as a multiple of its target.
const MAX_TEXT_FACTOR: u64 = 2;
/// Percentage of the target, and least tokens, for what the model dropped and is added back.
const ADDED_PERCENT: u64 = 40;
const MIN_ADDED_TOKENS: Tokens = Tokens(150);
/// Introduces what the model dropped, by [`Language`].
const ADDED: [&str; 4] = ["\n\n另有：\n", "\n\nその他：\n", "\n\n그 밖에:\n", "\n\nAlso said:\n"];
/// The error of a summary whose every part was cut by force.
const ALL_REFUSED: &str = "the model refused every call as too long: its text was cut by force";
/// Tokens of a text that is cut by force. Source: document 003, `force_truncated_summary`.
const MIN_FORCED_TOKENS: Tokens = Tokens(128);
/// Rounds of merging beyond the depth of halving. Source: document 003, `merge`.
const MERGE_ROUNDS: u32 = 8;

/// A call that the model is to be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCall {
    /// Roles and texts.
    pub messages: Vec<(&'static str, String)>,
    /// The longest answer.
    pub max_tokens: Tokens,
    /// The temperature.
    pub temperature: f64,
    /// How often its subject was split.
    pub depth: u32,
}

/// A finished summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryDraft {
    /// The summary.
    pub text: String,
    /// Its fields, which later summaries are merged with.
    pub data: Structured,
    /// Whether a model wrote it; otherwise rules did.
    pub by_model: bool,
    /// Why no model wrote it, if one was asked.
    pub error: Option<String>,
    /// The name of the prompt.
    pub prompt: String,
    /// Whether a part was cut by force.
    pub truncated: bool,
    /// Number of parts that were summarised.
    pub chunks: u32,
    /// How often they were split.
    pub max_depth: u32,
    /// Number of model calls.
    pub calls: u32,
    /// Tokens of what was summarised.
    pub input_tokens: Tokens,
    /// Tokens of the summary.
    pub output_tokens: Tokens,
}

/// The summary of a part.
#[derive(Debug, Clone)]
struct PartSummary {
    text: String,
    truncated: bool,
    chunks: u32,
    max_depth: u32,
}

/// A summary to ask the model for.
#[derive(Debug)]
struct Ask {
    items: Vec<TranscriptItem>,
    depth: u32,
    /// Facts about the parts that it merges, if it does.
    merges: Option<PartSummary>,
}

#[derive(Debug)]
enum Task {
    Ask(Ask),
    /// Join the newest `count` parts.
    Merge {
        count: usize,
        depth: u32,
    },
    /// A part that is carried over to the next round.
    Keep(PartSummary),
}

/// The making of one summary.
#[derive(Debug)]
pub struct Run {
    options: Options,
    prompt: Prompt,
    counter: TokenCounter,
    previous: Previous,
    /// Tasks to do, the next one last.
    tasks: Vec<Task>,
    /// The summaries of parts, in order.
    parts: Vec<PartSummary>,
    /// Whether the next call has the previous summary: it goes with the first one that is answered.
    tells_previous: bool,
    calls: u32,
    /// Calls that the model answered.
    answers: u32,
    error: Option<String>,
}

impl Run {
    /// Starts with the messages behind `previous`. O(bytes); counts tokens of `previous` alone.
    ///
    /// A `previous` that is longer than any summary of this policy is the caller's, and is cut: every call has it.
    pub fn new(view: &[Message<'_>], previous: Option<Previous>, options: Options, counter: TokenCounter) -> Self {
        let previous = previous.unwrap_or_default();
        let standard = || Prompt::standard(options.format, language(view, &previous.text), options.max_words);
        let prompt = options.prompt.clone().unwrap_or_else(standard);
        let limit = Limit { tokens: options.max_result_tokens, counter };
        let items = transcript::items(view, limit);
        let mut run = Self {
            options,
            prompt,
            counter,
            previous,
            tasks: Vec::new(),
            parts: Vec::new(),
            tells_previous: false,
            calls: 0,
            answers: 0,
            error: None,
        };
        let policy = &run.options.policy;
        let longest = policy.target_tokens.max(MIN_FORCED_TOKENS) * MAX_TEXT_FACTOR + added_tokens(policy);
        run.previous.text = run.within(&run.previous.text, longest).0;
        run.tells_previous = !run.previous.text.is_empty();
        let room = run.room_bytes(run.options.window_tokens);
        if items.iter().any(|item| !item.text.is_empty()) {
            run.schedule(items, 0, room);
        }
        run
    }

    /// Returns the call that the machine waits for; `None` when nothing is left to ask.
    pub fn next_call(&mut self) -> Option<ModelCall> {
        loop {
            match self.tasks.pop()? {
                Task::Keep(part) => self.parts.push(part),
                Task::Merge { count, depth } => self.merge(count, depth),
                Task::Ask(ask) => {
                    let call = self.call(&ask);
                    self.tasks.push(Task::Ask(ask));
                    return Some(call);
                }
            }
        }
    }

    /// Takes the model's answer to [`Run::next_call`]. An empty answer is a failure.
    pub fn answered(&mut self, text: &str) {
        // Some providers refuse requests with NUL, and this text is in every later one.
        let text = text.replace('\0', "\u{fffd}");
        let text = without_thoughts(&text).trim();
        if text.is_empty() {
            self.failed("the model's answer is empty");
            return;
        }
        let Some(Task::Ask(Ask { depth, merges, .. })) = self.tasks.pop() else { return };
        self.calls += 1;
        self.answers += 1;
        self.tells_previous = false;
        let mut part =
            merges.unwrap_or(PartSummary { text: String::new(), truncated: false, chunks: 1, max_depth: depth });
        let max_tokens = self.target(depth) * MAX_TEXT_FACTOR;
        text.clone_into(&mut part.text);
        // Fields bound themselves; an answer without any is a text, whatever was asked for.
        if self.options.format == Format::Text || Structured::parse(text).is_none() {
            self.cut(&mut part, max_tokens);
        }
        self.parts.push(part);
    }

    /// Takes a refusal of the call as too long, with the limit that it names.
    pub fn refused(&mut self, limit_tokens: Option<Tokens>) {
        let policy = &self.options.policy;
        if !policy.bisect_enabled {
            self.failed("the conversation is too long for the model, and halving it is switched off");
            return;
        }
        let Some(Task::Ask(Ask { mut items, depth, merges })) = self.tasks.pop() else { return };
        self.calls += 1;
        let min = usize::try_from(policy.bisect_min_messages).unwrap_or(usize::MAX);
        if merges.is_none() && depth < policy.bisect_max_depth {
            let room = limit_tokens.map_or(0, |limit| self.room_bytes(Some(limit)));
            if room > 0 && room < transcript::bytes(&items, self.limit()) {
                self.schedule(items, depth, room);
                return;
            }
            let middle = cut::middle(items.len(), min, |at| items[at].stays_behind);
            if let Some(middle) = middle.filter(|_| items.len() > min) {
                let right = items.split_off(middle);
                self.part_tasks(vec![items, right], depth + 1);
                return;
            }
        }
        let part = self.forced(&items, depth, merges);
        self.tells_previous = false;
        self.parts.push(part);
    }

    /// Makes the summary by rules alone.
    pub fn by_rules(&mut self) {
        self.tasks.clear();
        self.parts.clear();
    }

    /// Takes a failure of the model: the summary is made by rules, with the answers so far as background.
    pub fn failed(&mut self, error: &str) {
        self.error = Some(error.to_owned());
        self.tasks.clear();
    }

    /// Returns the summary of `view`, the messages of the run, once [`Run::next_call`] returns `None`.
    ///
    /// Rules of the user and exact names that the model dropped are added back.
    pub fn finish(mut self, view: &[Message<'_>]) -> SummaryDraft {
        let told = self.previous.data.clone().merged(local(view));
        let part = self.parts.last().filter(|_| self.error.is_none());
        let (data, text) =
            part.map_or_else(|| self.by_rules_only(told.clone()), |part| self.written(part, told.clone()));
        let text = if text.is_empty() { format!("[{} messages without text]", view.len()) } else { text };
        let truncated = part.is_some_and(|part| part.truncated);
        let (chunks, max_depth) = part.map_or((1, 0), |part| (part.chunks, part.max_depth));
        let by_model = part.is_some() && self.answers > 0;
        if part.is_some() && !by_model {
            self.error = Some(ALL_REFUSED.to_owned());
        }
        SummaryDraft {
            output_tokens: self.counter.text(&text),
            text,
            data,
            by_model,
            truncated,
            chunks,
            max_depth,
            calls: self.calls,
            input_tokens: view.iter().map(|message| self.counter.message(message)).sum(),
            error: self.error,
            prompt: self.prompt.name,
        }
    }

    /// Returns fields and text of a summary that a model wrote.
    fn written(&self, part: &PartSummary, told: Structured) -> (Structured, String) {
        let target = self.options.policy.target_tokens;
        let max_tokens = target * MAX_TEXT_FACTOR;
        if self.options.format == Format::Structured
            && let Some(read) = Structured::parse(&part.text)
        {
            let data = with_model(&self.previous.data, told, read).within(max_tokens, self.counter);
            let text = data.to_string();
            return (data, text);
        }
        let data = told.within(max_tokens, self.counter);
        let missing = data.missing_in(&part.text).within(added_tokens(&self.options.policy), self.counter);
        let added = if missing == Structured::default() {
            String::new()
        } else {
            let language = Language::of([&part.text]).unwrap_or_else(|| missing.language());
            format!("{}{}", ADDED[language as usize], missing.written_in(language))
        };
        (data, format!("{}{added}", part.text))
    }

    /// Returns fields and text of a summary by rules, with what a model wrote before, which rules cannot find.
    fn by_rules_only(&self, mut told: Structured) -> (Structured, String) {
        let target = self.options.policy.target_tokens.max(MIN_FORCED_TOKENS);
        let previous = &self.previous;
        // Rules and names that were added are in its fields.
        let end = ADDED.iter().find_map(|added| previous.text.find(added)).unwrap_or(previous.text.len());
        let written = Some(&previous.text[..end]).filter(|_| previous.text != previous.data.to_string());
        let parts = self.parts.iter().map(|part| part.text.as_str());
        let texts: Vec<&str> = written.into_iter().chain(parts).filter(|text| !text.is_empty()).collect();
        if !texts.is_empty() {
            told.context = self.within(&texts.join("\n"), target / 2).0;
        }
        let data = told.within(target, self.counter);
        let text = data.to_string();
        (data, text)
    }

    /// Plans the summary of `items`; in chunks if they exceed the room.
    fn schedule(&mut self, items: Vec<TranscriptItem>, depth: u32, room_bytes: usize) {
        if room_bytes == 0 || transcript::bytes(&items, self.limit()) <= room_bytes {
            self.tasks.push(Task::Ask(Ask { items, depth, merges: None }));
        } else {
            self.part_tasks(transcript::chunks(items, room_bytes, self.limit()), depth + 1);
        }
    }

    fn part_tasks(&mut self, chunks: Vec<Vec<TranscriptItem>>, depth: u32) {
        self.tasks.push(Task::Merge { count: chunks.len(), depth });
        let tasks = chunks.into_iter().rev().map(|items| Task::Ask(Ask { items, depth, merges: None }));
        self.tasks.extend(tasks);
    }

    fn call(&self, ask: &Ask) -> ModelCall {
        let previous = self.untold().filter(|_| ask.merges.is_none());
        ModelCall {
            messages: self.prompt.messages(&transcript::joined(&ask.items, self.limit()), previous),
            max_tokens: (self.target(ask.depth) * ANSWER_FACTOR).max(MIN_ANSWER_TOKENS),
            temperature: self.options.policy.temperature,
            depth: ask.depth,
        }
    }

    /// Returns the previous summary until an answer has it.
    fn untold(&self) -> Option<&str> {
        self.tells_previous.then_some(self.previous.text.as_str())
    }

    /// Merges the newest `count` parts: in pairs by the model, or JSON without it.
    fn merge(&mut self, count: usize, depth: u32) {
        let mut parts = self.parts.split_off(self.parts.len().saturating_sub(count));
        if parts.len() <= 1 {
            self.parts.append(&mut parts);
            return;
        }
        let together = |parts: &[PartSummary], text: String| PartSummary {
            text,
            truncated: parts.iter().any(|part| part.truncated),
            chunks: parts.iter().map(|part| part.chunks).sum(),
            max_depth: parts.iter().map(|part| part.max_depth).max().unwrap_or_default(),
        };
        let read = |part: &PartSummary| Structured::parse(&part.text);
        if self.options.format == Format::Structured
            && let Some(read) = parts.iter().map(read).collect::<Option<Vec<_>>>()
        {
            let merged = read.into_iter().reduce(Structured::merged).unwrap_or_default();
            self.parts.push(together(&parts, merged.to_json().to_string()));
            return;
        }
        if depth > self.options.policy.bisect_max_depth.saturating_add(MERGE_ROUNDS) {
            let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
            let mut part = together(&parts, texts.join("\n"));
            let max_tokens = self.options.policy.merge_target_tokens.max(MIN_FORCED_TOKENS);
            self.cut(&mut part, max_tokens);
            part.truncated = true;
            self.parts.push(part);
            return;
        }
        self.tasks.push(Task::Merge { count: parts.len().div_ceil(2), depth: depth + 1 });
        for pair in parts.chunks(2).rev() {
            if let [one] = pair {
                self.tasks.push(Task::Keep(one.clone()));
                continue;
            }
            let told = ["earlier", "later"].iter().zip(pair);
            let item = |(which, part): (&&str, &PartSummary)| {
                TranscriptItem::new(format!("Summary of the {which} part:\n{}\n", part.text))
            };
            let merges = Some(together(pair, String::new()));
            self.tasks.push(Task::Ask(Ask { items: told.map(item).collect(), depth, merges }));
        }
    }

    /// Returns a part that was cut by force.
    fn forced(&self, items: &[TranscriptItem], depth: u32, merges: Option<PartSummary>) -> PartSummary {
        let mut part =
            merges.unwrap_or(PartSummary { text: String::new(), truncated: true, chunks: 1, max_depth: depth });
        part.text = transcript::joined(items, self.limit());
        self.cut(&mut part, self.target(depth).max(MIN_FORCED_TOKENS));
        let previous = self.untold().map_or_else(String::new, |text| format!("{text}\n\n"));
        part.text = format!("{previous}[Cut by force, parted {depth} times: too long for the model.]\n{}", part.text);
        part.truncated = true;
        part
    }

    fn cut(&self, part: &mut PartSummary, max_tokens: Tokens) {
        let (text, is_cut) = self.within(&part.text, max_tokens);
        part.text = text;
        part.truncated |= is_cut;
    }

    /// Returns a text cut to at most `max_tokens`, and whether it was.
    fn within(&self, text: &str, max_tokens: Tokens) -> (String, bool) {
        if self.counter.text(text) <= max_tokens {
            return (text.to_owned(), false);
        }
        (within(text, max_tokens, self.counter, Marks::default()).map_or_else(String::new, |(text, _)| text), true)
    }

    fn limit(&self) -> Limit {
        Limit { tokens: self.options.max_result_tokens, counter: self.counter }
    }

    fn target(&self, depth: u32) -> Tokens {
        let policy = &self.options.policy;
        if depth == 0 { policy.target_tokens } else { policy.merge_target_tokens }
    }

    /// Returns the bytes of conversation for one call; 0 is no limit.
    fn room_bytes(&self, window_tokens: Option<Tokens>) -> usize {
        let Some(window) = window_tokens.filter(|&window| window > Tokens::ZERO) else { return 0 };
        let answer = self.options.policy.target_tokens * ANSWER_FACTOR;
        let answer = answer.max(MIN_ANSWER_TOKENS).min(window / 4);
        let room = window.percent(INPUT_PERCENT) - answer;
        let room = usize::try_from(room.0).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN);
        room.saturating_sub(self.prompt.bytes() + self.previous.text.len()).max(MIN_CHUNK_BYTES)
    }
}

/// Returns the most tokens of what the model dropped and is added back.
fn added_tokens(policy: &Policy) -> Tokens {
    policy.target_tokens.percent(ADDED_PERCENT).max(MIN_ADDED_TOKENS)
}

/// Returns the language of a summary: the user's, whatever tools and pasted texts use.
///
/// If the user says nothing, that of the previous summary, or else the assistant's.
fn language(view: &[Message<'_>], previous: &str) -> Language {
    let before = || Language::of([previous]);
    spoken(view, Role::User).or_else(before).or_else(|| spoken(view, Role::Assistant)).unwrap_or_default()
}

/// Returns the fields of a summary by a model: rules, files, calls and errors found by rules, the rest in its words.
fn with_model(previous: &Structured, mut told: Structured, read: Structured) -> Structured {
    told.decisions.clone_from(&previous.decisions);
    told.open_questions = Vec::new();
    told.requests = Vec::new();
    told.merged(read)
}

/// Returns an answer without the reasoning that some servers leave in it.
fn without_thoughts(text: &str) -> &str {
    let start = text.trim_start();
    match start.strip_prefix("<think>") {
        Some(thoughts) => thoughts.split_once("</think>").map_or("", |(_, answer)| answer),
        None => text,
    }
}
