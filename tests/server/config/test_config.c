#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "config/config_put.h"
#include "config/config_docs.h"

#define MODELS "models:\n  - name: m\n"
/* Line 3 is the pipeline's name, line 5 its first stage. */
#define PIPE "models: [{name: m}]\npipelines:\n  - name: p\n    stages:\n"

#define KEY_LOW  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define KEY_REST "123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define KEY_UP   "0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef"

typedef struct bad_case {
    const char *yaml;
    const char *says; /* must be in the sentence, which starts with "t.yaml:LINE" */
    int line;         /* 0: not looked at */
} bad_case;

#define VERIFY "models: [{name: m}, {name: n}]\nensembles: [{name: e, kind: verify, "
static const bad_case bad_cases[] = {
    {"", "empty", 1},
    {"listen: 127.0.0.1:1\n", "'models' is required", 1},
    {"- models\n", "must be a map, not a list", 1},
    {"nothing\n", "must be a map, not a text", 1},
    {MODELS "---\n" MODELS, "a second document", 3},
    {"models: []\n", "models", 1},
    {MODELS "colour: red\n", "there is no key 'colour' here; the keys are listen, also_listen, tls", 3},
    {MODELS "limits:\n  max_body_byte: 5\n",
     "limits: there is no key 'max_body_byte' here; did you mean "
     "'max_body_bytes'?",
     4},
    {MODELS "Listen: ':80'\n", "did you mean 'listen'?", 3},
    {MODELS "limits:\n  max_body_bytes: 4096k\n",
     "limits.max_body_bytes: must be a whole number from 1024 to "
     "1073741824, in digits alone, not '4096k'",
     4},
    {MODELS "deadline_ms: 60s\n", "not '60s'", 3},
    {MODELS "deadline_ms: 1e3\n", "not '1e3'", 3},
    {MODELS "deadline_ms: 1.5\n", "not '1.5'", 3},
    {MODELS "deadline_ms: 1_000\n", "not '1_000'", 3},
    {MODELS "deadline_ms: 010\n", "not '010'", 3},
    {MODELS "deadline_ms: 0x10\n", "not '0x10'", 3},
    {MODELS "deadline_ms: 1 0\n", "not '1 0'", 3},
    {MODELS "deadline_ms: -5\n",
     "deadline_ms: must be a whole number from 0 to 86400000, in digits alone, not "
     "'-5'",
     3},
    {MODELS "cpu: {reserve: 64}\n", "cpu.reserve: must be a whole number from 0 to 63", 3},
    {MODELS "cpu: {reserve: -1}\n", "cpu.reserve: must be a whole number", 3},
    {MODELS "cpu: {nice: -21}\n", "cpu.nice: must be a whole number from -20 to 19, not '-21'", 3},
    {MODELS "cpu: {nice: 20}\n", "cpu.nice: must be", 3},
    {MODELS "cpu: {nice: 0.5}\n", "cpu.nice: must be", 3},
    {MODELS "cpu: {sched: idle}\n", "cpu.sched: 'idle' is none of fair, batch, rr, fifo", 3},
    {MODELS "limits: {max_requests: 0}\n", "from 1 to 100000", 3},
    {MODELS "limits:\n", "limits: must be a map, not an empty value (leave the key out instead)", 3},
    {PIPE "      - {name: a, kind: tag, model: m, tools: [{name: f}]}\n",
     "stages[0].tools: only a generate stage has it", 5},
    {PIPE "      - {name: a, kind: generate, model: m, tool_choice: required}\n",
     "stages[0].tool_choice: there are no 'tools'", 5},
    {PIPE "      - {name: a, kind: generate, model: m, parallel_tool_calls: true}\n",
     "stages[0].parallel_tool_calls: there are no 'tools'", 5},
    {PIPE "      - name: a\n        kind: generate\n        model: m\n        tools: [{name: f}]\n"
          "        tool_choice: g\n",
     "stages[0].tool_choice: 'g' is not auto, required or none, nor the name of one of 'tools'", 9},
    {PIPE "      - name: a\n        kind: generate\n        model: m\n        tools:\n"
          "          - {name: f}\n          - {name: f}\n",
     "tools[1].name: 'f' is already the name of tools[0]", 10},
    {PIPE "      - name: a\n        kind: generate\n        model: m\n        tools:\n"
          "          - {name: auto}\n",
     "tools[0].name: 'auto' is a word of tool_choice", 9},
    {PIPE "      - name: a\n        kind: generate\n        model: m\n        tools:\n"
          "          - {name: f, parameters: [1]}\n",
     "tools[0].parameters: arguments are an object", 9},
    {PIPE "      - name: a\n        kind: generate\n        model: m\n        tools:\n"
          "          - name: f\n            parameters:\n"
          "              {properties: {a: {enum_of: rooms}}}\n",
     "tools[0].parameters: 'enum_of' must be devices, names, areas, or a pattern", 10},
    {PIPE "      - name: a\n        kind: generate\n        model: m\n        tools: []\n",
     "stages[0].tools: must have 1 to 64 entries", 8},
    {MODELS "aliases: [m]\n", "aliases: must be a map, not a list", 3},
    {MODELS "aliases: {}\n", "aliases: must have 1 to 256 entries, this has 0", 3},
    {MODELS "aliases: {x: [m]}\n", "aliases.x: must be a text, not a list", 3},
    {MODELS "aliases:\n  a: m\n  x:\n", "aliases.x: must not be empty", 5},
    {MODELS "aliases:\n  a: m\n  a: m\n", "a", 5},
    {MODELS "aliases:\n  gpt-4o: m\n  llama3.2:1b: n\n",
     "aliases.llama3.2:1b: 'n' is no model, ensemble, route or pipeline of this file; did you mean 'm'?", 5},
    {MODELS "aliases:\n  gpt-4o: elsewhere\n",
     "'elsewhere' is no model, ensemble, route or pipeline of this file; if models.json lists it, add `- "
     "name: "
     "elsewhere` under models",
     4},
    {MODELS "aliases:\n  x: 'm:german'\n", "'m:german' is no model", 4},
    {MODELS "aliases:\n  m: m\n", "aliases.m: is the name of a model of this file: remove this alias", 4},
    {"models: [{name: m, adapters: [{name: a, path: b}]}]\naliases: {'m:a': m}\n",
     "aliases.m:a: is the name of an adapter of this file", 2},
    {MODELS "routes: [{name: auto, rules: [{model: m}]}]\naliases: {auto: m}\n",
     "aliases.auto: is the name of a route", 4},
    {MODELS "aliases: {a: b, b: a}\n", "aliases.a: 'b' is an alias itself: name what is served, such as 'm'",
     3},
    {MODELS "aliases: {a: a}\n", "aliases.a: 'a' is an alias itself", 3},
    {MODELS "aliases: {a: m, b: a}\n", "aliases.b: 'a' is an alias itself: name what is served, such as 'm'",
     3},
    {"models: [{name: 'llama3.2:1b', path: a.gguf}]\n", "such as llama3.2-1b; aliases may hold", 1},
    {MODELS "aliases: {'two words': m}\n", "the name may hold letters, digits", 3},
    {MODELS "aliases: {'-rf': m}\n", "and begins with a letter", 3},
    {MODELS "aliases: {'': m}\n", "must not be empty", 3},
    {MODELS "aliases: {gpt: m}\napi_keys: [{name: k, sha256: 'sha256:" KEY_LOW "', models: [gpt]}]\n",
     "api_keys[0].models[0]: 'gpt' is an alias: name 'm'", 4},
    {MODELS "cache: 16\n", "cache: must be a map, not a text", 3},
    {MODELS "pipelines: {name: p}\n", "pipelines: must be a list, not a map", 3},
    {MODELS "listen: [a]\n", "listen: must be a text, not a list", 3},
    {MODELS "listen:\n", "listen: must not be empty", 3},
    {MODELS "deadline_ms: soon\n", "soon", 3},
    {MODELS "deadline_ms: -1\n", "deadline_ms", 3},
    {MODELS "deadline_ms: 999999999999\n", "deadline_ms", 3},
    {MODELS "deadline_ms: 99999999999999999999999\n", "deadline_ms", 3},
    {MODELS "listen: nowhere\n", "HOST:PORT", 3},
    {MODELS "listen: 127.0.0.1:65536\n", "listen", 3},
    {MODELS "listen: 'unix:'\n", "listen", 3},
    {MODELS "limits:\n  max_headers: 40\n  max_connections: 99999999\n", "limits.max_connections", 5},
    {MODELS "cache: {mb: 99999999999999}\n", "cache.mb", 3},
    {MODELS "log:\n  level: loud\n", "log.level: 'loud' is none of debug, info, warn, error, off", 4},
    {MODELS "log:\n  json: maybe\n", "log.json", 4},
    {MODELS "tls: {cert: a.pem}\n", "key", 3},
    {MODELS "cluster: {site: attic}\n", "cluster: 'listen' is required", 3},
    {MODELS "cluster:\n  listen: unix:/run/x\n", "cluster.listen: 'unix:/run/x' is not HOST:PORT", 4},
    {MODELS "cluster:\n  listen: :99999\n", "cluster.listen", 4},
    {MODELS "cluster:\n  listen: :7080\n  name: My_Box\n", "cluster.name: \"My_Box\" cannot be the name", 5},
    {MODELS "cluster:\n  listen: :7080\n  site: a b\n", "cluster.site: \"a b\" cannot be the name of a site",
     5},
    {MODELS "cluster:\n  listen: :7080\n  spill: {policy: never}\n", "cluster.spill: says when", 5},
    {MODELS "cluster:\n  listen: :7080\n  site: a\n  spill: {policy: always}\n", "cluster.spill.policy", 6},
    {MODELS "api_keys:\n  - hunter2\n", "api_keys[0]", 4},
    {MODELS "api_keys: ['sha256:12']\n", "api_keys[0]", 3},
    {MODELS "api_keys:\n  - sha256:" KEY_LOW "\n  - sha256:" KEY_UP "\n",
     "api_keys[1]: is the same key as api_keys[0]", 5},
    {MODELS "api_keys:\n  - {sha256: " KEY_LOW "}\n", "api_keys[0]: 'name' is required", 4},
    {MODELS "api_keys:\n  - {name: a, sha256: hunter2}\n", "api_keys[0].sha256: must be 'sha256:' and", 4},
    {MODELS "api_keys:\n  - {name: a b, sha256: " KEY_LOW "}\n", "api_keys[0].name: 'a b' may hold", 4},
    {MODELS "api_keys:\n  - name: a\n    sha256: " KEY_LOW "\n    expires: soon\n",
     "api_keys[0].expires: 'soon' is neither a date", 6},
    {MODELS "api_keys:\n  - name: a\n    sha256: " KEY_LOW "\n    limits: {concurrent: 0}\n",
     "api_keys[0].limits.concurrent", 6},
    {MODELS "api_keys:\n  - a=sha256:" KEY_LOW "\n  - {name: b, sha256: 'sha256:" KEY_UP "'}\n",
     "api_keys[1]: is the same key as api_keys[0]", 5},
    {MODELS "api_keys: [[]]\n", "api_keys[0]: must be a map", 3},
    {MODELS "metrics: {key: all}\n", "metrics.key: 'all' is none of admin, any, none", 3},
    {MODELS "allow_hosts: [shoal.lan, 'http://x']\n", "allow_hosts[1]: 'http://x' is no host name", 3},
    {MODELS "allow_hosts: ['a b']\n", "allow_hosts[0]", 3},
    {MODELS "allow_origins:\n  - https://a.example:8443\n  - https://b.example/\n",
     "allow_origins[1]: 'https://b.example/' is no origin", 5},
    {MODELS "allow_origins: ['http://*']\n", "allow_origins[0]", 3},
    {MODELS "allow_origins: ['https://*.example']\n", "allow_origins[0]", 3},
    {MODELS "allow_origins: ['*', 'http://localhost:*', 'localhost:*']\n", "allow_origins[2]", 3},
    {MODELS "allow_origins: [app.example]\n", "allow_origins[0]", 3},
    {MODELS "allow_origins: ['https://']\n", "allow_origins[0]", 3},
    {MODELS "models:\n  - name: n\n", "models", 3},
    {"models:\n  - name: a\n  - name: a\n", "models[1].name: 'a' is already", 3},
    {"models:\n  - name: a b\n", "models[0].name", 2},
    {"models:\n  - name: a\n    sha256: xyz\n", "models[0].sha256", 3},
    {"models:\n  - name: a\n    replicas: 1000\n", "models[0].replicas", 3},
    {"models:\n  - name: a\n    replicas: many\n", "models[0].replicas", 3},
    {"models:\n  - name: a\n    replicas: {min: 2}\n", "'max' is required", 3},
    {"models:\n  - name: a\n    replicas: {min: 3, max: 2}\n", "models[0].replicas.max: is less than min (3)",
     3},
    {"models:\n  - name: a\n    replicas: {max: 65}\n", "models[0].replicas.max", 3},
    {"models:\n  - name: a\n    replicas: {max: 2, wait_ms: 0}\n", "models[0].replicas.wait_ms", 3},
    {"models:\n  - name: a\n    standby: 1\n    replicas: {min: 0, max: 2}\n", "needs 'standby' to be 0", 4},
    {"models:\n  - name: a\n    shards: 2\n    replicas: {max: 2}\n", "has one replica and no standby", 3},
    {"models:\n  - name: a\n    place: {spread: nodes}\n", "models[0].place.spread: 'nodes' is none of", 3},
    {"models:\n  - name: a\n    place:\n      on_battery: yes\n", "models[0].place.on_battery", 4},
    {"models:\n  - name: a\n    place: {max_rtt_ms: 0}\n", "models[0].place.max_rtt_ms", 3},
    {"models:\n  - name: a\n    standby: 65\n", "models[0].standby", 3},
    {"models:\n  - name: a\n    shards: 1\n", "models[0].shards", 3},
    {"models:\n  - name: a\n    shards: many\n", "models[0].shards: must be auto, a number of 2 to 32", 3},
    {"models:\n  - name: a\n    shards: [2]\n", "models[0].shards: must be auto", 3},
    {"models:\n  - name: a\n    shards: {pi: 2}\n", "models[0].shards: must name 2 to 32 nodes", 3},
    {"models:\n  - name: a\n    shards: {pi: 2, nas: 0}\n", "models[0].shards.nas", 3},
    {"models:\n  - name: a\n    wire: f16\n", "models[0].wire: is of a model whose layers", 3},
    {"models:\n  - name: a\n    shards: 2\n    wire: f8\n", "models[0].wire: 'f8' is none of", 4},
    {"models:\n  - name: a\n    kv_type: q4_0\n", "models[0].kv_type: 'q4_0' is none of", 3},
    {"models:\n  - name: a\n    vad: maybe\n", "models[0].vad: 'maybe' is none of", 3},
    {"models:\n  - name: a\n    drafts: home-chat-s\n", "models[0].drafts: 'home-chat-s' is none of", 3},
    {"models:\n  - name: a\n    replicas: 2\n    shards: 2\n", "has one replica and no standby", 4},
    {"models:\n  - name: a\n    shards: auto\n    adapters: [{name: x, path: y}]\n",
     "a model with adapters is whole", 3},
    {MODELS "discovery:\n  dns:\n    - {name: _a._tcp.test, model: a b}\n", "discovery.dns[0].model: 'a b'",
     5},
    {MODELS "discovery:\n  workers:\n    - {model: a, address: nowhere}\n", "discovery.workers[0].address",
     5},
    {MODELS
     "discovery:\n  workers:\n    - {model: a, address: 'unix:/w'}\n    - {model: a, address: 'unix:/w'}\n",
     "discovery.workers[1].address: is that of workers[0]", 6},
    {MODELS "discovery:\n  etcd: {prefix: /a}\n", "discovery.etcd: 'endpoints' is required", 4},
    {MODELS "discovery:\n  etcd:\n    endpoints: [10.0.0.1]\n", "discovery.etcd.endpoints[0]: '10.0.0.1'", 5},
    {MODELS "discovery:\n  etcd:\n    endpoints: ['http://e:2379']\n    ca: c.pem\n",
     "discovery.etcd.endpoints[0]: is http://", 5},
    {MODELS "discovery:\n  etcd:\n    endpoints: [e:2379]\n    key: k.pem\n",
     "discovery.etcd.key: needs 'cert'", 6},
    {MODELS "discovery:\n  etcd:\n    endpoints: [e:2379]\n    user: u\n",
     "discovery.etcd.user: needs 'password_file'", 6},
    {MODELS "discovery:\n  etcd:\n    endpoints: [e:2379]\n    prefix: //\n",
     "discovery.etcd.prefix: must name more", 6},
    {MODELS "discovery:\n  etcd:\n    endpoints: [e:2379]\n    lease_s: 1\n", "discovery.etcd.lease_s", 6},
    {MODELS "discovery:\n  dns_server: 127.0.0.1:53\n", "discovery.dns_server: there are no names", 4},
    {"models:\n  - name: a\n    path: [1]\n", "path", 3},
    {"models:\n  - path: x\n", "models[0]: 'name' is required: the name clients use", 2},
    {"models:\n  - home-intent\n", "models[0]: must be a map, not a text", 2},
    {"models:\n  - name: &n a\n  - name: *n\n", "anchors", 2},
    {"models: [{name: m}\nlisten: x\n", "not YAML", 2},
    {PIPE "      - {name: a, kind: guess, model: m}\n", "stages[0].kind: 'guess' is none of classify, tag, ",
     5},
    {PIPE "      - name: a\n        kind: classify\n", "stages[0].model: a classify stage needs it", 5},
    {PIPE "      - name: a\n        model: m\n        kind: clasify\n", "did you mean 'classify'?", 7},
    {PIPE "      - {name: a, kind: tag, model: m, when: [{text_prefix: x, score: 1}]}\n",
     "stages[0].when[0]: there is no key 'score' here", 5},
    {PIPE "      - {name: a, kind: classify, model: m}\n"
          "      - {name: b, kind: tag, model: m, when: [{stage: a, score_min: '0,9'}]}\n",
     "stages[1].when[0].score_min: must be a number from 0 to 1, such as 0.5, not the quoted '0,9'", 6},
    {PIPE "      - {name: a, kind: tag, model: m, when: {stage: a}}\n", "when: must be a list, not a map", 5},
    {PIPE "      - {name: a, kind: classify}\n", "model", 5},
    {PIPE "      - {name: a, kind: classify, model: x}\n", "pipelines[0].stages[0].model: 'x'", 5},
    {PIPE "      - {name: a b, kind: classify, model: m}\n", "stages[0].name", 5},
    {PIPE "      - {name: a, kind: classify, model: m}\n      - {name: a, kind: tag, model: m}\n",
     "stages[1].name: 'a' is already", 6},
    {PIPE "      - {name: a, kind: classify, model: m, system: hi}\n", "stages[0].system", 5},
    {PIPE "      - {name: a, kind: generate, model: m, temperature: 3}\n", "temperature", 5},
    {PIPE "      - {name: a, kind: generate, model: m, temperature: .nan}\n", "temperature", 5},
    {PIPE "      - {name: a, kind: generate, model: m, max_tokens: 99999999}\n", "max_tokens", 5},
    {PIPE "      - {name: a, kind: tag, model: m, when: [{}]}\n", "stages[0].when[0]", 5},
    {PIPE "      - {name: a, kind: tag, model: m, when: [{label: [x]}]}\n", "needs 'stage:'", 5},
    {PIPE "      - {name: a, kind: tag, model: m, when: [{stage: a, label: [x]}]}\n", "declared before", 5},
    {PIPE "      - {name: a, kind: tag, model: m}\n      - {name: b, kind: tag, model: m,\n         when: "
          "[{stage: a, label: [x]}]}\n",
     "a tag stage, a classify, embed, rerank, fill-mask, transcribe, vad, image, score or "
     "retrieve stage is needed",
     7},
    {PIPE "      - {name: a, kind: retrieve}\n", "stages[0].collection: a retrieve stage needs it", 5},
    {PIPE "      - {name: a, kind: retrieve, collection: c, model: m}\n", "stages[0].model: only a classify",
     5},
    {PIPE "      - {name: a, kind: tag, model: m, limit: 3}\n", "limit: only a retrieve stage has it", 5},
    {PIPE "      - {name: a, kind: ground, lexicon: l}\n",
     "stages[0].kind: 'ground' is none of classify, tag, ", 5},
    {PIPE "      - {name: a, kind: tag, model: m, lexicon: l}\n",
     "stages[0].lexicon: no kind of stage of this program has it", 5},
    {PIPE "      - {name: a, kind: tag, model: m}\n      - {name: b, kind: generate, model: m, choices: a}\n",
     "stages[1].choices: this program has no kind of stage for it", 6},
    {PIPE "      - {name: a, kind: retrieve, collection: c}\n"
          "      - {name: b, kind: tag, model: m, when: [{stage: a, label: [some]}]}\n",
     "a retrieve stage never comes to 'some'", 6},
    {PIPE "      - {name: a, kind: embed, model: m}\n", "stages[0].candidates: an embed stage needs it", 5},
    {PIPE "      - {name: a, kind: rerank, model: m, documents: []}\n", "documents", 5},
    {PIPE "      - {name: a, kind: tag, model: m, documents: [x]}\n", "only a rerank stage has it", 5},
    {PIPE "      - {name: a, kind: generate, model: m, input: x}\n", "input: only a classify, tag, embed", 5},
    {PIPE "      - {name: a, kind: classify, model: m, input: '{text.b}'}\n", "declared before", 5},
    {PIPE "      - {name: a, kind: seq2seq, model: m, beams: 11}\n", "beams", 5},
    {PIPE "      - {name: a, kind: seq2seq, model: m, beams: 2, temperature: 1}\n", "beam search is greedy",
     5},
    {PIPE "      - {name: a, kind: embed, model: m, candidates: [red, blue]}\n"
          "      - {name: b, kind: tag, model: m, when: [{stage: a, label: [green]}]}\n",
     "an embed stage never comes to 'green'", 6},
    {PIPE "      - {name: a, kind: embed, model: m, candidates: [red, blue]}\n"
          "      - {name: b, kind: tag, model: m, input: '{text.a}'}\n",
     "'a' is an embed stage, a generate, seq2seq, fill-mask", 6},
    {PIPE "      - {name: a, kind: classify, model: m}\n"
          "      - {name: b, kind: tag, model: m, unless: [{stage: a, score_min: 1.5}]}\n",
     "unless[0].score_min", 6},
    {PIPE "      - {name: a, kind: generate, model: m, system: '{device}'}\n", "{devices}", 5},
    {PIPE "      - {name: a, kind: generate, model: m, system: 'x {input'}\n", "no '}'", 5},
    {PIPE "      - {name: a, kind: generate, model: m, prompt: '{text.a}'}\n", "declared before", 5},
    {PIPE "      - {name: a, kind: generate, model: m, after: [z]}\n", "after", 5},
    {"models: [{name: m}]\npipelines:\n  - name: p\n    devices:\n      - {id: a, name: b, state: c}\n"
     "      - {id: a, name: b, state: c}\n    stages: [{name: s, kind: tag, model: m}]\n",
     "devices[1].id", 6},
    {"models: [{name: m}]\npipelines:\n  - name: p\n    devices:\n      - {id: a, name: \"b\\nc\", state: "
     "c}\n"
     "    stages: [{name: s, kind: tag, model: m}]\n",
     "devices[0].name", 5},
    {VERIFY "members: [{model: m}]}]\n", "ensembles[0].kind: a verify needs 'check'", 2},
    {VERIFY "members: [{model: x}], check: [{kind: devices}]}]\n", "'x' is not among the models", 2},
    {VERIFY "members: [{model: e}], check: [{kind: devices}]}]\n", "none of them a verify", 2},
    {VERIFY "members: [{model: m, weight: 2}], check: [{kind: devices}]}]\n", "weights are a vote's", 2},
    {VERIFY "members: [{model: m}], check: []}]\n", "ensembles[0].check", 2},
    {VERIFY "members: [{model: m}], check: [{}]}]\n", "ensembles[0].check[0]: 'kind' is required", 2},
    {VERIFY "members: [{model: m}], check: [{kind: truth}]}]\n", "check[0].kind", 2},
    {VERIFY "members: [{model: m}], check: [{kind: numbers, lexicon: a}]}]\n",
     "check[0].lexicon: it belongs to kind: devices", 2},
    {VERIFY "members: [{model: m}], check: [{kind: devices, min_score: 0.5}]}]\n",
     "check[0].min_score: it belongs to kind: nli", 2},
    {VERIFY "members: [{model: m}], check: [{kind: pattern}]}]\n", "needs 'must' or 'must_not'", 2},
    {VERIFY "members: [{model: m}], check: [{kind: nli}]}]\n", "nli needs a 'model'", 2},
    {VERIFY "members: [{model: m}], check: [{kind: nli, model: x}]}]\n",
     "check[0].model: 'x' is not among the models", 2},
    {VERIFY "members: [{model: m}], check: [{kind: numbers}], on_fail: [pray]}]\n",
     "on_fail[0]: 'pray' is not repair, escalate or safe", 2},
    {VERIFY "members: [{model: m}], check: [{kind: numbers}], on_fail: [safe, repair]}]\n",
     "on_fail[1]: nothing comes behind 'safe'", 2},
    {VERIFY "members: [{model: m}], check: [{kind: numbers}], on_fail: [repair, repair]}]\n",
     "'repair' is already on_fail[0]", 2},
    {VERIFY "members: [{model: m}, {model: n}], check: [{kind: numbers}], on_fail: [repair]}]\n",
     "members[1]: nobody asks it", 2},
    {"models: [{name: m}, {name: n}]\nensembles: [{name: e, kind: vote, members: [{model: m}]}]\n",
     "members: has 1 entry, at least 2 are needed", 2},
    {"models: [{name: m}, {name: n}]\nensembles: [{name: e, kind: vote, members: [{model: m}, {model: n}],\n"
     "  check: [{kind: numbers}]}]\n",
     "check: only a verify has it", 3},
    {"models: [{name: m}, {name: n}]\nensembles:\n  - {name: e, kind: vote, members: [{model: m}, {model: "
     "n}]}\n"
     "  - {name: f, kind: cascade, members: [{model: e}, {model: m}]}\n",
     "'e' is an ensemble, and only a verify has such members", 4},
};

static void bad_files_are_refused_with_line_and_field(void **state)
{
    int n_wrong = 0;
    for (size_t i = 0; i < sizeof bad_cases / sizeof *bad_cases; i++) {
        const bad_case *b = &bad_cases[i];
        gateway_config *c = NULL;
        shoal_err err = {0};
        int rc = config_parse(&c, NULL, b->yaml, strlen(b->yaml), "t.yaml", &err);
        char start[32];
        snprintf(start, sizeof start, b->line ? "t.yaml:%d:" : "t.yaml", b->line);
        if (rc == 0 || c || !strstr(err.message, b->says) || strncmp(err.message, start, strlen(start)) != 0)
            n_wrong++, print_error("case %zu\n%s\nrc %d, wanted '%s' at line %d, got: %s\n", i, b->yaml, rc,
                                   b->says, b->line, err.message);
    }
    assert_int_equal(n_wrong, 0);
}

/* A verify may have ensembles of other kinds under it, whichever stands first in the file. */
static void a_verify_may_have_ensembles_as_members(void **state)
{
    static const char YAML[] =
        VERIFY "members: [{model: m}, {model: v}], check: [{kind: devices}, {kind: nli, model: n}]},\n"
               "  {name: v, kind: vote, members: [{model: m}, {model: n}]}]\n";
    gateway_config *c = NULL;
    shoal_err err = {0};
    if (config_parse(&c, NULL, YAML, strlen(YAML), "t.yaml", &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(c->ensembles[0].n_checks, 2);
    assert_string_equal(c->ensembles[0].checks[1].model, "n");
    assert_true(config_ensemble_find(c, "v") == &c->ensembles[1]);
    config_free(c);
}

static void a_pasted_key_is_not_repeated(void **state)
{
    gateway_config *c = NULL;
    shoal_err err = {0};
    const char *yaml = MODELS "api_keys: [sk-verysecret]\n";
    assert_int_equal(config_parse(&c, NULL, yaml, strlen(yaml), "t.yaml", &err), SHOAL_EINVALID);
    assert_null(strstr(err.message, "verysecret"));
}

static void huge_files_are_refused(void **state)
{
    size_t n = (1u << 20) + 1;
    char *text = malloc(n);
    memset(text, '#', n);
    gateway_config *c = NULL;
    shoal_err err = {0};
    assert_int_equal(config_parse(&c, NULL, text, n, "t.yaml", &err), SHOAL_ELIMIT);
    free(text);
}

static void what_is_left_out_has_its_default(void **state)
{
    gateway_config *c = NULL;
    shoal_err err = {0};
    if (config_parse(&c, NULL, MODELS, strlen(MODELS), "t.yaml", &err)) fail_msg("%s", err.message);
    assert_string_equal(c->listen, "127.0.0.1:8080");
    assert_string_equal(c->log_level, "info");
    assert_int_equal(c->max_requests, 256);
    assert_int_equal(c->cache.bytes, 16 << 20);
    assert_int_equal(c->cache.ttl_ms, 600000);
    assert_int_equal(c->default_deadline_ms, 60000);
    assert_int_equal(c->drain_ms, 10000);
    assert_null(c->manifest);
    assert_null(c->tls_cert);
    assert_null(c->cluster_listen);
    assert_int_equal(c->n_models, 1);
    assert_int_equal(c->n_pipelines, 0);
    config_free(c);
}

static void zero_turns_cache_and_deadline_off(void **state)
{
    gateway_config *c = NULL;
    const char *yaml = MODELS "cache: {mb: 0}\ndeadline_ms: 0\n";
    assert_int_equal(config_parse(&c, NULL, yaml, strlen(yaml), "t.yaml", NULL), 0);
    assert_int_equal(c->cache.bytes, 0);
    assert_int_equal(c->default_deadline_ms, 0);
    config_free(c);
}

static void every_section_is_read(void **state)
{
    const char *yaml =
        "listen: ':0'\ntls: {cert: c.pem, key: k.pem}\n"
        "api_keys: ['sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF']\n"
        "limits: {max_body_bytes: 2048, max_requests: 7, idle_timeout_ms: 500}\n"
        "cluster: {listen: ':7080', name: boss, site: attic, state: /var/lib/x, "
        "spill: {policy: when_gone, max_rtt_ms: 12.5, queue: 3}}\n"
        "cpu: {reserve: 2, nice: -5, sched: rr}\n"
        "log: {level: debug, json: true}\nmanifest: /m.json\n"
        "models: [{name: m, path: x.gguf, replicas: 2, kv_mb: 8, kv_type: q8_0}]\n";
    gateway_config *c = NULL;
    shoal_err err = {0};
    if (config_parse(&c, NULL, yaml, strlen(yaml), "t.yaml", &err)) fail_msg("%s", err.message);
    assert_string_equal(c->tls_key, "k.pem");
    assert_int_equal(c->n_api_keys, 1);
    assert_int_equal(c->limits.max_body_bytes, 2048);
    assert_int_equal(c->limits.idle_timeout_ms, 500);
    assert_int_equal(c->max_requests, 7);
    assert_int_equal(c->cpu.reserve, 2);
    assert_int_equal(c->cpu.nice, -5);
    assert_int_equal(c->cpu.sched, CPU_RR);
    assert_true(c->log_json);
    assert_string_equal(c->cluster_listen, ":7080");
    assert_string_equal(c->cluster_name, "boss");
    assert_string_equal(c->cluster_site, "attic");
    assert_string_equal(c->cluster_state, "/var/lib/x");
    assert_int_equal(c->spill.policy, ROUTER_WHEN_GONE);
    assert_true(c->spill.max_rtt_ms == 12.5);
    assert_int_equal(c->spill.queue, 3);
    assert_string_equal(c->manifest, "/m.json");
    assert_int_equal(c->models[0].replicas, 2);
    assert_int_equal(c->models[0].kv_mb, 8);
    assert_string_equal(tuning_kv_type_words[c->models[0].tuning.kv_type], "q8_0");
    config_free(c);
}

static void a_missing_file_is_named(void **state)
{
    gateway_config *c = NULL;
    shoal_err err = {0};
    assert_int_not_equal(config_load(&c, NULL, "/nonexistent/shoal.yaml", &err), 0);
    assert_non_null(strstr(err.message, "/nonexistent/shoal.yaml"));
}

static void a_device_may_have_no_state(void **state)
{
    const char *yaml =
        "models: [{name: m}]\npipelines:\n  - name: p\n    devices:\n"
        "      - {id: a, name: A}\n      - {id: b, name: B, state: }\n      - {id: c, name: C, state: ''}\n"
        "      - {id: d, name: D, state: off}\n"
        "    stages: [{name: s, kind: tag, model: m}]\n";
    gateway_config *c = NULL;
    shoal_err err = {0};
    if (config_parse(&c, NULL, yaml, strlen(yaml), "t.yaml", &err)) fail_msg("%s", err.message);
    for (size_t i = 0; i < 3; i++) assert_string_equal(c->pipelines[0].devices[i].state, "");
    assert_string_equal(c->pipelines[0].devices[3].state, "off");
    config_free(c);
}

/* Load a file of this text from a folder of its own and expect this sentence. */
static void expect_load_error(const char *yaml, const char *says)
{
    char dir[] = "/tmp/shoal-config-XXXXXX", path[64], want[256];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/s.yaml", dir);
    FILE *f = fopen(path, "w");
    fputs(yaml, f);
    fclose(f);
    gateway_config *c = NULL;
    shoal_err err = {0};
    int rc = config_load(&c, NULL, path, &err);
    snprintf(want, sizeof want, says, path, dir);
    assert_int_equal(rc, SHOAL_EINVALID);
    assert_string_equal(err.message, want);
    unlink(path);
    rmdir(dir);
}

static void missing_files_are_found_at_load_with_their_line(void **state)
{
    expect_load_error(MODELS "  - name: n\n    path: no.gguf\n",
                      "%s:4: models[1].path: '%s/no.gguf' cannot be read: No such file or directory");
    expect_load_error(MODELS "tls:\n  cert: /nonexistent/c.pem\n  key: k.pem\n",
                      "%s:4: tls.cert: '/nonexistent/c.pem' cannot be read: No such file or directory");
    expect_load_error(MODELS "manifest: m.json\n",
                      "%s:3: manifest: '%s/m.json' cannot be read: No such file or directory");
}

static void later_failures_get_the_line_of_their_field(void **state)
{
    const char *yaml =
        "models:\n  - {name: m}\npipelines:\n  - name: p\n    stages:\n"
        "      - {name: a, kind: tag, model: m}\n      - name: b\n        kind: tag\n        model: m\n";
    gateway_config *c = NULL;
    shoal_err err = {0};
    assert_int_equal(config_parse(&c, NULL, yaml, strlen(yaml), "t.yaml", NULL), 0);
    config_fail(c, &err, "pipelines[0].stages[%d].model: is %s", 1, "wrong");
    assert_string_equal(err.message, "t.yaml:9: pipelines[0].stages[1].model: is wrong");
    config_fail(c, &err, "models[0].path: nothing there"); /* absent: the line of the deepest part */
    assert_string_equal(err.message, "t.yaml:2: models[0].path: nothing there");
    config_fail(c, &err, "models[7]: no such entry");
    assert_string_equal(err.message, "t.yaml:1: models[7]: no such entry");
    const char *kept = config_keep(c, "127.0.0.1:1");
    assert_string_equal(kept, "127.0.0.1:1");
    config_free(c);
}

static void the_nearest_word_is_the_one_meant(void **state)
{
    const char *const words[] = {"classify", "tag", "generate", "max_body_bytes"};
    assert_string_equal(config_nearest("clasify", words, 4), "classify");
    assert_string_equal(config_nearest("Generate", words, 4), "generate");
    assert_string_equal(config_nearest("gat", words, 4) ? "near" : "none", "none");
    assert_string_equal(config_nearest("tga", words, 4), "tag");
    assert_string_equal(config_nearest("max_bdoy_byte", words, 4), "max_body_bytes");
    assert_null(config_nearest("reply", words, 4));
    assert_null(config_nearest("", words, 4));
}

static void expect_help(const config_record *rec, const char *path, size_t *n)
{
    for (const config_field *f = rec->fields; f < rec->fields + rec->n; f++) {
        char at[200];
        snprintf(at, sizeof at, "%s%s%s", path, *path ? "." : "", f->key);
        if (!config_help_of(at)) fail_msg("config_help.c has no row %s", at);
        ++*n;
        if (f->kind == CONFIG_LIST) strcat(at, "[]");
        bool as_when = strcmp(f->key, "unless") == 0;
        if (f->of && f->kind != CONFIG_PAIRS && !as_when) expect_help(f->of, at, n);
    }
}

static void shards_are_a_word_a_number_or_a_map(void **state)
{
    static const char TEXT[] = "models:\n"
                               "  - {name: a, shards: auto}\n"
                               "  - {name: b, shards: 3, wire: int8}\n"
                               "  - {name: c, shards: {pi: 8, nas: 16}}\n"
                               "  - {name: d}\n";
    gateway_config *c;
    shoal_err err = {0};
    if (config_parse(&c, NULL, TEXT, strlen(TEXT), "t.yaml", &err) != 0) fail_msg("%s", err.message);
    assert_true(c->models[0].shards.automatic && placement_is_cut(&c->models[0].shards));
    assert_int_equal(c->models[1].shards.n, 3);
    assert_int_equal(c->models[1].wire, CONFIG_WIRE_INT8);
    assert_int_equal(c->models[2].shards.n_parts, 2);
    assert_string_equal(c->models[2].shards.parts[1].node, "nas");
    assert_int_equal(c->models[2].shards.parts[1].n_layers, 16);
    assert_false(placement_is_cut(&c->models[3].shards));
    config_free(c);
}

static void replicas_are_a_number_or_a_range(void **state)
{
    static const char TEXT[] = "models:\n"
                               "  - {name: a, replicas: {max: 4}}\n"
                               "  - {name: b, replicas: {min: 0, max: 2, wait_ms: 250, idle_s: 20}}\n"
                               "  - {name: c, replicas: 3}\n"
                               "  - {name: d}\n";
    gateway_config *c;
    shoal_err err = {0};
    if (config_parse(&c, NULL, TEXT, strlen(TEXT), "t.yaml", &err) != 0) fail_msg("%s", err.message);
    const config_model *m = c->models;
    assert_true(m[0].replicas == 1 && m[0].scale.max == 4 && m[0].scale.wait_ms == 1000 &&
                m[0].scale.idle_s == 300);
    assert_true(m[1].replicas == 0 && m[1].scale.max == 2 && m[1].scale.wait_ms == 250 &&
                m[1].scale.idle_s == 20);
    assert_true(m[2].replicas == 3 && m[2].scale.max == 0);
    assert_true(m[3].replicas == 0 && m[3].scale.max == 0);
    config_free(c);
}

static void aliases_are_names_of_any_service(void **state)
{
    static const char TEXT[] = "models:\n"
                               "  - {name: m, adapters: [{name: de, path: x}]}\n"
                               "  - {name: n}\n"
                               "discovery: {workers: [{model: far, address: 'unix:/x'}]}\n"
                               "routes: [{name: auto, rules: [{model: m}]}]\n"
                               "ensembles: [{name: both, kind: cascade, members: [{model: m}, {model: n}]}]\n"
                               "pipelines: [{name: home, stages: [{name: a, kind: generate, model: m}]}]\n"
                               "aliases:\n"
                               "  llama3.2:1b: auto\n"
                               "  \"llama3:latest\": m\n"
                               "  openai/gpt-4o-mini: both\n"
                               "  m:latest: 'm:de'\n"
                               "  pipe: home\n"
                               "  away: far\n";
    static const char *const EXPECTED[][2] = {
        {"llama3.2:1b", "auto"}, {"llama3:latest", "m"}, {"openai/gpt-4o-mini", "both"},
        {"m:latest", "m:de"},    {"pipe", "home"},       {"away", "far"}};
    gateway_config *c;
    shoal_err err = {0};
    if (config_parse(&c, NULL, TEXT, strlen(TEXT), "t.yaml", &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(c->n_aliases, 6);
    for (size_t i = 0; i < 6; i++) {
        const config_alias *a = config_alias_find(c, EXPECTED[i][0]);
        assert_non_null(a);
        assert_string_equal(a->model, EXPECTED[i][1]);
    }
    assert_null(config_alias_find(c, "llama3"));
    assert_null(config_alias_find(c, NULL));
    json_t *tree = NULL;
    assert_int_equal(config_to_json(&tree, c, false, &err), 0);
    const json_t *all = json_object_get(tree, "aliases");
    assert_int_equal(json_object_size(all), 6);
    assert_string_equal(json_string_value(json_object_get(all, "llama3.2:1b")), "auto");
    buf yaml = {0};
    gateway_config *again;
    config_put_yaml(&yaml, tree);
    if (config_parse(&again, NULL, yaml.data, yaml.len, "again.yaml", &err) != 0) fail_msg("%s", err.message);
    assert_string_equal(config_alias_find(again, "openai/gpt-4o-mini")->model, "both");
    config_free(again);
    buf_done(&yaml);
    json_decref(tree);
    config_free(c);
}

static void keys_are_texts_or_maps(void **state)
{
    static const char TEXT[] =
        MODELS "api_keys:\n"
               "  - sha256:" KEY_LOW "\n"
               "  - phone=sha256:1" KEY_REST "\n"
               "  - {name: tv, sha256: 2" KEY_REST ", expires: 2027-01-01,\n"
               "     models: [home, 'tv-*'], endpoints: [process], admin: false,\n"
               "     limits: {requests_per_minute: 5, tokens_per_minute: 6, concurrent: 7}}\n"
               "  - {name: me, sha256: 'sha256:3" KEY_REST "', admin: true}\n";
    gateway_config *c;
    shoal_err err = {0};
    if (config_parse(&c, NULL, TEXT, strlen(TEXT), "t.yaml", &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(c->n_api_keys, 4);
    const config_key *k = c->api_keys;
    assert_string_equal(k[0].name, "");
    assert_true(k[0].admin);
    assert_string_equal(k[1].name, "phone");
    assert_true(k[1].admin && k[1].n_models == 0 && !k[1].expires);
    assert_string_equal(k[2].name, "tv");
    assert_false(k[2].admin);
    assert_int_equal(k[2].expires_s, 1798761600);
    assert_string_equal(k[2].models[1], "tv-*");
    assert_string_equal(k[2].endpoints[0], "process");
    assert_int_equal(k[2].requests_per_minute, 5);
    assert_int_equal(k[2].tokens_per_minute, 6);
    assert_int_equal(k[2].n_concurrent, 7);
    assert_true(k[3].admin);
    config_free(c);
}

/* Against `date -u -d`. */
static void times_are_rfc_3339(void **state)
{
    static const struct {
        const char *text;
        int64_t s;
    } RIGHT[] = {
        {"1970-01-01", 0},
        {"2000-02-29", 951782400},
        {"2027-01-01T00:00:00Z", 1798761600},
        {"2026-11-22T13:17:46Z", 1795353466},
        {"2026-11-22T14:17:46.25+01:00", 1795353466},
        {"2026-11-22 07:47:46-05:30", 1795353466},
        {"2016-12-31T23:59:60Z", 1483228800},
        {"2400-02-29", 13574563200},
        {"9999-12-31T23:59:59Z", 253402300799},
    };
    static const char *const WRONG[] = {"",
                                        "soon",
                                        "2027",
                                        "2027-13-01",
                                        "2027-02-29",
                                        "2100-02-29",
                                        "1969-12-31",
                                        "2027-1-1",
                                        "2027-01-01T",
                                        "2027-01-01T00:00:00",
                                        "2027-01-01T24:00:00Z",
                                        "2027-01-01T00:60:00Z",
                                        "2027-01-01T00:00:61Z",
                                        "2027-01-01T00:00:00.Z",
                                        "2027-01-01T00:00:00Zx",
                                        "2027-01-01T00:00:00+24:00",
                                        "20270101",
                                        "2027-01-01T00:00:00+0100",
                                        " 2027-01-01"};
    int64_t s;
    for (size_t i = 0; i < sizeof RIGHT / sizeof *RIGHT; i++) {
        if (!config_time_parse(RIGHT[i].text, &s)) fail_msg("%s is refused", RIGHT[i].text);
        if (s != RIGHT[i].s) fail_msg("%s: %lld", RIGHT[i].text, (long long)s);
    }
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++)
        if (config_time_parse(WRONG[i], &s)) fail_msg("%s is taken", WRONG[i]);
}

static void every_key_has_help_and_help_only_keys(void **state)
{
    size_t n = 0;
    expect_help(&config_schema, "", &n);
    assert_int_equal(config_help_n, n);
}

static void assert_docs(const char *path, const char *want)
{
    buf out = {0};
    shoal_err err = {0};
    if (config_docs_put(&out, NULL, &path, 1, &err)) fail_msg("%s", err.message);
    static const char HEAD[] = "| key | type | default | meaning |\n|---|---|---|---|\n";
    assert_memory_equal(out.data, HEAD, sizeof HEAD - 1);
    assert_string_equal(out.data + sizeof HEAD - 1, want);
    buf_done(&out);
}

static void tables_of_keys_follow_the_rows(void **state)
{
    assert_docs("log.json", "| `log.json` | true or false | false | JSON on a terminal and in systemd's "
                            "journal, too; elsewhere it is "
                            "JSON anyway, or key=value with `SHOAL_LOG=pairs` |\n");
    assert_docs("routes[].key", "| `routes[].key` | `session`, `user`, `prefix` or `request` | `session` | "
                                "with `order: hash`: what stays "
                                "with one replica. `session`: the header `x-shoal-session`, or the body's "
                                "`session`; `user`: the body's "
                                "`user`, or the API key's name; `prefix`: the first 1024 bytes of the "
                                "prompt. Without one: `least_time` "
                                "|\n");
    assert_docs(
        "metrics",
        "| `metrics` | section | none | /metrics: who may read it, and which further names it has |\n"
        "| `metrics.key` | `admin`, `any` or `none` | `admin` | with `api_keys`: which of them may "
        "read /metrics. `none` "
        "needs no key; Prometheus sends a key with `authorization: {credentials_file: ...}` |\n"
        "| `metrics.compat` | `none` or `vllm` | `none` | `vllm`: /metrics also has the names of vLLM's "
        "metrics; see [Metrics](metrics.md#names-of-vllm) |\n");
}

static void keys_apart_have_a_table_of_their_own(void **state)
{
    static const char *const STAGES = "pipelines[].stages", *const WHEN = "pipelines[].stages[].when";
    buf stages = {0}, when = {0};
    shoal_err err = {0};
    assert_int_equal(config_docs_put(&stages, NULL, &STAGES, 1, &err), 0);
    assert_int_equal(config_docs_put(&when, NULL, &WHEN, 1, &err), 0);
    assert_non_null(strstr(stages.data, "| `pipelines[].stages[].when` |"));
    assert_null(strstr(stages.data, "| `pipelines[].stages[].when[].stage` |"));
    assert_null(strstr(when.data, "| `pipelines[].stages[].when` |"));
    assert_non_null(strstr(when.data, "| `pipelines[].stages[].when[].stage` |"));
    buf_done(&stages);
    buf_done(&when);
}

static void an_unknown_key_has_no_table(void **state)
{
    static const char *const NAMES[] = {"tls", "limits.max_heders"};
    buf out = {0};
    shoal_err err = {0};
    buf_puts(&out, "before");
    assert_int_equal(config_docs_put(&out, NULL, NAMES, 2, &err), SHOAL_ENOTFOUND);
    assert_string_equal(err.message, "shoal.yaml has no key 'limits.max_heders'");
    assert_int_equal(out.len, 6);
    buf_done(&out);
}

/* One sentence each, "LINE: " and a beginning, in the order of lines. */
static void tells(const char *text, const char *const *want, size_t n)
{
    gateway_config *c = NULL;
    config_faults all = {0};
    shoal_err err = {0};
    assert_int_equal(config_parse_all(&c, NULL, text, strlen(text), "c.yaml", &all, &err), SHOAL_EINVALID);
    config_faults_sort(&all);
    for (size_t i = 0; i < all.n && i < n; i++) {
        const char *sentence = all.list[i].sentence + strlen("c.yaml:");
        if (strncmp(sentence, want[i], strlen(want[i])) != 0)
            fail_msg("%zu: %s\nnot %s", i, sentence, want[i]);
    }
    assert_int_equal(all.n, n);
    config_faults_done(&all);
}

static void config_tells_each_error_of_its_own(void **state)
{
    static const char *const keys[] = {
        "1: there is no key 'listn' here", "2: cache.mb: must be",
        "2: cache.ttl_s: must be",         "4: models[0]: there is no key 'nam' here",
        "6: models[2].context: must be",   "7: aliases.b: must not be empty"};
    tells("listn: x\ncache: {mb: lots, ttl_s: -1}\nmodels:\n  - {nam: a}\n  - {name: b}\n"
          "  - {name: c, context: no}\naliases: {a: b, b: ''}\n",
          keys, sizeof keys / sizeof *keys);
    static const char *const meanings[] = {
        "1: listen: 'nowhere' is not HOST:PORT",
        "3: models[0].name: 'a:b' may hold",
        "4: models[1].fallback[0]: 'q' is not among",
        "6: pipelines[0].stages[0].model: 'm' is not among",
        "7: pipelines[1].name: 'p p' may hold",
        "8: routes[0].rules[0].model: 'none' is neither",
        "8: routes[1].rules: 'r2' needs",
        "9: aliases.a: 'q' is no model",
        "9: aliases.c: 'r' is no model",
        "10: api_keys[0].sha256: must be",
        "11: api_keys[2].sha256: must be",
    };
    tells("listen: nowhere\nmodels:\n  - {name: 'a:b'}\n  - {name: y, fallback: [q]}\npipelines:\n"
          "  - {name: p, stages: [{name: a, kind: classify, model: m}]}\n"
          "  - {name: p p, stages: [{name: a, kind: classify, model: y}]}\n"
          "routes: [{name: r1, rules: [{model: none}]}, {name: r2}]\naliases: {a: q, b: y, c: r}\n"
          "api_keys: [{name: a, sha256: x}, {name: b, sha256: " KEY_LOW "},\n  {name: c, sha256: y}]\n",
          meanings, sizeof meanings / sizeof *meanings);
    static const char *const yaml[] = {"x"};
    tells("a: [\n", yaml, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_files_are_refused_with_line_and_field),
        cmocka_unit_test(a_pasted_key_is_not_repeated),
        cmocka_unit_test(a_verify_may_have_ensembles_as_members),
        cmocka_unit_test(huge_files_are_refused),
        cmocka_unit_test(aliases_are_names_of_any_service),
        cmocka_unit_test(keys_are_texts_or_maps),
        cmocka_unit_test(times_are_rfc_3339),
        cmocka_unit_test(what_is_left_out_has_its_default),
        cmocka_unit_test(zero_turns_cache_and_deadline_off),
        cmocka_unit_test(every_section_is_read),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(a_device_may_have_no_state),
        cmocka_unit_test(missing_files_are_found_at_load_with_their_line),
        cmocka_unit_test(later_failures_get_the_line_of_their_field),
        cmocka_unit_test(the_nearest_word_is_the_one_meant),
        cmocka_unit_test(shards_are_a_word_a_number_or_a_map),
        cmocka_unit_test(replicas_are_a_number_or_a_range),
        cmocka_unit_test(every_key_has_help_and_help_only_keys),
        cmocka_unit_test(tables_of_keys_follow_the_rows),
        cmocka_unit_test(keys_apart_have_a_table_of_their_own),
        cmocka_unit_test(an_unknown_key_has_no_table),
        cmocka_unit_test(config_tells_each_error_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
