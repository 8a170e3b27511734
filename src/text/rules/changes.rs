//! Finds what changes a rule without a word of it: "We moved, it's Linz now." behind "I live in Graz."
//!
//! Words of change tell it in a short sentence that neither asks nor is about the work at hand.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::claim::is_asked;
use super::corrections::subjects_of;
use super::lexicon::words;
use super::typed::typed;
use super::{Claim, Said, claim_at, sentences_in};
use crate::text::bytes::FIRST_WIDE;

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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Any,
    Start,
    End,
    /// In a script without spaces.
    Within,
}

static WORDS: LazyLock<Vec<(Kind, Place, Vec<&'static str>)>> = LazyLock::new(|| {
    let rows = include_str!("../changes.tsv").lines().filter(|row| !row.starts_with('#'));
    let phrases = |row: &'static str| {
        let mut cells = row.split('\t');
        let (kind, place, phrases) = (cells.next()?, cells.next()?, cells.next()?);
        let kind = match kind {
            "change" => Kind::Change,
            "turn" => Kind::Turn,
            "permit" => Kind::Permit,
            "state" => Kind::State,
            _ => Kind::Plain,
        };
        let place = match place {
            "start" => Place::Start,
            "end" => Place::End,
            "in" => Place::Within,
            _ => Place::Any,
        };
        Some(phrases.split(", ").map(move |phrase| match place {
            Place::Within => (kind, place, vec![phrase]),
            _ => (kind, place, words(phrase).map(|(_, word)| word).collect()),
        }))
    };
    rows.filter_map(phrases).flatten().collect()
});

/// Makes what changes a rule of an earlier sentence in `texts`, oldest first, a rule. O(n).
pub fn raise_changes<'t>(texts: impl Iterator<Item = (&'t str, &'t mut Said)>, standing: &[Claim]) {
    let mut subjects = HashSet::new();
    for (text, said) in texts {
        let holds = said.claims.iter().any(|(claim, _)| standing.contains(claim));
        if subjects.is_empty() && !holds {
            continue;
        }
        let mut changes = Vec::new();
        for sentence in typed(text).flat_map(|line| sentences_in(text, line)) {
            let claim = claim_at(&said.claims, &sentence).ok().map(|at| said.claims[at].0);
            let words = &text[sentence.clone()];
            if claim.is_some_and(|claim| standing.contains(&claim)) {
                subjects.extend(subjects_of(words));
            } else if !subjects.is_empty() && is_change(words, claim, &subjects) {
                changes.push(sentence);
            }
        }
        for sentence in changes {
            said.raise(sentence, Claim::Rule);
        }
    }
}

/// Returns whether a sentence changes what held; `subjects` are the words of what does.
fn is_change(sentence: &str, claim: Option<Claim>, subjects: &HashSet<u64>) -> bool {
    let said = sentence.trim();
    if said.len() > MAX_BYTES || is_asked(said) {
        return false;
    }
    let lower = said.to_lowercase().replace('’', "'");
    let own: Vec<&str> = words(&lower).map(|(_, word)| word).collect();
    let has = |kind| WORDS.iter().any(|(of, place, phrase)| *of == kind && is_in(phrase, *place, &own, &lower));
    if own.len() > MAX_WORDS || has(Kind::Plain) {
        return false;
    }
    let is_known = || subjects_of(said).any(|word| subjects.contains(&word));
    if has(Kind::Change) {
        return true;
    }
    if has(Kind::State) {
        return false;
    }
    if has(Kind::Permit) && is_known() {
        return true;
    }
    // "push to main again"
    let starts_known = subjects_of(said).next().is_some_and(|first| subjects.contains(&first));
    if starts_known || matches!(claim, Some(Claim::Wish | Claim::Order)) {
        return false;
    }
    let is_of_user = own.first().is_some_and(|first| FIRST_PERSON.contains(&first.trim_end_matches('\'')));
    let names = || {
        let mut others = said.split(' ').skip(1).map(|word| word.trim_start_matches(|c: char| !c.is_alphanumeric()));
        others.any(|word| word.len() > 2 && word.starts_with(char::is_uppercase))
            || said.contains(|c: char| c.is_ascii_digit())
    };
    let is_wide = said.contains(|c| c >= FIRST_WIDE);
    has(Kind::Turn) && (is_wide || own.len() > 1 && (!is_of_user || names()))
}

fn is_in(phrase: &[&str], place: Place, own: &[&str], lower: &str) -> bool {
    let is_word = |(want, word): (&&str, &&str)| match *want {
        "0" => word.starts_with(|c: char| c.is_ascii_digit()) || NUMBERS.contains(word),
        want => want == *word,
    };
    let is = |at: &[&str]| phrase.len() == at.len() && phrase.iter().zip(at).all(is_word);
    match place {
        Place::Within => phrase.iter().any(|phrase| lower.contains(phrase)),
        Place::Any => own.windows(phrase.len()).any(is),
        Place::Start => own.get(..phrase.len()).is_some_and(is),
        Place::End => own.len().checked_sub(phrase.len()).is_some_and(|from| is(&own[from..])),
    }
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
        Forget the label.
        还是算了。
        再试一次。";
}
