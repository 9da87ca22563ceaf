/* scenario_schema.c: every key of a scenario, one row each. */
#include "lab/scenario_schema.h"

#define NAME_BYTES 32
#define TEXT_BYTES 65536
#define LINE_BYTES 4096

#define WIDTH(type, member) sizeof(((type *)0)->member)
#define COUNT(rows)         (sizeof(rows) / sizeof *(rows))

#define TEXT(key_, type, member, max_, about_, ...)                                            \
    {                                                                                          \
        .key = key_, .kind = CONFIG_TEXT, .at = offsetof(type, member), .min = 1, .max = max_, \
        .about = about_, __VA_ARGS__                                                           \
    }
#define UINT(key_, type, member, min_, max_, about_, ...)                                             \
    {                                                                                                 \
        .key = key_, .kind = CONFIG_UINT, .at = offsetof(type, member), .width = WIDTH(type, member), \
        .min = min_, .max = max_, .about = about_, __VA_ARGS__                                        \
    }
#define NUMBER(key_, type, member, low_, high_, about_, ...)                                          \
    {                                                                                                 \
        .key = key_, .kind = CONFIG_NUMBER, .at = offsetof(type, member), .low = low_, .high = high_, \
        .about = about_, __VA_ARGS__                                                                  \
    }
#define BOOL(key_, type, member, about_)                                                \
    {                                                                                   \
        .key = key_, .kind = CONFIG_BOOL, .at = offsetof(type, member), .about = about_ \
    }
#define LIST(key_, type, member, record_, min_, max_, about_, ...)                                          \
    {                                                                                                       \
        .key = key_, .kind = CONFIG_LIST, .at = offsetof(type, member), .at_n = offsetof(type, n_##member), \
        .width_n = WIDTH(type, n_##member), .of = &record_, .min = min_, .max = max_, .about = about_,      \
        __VA_ARGS__                                                                                         \
    }
#define TEXTS(key_, type, member, min_, max_, max_text_, about_, ...)                                       \
    {                                                                                                       \
        .key = key_, .kind = CONFIG_LIST, .at = offsetof(type, member), .at_n = offsetof(type, n_##member), \
        .width_n = WIDTH(type, n_##member), .max_text = max_text_, .min = min_, .max = max_,                \
        .about = about_, __VA_ARGS__                                                                        \
    }
#define RECORD(name_, type, rows) static const config_record name_ = {sizeof(type), rows, COUNT(rows)}

#define LAB_ACTION_WORD(name, word) word,
const char *const lab_action_words[] = {LAB_ACTIONS(LAB_ACTION_WORD) NULL};

static const config_field file_rows[] = {
    TEXT("name", lab_file, name, NAME_BYTES, "the file's name in the node's folder", .required = true),
    TEXT("text", lab_file, text, TEXT_BYTES, "what it holds", .required = true),
};
RECORD(file, lab_file, file_rows);

static const config_field process_rows[] = {
    TEXT("role", lab_process, role, NAME_BYTES, "what faults and {out.ROLE} call it", .required = true),
    TEXT("run", lab_process, run, LINE_BYTES, "the command line", .required = true),
    TEXT("ready", lab_process, ready, LINE_BYTES, "a URL that answers 200 when it is up"),
    BOOL("once", lab_process, once, "it runs to its end before the next one starts"),
    BOOL("first", lab_process, first, "it is left out when the node boots again"),
    UINT("restart_ms", lab_process, restart_ms, 1, 600000, "it is started again this long after its death"),
};
RECORD(process, lab_process, process_rows);

static const config_field node_rows[] = {
    TEXT("name", lab_node, name, NAME_BYTES, "what links and faults call it", .required = true),
    LIST("files", lab_node, files, file, 1, 16, "files in its folder"),
    LIST("start", lab_node, start, process, 1, 16, "what runs on it, in order"),
    UINT("disk_mb", lab_node, disk_mb, 1, 4096, "the size of its folder", .otherwise = 16),
    UINT("cores", lab_node, cores, 1, 1024, "how many cores its programs use"),
};
RECORD(node_record, lab_node, node_rows);

#define QUALITY_ROWS(type)                                                                       \
    NUMBER("delay_ms", type, q.delay_ms, 0, 60000, "how much later frames come"),                \
        NUMBER("jitter_ms", type, q.jitter_ms, 0, 60000, "how far the delay of a frame strays"), \
        NUMBER("loss", type, q.loss, 0, 1, "the share of frames that never come"),               \
        NUMBER("rate_kbit", type, q.rate_kbit, 1, 1e9, "how much passes in a second"),           \
        BOOL("one_way", type, one_way, "only from the first to the second")

static const config_field link_rows[] = {
    TEXTS("between", lab_link, between, 2, 2, NAME_BYTES, "two nodes, client, or *", .required = true),
    QUALITY_ROWS(lab_link),
};
RECORD(link_record, lab_link, link_rows);

static const config_field fault_rows[] = {
    {.key = "do",
     .kind = CONFIG_WORD,
     .at = offsetof(lab_fault, action),
     .width = WIDTH(lab_fault, action),
     .words = lab_action_words,
     .about = "kill, term, freeze, reboot, cut, link, fill, run",
     .required = true},
    TEXT("of", lab_fault, of, NAME_BYTES, "a role, worker or node"),
    TEXT("node", lab_fault, node, NAME_BYTES, "where; absent: drawn"),
    TEXT("model", lab_fault, model, 128, "whose worker; MODEL@FIRST: that stage of it; absent: drawn"),
    TEXTS("between", lab_fault, between, 2, 2, NAME_BYTES, "two nodes, client, or *"),
    QUALITY_ROWS(lab_fault),
    BOOL("silent", lab_fault, silent, "no end of a connection leaves what it strikes"),
    TEXT("run", lab_fault, run, LINE_BYTES, "a command line on the node"),
    NUMBER("at_s", lab_fault, at_s, 0, 1e6, "when, from the start of the load"),
    NUMBER("every_s", lab_fault, every_s, 0.01, 1e6, "and again"),
    NUMBER("until_s", lab_fault, until_s, 0, 1e6, "none begins later"),
    NUMBER("for_s", lab_fault, for_s, 0, 1e6, "how long it lasts"),
};
RECORD(fault, lab_fault, fault_rows);

static const config_field request_rows[] = {
    TEXT("name", lab_request, name, NAME_BYTES, "what the report calls it", .required = true),
    TEXT("path", lab_request, path, 256, "such as /v1/chat/completions", .required = true),
    TEXT("body", lab_request, body, TEXT_BYTES, "JSON; {n} is the variant", .required = true),
    UINT("weight", lab_request, weight, 1, 1000, "how often, against the others", .otherwise = 1),
    UINT("variants", lab_request, variants, 1, 1000, "how many different ones", .otherwise = 1),
};
RECORD(request, lab_request, request_rows);

static const config_field load_rows[] = {
    TEXTS("gateways", lab_scenario, gateways, 1, 16, LINE_BYTES, "URLs that are asked", .required = true),
    UINT("clients", lab_scenario, clients, 1, 256, "how many ask at once", .otherwise = 4),
    UINT("attempts", lab_scenario, attempts, 1, 100, "how often one request is tried", .otherwise = 1),
    UINT("patience_ms", lab_scenario, patience_ms, 10, 600000, "how long a client waits for an answer",
         .otherwise = 10000),
    UINT("silence_ms", lab_scenario, silence_ms, 10, 600000,
         "an attempt of which nothing is heard for so long is given up"),
    UINT("pause_ms", lab_scenario, pause_ms, 1, 60000, "between an answer and the next request"),
    LIST("requests", lab_scenario, requests, request, 1, 32, "what is asked", .required = true),
};
RECORD(load, lab_scenario, load_rows);

static const config_field scenario_rows[] = {
    TEXT("name", lab_scenario, name, 64, "what the report calls it", .required = true),
    TEXT("about", lab_scenario, about, 1024, "a sentence for shoal lab list", .required = true),
    UINT("seed", lab_scenario, seed, 0, UINT64_MAX, "of everything that is drawn", .otherwise = 1),
    NUMBER("seconds", lab_scenario, seconds, 0.1, 1e6, "how long the disturbed run lasts", .required = true),
    LIST("nodes", lab_scenario, nodes, node_record, 1, LAB_NODES_MAX, "the machines", .required = true),
    LIST("links", lab_scenario, links, link_record, 1, 64, "what the links between them are like"),
    {.key = "load", .kind = CONFIG_SECTION, .of = &load, .about = "what is asked of whom", .required = true},
    LIST("faults", lab_scenario, faults, fault, 1, 64, "the schedule"),
};
const config_record scenario_schema = {sizeof(lab_scenario), scenario_rows, COUNT(scenario_rows)};
