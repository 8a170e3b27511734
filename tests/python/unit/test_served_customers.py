"""An agent that serves one customer after another has what the next call takes."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

from agent_runs import Message, called, in_steps
from nanobot_context import Compressor, count_tokens, fit_messages

FIRST = ["Mia", "Ivan", "Sara", "Omar", "Juan", "Olivia", "Lucas", "Aarav", "Harper", "Yusuf"]
LAST = ["Lee", "Santos", "Smith", "Garcia", "Kovacs", "Moore", "Brown", "Ito", "Rossi", "Khan"]
THINGS = ["Desk Lamp", "Tea Kettle", "Office Chair", "Backpack", "Water Bottle", "Hiking Boots"]
METHODS = {"gift_card": "My gift card.", "paypal": "My PayPal.", "credit_card": "My credit card."}
EMPTY = ["cancel_reason", "exchange_items", "return_items", "refund_reason", "gift_note", "vat_id"]


class Talk:
    """A talk, and what each exchange took, by the index of its call."""

    def __init__(self, seed: int, customers: int) -> None:
        self.draw, self.calls = random.Random(seed), itertools.count()
        self.messages: list[Message] = []
        self.taken: dict[int, dict[str, str]] = {}
        self.last: dict[str, str] = {}
        self.names = [(first, last) for first in FIRST for last in LAST]
        self.draw.shuffle(self.names)
        self.says("system", "You serve customers of a shop. " + "Follow the policy. " * 40)
        for _ in range(customers):
            self.serve()

    def says(self, role: str, text: str) -> None:
        self.messages.append({"role": role, "content": text})

    def call(self, name: str, arguments: dict[str, Any], result: Any) -> None:
        self.messages += called(next(self.calls), name, arguments, json.dumps(result))

    def number(self, digits: int) -> str:
        return str(self.draw.randrange(10 ** (digits - 1), 10**digits))

    def order(self, user: str) -> dict[str, Any]:
        def item(name: str) -> dict[str, Any]:
            options = {
                "color": self.draw.choice(["red", "blue", "black"]),
                "size": self.draw.choice("SML"),
            }
            price = self.draw.randrange(2000, 40000) / 100
            return {
                "name": name,
                "item_id": self.number(10),
                "product_id": self.number(10),
                "price": price,
                "options": options,
            }

        items = [item(name) for name in self.draw.sample(THINGS, 3)]
        address = {
            "street": f"{self.number(3)} Oak Street",
            "city": "Denver",
            "zip": self.number(5),
        }
        order = {
            "order_id": f"#W{self.number(7)}",
            "user_id": user,
            "address": address,
            "items": items,
        }
        return {
            **order,
            "status": self.draw.choice(["pending", "delivered"]),
            **dict.fromkeys(EMPTY),
        }

    def serve(self) -> None:
        first, last = self.names.pop()
        user = f"{first}_{last}_{self.number(4)}".lower()
        methods = {f"{kind}_{self.number(7)}": kind for kind in METHODS}
        orders = [self.order(user) for _ in range(3)]
        record = {
            "name": {"first": first, "last": last},
            "email": f"{first}@mail.example".lower(),
            "membership": None,
            "phone": None,
            "payment_methods": {
                method: {"source": kind, "id": method} for method, kind in methods.items()
            },
            "orders": [order["order_id"] for order in orders],
        }
        self.says("user", f"Hello, I am {first} {last}. I need help with an order.")
        self.call("find_user", {"first": first, "last": last}, user)
        self.call("get_user_details", {"user_id": user}, record)
        self.says("assistant", f"Thank you, {first}. What would you like to exchange?")
        item = self.draw.choice(orders[2]["items"])
        self.says("user", f"The {item['name'].lower()}, I don't know the order number.")
        for order in orders:
            self.call("get_order_details", {"order_id": order["order_id"]}, order)
        self.says("assistant", "I found it. Which variant would you like instead?")
        self.says("user", "The same in green.")
        self.says("assistant", "There is one. Which payment method should I use?")
        method = self.draw.choice(list(methods))
        self.says("user", METHODS[methods[method]])
        self.says("assistant", "So it is exchanged for a green one. Shall I go on?")
        self.says("user", "Yes.")
        self.taken[len(self.messages)] = {"method": method, "item": item["item_id"]}
        confirmation = f"EX-{self.number(6)}"
        arguments = {
            "order_id": orders[2]["order_id"],
            "item_ids": [item["item_id"]],
            "payment_method_id": method,
        }
        done = {
            **orders[2],
            "status": "exchange requested",
            "exchange_payment_method_id": method,
            "confirmation": confirmation,
        }
        self.call("exchange_items", arguments, done)
        self.says("assistant", f"It is done, {first}. You will get an email.")
        self.last = {"name": f"{first} {last}", "confirmation": confirmation}


def shown(messages: list[Message]) -> str:
    """Return what a request shows, without bare names in ledgers."""
    text = json.dumps(messages, ensure_ascii=False)
    return "".join(line for line in text.split("\\n") if not line.startswith("Names in them:"))


@pytest.mark.parametrize("seed", range(4))
def test_half_of_the_tokens_have_what_the_call_takes(seed: int) -> None:
    talk = Talk(seed, 8)
    for at, taken in list(talk.taken.items())[4:]:
        messages = talk.messages[:at]
        fitted = fit_messages(messages, count_tokens(messages, "gpt-4o") // 2, "gpt-4o").messages
        assert [name for name, value in taken.items() if value not in shown(fitted)] == []


@pytest.mark.parametrize("window", [8_000, 12_000])
def test_steps_have_what_the_call_takes(window: int) -> None:
    lost, calls = 0, 0
    for seed in range(4):
        talk, compressor = Talk(seed, 12), Compressor(window, "gpt-4o")
        for at in (at for at, of in enumerate(talk.messages) if of["role"] == "assistant"):
            request = compressor.compress(talk.messages[:at])
            if at in talk.taken and len(request) < at:
                calls += 1
                lost += talk.taken[at]["method"] not in shown(request)
    assert calls > 20
    assert lost <= calls // 20, f"{lost} of {calls}"


@pytest.mark.parametrize("seed", range(12))
def test_who_comes_back_gets_the_number_of_what_was_done(seed: int) -> None:
    talk = Talk(seed, 3)
    asked = talk.last
    for _ in range(8):
        talk.serve()
    question = f"{asked['name']} again, I got no mail. What is my confirmation number?"
    messages = [*talk.messages, {"role": "user", "content": question}]
    assert asked["confirmation"] in shown(in_steps(messages, 8_000))
