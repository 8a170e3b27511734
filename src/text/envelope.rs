//! Finds what hosts and channels put around the words of a user: times, senders, mentions, commands, a block about the
//! channel; and what agents without tool calls hand over as a message of the user.

mod blocks;

use std::ops::Range;

use super::dates::{first_day, spellings};
use blocks::block_before;
pub use blocks::{blank_host_notes, host_blocks, without_host_blocks};

/// Most bytes of one such item, most items, and bytes in which the next line is searched.
const MAX_ADDRESS_BYTES: usize = 160;
const MAX_ADDRESSES: usize = 4;
const NEAR_BYTES: usize = 1_024;
const RUNTIME_CONTEXT: &str = "[Runtime Context";

/// Most words of a time: "Message Time", "Mon UTC", "Omar".
const MAX_STAMP_WORDS: usize = 3;

/// Returns the range of what stands first in a text, if it is the time.
fn stamp(text: &str) -> Option<Range<usize>> {
    let rest = text.trim_start();
    let start = text.len() - rest.len();
    let end = address(rest)?;
    let item = &rest[..end];
    let words = item.split(|c: char| !c.is_alphanumeric()).filter(|word| word.starts_with(char::is_alphabetic)).count();
    let is_file =
        item.as_bytes().windows(2).any(|pair| matches!(pair[0], b'/' | b'.') && pair[1].is_ascii_alphabetic());
    (words <= MAX_STAMP_WORDS && !is_file && first_day(item).is_some()).then_some(start..start + end)
}

/// Returns the start of the user's words: behind `[Message Time: …]`, `<@U123>`, `@bot`, `/ask`, `10:42` and the like.
///
/// A log keeps its times: there the next line starts like the first. O(1), except for blocks of the host and white space.
pub fn start(text: &str) -> usize {
    let mut start = 0;
    for _ in 0..MAX_ADDRESSES {
        let rest = text[start..].trim_start();
        let end = || address(rest).filter(|_| spoken(rest).is_none());
        let Some(end) = block_before(rest).or_else(end) else { break };
        start = text.len() - rest.len() + end;
    }
    start
}

/// Parts of labels of what was spoken, in lower case. Source: nanobot 0.1.3 to 0.3.5, `[transcription: …]` of Telegram, Slack and
/// others; the names of voice messages elsewhere.
const SPOKEN: [&str; 9] = ["transcri", "voice", "audio", "speech", "sprach", "голос", "语音", "語音", "音声"];
const MAX_LABEL_BYTES: usize = 40;

/// Returns the range of the words in a line that says that they were spoken: `[transcription: Never call me.]`. The bracket may
/// close in a later line. `None` for a file's name. O(1) but for white space.
pub fn spoken(line: &str) -> Option<Range<usize>> {
    let behind = line.trim_start().strip_prefix('[')?;
    let colon = behind[..behind.floor_char_boundary(MAX_LABEL_BYTES)].find([':', '：'])?;
    let label = behind[..colon].to_lowercase();
    let words = behind[colon..].trim_start_matches([':', '：']).trim_start();
    let start = line.len() - words.len();
    let words = words.lines().next()?.trim_end();
    let words = words.strip_suffix(']').unwrap_or(words);
    let is_name = words.is_ascii() && !words.contains(' ');
    (!is_name && SPOKEN.iter().any(|part| label.contains(part))).then_some(start..start + words.len())
}

/// How the result of a call begins in agents that write their calls as text: `ReAct`, SWE-agent, `OpenHands`, mini-swe-agent, and chat
/// templates with a message of the user for it. Cline also sends what the editor shows.
const OBSERVATIONS: [&str; 12] = [
    "OBSERVATION:",
    "Observation:\n",
    "EXECUTION RESULT of [",
    "<observation>",
    "<returncode>",
    "<tool_response>",
    "<tool_result>",
    "<tool_results>",
    "<function_results>",
    "<function_response>",
    "<environment_details>",
    "[ERROR] You did not use a tool",
];
/// How it ends in SWE-agent, which shows its state and prompt.
const PROMPT: &str = "\nbash-$";
const STATE: &str = "\n(Current directory: ";
const MAX_STATE_BYTES: usize = 512;
const SHELL: &str = "shell";
/// Cline: "[read for 'a.py'] Result:", with a command of this many bytes at most.
const RESULT: &str = "] Result:\n";
const MAX_CALL_BYTES: usize = 1_024;
/// What the user says in one: Cline.
const OF_USER: [&str; 3] = ["<feedback>", "<answer>", "<user_message>"];

/// Returns the tool whose result a text with the role of a user is: a shell, where none is named. `None` for what the user says. O(1).
pub fn observed_tool(text: &str) -> Option<&str> {
    let text = text.trim();
    let near = &text[..text.floor_char_boundary(MAX_CALL_BYTES)];
    let call = near.strip_prefix('[').unwrap_or_default();
    let (tool, rest) = call.split_at(call.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(call.len()));
    let is_named = rest.starts_with(RESULT) || rest.starts_with(" for '") && rest.contains(RESULT);
    let state = || &text[text.ceil_char_boundary(text.len().saturating_sub(MAX_STATE_BYTES))..];
    let is_of_shell = || {
        OBSERVATIONS.iter().any(|start| text.starts_with(start)) || text.ends_with(PROMPT) && state().contains(STATE)
    };
    let tool = if is_named { tool } else { Some(SHELL).filter(|_| is_of_shell())? };
    Some(tool).filter(|_| !OF_USER.iter().any(|tag| near.contains(tag)))
}

/// Returns whether a text with the role of a user is the result of a call. O(1).
pub fn is_observation(text: &str) -> bool {
    observed_tool(text).is_some()
}

/// Most bytes of a heading, and of the name or the date in it; most words of a name.
const MAX_HEADING_BYTES: usize = 96;
const MAX_NAME_BYTES: usize = 40;
const MAX_NAME_WORDS: usize = 4;
const MAX_PARTICLE_BYTES: usize = 3;

/// Returns the end of what says at the start of a text who speaks, or when: what [`start`] finds, "Mira: ", a line with a date. 0
/// without it. O(1), as [`start`].
pub fn heading(text: &str) -> usize {
    let rest = text[start(text)..].trim_start_matches(' ');
    let start = text.len() - rest.len();
    let near = &rest[..rest.floor_char_boundary(MAX_NAME_BYTES)];
    let end = start + speaker(near).or_else(|| date(near)).unwrap_or(0);
    if end <= MAX_HEADING_BYTES && !text[end..].trim().is_empty() { end } else { 0 }
}

/// Returns whether a text says at its start who speaks: "Mira: ". O(1), as [`start`].
pub fn names_speaker(text: &str) -> bool {
    let rest = text[start(text)..].trim_start_matches(' ');
    speaker(rest).is_some()
}

/// Returns what says at the start of a line who of a group speaks: `[Lena]:`, `<Lena>`, `[Bob (12345)]`. A level of a log is no name. O(1).
pub fn member(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let close = match line.bytes().next()? {
        b'[' => ']',
        b'<' => '>',
        _ => return None,
    };
    let near = &line[1..line.floor_char_boundary(MAX_NAME_BYTES).max(1)];
    let name = &near[..near.find(close)?];
    // With an id or a handle behind it.
    let bare = name.split(" (").next()?;
    let is_level = name.len() > 2 && name.bytes().all(|byte| byte.is_ascii_uppercase());
    let end = name.len() + 2;
    (is_name(bare) && !is_level).then(|| &line[..end + usize::from(line[end..].starts_with(':'))])
}

/// Returns the name with its colon that a line starts with: `Lena:`. O(1).
pub fn named(line: &str) -> Option<&str> {
    let line = line.trim_start();
    speaker(line).map(|end| line[..end].trim_end())
}

/// Returns a line without what says who speaks. O(1).
pub fn without_speaker(line: &str) -> &str {
    let bare = line.trim_start();
    let speaker = member(bare).or_else(|| named(bare)).unwrap_or_default();
    bare[speaker.len()..].trim_start()
}

/// Returns the end of the name with a colon that a text starts with.
fn speaker(text: &str) -> Option<usize> {
    let text = &text[..text.floor_char_boundary(MAX_NAME_BYTES)];
    let (name, behind) = text.split_once([':', '：'])?;
    let said = behind.trim_start_matches(' ');
    let is_apart = said.len() < behind.len() || behind.starts_with('\n') || text[name.len()..].starts_with('：');
    (is_name(name) && is_apart).then_some(text.len() - said.len())
}

/// Returns whether words may name somebody: "Anna de la Cruz", but not "We moved".
fn is_name(words: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '.' | '-' | '_' | '\'');
    let is_capital = |c: char| c.is_uppercase() || c.is_alphabetic() && !c.is_ascii();
    let is_short = |word: &str| word.len() <= MAX_PARTICLE_BYTES;
    words.starts_with(is_capital)
        && words.chars().all(is_of_name)
        && words.split(' ').all(|word| word.starts_with(is_capital) || is_short(word))
        && words.split(' ').count() <= MAX_NAME_WORDS
}

/// Returns the end of the line with a date or a time, and little else, that a text starts with.
fn date(text: &str) -> Option<usize> {
    let (line, _) = text.split_once('\n')?;
    let digits = |c: char| c.is_ascii_digit();
    let mut numbers = line.match_indices(digits).map(|(at, _)| at).filter(|&at| !line[..at].ends_with(digits));
    numbers.any(|at| !spellings(line, at).is_empty()).then_some(line.len() + 1)
}

/// Returns the end of such an item, if `text` starts with one and goes on.
fn address(text: &str) -> Option<usize> {
    let text = &text[..text.floor_char_boundary(NEAR_BYTES)];
    let line = text.lines().next()?;
    let near = &line[..line.floor_char_boundary(MAX_ADDRESS_BYTES)];
    let word = near.split_whitespace().next()?;
    let is_name = |name: &str| name.len() > 1 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let end = match word.as_bytes()[0] {
        b'[' => closing(near).filter(|&end| !near[end..].starts_with('(')).map(|end| {
            // "[Lena]: [Reply to Omar: hi]"
            end + usize::from(near[end..].starts_with(": "))
        }),
        b'<' if is_tag(word) => near.find('>').map(|end| end + 1),
        b'@' | b'/' if is_name(&word[1..]) => Some(word.len()),
        b'0'..=b'9' if is_clock(word) => Some(word.len()),
        _ => None,
    }?;
    let (rest, first) = (&text[end..], text.as_bytes()[0]);
    // "[image: /media/a.jpg]"
    let is_attachment = |line: &str| closing(line.trim()) == Some(line.trim().len());
    let is_log = !line[end..].trim().is_empty()
        && rest
            .lines()
            .skip(1)
            .find(|line| !line.trim().is_empty())
            .is_some_and(|next| next.trim_start().as_bytes().first() == Some(&first) && !is_attachment(next));
    (!rest.trim().is_empty() && !is_log).then_some(end)
}

/// Returns the end of the brackets with which a text begins, of others in them, too. O(bytes).
pub fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.bytes().enumerate() {
        match c {
            b'[' => depth += 1,
            b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return (at > 0).then_some(at + 1);
        }
    }
    None
}

/// Returns the end of what others said in a thread before the message to the bot, which nanobot puts before it.
///
/// Source: nanobot 0.1.5.post3 to 0.3.5, `SlackChannel`, from 0.3.0 on `MattermostChannel`, too.
pub fn thread_context(text: &str) -> Option<usize> {
    const OPENS: &str = "thread context before this mention:\n";
    const ENDS: &str = "\n\nCurrent message:\n";
    let opens = text[..text.floor_char_boundary(NEAR_BYTES)].find(OPENS)?;
    text[opens..].find(ENDS).map(|end| opens + end + ENDS.len())
}

/// Returns whether a word is or begins a tag or a mention: `<@U123>`, `<user`, `<message>`.
fn is_tag(word: &str) -> bool {
    word[1..].starts_with(|c: char| c == '@' || c == '!' || c.is_ascii_alphabetic())
}

/// Returns whether a word is a time of day, maybe behind a date.
fn is_clock(word: &str) -> bool {
    word.contains(':') && word.bytes().all(|byte| byte.is_ascii_digit() || b":.-+/,TZ".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_channel_puts_before_a_text_is_not_the_users() {
        let cases = [
            "[Message Time: 2026-11-25T10:11:11.975363]\n",
            "[Message Time: 2026-11-25T10:11:11] ",
            "[Runtime Context — metadata only]\nCurrent Time: 2026-11-25\nChannel: cli\n\n",
            "[Runtime Context]\nChannel: cli\n[/Runtime Context]\n\n[Ada] ",
            "<@U0AB2C> ",
            "<@!8812> <@99> ",
            "<user name=\"Ada\">",
            "@nanobot ",
            "/ask ",
            "10:42 ",
            "2026-11-25T10:42:03Z [telegram] @bot ",
        ];
        for before in cases {
            for text in ["Metric units.", "叫我老王。", "Never push to main.\nAnd be brief."] {
                let whole = format!("{before}{text}");
                assert_eq!(whole[start(&whole)..].trim(), text, "{whole}");
            }
        }
    }

    #[test]
    fn what_was_spoken_is_told_from_its_label() {
        let words = |line| spoken(line).map(|range| &line[range]);
        assert_eq!(words("[transcription: Never call me.]"), Some("Never call me."));
        assert_eq!(words("[语音转文字：以后别给我打电话]\n"), Some("以后别给我打电话"));
        assert_eq!(words("[Voice message: never call me"), Some("never call me"));
        for other in ["[voice: /root/a.ogg]", "[info: all is well]", "transcription: it rains", "[voice] it rains", "["]
        {
            assert_eq!(words(other), None, "{other}");
        }
        for text in ["[transcription: 别叫我]", "[transcription: Never call me.]\n[image: a.png]"] {
            assert_eq!(start(text), 0, "{text}");
        }
    }

    #[test]
    fn what_an_agent_hands_over_as_a_users_is_the_result_of_a_call() {
        for observed in [
            "OBSERVATION:\nfound 3 files",
            "Observation:\n21 degrees",
            "<returncode>0</returncode>\n<output>\nok\n</output>",
            "src/a.py:3: error\n(Open file: n/a)\n(Current directory: /repo)\nbash-$",
            "[read_file for 'src/a.py'] Result:\nimport os",
            "[execute_command for 'grep -n \"[a]\" b'] Result:\nCommand executed.",
            "[update_todo_list] Result:\nok",
            "<environment_details>\n# Open tabs\n</environment_details>",
        ] {
            assert!(is_observation(observed), "{observed}");
        }
        for said in [
            "[attempt_completion] Result:\n\nThe user has provided feedback.\n<feedback>\nNever push.\n</feedback>",
            "[ask_followup_question for 'Which?'] Result:\n\n<answer>\nThe second.\n</answer>",
            "[urgent] Result: it fails",
            "[Ada] Observation: it rains",
            "My observation: it rains.",
            "Run it in bash-$",
            "Observation: it fails at night. Never restart it.",
            "Never restart it. This is what I see:\nok\nbash-$",
            "",
        ] {
            assert!(!is_observation(said), "{said}");
        }
    }

    #[test]
    fn what_a_user_writes_or_pastes_begins_where_it_does() {
        let texts = [
            "Metric units.",
            "[a link](https://x.y) says so",
            "/etc/hosts is mine",
            "3 < 5 holds",
            "42 things",
            "[10:42] lost\n[10:43] found",
            "[10:42] lost [a]\n\n[10:43] found [b]",
            "10:42 lost\n10:43 found",
            "@ noon",
            "[nothing else]",
            "<3",
            "",
        ];
        for text in texts {
            assert_eq!(start(text), 0, "{text}");
        }
    }

    #[test]
    fn who_speaks_and_when_is_a_heading() {
        for head in [
            "Mira: ",
            "Anna-Lena Groß: ",
            "Ana de la Cruz: ",
            "陈静：",
            "陈静: ",
            "[2026-02-04 10:05] ",
            "2026-03-19\n",
            "Thursday, 19 March 2026\n",
            "3月25日 周三\n",
            "02.07.2026\n",
            "[10:05] Mira: ",
        ] {
            let text = format!("{head}We moved to Graz. It rains.");
            assert_eq!(text[..heading(&text)].trim(), head.trim());
        }
        for text in [
            "We moved: to Graz, in 2026.",
            "it rains: a lot",
            "a:b",
            "2026-03-19",
            "Mira:",
            "http://x.y z",
            "5 eggs\nmilk",
        ] {
            assert_eq!(heading(text), 0, "{text}");
        }
    }
}
