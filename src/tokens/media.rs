//! What images, sound and files cost, by the providers' published rules.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

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

/// Bytes of a second of sound where the header does not say: MP3 at 128 kbit/s.
const AUDIO_BYTES_PER_SECOND: usize = 16_000;

/// Base64 characters decoded to find the size of an image; enough for a JPEG with large EXIF and colour profiles.
const HEADER_CHARS: usize = 1 << 18;

/// Returns the tokens of one part; `data` is its URL, data URL or bare base64.
pub fn count(media: Media, data: &str, family: &Family) -> u32 {
    match media {
        Media::Image { low_detail } => match (family.images, low_detail) {
            (ImageRule::Tiles { base, .. }, true) => base,
            (rule, _) => image(rule, decode(data, HEADER_CHARS).and_then(|bytes| size(&bytes))),
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
    let per_second = decode(data, 64)
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
    let visible = decode(data, usize::MAX).map_or(0, |bytes| {
        let pages = |mark: &[u8]| bytes.windows(mark.len()).filter(|window| window == &mark).count();
        // `/Pages` is the tree above the pages
        pages(b"/Type /Page").saturating_sub(pages(b"/Type /Pages"))
            + pages(b"/Type/Page").saturating_sub(pages(b"/Type/Pages"))
    });
    let pages = visible.max(bytes / PAGE_BYTES).max(1);
    u32::try_from(pages).unwrap_or(u32::MAX).saturating_mul(PAGE_TOKENS)
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

/// Decodes up to `max_chars` of the payload.
fn decode(data: &str, max_chars: usize) -> Option<Vec<u8>> {
    let payload = payload(data).trim_end_matches('=');
    let end = payload.len().min(max_chars);
    // whole groups of four when the text is cut
    let end = if end < payload.len() { end / 4 * 4 } else { end };
    let bytes = STANDARD_NO_PAD.decode(payload.as_bytes().get(..end)?).ok()?;
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
    }
}
