#!/usr/bin/env python3
"""Trains the small tokenizers of this folder and writes what Hugging Face's tokenizers give.

usage: make_encoder_tokenizers.py CORPUS MOTE OUT    (pip install tokenizers sentencepiece protobuf)

CORPUS is any English text (here: Alice's Adventures in Wonderland), MOTE the tool, OUT a folder:
NAME.gguf is `mote convert NAME --tokenizer-only` of NAME/tokenizer.json, NAME.jsonl has a text a
line with ids, offsets in code points, and words: the number of each token's word, null in the frame.
text-rerank.gguf is that of a trained model (goldens/text), for its pairs.
Texts hold only characters whose category has been the same since Unicode 3.2, so that it does not
matter which table a library has.
"""
import io
import json
import os
import random
import subprocess
import sys
import unicodedata

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

CORPUS, MOTE, OUT = sys.argv[1:4]
MORE = ["Zürich’s Großmünster — «très ancien» — naïve café", "東京タワーは1958年に完成した。",
        "Москва — столица России", "서울은 대한민국의 수도이다", "ﬁne ½ ² Ⅷ ①", "नमस्ते दुनिया",
        "สวัสดีชาวโลก", "مرحبا بالعالم"] * 20
LINES = open(CORPUS, encoding="utf-8").read().split("\n") + MORE
WORDS = " ".join(LINES).split()
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
FRAGMENTS = [
    "<s>", "</s>", "<mask>", " <mask>", "  <mask> ", "<unk>", "  ", "   ", "\n", "\t", "\r\n",
    "\u00a0", "\u3000", "\u2581", "\u2581\u2581", "|||IP|||", "Foo", "Foobar", "xFoo", " Foo ",
    "<r>", "<r>  ", "é", "e\u0301", "e\u0316\u0301", "e\u0301\u0316", "\u0301", "\u0300\u0316",
    "ﬁ", "½", "①", "㌀", "ﷺ", "각", "\u1100\u1161\u11a8", "İ", "ß", "ǅ", "\u212b", "中", "文字",
    "\uf900", "\U0002f800", "नि", "க்ஷ", "\u200b", "\u200d", "\ufeff", "\u00ad", "\x00", "\x01",
    "\x0b", "\x0c", "\x85", "\u2028", "\ufffd", "``", "''", "!?", "...", "a" * 101, "ё",
    "и\u0306", "ΐ", "ᾂ", "\u0344", "\U0001d15e", "\U0001d157\U0001d165", "ｶﾞ", "か\u3099",
    "\u037e", "\u1fef", "x\u0345", "ำ", "\u0dd9\u0dcf"
]
dice = random.Random(20240229)


def settled(text):
    return all(unicodedata.ucd_3_2_0.category(c) == unicodedata.category(c) for c in text)


def code_point():
    while True:
        c = chr(dice.randrange(dice.choice([0x80, 0x3000, 0x10000])))
        if unicodedata.category(c) not in ("Cs", "Cn") and settled(c):
            return c


def text():
    parts = []
    for _ in range(dice.randrange(1, 12)):
        r = dice.random()
        parts.append(dice.choice(WORDS) if r < .45 else dice.choice(FRAGMENTS) if r < .85 else code_point())
        if dice.random() < .4:
            parts.append(" ")
    return "".join(parts)


def save(name, tokenizer):
    folder = os.path.join(OUT, name)
    os.makedirs(folder, exist_ok=True)
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({"model_type": name, "vocab_size": tokenizer.get_vocab_size()}, file)
    subprocess.run([MOTE, "convert", folder, "-o", folder + ".gguf", "--tokenizer-only"], check=True)
    texts = ["", " ", "a", "aaaaaaaaaa", "the the", "  two  spaces  "]
    while len(texts) < 120:
        t = text()
        if settled(t) and len(t) < 200:
            texts.append(t)
    with open(folder + ".jsonl", "w") as file:
        for t in texts:
            e = tokenizer.encode(t)
            json.dump({"text": t, "ids": e.ids, "offsets": e.offsets, "words": e.word_ids}, file,
                      separators=(",", ":"))
            file.write("\n")


def frame(second_type=0):
    pair = "<s> $A </s> </s> $B </s>" if not second_type else "<s> $A </s> $B:1 </s>:1"
    return processors.TemplateProcessing("<s> $A </s>", pair=pair,
                                         special_tokens=[("<s>", 0), ("</s>", 2)])


def add_special(tokenizer):
    tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t in SPECIAL] +
                                 [AddedToken("<mask>", lstrip=True, normalized=False)])


def unigram(name, rule, steps, pre_tokenizer):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=out, vocab_size=900, model_type="unigram",
        normalization_rule_name=rule, character_coverage=0.9995, hard_vocab_limit=False, minloglevel=2)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(out.getvalue())
    pieces = [(t, 0.0) for t in SPECIAL] + [(p.piece, p.score) for p in proto.pieces[3:]]
    tokenizer = Tokenizer(models.Unigram(pieces + [("<mask>", 0.0)], 3))
    steps = [s or normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap) for s in steps]
    if steps:
        tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = frame()
    add_special(tokenizer)
    save(name, tokenizer)


def byte_level(name, prefix, normalizer, post_processor):
    tokenizer = Tokenizer(models.BPE())
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    tokenizer.train_from_iterator(LINES, trainers.BpeTrainer(
        vocab_size=800, special_tokens=SPECIAL + ["<mask>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    add_special(tokenizer)
    tokenizer.add_tokens([AddedToken("  "), AddedToken("|||IP|||"),
                          AddedToken("Foo", single_word=True), AddedToken("<r>", rstrip=True)])
    tokenizer.post_processor = post_processor
    tokenizer.decoder = decoders.ByteLevel()
    save(name, tokenizer)


unigram("xlm-roberta", "nmt_nfkc", [None], pre_tokenizers.Sequence(
    [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]))
unigram("unigram-steps", "identity",
        [normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(),
         normalizers.StripAccents(), normalizers.Lowercase(),
         normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()], pre_tokenizers.Metaspace())
unigram("unigram-first", "identity", [normalizers.NFC()],
        pre_tokenizers.Metaspace(prepend_scheme="first"))
unigram("unigram-whole", "identity", [], pre_tokenizers.Metaspace(split=False))
roberta = lambda prefix: processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True,
                                                      add_prefix_space=prefix)
byte_level("roberta", False, None, roberta(False))
byte_level("roberta-prefix", True, None, roberta(True))
byte_level("modernbert", False, normalizers.NFC(), frame(second_type=1))
