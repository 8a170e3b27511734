//! Knows documents that tell the model how to work: a skill, the rules of a repository, the policy of a shop.

use serde_json::Value;

use super::{Action, words};

/// Words of the names of such documents, and of the tools that show them.
const INSTRUCTING: [&str; 52] = [
    "agents",
    "claude",
    "gemini",
    "skill",
    "skills",
    "instruction",
    "instructions",
    "policy",
    "policies",
    "rules",
    "guideline",
    "guidelines",
    "guidance",
    "handbook",
    "runbook",
    "playbook",
    "conventions",
    "contributing",
    "procedure",
    "procedures",
    "sop",
    "regulations",
    "soul",
    "styleguide",
    "housestyle",
    "checklist",
    "briefing",
    "anweisung",
    "anweisungen",
    "richtlinie",
    "richtlinien",
    "regeln",
    "leitfaden",
    "vorgaben",
    "consignes",
    "règles",
    "politique",
    "instrucciones",
    "normas",
    "reglas",
    "política",
    "politica",
    "procedimiento",
    "instruções",
    "regras",
    "istruzioni",
    "regole",
    "правила",
    "инструкция",
    "инструкции",
    "регламент",
    "политика",
];

/// The same in scripts without spaces.
const WIDE: [&str; 11] = ["规则", "规范", "政策", "手册", "须知", "指南", "流程", "規則", "手順", "方針", "マニュアル"];

/// Endings of documents; a program may be called as one, too: `rules.py`.
const ENDINGS: [&str; 7] = ["md", "mdc", "mdx", "txt", "rst", "adoc", "org"];

/// Longer arguments name no document.
const MAX_ARGUMENTS_BYTES: usize = 400;

/// Returns whether a call shows instructions, by the name of its tool or of the files that its arguments name.
pub fn instructs(tool: &str, arguments: &str) -> bool {
    let tells = |name: &str| {
        words(name).iter().any(|word| INSTRUCTING.contains(&word.as_str()))
            || WIDE.iter().any(|wide| name.contains(wide))
    };
    if tells(tool) {
        return true;
    }
    let may_tell = arguments.len() <= MAX_ARGUMENTS_BYTES && {
        let small = arguments.to_lowercase();
        INSTRUCTING.iter().chain(&WIDE).any(|word| small.contains(word))
    };
    if !may_tell {
        return false;
    }
    let values: Value = serde_json::from_str(arguments).unwrap_or_default();
    Action::of(tool, &values).files.iter().any(|file| {
        let name = file.rsplit(['/', '\\']).next().unwrap_or_default();
        let (stem, ending) = name.rsplit_once('.').unwrap_or((name, "md"));
        ENDINGS.contains(&&*ending.to_ascii_lowercase()) && tells(stem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_known_by_the_names_of_their_files_or_tools() {
        let of = |tool: &str, file: &str| instructs(tool, &serde_json::json!({ "path": file }).to_string());
        for file in [
            "skills/weather/SKILL.md",
            "AGENTS.md",
            "docs/style-guidelines.md",
            "C:\\w\\Return_Policy.txt",
            "退货政策.md",
        ] {
            assert!(of("read_file", file), "{file}");
        }
        for file in ["src/rules.py", "notes/weather.md", "policy.json", "skills/weather/data.csv"] {
            assert!(!of("read_file", file), "{file}");
        }
        assert!(instructs("get_policy", "{}") && instructs("loadSkill", r#"{"name": "pdf"}"#));
        assert!(instructs("exec", r#"{"command": "cat skills/pdf/SKILL.md"}"#));
        assert!(!instructs("get_order", "{}") && !instructs("web_search", r#"{"query": "skills of otters"}"#));
    }
}
