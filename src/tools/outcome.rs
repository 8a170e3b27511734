//! Reads the outcome of a call from its result: a failure, or an exit code.

/// Returns whether a result says that the call failed: at its start, or anywhere in a line that is all of it.
pub fn has_failed(result: &str) -> bool {
    let result = result.trim();
    // ASCII letters change case in place.
    let head = result[..result.floor_char_boundary(MAX_FAILURE_BYTES)].to_ascii_lowercase();
    FAILED_STARTS.iter().any(|start| head.starts_with(start))
        || (result.len() <= MAX_FAILURE_BYTES && FAILED.iter().any(|sign| says(&head, sign)))
}

/// Returns whether a result says `sign` of itself: not that there was none of it, and not as a name in JSON.
fn says(result: &str, sign: &str) -> bool {
    result.match_indices(sign).any(|(at, _)| {
        let last = result[..at].split_whitespace().next_back().unwrap_or_default();
        let is_name = result[at + sign.len()..].starts_with("\":");
        !is_name && !matches!(last, "0" | "no" | "not" | "without" | "never")
    })
}

/// Bytes of a result that is nothing but what went wrong.
const MAX_FAILURE_BYTES: usize = 200;

/// How results begin that say that the call failed: of tools of agents, shells and HTTP.
const FAILED_STARTS: [&str; 12] = [
    "error",
    "failed",
    "failure",
    "traceback",
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
const FAILED: [&str; 43] = [
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
    "no such file",
    "\"ok\":false",
    "\"ok\": false",
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

/// Returns the exit-code phrase at the end of a command's output, from `exit code` to the end of the line or bracket.
pub fn exit_code(result: &str) -> Option<&str> {
    let tail = &result[result.ceil_char_boundary(result.len().saturating_sub(EXIT_CODE_BYTES))..];
    // ASCII letters change case in place, so that indexes hold.
    let at = tail.to_ascii_lowercase().rfind("exit code")?;
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

/// Bytes at the end of a result in which an exit code stands: what was printed before is not how the command ended.
const EXIT_CODE_BYTES: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

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
            r#"{"success": false, "reason": "no match"}"#,
            "payment declined by bank",
            "Payment failed: limit",
            r#"{"error":{"message":"no funds"}}"#,
            r#"{"status":"failed","code":"E_LIMIT"}"#,
            r#"{"result": null, "isError": true}"#,
            "支付失败：余额不足",
            "Zahlung abgelehnt",
        ];
        for failure in short {
            assert!(has_failed(failure), "{failure}");
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
        ] {
            assert!(!has_failed(success), "{success}");
        }
        // What a long text says somewhere is not how the call ended.
        assert!(!has_failed(&format!("{} permission denied", "line\n".repeat(100))));
        assert_eq!(exit_code("make\nExit code: 2\n"), Some("Exit code: 2"));
        assert_eq!(exit_code("[exec result (Exit code: 2) left out: 45 tokens]"), Some("Exit code: 2"));
        assert_eq!(exit_code("[exit code 139 (SIGSEGV)]"), Some("exit code 139 (SIGSEGV)"));
        assert_eq!(exit_code("exit code: 137 [killed]"), Some("exit code: 137 [killed]"));
        assert_eq!(exit_code(&format!("exit code: 1\n{}", "x".repeat(500))), None);
        assert_eq!(exit_code(&"字".repeat(100)), None);
    }
}
