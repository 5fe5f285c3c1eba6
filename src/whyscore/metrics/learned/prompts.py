"""What a language model reads before the text whose probability is asked: templates, examples, names of languages.

A template is text with the places {source} and {hypothesis}. The built-in ones:

1. Translation: two example sentences with their translations, each line after the name of its language, then the
   source in the same form. Languages without examples are asked without any; where the languages are not known, the
   lines are called Source and Translation.
2. Summarisation: a short document with its summary, then the document.

A line break after {hypothesis} ends the text, as in the examples.
"""

import re
from pathlib import Path
from typing import Literal, NamedTuple

from whyscore.errors import DataError, SpecError
from whyscore.text.files import text_of

Task = Literal["translation", "summarization"]

_PLACE = re.compile(r"\{(source|hypothesis)\}")
_CODE = re.compile(r"[a-z]{2,3}")

_SENTENCES = {
    "cs": (
        "Nový most byl po třech letech výstavby otevřen pro dopravu na jaře roku 1998.",
        "Řekla, že výbor zveřejní svou zprávu do konce roku.",
    ),
    "de": (
        "Die neue Brücke wurde im Frühjahr 1998 nach dreijähriger Bauzeit für den Verkehr freigegeben.",
        "Sie sagte, der Ausschuss werde seinen Bericht noch vor Ende des Jahres veröffentlichen.",
    ),
    "en": (
        "The new bridge was opened to traffic in the spring of 1998 after three years of construction.",
        "She said that the committee would publish its report before the end of the year.",
    ),
    "es": (
        "El nuevo puente se abrió al tráfico en la primavera de 1998, tras tres años de obras.",
        "Dijo que el comité publicaría su informe antes de que terminara el año.",
    ),
    "et": (
        "Uus sild avati liiklusele 1998. aasta kevadel pärast kolm aastat kestnud ehitustöid.",
        "Ta ütles, et komisjon avaldab oma aruande enne aasta lõppu.",
    ),
    "fi": (
        "Uusi silta avattiin liikenteelle keväällä 1998 kolmen vuoden rakennustöiden jälkeen.",
        "Hän sanoi, että komitea julkaisee raporttinsa ennen vuoden loppua.",
    ),
    "fr": (
        "Le nouveau pont a été ouvert à la circulation au printemps 1998, après trois ans de travaux.",
        "Elle a déclaré que le comité publierait son rapport avant la fin de l'année.",
    ),
    "hi": (
        "तीन साल के निर्माण के बाद नया पुल 1998 के वसंत में यातायात के लिए खोल दिया गया।",
        "उन्होंने कहा कि समिति साल के अंत से पहले अपनी रिपोर्ट प्रकाशित करेगी।",
    ),
    "it": (
        "Il nuovo ponte è stato aperto al traffico nella primavera del 1998, dopo tre anni di lavori.",
        "Ha detto che il comitato avrebbe pubblicato la sua relazione prima della fine dell'anno.",
    ),
    "ja": (
        "新しい橋は3年間の工事を経て、1998年の春に開通した。",
        "彼女は、委員会が年末までに報告書を公表すると述べた。",
    ),
    "nl": (
        "De nieuwe brug werd in het voorjaar van 1998, na drie jaar bouwen, opengesteld voor het verkeer.",
        "Ze zei dat de commissie haar rapport voor het einde van het jaar zou publiceren.",
    ),
    "pl": (
        "Nowy most został oddany do ruchu wiosną 1998 roku po trzech latach budowy.",
        "Powiedziała, że komisja opublikuje swój raport przed końcem roku.",
    ),
    "pt": (
        "A nova ponte foi aberta ao trânsito na primavera de 1998, após três anos de obras.",
        "Ela disse que o comitê publicaria o seu relatório antes do fim do ano.",
    ),
    "ro": (
        "Noul pod a fost deschis circulației în primăvara anului 1998, după trei ani de lucrări.",
        "Ea a spus că comitetul își va publica raportul înainte de sfârșitul anului.",
    ),
    "ru": (
        "Новый мост был открыт для движения весной 1998 года после трёх лет строительства.",
        "Она сказала, что комитет опубликует свой доклад до конца года.",
    ),
    "sv": (
        "Den nya bron öppnades för trafik våren 1998 efter tre års byggande.",
        "Hon sade att kommittén skulle publicera sin rapport före årets slut.",
    ),
    "tr": (
        "Yeni köprü, üç yıl süren inşaatın ardından 1998 baharında trafiğe açıldı.",
        "Komitenin raporunu yıl sonundan önce yayımlayacağını söyledi.",
    ),
    "uk": (
        "Новий міст відкрили для руху навесні 1998 року після трьох років будівництва.",
        "Вона сказала, що комітет опублікує свій звіт до кінця року.",
    ),
    "zh": ("经过三年的施工，新桥于1998年春天正式通车。", "她说，委员会将在年底前公布报告。"),
}
"""The same two sentences in each language, written for this purpose."""

_NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "fa": "Persian", "fi": "Finnish",
    "fr": "French", "gu": "Gujarati", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian",
    "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "kk": "Kazakh", "km": "Khmer",
    "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "mr": "Marathi", "ne": "Nepali", "nl": "Dutch",
    "no": "Norwegian", "pl": "Polish", "ps": "Pashto", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
    "si": "Sinhala", "sk": "Slovak", "sl": "Slovenian", "sr": "Serbian", "sv": "Swedish", "sw": "Swahili",
    "ta": "Tamil", "te": "Telugu", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu",
    "vi": "Vietnamese", "xh": "Xhosa", "yo": "Yoruba", "zh": "Chinese", "zu": "Zulu",
}  # fmt: skip

_DOCUMENT = (
    "The new bridge over the river was opened to traffic on Monday after three years of construction. The mayor said "
    "that it would shorten the way to the hospital by half an hour. Some residents complained about noise at night, "
    "and the city promised to plant trees along the road next year."
)
_SUMMARY = (
    "A new bridge opened after three years; it shortens the way to the hospital, but residents complain of noise."
)


class Composed(NamedTuple):
    """A prompt with its texts: where the source (empty where there is none) and the hypothesis stand in it."""

    text: str
    source: tuple[int, int]
    hypothesis: tuple[int, int]


class Prompt(NamedTuple):
    """A template in parts: what stands before the source, between source and hypothesis, and after it."""

    before: str
    between: str
    after: str
    reads_source: bool
    shots: int = 0

    @property
    def template(self) -> str:
        """The text with its places."""
        return f"{self.before}{'{source}' if self.reads_source else ''}{self.between}{{hypothesis}}{self.after}"

    def compose(self, source: str, hypothesis: str) -> Composed:
        """Return the text that a model reads."""
        first = len(self.before)
        shown_source = source if self.reads_source else ""
        second = first + len(shown_source) + len(self.between)
        text = f"{self.before}{shown_source}{self.between}{hypothesis}{self.after}"
        return Composed(text, (first, first + len(shown_source)), (second, second + len(hypothesis)))


def template_of(text: str) -> Prompt:
    r"""Return a template of the user's, or refuse one whose places are not where they can be used.

    >>> template_of("German: {source}\nEnglish: {hypothesis}\n").between
    '\nEnglish: '
    """
    places = [match[1] for match in _PLACE.finditer(text)]
    if places not in (["source", "hypothesis"], ["hypothesis"]):
        names = ", ".join(f"{{{place}}}" for place in places) or "neither"
        raise SpecError(
            f"lmscore: a prompt has {{hypothesis}} once, and before it {{source}} once or, to score fluency alone, "
            f"not at all; found {names} in {text[:80]!r}"
        )
    parts = _PLACE.split(text)[::2]
    if len(places) == 1:
        return Prompt("", parts[0], parts[1], reads_source=False)
    before, between, after = parts
    return Prompt(before, between, after, reads_source=True)


def read_template(spec: str) -> Prompt:
    """Return a template that was given as text or as the name of a file that holds it."""
    if _PLACE.search(spec) or "\n" in spec or not Path(spec).expanduser().is_file():
        return template_of(spec)
    try:
        return template_of(text_of(str(Path(spec).expanduser())))
    except SpecError as error:
        raise DataError(str(error), file=spec) from error


def read_built_in(task: Task, languages: str | None, shots: int) -> Prompt:
    r"""Return the built-in template of a task with at most that many examples.

    >>> read_built_in("translation", "de-sw", 2).template
    'German: {source}\nSwahili: {hypothesis}\n'
    """
    if task == "summarization":
        labels, examples = ("Document", "Summary"), [(_DOCUMENT, _SUMMARY)][:shots]
    else:
        labels, examples = _translation(languages, shots)
    lines = "".join(f"{labels[0]}: {source}\n{labels[1]}: {target}\n\n" for source, target in examples)
    return Prompt(f"{lines}{labels[0]}: ", f"\n{labels[1]}: ", "\n", reads_source=True, shots=len(examples))


def _translation(languages: str | None, shots: int) -> tuple[tuple[str, str], list[tuple[str, str]]]:
    if languages is None:
        return ("Source", "Translation"), []
    source, target = language_pair(languages)
    if source not in _SENTENCES or target not in _SENTENCES:
        examples = []
    else:
        examples = list(zip(_SENTENCES[source], _SENTENCES[target], strict=True))[:shots]
    return (language_name(source), language_name(target)), examples


def language_name(code: str) -> str:
    """Return the English name of a language, or the code where it is not known.

    >>> language_name("de"), language_name("tlh")
    ('German', 'tlh')
    """
    return _NAMES.get(code, code)


def language_pair(languages: str, who: str = "lmscore") -> tuple[str, str]:
    """Return the codes of source and target, regions and scripts left out.

    >>> language_pair("pt-BR-en")
    ('pt', 'en')
    """
    codes = [part for part in languages.replace("_", "-").split("-") if _CODE.fullmatch(part)]
    if len(codes) != len(("source", "target")):
        raise SpecError(f"{who}: languages is {languages!r}, expected two codes such as 'de-en'")
    return codes[0], codes[1]
