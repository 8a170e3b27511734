//! What terms and parts are worth, and what covers them.

use super::*;
use crate::text::analysis::Form;

/// Returns the scoring of texts, each a message of its own.
fn scoring(texts: &[(Author, &str)]) -> Scoring {
    let document = |(message, &(author, text)): (usize, &(Author, &str))| Document {
        message,
        author,
        effect: None,
        stays: author == Author::System,
        asks: 0.0,
        analysis: Analysis::of(text, Form::Dated),
    };
    let documents = texts.iter().enumerate().map(document).collect();
    Scoring::new(documents, texts.len(), None)
}

/// Returns what all of a text is worth.
fn worth(scoring: &Scoring, document: usize) -> f32 {
    scoring.worth(scoring.mentions(document))
}

#[test]
fn what_was_named_lately_and_by_the_model_is_likelier_needed() {
    let told = |last| {
        let mut texts = vec![(Author::User, "and?"); 40];
        texts[0] = (Author::Result, "handle_a1b2");
        texts[39] = last;
        scoring(&texts)
    };
    let old = worth(&told((Author::User, "well")), 0);
    let recent = worth(&told((Author::Result, "handle_a1b2")), 39);
    let said = worth(&told((Author::Assistant, "handle_a1b2")), 39);
    assert!(old < recent && recent < said, "{old} {recent} {said}");
}

#[test]
fn a_question_of_common_words_asks_for_nothing() {
    let texts =
        [(Author::User, "The disk and the key of it"), (Author::Assistant, "Fine."), (Author::User, "And now?")];
    let said = |question: &str| {
        let [old, answer, _] = texts;
        let mut documents = scoring(&[old, answer, (Author::User, question)]).documents;
        documents[2].asks = 1.0;
        Scoring::new(documents, 3, Some(2)).said(0)
    };
    assert!(said("And now?") == 0.0 && said("And the disk?") > 0.9);
}

#[test]
fn what_stays_elsewhere_is_worth_less() {
    let texts = [(Author::Result, "handle_a1b2"), (Author::Result, "handle_a1b2"), (Author::Result, "handle_c3d4")];
    let mut scoring = scoring(&texts);
    let before = [worth(&scoring, 0), worth(&scoring, 2)];
    scoring.cover(scoring.mentions(1));
    assert!(worth(&scoring, 0) < before[0] && scoring.is_covered(0));
    assert_eq!(worth(&scoring, 2).to_bits(), before[1].to_bits());
    scoring.cover_text("see Handle_C3D4.");
    assert!(scoring.is_covered(scoring.mentions(2).start) && worth(&scoring, 2) < before[1]);
}

#[test]
fn a_line_with_a_clock_in_the_system_prompt_covers_nothing() {
    let system = "Tools live in handle_a1b2, whatever anybody says.\nNow it is 10:01, and handle_c3d4 is on duty.\n";
    let scoring = scoring(&[(Author::System, system), (Author::Result, "handle_a1b2 handle_c3d4")]);
    let is_name = |mention: &usize| scoring.term(*mention).kind().is_name();
    let covered = scoring.mentions(1).filter(is_name);
    let covered: Vec<bool> = covered.map(|mention| scoring.is_covered(mention)).collect();
    assert_eq!(covered, [true, false]);
}

#[test]
fn a_name_is_lost_until_something_that_stays_has_it() {
    let mut scoring = scoring(&[(Author::Result, "handle_a1b2"), (Author::Call, "handle_a1b2 4711")]);
    let lost = |scoring: &Scoring| {
        let names = scoring.lost(0.0).into_iter();
        names.map(|name| (name.document, name.nth)).collect::<Vec<_>>()
    };
    assert_eq!(lost(&scoring), [(1, 0), (1, 1)], "the newest mention of each");
    scoring.cover_text("handle_a1b2");
    assert_eq!(lost(&scoring), [(1, 1)]);
    assert_eq!(scoring.lost(1.0), []);
}

#[test]
fn a_name_that_was_given_up_is_worth_what_it_was() {
    let mut scoring = scoring(&[(Author::Result, "handle_a1b2"), (Author::Call, "handle_a1b2 4711")]);
    let state = |scoring: &Scoring| (worth(scoring, 1), scoring.lost(0.0).len());
    let (whole, one) = (scoring.mentions(1), scoring.mentions(0));
    let before = state(&scoring);
    scoring.cover(whole.clone());
    scoring.cover(one.clone());
    scoring.uncover(whole);
    assert_eq!(scoring.lost(0.0).len(), 1, "the other mention stays");
    scoring.uncover(one);
    let after = state(&scoring);
    assert!((after.0 - before.0).abs() < 1e-6 && after.1 == before.1, "{before:?} {after:?}");
    // What is listed is discounted still.
    scoring.cover_text("handle_a1b2");
    scoring.cover(scoring.mentions(0));
    scoring.uncover(scoring.mentions(0));
    assert!(scoring.is_covered(0) && !scoring.stays_named(0));
}

#[test]
fn what_the_user_says_again_and_again_is_a_repeat_but_for_the_newest() {
    let said = ["Continue.", "Write chapter 2.", "Continue.", "Continue.", "Write chapter 3.", "Continue."];
    let scoring = scoring(&said.map(|text| (Author::User, text)));
    let repeated: Vec<bool> = (0..said.len()).map(|at| scoring.is_repeated(at)).collect();
    assert_eq!(repeated, [true, false, true, true, false, false]);
}
