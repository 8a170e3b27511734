//! What is taken, given up and taken again.

use std::sync::Arc;

use super::rating::GAP;
use super::*;
use crate::select::scoring::Author;
use crate::text::analysis::{Analysis, Form};

const NOTE: f32 = 9.0;
const LINES: usize = 12;

/// Three groups of one text each, of lines of the same length.
fn scoring() -> Scoring {
    let line = |i: usize| format!("worker {} reports job_{:04} as finished and waits\n", i % 7, 1_000 + i);
    let document = |message: usize| {
        let text: String = (message * LINES..(message + 1) * LINES).map(line).collect();
        let analysis = Analysis::of(&text, Form::Outlined);
        assert_eq!(analysis.parts.len(), LINES);
        Document {
            message,
            author: Author::Result,
            effect: None,
            stays: false,
            asks: 0.0,
            analysis: Arc::clone(&analysis),
        }
    };
    Scoring::new((0..3).map(document).collect(), 3, None)
}

fn selector(scoring: &mut Scoring) -> Selector<'_> {
    let frame = |group: u8| Frame { tokens: 10.0, may_go: true, age: f32::from(3 - group), ..Frame::default() };
    let block = |group: usize| Block {
        document: Some(group),
        group,
        full: 180.0,
        shortest: 8.0,
        weight: 1.0,
        mark: FIRST_MARK,
        ..Block::default()
    };
    Selector::new(scoring, (0..3).map(frame).collect(), (0..3).map(block).collect(), NOTE)
}

fn parts(selector: &Selector<'_>) -> usize {
    let stays = |(block, part): &(usize, usize)| selector.stays(*block, *part);
    (0..3).flat_map(|block| (0..LINES).map(move |part| (block, part))).filter(stays).count()
}

#[test]
fn what_is_taken_is_within_the_room_and_grows_with_it() {
    let mut scoring = scoring();
    let mut selector = selector(&mut scoring);
    let mut before = 0;
    for room in [60.0, 120.0, 240.0, 480.0] {
        selector.grow_all(room);
        assert!(selector.used() <= room && selector.used() > room - 40.0, "{} of {room}", selector.used());
        assert!(parts(&selector) > before);
        before = parts(&selector);
    }
    selector.grow_all(1_000.0);
    assert_eq!(parts(&selector), 3 * LINES);
    assert!((0..3).all(|block| selector.kept(block) == Kept::Whole));
}

#[test]
fn what_is_given_up_can_be_taken_again() {
    let mut scoring = scoring();
    let mut selector = selector(&mut scoring);
    selector.grow_all(300.0);
    let (taken, used) = (parts(&selector), selector.used());
    selector.shrink(100.0, 1.0);
    assert!(parts(&selector) < taken && selector.used() <= used - 100.0);
    selector.grow_all(300.0);
    assert!(parts(&selector) + 2 >= taken && selector.used() <= 300.0);
}

#[test]
fn what_is_given_up_is_named_nowhere_again() {
    let mut scoring = scoring();
    let mut selector = selector(&mut scoring);
    let lost = |selector: &Selector<'_>| selector.lost(0.0).len();
    let (all, worth) = (lost(&selector), selector.unit_worth(0));
    selector.take_part(0, 0);
    assert!(lost(&selector) < all && selector.unit_worth(0) < worth);
    selector.shrink(1_000.0, 1.0);
    assert!(lost(&selector) == all && (selector.unit_worth(0) - worth).abs() < 1e-6);
}

#[test]
fn what_is_settled_is_given_up_last() {
    let mut scoring = scoring();
    let mut selector = selector(&mut scoring);
    selector.take_whole(1);
    selector.settle();
    let used = selector.used();
    selector.grow_all(1_000.0);
    selector.shrink(10_000.0, 1.0);
    assert!(selector.is_settled() && (selector.used() - used).abs() < 0.1);
    assert_eq!([0, 1, 2].map(|group| selector.is_open(group)), [false, true, false]);
    assert_eq!(selector.kept(1), Kept::Whole);
    selector.unsettle();
    selector.shrink(10_000.0, 1.0);
    assert!((0..3).all(|group| !selector.is_open(group)));
}

#[test]
fn a_part_between_two_that_stay_saves_a_mark() {
    let mut scoring = scoring();
    let mut selector = selector(&mut scoring);
    let mut cost = |part| {
        let before = selector.used();
        selector.take_part(0, part);
        selector.used() - before
    };
    let (_, apart, between) = (cost(3), cost(5), cost(4));
    assert!((apart - between - 2.0 * GAP).abs() < 0.1, "{apart} {between}");
}

#[test]
fn groups_that_have_changed_are_named_once() {
    let mut scoring = scoring();
    let mut selector = selector(&mut scoring);
    assert_eq!(selector.changed(), [0, 1, 2]);
    selector.take_part(2, 0);
    assert_eq!((selector.changed(), selector.changed()), (vec![2], vec![]));
}

#[test]
fn what_a_part_stands_under_is_taken_with_it_and_paid_for() {
    let row = |i: usize| format!("S-{i},Lamp number {i} of the catalogue,{}.90\n", i * 7 % 90);
    let text = "sku,title of the product,price in euros\n".to_owned() + &(0..40).map(row).collect::<String>();
    let analysis = Analysis::of(&text, Form::Outlined);
    let used_for = |parts: &[usize]| {
        let analysis = Arc::clone(&analysis);
        let document = Document { message: 0, author: Author::Result, effect: None, stays: false, asks: 0.0, analysis };
        let mut scoring = Scoring::new(vec![document], 1, None);
        let frame = Frame { tokens: 10.0, may_go: true, age: 1.0, ..Frame::default() };
        let block =
            Block { document: Some(0), full: 600.0, shortest: 8.0, weight: 1.0, mark: FIRST_MARK, ..Block::default() };
        let mut selector = Selector::new(&mut scoring, vec![frame], vec![block], NOTE);
        for &part in parts {
            selector.take_part(0, part);
        }
        (selector.used(), selector.stays(0, 0))
    };
    let (alone, with_head) = (used_for(&[30]), used_for(&[0, 30]));
    assert!(alone.1 && (alone.0 - with_head.0).abs() < 0.1, "{alone:?} {with_head:?}");
    assert!(alone.0 > used_for(&[0]).0);
}
