//! Reads the outcome of a call from its result: a failure, or an exit code.

use super::fields::{Field, fields};

/// Returns whether a result says that the call failed: at its start, or anywhere in a line that is all of it.
pub fn has_failed(result: &str) -> bool {
    let result = result.trim();
    // ASCII letters change case in place.
    let head = result[..result.floor_char_boundary(MAX_FAILURE_BYTES)].to_ascii_lowercase();
    FAILED_STARTS.iter().any(|start| head.starts_with(start))
        || (result.len() <= MAX_FAILURE_BYTES
            && (FAILED.iter().any(|sign| says(&head, sign)) || head.lines().any(is_diagnostic)))
        || (result.starts_with('{')
            && (fields(result).take(FIRST_FIELDS).any(|field| field.depth == 1 && has_failing_code(&field))
                || ends_with_failing_code(result)))
}

/// Returns whether a field is the status of HTTP of what was refused, or the code with which a command failed.
fn has_failing_code(Field { key, value, .. }: &Field<'_>) -> bool {
    match &*bare(key) {
        "status" | "statuscode" | "httpstatus" | "code" => is_refusal(value),
        "exitcode" | "returncode" | "exitstatus" | "rc" => {
            value.parse().is_ok_and(|code: i64| (-128..256).contains(&code) && code != 0)
        }
        _ => false,
    }
}

/// Returns whether JSON ends with the code with which a command failed, behind what it printed: Codex.
fn ends_with_failing_code(result: &str) -> bool {
    let tail = &result[result.ceil_char_boundary(result.len().saturating_sub(EXIT_CODE_BYTES))..];
    let code = tail.rsplit_once(r#""exit_code":"#).map(|(_, behind)| behind.trim_start());
    code.is_some_and(|code| code.trim_start_matches('-').starts_with(|c: char| ('1'..='9').contains(&c)))
}

/// Returns whether a line in small letters is how commands and kernels say what went wrong: `cp: error writing 'x': No space left on
/// device`, `Killed`.
fn is_diagnostic(line: &str) -> bool {
    let line = line.trim().trim_end_matches(['.', '。']);
    let is_program = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'0'..=b'9' | b'.' | b'_' | b'-' | b'/'))
    };
    let of_program = line.split_once(": ").filter(|(name, _)| is_program(name)).map(|(_, said)| said);
    REASONS.iter().any(|reason| line.contains(reason))
        || ENDED.iter().any(|ended| line.strip_suffix(" (core dumped)").unwrap_or(line).starts_with(ended))
        || line.ends_with(" not found")
        || of_program.is_some_and(|said| REFUSED.iter().any(|sign| says(said, sign)))
}

/// Texts of `strerror`, in small letters, with German and Chinese ones. Source: glibc 2.36; "denied" and "refused"
/// are in [`FAILED`].
const REASONS: [&str; 29] = [
    "no space left on device",
    "operation not permitted",
    "resource busy",
    "read-only file system",
    "no route to host",
    "network is unreachable",
    "connection reset",
    "broken pipe",
    ": is a directory",
    ": not a directory",
    "directory not empty",
    ": file exists",
    "input/output error",
    "too many open files",
    "too many levels of symbolic links",
    "cannot allocate memory",
    "out of memory",
    "disk quota exceeded",
    "text file busy",
    "invalid cross-device link",
    "no such ",
    "name or service not known",
    "lost connection",
    "kein speicherplatz",
    "nicht gefunden",
    "nicht zulässig",
    "没有空间",
    "没有那个文件",
    "权限不够",
];

/// How a shell says that a command was ended, and all that it says.
const ENDED: [&str; 4] = ["killed", "segmentation fault", "aborted (core", "bus error"];

/// What says behind the name of a program and a colon that it did not do it.
const REFUSED: [&str; 8] =
    ["cannot ", "can't ", "could not ", "unable ", "not found", "unrecognized ", "*** [", "[emerg]"];

/// Returns a key in small letters without what separates its words.
fn bare(key: &str) -> String {
    key.to_ascii_lowercase().replace(['_', '-'], "")
}

/// Returns whether a value begins with the status of HTTP of what was refused.
fn is_refusal(value: &str) -> bool {
    value.split(' ').next().is_some_and(|code| code.len() == 3 && code.starts_with(['4', '5']))
}

/// Returns whether a result says `sign` of itself: not that there was none of it, and not as a name in JSON.
fn says(result: &str, sign: &str) -> bool {
    result.match_indices(sign).any(|(at, _)| {
        let (before, behind) = (&result[..at], &result[at + sign.len()..]);
        let last = before.split_whitespace().next_back().unwrap_or_default();
        let is_name = behind.starts_with("\":") || behind.starts_with(['@', '_']) || before.ends_with('_');
        let is_denied =
            matches!(last, "0" | "no" | "not" | "without" | "never") || NO.iter().any(|no| before.ends_with(no));
        !is_name && !is_denied && !is_object(before)
    })
}

/// What denies in scripts without spaces that something went wrong, or says that it is mended.
const NO: [&str; 6] = ["没有", "沒有", "无", "未发现", "已修复", "已解决"];

/// Returns whether a text says with its first word that something was done, and a word behind it stands in the same clause: "Moved 3
/// rejected applications", `Merged "Fix failed login"`.
fn is_object(before: &str) -> bool {
    let first = before.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let is_done = (first.len() > 3 && first.ends_with("ed") || matches!(first, "sent" | "wrote" | "made"))
        && !matches!(first, "finished" | "completed" | "attempted" | "tried" | "exited" | "ended" | "failed");
    let quoted = before.matches('"').count() % 2 == 1 && !before.starts_with(['{', '[', '"']);
    quoted || is_done && !before.contains([';', ',', ':', '—']) && !before.contains(". ") && !before.contains(" but ")
}

/// Fields at the start of a result that tell of the call itself.
const FIRST_FIELDS: usize = 8;

/// Bytes of a result that is nothing but what went wrong.
const MAX_FAILURE_BYTES: usize = 200;

/// How results begin that say that the call failed: of tools of agents, shells and HTTP.
const FAILED_STARTS: [&str; 15] = [
    "error",
    "failed",
    "failure",
    "traceback",
    "<tool_use_error>",
    "the user doesn't want to proceed",
    "no replacement was",
    "fatal:",
    "http 4",
    "http 5",
    "http error",
    "错误",
    "失败",
    "出错",
    "エラー",
];

/// What says so anywhere in a short result, in small letters.
const FAILED: [&str; 45] = [
    "nothing to commit",
    "denied",
    "not allowed",
    "rejected",
    "refused",
    "declined",
    "failed",
    "failure",
    "insufficient",
    "forbidden",
    "unauthorized",
    "unable to",
    "cancelled by",
    "canceled by",
    "was cancelled",
    "was canceled",
    "could not be",
    "timed out",
    "timeout after",
    "timeout exceeded",
    "command not found",
    "\"ok\":false",
    "\"ok\": false",
    "\"acknowledged\":false",
    "\"acknowledged\": false",
    "\"success\":false",
    "\"success\": false",
    "\"iserror\":true",
    "\"iserror\": true",
    "\"error\":{",
    "\"error\": {",
    "\"status\":\"error",
    "\"status\": \"error",
    "失败",
    "失敗",
    "错误",
    "已取消",
    "拒绝",
    "拒否",
    "超时",
    "不足",
    "abgelehnt",
    "fehlgeschlagen",
    "refusé",
    "rechazad",
];

/// Returns whether the result of a call that should change something says that it did not: as [`has_failed`], by its fields, or in
/// words that others use for what they found.
pub fn changed_nothing(result: &str) -> bool {
    let is_short = result.trim().len() <= MAX_FAILURE_BYTES;
    let of_call = |field: &Field<'_>| is_short || WRAPPERS.contains(&field.within);
    has_failed(result)
        || fields(result).filter(of_call).any(|field| reports_failure(&field))
        || (is_short && {
            let result = result.trim().to_ascii_lowercase();
            UNCHANGED.iter().any(|sign| says(&result, sign))
        })
}

/// Returns whether a result only says that it would be the same as an earlier one of the same call: nanobot's "[File unchanged since last
/// read: a.py]", and Claude Code's.
pub fn refers_back(result: &str) -> bool {
    result.len() <= MAX_FAILURE_BYTES && result.contains("unchanged since")
}

/// What holds the fields of a call itself, and not of something that it lists.
const WRAPPERS: [&str; 8] = ["", "text", "result", "data", "response", "body", "structuredContent", "Result"];

fn reports_failure(Field { key, value, .. }: &Field<'_>) -> bool {
    let (key, value) = (bare(key), value.to_ascii_lowercase());
    let is_empty = matches!(&*value, "" | "null" | "none" | "nil" | "~" | "false" | "0" | "no" | "[]" | "{}");
    match &*key {
        "error" | "errors" | "exception" | "failure" | "fault" | "errormessage" => !is_empty,
        "success" | "ok" | "succeeded" | "successful" | "created" | "sent" | "accepted" | "approved" | "booked"
        | "paid" | "delivered" => {
            matches!(&*value, "false" | "no")
        }
        "iserror" | "failed" | "dryrun" | "skipped" => value == "true",
        "status" | "state" | "result" | "outcome" | "statuscode" | "httpstatus" => {
            UNSUCCESSFUL.iter().any(|word| value.starts_with(word)) || is_refusal(&value)
        }
        _ => false,
    }
}

/// Returns the state in which the result of a call leaves it, where that may be none of success: `pending_approval`, `QUEUED`,
/// `executed: false`. A model reads what it says, whatever it is.
pub fn state(result: &str) -> Option<String> {
    let of_call = fields(result).filter(|field| WRAPPERS.contains(&field.within));
    let mut found = of_call.filter_map(|Field { key, value, .. }| {
        let small = value.to_lowercase();
        let is_word = value.len() <= MAX_STATE_BYTES && small.starts_with(char::is_alphabetic);
        match &*bare(key) {
            "status" | "state" | "result" | "outcome" | "phase" => {
                let is_done = FINISHED.iter().any(|word| small.starts_with(word));
                (is_word && !is_done).then(|| value.to_owned())
            }
            "executed" | "committed" | "applied" | "completed" | "processed" | "performed" | "done" | "confirmed"
            | "final" => (small == "false").then(|| format!("{key}: {value}")),
            _ => None,
        }
    });
    found.next()
}

/// Most bytes of such a state.
const MAX_STATE_BYTES: usize = 32;

/// How a status begins that says no more than that it went well.
const FINISHED: [&str; 22] = [
    "ok", "success", "succe", "done", "complete", "creat", "updat", "sent", "deliver", "book", "confirm", "approved",
    "accepted", "paid", "active", "closed", "saved", "finish", "true", "null", "已", "成功",
];

/// How a status begins that is none of success.
const UNSUCCESSFUL: [&str; 10] =
    ["error", "fail", "reject", "declin", "denied", "refused", "forbidden", "unauthorized", "invalid", "conflict"];

/// What says in a short result that nothing was changed, in small letters.
const UNCHANGED: [&str; 29] = [
    "could not ",
    "couldn't ",
    "cannot ",
    "can't ",
    "was not ",
    "were not ",
    "wasn't ",
    "not permitted",
    "no changes were made",
    "replace_all is false",
    "has been modified since",
    "reverted",
    "blocked by",
    "dry run",
    "nothing to ",
    "nothing was ",
    "quota exceeded",
    "konnte nicht",
    "nicht möglich",
    "fehler",
    "no se pudo",
    "no se ha podido",
    "não foi possível",
    "impossible de",
    "erreur",
    "не удалось",
    "できません",
    "无法",
    "未能",
];

/// Returns the exit-code phrase at the end of a command's output, from `exit code` or the like to the end of the line or bracket.
pub fn exit_code(result: &str) -> Option<&str> {
    let tail = &result[result.ceil_char_boundary(result.len().saturating_sub(EXIT_CODE_BYTES))..];
    // ASCII letters change case in place, so that indexes hold.
    let small = tail.to_ascii_lowercase();
    let has_code = |end: usize| {
        let behind = tail[end..].trim_start_matches([' ', ':', '=', '"']);
        behind.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit())
    };
    let codes = EXIT_CODES.iter().flat_map(|phrase| small.rmatch_indices(phrase).take(1));
    let at = codes.filter(|(at, phrase)| has_code(at + phrase.len())).map(|(at, _)| at).max()?;
    let line = tail[at..].lines().next()?;
    let mut open = 0_usize;
    let closes = |c: char| {
        match c {
            '(' | '[' => open += 1,
            ')' | ']' if open == 0 => return true,
            ')' | ']' => open -= 1,
            _ => {}
        }
        false
    };
    line.split(closes).next()
}

/// What stands before the code of a command's end.
const EXIT_CODES: [&str; 6] =
    ["exit code", "exit status", "return code", "exited with code", "exited with status", "finished with status"];

/// Bytes at the end of a result in which an exit code stands: what was printed before is not how the command ended.
const EXIT_CODE_BYTES: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_should_change_something_says_that_it_did_not() {
        for failure in [
            r#"{"error": "quota exceeded"}"#,
            r#"{"content": [{"type": "text", "text": "{\"error\": \"quota exceeded\"}"}]}"#,
            r#"{"errors": [{"message": "taken"}], "data": null}"#,
            r#"{"statusCode": 500}"#,
            r#"{"status": 403, "message": "no"}"#,
            r#"{"created": false, "existing_id": "T-1"}"#,
            r#"{"result": "error", "detail": "no seats"}"#,
            r#"{"content": [{"type": "text", "text": "{\"success\": false}"}]}"#,
            "<response><status>ERROR</status><message>no seats</message></response>",
            "{'success': False, 'message': 'no seats'}",
            "success: false\nmessage: no seats",
            "Could not create the ticket.",
            "The ticket was not created.",
            "Dry run: no ticket created.",
            "Das Ticket konnte nicht erstellt werden.",
            "No se pudo crear el ticket.",
        ] {
            assert!(changed_nothing(failure), "{failure}");
        }
        for failure in [
            "Found 3 matches of the string to replace, but replace_all is false.",
            "File has been modified since read, either by the user or by a linter. Read it again.",
            "The pre-commit hook reverted this change.",
            "Edit blocked by hook: protected path",
        ] {
            assert!(changed_nothing(failure), "{failure}");
        }
        for failure in
            [r#"{"exit_code": 127, "output": ""}"#, r#"{"delivered": false}"#, r#"{"dry_run": true, "would_send": 1}"#]
        {
            assert!(changed_nothing(failure), "{failure}");
        }
        let listed = format!(r#"{{"id": "T-5", "runs": [{{"status": "failed", "log": "{}"}}]}}"#, "x".repeat(300));
        for success in [
            r#"{"ok": true, "error": null, "errors": []}"#,
            r#"{"status": 201, "id": "T-404"}"#,
            r#"{"status": "created", "failed": 0, "message": "4 sent"}"#,
            "<response><error/><status>OK</status></response>",
            "status: booked\nerror: none",
            r#"{"id": "T-5", "status": "pending", "deleted": false, "paid": null}"#,
            r#"{"code": 1, "msg": "success"}"#,
            "Done.",
            "",
            &listed,
        ] {
            assert!(!changed_nothing(success), "{success}");
        }
    }

    #[test]
    fn a_result_says_how_the_call_ended() {
        for failure in ["Error: no such file", "  failed: timeout", "Traceback (most recent call last):", "ERROR"] {
            assert!(has_failed(failure), "{failure}");
        }
        let short = [
            "User denied permission",
            "Permission denied",
            "HTTP 500 Internal Server Error",
            "Cancelled by user",
            "已取消",
            "The message could not be delivered.",
            "bash: command not found: git",
            "timed out after 60s",
            "错误：文件不存在",
            r#"{"ok":false}"#,
            r#"{"url": "https://a.b/c", "status": 403, "detail": "token lacks scope"}"#,
            r#"{"success": false, "reason": "no match"}"#,
            "payment declined by bank",
            "Payment failed: limit",
            r#"{"error":{"message":"no funds"}}"#,
            r#"{"status":"failed","code":"E_LIMIT"}"#,
            r#"{"result": null, "isError": true}"#,
            "支付失败：余额不足",
            "Zahlung abgelehnt",
            "<tool_use_error>String to replace not found in file.</tool_use_error>",
            "No replacement was performed, old_str did not appear verbatim in the file.",
            "gzip: /backup/orders.gz: No space left on device",
            "chmod: changing permissions of '/etc/a.key': Operation not permitted",
            "rm: cannot remove '/mnt/a': Device or resource busy",
            "nginx: [emerg] host not found in upstream \"shop\" in /etc/nginx/conf.d/a.conf:12",
            "No such container: shop-7",
            "pods \"shop-7\" not found",
            "sh: 1: ansible-playbook: not found\nmake: *** [Makefile:7: deploy] Error 127",
            "Segmentation fault (core dumped)",
            "Killed",
            "cp: 写入 '/backup/7.csv' 时出错：设备上没有空间",
            "mv: der Aufruf von stat für 'a.csv' ist nicht möglich: Datei oder Verzeichnis nicht gefunden",
            r#"{"acknowledged": false, "reason": "the index is locked"}"#,
            "ssh: connect to host db port 22: No route to host\nlost connection",
        ];
        for failure in short {
            assert!(has_failed(failure), "{failure}");
        }
        let printed = "x".repeat(5_000);
        for (code, failed) in [(0, false), (1, true), (-9, true)] {
            let result =
                format!(r#"{{"output": "{printed}", "metadata": {{"exit_code": {code}, "duration_seconds": 0.4}}}}"#);
            assert_eq!(has_failed(&result), failed, "{code}");
        }
        for success in ["no error", "err", "0 rows affected", "ok", "sent", "2 passed", "HTTP 200", "[1, 2]"] {
            assert!(!has_failed(success), "{success}");
        }
        for success in [
            "5 passed, 0 failed",
            r#"{"passed":5,"failed":0}"#,
            r#"{"ok":true,"error":null}"#,
            r#"{"status":"paid","errors":[]}"#,
            "Sent without failure",
            r#"{"timeout":30,"sent":true}"#,
            "Moved 3 rejected applications to the archive",
            r#"Merged "Fix the crash when permission denied""#,
            "Sent to failures@kern.example",
            "没有错误",
            "已修复失败的测试",
            "The file exists.",
            "Consul is a directory of services",
            "emails: 90 valid, 3 unknown",
            "12 skilled workers found",
        ] {
            assert!(!has_failed(success), "{success}");
        }
        // What a long text says somewhere is not how the call ended.
        assert!(!has_failed(&format!("{} permission denied", "line\n".repeat(100))));
        assert_eq!(exit_code("make\nExit code: 2\n"), Some("Exit code: 2"));
        assert_eq!(exit_code("[exec result (Exit code: 2) left out: 45 tokens]"), Some("Exit code: 2"));
        assert_eq!(exit_code("linking\nProcess exited with code 101\n"), Some("exited with code 101"));
        assert_eq!(exit_code("    if code:\n        return code\n"), None);
        assert_eq!(exit_code("[exit status 2]"), Some("exit status 2"));
        assert_eq!(exit_code("[exit code 139 (SIGSEGV)]"), Some("exit code 139 (SIGSEGV)"));
        assert_eq!(exit_code("exit code: 137 [killed]"), Some("exit code: 137 [killed]"));
        assert_eq!(exit_code(&format!("exit code: 1\n{}", "x".repeat(500))), None);
        assert_eq!(exit_code(&"字".repeat(100)), None);
    }
}
