"""record_python.py MINILM_FOLDER WHISPER_FOLDER: what sentence-transformers, faster-whisper and silero-vad make of
inputs.json, passage.txt and tests/data/speech, as JSON on standard output. See README.md for the versions."""
import base64
import json
import os
import sys
import wave

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
WAVS = os.path.join(HERE, "..", "data", "speech", "wav")
inputs = json.load(open(os.path.join(HERE, "inputs.json"), encoding="utf-8"))
passage = open(os.path.join(HERE, "passage.txt"), encoding="utf-8").read()
names = sorted(n for n in os.listdir(WAVS) if n.endswith(".wav"))


def embeddings(folder):
    from sentence_transformers import SentenceTransformer
    model = SentenceTransformer(folder, device="cpu")
    texts = inputs["texts"] + [passage]
    vectors = model.encode(texts, normalize_embeddings=True).astype("<f4")
    return {
        "max_seq_length": model.max_seq_length,
        "tokens": [model.tokenizer(t, truncation=False)["input_ids"] for t in inputs["texts"]],
        "vectors": [base64.b64encode(v.tobytes()).decode() for v in vectors],
    }


def transcripts(folder):
    from faster_whisper import WhisperModel
    model = WhisperModel(folder, device="cpu", compute_type="float32", cpu_threads=1)
    result = {}
    for name in names:
        segments, _ = model.transcribe(os.path.join(WAVS, name), language="en", beam_size=1)
        result[name] = "".join(s.text for s in segments).strip()
    return result


def samples(name):
    with wave.open(os.path.join(WAVS, name)) as w:
        assert w.getnchannels() == 1 and w.getsampwidth() == 2
        return w.getframerate(), np.frombuffer(w.readframes(w.getnframes()), "<i2").astype("f4") / 32768


def speech():
    import torch
    from silero_vad import get_speech_timestamps, load_silero_vad
    model = load_silero_vad(onnx=True)
    result = {}
    for name in names:
        rate, x = samples(name)
        if rate != 16000:
            continue
        x = torch.from_numpy(x.copy())
        segments = get_speech_timestamps(x, model, sampling_rate=16000)
        model.reset_states()
        probabilities = []
        for at in range(0, len(x), 512):
            window = torch.nn.functional.pad(x[at:at + 512], (0, max(0, at + 512 - len(x))))
            probabilities.append(round(float(model(window, 16000)), 6))
        result[name] = {"probabilities": probabilities, "segments": [[s["start"], s["end"]] for s in segments]}
    return result


print(json.dumps({"minilm": embeddings(sys.argv[1]), "whisper": transcripts(sys.argv[2]), "silero": speech()},
                 ensure_ascii=False, separators=(",", ":")))
