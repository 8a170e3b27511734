//! When a conversation is cut: in rare large steps that its messages alone decide.
//!
//! A request is what the last *step* made of the messages before it, followed by the newer ones as they came. Each call
//! walks the conversation from its start, over every request that must have been made on the way: one before each
//! message of the assistant. Where a request is over the budget a step is made: everything so far is planned anew, to a
//! target low enough that the next step is far. So the same messages give the same bytes in every call of every process,
//! and the prefix that a provider has cached stays what it was until the next step.
//!
//! The walk adds up tokens and plans nothing: a step counts as what it may leave at most, so that only the last one has
//! to be made, and where steps fall does not hang on how well the fit fills its target.

use crate::budget::Request;
use crate::conversation::{Group, groups, is_note};
use crate::message::{Message, Role, Text, ToolCall};
use crate::tokens::{REPLY, Tokens};

use super::archive_paths::ArchivePaths;
use super::draft::{Draft, Entry, Origin};
use super::finish;
use super::limits::{self, longer_than};
use super::notes::LeftOut;
use super::pins::Pins;
use super::plan::{Output, Plan, Receipt};
use super::{draft, fit, results};

/// What a cached token costs beside another: OpenAI's, Anthropic's and DeepSeek's price lists, November 2026.
const CACHED: f32 = 0.1;

/// What a step may cost, spread over the requests up to the next one, beside what these cost all the same.
///
/// The higher, the more is kept, and the more often the prefix changes. On the ten longest of the recorded trajectories (a request
/// for each step, window of half a trajectory) 0.15, 0.2 and 0.3 reuse 0.969, 0.967 and 0.962 of the prefix, at 0.57, 0.60 and 0.64
/// of the cost of the whole prompts; of what the next step uses 0.907, 0.923 and 0.935 stays.
const WORTH: f32 = 0.3;

/// What a step leaves of the tokens that may be cut at least and at most. These are those of the budget less system messages,
/// tool schemas and the last message of the user.
const LOW: (f32, f32) = (0.45, 0.8);

/// Of the same tokens, what older messages get at least where the newest group is so large that it would have all; and the most
/// tokens that short messages of the user, where rules are, get there of a smaller room.
const BESIDE_NEWEST: f64 = 0.1;
const MAX_SAID_TOKENS: Tokens = Tokens(700);

/// Tokens of a message of the user that is short.
const SHORT_TOKENS: Tokens = Tokens(100);

/// Of the same tokens, what is pinned may have at most before anything else is weighed.
const PINNED: f64 = 0.5;

/// Of the tokens that a step would leave free for what comes, those that lines for calls with effects may have: of these none is
/// to be out of sight.
const EFFECTS: f64 = 0.5;

/// Of what a step leaves beside the newest group, what such lines have all the same.
const LINES: f64 = 0.6;

/// Bytes of a call for a token of its line, and the most tokens of a line.
const LINE_BYTES: usize = 3;
const MAX_LINE_TOKENS: usize = 40;

/// Of the window, the steps in which the size of system messages and tool schemas counts: a clock in the system prompt
/// must not move a step.
const FIXED_STEPS: u64 = 128;

/// The messages as they arrive: repaired. No message depends on a later one, but for calls, which their results belong to.
pub struct Arrived {
    /// The plan where no step is made.
    pub plan: Plan,
    /// By index in the view: the tokens of the message, or 0 where it is left out; with the results it lacked.
    tokens: Vec<Tokens>,
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

/// A step, decided and not yet made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionStep {
    /// It is made of the messages before this index.
    pub at: usize,
    /// Tokens that they may have after it, system messages left out.
    pub room: Tokens,
    /// Tokens that a request of nothing else may have, system messages and tool schemas included.
    pub max_tokens: Tokens,
    /// Whether what must stay is within that; if not, [`CompactionStep::make`] says so.
    pub fits: bool,
}

/// What was made of the messages before a step, for as long as no other step is made.
#[derive(Debug)]
pub struct Made {
    /// Their outputs and cuts.
    pub plan: Plan,
    /// Tokens of the outputs, system messages left out.
    tokens: Tokens,
}

impl CompactionStep {
    /// Plans the messages before the step anew.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Overflow`] as [`super::compress`].
    pub fn make(&self, view: &[Message<'_>], request: &Request<'_>) -> crate::Result<Made> {
        let limits = &request.limits;
        let view = &view[..self.at];
        let (mut draft, archive_paths) = (draft(view, request), ArchivePaths::of(request.archive.as_ref()));
        draft.pin(&limits.pinned);
        let last_user = crate::conversation::last_user_index(view).unwrap_or(view.len());
        limits::reasoning(&mut draft, last_user, limits.reasoning_keep_chars);
        limits::large_results(&mut draft, &archive_paths, request.one_result_tokens());
        if results::result_tokens(&draft) > request.all_results_tokens() {
            results::shrink_results(&mut draft, &archive_paths, request.all_results_tokens());
        }
        limits::long_messages(
            &mut draft,
            last_user,
            (limits.max_user_message_chars, limits.max_assistant_message_chars),
        );
        let left_out = fit::fit(&mut draft, &archive_paths, self.max_tokens, request)?;
        let system = system_tokens(&draft);
        let overhead = draft.overhead_tokens;
        let plan = finish::plan(draft, &left_out, &archive_paths);
        let tokens = plan.receipt.tokens_after.unwrap_or_default() - overhead - system;
        Ok(Made { plan, tokens })
    }

    /// Returns the plan of the whole request: what the step made, and the newer messages as they arrived.
    pub fn join(&self, made: &Made, arrived: Arrived, view: &[Message<'_>], request: &Request<'_>) -> Plan {
        let Arrived { plan: newer, tokens } = arrived;
        let is_system = |index: &usize| view[*index].role == Role::System;
        let system: Tokens = (0..self.at).filter(is_system).map(|index| tokens[index]).sum();
        let after = request.tools_tokens() + REPLY + system + made.tokens + tokens[self.at..].iter().sum::<Tokens>();
        let Plan { mut outputs, receipt: Receipt { mut cuts, .. }, mut archived } = made.plan.clone();
        let is_older = |output: &Output| match output {
            Output::Keep(index) | Output::Edit(index, _) => *index < self.at,
            // A result stands behind its call's message.
            Output::New(_) => true,
        };
        outputs.extend(newer.outputs.into_iter().skip_while(is_older));
        cuts.extend(newer.receipt.cuts.into_iter().filter(|cut| cut.index >= self.at));
        archived.extend(newer.archived.into_iter().filter(|archived| archived.index >= self.at));
        Plan { outputs, receipt: Receipt { tokens_after: Some(after), cuts, ..newer.receipt }, archived }
    }
}

/// Returns the last step of the conversation, or `None` where it needs none.
///
/// O(messages).
pub fn last_step(view: &[Message<'_>], arrived: &Arrived, request: &Request<'_>) -> Option<CompactionStep> {
    let mut walk = Walk::new(view, arrived, request);
    if walk.overhead + arrived.tokens.iter().sum::<Tokens>() <= walk.budget {
        return None;
    }
    let before_assistant = (1..view.len()).filter(|&index| view[index].role == Role::Assistant);
    let mut last = None;
    for at in before_assistant.chain([view.len()]) {
        walk.go_to(at);
        if walk.fixed() + walk.used > walk.budget {
            last = walk.step().or(last);
        }
    }
    last
}

/// The requests of a conversation one after the other, as sums of tokens.
struct Walk<'w, 'a> {
    view: &'w [Message<'a>],
    arrived: &'w Arrived,
    request: &'w Request<'w>,
    budget: Tokens,
    overhead: Tokens,
    groups: Vec<Group>,
    /// Groups that the request holds.
    groups_in: usize,
    /// The request holds the messages before this index.
    at: usize,
    /// How many requests there were.
    requests: f32,
    last_user: Option<usize>,
    /// Tokens of the request at most, overhead and system messages left out.
    used: Tokens,
    system: Tokens,
    /// Tokens of all messages so far as they arrived, system messages left out.
    arrived_tokens: Tokens,
    /// Tokens of reasoning before the last message of the user that a step takes out.
    old_reasoning: Tokens,
    /// Up to where reasoning has been looked at.
    reasoned: usize,
    /// About the tokens of the lines that calls with effects have where they are left out.
    effects_tokens: Tokens,
    /// Tokens of short messages of the user.
    said_tokens: Tokens,
    pins: Pins<'w, 'w>,
}

impl<'w, 'a> Walk<'w, 'a> {
    fn new(view: &'w [Message<'a>], arrived: &'w Arrived, request: &'w Request<'w>) -> Self {
        Self {
            view,
            arrived,
            request,
            budget: request.budget_tokens(),
            overhead: request.tools_tokens() + REPLY,
            groups: groups(view.iter().map(|message| message.role)),
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
            pins: Pins::new(&request.limits.pinned),
        }
    }

    /// Goes on to the request that holds the messages before `at`.
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

    /// Returns the tokens of overhead and system messages, rounded up.
    fn fixed(&self) -> Tokens {
        let step = (self.request.window_tokens / FIXED_STEPS).max(Tokens(1));
        step * (self.overhead + self.system).0.div_ceil(step.0)
    }

    /// Decides a step here, and goes on from what it may leave at most.
    ///
    /// `None` where what must stay is over the budget and a later request may come: this one was never sent.
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
        // Rounded up where there is room for that.
        let fixed = Some(self.fixed()).filter(|&rounded| rounded + last_user <= self.budget).unwrap_or(fixed);
        let free = self.budget - fixed - last_user;
        let pinned = self.pinned_tokens().min(free.share(PINNED));
        let low = pinned + (free - pinned).share(self.low(free - pinned));
        let newest = pinned + self.newest_tokens();
        let beside = self.said_tokens.min(MAX_SAID_TOKENS).max(free.share(BESIDE_NEWEST));
        let left = low.max(newest + beside);
        let lines = self.effects_tokens - (left - newest).share(LINES);
        let effects = lines.min((free - left).share(EFFECTS));
        let room = (last_user + left + effects).min(self.budget - fixed);
        self.go_on_from(room);
        Some(CompactionStep { at, room, max_tokens: self.overhead + self.system + room, fits: true })
    }

    /// Returns the share of the `free` tokens that a step leaves.
    ///
    /// What it leaves is read anew once, where the provider would have had it cached; the more it leaves, and the more each
    /// request adds, the sooner the next step comes.
    fn low(&self, free: Tokens) -> f64 {
        let growth = (self.arrived_tokens.as_f32() / self.requests).max(1.0);
        // Where each request is a step anyway, cutting more buys nothing.
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

    /// Returns the tokens of what is pinned before the last message of the user, and behind it.
    fn pinned_tokens(&self) -> Tokens {
        let others = self.pins.indices().filter(|&index| Some(index) != self.last_user);
        others.map(|index| self.arrived.tokens[index]).sum()
    }

    /// Returns the tokens that a step leaves of the newest group, where it is one of the last round.
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

/// Returns about the tokens of a line for a call with effects, 0 for others.
fn line_tokens(call: &ToolCall<'_>) -> Tokens {
    let name = call.name.as_ref().map(Text::as_str).filter(|_| call.effect().is_changing());
    let Some(name) = name else { return Tokens::ZERO };
    let bytes = name.len() + call.arguments.as_ref().map_or(0, |arguments| arguments.as_str().len());
    Tokens((bytes / LINE_BYTES).min(MAX_LINE_TOKENS) as u64)
}

fn system_tokens(draft: &Draft<'_, '_>) -> Tokens {
    draft.entries.iter().filter(|entry| entry.role == Role::System).map(Entry::tokens).sum()
}
