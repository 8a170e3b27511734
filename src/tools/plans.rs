//! Tells calls that say what is done, open or running.

use super::{speaks, words};

/// What a call says of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// All of what is done and what is open: the next call of the tool replaces it.
    Plan,
    /// Work that runs beside the conversation.
    Running,
}

/// Names of files that hold a plan, without their ending.
const FILES: [&str; 6] = ["todo", "todos", "plan", "tasks", "checklist", "progress"];

/// Words of tools that have one.
const LISTS: [&str; 3] = ["todo", "todos", "checklist"];
/// Words beside "plan": `update_plan`, but not `cancel_phone_plan`.
const BESIDE_PLAN: [&str; 8] = ["plan", "update", "write", "set", "create", "make", "edit", "save"];
/// Words beside "task": `task_tracker`.
const BESIDE_TASK: [&str; 4] = ["tracker", "list", "board", "progress"];

/// Words of tools that give work to another agent, and words of those that say so with "agent" or "task": Claude Code, `OpenHands`,
/// Cline.
const DELEGATING: [&str; 4] = ["spawn", "subagent", "delegate", "subtask"];
const BESIDE_AGENT: [&str; 12] =
    ["agent", "task", "sub", "call", "ask", "run", "start", "launch", "invoke", "dispatch", "use", "new"];

/// Fewest boxes of a checklist, and how they stand in its lines.
const MIN_BOXES: usize = 2;
const BOXES: [&str; 3] = ["- [ ] ", "- [x] ", "- [X] "];

/// Returns what a call of `tool` says of the work, which may name a file, or tell the user in its `arguments`, as JSON text; `None` if
/// nothing.
pub fn progress(tool: &str, file: Option<&str>, arguments: &str) -> Option<Progress> {
    let words = words(tool);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let is_plan = has(&["plan"]) && words.iter().all(|word| BESIDE_PLAN.contains(&word.as_str()));
    let is_file = || {
        let name = file?.rsplit(['/', '\\']).next()?;
        Some(FILES.iter().any(|list| name.split('.').next().is_some_and(|stem| stem.eq_ignore_ascii_case(list))))
    };
    let boxes = || BOXES.iter().map(|open| arguments.matches(open).count()).sum::<usize>();
    if has(&LISTS)
        || is_plan
        || has(&["task", "tasks"]) && has(&BESIDE_TASK)
        || is_file().unwrap_or(false)
        || speaks(tool) && boxes() >= MIN_BOXES
    {
        Some(Progress::Plan)
    } else if has(&DELEGATING)
        || has(&["agent", "task"]) && words.iter().all(|word| BESIDE_AGENT.contains(&word.as_str()))
    {
        Some(Progress::Running)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checklist_in_a_message_tells_progress() {
        let boxes = r#"{"content": "Plan:\n- [x] copy\n- [ ] check"}"#;
        for tool in ["message", "send_message"] {
            assert_eq!(progress(tool, None, boxes), Some(Progress::Plan), "{tool}");
        }
        for (tool, arguments) in [("write_file", boxes), ("message", r#"{"content": "- [ ] one"}"#)] {
            assert_eq!(progress(tool, None, arguments), None, "{tool}");
        }
    }

    #[test]
    fn a_call_says_how_the_work_stands_by_its_name_or_its_file() {
        for tool in ["todo_write", "TodoWrite", "update_plan", "task_tracker", "list_tasks", "write_todos"] {
            assert_eq!(progress(tool, None, ""), Some(Progress::Plan), "{tool}");
        }
        for file in ["TODO.md", "docs/plan.txt", "C:\\work\\Tasks.md"] {
            assert_eq!(progress("write_file", Some(file), ""), Some(Progress::Plan), "{file}");
        }
        for tool in ["spawn", "Task", "Agent", "delegate", "dispatch_agent", "new_task", "callSubAgent"] {
            assert_eq!(progress(tool, None, ""), Some(Progress::Running), "{tool}");
        }
        let others = ["cancel_phone_plan", "get_task", "list_agents", "assign_agent", "update_task"];
        for (tool, file) in others.map(|tool| (tool, None)).into_iter().chain([("read_file", Some("src/planner.rs"))]) {
            assert_eq!(progress(tool, file, ""), None, "{tool}");
        }
    }
}
