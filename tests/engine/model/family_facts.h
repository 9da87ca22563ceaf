/* family_facts.h: what each fixture in tests/data/hf is, in the words of test_families.c's describe. */
#ifndef TEST_FAMILY_FACTS_H
#define TEST_FAMILY_FACTS_H

static const struct {
    const char *name, *is;
} facts[] = {
    {"albert-intent", "albert classify 3x64 ctx 128 ln/post+e 1e-12 heads 4/4x16 gelu_pytorch_tanh 128 "
                      "learned types 2 in 32 dense tanh tied labels 5"},
    {"bart", "bart seq2seq 2x64 ctx 128 ln/post+e 1e-05 heads 4/4x16 gelu 128 learned source 2x128 heads 4 "
             "ff 128 mel 0 start 2 tied"},
    {"bert-intent", "bert classify 3x64 ctx 128 ln/post+e 1e-12 heads 4/4x16 gelu 128 learned types 2 dense "
                    "tanh tied labels 5"},
    {"bert-ner", "bert tag 3x64 ctx 128 ln/post+e 1e-12 heads 4/4x16 gelu 128 learned types 2 tied labels 7"},
    {"cross-encoder-rerank", "bert classify 3x64 ctx 128 ln/post+e 1e-12 heads 4/4x16 gelu 128 learned types "
                             "2 dense tanh tied labels 1"},
    {"deberta-v3-nli", "deberta-v2 classify 3x64 ctx 128 ln/post+e 1e-07 heads 4/4x16 gelu 128 relative "
                       "32<128 dense gelu tied labels 3"},
    {"distilbert-intent",
     "bert classify 3x64 ctx 128 ln/post+e 1e-12 heads 4/4x16 gelu 128 learned dense relu tied labels 5"},
    {"distilbert-ner", "bert tag 3x64 ctx 128 ln/post+e 1e-12 heads 4/4x16 gelu 128 learned tied labels 7"},
    {"electra-intent", "electra classify 3x64 ctx 128 ln/post+e 1e-12 heads 4/4x16 gelu 128 learned types 2 "
                       "in 32 dense gelu tied labels 5"},
    {"flan-t5-gated", "t5 seq2seq 3x64 ctx 512 rms/pre+f 1e-06 heads 4/4x16 gelu_pytorch_tanh gated 128 "
                      "scale 1 buckets 8<32 source 3x512 heads 4 ff 128 mel 0 start 0 tied"},
    {"gemma2-softcap", "gemma2 generate 3x64 ctx 256 rms/sandwich+f 1e-06 heads 4/2x16 gelu_pytorch_tanh "
                       "gated 160 cap 50 window 16 rope 16@10000 layers 1,0,1 embd*8 logits<30 tied"},
    {"gemma3", "gemma3 generate 6x64 ctx 256 rms/sandwich+f 1e-06 heads 4/1x32 qk-head gelu_pytorch_tanh "
               "gated 160 window 16 rope 32@1e+06 local 32@10000 layers 1,1,1,1,1,0 embd*8 tied"},
    {"gpt-neo-local", "gptneo generate 4x64 ctx 256 ln/pre+f 1e-05 heads 4/4x16 gelu_pytorch_tanh 256 scale "
                      "1 window 16 learned layers 0,1,0,1 tied"},
    {"gpt-neox-pythia",
     "gptneox generate 3x64 ctx 256 ln/pre+f 1e-05 heads 4/4x16 two-norms gelu 160 rope 4@10000"},
    {"gpt2", "gpt2 generate 3x64 ctx 256 ln/pre+f 1e-05 heads 4/4x16 gelu_pytorch_tanh 256 learned tied"},
    {"granite", "granite generate 3x64 ctx 256 rms/pre+f 1e-06 heads 4/2x16 silu gated 160 scale 0.125 rope "
                "16@10000 embd*3 res*0.5 logits*0.5"},
    {"lfm2-conv", "lfm2 generate 4x64 ctx 256 rms/pre+f 1e-05 heads 4/2x16 qk-head silu gated 160 rope "
                  "16@1e+06 layers 4,0,4,0 taps 3 tied"},
    {"llama-bf16", "llama generate 3x64 ctx 256 rms/pre+f 1e-06 heads 4/4x16 silu gated 160 rope 16@10000"},
    {"llama-gqa", "llama generate 3x64 ctx 256 rms/pre+f 1e-05 heads 4/2x16 silu gated 160 rope 16@10000"},
    {"llama3-rope-scaled-tied",
     "llama generate 3x64 ctx 512 rms/pre+f 1e-06 heads 4/1x16 silu gated 160 rope 16@500000 llama3 tied"},
    {"lstm-anomaly", "lstm score 2x0 ctx 0 lstm 6>32 labels 2"},
    {"marian-translate", "marian seq2seq 2x64 ctx 128 ln/post 1e-05 heads 4/4x16 silu 128 sines embd*8 "
                         "source 2x128 heads 4 ff 128 mel 0 start 0 tied"},
    {"minilm-embed", "bert embed 3x64 ctx 128 ln/post+e 1e-12 heads 4/4x16 gelu 128 learned types 2 tied"},
    {"mistral-sliding", "llama generate 3x64 ctx 256 rms/pre+f 1e-06 heads 4/2x16 silu gated 160 window 16 "
                        "rope 16@10000 layers 1,1,1"},
    {"modernbert-embed", "modern-bert embed 3x64 ctx 128 ln/pre+e+f 1e-05 heads 4/4x16 gelu gated 128 window "
                         "16 rope 16@160000 local 16@10000 layers 16,1,1 tied"},
    {"mpnet-embed",
     "mpnet embed 3x64 ctx 128 ln/post+e 1e-12 heads 4/4x16 gelu 128 learned buckets 32<128 tied"},
    {"olmo2",
     "olmo2 generate 3x64 ctx 256 rms/output+f 1e-05 heads 4/2x16 qk-width silu gated 160 rope 16@10000"},
    {"opt", "opt generate 3x64 ctx 256 ln/pre+f 1e-05 heads 4/4x16 relu 160 learned tied"},
    {"phi-1.5",
     "phi2 generate 3x64 ctx 256 ln/pre+f 1e-05 heads 4/4x16 one-norm gelu_pytorch_tanh 160 rope 8@10000"},
    {"phi3", "phi3 generate 3x64 ctx 256 rms/pre+f 1e-05 heads 4/2x16 silu gated 160 rope 16@10000"},
    {"qwen2-bias",
     "qwen2 generate 3x64 ctx 256 rms/pre+f 1e-06 heads 4/2x16 silu gated 160 rope 16@1e+06 tied"},
    {"qwen3-moe", "qwen3moe generate 3x64 ctx 256 rms/pre+f 1e-06 heads 4/2x16 qk-head silu gated 160 "
                  "experts 2/6x48 sum rope 16@10000"},
    {"qwen3-qknorm",
     "qwen3 generate 3x64 ctx 256 rms/pre+f 1e-06 heads 4/2x32 qk-head silu gated 160 rope 32@1e+06"},
    {"roberta-intent", "bert classify 3x64 ctx 128 ln/post+e 1e-12 heads 4/4x16 gelu 128 learned types 1 "
                       "dense tanh tied labels 5"},
    {"smollm3-nope", "smollm3 generate 4x64 ctx 256 rms/pre+f 1e-06 heads 4/2x16 silu gated 160 rope "
                     "16@2e+06 layers 0,0,0,2 tied"},
    {"stablelm", "stablelm generate 3x64 ctx 256 ln/pre+f 1e-05 heads 4/4x16 silu gated 160 rope 4@10000"},
    {"t5-small-relu", "t5 seq2seq 3x64 ctx 512 rms/pre+f 1e-06 heads 4/4x16 relu 128 scale 1 buckets 8<32 "
                      "logits*0.125 source 3x512 heads 4 ff 128 mel 0 start 0 tied"},
    {"vit-tiny", "vit classify-image 3x64 ctx 17 ln/pre+f 1e-12 heads 4/4x16 gelu 128 learned labels 4"},
    {"whisper", "whisper transcribe 2x64 ctx 64 ln/pre+f 1e-05 heads 4/4x16 gelu 128 learned source 2x1500 "
                "heads 4 ff 128 mel 80 start 0 tied"},
    {"xlmr-ner", "bert tag 3x64 ctx 128 ln/post+e 1e-12 heads 4/4x16 gelu 128 learned types 1 tied labels 7"},
};

#endif
