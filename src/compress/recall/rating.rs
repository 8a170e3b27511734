//! Rates the texts of a conversation by what they have of what is asked for.

use std::collections::{BTreeSet, HashMap};

use crate::message::Role;
use crate::select::Asked;
use crate::select::scoring::Idf;
use crate::text::estimate::count;
use crate::text::stop_words::names_one;
use crate::text::terms::{ShortTerm, TermKind};

use super::asked::{OF_PAIR, Terms};
use super::sources::Source;
use crate::compress::said::LITTLE;

/// Most groups with a term for it to tell which reply a question points to, and what is about the same.
const RARE: usize = 3;

/// A passage has at least the weight of one term that so many groups have, for a message that asks and for another: "How many books have
/// I finished?" has one word of each that was named. Of eight such .50 and .85 stand behind a step at 12 and 25 % of the tokens, with 2
/// groups .00 and .03. With 8 for both marks and quotes are .06 of the tokens of many short turns in place of .04.
const RARELY: usize = 8;
const RARELY_TOLD: usize = 2;

/// Least weight, as a share of all that is asked for and of the best passage.
///
/// With half of what is asked for, three quarters of the best passage's and three groups .690 of the evidence of meetings stays at
/// half of the tokens, and .438 at a quarter, with these .710 and .473.
const MIN_SHARE: f32 = 0.3;
const BESIDE_BEST: f32 = 0.6;

/// Most groups with a passage that comes near the best one, where it has no name, for a question and for another text: of more none is
/// meant.
///
/// Of 4,000 statements of one kind .13 of the tokens were quotes without it, and .01 are with it; evidence of meetings .432 and .427.
const MAX_ABOUT: usize = 12;
const MAX_TOLD: usize = 4;

/// Weight of a term in another part of the passage's group: the words of a call may name what its result says.
const NEARBY: f32 = 0.5;

/// Factor of a signature: calls of the function have the same name.
const DEFINES: f32 = 2.0;

/// Factor for a term that one passage has, less for others: in "What did Annika say?" her line comes before those with "say".
const SCARCE: f32 = 0.2;

/// What each text has of what is asked for.
pub(super) struct Rating<'t, 's, 'q> {
    pub(super) sources: &'t [Source<'s>],
    pub(super) terms: &'q Terms,
    by_group: Vec<u128>,
    weights: Vec<f32>,
    /// By term: what it adds to a passage with it, the more, the fewer passages have it.
    scarce: Vec<f32>,
    /// The terms that few groups have.
    pub(super) rare: u128,
}

impl<'t, 's, 'q> Rating<'t, 's, 'q> {
    pub(super) fn of(sources: &'t [Source<'s>], terms: &'q Terms) -> Self {
        let mut by_group = vec![0; sources.last().map_or(0, |source| source.group + 1)];
        for source in sources {
            by_group[source.group] |= source.has();
        }
        let weights = terms.weights(&by_group);
        let having = |bit: u128| by_group.iter().filter(|found| **found & bit != 0).count();
        let bits = (0..terms.terms.len()).map(|bit| 1 << bit);
        let rare = bits.filter(|&bit| (1..=RARE).contains(&having(bit))).fold(0, |all, bit: u128| all | bit);
        let passages = || sources.iter().flat_map(|source| &source.found);
        let with = |bit: usize| passages().filter(|(_, found)| found & 1 << bit != 0).count().max(1);
        let scarce = weights.iter().enumerate().map(|(bit, weight)| SCARCE * weight / count(with(bit))).collect();
        Self { sources, terms, by_group, weights, scarce, rare }
    }

    /// Returns which of the terms the group of a text has.
    pub(super) fn of_group(&self, source: &Source<'_>) -> u128 {
        self.by_group[source.group]
    }

    /// Returns the weight of some of the terms.
    pub(super) fn weight(&self, found: u128) -> f32 {
        sum(&self.weights, found)
    }

    /// Returns whether the message names something that nobody has named before, a file to be read: it asks for no earlier result as a
    /// whole. In three talks of 80 such messages in windows of 16,000 tokens the prefix changes 27 times without it, with it 6 times.
    pub(super) fn is_new(&self) -> bool {
        let mut weighed = self.terms.terms.iter().zip(&self.weights);
        let is_unknown = weighed.any(|(term, weight)| term.kind().is_name() && *weight == 0.0);
        is_unknown && self.sources.iter().all(|source| source.rows.is_empty())
    }

    /// Returns the parts that have most of the terms `about`: best first, then newest first.
    pub(super) fn best(&self, about: u128) -> Vec<(&'t Source<'s>, usize)> {
        let mut rated: Vec<(f32, &Source<'_>, usize)> = Vec::new();
        for source in self.sources {
            let rate = |&(part, found): &(usize, u128)| {
                let nearby = self.weight(self.by_group[source.group] & about & !found);
                let factor = if source.defines(part) { DEFINES } else { 1.0 };
                (factor * self.weight(found & about) + NEARBY * nearby + sum(&self.scarce, found & about), source, part)
            };
            rated.extend(source.found.iter().map(rate));
        }
        // Equal ones stay in order.
        rated.reverse();
        rated.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
        let best = rated.first().map_or(0.0, |(weight, ..)| *weight);
        // A word in a script without spaces may be one pair of characters.
        let is_wide = self.terms.terms.iter().all(|term| term.kind() == TermKind::Pair);
        let groups = if self.terms.asks { RARELY } else { RARELY_TOLD };
        let rarely = Idf::of(self.by_group.len()).at(groups) * if is_wide { OF_PAIR } else { 1.0 };
        let least = (best * BESIDE_BEST).max(self.weight(about) * MIN_SHARE).max(rarely);
        rated.into_iter().take_while(|(weight, ..)| *weight >= least).map(|(_, source, part)| (source, part)).collect()
    }

    /// Returns whether the best passages are of so many groups that what they have is the subject of the conversation.
    pub(super) fn is_subject(&self, best: &[(&Source<'s>, usize)]) -> bool {
        let Some(&(source, part)) = best.first() else { return false };
        let names = self.terms.all_names();
        let has_name =
            self.terms.is_question && source.found.iter().any(|(other, found)| *other == part && found & names != 0);
        // A longer text has names that it does not ask for, as the heading of what is pasted.
        let most = if self.terms.is_question { MAX_ABOUT } else { MAX_TOLD };
        !has_name && Self::groups(best) > most
    }

    /// Returns how many groups have these passages.
    pub(super) fn groups(passages: &[(&Source<'s>, usize)]) -> usize {
        passages.iter().map(|(source, _)| source.group).collect::<BTreeSet<_>>().len()
    }

    /// Returns each of several names that are asked for, with the words that belong to none.
    pub(super) fn subjects(&self) -> Vec<u128> {
        let names = &self.terms.names;
        let heaviest = names.iter().map(|&name| self.weight(name)).fold(0.0, f32::max);
        let words = !self.terms.all_names();
        let subjects: Vec<u128> = names
            .iter()
            .filter(|&&name| self.weight(name) > heaviest * LIKE_HEAVIEST)
            .map(|name| name | words)
            .take(MAX_SUBJECTS)
            .collect();
        if subjects.len() > 1 { subjects } else { Vec::new() }
    }

    /// Returns the newest part behind `source` with all names of its `part`, in a group with some of its other words; of what the
    /// user said also one of the user's with much of it, or with a rare word of it. Not where the user asks; and behind a definition
    /// only another, or a call.
    pub(super) fn newest_of(&self, source: &Source<'_>, part: usize) -> Option<(&'t Source<'s>, usize)> {
        let has = Some(source.found_in(part)).filter(|has| *has != 0)?;
        let names = has & self.terms.all_names();
        let words = has & !names;
        let is_named = |later: &Source<'_>, found: u128| {
            names != 0 && found & names == names && (words == 0 || self.by_group[later.group] & words != 0)
        };
        let much = self.weight(has) * MUCH;
        let is_said = |later: &Source<'_>, found: u128| {
            (source.role, later.role) == (Role::User, Role::User)
                && !later.analysis.is_material()
                && (found & has & self.rare != 0 || self.weight(found & has) >= much)
        };
        let defines = source.defines(part);
        let of = |later: &'t Source<'s>| {
            let says = |&&(part, found): &&(usize, u128)| {
                let is_version = !defines || later.is_arguments || later.defines(part);
                is_version && (is_named(later, found) || is_said(later, found)) && !later.asks(part)
            };
            let is_later = later.group > source.group;
            later.found.iter().rev().filter(|_| is_later).find(says).map(|(part, _)| (later, *part))
        };
        self.sources.iter().rev().find_map(of)
    }

    /// Returns the newest parts of the user's with a rare term of what they said before in these parts, though with none of the
    /// question's, and these terms: "Bea does it, Ann has no time" behind "Ask Ann to water the plants". None where the user types
    /// most of the conversation. O(terms of the user's texts).
    pub(super) fn followers(&self, said: &[(&Source<'_>, usize)]) -> Vec<(&'t Source<'s>, usize, Asked)> {
        let is_users = |of: &Source<'_>| of.role == Role::User && !of.analysis.is_material();
        let users = || self.sources.iter().filter(|of| is_users(of));
        let bytes = |of: &Source<'_>| of.text.len();
        if count(users().map(bytes).sum()) > count(self.sources.iter().map(bytes).sum()) * LITTLE {
            return Vec::new();
        }
        // By term: the group that says it first, the number of groups with it, and the last of these.
        let mut having: HashMap<ShortTerm, (usize, usize, usize)> = HashMap::new();
        for &(of, part) in said.iter().filter(|(of, _)| is_users(of)) {
            let range = of.analysis.ranges().nth(part).map_or(0..0, |(_, range)| range);
            for &term in of.analysis.terms[range].iter().filter(|term| names_one(**term)) {
                let (first, ..) = having.entry(term).or_insert((of.group, 0, usize::MAX));
                *first = of.group.min(*first);
            }
        }
        for (of, term) in users().flat_map(|of| of.analysis.terms.iter().map(move |term| (of, term))) {
            if let Some((_, groups, last)) = having.get_mut(term) {
                *groups += usize::from(*last != of.group);
                *last = of.group;
            }
        }
        having.retain(|_, (_, groups, _)| (2..=RARE).contains(groups));
        let mut followers = Vec::new();
        for later in self.sources.iter().rev().filter(|of| is_users(of)) {
            if followers.len() >= MOST_FOLLOWERS {
                break;
            }
            for (part, (_, range)) in later.analysis.ranges().enumerate() {
                let is_of = |term: &&ShortTerm| having.get(*term).is_some_and(|(first, ..)| *first < later.group);
                let terms: Vec<ShortTerm> = later.analysis.terms[range].iter().filter(is_of).copied().collect();
                if !terms.is_empty() {
                    having.retain(|term, _| !terms.contains(term));
                    followers.push((later, part, Asked::of(terms.into_iter())));
                }
            }
        }
        followers
    }
}

/// Most followers, but for more in one text.
const MOST_FOLLOWERS: usize = 4;

/// Share of what a passage has of the question that one about the same has.
const MUCH: f32 = 0.4;

/// A name is asked for apart from others if its weight is this share of the heaviest one's; and how many are.
const LIKE_HEAVIEST: f32 = 0.5;
const MAX_SUBJECTS: usize = 6;

/// Returns the sum of what terms have by their bits.
fn sum(by_term: &[f32], found: u128) -> f32 {
    by_term.iter().enumerate().filter(|(bit, _)| found & 1 << bit != 0).map(|(_, of)| of).sum()
}
