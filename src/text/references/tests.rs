use super::*;

const NAMES: &str =
    "Three names:\n\n1. **Kestrel**: short\n2. The customs officer\n   who lies\n10. Heron\n\nAll are free.";
const SECTIONS: &str = "Compared:\n\n### Option A: pottery\n\nIn Mill Lane.\n\n- cheap\n- near\n\n### Option B: rowing\n\n240 a year.\n\nWhich?";
const BULLETS: &str = "You could:\n- take the train\n- fly\n\nBoth take a day.";
const TABLE: &str = "Prices:\n\n| Place | Price |\n|---|---|\n| Crete | 2,480 |\n\nAll of May.";
const MAIL: &str = "A draft:\n\nSubject: heating\n\nDear Mr Fairweather,\n\nthe boiler has failed.\n\nKind regards";
const VERSES: &str = "Here:\n\nThe tide goes out,\nthe lamps stay lit,\na boy sells pears.\n\nIt has three lines on purpose, and the last of them is the one which the whole of it is about.";
const CODE: &str = "So:\n\n```python\ndef load(path):\n    return 1\n```\n\nDone.";
const CHINESE: &str = "可以：\n\n1. 宠物医院合作\n2. 小红书推广\n3. 线下展会\n\n都行。";

#[test]
fn a_question_finds_what_it_points_to() {
    for (question, text, found) in [
        ("Let's take the second option you gave.", NAMES, "2. The customs officer\n   who lies"),
        ("The last one, please, and then its price.", NAMES, "10. Heron"),
        ("What was number 10?", NAMES, "10. Heron"),
        ("Show me the list again.", NAMES, "1. **Kestrel**: short\n2. The customs officer\n   who lies\n10. Heron"),
        ("I take option B.", SECTIONS, "### Option B: rowing\n\n240 a year."),
        ("Tell me more about the first one", SECTIONS, "### Option A: pottery\n\nIn Mill Lane.\n\n- cheap\n- near"),
        ("Und die zweite Variante?", BULLETS, "- fly"),
        ("C'était quoi ta deuxième proposition ?", BULLETS, "- fly"),
        ("What was in the first row of your table?", TABLE, "| Place | Price |\n|---|---|\n| Crete | 2,480 |"),
        ("Zeig mir noch einmal die Tabelle.", TABLE, "| Place | Price |\n|---|---|\n| Crete | 2,480 |"),
        ("Make the mail shorter.", MAIL, &MAIL[10..]),
        ("Read me your poem again.", VERSES, "The tide goes out,\nthe lamps stay lit,\na boy sells pears."),
        ("Add a docstring to your function.", CODE, "```python\ndef load(path):\n    return 1\n```"),
        ("第三个方案是什么？", CHINESE, "3. 线下展会"),
        ("方案2多少钱？", CHINESE, "2. 小红书推广"),
    ] {
        let reference = Reference::of(question).unwrap_or_else(|| panic!("{question}"));
        let reference = reference.without_sections().unwrap_or(reference);
        let ranges = reference.find(text);
        assert_eq!(ranges.first().map(|at| &text[at.clone()]), Some(found), "{question} {reference:?}");
    }
}

#[test]
fn other_questions_point_to_nothing() {
    for question in
        ["What did we do last week?", "First, read a.rs.", "Give me ten seconds.", "Are you listening?", "Why?"]
    {
        assert!(Reference::of(question).is_none_or(|reference| !reference.points()), "{question}");
    }
}

#[test]
fn an_item_within_a_line_is_chosen_by_its_label() {
    let plans = "Plan A puts them by the band, plan B gives them the orangery, and plan C splits them. Think about it.";
    let routes = "Route 1 goes over Cluny, route 2 follows the Doubs.";
    let letters = "(a) He can't read. (b) He's afraid of his dog. (c) He owes the ferryman.";
    for (text, answer, item) in [
        (plans, "plan b it is", Some("plan B gives them the orangery, and")),
        (plans, "A. wait. C, A is too loud", Some("plan C splits them.")),
        (routes, "2", Some("route 2 follows the Doubs.")),
        (letters, "b. love it", Some("(b) He's afraid of his dog.")),
        ("方案一坐乐队旁边，方案二坐花房的长桌。", "方案二", Some("方案二坐花房的长桌。")),
        ("A案：洪水。B案：粉屋。C案：沈黙。", "Bで。いや、やっぱりC", Some("C案：沈黙。")),
        ("I have 1 dog and he has 2 cats.", "2", None),
        (plans, "I like it", None),
    ] {
        assert_eq!(chosen_in(text, answer).map(|at| text[at].trim()), item, "{answer}");
    }
}

#[test]
fn what_has_not_the_shape_is_not_meant() {
    for (question, text) in
        [("Your table?", NAMES), ("the code from before", TABLE), ("The third one.", BULLETS), ("Option C?", SECTIONS)]
    {
        assert_eq!(Reference::of(question).map(|reference| reference.find(text)), Some(Vec::new()), "{question}");
    }
}

#[test]
fn another_item_of_a_list_is_chosen_among_other_words() {
    let list = "Two halls and a farm:\n1. Alder Hall: near\n2. Kestrel Farm: wide\n3. the Old Mint: dry";
    let prose = "First, the farm: wide. It has a yard. Second, the mill: old. Then there is the mint, dry and cold.";
    for (text, message, item) in [
        (list, "We changed our minds: number 3.", Some("3. the Old Mint: dry")),
        (list, "We take number 3 of your list after all.", Some("3. the Old Mint: dry")),
        (list, "No, 3 it is. The second is gone.", Some("3. the Old Mint: dry")),
        (list, "Actually my sister prefers the first one. Let's go with that.", Some("1. Alder Hall: near")),
        (list, "Any ideas for the dance?", None),
        (prose, "The first one.", Some("First, the farm: wide. It has a yard.")),
        (prose, "Number 2, please.", Some("Second, the mill: old.")),
        (prose, "Nummer 3 bitte.", Some("Then there is the mint, dry and cold.")),
        ("The second hall was closed. First of all, call them.", "2", None),
    ] {
        assert_eq!(chosen_later(text, message).map(|at| text[at].trim()), item, "{message}");
    }
}

#[test]
fn a_section_is_found_by_its_number() {
    let english = "Here it is.\n\n## Chapter 5: The Weir\n\nA fox came.\n\nIt left.\n\n## Chapter 6\n\nRain.";
    let days = "Day 4: a fox with a torn ear.\nWe walk.\nDay 5: rest.";
    let chinese = "**第5章**\n\n一只狐狸。\n\n**第6章**";
    let mut sections = Vec::new();
    for (question, text, found) in [
        ("What happened in chapter 5?", english, "## Chapter 5: The Weir\n\nA fox came.\n\nIt left."),
        ("What happened in chapter five?", english, "## Chapter 5: The Weir\n\nA fox came.\n\nIt left."),
        ("Rewrite the 5th chapter, please.", english, "## Chapter 5: The Weir\n\nA fox came.\n\nIt left."),
        ("And the fifth chapter?", english, "## Chapter 5: The Weir\n\nA fox came.\n\nIt left."),
        ("Add 3 words to chapter V.", english, "## Chapter 5: The Weir\n\nA fox came.\n\nIt left."),
        ("What do we do on day 4?", days, "Day 4: a fox with a torn ear.\nWe walk."),
        ("Was geschah in Kapitel 12?", "Kapitel 12\nEin Fuchs.", "Kapitel 12\nEin Fuchs."),
        ("第5章讲了什么？", chinese, "**第5章**\n\n一只狐狸。"),
        ("第五章讲了什么？", chinese, "**第5章**\n\n一只狐狸。"),
        ("第十二课呢？", "第12课：狐狸", "第12课：狐狸"),
        ("5日目は何をする？", "5日目：狐\n6日目：雨", "5日目：狐"),
    ] {
        let reference = Reference::of(question).unwrap_or_else(|| panic!("{question}"));
        let ranges = reference.find(text);
        assert_eq!(ranges.first().map(|at| &text[at.clone()]), Some(found), "{question} {reference:?}");
        sections.push(reference);
    }
    for text in
        ["Chapter 5 was the one in which nobody came to the weir at all, as you said.", "Chapters: 5", "day 14: x", ""]
    {
        assert!(sections.iter().all(|section| section.find(text).is_empty()), "{text}");
    }
}
