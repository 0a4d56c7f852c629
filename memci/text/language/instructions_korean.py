"""Standing instructions in Korean.

    항상 한국어로 대답해 주세요.     asks, and says that it is for good
    저는 항상 늦어요.               tells a habit

This module knows nothing of sentences, or of quotations in them.
"""

import re

from .patterns import any_of


def korean(text: str) -> bool:
    """Tell whether a sentence asks for something for good, or tells a lasting preference or constraint."""
    if re.search(r"(?:[?？]|나요|까요?|니|냐)[.\s]*$", text):
        return bool(re.search(r"(?:줄래|주시겠|줄 수|주실 수)", text) and _TIMES.search(text))
    if _ASKS.search(text) and (_TIMES.search(text) or _LANGUAGE.search(text)):
        return True
    return _STANDING.search(text) is not None and not _OTHERS.search(text)


_ASKS = re.compile(
    r"(?:주세요|주십시오|주시기|줘요?|줘라|세요|십시오|바랍니다|바라요|부탁(?:해요?"
    r"|드려요|드립니다|합니다)?|마(?:세요|십시오|라|요)?|말아요?|해라?"
    r"|할 것|둬요?"
    r"|좋겠(?:어요?|습니다)|싶어요?)[.!~\s]*$"
)
_TIMES = re.compile(
    r"(?:^|[\s,])(?:앞으로|이제부터|지금부터|오늘부터|다음부터|항상|언제나|늘"
    r"|매번|반드시|꼭|절대|다시는|무조건|가급적|되도록|기본적으로)"
    r"|(?:제가|내가).{0,30}(?:물어보|물으|질문하|요청하|말하|부탁하|얘기하|언급하).{0,6}(?:면|때|마다)"
)
_STANDING = any_of(
    r"기억해\s?(?:줘|주세요|둬|두세요|주십시오)|기억해[.!~\s]*$|잊지\s?(?:마|말)|명심해|참고해\s?(?:줘|주세요)|유의해",
    r"(?<!걱정하)(?<!신경 쓰)(?<!무리하)(?<!울)(?<!포기하)(?<!미안해하)지\s?(?"
    r":마(?:세요|십시오|라|요)?|말아(?:\s?(?:주세요|줘|주십시오"
    r"|요))?)[.!~\s]*$",
    r"(?:저는|나는|난|전|제가|내가)\s.*(?:더 좋|선호|좋아해|좋아합니다|좋아하는 편"
    r"|싫어(?!졌)|편해)|선호(?:해|합니다)|(?:게|이|가) 더 좋(?:아|습)"
    r"|더 좋아(?:해|합)",
    r"(?:알레르기|알러지)(?:가|는)?\s?(?:있|예요|이에요|입니다)|못\s?먹(?:어|습)|채식(?:주의|을 해|해요)|비건(?:이|입)",
    r"(?:이?라고|으로)\s?불러|(?:내|제) 예산은",
)
_OTHERS = re.compile(r"(?:그는|그녀는|친구[는가]|엄마[는가]|아빠[는가]|동생[은이]|남편[은이]|아내[는가])")
_LANGUAGE = re.compile(r"(?:한국어|영어|일본어|존댓말|반말|중국어)로")
