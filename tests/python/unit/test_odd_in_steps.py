"""The odd line of an earlier result stays: through steps, and with its record."""

from __future__ import annotations

import json
import random

import pytest

from agent_runs import Message, called, in_steps
from nanobot_context import count_tokens, fit_messages

KINDS = ["s3_bucket", "lambda_function", "security_group", "iam_role"]
OWNERS = [
    "wanda",
    "emre",
    "zora",
    "ivo",
    "mateo",
    "quinn",
    "boris",
    "dalia",
    "tariq",
    "xenia",
    "kofi",
    "jun",
]


def plan(draw: random.Random, number: int) -> str:
    """Return a plan that changes tags of `number` resources, and replaces one."""
    replaced = draw.randrange(number)

    def cost() -> str:
        return (
            f'~ "CostCenter" = "{draw.randrange(1_000, 9_999)}" -> "{draw.randrange(1_000, 9_999)}"'
        )

    def resource(at: int) -> list[str]:
        kind, name = (
            f"aws_{draw.choice(KINDS)}",
            f"{draw.choice(OWNERS)}_{draw.randrange(4096):03x}",
        )
        if at == replaced:
            return [
                "  # module.core.aws_db_instance.orders must be replaced",
                '-/+ resource "aws_db_instance" "orders" {',
                '      ~ arn                = "arn:aws:rds:orders" -> (known after apply)',
                '      ~ engine_version     = "14.9" -> "14.12"',
                '      ~ availability_zone  = "eu-west-1a" -> "eu-west-1b" # forces replacement',
                '        id                 = "orders"',
                "        # (48 unchanged attributes hidden)",
                "    }",
            ]
        return [
            f"  # module.core.{kind}.{name} will be updated in-place",
            f'  ~ resource "{kind}" "{name}" {{',
            f'        id                 = "{name}-{draw.randrange(2**32):08x}"',
            "      ~ tags               = {",
            f"          {cost()}",
            f'            "Owner"      = "{draw.choice(OWNERS)}"',
            "        }",
            "      ~ tags_all           = {",
            f"          {cost()}",
            "        }",
            f"        # ({draw.randrange(8, 40)} unchanged attributes hidden)",
            "    }",
        ]

    lines = [line for at in range(number) for line in [*resource(at), ""]]
    return "\n".join(["Terraform will perform the following actions:", "", *lines])


def name(draw: random.Random) -> str:
    return f"{draw.choice(OWNERS)}-{draw.randrange(4096):03x}"


def zone(draw: random.Random) -> str:
    return f"{name(draw)}.corp.example. 3600 IN A 10.20.{draw.randrange(250)}.7"


def job(draw: random.Random) -> str:
    at = f"{draw.randrange(60)} {draw.randrange(24)} * * *"
    return f"{at} root /opt/jobs/{name(draw)}.sh --batch {draw.randrange(200)}"


def compiled(draw: random.Random) -> str:
    path = f"{draw.choice(KINDS)}/{name(draw)}"
    return f"cc -O2 -g -Wall -Iinclude -D_GNU_SOURCE -c -o build/{path}.o src/{path}.c"


def paid(draw: random.Random) -> str:
    gross = draw.randrange(300_000, 600_000)
    number, net = draw.randrange(10_000, 20_000), gross * 62 // 100
    return f"{number};{draw.choice(OWNERS).title()};{gross / 100};{net / 100}"


@pytest.mark.parametrize("seed", range(6))
def test_the_odd_line_of_a_large_result_outlives_the_steps(seed: int) -> None:
    draw = random.Random(seed)
    messages: list[Message] = [{"role": "user", "content": "Collect the data for the overview."}]
    others = [zone, job, compiled, paid, zone, compiled]
    results = ["\n".join(other(draw) for _ in range(300)) for other in others]
    results.insert(1, plan(draw, 40))
    for number, result in enumerate(results):
        messages += called(number, "exec", {"command": f"./report {number}"}, result)
    messages.append({"role": "assistant", "content": "I have read everything that you named."})
    messages.append({"role": "user", "content": "Thanks. Rename load_all to load_every, please."})
    sent = in_steps(messages, 8_000)
    assert any("must be replaced" in str(message["content"]) for message in sent)


def groups(draw: random.Random, number: int) -> tuple[str, int]:
    """Return security groups in JSON with numbers of lines, and the port that one opens to all."""
    opened = draw.randrange(number)
    ports = [draw.randrange(1_000, 60_000) for _ in range(number)]

    def permission(at: int) -> dict[str, object]:
        cidr = "0.0.0.0/0" if at == opened else f"10.{draw.randrange(250)}.0.0/16"
        return {
            "FromPort": ports[at],
            "IpProtocol": "tcp",
            "IpRanges": [{"CidrIp": cidr}],
            "ToPort": ports[at],
        }

    all_of_them = [
        {"GroupId": f"sg-{draw.randrange(16**9):09x}", "IpPermissions": [permission(at)]}
        for at in range(number)
    ]
    lines = json.dumps(all_of_them, indent=1).split("\n")
    return "\n".join(f"{at}| {line}" for at, line in enumerate(lines, 1)), ports[opened]


def test_an_odd_value_of_numbered_json_stays_with_its_record() -> None:
    torn = 0
    for seed in range(12):
        draw = random.Random(seed)
        results = ["\n".join(other(draw) for _ in range(120)) for other in [zone, job, compiled]]
        text, port = groups(draw, 60)
        results.insert(1, text)
        messages: list[Message] = [{"role": "user", "content": "Collect the data."}]
        for number, result in enumerate(results):
            messages += called(number, "read_file", {"path": f"data/{number}.json"}, result)
        messages.append({"role": "assistant", "content": "I have read everything."})
        messages.append({"role": "user", "content": "Thanks. Now write a mail to Petra."})
        fitted = fit_messages(messages, count_tokens(messages, "gpt-4o") // 4, "gpt-4o").messages
        shown = "".join(str(message["content"]) for message in fitted)
        assert "0.0.0.0/0" in shown
        torn += f'"ToPort": {port}\n' not in shown
    assert torn <= 1


def device(draw: random.Random, at: int, speed: int) -> str:
    return "\n".join(
        [
            f"Handle 0x{0x22 + at:04X}, DMI type 17, 92 bytes",
            "Memory Device",
            "\tTotal Width: 72 bits",
            "\tSize: 32 GB",
            f"\tLocator: DIMM-{at}",
            f"\tBank Locator: P{at // 24}_Node0_Channel{at % 8}",
            "\tType: DDR4",
            "\tSpeed: 3200 MT/s",
            f"\tSerial Number: {draw.randrange(16**8):08X}",
            "\tRank: 2",
            f"\tConfigured Memory Speed: {speed} MT/s",
            "",
        ]
    )


def test_an_odd_value_of_the_newest_result_stays_with_its_record() -> None:
    torn = 0
    for seed in range(12):
        draw = random.Random(seed)
        slow = draw.randrange(48)
        text = "\n".join(device(draw, at, 1_600 if at == slow else 3_200) for at in range(48))
        messages: list[Message] = [{"role": "user", "content": "Have a look, please."}]
        messages += called(0, "exec", {"command": "dmidecode -t memory"}, text)
        fitted = fit_messages(messages, count_tokens(messages, "gpt-4o") // 10, "gpt-4o").messages
        shown = str(fitted[-1]["content"])
        assert "Speed: 1600 MT/s" in shown
        torn += f"\tLocator: DIMM-{slow}\n" not in shown
    assert torn <= 1
