//! Finds what changes a rule without a word of it: "We moved, it's Linz now." behind "I live in Graz."
//!
//! Words of change tell it in a short sentence that neither asks nor is about the work at hand.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64;

use super::claim::is_asked;
use super::corrections::subjects_of;
use super::lexicon::{lower, words};
use super::typed::typed;
use super::{Claim, Said, claim_at, sentences_in};
use crate::text::bytes::{FIRST_WIDE, has_digit};
use crate::text::envelope::without_speaker;
use crate::text::phrases::Phrases;

/// Most bytes and most words of a change.
const MAX_BYTES: usize = 100;
const MAX_WORDS: usize = 14;

/// Words of the first person, of whom much is said that passes: "I'm tired now." A name or a number says what changed.
const FIRST_PERSON: [&str; 12] = ["i", "i'm", "i've", "we", "we're", "we've", "ich", "wir", "je", "nous", "я", "мы"];

/// Numbers in words.
const NUMBERS: [&str; 12] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve", "half"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Change,
    Turn,
    Permit,
    State,
    Plain,
    Filler,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Any,
    Start,
    End,
}

/// The words of `changes.tsv`.
struct Changes {
    /// By the first word: kind, place, and the others.
    phrases: Phrases<(Kind, Place, Vec<&'static str>)>,
    /// In scripts without spaces.
    wide: Vec<(Kind, &'static str)>,
}

static CHANGES: LazyLock<Changes> = LazyLock::new(|| {
    let (mut by_first, mut wide) = (HashMap::<_, Vec<_>, _>::default(), Vec::new());
    for row in include_str!("../changes.tsv").lines().filter(|row| !row.starts_with('#')) {
        let mut cells = row.split('\t');
        let (Some(kind), Some(place), Some(phrases)) = (cells.next(), cells.next(), cells.next()) else { continue };
        let kind = match kind {
            "change" => Kind::Change,
            "turn" => Kind::Turn,
            "permit" => Kind::Permit,
            "state" => Kind::State,
            "filler" => Kind::Filler,
            _ => Kind::Plain,
        };
        for phrase in phrases.split(", ") {
            let place = match place {
                "start" => Place::Start,
                "end" => Place::End,
                "in" => {
                    wide.push((kind, phrase));
                    continue;
                }
                _ => Place::Any,
            };
            let mut words = words(phrase).map(|(_, word)| word);
            if let Some(first) = words.next() {
                by_first.entry(xxh3_64(first.as_bytes())).or_default().push((kind, place, words.collect()));
            }
        }
    }
    Changes { phrases: Phrases::new(by_first), wide }
});

/// The words of a sentence, and which kinds of words of change it has.
struct Signs<'s> {
    words: Vec<&'s str>,
    kinds: Vec<Kind>,
}

impl<'s> Signs<'s> {
    /// Reads a sentence in lower case.
    fn of(lower: &'s str) -> Self {
        let words: Vec<&str> = words(lower).map(|(_, word)| word).collect();
        let (mut kinds, mut start) = (Vec::new(), 0);
        for (at, word) in words.iter().enumerate() {
            for (kind, place, rest) in CHANGES.phrases.of(xxh3_64(word.as_bytes())) {
                if *kind == Kind::Filler {
                    start += usize::from(at == start);
                    continue;
                }
                let behind = &words[at + 1..];
                let is_there = behind.len() >= rest.len() && rest.iter().zip(behind).all(is_word);
                let is_in_place = match place {
                    Place::Any => true,
                    Place::Start => at == 0 || at == start,
                    Place::End => behind.len() == rest.len(),
                };
                kinds.extend((is_there && is_in_place).then_some(*kind));
            }
        }
        if !lower.is_ascii() {
            kinds.extend(CHANGES.wide.iter().filter(|(_, phrase)| lower.contains(phrase)).map(|(kind, _)| *kind));
        }
        Self { words, kinds }
    }

    fn has(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }
}

fn is_word((want, word): (&&str, &&str)) -> bool {
    match *want {
        "0" => word.starts_with(|c: char| c.is_ascii_digit()) || NUMBERS.contains(word),
        want => want == *word,
    }
}

/// Makes what changes a rule of an earlier sentence in `texts`, oldest first, a rule; in the talk `of_many` without the name before it. O(n).
pub fn raise_changes<'t>(texts: impl Iterator<Item = (&'t str, &'t mut Said)>, standing: &[Claim], of_many: bool) {
    let mut subjects = HashSet::new();
    for (text, said) in texts {
        let holds = said.claims.iter().any(|(claim, _)| standing.contains(claim));
        if subjects.is_empty() && !holds {
            continue;
        }
        let mut changes = Vec::new();
        for sentence in typed(text).flat_map(|line| sentences_in(text, line)) {
            let claim = claim_at(&said.claims, &sentence).ok().map(|at| said.claims[at].0);
            let whole = text[sentence.clone()].trim();
            let words = if of_many { without_speaker(whole) } else { whole };
            if claim.is_some_and(|claim| standing.contains(&claim)) {
                subjects.extend(subjects_of(words));
            } else if !subjects.is_empty() && is_change(words, claim, &subjects, of_many) {
                changes.push(sentence);
            }
        }
        for sentence in changes {
            said.raise(sentence, Claim::Rule);
        }
    }
}

/// Returns whether a short sentence has words of change.
pub fn may_change(sentence: &str) -> bool {
    let lower = lower(sentence);
    let signs = Signs::of(&lower);
    // In scripts without spaces a turn is found within other words, too.
    let may_turn = !sentence.contains(|c| c >= FIRST_WIDE) && signs.has(Kind::Turn);
    signs.words.len() <= MAX_WORDS && (may_turn || signs.has(Kind::Change) || signs.has(Kind::Permit))
}

/// Returns whether a sentence changes what held; `subjects` are the words of what does.
fn is_change(sentence: &str, claim: Option<Claim>, subjects: &HashSet<u64>, of_many: bool) -> bool {
    let said = sentence.trim();
    if said.len() > MAX_BYTES || is_asked(said) {
        return false;
    }
    let lower = lower(said);
    let signs = Signs::of(&lower);
    if signs.words.len() > MAX_WORDS || signs.has(Kind::Plain) {
        return false;
    }
    let is_known = || subjects_of(said).any(|word| subjects.contains(&word));
    if signs.has(Kind::Change) {
        return true;
    }
    if signs.has(Kind::State) {
        return false;
    }
    if signs.has(Kind::Permit) && is_known() {
        return true;
    }
    // "push to main again"
    let starts_known = subjects_of(said).next().is_some_and(|first| subjects.contains(&first));
    if starts_known || matches!(claim, Some(Claim::Wish | Claim::Order)) {
        return false;
    }
    let is_of_user = signs.words.first().is_some_and(|first| FIRST_PERSON.contains(&first.trim_end_matches('\'')));
    let names = || {
        let mut others = said.split(' ').skip(1).map(|word| word.trim_start_matches(|c: char| !c.is_alphanumeric()));
        others.any(|word| word.len() > 2 && word.starts_with(char::is_uppercase)) || has_digit(said)
    };
    let is_wide = said.contains(|c| c >= FIRST_WIDE);
    // "The train is late again", says another.
    if of_many && !is_known() && !names() {
        return false;
    }
    signs.has(Kind::Turn) && (is_wide || signs.words.len() > 1 && (!is_of_user || names()))
}

#[cfg(test)]
mod tests {
    use crate::text::rules::standing_rules;

    #[test]
    fn words_of_change_tell_what_changes_a_rule() {
        let mut wrong = Vec::new();
        for row in CHANGES.lines().map(str::trim).filter(|row| !row.is_empty()) {
            let (rule, change) = row.split_once(" -> ").unwrap();
            if standing_rules(&[rule, "What a day.", change]) != [vec![rule], vec![], vec![change]] {
                wrong.push(row);
            }
        }
        assert_eq!(wrong, [""; 0]);
    }

    #[test]
    fn what_only_has_such_words_changes_none() {
        let is_wrong =
            |other: &&str| standing_rules(&["I live in Graz. Always answer in German.", other])[1] != [""; 0];
        let others = OTHERS.lines().map(str::trim).filter(|row| !row.is_empty());
        assert_eq!(others.filter(is_wrong).collect::<Vec<_>>(), [""; 0]);
        assert_eq!(standing_rules(&["Scratch that, English again please."]), [[""; 0]], "behind no rule");
    }

    const CHANGES: &str = "
        From now on answer in German. -> Scratch that, English again please.
        Always use tabs. -> Hm, spaces after all, two of them.
        I live in Graz. -> We moved, it's Linz now.
        Always send the report at 8. -> Make that 9, I sleep longer these days.
        Please keep answers under five sentences. -> Longer answers are fine, I have more time now.
        Ab jetzt immer duzen. -> Lieber doch siezen.
        Always book the window seat. -> Aisle is better, my knee hurts.
        From now on the budget is 500 euros. -> Boss raised it to 800.
        Use metric units from now on. -> Actually imperial, the client is American.
        Never mention Tom in the group. -> Tom knows everything, no need to hide him.
        Always deploy from release. -> ok back to trunk
        Always send the invoices to Anna. -> Priya is on leave, so Omar till August.
        Rechnungen immer an Anna. -> Ach ja, Anna ist weg, Priya kriegt ihn jetzt.
        Toujours déployer depuis trunk. -> bon, retour à release
        Siempre desplegamos desde trunk. -> bueno, de vuelta a release
        Всегда выкатываем из trunk. -> ладно, обратно на release
        Immer nur vegane Rezepte bitte. -> Käse geht wieder.
        From now on write in British English. -> On second thought, American.
        I work at Siemens. -> We switched to Bosch in May.
        Always use Postgres. -> Back to SQLite, please.
        I drive a Volvo. -> I drive an Audi now.
        Never use emojis. -> Changed my mind, emojis are welcome.
        Always use the new layout. -> On reflection, keep the old layout.
        Always ship with DHL. -> No more DHL, they lost a parcel.
        Ich wohne in Graz. -> Wir sind umgezogen, nach Linz.
        Immer auf Englisch antworten. -> Dann doch Deutsch.
        Das Budget ist immer 500. -> Chef hat auf 800 erhöht.
        Réponds toujours en anglais. -> Finalement, plutôt en français.
        J'habite à Lyon. -> Nous avons déménagé à Lille.
        Responde siempre en inglés. -> Mejor en español.
        Vivo en Madrid. -> Nos mudamos a Valencia.
        Responda sempre em inglês. -> Na verdade, português.
        Rispondi sempre in inglese. -> Anzi, in italiano.
        Отвечай всегда по-английски. -> Лучше по-русски.
        Zawsze odpowiadaj po angielsku. -> Jednak po polsku.
        以后都用中文回答。 -> 还是英文吧。
        我住在成都。 -> 我们搬家了，在重庆。
        今後は英語で答えて。 -> やっぱり日本語で。";

    const OTHERS: &str = "
        Actually, what time is it?
        Try again.
        Now run the tests.
        Make that file executable.
        It works now.
        The tests pass now.
        The server is down again.
        It's raining again.
        I'm tired now.
        I see it now.
        Now I understand.
        Thanks, that's better.
        Done now.
        The page loads again.
        Hello again.
        Nice, all good now.
        That is fine now.
        The report is fine.
        It doesn't work any more.
        Open the other file instead.
        Actually, it was the cache.
        Same error again.
        I'm hungry again.
        What about the other one instead?
        Der Server geht wieder.
        Es regnet wieder.
        Jetzt läuft es wieder.
        Starte den Dienst wieder.
        Ich sehe es jetzt.
        Ça marche maintenant.
        Le serveur est en panne de nouveau.
        Ahora funciona.
        Prueba otra vez.
        Adesso funziona.
        Теперь работает.
        Teraz działa.
        还是报错。
        现在几点？
        Back to work.
        Back to the report.
        Let's send the invoice now.
        Instead print the invoice.
        Forget the label.
        还是算了。
        再试一次。";
}
