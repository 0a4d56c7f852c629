"""Standing instructions in Japanese.

    いつも日本語で答えてください。     asks, and says that it is for good
    いつも遅刻します。                 tells a habit

This module knows nothing of sentences, or of quotations in them.
"""

import re

from .patterns import any_of


def japanese(text: str) -> bool:
    """Tell whether a sentence asks for something for good, or tells a lasting preference or constraint."""
    asks = _ASKS.search(text) is not None
    if re.search(r"(?:[？?]|ですか|ますか|かな|でしょう)[。\s]*$", text) and not (asks and _TIMES.search(text)):
        return False
    if asks and (_TIMES.search(text) or _LANGUAGE.search(text)):
        return True
    return _STANDING.search(text) is not None and not _OTHERS.search(text)


_ASKS = re.compile(
    r"(?:(?:て|で)(?:おいて)?(?:ください|下さい|くれ|ちょうだい|頂戴|ほしい|欲しい"
    r"|もらえますか|いただけますか|くれますか|もらいたい|いただきたい)?"
    r"|お?願い(?:し|いた|致)?(?:します|します)?|なさい|こと|ように(?:して)?|しろ"
    r"|せよ|禁止|(?:教え|見せ)て)(?:です)?[ねよ]?[。！!？?♪〜~ー\s]*$"
)
_TIMES = re.compile(
    r"これから|今後|以降|次(?:回)?から|今日から|いつも(?!お世話|あり|すみ)|必ず"
    r"|かならず|常に|つねに|毎回|絶対|決して|二度と|一切|なるべく|できるだけ"
    r"|基本的に|デフォルト|(?:聞い|尋ね|質問|頼ん|言っ|話し|依頼"
    r"|相談).{0,6}(?:とき|時|際|たび|度|場合|たら)|(?:する|の)(?:とき|時|際|たび"
    r"|場合)(?:は|に)"
)
_STANDING = any_of(
    r"覚えて(?:おいて|おけ|て)?(?:ください|下さい|くれ|ほしい|ね"
    r"|よ)?[。！!\s]*$|(?:覚えてお|記憶してお|念頭に置|留意し)いて|忘れないで",
    r"(?<!心配し)(?<!気にし)(?<!無理し)(?<!遠慮し)(?<!怒ら)(?<!泣か)ないで(?:くだ"
    r"さい|下さい|ね|ほしい|欲しい|くれ)|(?:やめて|避けて|控えて)"
    r"(?:ください|下さい|ほしい|欲しい|ね|くれ)",
    r"(?:の|な|い)(?:ほう|方)が(?:いい|良い|よい|好き|好み|助かり|嬉しい|うれしい"
    r"|ありがたい)(?:です|な|[。！]|$)|が好(?:き|み)(?:です|だ|なので"
    r"|[。！]|$)"
    r"|(?:が|は)(?:苦手|嫌い)(?:です|だ|なので|[。！]|$)|を好みます",
    r"アレルギー(?:が(?:ある|あり)|です|持ち|なの|だ)|食べられ(?:ない"
    r"|ません)|(?:ベジタリアン|ヴィーガン|ビーガン)(?:です|な|だ)",
    r"(?:と|って)呼んで|予算は",
)
_OTHERS = re.compile(r"(?:彼|彼女|母|父|妻|夫|友人|友達|さん|くん|君|ちゃん)(?:は|が|も)")
_LANGUAGE = re.compile(r"(?:日本語|英語|中国語|韓国語|敬語|タメ口|ため口|ですます調|です・ます調|関西弁)で")
