//! What belongs to a name in Chinese text, and the names of persons there.

use std::ops::Range;

use super::MAX_CODE_BYTES;
use crate::text::terms::is_han;

/// Most Chinese characters of a name before its letters or digits, 合同编号, and of one that begins inside a longer row of them: words
/// have mostly two.
const MAX_HAN: usize = 4;
const HAN_WORD: usize = 2;
/// What stands before a word in a sentence and belongs to none: verbs and words without a meaning of their own.
const BEFORE_WORD: &str = "的了着过在是有和与及或把给打到加按看问用要可以先再就也都还很将被让从对向跟至叫查找请寄收买卖换装填写选点进出去来走坐乘住租付花共约每等即如比由自起只又才能会该这那此其您你我他她它们下上";

/// The most usual family names, and what stands before a person in a sentence.
const FAMILIES: &str = "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文";
const BEFORE_PERSON: &str = "由给找叫和跟问请与向是让对了：、";

/// Returns a name with the Chinese characters that belong to it.
pub(super) fn with_han(text: &str, name: Range<usize>) -> Range<usize> {
    let before = text[..name.start].strip_suffix(' ').unwrap_or(&text[..name.start]);
    let is_sign = text[name.start..].starts_with(|c: char| !c.is_alphanumeric());
    let han = han_word(before);
    let start = if han > 0 && !is_sign { before.len() - han } else { name.start };
    let opens = text[..start].ends_with('(') && text[start..].starts_with(|c: char| c.is_ascii_digit());
    start - usize::from(opens && text[start..name.end].contains(')'))..name.end
}

/// Returns the bytes of the Chinese word that a text ends with, before a number with 第 as before others; 0 without one.
fn han_word(text: &str) -> usize {
    let bare = text.strip_suffix('第').unwrap_or(text);
    let row = || bare.chars().rev().take_while(|&c| is_han(c) && !BEFORE_WORD.contains(c));
    let characters = if row().nth(MAX_HAN).is_some() { HAN_WORD } else { MAX_HAN };
    text.len() - bare.len() + row().take(characters).map(char::len_utf8).sum::<usize>()
}

/// Returns a name with what it goes on with behind Chinese characters: `HT-2024-沪-0193`, 沪建规〔2023〕12号, （2023）京0105民初4471号.
pub(super) fn with_parts(text: &str, name: Range<usize>) -> Range<usize> {
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let mut end = name.end;
    while let Some(rest) = text[end..].strip_prefix('-') {
        let han: usize = rest.chars().take(MAX_HAN).take_while(|&c| is_han(c)).map(char::len_utf8).sum();
        let Some(next) = rest[han..].strip_prefix('-').filter(|_| han > 0) else { break };
        let left = next.trim_start_matches(|c: char| is_word(c) || c == '-').len();
        if left == next.len() {
            break;
        }
        end = text.len() - left;
    }
    let brackets = [('〔', '〕'), ('（', '）')];
    let bracket =
        brackets.iter().find(|(open, close)| text[..name.start].ends_with(*open) && text[end..].starts_with(*close));
    let Some((open, close)) = bracket else { return name.start..end };
    let behind = &text[end + close.len_utf8()..];
    let number = &behind[..behind.find(|c: char| !is_word(c) && !is_han(c)).unwrap_or(behind.len())];
    let Some(number) = number.find('号').map(|last| &number[..last + '号'.len_utf8()]) else {
        return name.start..end;
    };
    if number.len() > MAX_CODE_BYTES || !number.contains(is_word) {
        return name.start..end;
    }
    let start = name.start - open.len_utf8();
    let word = if *open == '〔' { han_word(&text[..start]) } else { 0 };
    start - word..end + close.len_utf8() + number.len()
}

/// Returns probable ranges of Chinese persons' names.
pub(super) fn persons(text: &str) -> Vec<Range<usize>> {
    let mut persons = Vec::new();
    if text.is_ascii() {
        return persons;
    }
    let mut before = None;
    for (at, c) in text.char_indices() {
        if before.is_some_and(|before| BEFORE_PERSON.contains(before)) && FAMILIES.contains(c) {
            let given: usize = text[at..].chars().take(3).take_while(|&c| is_han(c)).map(char::len_utf8).sum();
            if given > 2 * c.len_utf8() {
                persons.push(at..at + given);
            }
        }
        before = Some(c);
    }
    persons
}
