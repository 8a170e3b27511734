//! Counts images, sound and files by the providers' published rules.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use regex::bytes::Regex;

use crate::message::Media;

use super::family::Family;

/// How a provider turns the size of an image into tokens.
#[derive(Debug, Clone, Copy)]
pub enum ImageRule {
    /// OpenAI: fit into 2048 x 2048, shortest side to 768, then `tile` for each 512 x 512 and `base` once.
    Tiles {
        /// Tokens of any image.
        base: u32,
        /// Tokens of a tile.
        tile: u32,
    },
    /// OpenAI's small models: patches of 32 x 32, at most 1,536, times `percent` of 100.
    Patches {
        /// The model's multiplier in percent.
        percent: u32,
    },
    /// Anthropic, "Vision": at most 1,568 pixels on the long edge, then width x height / 750.
    Claude,
    /// Google, "Understand images": 258 up to 384 x 384, else 258 for each tile of at most 768 x 768.
    Gemini,
    /// Alibaba, Qwen-VL: a token for each 28 x 28 pixels, at most 1,280, and 2 marks around them.
    Qwen,
    /// No published rule: the cost of Claude's largest image, which is above that of the open models tried.
    Unknown,
}

/// Tokens of an image whose size is not known, on providers without a smaller figure of their own.
const LARGE_IMAGE_TOKENS: u32 = 1_600;

/// Tokens of a page of a document. Anthropic, "PDF support": 1,500 to 3,000 a page.
const PAGE_TOKENS: u32 = 3_000;

/// Bytes of a page where the document does not show its pages: a page of text with fonts, rounded down.
const PAGE_BYTES: usize = 50_000;

/// Bytes of a page object in a document, rounded down: a document of fewer for each page does not have so many.
const PAGE_OBJECT_BYTES: usize = 32;

/// Base64 characters at each end of a document in which its pages are looked for. The page tree, which says how many there
/// are, is written first or last by nearly all programs; a document of up to twice as many is read as a whole.
const DOCUMENT_END_CHARS: usize = 1 << 19;

/// A page, or how many pages are below a node of the page tree.
static PAGES: LazyLock<Regex> = LazyLock::new(|| {
    #[allow(clippy::expect_used)] // a literal
    Regex::new(r"(?-u)/Type\s*/Page\b|/Count\s+([0-9]{1,9})\b").expect("the pattern is valid")
});

/// Bytes of a second of sound where the header does not say: MP3 at 128 kbit/s.
const AUDIO_BYTES_PER_SECOND: usize = 16_000;

/// Base64 characters decoded to find the size of an image; enough for a JPEG with large EXIF and colour profiles.
const HEADER_CHARS: usize = 1 << 18;

/// Returns the tokens of one part; `data` is its URL, data URL or bare base64. Reads at most the first quarter of a
/// megabyte of an image and a megabyte of a document, however large they are.
pub fn count(media: Media, data: &str, family: &Family) -> u32 {
    match media {
        Media::Image { low_detail } => match (family.images, low_detail) {
            (ImageRule::Tiles { base, .. }, true) => base,
            (rule, _) => image(rule, decode(first(payload(data), HEADER_CHARS)).and_then(|bytes| size(&bytes))),
        },
        Media::Audio => seconds(data).saturating_mul(family.audio_tokens_per_second),
        Media::File => file(data),
    }
}

fn image(rule: ImageRule, size: Option<(f64, f64)>) -> u32 {
    // 1024 x 1024, the size that OpenAI's guide uses as its example
    let (width, height) = size.unwrap_or((1024.0, 1024.0));
    let (short, long) = (width.min(height), width.max(height));
    match rule {
        ImageRule::Tiles { base, tile } => {
            let scale = (2048.0 / long).min(1.0);
            let scale = scale * (768.0 / (short * scale)).min(1.0);
            base + tile * whole((width * scale / 512.0).ceil() * (height * scale / 512.0).ceil())
        }
        ImageRule::Patches { percent } => {
            let patches = whole((width / 32.0).ceil() * (height / 32.0).ceil()).min(1536);
            (patches * percent).div_ceil(100)
        }
        ImageRule::Claude if size.is_some() => {
            let scale = (1568.0 / long).min(1.0);
            whole((width * scale * height * scale / 750.0).ceil()).min(LARGE_IMAGE_TOKENS)
        }
        ImageRule::Gemini if long <= 384.0 => 258,
        ImageRule::Gemini => {
            let unit = (short / 1.5).clamp(256.0, 768.0);
            258 * whole((width / unit).ceil() * (height / unit).ceil())
        }
        ImageRule::Qwen => whole((width / 28.0).round().max(1.0) * (height / 28.0).round().max(1.0)).min(1280) + 2,
        ImageRule::Claude | ImageRule::Unknown => LARGE_IMAGE_TOKENS,
    }
}

/// Rounds a count that a rule gives; sizes beyond any provider's limit end at a million.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped to the range of the result
fn whole(count: f64) -> u32 {
    count.clamp(0.0, 1e6) as u32
}

#[allow(clippy::cast_precision_loss)] // pixels
fn size(bytes: &[u8]) -> Option<(f64, f64)> {
    let size = imagesize::blob_size(bytes).ok()?;
    (size.width > 0 && size.height > 0).then_some((size.width as f64, size.height as f64))
}

fn seconds(data: &str) -> u32 {
    let bytes = payload_bytes(data);
    let per_second = decode(first(payload(data), 64))
        // RIFF header of a WAV file: bytes 28 to 31 hold the bytes of a second
        .filter(|head| head.len() >= 32 && head.starts_with(b"RIFF"))
        .map_or(AUDIO_BYTES_PER_SECOND, |head| {
            u32::from_le_bytes([head[28], head[29], head[30], head[31]]).max(1) as usize
        });
    u32::try_from(bytes.div_ceil(per_second)).unwrap_or(u32::MAX)
}

fn file(data: &str) -> u32 {
    let bytes = payload_bytes(data);
    let kind = data.strip_prefix("data:").and_then(|rest| rest.split([';', ',']).next()).unwrap_or_default();
    if kind.starts_with("text/") || kind == "application/json" {
        // a byte is at least a token's worth: the bound that holds for every vocabulary
        return u32::try_from(bytes).unwrap_or(u32::MAX);
    }
    let pages = visible_pages(payload(data)).max(bytes / PAGE_BYTES).max(1);
    u32::try_from(pages).unwrap_or(u32::MAX).saturating_mul(PAGE_TOKENS)
}

/// Returns how many pages the ends of a document show: those that stand there, or those that its page tree counts.
fn visible_pages(payload: &str) -> usize {
    let payload = payload.trim_end_matches('=');
    let ends = if payload.len() <= 2 * DOCUMENT_END_CHARS {
        [payload, ""]
    } else {
        [first(payload, DOCUMENT_END_CHARS), last(payload, DOCUMENT_END_CHARS)]
    };
    let (mut standing, mut counted) = (0, 0);
    for bytes in ends.into_iter().filter_map(decode) {
        for found in PAGES.captures_iter(&bytes) {
            match found.get(1) {
                None => standing += 1,
                Some(digits) => {
                    let number = std::str::from_utf8(digits.as_bytes()).ok().and_then(|digits| digits.parse().ok());
                    counted = counted.max(number.unwrap_or(0));
                }
            }
        }
    }
    counted = counted.min(payload.len() / PAGE_OBJECT_BYTES);
    // An outline has a `/Count` too, of its entries; where all pages stand there, they are right.
    if payload.len() <= 2 * DOCUMENT_END_CHARS && standing > 0 { standing } else { standing.max(counted) }
}

/// Returns the base64 text of a data URL, or `data` itself when it is no URL; nothing of a link.
fn payload(data: &str) -> &str {
    match data.split_once("base64,") {
        Some((_, payload)) => payload,
        None if data.contains("://") || data.starts_with("data:") => "",
        None => data,
    }
}

fn payload_bytes(data: &str) -> usize {
    payload(data).trim_end_matches('=').len() * 3 / 4
}

/// Returns the first `max_chars` of a payload, a multiple of four, or all of a shorter one; nothing of what is not base64.
fn first(payload: &str, max_chars: usize) -> &str {
    if payload.len() <= max_chars { payload } else { payload.get(..max_chars).unwrap_or_default() }
}

/// Returns the last characters of a payload, about `max_chars`, from where a group of four begins.
fn last(payload: &str, max_chars: usize) -> &str {
    payload.get((payload.len() - max_chars).next_multiple_of(4)..).unwrap_or_default()
}

fn decode(payload: &str) -> Option<Vec<u8>> {
    let bytes = STANDARD_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
    (!bytes.is_empty()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD;

    fn png(width: u32, height: u32) -> String {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend([8, 6, 0, 0, 0, 0, 0, 0, 0]);
        format!("data:image/png;base64,{}", STANDARD.encode(bytes))
    }

    fn image_tokens(model: &str, url: &str) -> u32 {
        count(Media::Image { low_detail: false }, url, Family::of(Some(model)))
    }

    #[test]
    fn images_follow_the_published_examples() {
        // OpenAI's guide: 1024 x 1024 costs 765, 2048 x 4096 costs 1105, low detail 85
        assert_eq!(image_tokens("gpt-4o", &png(1024, 1024)), 765);
        assert_eq!(image_tokens("gpt-4o", &png(2048, 4096)), 1105);
        assert_eq!(count(Media::Image { low_detail: true }, &png(2048, 4096), Family::of(Some("gpt-4o"))), 85);
        // OpenAI's guide: 1024 x 1024 is 1,024 patches, times 1.62 for gpt-4.1-mini
        assert_eq!(image_tokens("gpt-4.1-mini", &png(1024, 1024)), 1659);
        // Anthropic's guide: 200 x 200 about 54, 1000 x 1000 about 1,334
        assert_eq!(image_tokens("claude-opus-4-5", &png(200, 200)), 54);
        assert_eq!(image_tokens("claude-opus-4-5", &png(1000, 1000)), 1334);
        // Google's guide: 258 up to 384 x 384, six tiles for 960 x 540
        assert_eq!(image_tokens("gemini-2.5-pro", &png(384, 384)), 258);
        assert_eq!(image_tokens("gemini-2.5-pro", &png(960, 540)), 6 * 258);
    }

    #[test]
    fn an_image_of_unknown_size_has_a_documented_cost() {
        assert_eq!(image_tokens("gpt-4o", "https://example.com/a.png"), 765);
        assert_eq!(image_tokens("claude-opus-4-5", "https://example.com/a.png"), LARGE_IMAGE_TOKENS);
        assert_eq!(image_tokens("gpt-4o", "data:image/png;base64,!!!not base64!!!"), 765);
        assert_eq!(image_tokens("gpt-4o", ""), 765);
    }

    #[test]
    fn sound_costs_its_length() {
        let mut wav = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
        wav.extend(16_000_u32.to_le_bytes());
        wav.extend(32_000_u32.to_le_bytes());
        wav.resize(32_000 * 10, 0);
        let family = Family::of(Some("gpt-4o"));
        assert_eq!(count(Media::Audio, &STANDARD.encode(&wav), family), 10 * 10);
    }

    #[test]
    fn a_document_costs_its_pages() {
        let pdf = "%PDF-1.4 << /Type /Pages >> << /Type /Page >> << /Type /Page >>";
        let url = format!("data:application/pdf;base64,{}", STANDARD.encode(pdf));
        assert_eq!(count(Media::File, &url, Family::of(None)), 2 * PAGE_TOKENS);
        assert_eq!(count(Media::File, "file-abc", Family::of(None)), PAGE_TOKENS);
        let outlined =
            format!("%PDF-1.7 << /Type /Outlines /Count 40 >>{}", "<< /Type/Page /Parent 1 0 R >> ".repeat(3));
        let tokens = |pdf: &str| count(Media::File, &STANDARD.encode(pdf), Family::of(None));
        assert_eq!(tokens(&outlined), 3 * PAGE_TOKENS);
        assert_eq!(tokens("%PDF-1.7 << /Type /Pages /Count 999999999 >>"), PAGE_TOKENS, "more pages than bytes");
    }

    #[test]
    fn the_pages_of_a_large_document_are_those_that_its_page_tree_counts() {
        let tree = "<< /Type /Pages /Kids [3 0 R] /Count 412 >>";
        let image = "\u{1}\u{2}\u{3}stream".repeat(600_000);
        for pdf in [format!("%PDF-1.4 {tree} {image}"), format!("%PDF-1.4 {image} {tree} trailer")] {
            for padding in ["", "a", "ab"] {
                let url = format!("data:application/pdf;base64,{}", STANDARD.encode(format!("{pdf}{padding}")));
                assert_eq!(count(Media::File, &url, Family::of(None)), 412 * PAGE_TOKENS);
            }
        }
        let unknown = format!("data:application/pdf;base64,{}", STANDARD.encode(&image));
        assert_eq!(count(Media::File, &unknown, Family::of(None)), 108 * PAGE_TOKENS, "by its bytes");
    }

    #[test]
    fn what_is_not_base64_has_a_cost_and_no_panic() {
        for data in ["é".repeat(1 << 20), format!("data:application/pdf;base64,a{}", "€".repeat(1 << 19))] {
            for media in [Media::Image { low_detail: false }, Media::Audio, Media::File] {
                assert!(count(media, &data, Family::of(None)) > 0);
            }
        }
    }
}
