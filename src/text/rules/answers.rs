//! Finds short answers of the user, which say nothing without what the model said before them: a question, or what it offers.

use std::ops::Range;

use super::claim::is_asked;
use super::typed::typed;
use super::{Claim, Said};
use crate::text::references::{chooses, chosen_in, chosen_later};
use crate::text::sentences::sentences;

/// Most bytes of an answer, and of a question.
const MAX_ANSWER_BYTES: usize = 80;
const MAX_QUESTION_BYTES: usize = 240;

/// Most bytes of an answer that says no more than yes or no; what begins one, and what begins a question that it does not answer.
const MAX_ASSENT_BYTES: usize = 40;
const ASSENTS: [&str; 66] = [
    "yes",
    "yeah",
    "yep",
    "yup",
    "no",
    "nope",
    "nah",
    "ok",
    "okay",
    "sure",
    "absolutely",
    "definitely",
    "exactly",
    "right",
    "correct",
    "agreed",
    "deal",
    "please",
    "go",
    "do",
    "don't",
    "better",
    "rather",
    "sounds",
    "fine",
    "of",
    "ja",
    "nein",
    "gern",
    "gerne",
    "klar",
    "genau",
    "oui",
    "non",
    "d'accord",
    "volontiers",
    "sí",
    "si",
    "vale",
    "claro",
    "dale",
    "sim",
    "não",
    "pode",
    "sì",
    "certo",
    "va",
    "да",
    "нет",
    "давай",
    "хорошо",
    "конечно",
    "nee",
    "graag",
    "tak",
    "nie",
    "dobrze",
    "evet",
    "hayır",
    "olur",
    "có",
    "không",
    "ya",
    "tidak",
    "boleh",
    "jangan",
];
const WIDE_ASSENTS: [&str; 28] = [
    "好",
    "可以",
    "行",
    "是",
    "对",
    "對",
    "嗯",
    "不",
    "要",
    "没问题",
    "沒問題",
    "当然",
    "當然",
    "はい",
    "いいえ",
    "うん",
    "お願い",
    "いや",
    "네",
    "아니",
    "응",
    "좋아",
    "그래",
    "हाँ",
    "हां",
    "नहीं",
    "نعم",
    "لا",
];
/// What begins an answer that agrees, and one that only says that the text was read.
const AGREES: [&str; 62] = [
    "sold",
    "perfect",
    "great",
    "works",
    "wonderful",
    "excellent",
    "let's",
    "lets",
    "make",
    "accepted",
    "settled",
    "abgemacht",
    "einverstanden",
    "passt",
    "klingt",
    "top",
    "super",
    "prima",
    "perfekt",
    "meinetwegen",
    "abgesprochen",
    "machen",
    "mach",
    "entendu",
    "parfait",
    "marché",
    "ça",
    "allons",
    "faisons",
    "entendido",
    "perfecto",
    "trato",
    "genial",
    "venga",
    "adelante",
    "perfeito",
    "combinado",
    "fechado",
    "beleza",
    "ótimo",
    "vamos",
    "perfetto",
    "affare",
    "ottimo",
    "facciamo",
    "договорились",
    "согласен",
    "согласна",
    "отлично",
    "ладно",
    "идёт",
    "идет",
    "годится",
    "akkoord",
    "afgesproken",
    "zgoda",
    "umowa",
    "świetnie",
    "tamam",
    "anlaştık",
    "setuju",
    "oke",
];
const WIDE_AGREES: [&str; 20] = [
    "成交",
    "同意",
    "就这",
    "就這",
    "就按",
    "就照",
    "说定",
    "說定",
    "没意见",
    "沒意見",
    "赞成",
    "贊成",
    "听你",
    "聽你",
    "賛成",
    "決まり",
    "了解",
    "동의",
    "موافق",
    "ठीक",
];
const HEARD: [&str; 14] =
    ["ok", "okay", "okey", "k", "right", "sure", "fine", "да", "好", "好的", "嗯", "はい", "네", "了解"];
const INQUIRING: [&str; 40] = [
    "why",
    "how",
    "what",
    "when",
    "where",
    "who",
    "which",
    "warum",
    "wieso",
    "wie",
    "was",
    "wann",
    "wo",
    "wer",
    "welche",
    "pourquoi",
    "comment",
    "quand",
    "où",
    "qui",
    "quel",
    "cómo",
    "qué",
    "cuándo",
    "dónde",
    "quién",
    "perché",
    "come",
    "quando",
    "dove",
    "chi",
    "como",
    "onde",
    "quem",
    "почему",
    "как",
    "что",
    "когда",
    "где",
    "кто",
];

/// Sentences at the end of a message among which a question is one: "Postgres or SQLite? Both would do."
const LAST_SENTENCES: usize = 2;

impl Said {
    /// Makes all of `text` one sentence, if it is short; what claims nothing else is an answer. Returns whether it is short.
    pub fn answer(&mut self, text: &str) -> bool {
        if self.typed_bytes > MAX_ANSWER_BYTES {
            return false;
        }
        let mut typed = typed(text);
        let Some(first) = typed.next() else { return false };
        let end = typed.last().map_or(first.end, |last| last.end);
        let claim = self.claims.iter().map(|(claim, _)| *claim).max();
        let whole = first.start..first.start + text[first.start..end].trim_end().len();
        self.claims = vec![(claim.unwrap_or(Claim::Answer).max(Claim::Answer), whole)];
        true
    }
}

/// Returns what a short answer is to in a text of the model before it: the item that it chooses, else the question at its end; of one
/// that says yes or no the last question that it may answer. O(n).
pub fn answered_in(text: &str, answer: &str) -> Option<Range<usize>> {
    let item = chosen_in(text, answer).map(|at| start_of(text, &at));
    item.or_else(|| question_in(text)).or_else(|| if assents(answer) { last_question(text) } else { None })
}

/// Returns what a short answer agrees to, or chooses from, where the model asked nothing: its last sentence. O(n).
pub fn agreed_in(text: &str, answer: &str) -> Option<Range<usize>> {
    if !asks(answer) && (settles(answer) || chooses(answer)) { last_sentence(text) } else { None }
}

/// Returns the item that a short answer chooses later from a list in a text of the model. O(n).
pub fn chosen_again_in(list: &str, answer: &str) -> Option<Range<usize>> {
    chosen_later(list, answer).map(|at| start_of(list, &at))
}

/// Returns what is shown of an item.
fn start_of(text: &str, item: &Range<usize>) -> Range<usize> {
    item.start..text.floor_char_boundary(item.end.min(item.start + MAX_QUESTION_BYTES))
}

/// Returns whether an answer says no more than yes or no.
fn assents(answer: &str) -> bool {
    let said = answer.trim().to_lowercase();
    said.len() <= MAX_ASSENT_BYTES && (starts_with(&said, &ASSENTS) || starts_with_wide(&said, &WIDE_ASSENTS))
}

/// Returns whether an answer says more than that the text was read: "Deal."
fn settles(answer: &str) -> bool {
    let said = answer.trim().trim_end_matches(['.', '!', '。', '！']).to_lowercase();
    let agrees = || starts_with(&said, &AGREES) || starts_with_wide(&said, &WIDE_AGREES);
    !HEARD.contains(&&*said) && (assents(answer) || said.len() <= MAX_ASSENT_BYTES && agrees())
}

fn starts_with(said: &str, words: &[&str]) -> bool {
    words.contains(&said.split(|c: char| !c.is_alphanumeric() && c != '\'').next().unwrap_or_default())
}

fn starts_with_wide(said: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| said.starts_with(start))
}

/// Returns the last question of a text of the model that may be answered by yes or no.
fn last_question(text: &str) -> Option<Range<usize>> {
    let may_be = |at: &Range<usize>| {
        let said = text[at.clone()].trim();
        let first = said.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or_default();
        at.len() <= MAX_QUESTION_BYTES && asks(said) && !INQUIRING.contains(&&*first.to_lowercase())
    };
    sentences(text).filter(may_be).last()
}

/// Returns the last sentence of a text of the model.
fn last_sentence(text: &str) -> Option<Range<usize>> {
    let last = sentences(text).filter(|at| !text[at.clone()].trim().is_empty()).last()?;
    Some(last).filter(|at| at.len() <= MAX_QUESTION_BYTES)
}

/// Returns whether a sentence of a text in Markdown asks.
fn asks(sentence: &str) -> bool {
    is_asked(sentence.trim_end_matches(|c: char| c.is_whitespace() || "*_\"')".contains(c)))
}

/// Returns the question at the end of a text of the model, with what stands behind it. O(n).
fn question_in(text: &str) -> Option<Range<usize>> {
    let start = text.floor_char_boundary(text.len().saturating_sub(MAX_QUESTION_BYTES));
    let is_said = |at: &Range<usize>| !text[at.clone()].trim().is_empty();
    let last: Vec<Range<usize>> =
        sentences(&text[start..]).map(|at| start + at.start..start + at.end).filter(is_said).collect();
    let mut last = last.iter().rev().take(LAST_SENTENCES);
    let asked = last.find(|at| asks(&text[(*at).clone()]))?;
    Some(asked.start..text.trim_end().len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::rules::said;

    #[test]
    fn a_question_ends_a_message_perhaps_with_a_sentence_behind_it() {
        for (text, asked) in [
            ("I read it. Which database should I use?", Some("Which database should I use?")),
            ("Done. **Shall I go on?**\n", Some("**Shall I go on?**")),
            ("Postgres or SQLite? Both would do.", Some("Postgres or SQLite? Both would do.")),
            ("好了。要删掉旧的吗？", Some("要删掉旧的吗？")),
            ("Why is it slow? It has no index. I added one.", None),
            ("", None),
        ] {
            assert_eq!(question_in(text).map(|at| text[at].trim()), asked, "{text}");
        }
    }

    #[test]
    fn a_yes_comes_with_the_last_question_that_it_may_answer() {
        let text = "Why so slow? It has no index.\n\nShould I drop the Friday dinner? It is dear. I asked three halls, all of them closed.";
        for (answer, question) in [
            ("Yes.", Some("Should I drop the Friday dinner?")),
            ("Better not.", Some("Should I drop the Friday dinner?")),
            ("Nein, danke", Some("Should I drop the Friday dinner?")),
            ("好的", Some("Should I drop the Friday dinner?")),
            ("Now the photographer.", None),
            ("Okay, and now show me the list of all of the halls there.", None),
        ] {
            assert_eq!(answered_in(text, answer).map(|at| text[at].trim()), question, "{answer}");
        }
        assert_eq!(answered_in("Why is it slow? It has no index. I added one. It runs.", "ok"), None);
    }

    #[test]
    fn who_agrees_means_the_last_sentence_where_nothing_was_asked() {
        let text = "Cheese keeps well.\n\nIt dries out. We could meet at the pier or at the mill.\n";
        let last = Some("We could meet at the pier or at the mill.");
        for (answer, agreed) in [
            ("Deal!", last),
            ("Abgemacht, so machen wir's", last),
            ("就这么办吧", last),
            ("The latter, please.", last),
            ("选第二个", last),
            ("ok", None),
            ("Sure.", None),
            ("Do mills turn?", None),
            ("Let's see what else there is to do up there in the north of it all.", None),
            ("Thanks, that helps.", None),
        ] {
            assert_eq!(agreed_in(text, answer).map(|at| text[at].trim()), agreed, "{answer}");
        }
    }

    #[test]
    fn an_answer_that_chooses_comes_with_the_item() {
        let list = "Three names:\n\n1. **Kestrel**: short\n2. The customs officer\n   who lies\n10. Heron\n\nAll are free. Which one?";
        let bullets = "You could:\n- take the train\n- fly\n\nBoth take a day.";
        let letters = "Either (a) print ads, (b) influencers or (c) a fair.\nThe rest can wait.";
        for (text, answer, item) in [
            (list, "The second one.", Some("2. The customs officer\n   who lies")),
            (list, "2", Some("2. The customs officer\n   who lies")),
            (list, "Nummer 10 bitte.", Some("10. Heron")),
            (list, "the last", Some("10. Heron")),
            (list, "第一个", Some("1. **Kestrel**: short")),
            (list, "Kestrel", Some("Which one?")),
            (list, "24 minutes", Some("Which one?")),
            (bullets, "Le deuxième.", Some("- fly")),
            (bullets, "The third one", None),
            (bullets, "A train at nine, please, and no flight before the second of May", None),
            (letters, "b", Some("(b) influencers or")),
            (letters, "option c", Some("(c) a fair.")),
            (letters, "a good idea, that", None),
        ] {
            let found = answered_in(text, answer).map(|at| text[at].trim());
            assert_eq!(found, item, "{answer}");
        }
    }

    #[test]
    fn a_short_text_is_an_answer_as_a_whole() {
        for (text, claim) in [
            ("Postgres.", Some(Claim::Answer)),
            ("Yes, keep it. Thanks", Some(Claim::Answer)),
            ("B", Some(Claim::Answer)),
            ("Never push to main. Thanks", Some(Claim::Rule)),
            ("> quoted", None),
            ("Fine, but that is more than a few words, and nobody would take all of it for an answer.", None),
        ] {
            let mut said = Said::clone(&said(text));
            assert_eq!(said.answer(text), claim.is_some(), "{text}");
            if let Some(claim) = claim {
                assert_eq!(said.claims, [(claim, 0..text.len())], "{text}");
            }
        }
    }
}
