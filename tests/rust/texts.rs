//! Texts of every kind that has surprised a tokenizer or a cut, at any length.

/// What a text is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Prose,
    Code,
    Logs,
    Json,
    Chinese,
    ChineseWithoutPunctuation,
    Japanese,
    Emoji,
    Mixed,
    Base64,
    OneLetter,
    Spaces,
    Equals,
    Newlines,
    SpecialTokens,
    Controls,
    Digits,
    Quotes,
    /// What compression itself leaves behind.
    Marks,
}

pub const KINDS: [Kind; 19] = {
    use Kind::*;
    [
        Prose,
        Code,
        Logs,
        Json,
        Chinese,
        ChineseWithoutPunctuation,
        Japanese,
        Emoji,
        Mixed,
        Base64,
        OneLetter,
        Spaces,
        Equals,
        Newlines,
        SpecialTokens,
        Controls,
        Digits,
        Quotes,
        Marks,
    ]
};

impl Kind {
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Prose => &["the ", "quick ", "explanation ", "of ", "seven ", "don't ", "must ", "rests. ", "\n"],
            Self::Code => &["fn main() {\n", "    let x = [1, 2];\n", "    return x.len() == 0;\n", "}\n", "// todo\n"],
            Self::Logs => &["2026-05-01T10:11:12 ", "INFO ", "worker-3 ", "4711 ", "in 312 ms\n", "0x7ffe12 "],
            Self::Json => &["{\"id\": ", "12, ", "\"name\": ", "\"row\"}", ", ", "[true, null]", "1.50e-7 "],
            Self::Chinese => &["请检查一下", "支付模块", "的日志，", "然后告诉我", "结果。", "必须", "\n"],
            Self::ChineseWithoutPunctuation => &["请检查", "支付", "模块", "日志", "结果", "数据"],
            Self::Japanese => &["これは", "日本語の", "文章です。", "カタカナも", "あります。"],
            Self::Emoji => &["🙂", "👍🏽", "👨\u{200d}👩\u{200d}👧", "🇩🇪", "❤️", " "],
            Self::Mixed => &["请看 ", "the log ", "文件 ", "and 🙂 ", "Привет ", "e\u{301}", "𝟙 ", "हिन्दी "],
            Self::Base64 => &["QUJDREVGR0hJ", "SktMTU5PUFFS", "/U1RV+", "zg5OTk5"],
            Self::OneLetter => &["a"],
            Self::Spaces => &[" "],
            Self::Equals => &["="],
            Self::Newlines => &["\n", "\r\n", "\n\n\n"],
            Self::SpecialTokens => &["<|endoftext|>", "<|im_start|>", "</s>", "[INST]", "<|fim_prefix|>", " "],
            Self::Controls => &["\0", "\u{1}", "\u{7f}", "\u{85}", "\u{feff}", "\u{fffd}", "\u{10ffff}", "\u{e000}"],
            Self::Digits => &["0", "1234567890", "999", "٣", "½"],
            Self::Quotes => &["\"", "\\", "\\\"", "'", "\\u0041", "\n", "{", "}"],
            Self::Marks => &[
                "\n[... 12 characters left out ...]\n",
                "\n[... 3 lines, 1,204 characters left out ...]\n",
                "[... 40 characters left out]",
                "[message left out: 123 tokens]",
                "word ",
            ],
        }
    }

    /// Returns a text of about `bytes` bytes, the same for the same `seed`.
    pub fn text(self, bytes: usize, seed: u64) -> String {
        let words = self.words();
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut text = String::with_capacity(bytes + 32);
        while text.len() < bytes {
            // The generator of Knuth's MMIX; the high bits are the good ones.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(words[(state >> 33) as usize % words.len()]);
        }
        text
    }
}
