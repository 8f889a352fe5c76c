"""Writes a language model of a few hundred kilobytes in GGUF.

usage: tiny_model.py FILE

Its weights are made so that the next token depends on the last one alone: every
token of a prompt leads to the first word of a sentence, each word to the next, and
the last to the end of text. So a real inference engine runs a real model, and what
it writes is known. No weights are downloaded.
"""

import sys

import gguf
import numpy as np

SENTENCE = (
    "The agent read internal/log/store.go and found that Append returns before its sync; "
    "now Sync precedes every acknowledgement, TestAppendIsDurable passes. "
    "Open question: benchmarks have not been run."
).split()
WIDTH, HEADS, LAYERS, CONTEXT = 64, 2, 1, 2048

CHAT_TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"
)

assert len(SENTENCE) < WIDTH and len(set(SENTENCE)) == len(SENTENCE)

tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
types = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
types += [gguf.TokenType.BYTE] * 256
first = len(tokens)
tokens += ["\u2581" + word for word in SENTENCE]
types += [gguf.TokenType.NORMAL] * len(SENTENCE)
# So low that the tokenizer never makes words of a prompt, whose bytes stay single.
scores = [0.0] * first + [-1000.0] * len(SENTENCE)

# Direction 0 represents every token of a prompt, direction i for word i of the
# sentence, and the output row of a word looks along its predecessor's direction.
embedding = np.zeros((len(tokens), WIDTH), np.float32)
embedding[:first, 0] = 1
output = np.zeros((len(tokens), WIDTH), np.float32)
for i in range(len(SENTENCE)):
    embedding[first + i, i + 1] = 1
    output[first + i, i] = 4
output[2, len(SENTENCE)] = 4

w = gguf.GGUFWriter(sys.argv[1], "llama")
w.add_name("tiny")
w.add_context_length(CONTEXT)
w.add_embedding_length(WIDTH)
w.add_block_count(LAYERS)
w.add_feed_forward_length(WIDTH)
w.add_head_count(HEADS)
w.add_head_count_kv(HEADS)
w.add_rope_dimension_count(WIDTH // HEADS)
w.add_layer_norm_rms_eps(1e-5)
w.add_vocab_size(len(tokens))
w.add_tokenizer_model("llama")
w.add_token_list(tokens)
w.add_token_scores(scores)
w.add_token_types(types)
w.add_bos_token_id(1)
w.add_eos_token_id(2)
w.add_unk_token_id(0)
w.add_chat_template(CHAT_TEMPLATE)
w.add_tensor("token_embd.weight", embedding)
w.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
w.add_tensor("output.weight", output)
rng = np.random.default_rng(1)
for i in range(LAYERS):
    for name in ("attn_norm", "ffn_norm"):
        w.add_tensor(f"blk.{i}.{name}.weight", np.ones(WIDTH, np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up"):
        w.add_tensor(f"blk.{i}.{name}.weight", rng.normal(0, 0.1, (WIDTH, WIDTH)).astype(np.float32))
    # What a layer adds is nothing.
    for name in ("attn_output", "ffn_down"):
        w.add_tensor(f"blk.{i}.{name}.weight", np.zeros((WIDTH, WIDTH), np.float32))
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
