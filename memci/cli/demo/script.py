"""The conversation of `memci demo`: some days at a travel desk, invented, and the same each time.

    turns(200)   ──▶   [user, assistant with two calls, tool, tool, assistant], [user, assistant], …

Three colleagues plan their trips, in English, Chinese and Japanese. Flights are searched in pairs, a gateway times out,
prices and references matter later. This module knows nothing of windows, pages or the terminal.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from ...messages import Message
from .travel_tools import CITIES, Desk

SYSTEM = """\
You are the travel desk of Fennwick Instruments, for the colleagues Mara Lindqvist, 陈思远 and 佐藤美咲. Answer in the \
language that you are asked in, briefly, with the exact flight numbers, times, prices and booking references. Never \
book without a clear yes. Prices are in euros unless you say otherwise."""

Turn = list[Message]
Call = tuple[str, dict[str, Any], Any]
"""a tool's name, its arguments, its result"""


def turns(count: int = 200) -> Iterator[Turn]:
    """Yield *count* interactions: each the user's message, and all that follows until the next one."""
    told = _Trip.story(Desk(20_270_308))
    for _ in range(count):
        yield next(told)


@dataclass(slots=True)
class _Trip:
    """One trip that is being planned."""

    desk: Desk
    origin: str
    destination: str
    day: date
    nights: int
    number: int
    """of the trip: it names the calls"""
    calls: int = 0
    locator: str = ""
    flight: str = ""

    @classmethod
    def story(cls, desk: Desk) -> Iterator[Turn]:
        """Yield interactions without end, trip after trip."""
        airports = list(CITIES)
        scenes: list[Callable[[_Trip], Iterator[Turn]]]
        scenes = [_Trip.book, _Trip.in_chinese, _Trip.stay, _Trip.disturbed, _Trip.in_japanese, _Trip.settle]
        number = 0
        while True:
            origin, destination = desk.random.sample(airports, 2)
            day = date(2027, 3, 8) + timedelta(days=number // 3)
            for scene in scenes if number % 2 == 0 else reversed(scenes):
                number += 1
                nights = desk.random.randint(2, 5)
                yield from scene(cls(desk, origin, destination, day + timedelta(days=7), nights, number))

    # -- scenes

    def book(self) -> Iterator[Turn]:
        """Mara books a flight there and back."""
        there, back = self._flights()
        cheapest = min(there, key=lambda each: float(each["fare"]["amount"]))
        self.flight, self.locator = cheapest["flight"], self.desk.locator()
        yield self._turn(
            self._one_of(
                f"I need to be in {self._city()} on {self._day()} and come back {self.nights} days later. What is "
                f"there from {self._city(self.origin)}? I'd rather not get up before six.",
                f"{self._city(self.origin)} to {self._city()} on {self._day()}, please, and back after {self.nights} "
                "days. It's for the acceptance test, so no late arrival.",
                f"The customer in {self._city()} moved our meeting to {self._day()}. Flights from "
                f"{self._city(self.origin)}, {self.nights} days, what do they cost?",
                f"Audit in {self._city()}! I leave {self._city(self.origin)} on {self._day()} and stay {self.nights} "
                "nights. Show me both ways before you book anything.",
            ),
            self._searched(there, back),
            f"Out on {self._day()}: {self._list(there)}. Back on {self._day(self.nights)}: {self._list(back)}. The "
            f"cheapest way out is {self.flight} for EUR {cheapest['fare']['amount']}. Shall I book it?",
        )
        yield self._turn(
            self._one_of(
                f"Yes, {self.flight} out and {back[0]['flight']} back. Aisle seats, on cost centre CC-{self._code()}.",
                f"Go ahead with {self.flight} and {back[0]['flight']}. Charge project P-{self._code()}, not my team.",
                f"Book both, {back[0]['flight']} for the way back. The cost centre is CC-{self._code()} this time.",
            ),
            [
                ("book_flight", self._booking(cheapest), self._booked(cheapest, self.locator)),
                ("book_flight", self._booking(back[0]), self._booked(back[0], self.desk.locator())),
            ],
            f"Both are booked: {self.flight} under {self.locator}, paid from the cost centre that you named. The "
            f"receipts are on their way to m.lindqvist@fennwick.example.",
        )
        yield self._turn(
            self._one_of(
                "Can I take the demo spectrometer as a second bag? It weighs 21.4 kg in its case.",
                "I have to bring the calibration kit along, 17.8 kg. Does that go as a second bag?",
                "Two crates of samples come with me. Who pays for the extra baggage?",
            ),
            [("travel_policy", {"topic": "baggage"}, self.desk.policy("baggage"))],
            "Yes: equipment may go as a second checked bag. Fill in form B-22 with the serial number and EUR "
            f"{self._code()}.00 of declared value, and it is paid on the same cost centre.",
        )
        yield self._turn(
            self._one_of(
                f"It is SN-{self._code()}-{self._code()}. Remind me of the locator of the way out, I closed the mail.",
                f"Serial number SN-{self._code()}-{self._code()}. What was the booking reference of the way out?",
            ),
            f"It is {self.locator}, for {self.flight} on {self._day()}.",
        )

    def stay(self) -> Iterator[Turn]:
        """Mara takes a hotel and asks what the weather is like."""
        hotels = self.desk.hotels(self.nights)
        best = max(hotels, key=lambda each: float(each["rating"]))
        arguments = {"city": self._city(), "check_in": self._day(), "nights": str(self.nights)}
        yield self._turn(
            self._one_of(
                f"Now a hotel in {self._city()} for {self.nights} nights from {self._day()}. Close to a tram?",
                f"Where can I stay in {self._city()} from {self._day()}, {self.nights} nights? A quiet room, please.",
                f"{self.nights} nights in {self._city()}, check-in {self._day()}. Within the ceiling, please.",
            ),
            [
                ("search_hotels", arguments, {"currency": "EUR", "results": hotels}),
                ("travel_policy", {"topic": "hotels"}, self.desk.policy("hotels")),
            ],
            f"{best['hotel']} has the best rating ({best['rating']}): {best['about']}, EUR {best['per_night_eur']} a "
            f"night, EUR {best['total_eur']} in all. It can be cancelled free of charge until {best['free_until']}.",
        )
        code = self._code()
        yield self._turn(
            self._one_of(
                "Take it. I arrive around 23:40, so ask them how I get in.",
                "That one. My train is due at 23:15, is somebody at the desk then?",
                "Book it, and tell them that I come after midnight.",
            ),
            [
                (
                    "book_hotel",
                    {"hotel": best["hotel"], "check_in": self._day(), "guest": "Mara Lindqvist"},
                    {
                        "confirmation": f"H-{self._code()}-{self.desk.locator()}",
                        "note": f"Late arrival is fine. Side door in the yard, code {code}#, key in box "
                        f"{code % 40 + 1}. Breakfast from 06:45; the radiator in the hall is loud, that is no alarm.",
                    },
                )
            ],
            f"Booked. For your late arrival: the side door in the yard, code {code}#, key in box {code % 40 + 1}.",
        )
        there, home = (self.desk.weather(self._city(each), self._day()) for each in (self.destination, self.origin))
        yield self._turn(
            self._one_of("Do I need a coat?", "What will the weather be like there, and at home?", "Rain or sun?"),
            [
                ("weather", {"city": there["city"], "date": self._day()}, there),
                ("weather", {"city": home["city"], "date": self._day()}, home),
            ],
            f"{there['city']}: {there['sky']}, {there['low']} to {there['high']} °C. At home in {home['city']} it is "
            f"{home['sky']} with {home['high']} °C. Take {'a coat' if there['high'] < 12 else 'a light jacket'}.",
        )

    def disturbed(self) -> Iterator[Turn]:
        """A flight is late, and the gateway fails at first."""
        flight = f"ZN {self._code() % 800 + 101}"
        arguments = {"flight": flight, "date": self._day(-7)}
        failure = {
            "error": {"code": 504, "type": "upstream_timeout", "request_id": f"req_{self.desk.locator().lower()}"}
        }
        status = self.desk.status(flight)
        yield self._turn(
            self._one_of(
                f"I'm at the airport and {flight} is not on the board. What is going on?",
                f"Is {flight} late? They stopped boarding.",
                f"The app shows two times for {flight}. Which one is right?",
            ),
            [("flight_status", arguments, failure)],
            [("flight_status", arguments, status)],
            f"{flight} is {status['minutes']} minutes late ({status['reason']}); it leaves from gate {status['gate']}. "
            "The first request to the airline timed out, the second one went through.",
        )
        others = self.desk.flights(self.origin, self.destination, self._day(-7))
        rules = self.desk.policy("changes")
        yield self._turn(
            self._one_of(
                "That breaks my connection. What else goes today, and what does a change cost me?",
                "Then I miss the hand-over. Are there other flights today, and may I change?",
            ),
            [
                ("search_flights", self._route(self._day(-7)), {"results": others}),
                ("travel_policy", {"topic": "changes"}, rules),
            ],
            f"Today there is {self._list(others)}. Yours is a standard fare: after a delay of more than 60 minutes the "
            f"airline changes it without the EUR 60, otherwise you pay them and the difference.",
        )
        yield self._turn(
            f"Put me on {others[-1]['flight']} then.",
            [("book_flight", self._booking(others[-1]), self._booked(others[-1], self.desk.locator()))],
            f"You are on {others[-1]['flight']} at {others[-1]['dep'][11:]}. Keep the old boarding pass for the claim; "
            f"the case number is DL-{self._code()}{self._code()}.",
        )

    def settle(self) -> Iterator[Turn]:
        """Mara settles her expenses, in three currencies at once."""
        amounts = [(code, self.desk.random.randint(180, 9_400)) for code in ("NOK", "JPY", "GBP")]
        rates = {currency: rate for _, _, _, currency, rate in CITIES.values()}
        spent = ", ".join(f"{amount:,} {code}" for code, amount in amounts)
        euros = [round(amount * rates[code], 2) for code, amount in amounts]
        yield self._turn(
            self._one_of(
                f"Expenses of last week: {spent}. How much is that in euros, each and together?",
                f"I paid {spent} out of my own pocket. Please convert that for the claim.",
            ),
            [
                (
                    "exchange_rate",
                    {"base": code, "quote": "EUR"},
                    {"base": code, "rate": rates[code], "at": self._day(-8)},
                )
                for code, _ in amounts
            ],
            "; ".join(
                f"{amount:,} {code} = EUR {euro:,.2f}" for (code, amount), euro in zip(amounts, euros, strict=True)
            )
            + f". Together EUR {sum(euros):,.2f}.",
        )
        yield self._turn(
            f"File it under EXP-{self._code()} and leave the {amounts[0][0]} receipt out, that was a private dinner.",
            f"Filed without it: EUR {sum(euros[1:]):,.2f}. The dinner of EUR {euros[0]:,.2f} stays with you.",
        )
        yield self._turn(
            self._one_of(
                "Who has to approve the next flight if it is above 400 euros?",
                "The flight to the trade fair will be about 900 euros. Who signs that?",
            ),
            [("travel_policy", {"topic": "fares"}, self.desk.policy("fares"))],
            "Your line manager, within one working day; from EUR 1,200 on it is the finance partner, with code T-114.",
        )

    def in_chinese(self) -> Iterator[Turn]:
        """陈思远 plans a trip in Chinese."""
        there, back = self._flights()
        self.locator = self.desk.locator()
        name, start = CITIES[self.destination][1], CITIES[self.origin][1]
        fare = there[0]["fare"]["amount"]
        yield self._turn(
            f"你好,我是陈思远。{self._day()}要从{start}去{name}参加校准会议,{self.nights}天后返回,请帮我查一下往返航班。",
            self._searched(there, back),
            f"去程有{len(there)}个航班,最早的是 {there[0]['flight']},{there[0]['dep'][11:]} 起飞,票价 {fare} 欧元,"
            f"余票 {there[0]['seats']} 张;回程 {back[0]['flight']},{back[0]['fare']['amount']} 欧元。要预订吗?",
        )
        yield self._turn(
            "就订这两个吧,座位要靠窗。另外我不吃花生,请备注一下。",
            [("book_flight", self._booking(there[0], "陈思远"), self._booked(there[0], self.locator))],
            f"已预订,订单号 {self.locator},靠窗座位,并备注了花生过敏。",
        )
        sky = self.desk.weather(name, self._day())
        yield self._turn(
            f"{name}那几天的天气怎么样?酒店的价格上限是多少?",
            [
                ("weather", {"city": name, "date": self._day()}, sky),
                ("travel_policy", {"topic": "hotels"}, self.desk.policy("hotels")),
            ],
            f"{name}气温 {sky['low']} 到 {sky['high']} 度。公司规定的上限:挪威每晚 165 欧元,"
            "欧洲其他地区 140 欧元,新加坡 190 欧元。",
        )

    def in_japanese(self) -> Iterator[Turn]:
        """佐藤美咲 takes a hotel in Japanese."""
        name, hotels = CITIES[self.destination][2], self.desk.hotels(self.nights)
        choice, code = hotels[0], f"H-{self._code()}-{self.desk.locator()}"
        yield self._turn(
            f"佐藤です。{self._day()}から{self.nights}泊、{name}で静かなホテルを探してください。",
            [
                (
                    "search_hotels",
                    {"city": name, "check_in": self._day(), "nights": str(self.nights)},
                    {"results": hotels},
                )
            ],
            f"{choice['hotel']}はいかがでしょうか。1泊{choice['per_night_eur']}ユーロ、合計{choice['total_eur']}ユーロ、"
            f"評価は{choice['rating']}です。予約しますか。",
        )
        yield self._turn(
            "はい、お願いします。朝食は6時半に間に合いますか。",
            [
                (
                    "book_hotel",
                    {"hotel": choice["hotel"], "check_in": self._day(), "guest": "佐藤美咲"},
                    {"confirmation": code, "breakfast": "06:45–10:00", "early": "packed breakfast on request"},
                )
            ],
            f"予約しました。確認番号は{code}です。朝食は6時45分からですが、お弁当を頼んでおきました。",
        )
        yield self._turn("確認番号をもう一度教えてください。", f"{code}です。")

    # -- their parts

    def _turn(self, said: str, *replies: str | list[Call]) -> Turn:
        """Return what the user *said*, with each reply: a text, or calls that go out together with their results."""
        messages: Turn = [{"role": "user", "content": said}]
        for reply in replies:
            if isinstance(reply, str):
                messages.append({"role": "assistant", "content": reply})
                continue
            calls, results = [], []
            for name, arguments, result in reply:
                self.calls += 1
                call_id = f"call_{self.number:03}{self.calls:02}"
                body = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
                calls.append({"id": call_id, "type": "function", "function": body})
                content = json.dumps(result, ensure_ascii=False)
                results.append({"role": "tool", "tool_call_id": call_id, "content": content})
            messages += [{"role": "assistant", "content": None, "tool_calls": calls}, *results]
        return messages

    def _one_of(self, *wordings: str) -> str:
        return self.desk.random.choice(wordings)

    def _flights(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        return (
            self.desk.flights(self.origin, self.destination, self._day()),
            self.desk.flights(self.destination, self.origin, self._day(self.nights)),
        )

    def _searched(self, there: list[dict[str, Any]], back: list[dict[str, Any]]) -> list[Call]:
        return [
            ("search_flights", self._route(self._day()), {"results": there}),
            ("search_flights", self._route(self._day(self.nights), home=True), {"results": back}),
        ]

    def _route(self, day: str, *, home: bool = False) -> dict[str, str]:
        ends = (self.destination, self.origin) if home else (self.origin, self.destination)
        return {"origin": ends[0], "destination": ends[1], "date": day}

    def _booking(self, flight: dict[str, Any], traveller: str = "Mara Lindqvist") -> dict[str, str]:
        return {"flight": flight["flight"], "date": flight["dep"][:10], "traveller": traveller}

    def _booked(self, flight: dict[str, Any], locator: str) -> dict[str, Any]:
        seat = f"{self.desk.random.randint(4, 31)}{self.desk.random.choice('ACDF')}"
        return {
            "ok": True,
            "locator": locator,
            "seat": seat,
            "paid": flight["fare"],
            "ticket": f"731-{self._code()}55{self._code()}",
        }

    def _list(self, flights: list[dict[str, Any]]) -> str:
        return ", ".join(f"{each['flight']} at {each['dep'][11:]} (EUR {each['fare']['amount']})" for each in flights)

    def _city(self, airport: str = "") -> str:
        return CITIES[airport or self.destination][0]

    def _day(self, later: int = 0) -> str:
        return (self.day + timedelta(days=later)).isoformat()

    def _code(self) -> int:
        return self.desk.random.randint(1_000, 9_899)
