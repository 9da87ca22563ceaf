#!/usr/bin/env python3
"""Make the GGUF fixtures out of the folders in tests/data/hf:

    make.py make OUT        write OUT/NAME.gguf for each NAME.head here; the build calls this (target gguf_fixtures)
    make.py add NAME.gguf   keep the head and the digest of a file that llama.cpp's converter wrote in float32

NAME.head is the header of the converter's file: metadata, vocabulary and the list of tensors. The tensors' data is
that of hf/NAME/model.safetensors, widened from bfloat16. SHA256SUMS has the digests of the converter's files: what is
made is equal to them, or the program fails.
"""
import array
import hashlib
import io
import json
import math
import os
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SUMS = os.path.join(HERE, "SHA256SUMS")
ANOTHER_FOLDER = {"bert-intent-no-pooler": "bert-intent"}  # file: folder, where the names differ

# GGUF's name of a tensor: its names in folders, without "model.layers.N." and the like; the first that exists is taken.
NAMES = {
    "token_embd": "embed_tokens embeddings.word_embeddings embeddings.tok_embeddings",
    "token_embd_norm": "embeddings.LayerNorm embeddings.norm embedding_norm",
    "token_types": "embeddings.token_type_embeddings",
    "position_embd": "embeddings.position_embeddings",
    "attn_norm": "attn_norm operator_norm input_layernorm",
    "attn_qkv": "attn.Wqkv",
    "attn_q": "self_attn.q_proj attention.self.query attention.q_lin",
    "attn_k": "self_attn.k_proj attention.self.key attention.k_lin",
    "attn_v": "self_attn.v_proj attention.self.value attention.v_lin",
    "attn_q_norm": "self_attn.q_norm self_attn.q_layernorm",
    "attn_k_norm": "self_attn.k_norm self_attn.k_layernorm",
    "attn_output": "self_attn.o_proj self_attn.out_proj self_attn.dense attention.output.dense attention.out_lin "
                   "attn.Wo",
    "attn_output_norm": "attention.output.LayerNorm sa_layer_norm",
    "post_attention_norm": "post_attention_layernorm",
    "shortconv.conv": "conv.conv",
    "shortconv.in_proj": "conv.in_proj",
    "shortconv.out_proj": "conv.out_proj",
    "ffn_norm": "ffn_norm mlp_norm pre_feedforward_layernorm post_attention_layernorm",
    "ffn_gate_inp": "mlp.gate",
    "ffn_gate": "mlp.gate_proj feed_forward.w1",
    "ffn_up": "mlp.up_proj mlp.fc1 mlp.Wi feed_forward.w3 intermediate.dense ffn.lin1",
    "ffn_down": "mlp.down_proj mlp.fc2 mlp.Wo feed_forward.w2 output.dense ffn.lin2",
    "post_ffw_norm": "post_feedforward_layernorm",
    "layer_output_norm": "output.LayerNorm output_layer_norm",
    "output_norm": "norm final_norm final_layernorm",
    "output": "lm_head",
    "cls": "pooler.dense classifier.dense pre_classifier",
    "cls.output": "classifier.out_proj classifier",
}
# rope_freqs of llama3-rope-scaled-tied, which the converter computed from config.json.
ROPE_FREQS = [1, 2.4422595500946045, 8, 8, 8, 8, 8, 8]


def read_folder(path):
    """{name: float32 bytes} of a model.safetensors in bfloat16; names are like blk.0.self_attn.q_proj.weight."""
    with open(path, "rb") as f:
        entries = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    tensors = {}
    for name, entry in entries.items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "BF16", name
        begin, end = entry["data_offsets"]
        name = re.sub(r"^(model|bert|roberta|distilbert)\.", "", name)
        name = re.sub(r"^(encoder\.layer|transformer\.layer|layers)\.", "blk.", name)
        wide = bytearray(2 * (end - begin))  # the upper two bytes of each float32
        wide[2::4], wide[3::4] = data[begin:end:2], data[begin + 1 : end : 2]
        tensors[name] = bytes(wide)
    return tensors


def read_head(head):
    """The architecture in a GGUF header, and each tensor's (name, size in bytes, offset)."""
    f = io.BytesIO(head)

    def take(form):
        return struct.unpack("<" + form, f.read(struct.calcsize("<" + form)))[0]

    def text():
        return f.read(take("Q")).decode()

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            kind, n = take("I"), take("Q")
            return [value(kind) for _ in range(n)]
        return take("BbHhIif?  Qqd"[kind])

    f.seek(8)  # magic and version
    n_tensors, n_keys = take("Q"), take("Q")
    keys = {}
    for _ in range(n_keys):
        key = text()
        keys[key] = value(take("I"))
    tensors = []
    for _ in range(n_tensors):
        name = text()
        shape = [take("Q") for _ in range(take("I"))]
        assert take("I") == 0, name  # float32
        tensors.append((name, 4 * math.prod(shape), take("Q")))
    return keys["general.architecture"], tensors


def paired(data, n_heads, head_dim):
    """Reorder the rows of queries or keys: folders have rotary halves, llama's GGUF files adjacent pairs."""
    row = len(data) // (n_heads * head_dim)
    half = head_dim // 2
    order = [h * head_dim + at for h in range(n_heads) for i in range(half) for at in (i, i + half)]
    return b"".join(data[r * row : (r + 1) * row] for r in order)


def plus_one(data):
    """Gemma's norms multiply by 1 + weight."""
    return array.array("f", [1 + x for x in array.array("f", data)]).tobytes()


def tensor(name, size, architecture, folder, config):
    """The data of one tensor of a GGUF file."""
    if name == "rope_freqs.weight":
        return array.array("f", ROPE_FREQS).tobytes()
    prefix, stem, kind = re.fullmatch(r"(blk\.\d+\.)?(.+)\.(weight|bias)", name).groups(default="")
    if stem.endswith("_exps"):
        of = [f"{prefix}mlp.experts.{i}.{stem[4:-5]}_proj.weight" for i in range(config["num_local_experts"])]
        return b"".join(folder[expert] for expert in of)
    data = next(folder[n] for n in (f"{prefix}{theirs}.{kind}" for theirs in NAMES[stem].split()) if n in folder)
    if stem in ("attn_q", "attn_k") and architecture in ("llama", "granite", "smollm3"):
        n_heads = config["num_attention_heads"]
        head_dim = config.get("head_dim", config["hidden_size"] // n_heads)
        return paired(data, n_heads if stem == "attn_q" else config["num_key_value_heads"], head_dim)
    if architecture == "gemma3" and stem.endswith("norm"):
        return plus_one(data)
    return data[-size:]  # all of it, except of RoBERTa's positions: the converter drops the first two


def fixture(name, head):
    """The whole GGUF file."""
    folder = os.path.join(HERE, "../hf", ANOTHER_FOLDER.get(name, name))
    tensors = read_folder(os.path.join(folder, "model.safetensors"))
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    architecture, wanted = read_head(head)
    out = bytearray(head)
    for tensor_name, size, offset in wanted:
        out += bytes(len(head) + offset - len(out))
        out += tensor(tensor_name, size, architecture, tensors, config)
    return out


def make(out):
    os.makedirs(out, exist_ok=True)
    with open(SUMS, encoding="utf-8") as f:
        rows = [line.split() for line in f]
    for digest, file in rows:
        name = file.removesuffix(".gguf")
        with open(os.path.join(HERE, name + ".head"), "rb") as f:
            made = fixture(name, f.read())
        if hashlib.sha256(made).hexdigest() != digest:
            sys.exit(f"make.py: {file} would differ from the converter's file (SHA256SUMS)")
        with open(os.path.join(out, file), "wb") as f:
            f.write(made)


def add(path):
    with open(path, "rb") as f:
        whole = f.read()
    data_size = max(size + offset for _, size, offset in read_head(whole)[1])
    name = os.path.basename(path).removesuffix(".gguf")
    with open(os.path.join(HERE, name + ".head"), "wb") as f:
        f.write(whole[:-data_size])
    with open(SUMS, "a", encoding="utf-8") as f:
        f.write(f"{hashlib.sha256(whole).hexdigest()}  {name}.gguf\n")


{"make": make, "add": add}[sys.argv[1]](sys.argv[2])
