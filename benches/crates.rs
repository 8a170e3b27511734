//! Times the counter beside the two crates that it replaced: `benches/run.py crates` runs this.
//!
//! The argument is a folder with a file of JSON for each class of text: a list of repetitions, each a list of texts that no other
//! has. The two take turns, text after text is counted once, and each line that is printed has a vocabulary, a class, how many times
//! as fast the counter is (median, least, most), and its megabytes a second.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use nanobot_context::tokens::Encoding;

const VOCABULARIES: [Encoding; 10] = [
    Encoding::O200kBase,
    Encoding::Cl100kBase,
    Encoding::DeepSeekV3,
    Encoding::Qwen2,
    Encoding::Qwen35,
    Encoding::Glm4,
    Encoding::Glm5,
    Encoding::KimiK2,
    Encoding::MiniMaxM2,
    Encoding::Tekken,
];

/// What counted before: `toktok` for these, `tiktoken` for all others.
const OF_TOKTOK: [Encoding; 3] = [Encoding::O200kBase, Encoding::Cl100kBase, Encoding::Qwen35];
/// Bytes that `toktok` 0.3.0 reads behind a text.
const PADDING: usize = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("the argument is a folder with texts")?;
    let mut files: Vec<_> = std::fs::read_dir(Path::new(&folder))?.collect::<Result<_, _>>()?;
    files.sort_by_key(std::fs::DirEntry::file_name);
    for encoding in VOCABULARIES {
        let crates: Box<dyn Fn(&str) -> usize> = if OF_TOKTOK.contains(&encoding) {
            let tokenizer = toktok::Tokenizer::builtin(encoding.name())?;
            Box::new(move |text| {
                let mut bytes = text.as_bytes().to_vec();
                bytes.resize(text.len() + PADDING, 0);
                let mut ids = Vec::new();
                tokenizer.encode_into(&bytes[..text.len()], &mut ids);
                ids.len()
            })
        } else {
            let tokenizer = tiktoken::get_encoding(encoding.name()).ok_or("no such vocabulary")?;
            Box::new(|text| tokenizer.count(text))
        };
        let vocabulary = encoding.load();
        let ours = |text: &str| vocabulary.count(text);
        for file in &files {
            let repetitions: Vec<Vec<String>> = serde_json::from_slice(&std::fs::read(file.path())?)?;
            let (mut ratios, mut speeds) = (Vec::new(), Vec::new());
            for (turn, texts) in repetitions.iter().enumerate() {
                let (our_seconds, their_seconds) = if turn % 2 == 0 {
                    (seconds(texts, &ours), seconds(texts, &crates))
                } else {
                    let theirs = seconds(texts, &crates);
                    (seconds(texts, &ours), theirs)
                };
                // the first one warms
                if turn > 0 {
                    ratios.push(their_seconds / our_seconds);
                    speeds.push(megabytes(texts) / our_seconds);
                }
            }
            ratios.sort_by(f64::total_cmp);
            speeds.sort_by(f64::total_cmp);
            let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
            let (ratio, speed) = (ratios[ratios.len() / 2], speeds[speeds.len() / 2]);
            let class = file.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
            println!("{}\t{class}\t{ratio}\t{least}\t{most}\t{speed}", encoding.name());
        }
    }
    Ok(())
}

fn seconds(texts: &[String], count: &dyn Fn(&str) -> usize) -> f64 {
    let start = Instant::now();
    for text in texts {
        std::hint::black_box(count(std::hint::black_box(text)));
    }
    start.elapsed().as_secs_f64()
}

#[allow(clippy::cast_precision_loss)]
fn megabytes(texts: &[String]) -> f64 {
    texts.iter().map(String::len).sum::<usize>() as f64 / 1e6
}
