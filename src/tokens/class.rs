//! Classifies text by how vocabularies split it.

use crate::message::Message;

/// The classes of text for which the factors of `family.rs` were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextClass {
    /// Sentences in Latin script
    Prose,
    /// Programs
    Code,
    /// JSON and the like
    Json,
    /// Logs, listings, tables: many digits
    Logs,
    /// Chinese
    Chinese,
    /// Japanese
    Japanese,
    /// Several scripts, or a script that no class was measured for
    Mixed,
    /// base64, hashes, minified code: hardly a space
    Dense,
    /// Mostly emoji
    Emoji,
}

/// The kinds of text by which a provider's counts of whole prompts are compared with ours: vocabularies differ by script
/// most, and the kinds of text in one script take turns within every prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// Latin script: prose, programs, data
    Western,
    /// Chinese and Japanese
    EastAsian,
    /// Several scripts, or another one
    Mixed,
}

impl Script {
    /// Returns the name that Python and files use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Western => "western",
            Self::EastAsian => "east_asian",
            Self::Mixed => "mixed",
        }
    }

    /// Returns the script that most bytes of the messages are in; O(messages).
    pub fn prevailing(messages: &[Message<'_>]) -> Self {
        let mut bytes = [0_usize; 3];
        for message in messages {
            message.each_text(|text, media| {
                if media.is_none() {
                    bytes[Self::from(classify(text.as_str())) as usize] += text.as_str().len();
                }
            });
        }
        let [western, east_asian, mixed] = bytes;
        if east_asian > western.max(mixed) {
            Self::EastAsian
        } else if mixed > western {
            Self::Mixed
        } else {
            Self::Western
        }
    }
}

impl From<TextClass> for Script {
    fn from(class: TextClass) -> Self {
        match class {
            TextClass::Prose | TextClass::Code | TextClass::Json | TextClass::Logs | TextClass::Dense => Self::Western,
            TextClass::Chinese | TextClass::Japanese => Self::EastAsian,
            TextClass::Mixed | TextClass::Emoji => Self::Mixed,
        }
    }
}

/// Bytes looked at, half from the start and half from the middle: enough to tell, O(1) in the text.
const SAMPLE_BYTES: usize = 2048;

/// Returns the class of `text`; O(1).
pub fn classify(text: &str) -> TextClass {
    let half = SAMPLE_BYTES / 2;
    let head = &text[..text.floor_char_boundary(half)];
    let middle = if text.len() > SAMPLE_BYTES {
        let start = text.ceil_char_boundary(text.len() / 2);
        &text[start..text.floor_char_boundary(start + half)]
    } else {
        &text[head.len()..text.floor_char_boundary(SAMPLE_BYTES)]
    };
    let mut seen = Seen::default();
    for c in head.chars().chain(middle.chars()) {
        seen.add(c);
    }
    seen.class(head.trim_start().starts_with(['{', '[']))
}

#[derive(Default)]
struct Seen {
    chars: u32,
    spaces: u32,
    digits: u32,
    symbols: u32,
    quotes: u32,
    han: u32,
    kana: u32,
    other: u32,
    emoji: u32,
}

impl Seen {
    fn add(&mut self, c: char) {
        self.chars += 1;
        match c {
            '0'..='9' => self.digits += 1,
            '"' => self.quotes += 1,
            ' ' | '\n' | '\t' | '\r' => self.spaces += 1,
            '(' | ')' | '{' | '}' | '[' | ']' | ';' | '=' | '_' | '<' | '>' | '&' | '|' | '*' | '+' | '/' | '\\' => {
                self.symbols += 1;
            }
            '\u{3040}'..='\u{30ff}' => self.kana += 1,
            '\u{2e80}'..='\u{303f}'
            | '\u{3400}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{ff00}'..='\u{ffef}'
            | '\u{20000}'..='\u{3ffff}' => self.han += 1,
            '\u{200d}' | '\u{fe0f}' | '\u{2600}'..='\u{27bf}' | '\u{1f000}'..='\u{1faff}' => self.emoji += 1,
            // Latin letters with accents count like ASCII; scripts beyond have no class of their own
            '\u{370}'.. if c.is_alphabetic() => self.other += 1,
            _ => {}
        }
    }

    fn class(&self, starts_like_json: bool) -> TextClass {
        let share = |n: u32| f64::from(n) / f64::from(self.chars.max(1));
        let east_asian = self.han + self.kana;
        if share(self.emoji) > 0.3 {
            TextClass::Emoji
        } else if share(east_asian) > 0.5 {
            if self.kana * 10 > east_asian { TextClass::Japanese } else { TextClass::Chinese }
        } else if share(east_asian + self.other + self.emoji) > 0.08 {
            TextClass::Mixed
        } else if self.chars >= 64 && share(self.spaces) < 0.04 && share(self.quotes) < 0.05 {
            TextClass::Dense
        } else if (starts_like_json && share(self.quotes) > 0.02) || share(self.quotes) > 0.08 {
            TextClass::Json
        } else if share(self.digits) > 0.12 {
            TextClass::Logs
        } else if share(self.symbols) > 0.05 {
            TextClass::Code
        } else {
            TextClass::Prose
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Role;

    #[test]
    fn texts_fall_into_the_class_a_reader_would_choose() {
        let rows: Vec<String> = (0..40).map(|i| format!(r#"{{"id": {i}, "name": "row {i}", "ok": true}}"#)).collect();
        let cases = [
            (
                "The quick brown fox jumps over the lazy dog, and then it rests for a while.".to_owned(),
                TextClass::Prose,
            ),
            ("fn main() {\n    let x = [1, 2];\n    println!(\"{}\", x.len());\n}\n".repeat(9), TextClass::Code),
            (format!("[{}]", rows.join(", ")), TextClass::Json),
            ("2026-05-01T10:11:12 INFO worker-3 batch 4711 done in 312 ms\n".repeat(20), TextClass::Logs),
            ("请检查一下支付模块的日志，然后告诉我结果。".to_owned(), TextClass::Chinese),
            ("これは日本語の文章です。カタカナもあります。".to_owned(), TextClass::Japanese),
            ("请看 the log 文件 and tell me 结果 please".to_owned(), TextClass::Mixed),
            ("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo".repeat(9), TextClass::Dense),
            ("🙂🚀🎉🙂🚀🎉 ok".to_owned(), TextClass::Emoji),
            (String::new(), TextClass::Prose),
        ];
        for (text, class) in cases {
            assert_eq!(classify(&text), class, "{text:.60}");
        }
    }

    #[test]
    fn the_script_of_a_prompt_is_that_of_most_of_it() {
        let (chinese, english) = ("请检查一下支付模块的日志。".repeat(20), "Please check the logs. ".repeat(20));
        let of = |texts: &[&str]| {
            let messages: Vec<_> = texts.iter().map(|text| Message::new(Role::User, text)).collect();
            Script::prevailing(&messages)
        };
        assert_eq!(of(&[]), Script::Western);
        assert_eq!(of(&[&english, &english, &chinese]), Script::Western);
        assert_eq!(of(&[&english, &chinese]), Script::EastAsian);
        assert_eq!(of(&["Проверь, пожалуйста, журналы.", "ok"]), Script::Mixed);
    }
}
