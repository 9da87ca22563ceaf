/* jinja_run.c: evaluates the tree. */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>

#include "base/progress.h"
#include "base/utf8.h"
#include "jinja/jinja.h"

/* Bounds the recursion of expressions, statements and macros together. */
enum { MAX_RUN_DEPTH = 250 };

static void run_body(jrun *r, const jnode *block);
static jvalue capture(jrun *r, const jnode *body);
static jvalue loop_again(jrun *r, jvalue loop, const jargs *args);

static bool jinja_run_step(jrun *r, const jnode *n)
{
    if (r->rc) return false;
    r->line = n->line;
    if (++r->steps > JINJA_MAX_STEPS)
        jinja_fail(r, SHOAL_ELIMIT, "the template runs for too long");
    else if (r->depth > MAX_RUN_DEPTH)
        jinja_fail(r, SHOAL_ELIMIT, "the template nests too deep");
    return r->rc == 0;
}

/* ---- names ---- */

static jvalue key_of(const char *name)
{
    return jinja_str(name, strlen(name));
}

static void set_var(jrun *r, const char *name, jvalue v)
{
    jinja_put(r, &r->scope->vars, key_of(name), v);
}

static jvalue lookup(jrun *r, const char *name)
{
    for (const jscope *s = r->scope; s; s = s->up) {
        const jvalue *v = jinja_get(r, &s->vars, key_of(name));
        if (v) return *v;
    }
    int f = jinja_function_find(name);
    return f >= 0 ? (jvalue){.kind = V_FUNCTION, .i = f} : (jvalue){.kind = V_UNDEFINED};
}

static bool open_scope(jrun *r)
{
    jscope *s = jinja_alloc(r, sizeof *s);
    if (!s) return false;
    s->up = r->scope;
    r->scope = s;
    return true;
}

/* ---- expressions ---- */

static jvalue arithmetic(jrun *r, const char *op, jvalue a, jvalue b)
{
    bool ints = (a.kind == V_INT || a.kind == V_BOOL) && (b.kind == V_INT || b.kind == V_BOOL);
    int64_t x = a.kind == V_BOOL ? a.b : a.i, y = b.kind == V_BOOL ? b.b : b.i, z = 0;
    double p = a.kind == V_FLOAT ? a.f : (double)x, q = b.kind == V_FLOAT ? b.f : (double)y;
    bool numbers = (a.kind == V_FLOAT || a.kind == V_INT || a.kind == V_BOOL) &&
                   (b.kind == V_FLOAT || b.kind == V_INT || b.kind == V_BOOL);
    if (!numbers)
        return jinja_fail(r, SHOAL_EINVALID, "%s %s %s cannot be computed", jinja_kind_name(a), op,
                          jinja_kind_name(b));
    if ((op[0] == '/' || op[0] == '%') && q == 0) return jinja_fail(r, SHOAL_EINVALID, "division by zero");
    bool overflow = false;
    if (!strcmp(op, "**"))
        return ints && y >= 0 && fabs(pow(p, q)) < 9e15 ? jinja_int((int64_t)pow(p, q))
                                                        : jinja_float(pow(p, q));
    if (op[0] == '+')
        overflow = __builtin_add_overflow(x, y, &z), p += q;
    else if (op[0] == '-')
        overflow = __builtin_sub_overflow(x, y, &z), p -= q;
    else if (op[0] == '*')
        overflow = __builtin_mul_overflow(x, y, &z), p *= q;
    else if (!strcmp(op, "/"))
        return jinja_float(p / q);
    else if (!ints)
        return jinja_float(op[0] == '%' ? p - floor(p / q) * q : floor(p / q));
    else if (x == INT64_MIN && y == -1)
        overflow = true;
    else if (op[0] == '%')
        z = x % y != 0 && (x % y < 0) != (y < 0) ? x % y + y : x % y;
    else
        z = x / y - (x % y != 0 && (x < 0) != (y < 0));
    if (overflow && ints) return jinja_fail(r, SHOAL_EINVALID, "an integer is too large");
    return ints ? jinja_int(z) : jinja_float(p);
}

static jvalue concat(jrun *r, jvalue a, jvalue b)
{
    size_t n = a.n + b.n;
    bool marked = a.marks || b.marks;
    char *s = jinja_alloc(r, n + 1);
    uint8_t *marks = marked ? jinja_alloc(r, n + 1) : NULL;
    if (!s || (marked && !marks)) return (jvalue){0};
    if (a.n) memcpy(s, a.s, a.n);
    if (b.n) memcpy(s + a.n, b.s, b.n);
    if (a.marks) memcpy(marks, a.marks, a.n);
    if (b.marks) memcpy(marks + a.n, b.marks, b.n);
    return (jvalue){.kind = V_STRING, .s = s, .n = n, .marks = marks};
}

static jvalue join_lists(jrun *r, jvalue a, jvalue b)
{
    jvalue out = jinja_list(r);
    for (size_t i = 0; r->rc == 0 && i < a.list->n; i++) jinja_push(r, out, a.list->at[i]);
    for (size_t i = 0; r->rc == 0 && i < b.list->n; i++) jinja_push(r, out, b.list->at[i]);
    return out;
}

static jvalue repeat(jrun *r, jvalue s, int64_t times)
{
    size_t n = times > 0 && s.n ? (size_t)times : 0;
    if (n > JINJA_MAX_MEMORY || n * s.n > JINJA_MAX_MEMORY)
        return jinja_fail(r, SHOAL_ELIMIT, "a string is repeated too often");
    char *p = jinja_alloc(r, n * s.n + 1);
    uint8_t *marks = s.marks ? jinja_alloc(r, n * s.n + 1) : NULL;
    if (!p || (s.marks && !marks)) return (jvalue){0};
    for (size_t i = 0; i < n; i++) {
        memcpy(p + i * s.n, s.s, s.n);
        if (marks) memcpy(marks + i * s.n, s.marks, s.n);
    }
    return (jvalue){.kind = V_STRING, .s = p, .n = n * s.n, .marks = marks};
}

static jvalue binary(jrun *r, const jnode *n)
{
    jvalue a = jinja_eval(r, n->a), b = jinja_eval(r, n->b);
    if (r->rc) return a;
    if (n->name[0] == '~') {
        jvalue x = jinja_text(r, a), y = jinja_text(r, b);
        return r->rc ? x : concat(r, x, y);
    }
    if (n->name[0] == '+' && a.kind == V_STRING && b.kind == V_STRING) return concat(r, a, b);
    if (n->name[0] == '+' && a.kind == V_LIST && b.kind == V_LIST) return join_lists(r, a, b);
    if (!strcmp(n->name, "*") && a.kind == V_STRING && b.kind == V_INT) return repeat(r, a, b.i);
    if (n->name[0] == '%' && a.kind == V_STRING)
        return jinja_percent(r, a, b.kind == V_LIST ? b.list->at : &b, b.kind == V_LIST ? b.list->n : 1);
    return arithmetic(r, n->name, a, b);
}

bool jinja_contains(jrun *r, jvalue all, jvalue x)
{
    if (all.kind == V_DICT) return jinja_get(r, all.dict, x) != NULL;
    if (all.kind == V_STRING) {
        if (x.kind != V_STRING) return false;
        return !x.n || (all.n && memmem(all.s, all.n, x.s, x.n));
    }
    if (all.kind == V_LIST) {
        for (size_t i = 0; i < all.list->n; i++)
            if (jinja_equal(r, all.list->at[i], x)) return true;
        return false;
    }
    if (all.kind != V_UNDEFINED)
        jinja_fail(r, SHOAL_EINVALID, "\"in\" needs a list, dict or string, not %s", jinja_kind_name(all));
    return false;
}

static jvalue compare(jrun *r, const jnode *n)
{
    jvalue a = jinja_eval(r, n->a), b = jinja_eval(r, n->b);
    const char *op = n->name;
    jinja_charge(r, a);
    jinja_charge(r, b);
    if (r->rc) return a;
    if (!strcmp(op, "==")) return jinja_bool(jinja_equal(r, a, b));
    if (!strcmp(op, "!=")) return jinja_bool(!jinja_equal(r, a, b));
    if (!strcmp(op, "in")) return jinja_bool(jinja_contains(r, b, a));
    int c = jinja_order(r, a, b);
    bool or_equal = op[1] == '=';
    return jinja_bool(op[0] == '<' ? c < 0 || (or_equal && c == 0) : c > 0 || (or_equal && c == 0));
}

static void add_arg(jrun *r, jargs *args, const char *keyword, jvalue v)
{
    if (args->n == sizeof args->at / sizeof *args->at) {
        jinja_fail(r, SHOAL_ELIMIT, "more than 12 arguments");
        return;
    }
    args->keyword[args->n] = keyword;
    args->at[args->n++] = v;
}

static bool eval_args(jrun *r, const jnode *items, jargs *args)
{
    args->n = 0;
    for (const jnode *a = items; a && r->rc == 0; a = a->next) {
        jvalue v = jinja_eval(r, a->kind == N_SPREAD ? a->a : a);
        if (a->kind != N_SPREAD) {
            add_arg(r, args, a->keyword, v);
            continue;
        }
        v = jinja_items(r, v);
        for (size_t i = 0; r->rc == 0 && i < v.list->n; i++) add_arg(r, args, NULL, v.list->at[i]);
    }
    return r->rc == 0;
}

static jvalue call_value(jrun *r, jvalue f, const jargs *args, const char *name)
{
    if (f.kind == V_MACRO) return jinja_call_macro(r, f, args);
    if (f.kind == V_FUNCTION) return jinja_function(r, (int)f.i, args);
    if (f.kind == V_LOOP) return loop_again(r, f, args);
    return jinja_fail(r, SHOAL_EUNSUPPORTED, "\"%.40s\" is no function", name);
}

/* caller (may be NULL): the body of a call block, which the macro knows by that name. */
static jvalue call(jrun *r, const jnode *n, const jvalue *caller)
{
    jargs args;
    bool method = n->a->kind == N_ATTR;
    jvalue f = jinja_eval(r, method ? n->a->a : n->a);
    if (!eval_args(r, n->items, &args)) return f;
    if (caller && args.n == sizeof args.at / sizeof *args.at)
        return jinja_fail(r, SHOAL_ELIMIT, "more than 11 arguments with a call block");
    if (caller) {
        args.keyword[args.n] = "caller";
        args.at[args.n++] = *caller;
    }
    if (!method) return call_value(r, f, &args, n->a->kind == N_NAME ? n->a->name : "this");
    if (jinja_has_method(f, n->a->name)) return jinja_method(r, f, n->a->name, &args);
    jvalue of = jinja_attr(r, f, n->a->name);
    if (of.kind == V_MACRO) return jinja_call_macro(r, of, &args);
    return jinja_fail(r, SHOAL_EUNSUPPORTED, "%s has no method \"%.40s\"", jinja_kind_name(f), n->a->name);
}

/* Python's slice rules: the bounds of a sequence of n for the given step. */
static int64_t bound(jvalue v, int64_t n, int64_t step, bool start)
{
    int64_t lo = step > 0 ? 0 : -1, hi = step > 0 ? n : n - 1;
    if (v.kind != V_INT) return (step > 0) == start ? lo : hi;
    int64_t i = v.i < 0 ? v.i + n : v.i;
    return i < lo ? lo : i > hi ? hi : i;
}

static jvalue part(jrun *r, const jnode *n)
{
    return n ? jinja_eval(r, n) : (jvalue){.kind = V_NONE};
}

static jvalue slice(jrun *r, const jnode *n)
{
    jvalue of = jinja_eval(r, n->a), from = part(r, n->b), to = part(r, n->c), by = part(r, n->other);
    if (r->rc) return of;
    if (of.kind != V_LIST && of.kind != V_STRING)
        return jinja_fail(r, SHOAL_EINVALID, "%s cannot be sliced", jinja_kind_name(of));
    int64_t step_by = by.kind == V_INT ? by.i : 1;
    if (step_by == 0) return jinja_fail(r, SHOAL_EINVALID, "a slice's step is zero");
    jvalue items = jinja_items(r, of);
    if (r->rc) return of;
    int64_t len = (int64_t)items.list->n;
    int64_t b = bound(from, len, step_by, true), e = bound(to, len, step_by, false);
    jvalue out = jinja_list(r);
    for (int64_t i = b; r->rc == 0 && (step_by > 0 ? i < e : i > e); i += step_by) {
        jinja_push(r, out, items.list->at[i]);
        if (step_by > len || step_by < -len) break;
    }
    if (of.kind == V_LIST || r->rc) return out;
    jtext text = {0};
    for (size_t i = 0; i < out.list->n; i++) jinja_text_add(&text, out.list->at[i]);
    return jinja_text_take(r, &text);
}

static jvalue list_of(jrun *r, const jnode *n)
{
    jvalue out = jinja_list(r);
    for (const jnode *i = n->items; i && r->rc == 0; i = i->next) jinja_push(r, out, jinja_eval(r, i));
    return out;
}

static jvalue dict_of(jrun *r, const jnode *n)
{
    jvalue out = jinja_dict(r, V_DICT);
    for (const jnode *i = n->items; i && r->rc == 0; i = i->next) {
        jvalue key = jinja_eval(r, i->a), v = jinja_eval(r, i->b);
        jinja_put(r, out.dict, key, v);
    }
    return out;
}

static jvalue negate(jrun *r, jvalue v)
{
    if (v.kind == V_FLOAT) return jinja_float(-v.f);
    return arithmetic(r, "-", jinja_int(0), v);
}

static jvalue filter_or_test(jrun *r, const jnode *n)
{
    jargs args;
    jvalue v = jinja_eval(r, n->a);
    if (!eval_args(r, n->items, &args)) return v;
    return n->kind == N_FILTER ? jinja_filter(r, n->name, v, &args)
                               : jinja_bool(jinja_test(r, n->name, v, &args));
}

static jvalue conditional(jrun *r, const jnode *n)
{
    if (!n->b) return jinja_eval(r, n->a); /* an argument or element in its wrapper */
    if (jinja_truth(jinja_eval(r, n->b))) return jinja_eval(r, n->a);
    return n->c ? jinja_eval(r, n->c) : (jvalue){.kind = V_UNDEFINED};
}

static jvalue eval(jrun *r, const jnode *n)
{
    jvalue v;
    progress_add(128);
    switch (n->kind) {
    case N_LITERAL: return n->value;
    case N_NAME: return lookup(r, n->name);
    case N_LIST: return list_of(r, n);
    case N_DICT: return dict_of(r, n);
    case N_ATTR: v = jinja_eval(r, n->a); return r->rc ? v : jinja_attr(r, v, n->name);
    case N_INDEX: {
        v = jinja_eval(r, n->a);
        jvalue key = jinja_eval(r, n->b);
        return r->rc ? v : jinja_item(r, v, key);
    }
    case N_SLICE: return slice(r, n);
    case N_CALL: return call(r, n, NULL);
    case N_FILTER:
    case N_TEST: return filter_or_test(r, n);
    case N_UNARY: v = jinja_eval(r, n->a); return r->rc ? v : negate(r, v);
    case N_BINARY: return binary(r, n);
    case N_COMPARE: return compare(r, n);
    case N_AND: v = jinja_eval(r, n->a); return jinja_truth(v) ? jinja_eval(r, n->b) : v;
    case N_OR: v = jinja_eval(r, n->a); return jinja_truth(v) ? v : jinja_eval(r, n->b);
    case N_NOT: return jinja_bool(!jinja_truth(jinja_eval(r, n->a)));
    case N_COND: return conditional(r, n);
    case N_CAPTURE: return capture(r, n->items);
    default: return jinja_fail(r, SHOAL_EINTERNAL, "a statement where an expression should be");
    }
}

jvalue jinja_eval(jrun *r, const jnode *n)
{
    if (!n || !jinja_run_step(r, n)) return (jvalue){.kind = V_UNDEFINED};
    r->depth++;
    jvalue v = eval(r, n);
    r->depth--;
    return v;
}

/* ---- statements ---- */

static void write_out(jrun *r, jvalue v)
{
    jinja_print(r, r->out, v);
    if (jinja_text_failed(r->out)) jinja_fail(r, SHOAL_ENOMEM, "out of memory");
    if (r->out->bytes.len > JINJA_MAX_OUTPUT)
        jinja_fail(r, SHOAL_ELIMIT, "the template prints more than %d bytes", JINJA_MAX_OUTPUT);
}

static void assign(jrun *r, const jnode *target, jvalue v)
{
    if (!target->a) {
        set_var(r, target->name, v);
        return;
    }
    jvalue ns = lookup(r, target->name);
    if (ns.kind != V_NAMESPACE)
        jinja_fail(r, SHOAL_EINVALID, "\"%.40s\" is no namespace", target->name);
    else
        jinja_put(r, ns.dict, key_of(target->a->name), v);
}

/* One value to one name, or a list of values to as many names. */
static void assign_all(jrun *r, const jnode *targets, jvalue v)
{
    if (!targets->next) {
        assign(r, targets, v);
        return;
    }
    size_t i = 0, n = 0;
    for (const jnode *t = targets; t; t = t->next) n++;
    if (v.kind != V_LIST || v.list->n != n) {
        jinja_fail(r, SHOAL_EINVALID, "%s cannot be unpacked to %zu names", jinja_kind_name(v), n);
        return;
    }
    for (const jnode *t = targets; t && r->rc == 0; t = t->next) assign(r, t, v.list->at[i++]);
}

/* Run a body into a text of its own. */
static jvalue capture(jrun *r, const jnode *body)
{
    jtext text = {0}, *out = r->out;
    r->out = &text;
    run_body(r, body);
    r->out = out;
    return jinja_text_take(r, &text);
}

/* The argument for parameter p: by its place, else by its name. */
static bool find_arg(const jargs *args, const jnode *p, size_t *at, jvalue *ret)
{
    if (*at < args->n && !args->keyword[*at]) {
        *ret = args->at[(*at)++];
        return true;
    }
    for (size_t i = 0; i < args->n; i++) {
        if (!args->keyword[i] || strcmp(args->keyword[i], p->name)) continue;
        *ret = args->at[i];
        return true;
    }
    return false;
}

jvalue jinja_call_macro(jrun *r, jvalue f, const jargs *args)
{
    static const jnode caller_name = {.kind = N_NAME, .name = "caller"};
    jscope *back = r->scope;
    jvalue v = {.kind = V_UNDEFINED}, x;
    size_t at = 0, none = SIZE_MAX;
    r->depth += 5;
    if (f.scope) r->scope = f.scope;
    while (!f.scope && r->scope->up) r->scope = r->scope->up; /* macros see the globals */
    if (jinja_run_step(r, f.macro) && open_scope(r)) {
        if (find_arg(args, &caller_name, &none, &x)) set_var(r, "caller", x);
        for (const jnode *p = f.macro->b; p && r->rc == 0; p = p->next) {
            x = (jvalue){.kind = V_UNDEFINED};
            if (!find_arg(args, p, &at, &x) && p->a) x = jinja_eval(r, p->a);
            set_var(r, p->name, x);
        }
        v = capture(r, f.macro->items);
    }
    r->scope = back;
    r->depth -= 5;
    return v;
}

/* {% call(x) m(1) %}body{% endcall %}: m's "caller(x)" is the body, which sees what stands around it. */
static void run_call(jrun *r, const jnode *n)
{
    jvalue caller = {.kind = V_MACRO, .macro = n, .scope = r->scope};
    jvalue v = call(r, n->a, &caller);
    if (r->rc == 0) write_out(r, v);
}

static void run_with(jrun *r, const jnode *n)
{
    jscope *outside = r->scope;
    if (!open_scope(r)) return;
    for (const jnode *t = n->b; t && r->rc == 0; t = t->next) set_var(r, t->name, jinja_eval(r, t->a));
    run_body(r, n->items);
    r->scope = outside;
}

/* Set what `loop` tells; one dict serves all rounds. */
static void set_loop(jrun *r, jvalue loop, const jlist *items, size_t i, int64_t depth)
{
    const struct {
        const char *name;
        jvalue v;
    } facts[] = {
        {"index", jinja_int((int64_t)i + 1)},
        {"index0", jinja_int((int64_t)i)},
        {"revindex", jinja_int((int64_t)(items->n - i))},
        {"revindex0", jinja_int((int64_t)(items->n - i) - 1)},
        {"first", jinja_bool(i == 0)},
        {"last", jinja_bool(i + 1 == items->n)},
        {"length", jinja_int((int64_t)items->n)},
        {"depth", jinja_int(depth)},
        {"depth0", jinja_int(depth - 1)},
        {"previtem", i ? items->at[i - 1] : (jvalue){.kind = V_UNDEFINED}},
        {"nextitem", i + 1 < items->n ? items->at[i + 1] : (jvalue){.kind = V_UNDEFINED}},
    };
    for (size_t k = 0; k < sizeof facts / sizeof *facts; k++)
        jinja_put(r, loop.dict, key_of(facts[k].name), facts[k].v);
}

/* What the loop goes over: the items of `over` that pass its condition. */
static jvalue loop_items(jrun *r, const jnode *n, jvalue over)
{
    jvalue all = jinja_items(r, over), out = jinja_list(r);
    for (size_t i = 0; r->rc == 0 && i < all.list->n; i++) { /* a copy: the body may append to the list */
        bool keep = true;
        if (n->c) {
            assign_all(r, n->b, all.list->at[i]);
            keep = jinja_truth(jinja_eval(r, n->c));
        }
        if (keep) jinja_push(r, out, all.list->at[i]);
    }
    return out;
}

static void run_for(jrun *r, const jnode *n, jvalue over, int64_t depth)
{
    jscope *outside = r->scope;
    if (r->rc || !open_scope(r)) return;
    jvalue items = loop_items(r, n, over), loop = jinja_dict(r, V_LOOP);
    loop.macro = n;
    loop.i = depth;
    size_t count = r->rc ? 0 : items.list->n;
    for (size_t i = 0; r->rc == 0 && i < count; i++) {
        r->scope->vars.n = 0; /* what one round sets, the next does not see */
        set_loop(r, loop, items.list, i, depth);
        set_var(r, "loop", loop);
        assign_all(r, n->b, items.list->at[i]);
        run_body(r, n->items);
        bool stop = r->flow == FLOW_BREAK;
        r->flow = FLOW_ON;
        if (stop) break;
    }
    r->scope = outside;
    if (r->rc == 0 && count == 0 && n->other) run_body(r, n->other);
}

/* loop(items) within {% for ... recursive %}: what the loop prints for them. */
static jvalue loop_again(jrun *r, jvalue loop, const jargs *args)
{
    jtext text = {0}, *out = r->out;
    if (!loop.macro->name)
        return jinja_fail(r, SHOAL_EINVALID, "loop() is called in a loop that is not \"recursive\"");
    r->depth += 5;
    r->out = &text;
    if (jinja_run_step(r, loop.macro)) run_for(r, loop.macro, jinja_arg(args, 0), loop.i + 1);
    r->out = out;
    r->depth -= 5;
    return jinja_text_take(r, &text);
}

static void run_statement(jrun *r, const jnode *n)
{
    switch (n->kind) {
    case N_TEXT: write_out(r, n->value); break;
    case N_OUTPUT: {
        jvalue v = jinja_eval(r, n->a);
        if (r->rc == 0) write_out(r, v);
        break;
    }
    case N_IF:
        if (jinja_truth(jinja_eval(r, n->a)))
            run_body(r, n->items);
        else if (n->other)
            run_body(r, n->other);
        break;
    case N_FOR: run_for(r, n, jinja_eval(r, n->a), 1); break;
    case N_SET: {
        jvalue v = n->a ? jinja_eval(r, n->a) : capture(r, n->items);
        if (r->rc == 0) assign_all(r, n->b, v);
        break;
    }
    case N_MACRO: set_var(r, n->name, (jvalue){.kind = V_MACRO, .macro = n}); break;
    case N_CALL_BLOCK: run_call(r, n); break;
    case N_WITH: run_with(r, n); break;
    case N_BREAK: r->flow = FLOW_BREAK; break;
    case N_CONTINUE: r->flow = FLOW_CONTINUE; break;
    default: run_body(r, n);
    }
}

/* A block's statements; an elif stands where an else body would. */
static void run_body(jrun *r, const jnode *block)
{
    if (!block || !jinja_run_step(r, block)) return;
    r->depth++;
    if (block->kind != N_BLOCK) {
        run_statement(r, block);
    } else {
        for (const jnode *s = block->items; s && r->flow == FLOW_ON && jinja_run_step(r, s); s = s->next)
            run_statement(r, s);
    }
    r->depth--;
}

int jinja_run(jrun *r, const jnode *root)
{
    run_body(r, root);
    return r->rc;
}
