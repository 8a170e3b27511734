//! Reads command lines of a shell: whether one only looks, and which files it shows.

use serde_json::Value;

/// Programs of a command line that look and change nothing.
const LOOKING: &str = " \
    ls cat head tail grep egrep fgrep zgrep zcat rg find wc file stat pwd which type du df diff cmp tree sort uniq \
    cd cut tr nl jq column realpath readlink basename dirname md5sum sha1sum sha256sum cksum strings xxd hexdump \
    uptime free uname ping host whoami id groups w who last ps pgrep pstree nproc lscpu lsblk lsof lspci lsusb lsmod \
    blkid findmnt printenv dig nslookup traceroute mtr whois getent ss netstat arp vmstat iostat mpstat sensors \
    nvidia-smi mailq true test top \
";
/// Programs that look where the first word behind them says so.
const LOOKING_BY_VERB: &str = " \
    git kubectl docker docker-compose podman helm systemctl pip pip3 npm brew apt apt-cache zpool zfs chronyc terraform \
";
const LOOKING_VERBS: &str = " \
    status log logs diff show blame get list ls describe ps images inspect info search view top stats port events \
    explain freeze policy outdated is-active is-enabled is-failed list-units list-timers cat rev-parse ls-files \
    ls-remote grep shortlog plan tracking sources \
";
/// Words before the verb that say of what: `docker compose ps`.
const PARTS_OF_PROGRAMS: [&str; 3] = ["compose", "container", "image"];
/// Options with a value before the verb.
const BEFORE_VERB: [&str; 8] = ["-n", "--namespace", "--context", "--kubeconfig", "-C", "-H", "-f", "-p"];
/// Programs that run others in a container.
const CONTAINERS: [&str; 3] = ["docker", "podman", "kubectl"];
/// Options of `ssh` with a value.
const BEFORE_HOST: [&str; 8] = ["-p", "-i", "-o", "-l", "-J", "-F", "-E", "-L"];
/// Programs that are given SQL, and how a statement begins that only looks.
const ASKING_SQL: [&str; 4] = ["psql", "mysql", "mariadb", "sqlite3"];
const LOOKING_SQL: [&str; 5] = ["select", "show", "describe", "\\d", "\\l"];
/// Options that ask a program for its version.
const VERSIONS: [&str; 5] = ["--version", "-version", "-V", "-v", "version"];
/// Short and long options with which `curl` sends or saves something.
const SENDING: [char; 6] = ['X', 'd', 'F', 'T', 'o', 'O'];
const SENDING_LONG: [&str; 7] = ["data", "request", "form", "upload", "output", "remote", "json"];
const CHANGED_BY: [&str; 6] = [">", "-delete", "-exec", "-ok", "$(", "`"];

/// Programs that print the files that they are given, or lines of these.
const SHOWING: [&str; 9] = ["cat", "head", "tail", "sed", "nl", "bat", "batcat", "less", "more"];

/// Programs that change files in place where an option says so.
const EDITORS: [&str; 3] = ["sed", "gsed", "perl"];

/// How the lines of a patch begin that name a file.
const PATCHED: [&str; 5] = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ b/", "+++ "];

const SHELLS: [&str; 4] = ["bash", "sh", "zsh", "dash"];

/// Returns whether a call of a shell surely changes nothing, as [`files_shown_by`] reads it: each of its programs only looks.
pub fn only_looks(arguments: &Value) -> bool {
    let of_words = |words: &[Value]| match words.iter().map(Value::as_str).collect::<Option<Vec<_>>>().as_deref() {
        Some([shell, option, line]) if SHELLS.contains(shell) && option.ends_with('c') => looks(line),
        Some(words) => looks(&words.join(" ")),
        None => false,
    };
    let value_looks = |value: &Value| match value {
        Value::String(line) => looks(line),
        Value::Array(words) => of_words(words),
        _ => false,
    };
    match (command(arguments), arguments.get("commands")) {
        (Some(command), _) => value_looks(command),
        (None, Some(Value::Array(commands))) => !commands.is_empty() && commands.iter().all(value_looks),
        _ => false,
    }
}

/// Most command lines within others: `ssh host docker exec name ls`.
const MAX_WITHIN: usize = 4;

fn looks(command: &str) -> bool {
    looks_within(command, MAX_WITHIN)
}

/// Returns whether a command line only looks, up to so many others within it.
fn looks_within(command: &str, within: usize) -> bool {
    let command = without_errors(command);
    let words = words(&command);
    let mut programs = words.split(Option::is_none).filter(|program| !program.is_empty()).peekable();
    programs.peek().is_some()
        && !CHANGED_BY.iter().any(|word| command.contains(word))
        && programs
            .all(|program| program_looks(&program.iter().flatten().map(String::as_str).collect::<Vec<_>>(), within))
}

/// Returns whether a program with its arguments changes nothing; `within` as for [`looks_within`].
fn program_looks(words: &[&str], within: usize) -> bool {
    let before = words.iter().take_while(|word| BEFORE_PROGRAM.contains(word)).count();
    let Some((program, arguments)) = words[before..].split_first() else { return false };
    let has = |option: &str| arguments.iter().any(|argument| argument.starts_with(option));
    let sends = |argument: &&str| match (argument.strip_prefix("--"), argument.strip_prefix('-')) {
        (Some(long), _) => SENDING_LONG.iter().any(|sending| long.starts_with(sending)),
        (None, Some(short)) => short.contains(SENDING),
        (None, None) => false,
    };
    let operands = || arguments.iter().filter(|argument| !argument.starts_with('-'));
    match *program {
        _ if matches!(arguments, [option] if VERSIONS.contains(option)) => true,
        "ssh" => operands_behind(arguments, &BEFORE_HOST)
            .is_some_and(|(_, remote)| within > 0 && looks_within(&remote.join(" "), within - 1)),
        // The clock is set by `-s` and by a bare number.
        "date" => arguments
            .iter()
            .all(|argument| argument.starts_with(['+', '-']) && !argument.trim_start_matches('-').starts_with('s')),
        "curl" => !arguments.iter().enumerate().any(|(at, argument)| sends(argument) && !is_discarded(arguments, at)),
        "echo" => arguments.is_empty(),
        "sed" => !arguments.iter().any(edits_in_place),
        "sort" | "tree" => !has("-o") && !has("--output"),
        "awk" => !arguments.iter().any(|argument| argument.contains("system(")),
        "journalctl" => !has("--vacuum") && !has("--rotate"),
        "dmesg" => !has("-c") && !has("-C") && !has("--clear"),
        "smartctl" => !has("-t") && !has("-s"),
        "openssl" => !has("-out") && !has("req") && !has("gen") && !has("ca"),
        "hostname" => operands().next().is_none(),
        "ip" => operands().nth(1).is_none_or(|verb| is_in(LOOKING_VERBS, verb)),
        "crontab" => arguments == ["-l"],
        _ if ASKING_SQL.contains(program) => {
            let looks = |statement: &&str| {
                LOOKING_SQL.iter().any(|verb| is_led_by(statement, verb))
                    && !statement.trim_end_matches(';').contains(';')
            };
            // A file, or several words that are none of these, may be any statement.
            let may_change = |word: &&str| *word == "-f" || word.trim().contains(' ') && !looks(word);
            arguments.iter().any(looks) && !arguments.iter().any(may_change)
        }
        _ if is_in(LOOKING_BY_VERB, program) => match operands_behind(arguments, &BEFORE_VERB) {
            Some(("exec", behind)) if CONTAINERS.contains(program) => {
                within > 0 && program_looks(in_container(behind), within - 1)
            }
            Some((part, behind)) if PARTS_OF_PROGRAMS.contains(&part) => {
                operands_behind(behind, &BEFORE_VERB).is_some_and(|(verb, _)| is_in(LOOKING_VERBS, verb))
            }
            Some((verb, _)) => is_in(LOOKING_VERBS, verb),
            None => false,
        },
        _ => is_in(LOOKING, program),
    }
}

/// Returns what is run in a container: the words behind its name.
fn in_container<'w, 'a>(words: &'w [&'a str]) -> &'w [&'a str] {
    let end =
        words.iter().position(|word| *word == "--").or_else(|| words.iter().position(|word| !word.starts_with('-')));
    end.map_or(&[], |end| &words[end + 1..])
}

/// Returns whether `curl` throws away what it is told at `at` to save: `-so /dev/null`.
fn is_discarded(arguments: &[&str], at: usize) -> bool {
    arguments[at].trim_start_matches('-').trim_start_matches(['s', 'S', 'k', 'L']) == "o"
        && arguments.get(at + 1) == Some(&"/dev/null")
}

fn edits_in_place(option: &&str) -> bool {
    match option.strip_prefix("--") {
        Some(long) => long.starts_with("in-place"),
        None => option.starts_with('-') && option.contains('i'),
    }
}

/// Returns whether a text begins with a word, whatever its case.
fn is_led_by(text: &str, word: &str) -> bool {
    text.trim_start().get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// Returns whether a word stands in a list of words between blanks.
fn is_in(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

/// Returns the first word of a program's arguments that is no option, and those behind it: `kubectl -n prod get pods`.
fn operands_behind<'w, 'a>(arguments: &'w [&'a str], with_value: &[&str]) -> Option<(&'a str, &'w [&'a str])> {
    let mut at = 0;
    loop {
        match *arguments.get(at)? {
            option if with_value.contains(&option) => at += 2,
            option if option.starts_with('-') => at += 1,
            operand => return Some((operand, &arguments[at + 1..])),
        }
    }
}

/// Returns what the arguments of a shell give as its command line: a text, or its words.
fn command(arguments: &Value) -> Option<&Value> {
    ["command", "cmd"].iter().find_map(|key| arguments.get(*key))
}

/// Returns the files that a call of a shell shows, as its arguments have them: a command line, words of one, or several.
/// Empty where it does anything beside that.
pub fn files_shown_by(arguments: &Value) -> Vec<String> {
    let word = |value: &Value| value.as_str().map(|word| Some(word.to_owned()));
    let lines = |value: &Value| match value {
        Value::String(line) => files_shown(line),
        Value::Array(words) => shown(&words.iter().map(word).collect::<Option<Vec<_>>>().unwrap_or_default()),
        _ => Vec::new(),
    };
    if let Some(command) = command(arguments) {
        return lines(command);
    }
    match arguments.get("commands") {
        Some(Value::Array(commands)) => commands.iter().flat_map(lines).collect(),
        _ => Vec::new(),
    }
}

/// Returns the files that a call of a shell changes in place, as [`files_shown_by`] reads it: those of `sed -i` and of patches.
pub fn files_edited_by(arguments: &Value) -> Vec<String> {
    let word = |value: &Value| value.as_str().map(|word| Some(word.to_owned()));
    let of_patch = |text: &str| files_of_patch(text).map(str::to_owned).collect::<Vec<_>>();
    match command(arguments) {
        Some(Value::String(line)) => [edited(&words(line)), of_patch(line)].concat(),
        Some(Value::Array(line)) => {
            let line: Vec<Option<String>> = line.iter().filter_map(word).collect();
            let patches = line.iter().flatten().flat_map(|word| of_patch(word)).collect();
            [edited(&line), patches].concat()
        }
        _ => Vec::new(),
    }
}

/// Returns the files that a command line changes in place.
fn edited(words: &[Option<String>]) -> Vec<String> {
    let mut files = Vec::new();
    for part in words.split(Option::is_none) {
        let mut part = part.iter().flatten().map(String::as_str);
        let Some(program) = part.next() else { continue };
        let (options, operands): (Vec<&str>, Vec<&str>) = part.partition(|word| word.starts_with('-'));
        if SHELLS.contains(&program) && options.iter().any(|option| option.ends_with('c')) {
            files.extend(operands.first().map(|line| edited(&self::words(line))).unwrap_or_default());
        } else if EDITORS.contains(&program) && options.iter().any(edits_in_place) {
            // The first one says what is done.
            files.extend(operands.iter().skip(1).map(|file| (*file).to_owned()));
        }
    }
    files
}

/// Returns the files that a patch names, as codex and as `diff -u` write one.
pub fn files_of_patch(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(names_patched_file)
}

/// Returns the file that a line of a patch names.
pub fn names_patched_file(line: &str) -> Option<&str> {
    let named = PATCHED.iter().find_map(|start| line.strip_prefix(start))?;
    // `diff -u` writes behind a tab when the file was changed.
    let file = named.split('\t').next().unwrap_or_default().trim();
    (file != "/dev/null").then_some(file)
}

/// Programs that say with the word behind them what they run.
const RUNNERS: [&str; 22] = [
    "cargo", "npm", "npx", "yarn", "pnpm", "bun", "deno", "go", "make", "uv", "poetry", "bundle", "rake", "dotnet",
    "mvn", "gradle", "python", "python3", "node", "tox", "nox", "just",
];
/// Words before a program.
const BEFORE_PROGRAM: [&str; 4] = ["sudo", "time", "env", "nohup"];

/// Returns what a call of a shell runs, as [`files_shown_by`] reads it: the last of its programs that does not only look, without
/// options and operands: "pytest" of `cd /w && pytest -q tests | tail`, "cargo test", "python setup.py".
pub fn run_by(arguments: &Value) -> Option<String> {
    match command(arguments)? {
        Value::String(line) => run(&words(&without_errors(line))),
        Value::Array(line) => run(&line.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Vec<_>>()),
        _ => None,
    }
}

fn run(words: &[Option<String>]) -> Option<String> {
    words.split(Option::is_none).rev().find_map(|part| {
        let is_before = |word: &&str| BEFORE_PROGRAM.contains(word) || word.contains('=');
        let part: Vec<&str> = part.iter().flatten().map(String::as_str).skip_while(is_before).collect();
        let (program, rest) = part.split_first().filter(|_| !program_looks(&part, MAX_WITHIN))?;
        let mut operands = rest.iter().filter(|word| !word.starts_with('-'));
        if SHELLS.contains(program) && rest.iter().any(|option| option.starts_with('-') && option.ends_with('c')) {
            return run(&self::words(operands.next()?));
        }
        let of_runner = if RUNNERS.contains(program) { operands.next() } else { None };
        Some([program, of_runner.copied().unwrap_or_default()].join(" ").trim_end().to_owned())
    })
}

fn files_shown(command: &str) -> Vec<String> {
    let command = without_errors(command);
    if CHANGED_BY.iter().any(|sign| command.contains(sign)) {
        return Vec::new();
    }
    shown(&words(&command))
}

/// Returns the files that a command line shows, whose words have a `None` between two programs.
fn shown(words: &[Option<String>]) -> Vec<String> {
    let mut files = Vec::new();
    for part in words.split(Option::is_none) {
        let mut part = part.iter().flatten().map(String::as_str);
        let Some(program) = part.next() else { continue };
        let (options, mut operands): (Vec<&str>, Vec<&str>) = part.partition(|word| word.starts_with('-'));
        match program {
            _ if SHELLS.contains(&program) && options.iter().any(|option| option.ends_with('c')) => {
                return operands.first().map(|line| files_shown(line)).unwrap_or_default();
            }
            "cd" | "pwd" | "ls" | "echo" => continue,
            "sed" if options.contains(&"-n") && !options.iter().any(|option| option.starts_with("-i")) => {
                operands.drain(..1.min(operands.len()));
            }
            "sed" => return Vec::new(),
            _ if SHOWING.contains(&program) => operands.retain(|word| !is_count(word)),
            _ => return Vec::new(),
        }
        files.extend(operands.into_iter().map(str::to_owned));
    }
    files
}

/// Returns whether a word says how many lines, as in `head -n 20` and `tail -n +5`.
fn is_count(word: &str) -> bool {
    let digits = word.trim_start_matches('+');
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the words of a command line without their quotes, and `None` where one program ends.
fn words(command: &str) -> Vec<Option<String>> {
    let mut words = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    for sign in command.chars() {
        match (quote, sign) {
            (Some(open), _) if open == sign => quote = None,
            (None, '"' | '\'') => {
                quote = Some(sign);
                word.get_or_insert_default();
            }
            (None, '|' | ';' | '&' | '\n') => {
                words.extend(word.take().map(Some));
                words.push(None);
            }
            (None, _) if sign.is_whitespace() => words.extend(word.take().map(Some)),
            _ => word.get_or_insert_default().push(sign),
        }
    }
    words.extend(word.map(Some));
    words
}

fn without_errors(command: &str) -> String {
    command.replace("2>&1", "").replace("2>/dev/null", "").replace("2> /dev/null", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_that_only_looks_has_no_other_program_and_writes_nothing() {
        for command in [
            "ls -la",
            "cat /etc/hostname | sort | uniq -c",
            "grep -rn TODO src 2>/dev/null",
            "find . -name a",
            "grep -e 'a|b; c' src",
            "date +%F && ls",
            "uptime; free -m | head -2",
            "ping -c 1 home",
            "curl -sS 'https://wttr.in/Graz?m&format=3'",
            "cd /w && git status && git log -1",
            "kubectl get pods -n prod",
            "kubectl -n logs --context=eu get pods",
            "git -C /srv/a --no-pager log -3",
            "kubectl get pods -A -o wide",
            "kubectl -n prod exec -it web-0 -c app -- cat /etc/hosts",
            "docker exec -it db ls /var/lib",
            "docker compose -f prod.yml ps",
            "ssh db-07 df -h / | tail -1",
            "ssh -p 2222 -i key ops@db-07 'df -h | grep /srv; uptime'",
            "sudo journalctl -u nginx --since today | sed -n 1,20p",
            "ps -eo pid,comm --sort=-rss | awk '{print $1}'",
            "psql -h db -c \"SELECT count(*) FROM users;\"",
            "ip -br addr",
            "nginx -v",
            "echo | openssl s_client -connect a:443 2>/dev/null | openssl x509 -noout -enddate",
            "curl -so /dev/null -w '%{http_code} %{time_total}' https://a.example.org/health",
            "python3 --version",
        ] {
            assert!(looks(command), "{command}");
        }
        for arguments in [
            r#"{"cmd": "ls"}"#,
            r#"{"command": ["ls", "-la"]}"#,
            r#"{"command": ["bash", "-lc", "ls | wc -l"]}"#,
            r#"{"commands": ["ls", "pwd"]}"#,
        ] {
            assert!(only_looks(&serde_json::from_str(arguments).unwrap()), "{arguments}");
        }
        for arguments in [
            "{}",
            r#"{"command": 5}"#,
            r#"{"command": ["ls", 5]}"#,
            r#"{"command": []}"#,
            r#"{"command": ["bash", "-lc", "ls; pay 5"]}"#,
            r#"{"command": ["bash", "-lc", "ls", "x"]}"#,
            r#"{"commands": []}"#,
            r#"{"commands": ["ls", "pay 5"]}"#,
        ] {
            assert!(!only_looks(&serde_json::from_str(arguments).unwrap()), "{arguments}");
        }
        for command in [
            "",
            " | ",
            "ls && rm -rf x",
            "kubectl -n logs delete pod a",
            "git -C log push",
            "cat > f <<E",
            "ls | xargs rm",
            "find . -delete",
            "find . -exec rm {} ;",
            "cat $(pay)",
            "sort -o a a",
            "pay 5",
            "echo paid",
            "python pay.py",
            "date -s 10:00",
            "date --set=10:00",
            "curl -sX POST https://pay.me",
            "curl --data a=1 https://pay.me",
            "curl -so page.html https://a.example.org",
            "curl -o /dev/null -d a=1 https://pay.me",
            "git commit -m status",
            "git -C /w push",
            "kubectl delete pod a",
            "docker",
            "docker exec db rm -rf /var/lib",
            "docker exec -it db",
            "docker compose up -d",
            "kubectl exec web-0 -- sh -c reboot",
            "ssh db-07",
            "ssh db-07 reboot",
            "ssh db-07 'uptime; systemctl restart nginx'",
            "sudo rm -rf x",
            "sudo",
            "journalctl --vacuum-time=1d",
            "sed -i s/a/b/ x",
            "psql -c 'select 1; delete from users'",
            "psql -c 'drop table users'",
            "psql -c 'select 1' -c 'drop table users'",
            "psql -f drop.sql -c '\\d'",
            "ip link set eth0 down",
            "crontab new.txt",
        ] {
            assert!(!looks(command), "{command}");
        }
    }

    #[test]
    fn a_command_line_in_thousands_of_others_is_read() {
        for before in ["sudo ", "ssh h ", "docker exec c ", "kubectl exec p -- "] {
            _ = looks(&(before.repeat(100_000) + "ls"));
        }
        assert!(looks("sudo ssh h docker exec c ls"));
        assert!(!looks("npm version patch"));
    }

    #[test]
    fn a_command_line_edits_the_files_that_it_changes_in_place() {
        let edited = |command: Value| files_edited_by(&serde_json::json!({ "command": command })).join(" ");
        for line in [
            "sed -i s/a/b/ AGENTS.md",
            "cd /w && sed -i.bak -e 's/a > b/c/' AGENTS.md",
            "sed --in-place=.bak 's/a/b/' AGENTS.md; ls",
            "perl -pi -e 's/a/b/' AGENTS.md",
            "bash -lc \"sed -i 's/a/b/' AGENTS.md\"",
            "apply_patch <<'E'\n*** Begin Patch\n*** Update File: AGENTS.md\n@@\n-a\n+b\n*** End Patch\nE",
            "patch -p1 <<E\n--- a/AGENTS.md\n+++ b/AGENTS.md\nE",
        ] {
            assert_eq!(edited(line.into()), "AGENTS.md", "{line}");
        }
        assert_eq!(edited(serde_json::json!(["sed", "-i", "s/a/b/", "AGENTS.md"])), "AGENTS.md");
        let patch = "*** Begin Patch\n*** Add File: a.md\n+x\n*** Delete File: b.md\n*** End Patch";
        assert_eq!(edited(serde_json::json!(["apply_patch", patch])), "a.md b.md");
        for line in ["sed -n 1,9p AGENTS.md", "sed s/a/b/ AGENTS.md", "grep -i a AGENTS.md", "git add AGENTS.md", ""] {
            assert_eq!(edited(line.into()), "", "{line}");
        }
    }

    #[test]
    fn what_a_command_line_runs_has_no_options_and_operands() {
        let run = |command: Value| run_by(&serde_json::json!({ "command": command })).unwrap_or_default();
        for (line, program) in [
            ("pytest -q tests/test_a.py", "pytest"),
            ("cd /w && CI=1 pytest -x 2>&1 | tail -20", "pytest"),
            ("pip install -e . && python -m pytest tests", "python pytest"),
            ("cargo test --lib parser", "cargo test"),
            ("sudo make check", "make check"),
            ("bash -lc 'cd /w; npm test'", "npm test"),
            ("ls -la | wc -l", ""),
            ("", ""),
        ] {
            assert_eq!(run(line.into()), program, "{line}");
        }
        assert_eq!(run(serde_json::json!(["go", "test", "./..."])), "go test");
        assert_eq!(run(serde_json::json!(5)), "");
    }

    #[test]
    fn a_command_line_shows_the_files_that_it_prints() {
        let shown = |arguments: &str| files_shown_by(&serde_json::from_str(arguments).unwrap_or_default()).join(" ");
        for line in [
            "cat AGENTS.md",
            "cd /w && cat AGENTS.md 2>/dev/null",
            "head -n 50 AGENTS.md",
            "head -50 'AGENTS.md'",
            "tail -n +5 AGENTS.md; ls",
            "sed -n '1,20p;30p' AGENTS.md",
            "cat AGENTS.md | head -20",
            "nl -ba AGENTS.md",
            "bash -lc 'cat AGENTS.md'",
        ] {
            for name in ["command", "cmd"] {
                assert_eq!(shown(&serde_json::json!({ name: line }).to_string()), "AGENTS.md", "{line}");
            }
        }
        for arguments in [
            r#"{"command": ["cat", "AGENTS.md"]}"#,
            r#"{"command": ["bash", "-lc", "cat AGENTS.md"], "workdir": "/w"}"#,
            r#"{"commands": ["cat AGENTS.md"]}"#,
        ] {
            assert_eq!(shown(arguments), "AGENTS.md", "{arguments}");
        }
        assert_eq!(shown(r#"{"command": "cat a.md 'b c.md'"}"#), "a.md b c.md");
        for line in [
            "cat > AGENTS.md <<E",
            "cat a >> AGENTS.md",
            "sed -i s/a/b/ AGENTS.md",
            "sed s/a/b/ AGENTS.md",
            "cat $(find .)",
            "cat AGENTS.md | grep x",
            "python make.py && cat AGENTS.md",
            "rm AGENTS.md",
            "",
            "'",
        ] {
            assert_eq!(shown(&serde_json::json!({ "command": line }).to_string()), "", "{line}");
        }
        for arguments in
            ["{}", "[]", r#"{"command": 5}"#, r#"{"commands": "cat a"}"#, r#"{"command": [1, "cat", "a"]}"#]
        {
            assert_eq!(shown(arguments), "", "{arguments}");
        }
    }
}
