"""The desk of a travel agent that does not exist: its tools, and what they answer.

    desk = Desk(7)
    desk.flights("OSL", "BGO", "2027-03-09")   ──▶   [{"flight": "QV 418", "dep": "07:25", "fare": …}, …]

All of it is invented, and the same for the same seed. This module knows nothing of who asks, or of messages.
"""

import random
from typing import Any

from ...messages import Message

CITIES = {
    "OSL": ("Oslo", "奥斯陆", "オスロ", "NOK", 0.0857),
    "BGO": ("Bergen", "卑尔根", "ベルゲン", "NOK", 0.0857),
    "PVG": ("Shanghai", "上海", "上海", "CNY", 0.1289),
    "KIX": ("Osaka", "大阪", "大阪", "JPY", 0.00614),
    "LIS": ("Lisbon", "里斯本", "リスボン", "EUR", 1.0),
    "YUL": ("Montréal", "蒙特利尔", "モントリオール", "CAD", 0.6731),
    "SIN": ("Singapore", "新加坡", "シンガポール", "SGD", 0.6894),
    "EDI": ("Edinburgh", "爱丁堡", "エディンバラ", "GBP", 1.1702),
}
"""By airport: the city in English, Chinese and Japanese, its currency, and euros for one unit of it."""

_HOTELS = (
    ("Brygge House", "on the old quay, 4 minutes from the tram"),
    ("Hotel Meridian 12", "next to the central station, soundproof windows"),
    ("The Linden Rooms", "a quiet courtyard, no lift"),
    ("Casa Verde", "rooftop breakfast, rooms from 11 m²"),
    ("Harbour Light", "reception closes at 22:30, key box for later arrivals"),
    ("Pension Ostara", "family-run, shared kitchen, cash only"),
)
_SKIES = ("light rain", "clear", "overcast", "gusts up to 58 km/h", "fog until 10:00", "snow showers", "sunny spells")
_POLICIES = {
    "fares": (
        "Bookings up to EUR 400 need no approval. Between EUR 400 and EUR 1,200 the line manager approves within one "
        "working day; above that the finance partner does (code T-114). Premium economy is allowed on flights of six "
        "hours and more, business class only with the written consent of the head of department."
    ),
    "hotels": (
        "The ceiling per night is EUR 165 in Norway, EUR 140 in the rest of Europe and EUR 190 in Singapore, breakfast "
        "included. Weekend nights are paid if the flight home becomes cheaper by at least their price (rule H-7). "
        "Receipts must name the guest and the cost centre."
    ),
    "baggage": (
        "One cabin bag of 8 kg is always included. A checked bag of 23 kg is paid for trips of four nights and more, "
        "a second one only for samples or equipment (form B-22). Sports equipment is private."
    ),
    "changes": (
        "A flexible fare can be changed until 45 minutes before departure, a standard fare until 24 hours before, for "
        "EUR 60 and the difference. Light fares are not changed; only taxes are refunded, within 14 days."
    ),
}

_ARGUMENTS = {
    "search_flights": ("origin", "destination", "date"),
    "book_flight": ("flight", "date", "traveller"),
    "search_hotels": ("city", "check_in", "nights"),
    "book_hotel": ("hotel", "check_in", "guest"),
    "flight_status": ("flight", "date"),
    "exchange_rate": ("base", "quote"),
    "weather": ("city", "date"),
    "travel_policy": ("topic",),
    "find_booking": ("locator",),
}

TOOLS: tuple[Message, ...] = tuple(
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"{name.replace('_', ' ').capitalize()}.",
            "parameters": {
                "type": "object",
                "properties": {argument: {"type": "string"} for argument in arguments},
                "required": list(arguments),
            },
        },
    }
    for name, arguments in _ARGUMENTS.items()
)
"""The schemas of the desk's tools."""


class Desk:
    """Answers for the tools. Every answer is invented, from one run of random numbers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 -- a story needs no secrets

    def locator(self) -> str:
        """Return a booking's reference."""
        return "".join(self.random.choice("ABCDEFGHJKLMNPQRSTUVWXYZ23456789") for _ in range(6))

    def flights(self, origin: str, destination: str, date: str) -> list[dict[str, Any]]:
        """Return some flights of a day, by departure."""
        found = []
        for hour in sorted(self.random.sample(range(6, 22), self.random.randint(2, 4))):
            minute, hours = self.random.choice((5, 20, 25, 40, 55)), self.random.randint(1, 2)
            cents = self.random.randrange(6_900, 58_000, 5)
            found.append(
                {
                    "flight": f"{self.random.choice(('QV', 'ZN', 'HK'))} {self.random.randint(102, 989)}",
                    "from": origin,
                    "to": destination,
                    "dep": f"{date}T{hour:02}:{minute:02}",
                    "arr": f"{date}T{(hour + hours) % 24:02}:{(minute + 35) % 60:02}",
                    "fare": {"amount": f"{cents / 100:.2f}", "currency": "EUR"},
                    "seats": self.random.randint(1, 9),
                }
            )
        return found

    def hotels(self, nights: int) -> list[dict[str, Any]]:
        """Return some hotels."""
        return [
            {
                "hotel": name,
                "about": about,
                "per_night_eur": (price := self.random.randint(74, 188)),
                "total_eur": price * nights,
                "rating": self.random.randint(71, 97) / 10,
                "free_until": f"{self.random.choice((24, 48, 72))} h before",
            }
            for name, about in self.random.sample(_HOTELS, 3)
        ]

    def status(self, flight: str) -> dict[str, Any]:
        """Return how late a flight is."""
        minutes = self.random.choice((15, 35, 70, 95, 140))
        reason = self.random.choice(("late inbound aircraft", "de-icing", "crew rest", "air traffic control"))
        return {"flight": flight, "status": "delayed", "minutes": minutes, "reason": reason, "gate": self.gate()}

    def gate(self) -> str:
        """Return a gate."""
        return f"{self.random.choice('ABCDE')}{self.random.randint(2, 38)}"

    def weather(self, city: str, date: str) -> dict[str, Any]:
        """Return a forecast."""
        low = self.random.randint(-4, 16)
        return {"city": city, "date": date, "sky": self.random.choice(_SKIES), "low": low, "high": low + 6}

    def policy(self, topic: str) -> dict[str, Any]:
        """Return what the company's rules say."""
        return {"topic": topic, "version": "2027-01", "text": _POLICIES[topic]}
