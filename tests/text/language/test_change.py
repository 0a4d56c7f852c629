"""A statement takes up an earlier one about the same thing if it says something else of it, in any language."""

import pytest

from memci.memory.tiers.facts import claims_of
from memci.text.language.change import asked_topics, claims, knows_nothing, signs, takes_up

CHANGED = [
    ("I live in Malmö, on the third floor.", "We have moved to Turku, boxes everywhere."),
    ("연습은 화요일이에요.", "연습이 금요일로 바뀌었어요."),
    ("월세는 70만 원이에요.", "월세가 76만 원으로 올랐어요."),
    ("Il mio armadietto è il 14.", "Adesso ho l'armadietto 31."),
    ("I'm a nurse at the eye clinic.", "On Monday I start at the print shop, as a trainee."),
    ("The garage code is 4417.", "They changed the code of the garage, now it is 9020."),
    ("The book club is on Tuesday at 19:00.", "The book club has moved to Thursday at 19:00."),
    ("The picnic with the choir is on Sunday.", "The picnic with the choir was called off."),
    ("My son's shoe size is 34.", "His feet have grown, he takes 36 these days."),
    ("I eat fish.", "I don't eat fish."),
    ("Our dinner on the boat is at Luigi's.", "We have our dinner on the boat at Nonna's instead."),
    ("Our vet is Dr. Quill.", "Dr. Quill retired, Dr. Amari sees the cat now."),
    ("My car is a red Fiat.", "I sold the Fiat and drive a grey Skoda."),
    ("I take 10 mg of the pills.", "The doctor cut the pills to 5 mg."),
    ("Ich wohne in Celle, am Markt.", "Der Umzug nach Fulda ist geschafft."),
    ("Das Turnier ist am Samstag um 10 Uhr.", "Das Turnier wurde auf Sonntag um 11 Uhr verschoben."),
    ("我住在厦门，离海很近。", "上周我们搬到了成都。"),
    ("车库的密码是2210。", "车库换了密码，现在是8891。"),
    ("J'habite à Brest, au port.", "Le déménagement à Dijon est terminé."),
    ("Le code de la cave est 3312.", "La cave a un nouveau code : 5540."),
    ("Vivo en Gijón, cerca del puerto.", "Nos hemos mudado a Toledo."),
    ("El ensayo es los lunes.", "Han cancelado el ensayo."),
    ("私は広島に住んでいます。", "先月、長野に引っ越しました。"),
    ("歯医者は月曜日の午後二時です。", "歯医者は木曜日の午後四時に変更になりました。"),
    ("My laptop is a ThinkPad.", "The ThinkPad died, I work on a MacBook these days."),
    ("Rent is 900 a month.", "The landlord raised it: we pay 980 now."),
    ("I take the 7:40 train to work.", "They cancelled the 7:40, so I take the bus at eight."),
    ("The launch is planned for 4 March.", "Launch slipped by two weeks, to the 18th."),
    ("Der Kurs beginnt um 18 Uhr.", "Der Kurs fängt neuerdings um 19 Uhr an."),
    ("Mon chien s'appelle Filou et il a deux ans.", "Filou a eu trois ans hier."),
    ("Ma banque est le Crédit du Nord.", "J'ai quitté le Crédit du Nord pour une banque en ligne."),
    ("La contraseña del wifi es lima22.", "Cambiamos la contraseña del wifi: ahora es coco81."),
    ("我女朋友叫小雨。", "我和小雨分手了。"),
    ("会議は火曜日です。", "会議は木曜日に変わりました。"),
    ("Моя собака ест сухой корм.", "Собака теперь ест только мясо."),
    ("Il mio gatto si chiama Birba.", "Birba è morto la settimana scorsa."),
    ("제 비밀번호는 1234예요.", "비밀번호를 5678로 바꿨어요."),
    ("Our dog walker is Pete.", "Pete moved away, Sasha walks the dog now."),
    ("I'm reading The Odyssey.", "I gave up on The Odyssey and started Emma."),
    ("My daughter is in third grade.", "My daughter just started fourth grade."),
    ("Mein Lieblingscafé ist das Milo.", "Das Milo hat zugemacht, ich gehe jetzt ins Wendt."),
    ("Ma voiture est une Clio.", "La Clio est en panne, je roule en vélo maintenant."),
    ("Mi vuelo sale el lunes.", "Han cambiado mi vuelo al miércoles."),
    ("我的生日聚会在海底捞。", "聚会改到必胜客了。"),
    ("家賃は八万円です。", "家賃が九万円に上がりました。"),
    ("La riunione è martedì.", "La riunione è stata spostata a giovedì."),
    ("제 상사는 김 부장이에요.", "김 부장이 퇴사해서 지금은 박 부장이에요."),
    ("Our standup is at nine every morning.", "The team moved the daily to half past ten."),
    ("The wedding will be in the old barn.", "The barn flooded, so we booked the town hall for the ceremony."),
    ("Ich wohne in Erfurt in der Altstadt.", "Wir sind letzte Woche nach Rostock gezogen."),
    ("Der Müll wird montags abgeholt.", "Ab sofort kommt die Müllabfuhr donnerstags."),
    ("Le code de la porte est 4471.", "Ils ont changé le code de la porte, c'est 9025."),
    ("Mi gata se llama Luna y tiene tres años.", "Luna acaba de cumplir cuatro."),
    ("会议定在周三下午三点。", "会议改到周五上午十点了。"),
    ("私は名古屋に住んでいます。", "先週、福岡に引っ越しました。"),
    ("Lavoro in una libreria.", "Da lunedì lavoro in comune."),
    ("I take 5 mg of ramipril every morning.", "The cardiologist put me on 2.5 mg of ramipril."),
    ("Mein Zug nach Wien fährt um 7:32 Uhr.", "Der Zug nach Wien geht laut App erst um 8:02 Uhr."),
    ("The service listens on port 8080.", "I mixed that up: the service listens on 8443."),
    ("We call the new module Ledger.", "The module Ledger got renamed to Bridge."),
    ("I might be lactose intolerant, the test is next week.", "The test says I'm not lactose intolerant."),
    ("We're adopting a beagle on Sunday.", "The beagle adoption fell apart."),
    ("Wir fliegen im Oktober nach Lissabon.", "Aus Lissabon wird nichts."),
    ("L'esame di chimica è il 14 giugno.", "L'esame di chimica slitta al 21 giugno."),
    ("El concierto de Rosalía es el 5 de julio.", "Se ha caído el concierto de Rosalía."),
    ("O churrasco do Beto é no sábado.", "O churrasco do Beto não vai acontecer."),
    ("周六和老同学聚餐。", "老同学聚餐黄了，大家都没空。"),
    ("犬のポチの体重は12キロです。", "ポチの体重、今日測ったら10.5キロでした。"),
    ("강아지 몸무게는 6kg예요.", "오늘 재 보니 강아지 몸무게가 7.2kg였어요."),
    ("Я принимаю 10 мг лизиноприла.", "Врач назначил 20 мг лизиноприла."),
    ("Van VN-38 has its pick-up at 08:15 in Dock Street.", "The pick-up of the van VN-38 is only at 10:40."),
    ("Our landlord is Mr. Hale.", "There is a new landlord, Mrs. Quist."),
    ("My landlord is Mr Osei.", "We've changed landlords: Mrs Brandt owns the place now."),
    ("Unser Tierarzt heißt Lund.", "Neuer Tierarzt seit Montag: Amari."),
    ("Mon dentiste est le docteur Petit.", "J'ai changé de dentiste, c'est le docteur Blanc maintenant."),
    ("Nuestro veterinario se llama Lund.", "Tenemos veterinario nuevo, se llama Amari."),
    ("La nostra veterinaria si chiama Lund.", "Abbiamo cambiato veterinaria, adesso è Amari."),
    ("Nosso veterinário se chama Lund.", "Mudamos de veterinário, agora é o Amari."),
    ("Нашего ветеринара зовут Лунд.", "У нас новый ветеринар, его зовут Амари."),
    ("우리 수의사는 임 선생님이야.", "수의사가 바뀌었어, 지금은 진 선생님이야."),
]
"""what was said, and what was said later"""
SAME = [
    ("My sister lives in Porto.", "I moved to Ghent in May."),
    ("The meeting with Ann is on Monday at 10:00.", "The meeting with Bob is on Tuesday at 11:00 now."),
    ("The alarm code of the studio is 5190.", "The code of the garage is 7264 now."),
    ("My daughter's shoe size is 31.", "My son takes 33 these days."),
    ("We visited Rome in 2019.", "We moved the sofa to the other room."),
    ("Room 12 is free.", "Room 21 is free."),
    ("I live in Tromsø.", "I would love to live in Ghent."),
    ("Die Probe ist donnerstags um 20 Uhr.", "Das Training ist jetzt dienstags um 19 Uhr."),
    ("仓库的密码是4082。", "办公室换了密码，现在是9371。"),
    ("J'habite à Nantes.", "Mon frère a déménagé à Annecy."),
    ("私は金沢に住んでいます。", "妹が松本に引っ越しました。"),
    ("I met Anna at the lake.", "I quit my coffee habit, Anna is proud."),
    ("The game was close.", "The game turned out to be a total success!"),
    ("It's been hectic lately.", "Lately, I've been playing other games instead of shooters."),
    ("We love painting together.", "I'd love to see another painting of yours!"),
    ("Games help me to relax.", "I'll keep you updated on all the new games."),
    ("My family enjoys hiking.", "My family now has a boat."),
    ("Your support means a lot.", "Your support means a lot. I'll keep you updated."),
    ("My sister is a nurse.", "My sister now has a new dog."),
    ("我的女儿喜欢画画。", "我女儿现在每天喝牛奶。"),
    ("I tuned violin 3.", "I tuned violin 7."),
    ("My mother has her check at the eye clinic at 10:00.", "My father has his check at the eye clinic at 11:00 now."),
    ("Le passeport de Hugo expire en 2029.", "Le passeport de Zoé a expiré en 2024."),
    ("Three days ago I went surfing.", "Two days ago my mother came."),
    ("Order QX-118 has 3 items.", "Order QX-204 has 5 items."),
    ('{"reference": "K007H", "city": "Osaka", "price": 349}', '{"reference": "K097H", "city": "Osaka", "price": 479}'),
    ('{"city": "Osaka", "nights": 2, "price": 349}', '{"city": "Osaka", "nights": 3, "price": 479}'),
    ("I'll check it out.", "I don't know if they allow pets, I'll have to check on that."),
    ("The ferry leaves at nine on Sundays.", "What if the ferry leaves at ten these days?!"),
    ("The hall costs 300 a day.", "Please move the hall booking to 280 a day."),
    ("You should just leave Piet, he is hard to live with.", "I live with two cousins in Bruges."),
    ("I work for a brewery.", "I never knew how yeast works as a leaven."),
    ("Most shops here close at noon.", "Those two clowns don't even live in the same street."),
    ("theyll be glad if you stay", "maybe theyll eat with us instead"),
    ("That makes total sense.", "It is zero, not four. Makes sense now."),
    ("I like old clocks, they look nice.", "I never had trouble with old clocks in the shop."),
    ("The poster is 60 cm wide.", "Of the four strips 10, 20, 30 and 40 cm one poster is left."),
    ("I can't pay the rent alone.", "The pay is fine, I do nothing there all day."),
    ("My favourite game is about farms.", "Grandpa lost my old box with the game and a hundred other things in it."),
    ("My train RX18 to Bergen was delayed.", "My train RX22 to Bergen was delayed by an hour."),
    ("Pottery is how I say what I feel.", "Plus, pottery is how I say what I feel."),
    ("If you use three frames, the delay is thirty.", "We use nine frames in the other delay."),
    ("The kiln in the yard holds 40 bowls.", "The other kiln holds 25 bowls."),
    ("Der Kurs ist am Montag.", "Der andere Kurs ist am Freitag."),
    ("I work at the mill.", "My son works as a diver."),
    ("My bank is Sparda.", "My brother changed banks last week."),
    ("My doctor is Kim.", "My son has a new doctor, Dr. Lee."),
    ("Mi banco es Sabadell.", "He cambiado de opinión sobre el banco."),
    ("My reason is an early flight.", "The reason of the cancellation is a change of plans."),
]
"""two statements about different things"""


@pytest.mark.parametrize(("before", "later"), CHANGED)
def test_what_says_something_else_of_the_same_thing_takes_it_up(before, later):
    assert takes_up(claims(later), claims(before))


@pytest.mark.parametrize(("before", "later"), SAME)
def test_what_tells_of_another_thing_takes_nothing_up(before, later):
    """Nothing is called changed that is not."""
    assert not takes_up(claims(later), claims(before))


@pytest.mark.parametrize(("before", "later"), CHANGED)
def test_a_question_and_an_echo_take_nothing_up(before, later):
    assert not takes_up(claims(later.rstrip(".。") + "?"), claims(before))
    assert not takes_up(claims(before), claims(before))


def test_of_themselves_everybody_tells_alone():
    """In a group, what one takes, likes or does is not changed by what another one does."""
    assert not takes_up(claims("I switched to 5 mg of the pills.", "Tom"), claims("I take 10 mg of the pills.", "Ann"))
    assert takes_up(claims("The picnic was called off.", "Tom"), claims("The picnic is on Sunday.", "Ann"))


def test_a_record_takes_up_one_with_the_same_id():
    before = claims_of('{"parcel": "ZX81-4", "stop": "Ghent", "weight": 3}', role="tool")
    assert takes_up(claims_of('{"parcel": "ZX81-4", "stop": "Turku", "weight": 3}', role="tool"), before)
    assert not takes_up(claims_of('{"parcel": "ZX81-5", "stop": "Turku", "weight": 3}', role="tool"), before)
    assert not takes_up(claims_of('{"parcel": "ZX81-4", "stop": "Ghent"}', role="tool"), before)


def test_output_of_a_tool_that_is_no_record_states_nothing():
    assert not claims_of("Switched to branch 'maps', 3 files changed, no longer on 'main'.", role="tool")


def test_another_speaker_moved_and_not_this_one():
    assert not takes_up(claims("I moved to Turku.", "Tom"), claims("I live in Malmö.", "Ann"))
    assert takes_up(claims("Ann moved to Turku.", "Tom"), claims("I live in Malmö.", "Ann"))


@pytest.mark.parametrize(
    ("question", "topics"),
    [
        ("In which city do I live?", ["home"]),
        ("What do I do for a living?", ["work"]),
        ("Was ist mein Beruf?", ["work"]),
        ("我现在住在哪里？", ["home"]),
        ("¿Dónde vivo ahora?", ["home"]),
        ("Which lamp did I buy?", []),
    ],
)
def test_a_question_asks_for_its_topic(question, topics):
    assert asked_topics(question) == topics


@pytest.mark.parametrize("text", ["Actually make it Thursday.", "取消了", "Doch nicht.", "Plutôt jeudi."])
def test_a_correction_that_names_nothing_is_loose(text):
    assert "loose" in signs(text)


@pytest.mark.parametrize(
    "text", ["I don't know the name of the inn.", "Das weiß ich leider nicht.", "我不知道您的航班号。"]
)
def test_an_answer_may_know_nothing(text):
    assert knows_nothing(text)
    assert not knows_nothing("The inn is called Lime Tree.")


@pytest.mark.parametrize(
    ("back", "thing", "beside"),
    [
        ("Forget what I said about the hotel in Kassel.", "I booked the hotel Adler in Kassel.", "I live in Kassel."),
        (
            "Vergiss, was ich über das Hotel in Kassel gesagt habe.",
            "Das Hotel in Kassel ist teuer.",
            "Ich wohne in Kassel.",
        ),
        ("Olvida lo que dije sobre el hotel en Kassel.", "Reservé el hotel Adler en Kassel.", "Vivo en Kassel."),
        ("忘掉我说的关于卡塞尔的酒店的事。", "我订了卡塞尔的酒店。", "我住在卡塞尔。"),
        ("東京の仕事について言ったことは忘れて。", "東京の仕事は楽しいです。", "東京に住んでいます。"),
        ("카셀의 호텔에 대해 말한 건 잊어줘.", "카셀의 호텔을 예약했어요.", "카셀에 살아요."),
    ],
)
def test_what_is_taken_back_is_the_thing_and_not_what_shares_its_place(back, thing, beside):
    assert takes_up(claims(back), claims(thing))
    assert not takes_up(claims(back), claims(beside))
