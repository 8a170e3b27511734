//! Decides when a conversation is cut: in rare large steps that follow from its messages alone.
//!
//! A request is the output of the last *step* followed by the newer messages unchanged. Each call walks the conversation
//! from its start, over every request that must have been made: one before each message of the assistant. A request over the
//! budget makes a step: everything before it is planned anew, to a target so low that the next step is far. So the same
//! messages give the same bytes in every call of every process, and a provider's cached prefix lasts until the next step.
//!
//! The walk adds up tokens and plans nothing: a step counts as the most it may leave. So only the last steps are made, and how
//! well a fit fills its target moves no step.

use std::collections::HashMap;
use std::rc::Rc;

use crate::budget::Request;
use crate::conversation::{Group, groups, is_note};
use crate::message::{Message, Role, Text, ToolCall};
use crate::tokens::{REPLY, Tokens};
use crate::tools::{instructs, refers_back};

use super::archive_paths::ArchivePaths;
use super::draft::{Draft, Entry, Origin};
use super::finish;
use super::limits::{self, longer_than};
use super::notes::LeftOut;
use super::pins::Pins;
use super::plan::{Output, Plan, Receipt};
use super::recall::Quotes;
use super::{draft, fit, results};

/// The price of a cached token relative to another. Source: price lists of OpenAI, Anthropic and DeepSeek, November 2026.
const CACHED: f32 = 0.1;

/// The cost of a step, spread over the requests until the next one, relative to their own.
///
/// Higher keeps more and changes the prefix more often. On the ten longest recorded trajectories (a request for each step,
/// window of half a trajectory) 0.2, 0.25 and 0.3 reuse 0.962, 0.962 and 0.958 of the prefix, at 0.62, 0.64 and 0.65 of the
/// cost of the whole prompts; 0.937, 0.936 and 0.942 of what the next step uses stays.
const WORTH: f32 = 0.25;

/// Minimum and maximum share of the cuttable tokens that a step keeps. Cuttable: the budget less system messages, tool
/// schemas and the last message of the user.
const LOW: (f32, f32) = (0.45, 0.8);

/// Share of the cuttable tokens for older messages where the newest group alone would take all; and of so many tokens at most, a
/// larger share: a small window holds little of each result. With 0.13 of all windows 21, 12 and 8 % of 299 odd lines are lost while
/// windows of 8,000, 16,000 and 32,000 tokens fill twice, with both 6, 5 and 5 %; of ten recorded trajectories .671, .788 and .877 of
/// what is used next stays, with both .679, .819 and .875, at 7, 7 and 5 % more cost.
const BESIDE_NEWEST: f64 = 0.13;
const BESIDE_NEWEST_OF_LITTLE: (f64, Tokens) = (0.4, Tokens(6_000));

/// A longer message of the user may be material, not words.
const SHORT_TOKENS: Tokens = Tokens(400);

/// Maximum share of the cuttable tokens for pinned messages, taken before anything is weighed.
const PINNED: f64 = 0.5;

/// The same for instructions that were read, which a fit takes whole, and their most tokens: in a large window they have room in any
/// case.
///
/// Of requests in windows of 9,000 to 16,000 tokens behind a skill of 140 to 630 tokens and logs, 2,840 of 3,456 have all of it without
/// this, 2,975 with it. Without the limit the recorded trajectories reuse .952 of the prefix in place of .961, with 1,000 .960.
const INSTRUCTIONS: (f64, Tokens) = (0.3, Tokens(600));

/// What a step keeps for the user's own messages, as a share of these, for marks and the rest of the talk stand beside them;
/// and the share of the cuttable tokens beyond which they are too many for that: they are chosen by worth then, and a step
/// that left so little free would be followed by the next one at once.
const SAID: (f64, f64) = (1.2, 0.9);

/// Least share of the cuttable tokens that a step keeps where there are so many of them.
///
/// With [`LOW`] alone .427 of the evidence of meetings stays at a quarter of the tokens, and with .6, .7 and .8 .448, .471 and
/// .488. Where a window holds eight turns of long answers, the requests of 90 turns cost 4, 7 and 14 % more, and .93, .97, .98
/// and .99 of the user's facts are in them.
const MANY_SAID: f64 = 0.7;

/// Share of what a step would leave free for the lines of calls with effects, which should be listed.
///
/// Where each second call is an edit, 0.9, 0.5 and 0.3 change the prefix in 337, 93 and 64 of 801 requests at a window of 8,000, 102,
/// 38 and 31 at 32,000; the recorded trajectories reuse .961 with each.
const EFFECTS: f64 = 0.5;

/// Share of what a step keeps beside the newest group that such lines have in any case. With 0 the recorded trajectories
/// reuse 0.948 of the prefix in place of 0.961, for steps come sooner.
const LINES: f64 = 0.3;

/// Bytes of a call for each token of its line, and most tokens of a line.
const LINE_BYTES: usize = 2;
const MAX_LINE_TOKENS: usize = 48;

/// Fractions of the window to which the size of system messages and tool schemas is rounded: a clock in the system prompt
/// must not move a step.
const FIXED_STEPS: u64 = 128;

/// The messages repaired, as they arrive. None depends on a later one, except calls on their results.
pub struct Arrived {
    /// The plan without any step.
    pub plan: Plan,
    /// By index in the view: tokens of the message with backfilled results; 0 where it is left out.
    pub tokens: Vec<Tokens>,
}

impl Arrived {
    /// Counts every text of the view.
    pub fn of(view: &[Message<'_>], request: &Request<'_>) -> Self {
        let draft = draft(view, request);
        let mut tokens = vec![Tokens::ZERO; view.len()];
        let mut at = 0;
        for entry in draft.entries.iter().filter(|entry| entry.dropped.is_none()) {
            if let Origin::View(index) = entry.origin {
                at = index;
            }
            tokens[at] += entry.tokens();
        }
        Self { plan: finish::plan(draft, &LeftOut::default(), &ArchivePaths::of(None)), tokens }
    }
}

/// A step that is decided but not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionStep {
    /// It covers the messages before this index.
    pub at: usize,
    /// Most tokens of these after it, without system messages.
    pub room: Tokens,
    /// Most tokens of a request of these alone, with system messages and tool schemas.
    pub max_tokens: Tokens,
    /// Whether what must stay fits; if not, [`CompactionStep::make`] returns the error.
    pub fits: bool,
}

/// The output of a step, valid until another step is made.
#[derive(Debug)]
pub struct Made {
    /// Their outputs and cuts.
    pub plan: Plan,
    /// Tokens of the outputs, without system messages.
    pub tokens: Tokens,
    /// What is quoted of the messages before it for the words of later ones.
    pub quotes: Quotes,
}

impl CompactionStep {
    /// Plans the messages before the step.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Overflow`] as [`super::compress`].
    pub fn make(&self, view: &[Message<'_>], request: &Request<'_>) -> crate::Result<Made> {
        let limits = &request.limits;
        let view = &view[..self.at];
        let archive_paths = ArchivePaths::of(request.archive.as_ref());
        let last_user = crate::conversation::last_user_index(view).unwrap_or(view.len());
        let with_results_cut = |from: usize| {
            let mut draft = draft(view, request);
            draft.is_for_later = true;
            draft.pin(&limits.pinned);
            limits::reasoning(&mut draft, last_user, limits.reasoning_keep_chars);
            limits::large_results(&mut draft, &archive_paths, request.one_result_tokens(), from);
            draft
        };
        // The fit knows better what of earlier ones stays than a cut of each by itself, but needs none where that is enough.
        let mut draft = with_results_cut(0);
        if draft.tokens() > self.max_tokens {
            let newest = groups(draft.entries.iter().map(|entry| entry.role)).last().map_or(0, |group| group.start);
            draft = with_results_cut(newest);
        }
        let left_out = fit::fit(&mut draft, &archive_paths, self.max_tokens, request)?;
        // Behind the fit, which knows what of a text is asked for, or odd, and mostly leaves less than these.
        limits::large_results(&mut draft, &archive_paths, request.one_result_tokens(), 0);
        let max_chars = (limits.max_user_message_chars, limits.max_assistant_message_chars);
        limits::long_messages(&mut draft, last_user, max_chars);
        if results::result_tokens(&draft) > request.all_results_tokens() {
            results::shrink_results(&mut draft, &archive_paths, request.all_results_tokens());
        }
        let system = system_tokens(&draft);
        let overhead = draft.overhead_tokens;
        let plan = finish::plan(draft, &left_out, &archive_paths);
        let tokens = plan.receipt.tokens_after.unwrap_or_default() - overhead - system;
        Ok(Made { plan, tokens, quotes: Quotes::default() })
    }

    /// Returns the plan of the whole request: the output of the step and the newer messages as they arrived.
    pub fn join(&self, made: &Made, arrived: Arrived, view: &[Message<'_>], request: &Request<'_>) -> Plan {
        let Arrived { plan: newer, tokens } = arrived;
        let is_system = |index: &usize| view[*index].role == Role::System;
        let system: Tokens = (0..self.at).filter(is_system).map(|index| tokens[index]).sum();
        let after = request.tools_tokens() + REPLY + system + made.tokens + tokens[self.at..].iter().sum::<Tokens>();
        let Plan { mut outputs, receipt: Receipt { mut cuts, .. }, mut archived } = made.plan.clone();
        // A new result stands behind its call's message.
        let is_older = |output: &Output| output.index().is_none_or(|index| index < self.at);
        outputs.extend(newer.outputs.into_iter().skip_while(is_older));
        cuts.extend(newer.receipt.cuts.into_iter().filter(|cut| cut.index >= self.at));
        archived.extend(newer.archived.into_iter().filter(|archived| archived.index >= self.at));
        Plan { outputs, receipt: Receipt { tokens_after: Some(after), cuts, ..newer.receipt }, archived }
    }
}

/// Walks the requests of a conversation as sums of tokens.
#[derive(Clone)]
pub struct Walk<'w, 'a> {
    view: &'w [Message<'a>],
    arrived: &'w Arrived,
    request: &'w Request<'w>,
    budget: Tokens,
    overhead: Tokens,
    groups: Rc<[Group]>,
    /// Number of groups in the request.
    groups_in: usize,
    /// The request holds the messages before this index.
    at: usize,
    /// Requests so far.
    requests: f32,
    last_user: Option<usize>,
    /// Upper bound of the request's tokens, without overhead and system messages.
    used: Tokens,
    system: Tokens,
    /// Tokens of all messages so far as they arrived, without system messages.
    arrived_tokens: Tokens,
    /// Tokens of reasoning before the last message of the user, which a step removes.
    old_reasoning: Tokens,
    /// Index up to which reasoning was added up.
    reasoned: usize,
    /// Estimated tokens of the lines for calls with effects, if all are left out.
    effects_tokens: Tokens,
    /// Tokens of short messages of the user.
    said_tokens: Tokens,
    /// By the id and the arguments of the calls that read instructions: tokens of the newest result.
    instructing: HashMap<&'w str, &'w str>,
    instructions: HashMap<&'w str, Tokens>,
    pins: Pins<'w, 'w>,
}

impl<'w, 'a> Walk<'w, 'a> {
    /// Starts before the first request.
    pub fn new(view: &'w [Message<'a>], arrived: &'w Arrived, request: &'w Request<'w>) -> Self {
        Self {
            view,
            arrived,
            request,
            budget: request.budget_tokens(),
            overhead: request.tools_tokens() + REPLY,
            groups: groups(view.iter().map(|message| message.role)).into(),
            groups_in: 0,
            at: 0,
            requests: 0.0,
            last_user: None,
            used: Tokens::ZERO,
            system: Tokens::ZERO,
            arrived_tokens: Tokens::ZERO,
            old_reasoning: Tokens::ZERO,
            reasoned: 0,
            effects_tokens: Tokens::ZERO,
            said_tokens: Tokens::ZERO,
            instructing: HashMap::new(),
            instructions: HashMap::new(),
            pins: Pins::new(&request.limits.pinned),
        }
    }

    /// Returns whether the conversation fits as it arrived.
    pub fn fits(&self) -> bool {
        self.overhead + self.arrived.tokens.iter().sum::<Tokens>() <= self.budget
    }

    /// Advances to the next step, or to the request of the messages before `early`, which is a step in any case; `None` where no
    /// request is one up to the last.
    ///
    /// O(messages between the two).
    pub fn next_step(&mut self, early: Option<usize>) -> Option<CompactionStep> {
        // The request of no messages is one, too.
        while self.requests == 0.0 || self.at < self.view.len() {
            let later = self.view.iter().enumerate().skip(self.at + 1);
            let assistant = later.filter(|(_, message)| message.role == Role::Assistant).map(|(index, _)| index);
            let at = assistant.chain([self.view.len()]).next()?;
            self.go_to(at);
            if early == Some(at) || self.fixed() + self.used > self.budget {
                let step = self.step();
                if step.is_some() {
                    return step;
                }
            }
        }
        None
    }

    /// Advances to the request that holds the messages before `at`.
    fn go_to(&mut self, at: usize) {
        for index in self.at..at {
            let (message, tokens) = (&self.view[index], self.arrived.tokens[index]);
            self.pins.see(index, message);
            if message.role == Role::System {
                self.system += tokens;
                continue;
            }
            self.used += tokens;
            self.arrived_tokens += tokens;
            self.effects_tokens += message.tool_calls.iter().map(line_tokens).sum::<Tokens>();
            self.see_instructions(message, tokens);
            if message.role == Role::User && !is_note(message) {
                self.last_user = Some(index);
                if tokens <= SHORT_TOKENS {
                    self.said_tokens += tokens;
                }
            }
        }
        self.at = at;
        self.requests += 1.0;
        self.groups_in += self.groups[self.groups_in..].iter().take_while(|group| group.end <= at).count();
    }

    /// Takes note of calls that read instructions, and of the tokens of their results.
    fn see_instructions(&mut self, message: &'w Message<'a>, tokens: Tokens) {
        for call in &message.tool_calls {
            let text = |text: &'w Option<Text<'a>>| text.as_ref().map_or("", Text::as_str);
            let (name, arguments) = (text(&call.name), text(&call.arguments));
            if let Some(id) = call.id.as_ref().filter(|_| instructs(name, arguments)) {
                self.instructing.insert(id.as_str(), arguments);
            }
        }
        if let Some(id) = message.tool_call_id.as_ref()
            && let Some(arguments) = self.instructing.remove(id.as_str())
            && !message.texts().next().is_some_and(refers_back)
        {
            self.instructions.insert(arguments, tokens);
        }
    }

    /// Returns the tokens of overhead and system messages, rounded up to [`FIXED_STEPS`].
    fn fixed(&self) -> Tokens {
        let step = (self.request.window_tokens / FIXED_STEPS).max(Tokens(1));
        step * (self.overhead + self.system).0.div_ceil(step.0)
    }

    /// Decides the step at the current request, and assumes that it keeps as much as it may.
    ///
    /// `None` where what must stay is over the budget, unless this is the last request: an earlier one was never sent.
    fn step(&mut self) -> Option<CompactionStep> {
        let (at, fixed) = (self.at, self.overhead + self.system);
        let last_user = self.last_user.map_or(Tokens::ZERO, |index| self.arrived.tokens[index]);
        if fixed + last_user > self.budget {
            return (at == self.view.len()).then_some(CompactionStep {
                at,
                room: Tokens::ZERO,
                max_tokens: self.budget,
                fits: false,
            });
        }
        // Rounded up if that fits.
        let fixed = Some(self.fixed()).filter(|&rounded| rounded + last_user <= self.budget).unwrap_or(fixed);
        let free = self.budget - fixed - last_user;
        let pinned = self.pinned_tokens().min(free.share(PINNED));
        let (share, most) = INSTRUCTIONS;
        let instructions = self.instructions.values().copied().sum::<Tokens>().min(free.share(share)).min(most);
        // What is pinned may be the same.
        let pinned = pinned.max(instructions);
        let low = pinned + (free - pinned).share(self.low(free - pinned));
        let newest = pinned + self.newest_tokens();
        let (of_little, most) = BESIDE_NEWEST_OF_LITTLE;
        let beside = free.share(BESIDE_NEWEST).max(free.share(of_little).min(most));
        let said = Some(self.said_tokens.share(SAID.0)).filter(|&said| said <= free.share(SAID.1));
        let said = said.unwrap_or(free.share(MANY_SAID));
        let left = low.max(newest + beside).max(said);
        let lines = self.effects_tokens - (left - newest).share(LINES);
        let effects = lines.min((free - left).share(EFFECTS));
        let room = (last_user + left + effects).min(self.budget - fixed);
        self.go_on_from(room);
        Some(CompactionStep { at, room, max_tokens: self.overhead + self.system + room, fits: true })
    }

    /// Returns the share of the `free` tokens that a step keeps.
    ///
    /// What it keeps is read once at the full price; the more it keeps and the more each request adds, the sooner the next
    /// step comes.
    fn low(&self, free: Tokens) -> f64 {
        let growth = (self.arrived_tokens.as_f32() / self.requests).max(1.0);
        // If every request makes a step anyway, cutting more gains nothing.
        if growth > free.as_f32() * (1.0 - LOW.0) {
            return LOW.1.into();
        }
        let of_request = CACHED * (self.fixed().as_f32() + 0.75 * free.as_f32()) + (1.0 - CACHED) * growth;
        let steps = WORTH * of_request / ((1.0 - CACHED) * growth);
        (steps / (1.0 + steps)).clamp(LOW.0, LOW.1).into()
    }

    fn go_on_from(&mut self, room: Tokens) {
        let before_last_user = self.last_user.unwrap_or(self.at);
        let keep_chars = self.request.limits.reasoning_keep_chars;
        for message in &self.view[self.reasoned.min(before_last_user)..before_last_user] {
            let reasoning = message.reasoning().filter(|_| message.role == Role::Assistant);
            for (_, text) in reasoning.filter(|(_, text)| longer_than(text.as_str(), keep_chars)) {
                self.old_reasoning += self.request.counter().known(text, None);
            }
        }
        self.reasoned = self.reasoned.max(before_last_user);
        self.used = room.min(self.arrived_tokens - self.old_reasoning);
    }

    /// Returns the tokens of pinned messages other than the last message of the user.
    fn pinned_tokens(&self) -> Tokens {
        let others = self.pins.indices().filter(|&index| Some(index) != self.last_user);
        others.map(|index| self.arrived.tokens[index]).sum()
    }

    /// Returns the tokens that a step keeps of the newest group, if that is in the last round.
    fn newest_tokens(&self) -> Tokens {
        let newest = self.groups[..self.groups_in].iter().rfind(|group| group.role != Role::System);
        let of_last_round = newest.filter(|group| self.last_user.is_none_or(|last_user| group.start > last_user));
        of_last_round.map_or(Tokens::ZERO, |group| {
            let tokens = |index: usize| match self.view[index].role {
                Role::Tool => self.arrived.tokens[index].min(self.request.one_result_tokens()),
                _ => self.arrived.tokens[index],
            };
            (group.start..group.end).map(tokens).sum()
        })
    }
}

/// Returns an estimate of the line for a call with effects; 0 for other calls.
fn line_tokens(call: &ToolCall<'_>) -> Tokens {
    let name = call.name.as_ref().map(Text::as_str).filter(|_| call.effect().is_changing());
    let Some(name) = name else { return Tokens::ZERO };
    let bytes = name.len() + call.arguments.as_ref().map_or(0, |arguments| arguments.as_str().len());
    Tokens((bytes / LINE_BYTES).min(MAX_LINE_TOKENS) as u64)
}

fn system_tokens(draft: &Draft<'_, '_>) -> Tokens {
    draft.entries.iter().filter(|entry| entry.role == Role::System).map(Entry::tokens).sum()
}
